"""Accuracy as a judge sees it: question, reference and answer."""

import json

import pytest

from climassay.errors import InputError, ModelError
from climassay.metrics import AnswerRow, judge_answers, score_answers
from climassay.models.contract import Completion
from scripted_model import ScriptedModel

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
    rows = [AnswerRow("1", REFERENCE, "Yes.")]
    with pytest.raises(InputError, match="column question"):
        score_answers(rows, ["judged_accuracy"], judge=ScriptedModel(write=judge))
    with pytest.raises(InputError, match="--judge"):
        score_answers(rows, ["judged_accuracy"])


def test_a_very_small_model_is_no_judge():
    small = ScriptedModel(write=judge)
    small.parameters = 135_000_000
    with pytest.raises(InputError, match="too small"):
        judge_answers(items(*ANSWERS), small)
    assert not small.texts


def test_failures_are_counted_and_means_are_over_the_rest():
    class Failing(ScriptedModel):
        def generate(self, requests, *, on_result=None):
            done = super().generate(requests, on_result=on_result)
            return [
                Completion.failed("No luck.") if "gases" in self.render(r.messages) else d
                for r, d in zip(requests, done, strict=True)
            ]

    rows = [AnswerRow(str(n), REFERENCE, answer, question=QUESTION) for n, answer in enumerate(ANSWERS)]
    scored = score_answers(rows, ["judged_accuracy"], judge=Failing(write=judge))
    assert scored.scores["judged_accuracy"] == (1.0, None, 0.0, 0.0)
    assert scored.means["judged_accuracy"].n == 3
    assert scored.means["judged_accuracy"].value == pytest.approx(1 / 3)
    assert scored.judgements[1].error == "No luck."
    with pytest.raises(ModelError, match="every answer"):
        score_answers(rows[1:2], ["judged_accuracy"], judge=Failing(write=judge))
