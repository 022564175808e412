"""Assessments by one JSON answer: the order of its fields, and verdicts that are legal whatever a model answers."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from climassay.factcheck.assessment import PLACEMENTS, Interview, Manner, answer_schema, assess, explain, read_answer
from climassay.factcheck.levels import ALL_LEVELS, LIKELIHOODS, QUANTIFIABLE
from climassay.factcheck.scales import CLIMATE_FEEDBACK, CLIMATE_FEVER, SCALES
from climassay.models.contract import Completion, Message
from debate_parts import drive

PROMPT = (Message("user", "Claim: the Sun did it."),)


def interview(scale=CLIMATE_FEEDBACK, **changes):
    return Interview("m", PROMPT, (), scale, **changes)


CERTAINTY = ["evidence", "agreement", "confidence", "likelihood", "assessment"]


@pytest.mark.parametrize(
    ("one", "manner", "order"),
    [
        ({}, {}, ["information", "placement", *CERTAINTY, "verdict", "explanation"]),
        ({}, {"verdict_first": True}, ["information", "placement", "verdict", *CERTAINTY, "explanation"]),
        ({"gate": False}, {}, [*CERTAINTY, "verdict", "explanation"]),
        ({"gate": False, "follow_up": True, "others": ("IPCC",)}, {},
         [*CERTAINTY, "verdict", "explanation", "next", "questions"]),
    ],
    ids=["advocate", "verdict first", "no gate", "mediator"],
)  # fmt: skip
def test_fields_of_the_schema_stand_in_the_order_of_the_decisions(one, manner, order):
    schema = answer_schema(interview(**one), Manner("schema", **manner))
    assert list(schema["properties"]) == schema["required"] == order
    Draft202012Validator.check_schema(schema)


def test_the_schema_knows_the_scale_and_no_information_only_behind_a_gate():
    gated, free = (answer_schema(interview(CLIMATE_FEVER, gate=gate), Manner("schema")) for gate in (True, False))
    assert gated["properties"]["verdict"]["enum"] == ["REFUTES", "DISPUTED", "SUPPORTS", "NOT_ENOUGH_INFO"]
    assert free["properties"]["verdict"]["enum"] == ["REFUTES", "DISPUTED", "SUPPORTS"]


def whole(**changes):
    return {
        "information": "enough", "placement": "outlier", "evidence": "high", "agreement": "high",
        "confidence": "very high", "likelihood": "likely", "assessment": "So.", "verdict": "misleading",
        "explanation": "Because [1].", "next": "close the debate", "questions": [], **changes,
    }  # fmt: skip


def test_one_request_is_enough():
    asked = interview(follow_up=True, others=("IPCC", "WMO"))
    questions = [
        {"to": "WMO", "question": "Why \n so?"},
        {"to": "NASA", "question": "Who?"},
        {"to": "IPCC", "question": " "},
    ]
    text = json.dumps(whole(questions=questions))
    found, [[ask]] = drive(assess(asked, Manner("schema", temperature=0.5, seed=3)), lambda _: Completion(text, "stop"))
    assert ask.request.schema == answer_schema(asked, Manner("schema"))
    assert (ask.request.sampling.temperature, ask.request.sampling.seed) == (0.5, 3)
    assert (found.verdict, found.placement, found.draft, found.explanation) == (
        "misleading", "outlier", "So.", "Because [1].",
    )  # fmt: skip
    assert (found.levels.confidence, found.levels.likelihood, found.goes_on) == ("very high", "likely", False)
    assert found.questions == (("WMO", "Why so?"),)
    assert drive(explain(asked, Manner("schema"), found), None) == (found, [])


def test_incoherent_certainty_is_mended_and_a_likelihood_without_confidence_left_out():
    found = read_answer(whole(evidence="low", agreement="low"), interview())
    assert (found.levels.confidence, found.levels.likelihood) == ("low", None)
    assert read_answer(whole(likelihood="not quantified"), interview()).levels.likelihood is None


@pytest.mark.parametrize("changes", [{"information": "not enough"}, {"verdict": CLIMATE_FEEDBACK.nei}])
def test_no_information_is_a_verdict_behind_a_gate_and_an_error_without_one(changes):
    found = read_answer(whole(**changes), interview())
    assert (found.verdict, found.levels, found.explanation) == (CLIMATE_FEEDBACK.nei, None, "Because [1].")
    given_anyway = assess(interview(gate=False), Manner("schema"))
    text = json.dumps(whole(**changes))
    found, _ = drive(given_anyway, lambda _: Completion(text, "stop"))
    assert found.verdict == ("misleading" if "information" in changes else None)


def instances(schema):
    """Any JSON that satisfies a schema of ours."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "object":
        return st.fixed_dictionaries({name: instances(part) for name, part in schema["properties"].items()})
    if schema["type"] == "array":
        return st.lists(instances(schema["items"]), max_size=schema["maxItems"])
    return st.text(max_size=min(20, schema["maxLength"]))


INTERVIEWS = st.builds(
    interview, st.sampled_from(list(SCALES.values())), gate=st.booleans(), follow_up=st.booleans(),
    others=st.sampled_from([(), ("IPCC",), ("IPCC", "WMO")]),
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def is_legal(found, one):
    """Whether an assessment can stand in a transcript."""
    if found.error is not None:
        return found.verdict is None
    if found.verdict == one.scale.nei:
        return one.gate and found.levels is None
    levels = found.levels
    return (
        found.verdict in one.scale.labels
        and any((levels.evidence, levels.agreement, levels.confidence) == (w.evidence, w.agreement, w.confidence)
                for w in ALL_LEVELS)
        and (levels.likelihood is None or (levels.likelihood in LIKELIHOODS and levels.confidence in QUANTIFIABLE))
        and found.placement in (*PLACEMENTS, None)
        and found.goes_on in (True, False, None)
        and all(to in one.others and text for to, text in found.questions)
    )  # fmt: skip


@settings(deadline=None)
@given(INTERVIEWS, st.data(), st.booleans())
def test_every_answer_under_the_schema_is_a_legal_assessment(one, data, verdict_first):
    schema = answer_schema(one, Manner("schema", verdict_first))
    answer = data.draw(instances(schema))
    Draft202012Validator(schema).validate(answer)
    found = read_answer(answer, one)
    assert is_legal(found, one)
    assert found.verdict is not None


@settings(deadline=None)
@given(INTERVIEWS, st.data())
def test_no_answer_against_the_schema_becomes_an_illegal_assessment(one, data):
    answer = data.draw(instances(answer_schema(one, Manner("schema"))))
    for name in data.draw(st.lists(st.sampled_from(list(answer)), max_size=3)):
        answer[name] = data.draw(JSON)
    for name in data.draw(st.lists(st.sampled_from(list(answer)), max_size=1)):
        del answer[name]
    text = json.dumps(data.draw(st.sampled_from([answer, answer, answer, [answer]]) | JSON))
    cut = data.draw(st.sampled_from([None, None, 10]))
    found, _ = drive(assess(one, Manner("schema")), lambda _: Completion(text[:cut], "stop"))
    assert is_legal(found, one)


def test_a_failed_schema_call_gives_its_reason():
    found, _ = drive(assess(interview(), Manner("schema")), lambda _: Completion.failed("No luck."))
    assert (found.verdict, found.error) == (None, "No luck.")
