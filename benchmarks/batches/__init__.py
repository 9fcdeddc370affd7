"""Microseconds per row by rows per call: `python -m benchmarks.batches`."""
