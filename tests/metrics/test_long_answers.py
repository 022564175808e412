"""A judge of long answers: what it is asked, what is read of it, and what scores come of that."""

import json
import re

import pytest

from climassay.metrics import DIMENSIONS, LongAnswer, LongAnswerGrader, assessment_scores
from climassay.questions import Criterion
from scripted_model import ScriptedModel

RUBRIC = (
    Criterion("Names CO2", 2, "must"),
    Criterion("Gives 3.7 W per square metre", 1, "must"),
    Criterion("Says that it is logarithmic", 1, "should"),
    Criterion("Says that it warms", 2, "must"),
)
ITEM = LongAnswer("What does CO2 do?", "CO2 warms. The effect is roughly logarithmic.", RUBRIC, "a pupil")
VERDICTS = ("met", "not met", "partly met", "contradicted")


def answer(schema, verdicts=VERDICTS, ratings=None):
    """What a judge writes under a schema: the given verdicts, and 4 for every dimension that is not named."""
    data = {}
    for name in schema["required"]:
        quotation = "CO2 warms" if name in ("criterion_1", "accuracy") else "never said"
        data[name] = {"quotation": quotation, "reason": f"About {name}."}
        if name.startswith("criterion_"):
            data[name]["verdict"] = verdicts[int(name.removeprefix("criterion_")) - 1]
        else:
            data[name] |= {"issues": ["vague", "unheard of"], "rating": str((ratings or {}).get(name, 4))}
    return json.dumps(data)


def test_every_criterion_and_dimension_is_judged_with_reason_and_quotation():
    judge = ScriptedModel(write=lambda _, schema: answer(schema, ratings={"accuracy": 2}))
    [found] = LongAnswerGrader(judge).assess([ITEM])
    assert [one.verdict for one in found.criteria] == list(VERDICTS)
    assert [one.quoted for one in found.criteria] == [True, False, False, False]
    assert found.criteria[0].reason == "About criterion_1."
    assert [one.dimension for one in found.ratings] == [one.name for one in DIMENSIONS]
    ratings = {one.dimension: one for one in found.ratings}
    assert (ratings["accuracy"].rating, ratings["tone"].rating) == (2, 4)
    assert (ratings["specificity"].issues, ratings["tone"].issues) == (("vague",), ())
    assert len(judge.texts) == 2
    assert all("a pupil" in prompt and "CO2 warms." in prompt for prompt in judge.texts)


def test_scores_by_hand():
    judge = ScriptedModel(write=lambda _, schema: answer(schema, ratings={"accuracy": 2, "uncertainty": 1}))
    scores = assessment_scores(LongAnswerGrader(judge).assess([ITEM])[0], RUBRIC)
    assert scores["rubric_score"] == pytest.approx((2 * 1 + 1 * 0 + 1 * 0.5 + 2 * 0) / 6)
    assert scores["rubric_must"] == pytest.approx(1 / 3)  # the first of three musts
    assert scores["rubric_uncontradicted"] == 0.0
    assert scores["presentation"] == pytest.approx(3 / 4)
    assert scores["epistemics"] == pytest.approx(((2 + 4 + 4 + 1) / 4 - 1) / 4)


def test_an_answer_that_breaks_the_form_is_asked_for_again_and_then_a_failure():
    def write(prompt, schema):
        return "no JSON" if "criterion_1" in schema["required"] else answer(schema)

    judge = ScriptedModel(write=write)
    [found] = LongAnswerGrader(judge).assess([ITEM])
    assert len(judge.texts) == 3
    assert found.criteria == ()
    assert len(found.errors) == 1
    assert set(assessment_scores(found, RUBRIC)) == {"presentation", "epistemics"}


def test_an_empty_answer_meets_nothing_and_nobody_is_asked():
    judge = ScriptedModel()
    [found] = LongAnswerGrader(judge).assess([ITEM._replace(answer=" ")])
    scores = assessment_scores(found, RUBRIC)
    assert (scores["rubric_score"], scores["rubric_must"], scores["epistemics"], judge.texts) == (0, 0, 0, [])


def test_a_reversed_judge_sees_the_criteria_in_the_opposite_order_and_each_keeps_its_verdict():
    judge = ScriptedModel(write=lambda _, schema: answer(schema))
    [found] = LongAnswerGrader(judge, reverse=True).assess([ITEM])
    assert [one.verdict for one in found.criteria] == list(VERDICTS)
    prompt = next(one for one in judge.texts if "Names CO2" in one)
    assert prompt.index("4. Says that it warms") < prompt.index("1. Names CO2")


def test_a_small_judge_is_asked_as_a_large_one_is():
    judges = [
        ScriptedModel(write=lambda _, schema: answer(schema), parameters=n_parameters)
        for n_parameters in (135_000_000, None)
    ]
    small, large = (LongAnswerGrader(judge).assess([ITEM]) for judge in judges)
    assert small == large
    assert judges[0].texts == judges[1].texts


def test_the_prompts_name_every_part_of_the_schema():
    judge = ScriptedModel(write=lambda _, schema: answer(schema))
    LongAnswerGrader(judge).assess([ITEM])
    adequacy = next(one for one in judge.texts if "- style:" in one)
    assert re.findall(r"^- (\w+):", adequacy, re.MULTILINE) == [one.name for one in DIMENSIONS]
    assert "degree of certainty missing" in adequacy
