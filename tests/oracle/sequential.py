"""The sequential test of a rate, as docs/decisions/0018-monitor.md writes it down: every start is kept."""

import numpy as np

START_EVERY, TAIL = 16, 0.25
FROM_FIRST_ROW = 0.5


def evidence(differs, share, multiples):
    """The evidence after every row, (n,), of one monitor without parts."""
    total = np.zeros(len(differs))
    for multiple in multiples:
        # Likelihood ratio of one row: its odds are `multiple` times those of the share.
        p = multiple * share / (1 - share + multiple * share)
        ratio = np.where(differs, p / share, (1 - p) / (1 - share))
        starts = range(0, len(differs), START_EVERY)
        weights = [(j + 1) ** -TAIL - (j + 2) ** -TAIL for j in range(len(starts))]
        for n in range(1, len(differs) + 1):
            began = [(w, s) for w, s in zip(weights, starts, strict=True) if s < n]
            later = (len(began) + 1) ** -TAIL
            changes = sum(w * np.prod(ratio[s:n]) for w, s in began) + later
            total[n - 1] += FROM_FIRST_ROW * np.prod(ratio[:n]) + (1 - FROM_FIRST_ROW) * changes
    return total / len(multiples)
