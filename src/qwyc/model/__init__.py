"""Ensembles: base models of any family, what rows they take, and how they add up to a score."""
