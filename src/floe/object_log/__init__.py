"""The engine of object topics."""
