"""Deciders: events in, effects out; no I/O, no clock, no randomness of their own."""
