"""The experiments of the paper and beyond, on the public face of qwyc only."""
