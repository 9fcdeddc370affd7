"""The paper's six experiments, and rivals that the paper does not have: `qwyc reproduce`."""
