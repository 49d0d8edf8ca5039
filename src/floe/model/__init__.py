"""Values and rules about values; no I/O."""
