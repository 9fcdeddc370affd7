"""From a model and a sample of rows to a classifier: `optimize` and `recertify`."""
