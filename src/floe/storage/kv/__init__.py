"""Ordered key-value stores."""
