"""Checks of a finished classifier: against its promise, against its model, against the clock."""
