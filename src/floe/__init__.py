"""Floe: log storage for Kafka clients, object storage and Spark."""

__version__ = "0.1.0"
