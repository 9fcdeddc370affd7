"""Write the inputs that fuzzing starts from:
`PYTHONPATH=tests:tests/support python native/fuzz/corpus/make.py`.

`file/` has small `.qwyc` files of every kind that the C library reads, `json/` their headers and odd
pieces of JSON. Inputs of `fuzz_forest` are bytes without a structure; it starts from a few."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import xgboost

import qwyc
from class_forests import random_classes, random_policy
from exported import with_random_filter, with_random_policy
from forests import random_ensemble, random_rows
from fuzz.corpus import corpus, tables
from lattices import lattice_rows, random_lattices
from qwyc.classifier import Classifier
from qwyc.files import classifier_file
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import observed_certificate
from qwyc.promise.origin import UNKNOWN

HERE = Path(__file__).parent


def classifiers():
    """Classifiers of every target and family, by name."""
    for seed in range(4):
        trees = random_ensemble(seed, n_trees=3, depth=2, n_features=3)
        yield f"trees-{seed}", with_random_policy(trees, random_rows(seed, trees), seed)
    for seed, vectors in ((0, False), (1, True)):
        trees = random_classes(seed, n_classes=3, rounds=2, depth=2, vectors=vectors)
        policy = random_policy(seed, trees, rules_out=vectors)
        budget = budget_of(0.0, target=policy.target)
        certificate = observed_certificate("in-sample", budget, policy, None)
        yield f"classes-{seed}", Classifier(trees, policy, certificate)
    trees = random_classes(2, n_classes=3, rounds=2, depth=2)
    yield "filter", with_random_filter(trees, random_rows(2, trees), 1)
    lattices = random_lattices(0, n_models=2, n_features=2, most_inputs=2)
    yield "lattices", with_random_policy(lattices, lattice_rows(0, lattices))
    yield "certified", replace(optimized(alpha=0.05), choices=None)
    yield "path", optimized(alpha=0.05, trees=2)
    yield "approximation", replace(optimized(alpha=0.05, tolerance=0.1), choices=None)


def optimized(*, trees=4, **options):
    """A classifier of a few trees with a certificate. The rows that it was made from are left out."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 3)).astype(np.float32)
    model = xgboost.XGBClassifier(n_estimators=trees, max_depth=2).fit(X[:500], X[:500, 0] > 0)
    return replace(qwyc.optimize(model, X[500:], **options), origins=UNKNOWN)


def main():
    """Write all of them anew."""
    files = {name: classifier_file.to_bytes(fast) for name, fast in classifiers()}
    for name, content in zip(("categories", "three"), corpus("qwyc")[1:3], strict=True):
        files[f"predictor-{name}"] = content
    _, numbers, _ = tables()
    values = xgboost.XGBRegressor(n_estimators=2, max_depth=2).fit(numbers, numbers[:, 0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.qwyc"
        qwyc.read_model(values).save(path)
        files["predictor-values"] = path.read_bytes()
    for name, content in files.items():
        (HERE / "file" / f"{name}.qwyc").write_bytes(content)
        print(name, len(content))
    for name in ("trees-0", "lattices", "filter"):
        content = files[name]
        size = int.from_bytes(content[:8], "little")
        header = content[8 : 8 + size]
        (HERE / "json" / f"{name}.json").write_bytes(
            json.loads(header)["__metadata__"]["qwyc"].encode()
        )


if __name__ == "__main__":
    main()
