"""Which of K classes wins by full scores, in C: native/core/ties.cpp, operation by operation."""

from __future__ import annotations

from qwyc.files.export_c.text import real_literal
from qwyc.target.ties import Ties

_ARGMAX = """
/* The class with the largest score, the first of equal ones. */
static int largest(const double *score) {
    uint32_t k, best = 0;
    for (k = 1; k < N_SCORES; ++k)
        if (score[best] < score[k]) best = k;
    return (int)best;
}
"""

_BY_SCORES = """
static int decide_full(const double *score) {
    return largest(score);
}
"""

_BY_PROBABILITIES = """
/* {what} */
static void probabilities(const double *score, double *out) {{
{body}}}

/* Scores that are far apart decide; otherwise probabilities do, which are rounded and may be equal where
   scores are not. The first of equal ones wins, and NaN counts as the largest. */
static int decide_full(const double *score) {{
    const int winner = largest(score);
    const double best = score[winner];
    double out[N_SCORES];
    /* volatile: the product is rounded before it is subtracted, whatever the compiler's options */
    volatile double margin = 1e-6 * (fabs(best) > 1.0 ? fabs(best) : 1.0);
    const double near = best - margin;
    uint32_t k, count = 0, first = 0;
    for (k = 0; k < N_SCORES; ++k) count += score[k] >= near;
    if (!({is_near})) return winner;
    probabilities(score, out);
    for (k = 0; k < N_SCORES; ++k) {{
        if (out[k] != out[k]) return (int)k;
        if (out[k] > out[first]) first = k;
    }}
    return (int)first;
}}
"""

_SOFTMAX = """    const double best = score[largest(score)];
    double total = 0;
    uint32_t k;
    for (k = 0; k < N_SCORES; ++k) total += out[k] = exp(score[k] - best);
    for (k = 0; k < N_SCORES; ++k) out[k] /= total;
"""

_SINGLE_SOFTMAX = """    const float best = (float)score[largest(score)];
    double total = 0;
    float divisor;
    uint32_t k;
    for (k = 0; k < N_SCORES; ++k) total += out[k] = expf((float)score[k] - best);
    divisor = (float)total;
    for (k = 0; k < N_SCORES; ++k) out[k] = (float)out[k] / divisor;
"""

_SIGMOID = """    uint32_t k;
    for (k = 0; k < N_SCORES; ++k) out[k] = 1.0 / (1.0 + exp({scale} * score[k]));
"""

_EXPONENTIALS = """    float total = 0, scale;
    uint32_t k;
    for (k = 0; k < N_SCORES; ++k) {
        const float power = expf((float)score[k]);
        total += power;
        out[k] = power;
    }
    scale = 1.0f / total;
    for (k = 0; k < N_SCORES; ++k) out[k] = (float)out[k] * scale;
"""

_MIXED_SOFTMAX = """    float best = (float)score[0];
    double total = 0, divisor;
    uint32_t k;
    for (k = 1; k < N_SCORES; ++k)
        if (score[k] > best) best = (float)score[k];
    for (k = 0; k < N_SCORES; ++k) total += out[k] = as_float(exp(score[k] - (double)best));
    divisor = (float)total;
    for (k = 0; k < N_SCORES; ++k) out[k] /= divisor;
"""

_BODIES = {
    ("softmax", "float64"): ("A softmax in double.", _SOFTMAX),
    ("softmax", "float32"): ("A softmax in float, but for the sum.", _SINGLE_SOFTMAX),
    ("sigmoid", "float64"): ("A sigmoid of each score.", _SIGMOID),
    ("exponentials", "float32"): (
        "A softmax in float that does not take the largest score off first.",
        _EXPONENTIALS,
    ),
    ("softmax", "mixed"): ("A softmax of float exponentials of double scores.", _MIXED_SOFTMAX),
}


def decide_full(ties: Ties) -> tuple[str, bool]:
    """The functions up to `decide_full`, and whether they call libm."""
    if ties.kind == "scores":
        return _ARGMAX + _BY_SCORES, False
    what, body = _BODIES[ties.kind, ties.dtype]
    is_near = "count > 1"
    if ties.kind == "sigmoid":
        scale = real_literal(ties.scale, single=False)
        body = body.format(scale=real_literal(-ties.scale, single=False))
        is_near = f"count > 1 || {scale} * best > 15.0 || {scale} * best < -700.0"
    elif ties.kind == "exponentials":
        is_near = "count > 1 || !(fabs(best) <= 80.0)"
    return _ARGMAX + _BY_PROBABILITIES.format(what=what, body=body, is_near=is_near), True
