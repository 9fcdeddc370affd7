"""Score matrices of many classes."""

import numpy as np
import pytest

import qwyc
from qwyc.policy.scores import ScoreMatrix
from qwyc.target.many_classes import ManyClasses


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_full_scores_are_added_one_after_the_other(dtype):
    F = (np.random.default_rng(0).normal(size=(50, 30, 3)) * 100).astype(dtype)
    base = np.array([0.1, 0.2, 0.3])
    matrix = ScoreMatrix.from_array(F, base=base)
    full = np.tile(base, (50, 1))
    for t in range(30):
        full += F[:, t]
    np.testing.assert_array_equal(matrix.full, full)
    np.testing.assert_array_equal(matrix.values, F)
    assert matrix.values.dtype == (np.float64 if dtype == np.int64 else dtype)
    assert matrix.by_model.shape == (30, 50, 3)
    assert np.shares_memory(matrix.by_model, matrix.values)
    assert matrix.target == ManyClasses(3)


def test_rows_are_taken_with_their_scores():
    F = np.random.default_rng(1).normal(size=(20, 4, 3))
    matrix, rows = ScoreMatrix.from_array(F, base=1.0), np.array([7, 2, 2])
    part = matrix.take(rows)
    np.testing.assert_array_equal(part.values, F[rows])
    np.testing.assert_array_equal(part.full, matrix.full[rows])
    np.testing.assert_array_equal(part.base, [1, 1, 1])
    assert part.digest == ScoreMatrix.from_array(F[rows], base=1.0).digest != matrix.digest
    assert matrix.take(np.arange(20)).digest == matrix.digest


def test_one_score_per_row_and_base_model_stays_as_it_was():
    F = np.random.default_rng(2).normal(size=(20, 4))
    matrix = ScoreMatrix.from_array(F, base=0.5, threshold=0.25)
    assert matrix.values.flags.f_contiguous
    assert not matrix.by_class
    assert matrix.target.threshold == 0.25
    assert matrix.take(np.array([3])).values.shape == (1, 4)


@pytest.mark.parametrize(
    ("values", "options", "match"),
    [
        (np.zeros((3, 2, 1)), {}, "2 classes or more"),
        (np.zeros((3, 2, 0)), {}, "2 classes or more"),
        (np.zeros((3, 0, 2)), {}, "T at least 1"),
        (np.zeros((3, 2, 2, 2)), {}, r"shape \(3, 2, 2, 2\)"),
        (np.zeros((3, 2, 2)), {"base": [1, 2, 3]}, "one for each of 2 classes"),
        (np.zeros((3, 2, 2)), {"base": np.nan}, "finite number"),
        (np.zeros((3, 2, 2)), {"base": "x"}, "finite number"),
        (np.zeros((3, 2, 2)), {"threshold": 0.5}, "two classes"),
        (np.full((3, 2, 2), "x"), {}, "numbers"),
        ([[[1, 2], [3]]], {}, "table"),
    ],
)
def test_unsound_scores_are_refused(values, options, match):
    with pytest.raises(qwyc.InputError, match=match):
        ScoreMatrix.from_array(values, **options)


def test_the_first_score_that_is_not_finite_is_named():
    F = np.zeros((3, 2, 4))
    F[1, 0, 3] = np.inf
    with pytest.raises(qwyc.InputError, match="row 1, base model 0, class 3 is inf"):
        ScoreMatrix.from_array(F)


def test_matrices_made_by_hand_must_fit_together():
    sound = ScoreMatrix.from_array(np.zeros((3, 2, 4)))
    for wrong in (
        ScoreMatrix(sound.values, 0.0, 0.0, sound.full),
        ScoreMatrix(sound.values, sound.base, 0.0, np.zeros(3)),
        ScoreMatrix(sound.values, sound.base, 0.0, np.zeros((2, 4))),
    ):
        with pytest.raises(qwyc.InputError, match="for scores of 4 classes base must have shape"):
            ScoreMatrix.of(wrong, n_classes=4)
        with pytest.raises(qwyc.InputError, match="for scores of 4 classes base must have shape"):
            qwyc.fit_path(wrong)


def test_positive_is_of_two_classes():
    with pytest.raises(qwyc.InputError, match="several classes"):
        _ = ScoreMatrix.from_array(np.zeros((3, 2, 4))).positive


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2)])
@pytest.mark.parametrize("kind", [complex, str, "M8[s]"])
def test_scores_that_are_no_numbers_are_refused(shape, kind):
    with pytest.raises(qwyc.InputError, match="scores must be numbers; got "):
        qwyc.fit_policy(np.zeros(shape).astype(kind), alpha=0.1)
