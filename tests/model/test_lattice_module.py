"""qwyc.lattice: what it builds, and what it refuses with one clear message."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import qwyc
from oracle import lattices
from qwyc.lattice import Categorical, Lattice, Linear, PiecewiseLinear, ensemble
from qwyc.model.lattices import join

LINE = PiecewiseLinear([0, 10], [0, 1])
SQUARE = Lattice([0, 1], [[0.0, 1.0], [2.0, 4.0]])


def scores(made, rows):
    return made.score_full(np.array(rows, dtype=np.float64))


# ---- what it builds ---------------------------------------------------------------------------


def test_a_lattice_is_its_table_at_the_vertices():
    rng = np.random.default_rng(0)
    table = rng.integers(-9, 9, size=(3, 2, 4)).astype(float)
    rows = np.array([(i, j, k) for i in range(3) for j in range(2) for k in range(4)])
    for interpolation in ("hypercube", "simplex"):
        made = ensemble([Lattice([0, 1, 2], table, interpolation=interpolation)])
        np.testing.assert_array_equal(scores(made, rows), table.ravel())
        flat = ensemble([Lattice([0, 1, 2], table.ravel(), [3, 2, 4], interpolation)])
        assert flat.digest == made.digest


def test_between_the_vertices_it_is_interpolated():
    rows = [[0.5, 0.5], [0.25, 0.75], [1, 0.5], [-3, 9]]
    np.testing.assert_array_equal(scores(ensemble([SQUARE]), rows), [1.75, 1.4375, 3, 1])
    simplex = Lattice([0, 1], [0, 1, 2, 4], interpolation="simplex")
    np.testing.assert_array_equal(scores(ensemble([simplex]), rows), [2.0, 1.5, 3, 1])


def test_sizes_are_2_where_nothing_else_is_said():
    assert Lattice([0, 1, 2], range(8)).sizes == (2, 2, 2)
    assert Lattice([0, 1], np.zeros((3, 4))).sizes == (3, 4)
    assert Lattice([0], [1, 2, 3]).sizes == (3,)
    assert Lattice(0, [1, 2]).features == (0,)


def test_weights_base_and_average():
    members, rows = [SQUARE, Lattice([1], [0, 8])], [[1, 1], [0, 0.5]]
    np.testing.assert_array_equal(scores(ensemble(members), rows), [12, 4.5])
    np.testing.assert_array_equal(
        scores(ensemble(members, weights=[2, -0.5], base=1), rows), [5, 0]
    )
    mean = ensemble(members, average=True, base=1)
    np.testing.assert_array_equal(scores(mean, rows), [7, 3.25])
    assert mean.base_models.average
    assert not ensemble(members).base_models.average


def test_linear_terms():
    made = ensemble([Linear([0, 1], [2, -1], 0.5)], calibrators=[LINE, LINE])
    np.testing.assert_array_equal(scores(made, [[5, 10], [-7, 99]]), [0.5, -0.5])
    assert made.base_models.description == "1 calibrated feature"


def test_own_calibrators_come_first_and_shared_ones_are_computed_once():
    other = PiecewiseLinear([0, 1], [1, 0])
    own = Lattice([0, 1], SQUARE.vertices, calibrators=[other, None])
    made = ensemble([SQUARE, SQUARE, own], calibrators={0: LINE, 1: LINE})
    assert made.base_models.arrays.n_calibrators == 3
    np.testing.assert_array_equal(scores(made, [[0, 10]]), [1 + 1 + 4])
    assert ensemble([SQUARE]).base_models.arrays.n_calibrators == 2
    twice = ensemble([Lattice([0, 0], [0, 1, 2, 4])], calibrators={0: LINE})
    assert twice.base_models.arrays.n_calibrators == 1
    np.testing.assert_array_equal(scores(twice, [[5]]), [1.75])


def test_equal_calibrators_are_computed_once_as_well():
    a, b = (PiecewiseLinear([0, 10], [0, 1]) for _ in range(2))
    members = [Lattice([0], [0, 1], calibrators=[calibrator]) for calibrator in (a, b)]
    assert ensemble(members).base_models.arrays.n_calibrators == 1


def test_columns_by_number_and_by_name():
    assert ensemble([Lattice([3], [0, 1])]).schema.n_features == 4
    assert ensemble([SQUARE], features=7).schema.n_features == 7
    named = Lattice(["b", "a"], SQUARE.vertices)
    made = ensemble([named], features=["a", "b", "c"])
    assert made.schema.names == ("a", "b", "c")
    np.testing.assert_array_equal(scores(made, [[1, 0, 9]]), [1])
    frame = pd.DataFrame({"c": [9.0], "b": [0.0], "a": [1.0]})
    np.testing.assert_array_equal(made.score_full(frame), [1])
    by_position = ensemble([Lattice([1, 0], SQUARE.vertices)], features=["a", "b", "c"])
    assert by_position.digest == made.digest


def test_names_without_an_order_need_tables():
    made = ensemble([Lattice(["b", "a"], SQUARE.vertices)], calibrators={"a": LINE})
    assert made.schema.names == ("b", "a")
    np.testing.assert_array_equal(made.score_full(pl.DataFrame({"a": [10.0], "b": [0.0]})), [1])
    for rows in (np.zeros((1, 2)), [[0.0, 0.0]]):
        with pytest.raises(qwyc.InputError, match="has no column names, and the model finds its"):
            made.score_full(rows)
    fast = qwyc.optimize(made, alpha=0)
    with pytest.raises(qwyc.InputError, match="no column names"):
        fast.predict_one([0.0, 0.0])
    assert fast.predict_one(pd.DataFrame({"a": [10.0], "b": [0.0]})) == 1


def test_missing_values():
    filled = PiecewiseLinear([0, 1], [0, 1], missing_output=0.25)
    coded = PiecewiseLinear([0, 1], [0, 1], missing_output=0.75, missing_value=-1)
    member = Lattice([0, 1], [0, 1, 10, 11])
    made = ensemble([member], calibrators=[filled, coded])
    assert made.schema.must_have == (1,)
    np.testing.assert_array_equal(scores(made, [[np.nan, -1], [0, 0]]), [3.25, 0])
    with pytest.raises(qwyc.InputError, match="missing value in row 1 of column 1, for which") as e:
        scores(made, [[0, 0], [0, np.nan]])
    assert (e.value.row, e.value.column) == (1, 1)
    fast = qwyc.optimize(made, alpha=0)
    assert fast.predict_one([math.nan, -1.0]) == 1
    for row in ([0.0, math.nan], np.array([0, np.nan]), np.array([0, np.nan], np.float32)):
        with pytest.raises(qwyc.InputError, match="give its calibrator a missing_output"):
            fast.predict_one(row)
    assert fast.predict_one([math.inf, -math.inf]) == fast.predict([[1.0, 0.0]])[0]


def test_columns_that_nobody_reads_may_be_missing():
    made = ensemble([Lattice([1], [0, 1])], features=3)
    np.testing.assert_array_equal(scores(made, [[np.nan, 0.5, np.nan]]), [0.5])


def test_categories_by_code():
    table = Categorical([0.5, 0.25, 1], other_output=0.125)
    made = ensemble([Lattice([0], [0, 8])], calibrators={0: table})
    assert made.schema.must_have == ()
    rows = [[0], [1], [2], [2.9], [3], [-1], [-0.5], [np.nan], [np.inf]]
    expected = [4, 2, 8, 8, 1, 1, 4, 1, 1]
    np.testing.assert_array_equal(scores(made, rows), expected)
    missing = Categorical([0.5, 0.25], other_output=0.125, missing_output=1, missing_value=-1)
    made = ensemble([Lattice([0], [0, 8])], calibrators={0: missing})
    np.testing.assert_array_equal(scores(made, [[-1], [-2], [np.nan]]), [8, 1, 1])


def test_categories_by_value():
    table = Categorical([0.5, 0.25, 1], other_output=0.125, missing_output=0)
    made = ensemble(
        [Lattice(["colour", "x"], [0, 0, 8, 16])],
        calibrators={"colour": table},
        features=["x", "colour"],
        categories={"colour": ["red", "green", "blue"]},
    )
    columns = {"x": [0.0] * 5, "colour": ["blue", "red", "green", "pink", None]}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        np.testing.assert_array_equal(made.score_full(frame), [8, 4, 2, 1, 0])
    np.testing.assert_array_equal(scores(made, [[0, 2], [1, 0], [0, np.nan]]), [8, 8, 0])
    numbers = ensemble(
        [Lattice([0], [0, 8])], calibrators={0: table}, categories={0: np.array([10, 30, 20])}
    )
    np.testing.assert_array_equal(numbers.score_full(pd.DataFrame({"v": [20, 30, 7]})), [8, 2, 1])


def test_float64_and_float32():
    third = Lattice([0], [0, 1 / 3])
    assert scores(ensemble([third], dtype="float64"), [[1]])[0] == pytest.approx(1 / 3, abs=1e-15)
    narrow = ensemble([third])
    assert scores(narrow, [[1]])[0] == np.float32(1 / 3)
    assert narrow.schema.dtype == "float32"


def test_classes_and_threshold():
    made = ensemble([SQUARE], classes=["no", "yes"], threshold=2)
    fast = qwyc.optimize(made, alpha=0)
    assert fast.predict([[1.0, 0.0], [0.0, 1.0]]).tolist() == ["yes", "no"]
    assert made.link.kind == "none"
    assert ensemble([SQUARE]).threshold == 0


def test_many_names_and_large_calibrators_take_no_time_for_each_use(monkeypatch):
    read = []
    monkeypatch.setattr(join, "_content", lambda part, dtype: read.append(part) or part.feature)
    made = ensemble([SQUARE] * 50, calibrators=[LINE, TABLE])
    assert len(read) == made.base_models.arrays.n_calibrators == 2

    class Name(str):
        compared = 0

        def __eq__(self, other):
            Name.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Name(f"f{i}") for i in range(500)]
    ensemble([Lattice([f"f{i}"], TWO) for i in range(500)], features=names)
    assert Name.compared < 20 * 500


def test_what_was_passed_may_change_later():
    vertices = np.zeros(4)
    lattice = Lattice([0, 1], vertices)
    vertices[:] = 7
    assert not lattice.vertices.any()
    with pytest.raises(ValueError, match="read-only"):
        lattice.vertices[0] = 1


def test_it_is_what_the_oracle_says():
    rng = np.random.default_rng(1)
    shared = [
        PiecewiseLinear(np.linspace(-2, 2, 7), rng.random(7), missing_output=0.5) for _ in range(4)
    ]
    members = [Lattice(rng.choice(4, 3, replace=False), rng.normal(size=8)) for _ in range(9)]
    made = ensemble(members, calibrators=shared, weights=rng.normal(size=9), average=True)
    rows = rng.normal(size=(50, 4)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    values = lattices.lattice_scores(made.base_models, rows)
    np.testing.assert_array_equal(made.scores(rows).values, values)
    full = lattices.lattice_full_score(made.base_models, values)
    np.testing.assert_array_equal(made.score_full(rows), full)


# ---- what it refuses --------------------------------------------------------------------------

TWO = [0.0, 1.0]
TABLE = Categorical([0, 1])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PiecewiseLinear([0], [0]), "two keypoints or more"),
        (lambda: PiecewiseLinear([0, 1], [0]), "2 keypoints and 1 outputs"),
        (lambda: PiecewiseLinear([0, 0], [0, 1]), "keypoints must rise; keypoint 0 is 0"),
        (lambda: PiecewiseLinear([1, 0], [0, 1]), "keypoints must rise"),
        (lambda: PiecewiseLinear([0, np.nan], [0, 1]), "keypoints must be finite; number 1"),
        (lambda: PiecewiseLinear([0, 1], [0, np.inf]), "outputs must be finite"),
        (lambda: PiecewiseLinear("ab", [0, 1]), "keypoints must be numbers"),
        (lambda: PiecewiseLinear([[0, 1]], [0, 1]), "keypoints must be a list"),
        (lambda: PiecewiseLinear([0, 1], [0, 1], missing_value=3), "needs a missing_output"),
        (lambda: PiecewiseLinear([0, 1], TWO, missing_output=np.nan), "missing_output must be"),
        (
            lambda: PiecewiseLinear([0, 1], TWO, missing_output=0, missing_value=np.inf),
            "missing_value must be a finite number",
        ),
        (lambda: Categorical([]), "an output for each category; got none"),
        (lambda: Categorical([0, "a"]), "outputs must be numbers"),
        (lambda: Categorical([0], other_output=None), "other_output must be"),
        (lambda: Categorical([0], missing_output=0, missing_value=0.5), "a whole number or NaN"),
        (lambda: Lattice([], []), "a lattice needs at least one feature"),
        (lambda: Lattice([0, 1], [0, 1, 2]), r"sizes \[2, 2\] has 4 vertices.*got shape \(3,\)"),
        (
            lambda: Lattice([0, 1], np.zeros((2, 3)), [3, 2]),
            r"of shape \(3, 2\); got shape \(2, 3\)",
        ),
        (lambda: Lattice([0, 1], np.zeros(4), [2]), "a size for each feature; got 1 for 2"),
        (lambda: Lattice([0, 1], np.zeros(2), [2, 1]), "sizes must be 2 or more"),
        (lambda: Lattice([0, 1], np.zeros(5), [2, 2.5]), "sizes must be whole numbers"),
        (lambda: Lattice([0, 1], np.zeros(4), 2), "sizes must be whole numbers"),
        (lambda: Lattice([0], [0, np.nan]), "vertices must be finite; number 1 is not"),
        (lambda: Lattice([0, 1], [[0, 1], [2]]), "vertices must be numbers"),
        (lambda: Lattice([0], TWO, interpolation="cubic"), "interpolation must be one of"),
        (lambda: Lattice([-1], TWO), "columns are counted from 0; got -1"),
        (lambda: Lattice([True], TWO), "columns or names; got True"),
        (lambda: Lattice([0.5], TWO), "columns or names; got 0.5"),
        (lambda: Lattice([math.inf], TWO), "columns or names; got"),
        (lambda: Lattice([0], [0, 10**400]), "vertices must be finite in float64"),
        (lambda: Lattice(None, TWO), "columns or names; got None"),
        (lambda: Lattice(range(21), np.zeros(2)), "at most 20 features; got 21"),
        (lambda: Lattice([0, 1, 2], np.zeros(2), [2**9] * 3), "at most 67,108,864 vertices"),
        (lambda: Lattice([0], TWO, [2**24 + 1]), "sizes must be at most 16,777,216"),
        (lambda: Lattice([0], TWO, calibrators=[]), "needs as many calibrators of its own; got 0"),
        (lambda: Lattice([0], TWO, calibrators={0: LINE}), "must be a list, one per feature"),
        (lambda: Lattice([0], TWO, calibrators=[7]), "must be a PiecewiseLinear or a Categorical"),
        (lambda: Linear([0, 1], [1]), "got 1 weights for 2 features"),
        (lambda: Linear([0], [1], np.nan), "constant must be a finite number"),
        (lambda: ensemble([]), "at least one member"),
        (lambda: ensemble(SQUARE), "members must be a list"),
        (lambda: ensemble(None), "members must be a list"),
        (lambda: ensemble([SQUARE], weights=[1, 2]), "weights must be one per member, 1; got 2"),
        (lambda: ensemble([SQUARE], weights=[np.inf]), "weights must be finite"),
        (lambda: ensemble([SQUARE], base=None), "base must be a finite number"),
        (lambda: ensemble([SQUARE], threshold="0"), "threshold must be a finite number"),
        (lambda: ensemble([SQUARE], average=1), "average must be True or False"),
        (lambda: ensemble([SQUARE], dtype="float16"), "dtype must be one of"),
        (lambda: ensemble([SQUARE], classes=[1]), "two labels"),
        (lambda: ensemble([SQUARE], features=1), "member 0 takes column 1; the columns are 0 to 0"),
        (lambda: ensemble([SQUARE], features=0), "features must be at least 1"),
        (lambda: ensemble([SQUARE], features="ab"), "number of columns or their names"),
        (lambda: ensemble([SQUARE], features=["a", "a"]), "features must be different names"),
        (lambda: ensemble([SQUARE], features=[]), "at least one name"),
        (lambda: ensemble([SQUARE], features=2.5), "number of columns or their names"),
        (
            lambda: ensemble([Lattice(["z"], TWO)], features=["a"]),
            "member 0 takes the feature 'z', which is not one of the columns 'a'",
        ),
        (lambda: ensemble([Lattice(["z"], TWO)], features=3), "but columns have no names"),
        (lambda: ensemble([Lattice(["z", 1], SQUARE.vertices)]), "some features are names"),
        (lambda: ensemble([SQUARE], calibrators={5: LINE}), "calibrators takes column 5"),
        (lambda: ensemble([SQUARE], calibrators=[LINE]), "one per column, 2; got 1"),
        (lambda: ensemble([SQUARE], calibrators=LINE), "mapping by feature, or a sequence"),
        (lambda: ensemble([SQUARE], calibrators=[LINE, 3]), "must be a PiecewiseLinear"),
        (
            lambda: ensemble([Lattice(["z"], TWO)], calibrators=[LINE]),
            "calibrators must be a mapping by name",
        ),
        (
            lambda: ensemble([Linear([0], [1])]),
            "member 0 is linear, and its feature 0 has no calib",
        ),
        (
            lambda: ensemble(
                [Lattice([0], TWO)], calibrators=[PiecewiseLinear([1, 1 + 1e-9], TWO)]
            ),
            "keypoints of column 0 are equal or not finite in float32",
        ),
        (lambda: ensemble([SQUARE], categories={0: ["a", "b"]}), "need a Categorical calibrator"),
        (lambda: ensemble([SQUARE], categories=["a"]), "categories must be a mapping"),
        (
            lambda: ensemble([SQUARE], calibrators={0: TABLE}, categories={0: ["a"]}),
            "has 1 categories, and a calibrator with 2 outputs",
        ),
        (
            lambda: ensemble([SQUARE], calibrators={0: TABLE}, categories={0: ["a", "a"]}),
            "must be different",
        ),
        (
            lambda: ensemble([SQUARE], calibrators={0: TABLE}, categories={0: ["a", []]}),
            "must be text or numbers",
        ),
        (lambda: ensemble([7]), "cannot read a model of type builtins.int"),
    ],
)
def test_every_mistake_is_one_clear_message(build, message):
    with pytest.raises(qwyc.QwycError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300 or "supported are" in str(caught.value)


def test_values_that_cannot_be_computed_are_refused():
    far = PiecewiseLinear(TWO, TWO, missing_output=0, missing_value=1e300)
    with pytest.raises(qwyc.ModelError, match="not valid: calibrator 0 has an infinite missing"):
        ensemble([Lattice([0], TWO)], calibrators=[far])  # not a float32
    assert ensemble([Lattice([0], TWO)], calibrators=[far], dtype="float64")
    with pytest.raises(qwyc.ModelError, match="not valid"):
        ensemble([Lattice([0], [0, 1e39])])  # not a float32
    with pytest.raises(qwyc.ModelError, match="not valid"):
        ensemble([Lattice([0], [0, 1])], weights=[1e308], base=1e308)
    with pytest.raises(qwyc.ModelError, match="not valid"):
        ensemble(
            [Lattice([0], [0, 1])],
            calibrators=[PiecewiseLinear([0, 1e-300], [0, 1e200])],
            dtype="float64",
        )
