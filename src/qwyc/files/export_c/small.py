"""Trees of two classes in C for small devices: integers instead of floating-point arithmetic.

Nodes compare ranks (ranks.py). Sums are 64-bit integers: multiples of a power of two, `unit`.
A sum of the engine is rounded to 53 bits, or to 24 where the source adds floats; here the same number is
reached by rounding the integer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from qwyc.files.export_c.nodes import Layout
from qwyc.files.export_c.program import Program, Tables, joined, quit_end
from qwyc.files.export_c.ranks import add_nodes, refused
from qwyc.files.export_c.text import c_type, narrowed
from qwyc.files.export_c.trees import can_cross
from qwyc.model.trees import NodeFlag, Summation, TreeModels
from qwyc.policy.policy import Policy

MOST_BITS = 61  # of a sum; one more for its rounding, one for the sign
SINGLE_BITS, DOUBLE_BITS = 24, 53

_VALUE = """
/* The value of a leaf, a float by its bits, in units of 2^{unit}. */
static int64_t value_at(uint32_t leaf) {{
    const uint32_t bits = leaf_bits[leaf], raised = bits >> 23 & 255u;
    const int64_t size = (int64_t)(raised ? (bits & 0x7fffffu) | 0x800000u : bits & 0x7fffffu);
    if (size == 0) return 0;
    return (bits >> 31 ? -size : size) * ((int64_t)1 << ((int)(raised ? raised : 1u) - {offset}));
}}
"""

_ROUNDED = """
/* The nearest number of {bits} bits, of two the even one: what a {kind} makes of the sum. */
static int64_t {name}(int64_t sum) {{
    uint64_t size = sum < 0 ? 0u - (uint64_t)sum : (uint64_t)sum, rest, half, above = size >> {bits};
    int shift = 0, half_way;
    for (half_way = 32; half_way > 0; half_way /= 2)
        if (above >> half_way != 0) above >>= half_way, shift += half_way;
    shift += (int)above; /* bits that are too many */
    if (shift == 0) return sum;
    half = (uint64_t)1 << (shift - 1);
    rest = size & (2 * half - 1);
    size >>= shift;
    size += rest > half || (rest == half && (size & 1u));
    size <<= shift;
    return sum < 0 ? -(int64_t)size : (int64_t)size;
}}
"""

_DECIDE = """
static int decide(const real *row, int32_t *steps) {{
    {rank} rank[N_USED];
    {leaf} leaf[N_TREES];
    int64_t sum;
    uint32_t r;
    rank_features(row, rank);
{quitting}    for (r = N_QUITS; r < N_TREES; ++r) leaf[r] = ({leaf})leaf_of(r, rank);
    sum = {first}; /* the full score, in the order of the model */
    for (r = 0; r < N_TREES; ++r) sum = {full_rounded}(sum + value_at(leaf[place[r]]));
    if (steps) *steps = N_TREES;
    return {last} >= {threshold};
}}
"""

_QUITTING = """    sum = {base};
    for (r = 0; r < N_QUITS; ++r) {{
        leaf[r] = ({leaf})leaf_of(r, rank);
        sum = {rounded}(sum + value_at(leaf[r]));
        if ({quits}) {{
            if (steps) *steps = (int32_t)r + 1;
            return {positive};
        }}
    }}
"""


@dataclass(frozen=True)
class Scale:
    """Sums as integers: multiples of 2^unit."""

    unit: int
    bits: int  # that the largest sum can take

    def exact(self, value: float) -> int:
        """A number that is a multiple of the unit."""
        number = Fraction(value) / Fraction(2) ** self.unit
        assert number.denominator == 1
        return int(number)

    def at_least(self, value: float) -> int:
        """The smallest integer that is not below a threshold, within 64 bits."""
        if math.isinf(value):
            return 2**63 - 1 if value > 0 else -(2**63)
        return _within_64(math.ceil(Fraction(value) / Fraction(2) ** self.unit))

    def at_most(self, value: float) -> int:
        """The largest integer that is not above a threshold, within 64 bits."""
        return -self.at_least(-value) if math.isfinite(value) else self.at_least(value)


def _within_64(number: int) -> int:
    return max(-(2**63), min(number, 2**63 - 1))


def program(models: TreeModels, policy: Policy) -> Program:
    """The trees along the policy's order; raises ModelError where integers would not decide the same."""
    scale = _scale(models)
    tables, layout = Tables(), Layout.of(models.trees, policy.order)
    ranks = add_nodes(tables, layout, models.less_equal, models.truncates)
    values = layout.trees.leaf_value.astype(np.float32)
    tables.add("leaf_bits", values.view(np.uint32), "what each leaf adds, a float by its bits")
    tables.add("place", narrowed(layout.place), "the step at which each tree of the model runs")
    n_quits = quit_end((policy.lower > -np.inf) | (policy.upper < np.inf))
    quitting = _add_quitting(tables, policy, n_quits, scale)
    narrow = models.summation in (Summation.FLOAT32, Summation.FLOAT32_LATE)
    late = models.summation in (Summation.FLOAT32_LATE, Summation.FLOAT64_LATE)
    rounded = "rounded" if scale.bits > DOUBLE_BITS else ""
    of_full = "rounded_single" if narrow else rounded
    start = scale.exact(float(np.float32(models.start)) if narrow else models.start)
    leaf = c_type(layout.leaf_type)
    decide = _DECIDE.format(
        rank=ranks.type,
        leaf=leaf,
        quitting=quitting.format(base=_int64(scale.exact(models.base)), leaf=leaf, rounded=rounded),
        first=_int64(0 if late else start),
        full_rounded=of_full,
        last=f"{of_full}(sum + {_int64(start)})" if late else "sum",
        threshold=_int64(scale.at_least(policy.threshold)),
    )
    sizes = f"enum {{ N_TREES = {models.n_models}, N_QUITS = {n_quits}, {ranks.sizes} }};"
    code = [
        sizes,
        *ranks.code,
        _VALUE.format(unit=scale.unit, offset=150 + scale.unit),
        _rounding("rounded_single", SINGLE_BITS, "float") if narrow else "",
        _rounding("rounded", DOUBLE_BITS, "double") if rounded and (n_quits or not narrow) else "",
        decide,
    ]
    return Program(
        tables=tables.text,
        code=joined(code),
        n_bytes=tables.n_bytes,
        stack=layout.leaf_type.itemsize * models.n_models + ranks.stack,
        uses_math=False,
        how=f"{models.description}, {len(models.trees.feature):,} nodes that compare ranks; sums are "
        f"integers of {scale.bits} bits and a sign",
        has_score=False,
    )


def _rounding(name: str, bits: int, kind: str) -> str:
    return _ROUNDED.format(name=name, bits=bits, kind=kind)


def _int64(number: int) -> str:
    return "INT64_MIN" if number == -(2**63) else f"INT64_C({number})"


def _scale(models: TreeModels) -> Scale:
    """The unit of which all numbers are multiples; raises ModelError where there is none that fits."""
    trees = models.trees
    if trees.threshold.dtype != np.float32:
        raise refused("the model compares float64 numbers, and the small form has no doubles")
    if models.summation == Summation.SHARES or models.divisor != 1:
        raise refused("its score is a mean, and a division is not exact in integers")
    if (trees.flags & NodeFlag.ZERO_IS_MISSING).any():
        raise refused("it takes zero for missing, which ranks do not tell from other numbers")
    if not len(trees.feature):
        raise refused("none of its trees has a split")
    narrow = models.summation in (Summation.FLOAT32, Summation.FLOAT32_LATE)
    leaves = trees.leaf_value.astype(np.float32)
    constants = np.array([models.start, float(np.float32(models.start))])
    if not narrow and not np.array_equal(leaves.astype(np.float64), trees.leaf_value):
        raise refused("its leaves hold float64 numbers, and the small form has float32 leaves")
    if models.summation == Summation.FLOAT32_LATE and constants[0] != constants[1]:
        raise refused("its base is a float64 number, which is added to a float32 sum")
    exponents = [_ulp(value) for value in leaves.tolist()]
    exponents += [_lowest_bit(value) for value in constants.tolist()]
    unit = min((e for e in exponents if e is not None), default=0)
    first = trees.leaf_begin[:-1]
    largest = np.maximum.reduceat(np.abs(leaves.astype(np.float64)), first)
    total = sum((Fraction(float(value)) for value in largest), Fraction(0))
    total += max(abs(Fraction(float(value))) for value in constants)
    total *= 1 + Fraction(models.n_models + 2, 2**SINGLE_BITS)  # what roundings may add
    bits = math.ceil(total / Fraction(2) ** unit).bit_length()
    if bits > MOST_BITS:
        raise refused(
            f"its leaves are so different in size that sums take {bits} bits; the small form has "
            f"{MOST_BITS}"
        )
    return Scale(unit, bits)


def _ulp(value: float) -> int | None:
    """The exponent of the last place of a float32; None for 0."""
    return None if value == 0 else max(math.frexp(value)[1] - SINGLE_BITS, -149)


def _lowest_bit(value: float) -> int | None:
    """The exponent of the lowest bit of a number that is not 0."""
    if value == 0:
        return None
    numerator, denominator = value.as_integer_ratio()
    return (numerator & -numerator).bit_length() - denominator.bit_length()


def _add_quitting(tables: Tables, policy: Policy, n_quits: int, scale: Scale) -> str:
    """Add thresholds as integers; returns the steps after which a row may quit, in part."""
    if not n_quits:
        return ""
    can = can_cross(policy, n_quits)
    columns: dict[str, list[int]] = {
        "lower": [scale.at_least(value) for value in policy.lower[:n_quits].tolist()],
        "upper": [scale.at_most(value) for value in policy.upper[:n_quits].tolist()],
    }
    tests = []
    for name, sign in (("lower", "<"), ("upper", ">")):
        if can[name]:
            values: npt.NDArray[np.int64] = np.array(columns[name], dtype=np.int64)
            tables.add(name, values, "sums quit below" if sign == "<" else "sums quit above")
            tests.append(f"sum {sign} {name}[r]")
    positive = tests[-1] if len(tests) == 2 else "0" if can["lower"] else "1"
    return _QUITTING.replace("{quits}", " || ".join(tests)).replace("{positive}", positive)
