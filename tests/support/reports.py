"""Classifiers of every kind that a report is made of, and a reader of the page."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import lightgbm
import numpy as np
import pandas as pd
import xgboost

import qwyc
from lattices import lattice_rows, random_lattices

HOSTILE = ['</script><script>alert("1")</script>', "<img src=x onerror=alert(2)>"]
COLUMNS = ["age", "</script><b>income", "a\"b'c&amp;", "line\u2028end", "x" * 90, "kind"]
VOID = {"meta", "input", "br"}


def two_classes(alpha=0.02, **options):
    """A classifier with hostile labels and column names, and 3,000 fresh rows with labels."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(9000, 5)).round(2), columns=COLUMNS[:5])
    X["kind"] = pd.Categorical(rng.choice(["<i>a</i>", "b", "c"], 9000))
    X.loc[rng.random(9000) < 0.1, "age"] = np.nan
    signal = X["age"].fillna(0) + X[COLUMNS[1]] * X[COLUMNS[2]] + (X["kind"] == "b")
    y = (signal > 1).astype(int)
    model = xgboost.XGBClassifier(
        n_estimators=40, max_depth=3, learning_rate=0.2, enable_categorical=True, n_jobs=1
    ).fit(X[:2000].set_axis(list("abcdef"), axis=1), y[:2000])  # it refuses < in a name
    ensemble = qwyc.read_model(model)
    ensemble = replace(ensemble, schema=replace(ensemble.schema, names=tuple(COLUMNS)))
    options = {"evaluation": "quit", "progress": False} | options
    fast = qwyc.optimize(ensemble, X[2000:6000], alpha=alpha, **options)
    return fast, X[6000:].reset_index(drop=True), y[6000:].to_numpy()


def named_classes(**options):
    """A classifier of LightGBM whose labels are markup, and fresh rows with labels."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(7000, 4)).astype(np.float32)
    y = np.array(HOSTILE)[(X[:, 0] + X[:, 1] > 0.4).astype(int)]
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1).fit(X[:1500], y[:1500])
    options = {"evaluation": "quit", "progress": False} | options
    rows = () if options.get("alpha") == 0 else (X[1500:4500],)
    return qwyc.optimize(model, *rows, **options), X[4500:], y[4500:]


def several_classes(**options):
    """A classifier of four classes, and fresh rows with labels."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(7000, 4))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 0.8, 2.0])
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1).fit(X[:1500], y[:1500])
    options = {"evaluation": "quit", "progress": False} | options
    rows = () if options.get("alpha") == 0 else (X[1500:4500],)
    return qwyc.optimize(model, *rows, **options), X[4500:], y[4500:]


def lattices():
    """A classifier of lattices, and fresh rows."""
    ensemble = random_lattices(5, n_models=30)
    rows = lattice_rows(5, ensemble, n=6000)
    fast = qwyc.optimize(
        ensemble, rows[:3000], alpha=0.05, evaluation="quit", repeats="independent", progress=False
    )
    return fast, rows[3000:], None


def callables():
    """A classifier of Python functions, and fresh rows."""
    weights = np.random.default_rng(3).normal(size=(15, 4))
    X = np.random.default_rng(4).normal(size=(5000, 4))
    models = [lambda rows, w=w: rows @ w for w in weights]
    fast = qwyc.optimize(models, X[:3000], alpha=0.05, progress=False)
    return fast, X[3000:], fast.ensemble.scores(X[3000:]).full > 0


class Page(HTMLParser):
    """Elements of a page; fails where one is not closed."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.text, self.scripts = [], [], "", []
        self.feed(content.decode())
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.text += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def facts(self):
        return json.loads(self.scripts[0])
