"""Experiments with qwyc: the paper's, and those behind the figures in docs/.

    paper         the paper's experiments (`qwyc reproduce`; docs/reproduction.md)
    validity      how often a certificate is wrong (docs/certification.md)
    frontier      base models per row against every published method (docs/certification.md)
    proof         alpha = 0 on random inputs (docs/certification.md)
    research      variants of the default method (docs/research.md)
    boxes         tighter bounds at alpha = 0 (docs/research.md)
    brute_force   Algorithm 1 against the best of all orders (docs/decisions/0004-algorithms.md)
    scaling       time and memory of fitting (docs/decisions/0007-memory.md)
    shared_parts  how the default order counts shared parts (docs/decisions/0008-method.md)
    optimism      Algorithm 1's alpha on new rows (docs/decisions/0008-method.md)

All but `paper` are run with `python -m qwyc_experiments.NAME`.
"""
