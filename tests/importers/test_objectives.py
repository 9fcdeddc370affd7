"""Full evaluation of every objective on every kind of input, compared with the library: docs/parity.md."""

import numpy as np

import objectives
import qwyc
from objectives import EXACT, UNLIKE

# What is refused, and nothing else is.
REFUSED = {("scikit-learn", "AdaBoostRegressor")}


def test_every_cell_is_exact_or_refused():
    for row in objectives.rows():
        place = row.kind.library, row.kind.name
        found = set(row.cells.values())
        assert UNLIKE not in found, (place, row.cells)
        assert (found != {EXACT}) == (place in REFUSED), (place, row.cells)


def test_the_page_has_the_table_that_the_tests_make():
    page = objectives.PAGE.read_text()
    wanted = objectives.BEGIN + objectives.table() + objectives.END
    assert wanted in page, "run `python tests/support/objectives.py`"


def test_a_difference_of_one_bit_is_seen():
    model = qwyc.read_model(objectives.lgbm("regression", objectives.TARGET)())
    own = model.predict(objectives.NEW)
    assert objectives.cell(model, lambda rows: [model.predict(rows)], "pandas") == EXACT
    near = np.nextafter(own, np.inf)
    assert objectives.cell(model, lambda rows: [near], "pandas") == UNLIKE
    assert objectives.cell(model, lambda rows: [near], "one row") == UNLIKE
