"""The Kafka front door."""
