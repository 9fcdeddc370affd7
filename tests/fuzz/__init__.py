"""Mutated model files, `.qwyc` files and data files against their readers: `make fuzz`.

Every case is known by its target, seed and number, so that it can be made again."""
