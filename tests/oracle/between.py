"""A threshold between two running sums, for all ways of fitting. Twin of native/fit/between.hpp."""


def between(a: float, b: float, fallback: float) -> float:
    """The midpoint of a < b, or `fallback` where rounding leaves no number between them."""
    middle = 0.5 * a + 0.5 * b
    return middle if a < middle < b else fallback
