"""Benchmarks: load from C, figures side by side in one run, results as JSON."""
