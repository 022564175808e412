"""Accuracy as a judge sees it: question, reference and answer."""

import json
import math

import numpy as np
import pytest

from climassay.errors import InputError, ModelError
from climassay.metrics import (
    PromptedSupport,
    ReferencedAnswer,
    factual_accuracy,
    judge_answers,
    score_answers,
    supports,
)
from climassay.models import Completion
from scripted_model import ScriptedModel
from tiny_models import smollm2

PRINTED = (0.988, 0.982, 0.968, 0.741, 0.175, 0.980, 0.896, 0.051, 0.905)
"""All different values of appendix A.2.3."""


def test_worked_examples():
    # odds 99 to 1: 99 ** (1 / 5) = 2.5068; 2.5068 / 3.5068 = 0.7148.
    assert factual_accuracy(0.99) == pytest.approx(0.7148, abs=5e-5)
    assert factual_accuracy(0.5) == 0.5
    assert factual_accuracy(0.01) == pytest.approx(1 - factual_accuracy(0.99))
    assert factual_accuracy(0.3, temperature=1) == pytest.approx(0.3)


@pytest.mark.parametrize("printed", PRINTED)
def test_the_papers_values_are_reached_by_log_odds_that_a_judge_can_have(printed):
    log_odds = 5 * math.log(printed / (1 - printed))
    # Between the -100 of a missing token and 0 there is room for all of them: in no example was a token missing.
    assert abs(log_odds) < 22.1
    assert factual_accuracy(1 / (1 + math.exp(-log_odds))) == pytest.approx(printed, abs=5e-4)


def test_the_ends_are_finite_and_a_missing_token_is_at_the_end():
    low, high = factual_accuracy(np.array([0.0, 1.0]))
    assert (low, high) == (pytest.approx(0.0010, abs=5e-5), pytest.approx(0.9990, abs=5e-5))
    assert factual_accuracy(1 / (1 + math.exp(-100))) == pytest.approx(high)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_no_probability(wrong):
    with pytest.raises(InputError, match="probabilities"):
        factual_accuracy(wrong)


@pytest.mark.parametrize("temperature", [0, -1, math.inf])
def test_no_temperature(temperature):
    with pytest.raises(InputError, match="temperature"):
        factual_accuracy(0.5, temperature)


def supporting(answers):
    """Gives scripted log-probabilities; fails where there are none."""
    lost = RuntimeError("The server did not answer.")
    return ScriptedModel(lambda prompt, _: next((row for claim, row in answers.items() if claim in prompt), lost))


def test_the_judge_is_asked_as_the_paper_does_and_failures_keep_their_place():
    judge = supporting({"Seas rise": (-0.1, -5.1), "Seas fall": (-100.0, 0.0)})
    scorer = PromptedSupport(judge)
    pairs = [
        ("The sea is rising.", "Seas rise."),
        ("The sea is rising.", "Lost."),
        ("The sea is rising.", "Seas fall."),
    ]
    relations = scorer.relations(pairs)
    assert relations[0].confirms == pytest.approx(1 / (1 + math.exp(-5)))
    assert relations[0].leaves_open == 0
    assert relations[1] is None
    assert scorer.score(pairs)[2] == pytest.approx(0, abs=1e-40)
    assert {options for _, options in judge.options} == {("SUPPORTS", "REFUTES")}
    text = judge.options[0][0]
    assert text.index("Evidence:** The sea is rising.") < text.index("Claim:** Seas rise.")
    scores = [None if share is None else factual_accuracy(share) for share in supports(scorer, pairs)]
    # sigmoid(5 / 5), a failure, and the clip.
    assert scores == [pytest.approx(0.7311, abs=5e-5), None, pytest.approx(0.0010, abs=5e-5)]


def test_a_scorer_without_relations_gives_its_probability():
    class Plain:
        name = "plain"

        def score(self, pairs):
            return [0.4 for _ in pairs]

    assert supports(Plain(), [("a", "b")]) == [0.4]


@pytest.mark.model
def test_the_bundled_model_as_judge():
    (share,) = supports(PromptedSupport(smollm2()), [("Warm water expands.", "Water expands when heated.")])
    assert 0 < share < 1


QUESTION, REFERENCE = "Why is the ocean becoming more acidic?", "It takes up carbon dioxide from the air."
ANSWERS = {
    "Because it absorbs CO2.": "correct",
    "Because of gases.": "partly correct",
    "Because it loses CO2.": "wrong",
    "The ocean covers 71% of the Earth.": "beside the point",
}


def judge(prompt, schema):
    assert schema["additionalProperties"] is False
    assert QUESTION in prompt
    assert REFERENCE in prompt
    answer = next(answer for answer in ANSWERS if answer in prompt)
    return json.dumps({"reason": f"Marked: {answer}", "verdict": ANSWERS[answer]})


def items(*answers):
    return [(QUESTION, REFERENCE, answer) for answer in answers]


def test_what_is_true_but_beside_the_point_scores_nothing():
    found = judge_answers(items(*ANSWERS), ScriptedModel(write=judge))
    assert [one.verdict for one in found] == list(ANSWERS.values())
    assert [one.score for one in found] == [1.0, 0.5, 0.0, 0.0]
    assert all(one.reason.startswith("Marked: ") for one in found)


def test_an_empty_answer_is_beside_the_point_and_nobody_is_asked():
    model = ScriptedModel(write=judge)
    [found] = judge_answers(items(" "), model)
    assert (found.score, found.verdict, model.texts) == (0.0, "beside the point", [])


@pytest.mark.parametrize(
    "broken", ["no JSON", "[1]", '{"reason": "It is.", "verdict": "fine"}', '{"verdict": "wrong"}']
)
def test_what_breaks_the_schema_is_asked_once_more_and_then_counted(broken):
    replies = iter([broken, json.dumps({"reason": "Yes.", "verdict": "correct"})])
    [found] = judge_answers(items("Because it absorbs CO2."), ScriptedModel(write=lambda *_: next(replies)))
    assert found.verdict == "correct"
    model = ScriptedModel(write=lambda *_: broken)
    [failed] = judge_answers(items("Because it absorbs CO2."), model)
    assert (failed.verdict, failed.score, len(model.texts)) == (None, None, 2)
    assert failed.error


def test_without_a_question_there_is_nothing_to_judge():
    with pytest.raises(InputError, match="question"):
        judge_answers([("", REFERENCE, "Yes.")], ScriptedModel(write=judge))
    rows = [ReferencedAnswer("1", REFERENCE, "Yes.")]
    with pytest.raises(InputError, match="column question"):
        score_answers(rows, ["judged_accuracy"], judge=ScriptedModel(write=judge))
    with pytest.raises(InputError, match="--judge"):
        score_answers(rows, ["judged_accuracy"])


def test_failures_are_counted_and_means_are_over_the_rest():
    class Failing(ScriptedModel):
        def generate(self, requests, *, on_result=None):
            done = super().generate(requests, on_result=on_result)
            return [
                Completion.failed("No luck.") if "gases" in self.render(r.messages) else d
                for r, d in zip(requests, done, strict=True)
            ]

    rows = [ReferencedAnswer(str(n), REFERENCE, answer, question=QUESTION) for n, answer in enumerate(ANSWERS)]
    scored = score_answers(rows, ["judged_accuracy"], judge=Failing(write=judge))
    assert scored.scores["judged_accuracy"] == (1.0, None, 0.0, 0.0)
    assert scored.means["judged_accuracy"].n == 3
    assert scored.means["judged_accuracy"].value == pytest.approx(1 / 3)
    assert scored.judgements[1].error == "No luck."
    with pytest.raises(ModelError, match="every answer"):
        score_answers(rows[1:2], ["judged_accuracy"], judge=Failing(write=judge))
