"""qwyc against TensorFlow Lattice: `make bench-lattices`, or `python -m benchmarks.lattices`."""
