"""A judge is judged: one that sees what people see passes, and each fault of a judge is found by the test for it."""

import json
import re

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.evaluation import Cell, Experiment, Outcome, PreferredAnswer, RatedAnswer
from climassay.evaluation.judge_check import add_certainty, blind_rows, check_judge, lengthen, read_ratings
from climassay.metrics import LongAnswer
from climassay.questions import Criterion, Question
from scripted_model import ScriptedModel

ROWS = [
    {"question": f"Question {group}?", "answer": f"It is {value}. That is all.", "accuracy": value}
    for group in range(40)
    for value in (1, 2, 4, 5)
]


def rate(prompt, schema, *, gain=0, blind=False, first=False):
    """A judge that reads the number in an answer; or is moved by length, sees nothing, or prefers the first answer."""

    def worth(text):
        value = 3 if blind else int(re.search(r"It is (\d)", text)[1])
        return min(5, value + gain * ("once more" in text))

    if "better" in schema["required"]:
        one, other = prompt.split("First answer:")[1].split("Second answer:")
        a, b = worth(one), worth(other)
        better = "first" if first or a > b else "second" if b > a else "tie"
        return json.dumps({"reason": "So it is.", "better": better})
    said = {
        "quotation": "",
        "reason": "So it is.",
        "issues": [],
        "rating": str(worth(prompt.split("Answer to rate:")[1])),
    }
    return json.dumps(dict.fromkeys(schema["required"], said))


@pytest.fixture
def rated(tmp_path):
    file = tmp_path / "rated.jsonl"
    file.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return read_ratings(file, {})


def check(rated, **faults):
    judge = ScriptedModel(write=lambda prompt, schema: rate(prompt, schema, **faults))
    return check_judge(rated, judge, pairs=60)


def outcomes(checked):
    return {one.name: one.outcome for one in checked.tests if one.outcome is not None}


def test_a_judge_that_sees_what_people_see_can_be_relied_on(rated):
    done = check(rated)
    assert done.verdict == "passed"
    assert next(iter(done.lines())).startswith("The judge can be relied on")
    values = {one.name: one.estimate for one in done.tests}
    assert values["agreement with people"].value == 1.0
    assert values["rank correlation with people"].value == pytest.approx(1.0)
    assert values["rank correlation with people"].n == 40
    assert values["both orders of a pair agree"].n == 60
    assert len(done.rows()) == len(ROWS)
    assert done.tables()[0].rows[0][0] == "agreement with people"


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ({"blind": True}, {"agreement with people"}),
        ({"gain": 1}, {"gain of answers made longer"}),
        ({"first": True}, {"both orders of a pair agree", "prefers the answer that people prefer"}),
    ],
)
def test_each_fault_is_found(rated, fault, found):
    done = check(rated, **fault)
    failed = {name for name, outcome in outcomes(done).items() if outcome == "failed"}
    assert found - {"prefers the answer that people prefer"} <= failed
    assert done.verdict == "failed"
    assert next(iter(done.notes())).startswith("The judge cannot be relied on")
    assert all(outcome == "passed" for name, outcome in outcomes(done).items() if "confident" in name)


def test_few_answers_decide_nothing(rated):
    noisy = [
        item._replace(ratings={"accuracy": (float(value),)})
        for item, value in zip(rated, (1, 3, 3, 5, 2), strict=False)
    ]
    done = check(noisy)
    assert outcomes(done)["agreement with people"] == "not decided"
    assert done.verdict != "passed"


def test_one_group_decides_no_rank_correlation(rated):
    done = check([item._replace(group="one") for item in rated])
    [ranks] = [one for one in done.tests if one.name == "rank correlation with people"]
    assert (ranks.estimate.value, ranks.estimate.n, ranks.estimate.interval) == (pytest.approx(1), 1, None)
    assert outcomes(done)["rank correlation with people"] == "not decided"


def test_failures_of_the_judge_are_counted(rated):
    done = check_judge(rated[:4], ScriptedModel(write=lambda *_: "no"), pairs=2)
    assert done.failed == 4 * 4 + 4
    assert done.verdict == "not decided"


def test_perturbations_add_no_content():
    text = "CO2 warms by 3.7 W. Clouds may amplify it.\n\nIce melts."
    for changed in (lengthen(text), add_certainty(text)):
        assert {*re.findall(r"\d[\d.]*", changed)} == {"2", "3.7"}
        assert all(sentence in changed for sentence in ("CO2 warms by 3.7 W.", "Clouds may amplify it.", "Ice melts."))
    assert len(lengthen(text).split()) > 2 * len(text.split())


def test_ratings_of_several_people_and_other_scales_are_read(tmp_path):
    file = tmp_path / "rated.csv"
    file.write_text("q,a,one,two\nQ,A,0,1\nQ,B,1,\nQ,C,,\n", encoding="utf-8")
    labels = {"one": "accuracy", "two": "accuracy"}
    found = read_ratings(file, labels, question="q", answer="a", scale=(0, 1))
    assert [one.ratings["accuracy"] for one in found] == [(1.0, 5.0), (5.0,)]
    with pytest.raises(InputError, match="not a rating from 1 to 5"):
        read_ratings(file, labels, question="q", answer="a")
    with pytest.raises(InputError, match="lacks the column 'question'"):
        read_ratings(file, labels)
    with pytest.raises(InputError, match="lacks ratings"):
        read_ratings(file, {}, question="q", answer="a")


def test_answers_given_out_tell_nothing_of_their_models_and_come_back_as_ratings(tmp_path):
    cells = [Cell("b", name, "default", "longform") for name in ("model-one", "model-two")]
    answers = tuple(Outcome(cell, "q", None, f"Text {place}.", {}) for place, cell in enumerate(cells))
    question = Question("q", "longform", "Why?", "", audience="a pupil")
    rows = blind_rows(Experiment("r", "n", {}, (), answers, {"b": (question,)}))
    assert "model-" not in json.dumps(rows)
    assert {row["answer"] for row in rows} == {"Text 0.", "Text 1."}
    experiment = Experiment("r", "n", {}, (), answers, {"b": (question,)})
    orders = {tuple(row["answer"] for row in blind_rows(experiment, seed=seed)) for seed in range(8)}
    assert len(orders) == 2
    filled = [{**row, "accuracy": number} for number, row in enumerate(rows, start=1)]
    (tmp_path / "filled.jsonl").write_text("\n".join(map(json.dumps, filled)), encoding="utf-8")
    back = read_ratings(tmp_path / "filled.jsonl", {})
    assert [one.ratings for one in back] == [{"accuracy": (1.0,)}, {"accuracy": (2.0,)}]
    assert np.unique([one.answer.audience for one in back]).tolist() == ["a pupil"]


@pytest.mark.parametrize(("wrong", "outcome"), [(False, "passed"), (True, "failed")])
def test_verdicts_on_criteria_and_pairs_are_compared_with_what_people_said(wrong, outcome):
    items = [
        RatedAnswer(
            LongAnswer(f"{n}?", f"It is {n % 4 + 1}.", (Criterion("Says two"),)), f"{n}?", {}, {0: (verdict,) * 2}
        )
        for n in range(60)
        for verdict in ["met" if (n % 4 == 1) != wrong else "not met"]
    ]
    pairs = [
        PreferredAnswer("Why?", "", f"It is {n % 4 + 1}.", "It is 5.", "first" if wrong else "second")
        for n in range(40)
    ]

    def write(prompt, schema):
        if "better" in schema["required"]:
            return rate(prompt, schema)
        verdict = "met" if "It is 2." in prompt else "not met"
        return json.dumps({"criterion_1": {"quotation": "", "reason": "", "verdict": verdict}})

    done = check_judge(items, ScriptedModel(write=write), preferred=pairs)
    found = {one.name: one for one in done.tests}
    assert found["agreement on criteria"].outcome == found["prefers the answer that people prefer"].outcome == outcome
    assert found["prefers the answer that people prefer"].estimate.n == 40
