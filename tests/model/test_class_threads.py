"""The native engine for trees of K classes on several threads, and called from several at once."""

import threading

import numpy as np
import pytest

from class_forests import random_classes, random_policy
from forests import random_rows


@pytest.mark.parametrize("rules_out", [False, True], ids=["", "ruling out"])
def test_many_rows_on_several_threads(rules_out):
    ensemble = random_classes(5, n_classes=7, rounds=20, dtype="float32")
    policy = random_policy(5, ensemble, rules_out=rules_out, tested=0.4)
    rows = random_rows(5, ensemble, 40_000)
    known = policy.apply(ensemble.scores(rows))
    for threads in (1, 2, 5):
        label, steps, score = ensemble.runner(policy).decide(rows, threads=threads)
        np.testing.assert_array_equal(label, known.label)
        np.testing.assert_array_equal(steps, known.steps)
        np.testing.assert_array_equal(score, known.score)


def test_calls_from_many_threads_at_once():
    ensemble = random_classes(6, dtype="float32")
    policy = random_policy(6, ensemble, rules_out=True)
    rows = random_rows(6, ensemble, 3_000)
    runner = ensemble.runner(policy)
    known, wrong = runner.decide(rows)[0], []

    def work():
        for n in (1, 60, 700, 3_000):
            if not np.array_equal(runner.decide(rows[:n], threads=2)[0], known[:n]):
                wrong.append(n)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
