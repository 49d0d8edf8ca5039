"""The Kafka protocol: framing, headers, message tables and the codec made from them."""
