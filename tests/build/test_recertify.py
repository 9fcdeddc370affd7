"""A classifier certified anew, on other rows; and what travels to workers."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import xgboost

import qwyc
from qwyc import distributed
from qwyc.distributed import shipping
from qwyc.distributed.adding import output_names
from qwyc.distributed.work import Counting, Deciding
from qwyc.promise import compare


@pytest.fixture(scope="module")
def fitted(adult_codes):
    X, y, X_new, _ = adult_codes
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=4).fit(X[:12000], y[:12000])
    return qwyc.optimize(model, X[12000:16000], alpha=0.02, progress=False), X_new


def test_more_rows_certify_a_smaller_alpha(fitted):
    fast, X_new = fitted
    with pytest.raises(qwyc.InfeasibleError):
        fast.at(alpha=0.001)
    better = qwyc.recertify(fast, X_new, alpha=0.001)
    assert better.certificate.rows == len(X_new)
    assert better.certificate.how == "held-out"
    assert better.certificate.upper_bound <= 0.001
    differ = better.predict(X_new) != (fast.score_full(X_new) >= fast.policy.threshold)
    assert better.certificate.disagreements == np.count_nonzero(differ)
    assert better.certificate.mean_models == pytest.approx(better.decide(X_new).steps.mean())
    assert better.certificate.sample == fast.certificate.sample  # the fitting rows are of that one
    full = fast.score_full(X_new) >= fast.policy.threshold
    assert better.certificate.full_positive == np.count_nonzero(full)
    assert f" of {np.count_nonzero(full):,} lost" in str(better.certificate)
    assert better.at(alpha=0.01).certificate.rows == len(X_new)  # and so is all that follows


def test_blocks_add_up(fitted, monkeypatch):
    fast, X_new = fitted
    whole, digest = compare.sums_of_path(fast, X_new[:3000])
    checked = qwyc.verify(fast, X_new[:3000])
    monkeypatch.setattr(compare, "BLOCK", 700)
    parts, same_digest = compare.sums_of_path(fast, X_new[:3000])
    assert same_digest == digest
    np.testing.assert_array_equal(parts.differences, whole.differences)
    np.testing.assert_allclose(parts.cost, whole.cost)
    assert parts.rows == 3000
    assert qwyc.verify(fast, X_new[:3000]) == checked


@pytest.mark.parametrize("repeated", [False, True])
def test_rows_without_a_matrix_of_scores_certify_the_same(fitted, monkeypatch, repeated):
    """Trees count their path themselves; other base models make scores first."""
    fast, X_new = fitted
    loaded = replace(fast, ensemble=replace(fast.ensemble, base_models=without_counts(fast)))
    rows = np.repeat(X_new[:4000], 3, axis=0) if repeated else X_new[:4000]
    groups = np.arange(len(rows)) // 40
    made = []
    for scores_first in (False, True):
        if scores_first:
            monkeypatch.setattr(type(loaded.ensemble.base_models), "path_counter", no_counter)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            by_row = qwyc.recertify(loaded, rows, alpha=0.05)
        assert any("equal another row" in str(one.message) for one in caught) == repeated
        made += [by_row, qwyc.recertify(loaded, rows, alpha=0.05, groups=groups)]
    for direct, by_scores in zip(made[:2], made[2:], strict=True):
        assert str(direct.certificate) == str(by_scores.certificate)
        counts, others = (one.choices.evidence.counts for one in (direct, by_scores))
        np.testing.assert_array_equal(counts.stops, others.stops)
        np.testing.assert_array_equal(counts.differences, others.differences)
        for k in range(len(counts)):
            assert counts[k].groups == others[k].groups
    assert made[1].choices.evidence.counts.groups is not None


def no_counter(models, path):
    return None


def without_counts(fast):
    """Trees that do not know how many training rows reached each leaf, as those of a file."""
    models = fast.ensemble.base_models
    return replace(models, trees=replace(models.trees, leaf_weight=np.zeros(0)))


def test_a_recertified_classifier_is_saved_and_loaded(fitted, tmp_path):
    fast, X_new = fitted
    better = qwyc.recertify(fast, X_new)
    better.save(tmp_path / "new.qwyc")
    again = qwyc.load(tmp_path / "new.qwyc")
    assert str(again.certificate) == str(better.certificate)
    np.testing.assert_array_equal(
        again.choices.evidence.counts.differences, better.choices.evidence.counts.differences
    )


@pytest.mark.parametrize("check", [qwyc.recertify, qwyc.verify])
@pytest.mark.parametrize("part", [slice(None), slice(None, None, -1), slice(1, None), slice(200)])
def test_the_sample_itself_is_refused(adult_codes, fitted, check, part, tmp_path):
    fast, _ = fitted
    sample = adult_codes[0][12000:16000][part]
    with pytest.raises(
        qwyc.InputError, match=r"100.0% of these rows are among the 4,000 rows that"
    ):
        check(fast, sample)
    fast.save(tmp_path / "m.qwyc")
    with pytest.raises(qwyc.InputError, match="pass other rows"):
        check(qwyc.load(tmp_path / "m.qwyc"), sample)


def test_rows_of_the_sample_among_others_are_refused_or_warned_of(adult_codes, fitted):
    fast, X_new = fitted
    sample = adult_codes[0][12000:16000]
    with pytest.raises(qwyc.InputError, match="pass other rows"):
        qwyc.verify(fast, np.concatenate([sample[:500], X_new[:5000]]))
    with pytest.warns(qwyc.QwycWarning, match="more than by chance"):
        qwyc.verify(fast, np.concatenate([sample[:250], X_new]))


def test_rows_of_a_recertification_do_not_verify_it(fitted):
    """They may be used to certify it again: nothing was fitted to them."""
    fast, X_new = fitted
    again = qwyc.recertify(fast, X_new[:4000])
    with pytest.raises(qwyc.InputError, match="among the 4,000 rows"):
        qwyc.verify(again, X_new[1000:2000])
    assert qwyc.verify(again, X_new[4000:]).rows > 10_000
    assert qwyc.recertify(again, X_new[2000:6000], alpha=0.03).certificate.rows == 4000


def test_proven_classifiers_are_verified_on_any_rows(fitted):
    fast, X_new = fitted
    proven = qwyc.optimize(fast.ensemble, X_new[:500], alpha=0)
    assert proven.origins.sample is not None
    assert qwyc.verify(proven, X_new[:500]).passed


def test_what_cannot_be_recertified(fitted):
    fast, X_new = fitted
    with pytest.raises(qwyc.OptionError, match="alpha=0 is proven"):
        qwyc.recertify(fast, X_new, alpha=0)
    with pytest.raises(qwyc.InfeasibleError, match="certifying rows; there are 10"):
        qwyc.recertify(fast, X_new[:10])
    with pytest.raises(qwyc.InputError, match="no rows"):
        qwyc.recertify(fast, X_new[:0])
    single = qwyc.optimize(fast.ensemble, X_new[:500], alpha=0.01, method="natural", progress=False)
    with pytest.raises(qwyc.OptionError, match="only one policy"):
        qwyc.recertify(single, X_new)


def test_a_parcel_has_the_policy_alone_and_the_same_key_each_time(fitted):
    fast, X_new = fitted
    light, whole = shipping.pack(fast), shipping.pack(fast, whole_path=True)
    assert light.key == shipping.pack(fast).key != whole.key
    assert len(light.content) < len(whole.content)
    there = shipping.unpack(light.content)
    assert there.choices is None
    np.testing.assert_array_equal(there.decide(X_new).score, fast.decide(X_new).score)
    assert shipping.unpack(memoryview(whole.content)).choices is not None


def test_a_process_loads_a_classifier_once_and_forgets_the_oldest(fitted):
    loads = []

    def load(key):
        return shipping.once(key, lambda: loads.append(key) or fitted[0])

    for _ in range(3):
        load("one")
    assert loads == ["one"]
    for i in range(shipping.KEPT):
        load(f"other {i}")
    load("one")
    assert loads.count("one") == 2


def test_batches_in_arrow_and_in_pandas(fitted):
    import pandas as pd
    import pyarrow as pa

    fast, X_new = fitted
    frame = pd.DataFrame(X_new[:50]).rename(columns=str).assign(id=np.arange(50))
    features = tuple(frame.columns[:-1])
    work = Deciding(features, ("id",), output_names("q_", ["id"], case_matters=True))
    there = work.on_arrow(fast, pa.Table.from_pandas(frame)).to_pandas()
    pd.testing.assert_frame_equal(there, work.on_pandas(fast, frame), check_dtype=True)
    assert there["q_steps"].tolist() == fast.decide(X_new[:50]).steps.tolist()
    for whole_path in (False, True):
        count = Counting(features, whole_path)
        sums = count.on_arrow(fast, pa.Table.from_pandas(frame))
        np.testing.assert_array_equal(sums, count.on_pandas(fast, frame))
        assert len(sums) == count.size(fast)
        assert not count.on_pandas(fast, frame[:0]).any()


def test_rows_in_memory_are_not_a_data_set(fitted):
    fast, X_new = fitted
    assert not distributed.is_distributed(X_new)
    with pytest.raises(qwyc.InputError, match="a Dask DataFrame or a DuckDB relation was expected"):
        distributed.decide(fast, X_new)


def test_the_rows_that_it_was_recertified_on_are_on_record(fitted, tmp_path):
    fast, X_new = fitted
    assert fast.certificate.recertified is None
    assert fast.certificate.as_dict()["recertified"] is None
    assert " Held out: " in str(fast.certificate)
    better = qwyc.recertify(fast, X_new[:8000])
    digest = better.certificate.recertified
    assert len(digest) == 64
    assert better.certificate.as_dict()["recertified"] == {"rows": 8000, "sample": digest}
    assert f" Recertified on other rows, digest {digest[:8]}: " in str(better.certificate)
    assert qwyc.recertify(fast, X_new[:8001]).certificate.recertified != digest
    better.save(tmp_path / "new.qwyc")
    again = qwyc.load(tmp_path / "new.qwyc")
    assert again.certificate.recertified == again.choices.evidence.recertified == digest
    assert again.at(alpha=0.05).certificate.recertified == digest  # the same rows are counted
    fast.save(tmp_path / "old.qwyc")
    assert b"recertified" not in (tmp_path / "old.qwyc").read_bytes()
