"""qwyc against the other ways to evaluate tree ensembles: `make bench`, or `python -m benchmarks`."""
