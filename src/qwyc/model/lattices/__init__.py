"""Ensembles of lattices: base models of interpolated tables over calibrated features."""
