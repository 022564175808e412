"""Unfaithful answers: features of what was written, a head on groups it was not fitted on, baselines beside it."""

import json

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.grounding.faithful_answers import (
    NAMES,
    JudgedAnswer,
    answer_features,
    measure_faithfulness,
    shared_words,
)
from climassay.metrics.entailment_head import bundled_entailment
from command_line import run_command

PASSAGE = "The board oversees climate risks. Emissions fell by 12% in 2021."


def answers(groups=4, each=8):
    return [
        JudgedAnswer("Said.", ("Given.",), f"report {group}", number % 2 == 1)
        for group in range(groups)
        for number in range(each)
    ]


def test_what_tells_unfaithful_answers_is_found_in_other_groups_and_noise_is_not():
    given = answers()
    truth = np.array([one.unfaithful for one in given], dtype=float)
    features = np.random.default_rng(0).normal(size=(len(given), len(NAMES)))
    noise = {one.name: one for one in measure_faithfulness(given, features, resamples=50)}
    assert noise["learned head"].gain.low < 0
    features[:, 0] = 3 * truth
    told = {one.name: one for one in measure_faithfulness(given, features, resamples=50)}
    assert told["learned head"].auroc.value > 0.9 > told["length of the answer"].auroc.value
    assert told["learned head"].gain.low > 0
    assert told["length of the answer"].gain is None


def test_answers_of_one_kind_teach_nothing():
    given = [one for one in answers() if one.unfaithful]
    with pytest.raises(InputError):
        measure_faithfulness(given, np.zeros((len(given), len(NAMES))))


def test_an_invented_figure_shows_in_the_features():
    scorer = bundled_entailment()
    faithful = JudgedAnswer("The board oversees climate risks.", (PASSAGE,), "r", False)
    invented = JudgedAnswer("Sales of bananas rose by 40%. Ships sink.", (PASSAGE, "Nothing."), "r", True)
    first, second = (
        dict(zip(NAMES, row, strict=True)) for row in answer_features([faithful, invented], scorer, scorer.head.encoder)
    )
    assert (first["foreign quantities"], second["foreign quantities"]) == (0, 1)
    assert first["least entailed sentence"] > second["least entailed sentence"]
    assert first["least similar sentence"] > second["least similar sentence"]
    assert (second["sentences"], second["passages"]) == (2, 2)
    assert shared_words(faithful) == 1.0


def test_from_a_file_to_a_table(monkeypatch, capsys, tmp_path):
    file = tmp_path / "a.jsonl"
    rows = [
        {"answer": "The board oversees risks.", "cited": {"3": PASSAGE}, "report": "a", "ok": 1},
        {"answer": "Sales of bananas rose.", "cited": {"3": PASSAGE}, "report": "a", "ok": 0},
        {"answer": "Emissions fell.", "cited": [PASSAGE], "report": "b", "ok": 1},
        {"answer": "Ships sink in the night.", "cited": [PASSAGE], "report": "b", "ok": 0},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    asked = ("metrics", "faithfulness", file, "--truth", "ok")
    code, out, err = run_command(monkeypatch, capsys, *asked, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["answers"], told["unfaithful"], told["groups"]) == (4, 2, 2)
    code, out, err = run_command(monkeypatch, capsys, *asked)
    assert code == 0, err
    assert "learned head" in out
    code, _, err = run_command(monkeypatch, capsys, "metrics", "faithfulness", file, "--truth", "missing")
    assert code == 2
    assert "missing" in err
