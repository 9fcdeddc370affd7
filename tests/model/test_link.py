"""Output calibrations as links: outputs, their inverse, and files."""

import numpy as np
import pytest

import qwyc
from qwyc.errors import ArtifactError
from qwyc.files.parts import read_link
from qwyc.model.link import LOGISTIC, Link

CURVE = Link("piecewise", points=(0.0, 0.25, 0.5, 1.0), outputs=(0.1, 0.3, 0.3, 0.9))


def test_outputs_are_interpolated():
    scores = np.linspace(-0.5, 1.5, 401)
    ours = [CURVE.output(float(score)) for score in scores]
    np.testing.assert_allclose(ours, np.interp(scores, CURVE.points, CURVE.outputs), atol=1e-15)
    assert CURVE.probability(0.75) == CURVE.output(0.75)
    assert CURVE.output(-np.inf) == 0.1
    assert CURVE.output(np.inf) == 0.9
    assert LOGISTIC.output(3.5) == 3.5


@pytest.mark.parametrize("output", [0.11, 0.3, 0.31, 0.5, 0.9])
def test_the_smallest_score_that_reaches_an_output(output):
    score = CURVE.score_of_output(output)
    assert CURVE.output(score) >= output
    assert CURVE.output(np.nextafter(score, -np.inf)) < output
    assert CURVE.score_at(output) == score


def test_random_curves_never_fall():
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = np.sort(rng.normal(size=6))
        outputs = np.sort(rng.normal(size=6).round(1))
        link = Link("piecewise", points=tuple(points.tolist()), outputs=tuple(outputs.tolist()))
        around = [np.nextafter(points, -np.inf), points, np.nextafter(points, np.inf)]
        scores = np.sort(np.concatenate([*around, rng.normal(size=200)]))
        assert (np.diff([link.output(float(score)) for score in scores]) >= 0).all()


@pytest.mark.parametrize("output", [0.1, 0.05, 0.91, -3.0])
def test_outputs_that_decide_nothing(output):
    with pytest.raises(qwyc.OptionError, match=r"between 0\.1 and 0\.9"):
        CURVE.score_of_output(output)


def test_what_an_output_means():
    logits = Link("piecewise", points=(0.0, 1.0), outputs=(-4.0, 4.0), means="logistic")
    assert logits.probability(0.5) == 0.5
    assert logits.score_at(0.5) == pytest.approx(0.5)
    assert logits.score_of_output(2.0) == pytest.approx(0.75)
    neither = Link("piecewise", points=(0.0, 1.0), outputs=(-1.0, 1.0), means="none")
    with pytest.raises(qwyc.OptionError, match="no probabilities"):
        neither.score_at(0.5)
    assert neither.score_of_output(0.0) == pytest.approx(0.5)


def test_files_keep_links():
    assert read_link(CURVE.facts()) == CURVE
    assert LOGISTIC.facts() == {"kind": "logistic", "scale": 1.0, "dtype": "float64"}
    assert read_link(LOGISTIC.facts()) == LOGISTIC
    assert read_link(Link("none").facts()) == Link("none")


@pytest.mark.parametrize(
    "changes",
    [
        {"points": [0.0, 0.25, 0.25, 1.0]},
        {"points": [0.0, 1.0]},
        {"points": [], "outputs": []},
        {"outputs": [0.1, 0.3, 0.2, 0.9]},
        {"outputs": [0.1, 0.3, 0.3, float("nan")]},
        {"outputs": [0.1, 0.3, 0.3, "0.9"]},
        {"means": "anything"},
        {"kind": "curved"},
    ],
)
def test_hostile_files(changes):
    with pytest.raises(ArtifactError):
        read_link(CURVE.facts() | changes)
