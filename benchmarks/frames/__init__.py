"""Microseconds per row of data frames by their kind: `python -m benchmarks.frames`."""
