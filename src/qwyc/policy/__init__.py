"""Policies: an order of the base models and a rule that says when a row may quit."""
