"""Settings in, broker out: the only place that chooses adapters."""
