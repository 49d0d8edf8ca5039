"""The native front door."""
