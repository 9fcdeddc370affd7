"""Ensembles of lattices put together: columns, thresholds, links, and what cannot be put together."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import qwyc
from forests import random_ensemble
from lattices import lattice_rows, random_lattices
from qwyc.lattice import Categorical, Lattice, Linear, PiecewiseLinear, ensemble
from qwyc.model.lattices.join import join, pack, unpack
from qwyc.model.link import LOGISTIC, Link

LINE = PiecewiseLinear([0, 10], [0, 1], missing_output=0)


def named(*features, threshold=None, **options):
    table = np.arange(2.0 ** len(features))
    calibrators = dict.fromkeys(features, LINE)
    return ensemble(
        [Lattice(features, table)],
        features=list(features),
        threshold=threshold,
        **({"calibrators": calibrators} | options),
    )


def test_parts_and_arrays_are_the_same():
    for seed in range(6):
        arrays = random_lattices(seed).base_models.arrays
        again = pack(*unpack(arrays), arrays.dtype.name)
        for name in arrays.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(again, name), getattr(arrays, name))
            assert getattr(again, name).dtype == getattr(arrays, name).dtype


@pytest.mark.parametrize("average", [False, True])
def test_the_sum_and_the_mean_of_two_ensembles(average):
    a, b = (random_lattices(seed, dtype="float64", threshold=seed + 1.0) for seed in (0, 1))
    rows = lattice_rows(0, a)
    share = 0.5 if average else 1.0
    both = ensemble([a, b], average=average)
    expected = share * (a.score_full(rows) + b.score_full(rows))
    np.testing.assert_allclose(both.score_full(rows), expected, rtol=0, atol=1e-12)
    assert both.threshold == share * 3.0
    assert both.n_models == 24
    weighted = ensemble([a, b], weights=[2, -1], base=5, average=average, threshold=0.5)
    expected = share * (2 * a.score_full(rows) - b.score_full(rows)) + 5
    np.testing.assert_allclose(weighted.score_full(rows), expected, rtol=0, atol=1e-12)
    assert weighted.threshold == 0.5


def test_the_same_twice_needs_no_more_calibrators():
    a = random_lattices(3)
    rows = lattice_rows(3, a)
    twice = ensemble([a, a], average=True)
    assert twice.base_models.arrays.n_calibrators == a.base_models.arrays.n_calibrators
    np.testing.assert_allclose(twice.score_full(rows), a.score_full(rows), rtol=0, atol=1e-6)


def test_columns_are_united_by_name():
    a, b = named("x", "y"), named("z", "x")
    both = ensemble([a, b])
    assert both.schema.names == ("x", "y", "z")
    assert both.schema.by_name
    frame = pd.DataFrame({"z": [10.0, 0], "x": [0.0, 10], "y": [10.0, 10]})
    np.testing.assert_array_equal(both.score_full(frame), [1 + 2, 3 + 1])
    with pytest.raises(qwyc.InputError, match="no column names"):
        both.score_full(frame.to_numpy())
    ordered = ensemble([a, b], features=["z", "y", "w", "x"])
    assert not ordered.schema.by_name
    rows = frame.assign(w=0.0)[["z", "y", "w", "x"]].to_numpy()
    np.testing.assert_array_equal(ordered.score_full(rows), [3, 4])
    same = ensemble([a, a])
    assert not same.schema.by_name
    np.testing.assert_array_equal(same.score_full(np.array([[10.0, 0]])), [4])


def test_columns_that_have_no_order_get_none():
    rows = pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0]})
    single = ensemble([Lattice(["b", "a"], [[0, 1], [2, 3]])])
    for made in (ensemble([single]), ensemble([single, single], average=True)):
        np.testing.assert_array_equal(made.score_full(rows), single.score_full(rows))
        with pytest.raises(qwyc.InputError, match="finds its columns by name"):
            made.score_full(rows.to_numpy())
    ordered = ensemble([single, single], features=["a", "b"], average=True)
    np.testing.assert_array_equal(ordered.score_full(rows.to_numpy()), single.score_full(rows))


def test_columns_without_names_are_united_by_position():
    a, b = (ensemble([Lattice([j], [0, 1])], features=2) for j in (0, 1))
    both = ensemble([a, b])
    np.testing.assert_array_equal(both.score_full(np.array([[1.0, 0.5]])), [1.5])
    assert ensemble([a, b], features=["p", "q"]).schema.names == ("p", "q")


def test_lattices_and_ensembles_together():
    a = named("x", "y", threshold=0.5)
    plain = Lattice(["y"], [0, 8])
    both = ensemble([plain, a], features=["x", "y"], calibrators={"y": LINE}, weights=[3, 1])
    np.testing.assert_array_equal(both.score_full(np.array([[10.0, 10.0]])), [24 + 3])
    assert both.threshold == 0.5
    mean = ensemble([a, plain, plain], calibrators={"y": LINE}, average=True)
    rows = pd.DataFrame({"x": [10.0], "y": [10.0]})
    np.testing.assert_allclose(mean.score_full(rows), [19 / 3], rtol=1e-6)
    assert mean.threshold == pytest.approx(0.5 / 3)


def test_missing_values_are_refused_where_one_member_refuses_them():
    strict = PiecewiseLinear([0, 10], [0, 1])
    a, b = named("x", "y"), named("y", "z", calibrators={"y": LINE, "z": strict})
    both = ensemble([a, b])
    assert [both.schema.names[j] for j in both.schema.must_have] == ["z"]
    refusing = replace(b, schema=replace(b.schema, accepts_missing=False, must_have=()))
    joined = join([a, refusing])
    assert [joined.schema.names[j] for j in joined.schema.must_have] == ["y", "z"]
    alone = join([refusing, refusing])
    assert not alone.schema.accepts_missing
    assert alone.schema.must_have == ()


def test_categories_must_agree():
    def with_categories(*values):
        table = Categorical([0, 1])
        return ensemble(
            [Lattice(["c"], [0, 1])],
            features=["c"],
            calibrators={"c": table},
            categories={"c": values} if values else None,
        )

    both = ensemble([with_categories("a", "b"), with_categories("a", "b")])
    assert both.schema.categories == {0: ("a", "b")}
    np.testing.assert_array_equal(both.score_full(pd.DataFrame({"c": ["b", "?", "a"]})), [2, 0, 0])
    for other in (with_categories("b", "a"), with_categories()):
        with pytest.raises(qwyc.ModelError, match="different categories in column 'c'"):
            ensemble([with_categories("a", "b"), other])


def test_links():
    a = random_lattices(0, link=LOGISTIC)
    assert ensemble([a, a]).link == LOGISTIC
    probabilities = replace(a, link=Link(kind="identity"))
    assert ensemble([probabilities] * 2, average=True).link.kind == "identity"
    assert ensemble([probabilities] * 2).link.kind == "none"
    assert ensemble([a, probabilities], average=True).link.kind == "none"


def test_an_average_of_single_lattices_is_a_mean_of_votes():
    single = named("x", "y")
    assert ensemble([single] * 3, average=True).base_models.average
    assert not ensemble([random_lattices(0)] * 3, average=True).base_models.average


def test_the_number_of_columns_may_be_of_numpy():
    assert ensemble([A], features=np.int64(5)).schema.n_features == 5


A = random_lattices(0, dtype="float32")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: join([]), "at least one member"),
        (lambda: ensemble([A, random_ensemble(0)]), "member 1 is 12 trees.*only ensembles of latt"),
        (lambda: ensemble([A, replace(A, transform=str)]), "member 1 is behind the steps"),
        (
            lambda: ensemble(
                [A, replace(A, link=Link(kind="piecewise", points=(0, 1), outputs=(0, 1)))]
            ),
            "member 1 has an output calibration",
        ),
        (
            lambda: ensemble([A, replace(A, classes=np.array(["n", "y"]))]),
            r"member 1 decides between \['n', 'y'\], member 0 between \[0, 1\]",
        ),
        (
            lambda: ensemble([A, random_lattices(0, dtype="float64")]),
            "member 1 is computed in float64, member 0 in float32",
        ),
        (lambda: ensemble([A, named("x")]), "some members have feature names and some have none"),
        (
            lambda: ensemble([A, random_lattices(0, n_features=4, dtype="float32")]),
            "must have the same number of columns; they have 4 and 5",
        ),
        (lambda: ensemble([A, A], features=6), "must have 6 columns; they have 5"),
        (lambda: ensemble([A], features=0), "features must be at least 1"),
        (lambda: ensemble([named("x")], features="x"), "number of columns or their names"),
        (lambda: ensemble([named("x")], features=["x", 3]), "number of columns or their names"),
        (lambda: ensemble([named("x")], features=["x", "x"]), "different names; got 'x' more than"),
        (lambda: ensemble([named("x")], features=["y"]), "features does not name 'x'"),
        (lambda: ensemble([named("x")], features=3), "features is 3; the members have 1"),
        (lambda: ensemble([A, A], weights=[1]), "weights must be one per member, 2; got 1"),
        (lambda: ensemble([A], dtype="float64"), "the members are computed in float32"),
        (lambda: ensemble([A], classes=["n", "y"]), "classes are those of the members"),
        (lambda: ensemble([A, Linear([0], [1])], features=5), "member 1 is linear"),
    ],
)
def test_what_cannot_be_put_together(build, message):
    with pytest.raises(qwyc.QwycError, match=message):
        build()
