"""Descriptions of a classifier, for terminals and notebooks."""
