from dataclasses import replace

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.generation.validation.simulation import (
    SimulationItems,
    SimulationSettings,
    corrected_interval,
    simulate,
    simulation_figure,
    simulation_report,
    simulation_tables,
    split_items,
    summarise,
)

SETTINGS = SimulationSettings(splits=3, start=10, batch=20, test_share=0.3)


def made(n=90, *, signal=2.0, zero_shot=False, seed=0):
    """A fifth invalid; one feature of twenty tells, as strongly as ``signal``; three items a passage."""
    generator = np.random.default_rng(seed)
    valid = (np.arange(n) % 5 != 0).astype(np.int64)
    features = generator.normal(size=(n, 20))
    features[:, 0] += signal * (2 * valid - 1)
    zero = np.where(valid == 1, 0.6, 0.4) if zero_shot else None
    vectors = features.astype(np.float32)
    return SimulationItems("made", (features,), vectors, valid, np.arange(n) // 3, zero)


def test_test_passages_are_never_labelled_and_shares_are_met():
    groups = np.arange(90) // 3
    pool, test = split_items(groups, 0.3, 0, 7)
    assert not set(groups[pool]) & set(groups[test])
    assert len(pool) + len(test) == 90
    assert 27 <= len(test) <= 29
    assert not np.array_equal(test, split_items(groups, 0.3, 0, 8)[1])


def test_all_strategies_start_and_end_at_the_same_place():
    for result in simulate(made(), SETTINGS):
        played = [scores for _, scores in result.rounds]
        assert len({scores[0] for scores in played}) == 1
        assert {scores[0].labels for scores in played} == {10}
        assert {scores[-1].labels for scores in played} == {result.train}
        # Everything is labelled in the end, whatever was labelled first.
        assert np.ptp([scores[-1].auroc for scores in played]) < 1e-6


def test_what_can_be_learned_is_learned_and_beats_no_validation():
    summary = summarise(made(), simulate(made(), SETTINGS))
    last = summary.curves[0].points[-1]
    assert last.auroc.value > 0.9
    assert last.precision.value > summary.none.precision.value + 0.05
    assert summary.valid.value == pytest.approx(0.8)
    assert summary.none.kept.value == 1


def test_without_signal_nobody_beats_anybody():
    items = made(signal=0.0)
    summary = summarise(items, simulate(items, replace(SETTINGS, splits=4, batch=25)))
    assert all(gain.over_items.low < 0 < gain.over_items.high for gain in summary.gains if gain.measure == "auroc")


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
    with pytest.raises(InputError, match="another simulation"):
        simulate(made(), replace(SETTINGS, splits=1, batch=5), store=store)
    with pytest.raises(InputError, match="another simulation"):
        simulate(made(seed=1), replace(SETTINGS, splits=1), store=store)
    store.write_text("[]\n{}\n", encoding="utf-8")
    with pytest.raises(InputError, match="no file of a simulation"):
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
