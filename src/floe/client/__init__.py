"""The native Python client."""
