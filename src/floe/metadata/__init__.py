"""Vnodes, store adapters, coordinators and the router."""
