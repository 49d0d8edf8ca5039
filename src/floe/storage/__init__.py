"""Durable media behind ports."""
