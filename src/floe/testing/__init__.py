"""Shipped test kit: embedded broker, fakes, simulator."""
