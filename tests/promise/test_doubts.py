"""A certificate with doubts promises nothing, wherever it is shown."""

from dataclasses import replace

import numpy as np
import pytest

import qwyc
from qwyc_experiments.validity import column_models, world

DOUBT = "X holds rows that the model was trained on"


@pytest.fixture(scope="module")
def doubted():
    fast = qwyc.optimize(column_models(12), world(np.random.default_rng(0), 8_000), alpha=0.01)
    evidence = replace(fast.choices.evidence, doubts=(DOUBT,))
    choices = replace(fast.choices, evidence=evidence)
    return replace(fast, choices=choices, certificate=replace(fast.certificate, doubts=(DOUBT,)))


def test_it_says_so_first(doubted):
    seen = doubted.certificate
    assert not seen.holds
    assert str(seen).startswith(f"No promise for new rows: {DOUBT}. Requested: at most 1%.")
    assert f"No promise for new rows: {DOUBT}" in repr(doubted)
    assert f"<b>nothing for new rows</b>: {DOUBT}" in doubted._repr_html_()
    assert seen.as_dict()["doubts"] == [DOUBT]


def test_it_has_no_bounds(doubted):
    assert doubted.certificate.upper_bound is None
    assert [loss.upper_bound for loss in doubted.certificate.classes] == [None, None]


def test_another_alpha_does_not_remove_the_doubt(doubted):
    assert doubted.at(alpha=0.02).certificate.doubts == (DOUBT,)


def test_new_rows_do(doubted):
    again = qwyc.recertify(doubted, world(np.random.default_rng(1), 8_000))
    assert again.certificate.holds
    assert str(again.certificate).startswith("With 95% confidence")
