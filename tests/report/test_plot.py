"""Pictures and the card say what the classifier knows."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib

matplotlib.use("Agg")

import lightgbm
import numpy as np
import pytest
from matplotlib import pyplot

import qwyc
from qwyc.promise.budget import budget_of
from qwyc.promise.evaluation import Speed


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4)).astype(np.float32)
    y = np.where(X[:1000, 0] + X[:1000, 1] > 0, "<yes>", "no")
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1).fit(X[:1000], y)
    fast = qwyc.optimize(model, X[1000:4000], alpha=0.01, costs=np.ones(30), progress=False)
    return fast, X[4000:], model


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    pyplot.close("all")


def test_survival_ends_where_all_rows_are_decided(made):
    fast, X, _ = made
    line = qwyc.plot.survival(fast, X).lines[0]
    steps = fast.decide(X).steps
    assert line.get_xdata().tolist() == list(range(1, 31))
    assert line.get_ydata() == pytest.approx([100 * np.mean(steps > t) for t in range(1, 31)])


def test_histogram_counts_every_row(made):
    fast, X, _ = made
    for bins in (5, 30, 500):
        ax = qwyc.plot.histogram(fast, X, bins=bins)
        assert sum(bar.get_height() for bar in ax.patches) == len(X)
    assert f"{fast.decide(X).steps.mean():.1f} of 30" in ax.get_title()


def test_thresholds_are_the_policys(made):
    fast, _, model = made
    ax = qwyc.plot.thresholds(fast)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["above: quits as no", "below: quits as <yes>", "the full score's threshold"]
    shown = ax.lines[0].get_ydata()
    finite = np.isfinite(fast.policy.upper)
    assert shown[finite].tolist() == fast.policy.upper[finite].tolist()
    never = replace(fast, policy=fast.policy.without_quitting())
    assert qwyc.plot.thresholds(never).get_title() == "No row quits early"
    filtered = qwyc.optimize(model, alpha=0, quit="negative")
    assert len(qwyc.plot.thresholds(filtered).lines) == 2


def test_tradeoff_falls_and_marks_what_was_taken(made):
    fast, _, model = made
    ax = qwyc.plot.tradeoff(fast)
    shares, models = ax.lines[0].get_xdata(), ax.lines[0].get_ydata()
    assert models[0] > models[-1]
    for i in (0, 20, -1):
        assert models[i] == fast.at(alpha=shares[i] / 100).certificate.mean_models
    assert ax.lines[1].get_xydata().tolist() == [[1.0, fast.certificate.mean_models]]
    with pytest.raises(qwyc.OptionError, match="only one policy"):
        qwyc.plot.tradeoff(qwyc.optimize(model, alpha=0))


def test_axes_of_ones_own_are_drawn_into(made):
    fast, X, _ = made
    figure, axes = pyplot.subplots(2, 2)
    drawn = (
        qwyc.plot.tradeoff(fast, ax=axes[0, 0]),
        qwyc.plot.survival(fast, X, ax=axes[0, 1]),
        qwyc.plot.histogram(fast, X, ax=axes[1, 0]),
        qwyc.plot.thresholds(fast, ax=axes[1, 1]),
    )
    assert all(ax.figure is figure for ax in drawn)
    with pytest.raises(qwyc.InputError, match="no rows"):
        qwyc.plot.survival(fast, X[:0])


class Tags(HTMLParser):
    """Fails where a tag is not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(html):
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    assert not {"script", "img", "link", "style"} & tags.seen
    return tags


def test_the_card(made):
    fast, _, model = made
    timed = replace(fast, speed=Speed(quit=1.0, full=2.5, rows=2048))
    card = read(timed._repr_html_())
    assert fast.ensemble.description in card.text
    assert f"{fast.certificate.mean_models:.1f} of 30 base models per row" in card.text
    assert "at most 1% of new rows are decided differently, with 95% confidence" in card.text
    assert "2.5 times as fast" in card.text
    assert "<yes>" in card.text  # escaped
    assert len(re.findall("<polyline", timed._repr_html_())) == 2
    assert "proven" in read(qwyc.optimize(model, alpha=0)._repr_html_()).text
    assert (
        "polyline"
        not in read(replace(fast, policy=fast.policy.without_quitting())._repr_html_()).seen
    )
    certificate = replace(fast.certificate, budget=budget_of({"negative": 0.01, "positive": 0.02}))
    assert (
        "at most 1% of new rows are decided "
        in read(replace(fast, certificate=certificate)._repr_html_()).text
    )
    certificate = replace(fast.certificate, how="in-sample")
    assert "nothing for new rows" in read(replace(fast, certificate=certificate)._repr_html_()).text
