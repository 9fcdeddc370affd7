"""Rows in any form, and the matrix that base models take."""
