"""What "the same answer" means: the decision rule, and the kinds of difference there are."""
