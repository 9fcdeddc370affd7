"""The oracle: a slow twin, in plain NumPy, of everything that is fast in qwyc.

    trees       leaves, scores and full scores of trees
    lattices    calibrated values, scores, full scores and bounds of lattices
    policies    a policy with thresholds, applied to scores
    paper       the paper's Algorithms 1 and 2
    costs       costs of base models that share parts
    orders      orders that are fixed before thresholds are fitted
    stopping    thresholds by optimal stopping
    tolerance   the same for outputs within a tolerance, and estimates of full scores
    fan         the rule of Fan et al., and Algorithm 1 with it
    leads       policies on the lead of many classes, and how they are fitted
    filters     a filter for one of many classes, applied to scores

It imports nothing of qwyc at run time, and only tests import it. The tests compare results bit for bit.
"""

from oracle import filters, lattices, leads
from oracle.costs import costs_along, marginal_cost
from oracle.fan import fan_order, fit_and_apply_fan
from oracle.orders import correlation_order, greedy_mse, widest_first
from oracle.paper import optimize_order, optimize_thresholds, thresholds_along
from oracle.policies import apply_policy
from oracle.stopping import ScoreForecast, sweep
from oracle.tolerance import estimate, tolerance_sweep
from oracle.trees import full_score, goes_left, score_matrix, tree_leaves

__all__ = [
    "ScoreForecast",
    "apply_policy",
    "correlation_order",
    "costs_along",
    "estimate",
    "fan_order",
    "filters",
    "fit_and_apply_fan",
    "full_score",
    "goes_left",
    "greedy_mse",
    "lattices",
    "leads",
    "marginal_cost",
    "optimize_order",
    "optimize_thresholds",
    "score_matrix",
    "sweep",
    "thresholds_along",
    "tolerance_sweep",
    "tree_leaves",
    "widest_first",
]
