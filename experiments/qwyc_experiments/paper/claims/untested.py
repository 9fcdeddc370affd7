"""Sentences of the paper that these experiments do not test, and why."""

from __future__ import annotations

NOT_TESTED: tuple[tuple[str, str], ...] = (
    (
        "Discussion: QWYC* is faster than Fan*, from 1.8 times for the independently trained ensemble of 5 "
        "base models to 4 times for the jointly trained ensemble of 5.",
        "These figures contradict the paper's own tables. There the speed-ups of 5 base models are 2.7 "
        "(jointly trained) and 4.0 (independently trained), both against the full ensemble, and 1.8 is "
        "that of 500 base models, in both experiments. Over Fan* the tables give factors of 1.1 to 1.7. "
        "What the tables say is tested: faster than the full ensemble, and faster than Fan*.",
    ),
    (
        "Abstract and Section 4: a 4-approximation in certain cases, the best bound in polynomial time "
        "unless P = NP.",
        "This is a theorem and not a measurement. `python -m qwyc_experiments.brute_force` compares the "
        "order of Algorithm 1 with the best order of small ensembles.",
    ),
    (
        "Appendix A: in its example with 8 rows the base models f3, f2, f1 in this order are optimal, at a "
        "mean cost of 7/4.",
        "It does not hold. After f3 and f1 every row can quit, so the order f3, f1, f2 costs 12/8, and "
        "Algorithm 1 finds it. 7/4 is the optimum only where a base model may let no rows quit but those "
        "that it could let quit as the first one.",
    ),
    (
        "Abstract: QWYC* speeds up evaluation 2 to 4 times.",
        "In two of the paper's own four tables the speed-up is 1.8 (Experiments 4 and 6).",
    ),
    (
        "Section 4: Algorithm 1 takes O(T² N) time.",
        "It is a property of the algorithm. `python -m qwyc_experiments.scaling` measures the time to fit.",
    ),
    (
        "Section 3: rows that are not representative make the solution worse, and unlabelled rows are "
        "easier to collect.",
        "All experiments fit and test on rows of the same data set.",
    ),
    (
        "Experiments: QWYC* does not need labels.",
        "It is a property of the algorithm: labels are not among its inputs.",
    ),
    (
        "Experiments: differences of about 0.5% correspond to the share of noisy labels.",
        "The share of noisy labels in these data sets is not known.",
    ),
    (
        "Experiments 3 to 6: the data sets, the ensembles and the shares that the full ensemble decides as "
        "negative (0.95 and about 0.5).",
        "The paper's data is not public. Public data stands in for it, and the decision thresholds are set "
        "so that these shares agree, so they cannot be tested.",
    ),
    (
        "Experiment 4: with random feature subsets, some base models are much more useful than others.",
        "The paper gives no measure of usefulness.",
    ),
    (
        "Discussion: base models of an independently trained ensemble of 500 behave very similarly, which "
        "may be why random orders do well.",
        "This is given as a possible reason. Two parts of it are tested: whether random orders overfit "
        "less, and how base models correlate with the full score.",
    ),
    (
        "Discussion: in Experiment 1 individual MSE does not capture a good cumulative order, which may be "
        "why Fan* does worse than smaller ensembles.",
        "This is given as a possible reason. Whether greedy MSE is the better order is tested.",
    ),
    (
        "Appendix D: lattices are about as fast and as flexible as trees, and all lattices of an ensemble "
        "take about the same time.",
        "Trees and lattices are not compared on the same data, and base models are not timed one by one.",
    ),
    (
        "Introduction, related work and conclusions: ensembles that were pruned before, parallel "
        "evaluation, instance-adaptive orders, clustering, multi-class classifiers, ranking and "
        "regression.",
        "The paper has no experiments on them.",
    ),
)
