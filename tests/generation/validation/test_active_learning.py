"""Which drafts to have labelled next, and simulations of it on labels that are known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation.validation.active_learning import (
    STRATEGIES,
    SimulationItems,
    SimulationSettings,
    choose_next,
    corrected_interval,
    simulate,
    simulation_figure,
    simulation_report,
    simulation_tables,
    summarise,
)
from climassay.learning.splits import random_split


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=25),
    st.integers(0, 30),
    st.sampled_from(STRATEGIES),
    st.integers(0, 3),
)
def test_as_many_different_ones_as_there_are(probabilities, n, strategy, seed):
    vectors = np.random.default_rng(0).normal(size=(len(probabilities), 3))
    given_ = np.array(probabilities)
    chosen = choose_next(given_, given_, vectors, n, strategy, seed)
    assert len(chosen) == len(set(chosen)) == min(n, len(probabilities))
    assert chosen == choose_next(given_, given_, vectors, n, strategy, seed)


def test_margin_takes_the_least_confident_first(make_draft):
    drafts = [make_draft(number) for number in range(5)]
    assert choose_next(drafts, [0.99, 0.45, 0.8, None, 0.1], None, 3, "margin") == [3, 1, 2]


def test_the_paper_drops_half_of_the_confident_ones():
    """Of 1000 drafts at 0.9 and 1000 at 0.6, 1500 stay on average; the first 1000 of them are 2/3 unsure ones."""
    probabilities = np.repeat([0.9, 0.6], 1000)
    chosen = choose_next(probabilities, probabilities, None, 1000, "paper", 0)
    unsure = float(np.mean(np.array(chosen) >= 1000))
    assert unsure == pytest.approx(2 / 3, abs=0.05)
    # Confident that it is invalid is confident too; 0.85 itself is not above 0.85.
    edge = np.repeat([0.1, 0.85], 1000)
    edge = choose_next(edge, edge, None, 1000, "paper", 1)
    assert float(np.mean(np.array(edge) >= 1000)) == pytest.approx(2 / 3, abs=0.05)


def test_diverse_takes_one_of_each_cluster():
    generator = np.random.default_rng(0)
    centres = np.eye(4)[np.repeat(np.arange(4), 10)]
    vectors = centres + 0.01 * generator.normal(size=(40, 4))
    # One cluster holds all the least confident ones: margin alone would take only these.
    probabilities = np.where(np.arange(40) < 10, 0.5, 0.9) + np.linspace(0, 0.05, 40)
    chosen = choose_next(probabilities, probabilities, vectors, 4, "diverse", 0)
    assert sorted(place // 10 for place in chosen) == [0, 1, 2, 3]
    # Of each the least confident.
    assert set(chosen) == {0, 10, 20, 30}
    assert chosen[0] == 0
    assert {place // 10 for place in choose_next(probabilities, probabilities, vectors, 4, "margin", 0)} == {0}


def test_what_does_not_fit_is_refused(make_draft):
    with pytest.raises(InputError, match="one for each"):
        choose_next([make_draft(1)], [0.5, 0.5], None, 1)
    with pytest.raises(InputError, match="no strategy"):
        choose_next([make_draft(1)], [0.5], None, 1, "best")
    with pytest.raises(InputError, match="one vector"):
        choose_next([make_draft(1)], [0.5], None, 1, "diverse")


SETTINGS = SimulationSettings(splits=3, start=10, batch=20, test_share=0.3)


def made(n=90, *, signal=2.0, zero_shot=False, seed=0):
    """A fifth invalid; one feature of twenty tells, as strongly as ``signal``; three items per passage."""
    generator = np.random.default_rng(seed)
    valid = (np.arange(n) % 5 != 0).astype(np.int64)
    features = generator.normal(size=(n, 20))
    features[:, 0] += signal * (2 * valid - 1)
    zero = np.where(valid == 1, 0.6, 0.4) if zero_shot else None
    vectors = features.astype(np.float32)
    return SimulationItems("made", (features,), vectors, valid, np.arange(n) // 3, zero)


def test_test_passages_are_never_labelled_and_shares_are_met():
    groups = np.arange(90) // 3
    pool, test = random_split(groups, 0.3, seed=[0, 7])
    assert not set(groups[pool]) & set(groups[test])
    assert len(pool) + len(test) == 90
    assert 27 <= len(test) <= 29
    assert not np.array_equal(test, random_split(groups, 0.3, seed=[0, 8]).test)


def test_what_can_be_learned_is_learned_and_beats_no_validation():
    summary = summarise(made(), simulate(made(), SETTINGS))
    last = summary.curves[0].points[-1]
    assert last.auroc.value > 0.9
    assert last.precision.value > summary.none.precision.value + 0.05
    assert summary.valid.value == pytest.approx(0.8)
    assert summary.none.kept.value == 1


def test_zero_shot_is_measured_on_the_same_passages():
    items = made(zero_shot=True)
    results = simulate(items, replace(SETTINGS, splits=2, rounds=1))
    assert all(result.zero_shot.precision == 1 for result in results)
    assert all(result.zero_shot.auroc == 1 for result in results)


def test_a_killed_simulation_goes_on_and_gives_the_same(tmp_path):
    items, store = made(), tmp_path / "splits.jsonl"
    whole = simulate(items, SETTINGS)
    simulate(items, replace(SETTINGS, splits=2), store=store)
    # Killed while it wrote the next line.
    with store.open("a", encoding="utf-8") as file:
        file.write('{"simulation": "ab')
    told = []
    assert simulate(items, SETTINGS, store=store, on_split=told.append) == whole
    assert told == [2, 1]
    again = []
    assert simulate(items, SETTINGS, store=store, on_split=again.append) == whole
    assert again == [3]


def test_another_simulations_file_is_refused(tmp_path):
    store = tmp_path / "splits.jsonl"
    simulate(made(), replace(SETTINGS, splits=1), store=store)
    with pytest.raises(InputError, match="other labels or settings"):
        simulate(made(), replace(SETTINGS, splits=1, batch=5), store=store)
    with pytest.raises(InputError, match="other labels or settings"):
        simulate(made(seed=1), replace(SETTINGS, splits=1), store=store)
    store.write_text("[]\n{}\n", encoding="utf-8")
    with pytest.raises(InputError, match="not a file of a simulation"):
        simulate(made(), SETTINGS, store=store)


@pytest.mark.parametrize(
    "wrong",
    [{"strategies": ("best",)}, {"strategies": ()}, {"batch": 0}, {"test_share": 1.0}, {"rounds": -1}],
    ids=["unknown", "none", "batch", "share", "rounds"],
)
def test_settings_that_cannot_be(wrong):
    with pytest.raises(InputError):
        SimulationSettings(**wrong)


def test_more_labels_to_start_with_than_there_are():
    with pytest.raises(InputError, match="starts with 80 labels"):
        simulate(made(), replace(SETTINGS, start=80))


def test_the_corrected_interval_does_not_vanish_with_more_splits():
    """Nadeau and Bengio: with 1/k + n2/n1 = 0.04 + 0.25 and s = 1, half = t(24) * sqrt(0.29)."""
    values = np.array([-1.0, 1.0] * 12 + [0.0])
    spread = float(values.var(ddof=1))
    found = corrected_interval(values, 0.25)
    assert found.high == pytest.approx(2.0639 * (spread * 0.29) ** 0.5, rel=1e-4)
    many = corrected_interval(np.tile(values, 40), 0.25)
    assert many.high > 0.8 * found.high


def test_the_report_says_what_it_cannot_show(labels):
    items = made(signal=0.0, zero_shot=True)
    settings = replace(SETTINGS, strategies=("random", "margin"))
    summary = summarise(items, simulate(items, settings))
    figure = simulation_figure(summary, "precision", "Precision")
    assert [series.name for series in figure.series] == ["random", "margin", "no validation", "zero-shot"]
    assert [series.reference for series in figure.series] == [False, False, True, True]
    first, second = simulation_tables(summary, settings)
    assert [row[0] for row in first.rows[:2]] == ["no validation", "zero-shot"]
    assert {row[0] for row in second.rows} == {"margin"}
    page = simulation_report(summary, settings, labels.drafts).to_html()
    assert "No strategy is apart from random choice" in page
    assert "wrong answer" in page
