"""Fitting: orders and thresholds from the scores of a sample."""
