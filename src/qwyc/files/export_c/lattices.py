"""Lattices in C: the arithmetic of docs/lattices.md, operation by operation."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from qwyc.files.export_c.program import Program, Tables, joined, quit_end
from qwyc.files.export_c.text import c_type, narrowed, real_literal
from qwyc.files.export_c.trees import add_thresholds, comparisons
from qwyc.model.lattices.models import CalibratorKind, Interpolation, LatticeArrays, LatticeModels
from qwyc.policy.policy import Policy

_CUT = """
/* x within low .. high; NaN becomes low. */
static real cut(real x, real low, real high) {
    x = x > low ? x : low;
    return x < high ? x : high;
}
"""

_CALIBRATE_HEAD = """
static real calibrate(uint32_t c, const real *row) {{
    const uint32_t begin = point_begin[c], count = point_begin[c + 1] - begin;
    const real *const y = output + begin;
    const uint8_t flags = calibrator_flags[c]; /* 1: a table by code; 2: has an output for missing */
    real x = value_of(row, calibrator_feature[c]);
    uint32_t k = 0, length;
    if (flags & 1) x = {trunc}(x);
    if (flags & 2 && (x == missing_value[c] || (x != x && missing_value[c] != missing_value[c])))
        return missing_output[c];
    if (flags & 1) return x >= 0 && x < (real)count ? y[(uint32_t)x] : other_output[c];
    x = cut(x, point[begin], point[begin + count - 1]);
    for (length = count; length > 1; length -= length / 2)
        if (point[begin + k + length / 2] <= x) k += length / 2;
    x -= point[begin + k];
    return cut({fma}(x, slope[begin + k], y[k]), least_output[c], most_output[c]);
}}
"""

_CELL = """
/* The first vertex of the cell that inputs are in; within: where they are in it, 0 to 1. */
static uint32_t cell_of(uint32_t n, const {size} *size, const real *in, real *within,
                        uint32_t *stride) {{
    uint32_t first = 0, i, steps = 1;
    for (i = n; i-- > 0;) {{
        const real z = cut(in[i], 0, (real)(size[i] - 1));
        uint32_t cell = (uint32_t)z;
        if (cell > size[i] - 2u) cell = size[i] - 2u;
        within[i] = z - (real)cell;
        first += cell * steps;
        stride[i] = steps;
        steps *= size[i];
    }}
    return first;
}}
"""

_HYPERCUBE = """
/* The first three inputs by the weights of corners, each further input by halving. */
static real hypercube(uint32_t n, const real *v, const real *within, const uint32_t *stride) {{
    const uint32_t inner = n < 3 ? n : 3, corners = 1u << inner, blocks = 1u << (n - inner);
    real weight[8], half[MOST_INPUTS + 1], value = 0;
    uint32_t near[8], i, a, b;
    weight[0] = 1, near[0] = 0;
    for (i = 0; i < inner; ++i)
        for (a = 1u << i; a-- > 0;) {{
            const real both = weight[a];
            weight[2 * a + 1] = both * within[i];
            weight[2 * a] = both * (1 - within[i]);
            near[2 * a + 1] = near[a] + stride[i];
            near[2 * a] = near[a];
        }}
    for (b = 0; b < blocks; ++b) {{ /* bit i of b is further input i */
        const real *at = v;
        for (i = 0; b >> i != 0; ++i)
            if (b >> i & 1u) at += stride[inner + i];
        value = weight[0] * at[0];
        for (a = 1; a < corners; ++a) value = {fma}(weight[a], at[near[a]], value);
        for (i = 0; b >> i & 1u; ++i) value = {fma}(within[inner + i], value - half[i], half[i]);
        half[i] = value;
    }}
    return value;
}}
"""

_SIMPLEX = """
/* Along a path from the first to the last vertex of the cell, inputs from the greatest on. */
static real simplex(uint32_t n, const real *v, const real *within, const uint32_t *stride) {{
    real sorted[MOST_INPUTS + 1], value;
    uint32_t step[MOST_INPUTS], i, j;
    for (i = 0; i < n; ++i) {{
        for (j = i; j > 0 && sorted[j - 1] < within[i]; --j)
            sorted[j] = sorted[j - 1], step[j] = step[j - 1];
        sorted[j] = within[i], step[j] = stride[i];
    }}
    sorted[n] = 0;
    value = (1 - sorted[0]) * v[0];
    for (i = 0; i < n; ++i) {{
        v += step[i];
        value = {fma}(sorted[i] - sorted[i + 1], *v, value);
    }}
    return value;
}}
"""

_VALUE = """
/* The value of a base model from calibrated features. */
static real value_at(uint32_t r, const real *calibrated) {{
    const uint32_t begin = input_begin[r], n = input_begin[r + 1] - begin;
    const real *v = vertex + vertex_begin[r];
    real in[MOST_INPUTS], value;
    uint32_t i;
    for (i = 0; i < n; ++i) in[i] = calibrated[input[begin + i]];
{linear}{table}}}
"""

_LINEAR = """{condition}{{
        value = v[n];
        for (i = 0; i < n; ++i) value = {fma}(v[i], in[i], value);
        return value;
    }}
"""

_TABLE = """    {{
        real within[MOST_INPUTS];
        uint32_t stride[MOST_INPUTS];
        v += cell_of(n, size + begin, in, within, stride);
        value = {call};
    }}
    return cut(value, least[r], most[r]);
"""

_DECIDE = """
static int decide(const real *row, int32_t *steps, double *score) {{
    real calibrated[N_CALIBRATORS];
    double sum = {base};
    uint32_t r, c = 0;
    for (r = 0; r < N_MODELS; ++r) {{
        /* volatile: the product is rounded before it is added, whatever the compiler's options */
        volatile real weighted;
        for (; c < calibrator_end[r]; ++c) calibrated[c] = calibrate(c, row);
        weighted = (real)((double)value_at(r, calibrated) * weight[r]);
        sum += (real)(((double)weighted + {shift}) - {shift}); /* on a grid where sums are exact */
{quitting}    }}
    if (steps) *steps = N_MODELS;
    if (score) *score = sum;
    return sum >= {threshold};
}}
"""

_QUITTING = """        if (r < N_QUITS && ({quits})) {{
            if (steps) *steps = (int32_t)r + 1;
            if (score) *score = sum;
            return {positive};
        }}
"""


def program(models: LatticeModels, policy: Policy) -> Program:
    """The base models along the policy's order."""
    a, tables = models.arrays, Tables()
    single = a.dtype == np.float32
    fma, trunc = ("fmaf", "truncf") if single else ("fma", "trunc")
    used = _add_calibrators(tables, a, policy.order)
    size_type = _add_models(tables, a, policy.order, used)
    n_quits = quit_end((policy.lower > -np.inf) | (policy.upper < np.inf))
    add_thresholds(tables, policy, n_quits)
    most_inputs = int(np.diff(a.input_begin).max())
    sizes = (
        f"enum {{ N_MODELS = {models.n_models}, N_CALIBRATORS = {len(used)}, "
        f"MOST_INPUTS = {most_inputs}, N_QUITS = {n_quits} }};"
    )
    kinds = set(a.interpolation.tolist())
    tabled = kinds & {Interpolation.HYPERCUBE, Interpolation.SIMPLEX}
    decide = _DECIDE.format(
        base=real_literal(models.native.base, single=False),
        shift=real_literal(_grid_shift(models.native.total), single=False),
        threshold=real_literal(policy.threshold, single=False),
        quitting=_QUITTING.format(**comparisons(policy, n_quits)) if n_quits else "",
    )
    parts = [
        sizes,
        _CUT,
        _CALIBRATE_HEAD.format(fma=fma, trunc=trunc),
        _CELL.format(size=size_type) if tabled else "",
        _HYPERCUBE.format(fma=fma) if Interpolation.HYPERCUBE in kinds else "",
        _SIMPLEX.format(fma=fma) if Interpolation.SIMPLEX in kinds else "",
        _value(kinds, fma),
        decide,
    ]
    real = 4 if single else 8
    return Program(
        tables=tables.text,
        code=joined(parts),
        n_bytes=tables.n_bytes,
        stack=real * (len(used) + 4 * most_inputs + 16) + 8 * most_inputs,
        uses_math=True,
        how=f"{models.description} over {len(used):,} calibrators, in the order of evaluation",
    )


def _value(kinds: set[int], fma: str) -> str:
    linear, table = "", ""
    tabled = kinds - {Interpolation.LINEAR}
    if Interpolation.LINEAR in kinds:
        condition = f"    if (interpolation[r] == {Interpolation.LINEAR:d}) " if tabled else "    "
        linear = _LINEAR.format(condition=condition, fma=fma)
    if tabled:
        calls = {
            Interpolation.HYPERCUBE: "hypercube(n, v, within, stride)",
            Interpolation.SIMPLEX: "simplex(n, v, within, stride)",
        }
        call = " : ".join(calls[Interpolation(kind)] for kind in sorted(tabled))
        if len(tabled) == 2:
            call = f"interpolation[r] == {Interpolation.HYPERCUBE:d} ? {call}"
        table = _TABLE.format(call=call)
    return _VALUE.format(linear=linear, table=table)


def _grid_shift(total: float) -> float:
    """What, added and taken away, rounds to the grid: Grid::of in native/core/lattices.cpp."""
    mantissa, exponent = math.frexp(total)
    return math.ldexp(1.5, exponent - (total > 0 and mantissa == 0.5) + 1)


def _add_calibrators(
    tables: Tables, a: LatticeArrays, order: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Add the calibrators in the order in which steps first need them; returns that order."""
    inputs = [a.input[a.input_begin[t] : a.input_begin[t + 1]] for t in order]
    used = np.array(list(dict.fromkeys(np.concatenate(inputs).tolist())), dtype=np.int64)
    place = np.zeros(a.n_calibrators, dtype=np.int64)
    place[used] = np.arange(len(used))
    ends = np.maximum.accumulate([int(place[own].max()) + 1 for own in inputs])
    spans = [np.arange(a.point_begin[c], a.point_begin[c + 1]) for c in used]
    at = np.concatenate(spans)
    slopes, least, most = [], [], []
    for c, span in zip(used, spans, strict=True):
        points, outputs = a.point[span], a.output[span]
        slope = np.zeros_like(outputs)
        if a.calibrator_kind[c] == CalibratorKind.PIECEWISE_LINEAR:
            slope[:-1] = np.diff(outputs) / np.diff(points)
        slopes.append(slope)
        least.append(outputs.min())
        most.append(outputs.max())
    flags = a.calibrator_kind[used] | (a.has_missing[used] << 1)
    begin = np.concatenate([[0], np.cumsum([len(span) for span in spans])])
    tables.add("calibrator_flags", flags.astype(np.uint8), "1: by code; 2: missing has an output")
    tables.add("calibrator_feature", narrowed(a.calibrator_feature[used]), "what each reads")
    tables.add("calibrator_end", narrowed(ends), "calibrators that are needed up to each step")
    tables.add("point_begin", narrowed(begin), "where the keypoints of each calibrator begin")
    tables.add("point", a.point[at], "keypoints, or codes")
    tables.add("output", a.output[at], "outputs at the keypoints, or by code")
    tables.add("slope", np.concatenate(slopes), "from each keypoint to the next")
    tables.add("least_output", np.array(least, a.dtype), "of each calibrator")
    tables.add("most_output", np.array(most, a.dtype), "of each calibrator")
    tables.add("missing_value", a.missing_value[used], "what means missing")
    tables.add("missing_output", a.missing_output[used], "what it is calibrated to")
    tables.add("other_output", a.other_output[used], "of codes outside of the table")
    return used


def _add_models(
    tables: Tables,
    a: LatticeArrays,
    order: npt.NDArray[np.int32],
    used: npt.NDArray[np.int64],
) -> str:
    """Add the base models; returns the type of sizes."""
    place = np.zeros(a.n_calibrators, dtype=np.int64)
    place[used] = np.arange(len(used))
    inputs = np.concatenate([np.arange(*a.input_begin[t : t + 2]) for t in order])
    vertices = np.concatenate([np.arange(*a.vertex_begin[t : t + 2]) for t in order])
    ends = [np.cumsum(np.diff(begin)[order]) for begin in (a.input_begin, a.vertex_begin)]
    least, most = (
        np.array([f(a.vertex[slice(*a.vertex_begin[t : t + 2])]) for t in order], a.dtype)
        for f in (np.min, np.max)
    )
    kinds = a.interpolation[order]
    if len(set(kinds.tolist())) > 1:
        tables.add("interpolation", kinds, "0: hypercube; 1: simplex; 2: linear")
    tables.add("weight", a.weight[order], "what the value of each base model is multiplied with")
    tables.add("input_begin", narrowed([0, *ends[0]]), "where the inputs of each begin")
    tables.add("input", narrowed(place[a.input[inputs]]), "calibrators")
    size = narrowed(a.size[inputs])
    if (kinds != Interpolation.LINEAR).any():
        tables.add("size", size, "vertices along each input")
        tables.add("least", least, "of the vertices of each")
        tables.add("most", most, "of the vertices of each")
    tables.add("vertex_begin", narrowed([0, *ends[1]]), "where the vertices of each begin")
    tables.add("vertex", a.vertex[vertices], "first input slowest; linear: weights, then constant")
    return c_type(size.dtype)
