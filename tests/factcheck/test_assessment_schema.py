"""Assessments by one JSON answer: the order of its fields, and verdicts that are legal whatever a model answers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from climassay.factcheck.debate.assessment import (
    PLACEMENTS,
    UNPLACED,
    AssessmentPrompt,
    ElicitationConfig,
    answer_schema,
    assess,
    explain,
    read_answer,
)
from climassay.factcheck.scales import CLIMATE_FEEDBACK, CLIMATE_FEVER, SCALES
from climassay.factcheck.transcript import ALL_LEVELS, LIKELIHOODS, QUANTIFIABLE, Quotation
from climassay.models.contract import Completion, Message
from debate_parts import drive

PROMPT = (Message("user", "Claim: the Sun did it."),)


def interview(scale=CLIMATE_FEEDBACK, **changes):
    return AssessmentPrompt("m", PROMPT, (), scale, **changes)


CERTAINTY = ["evidence", "agreement", "confidence", "likelihood"]
JUDGED = ["quotations", "reasoning", "verdict", *CERTAINTY]


@pytest.mark.parametrize(
    ("one", "manner", "order"),
    [
        ({"passages": (1, 4)}, {}, [*JUDGED, "placement", "explanation"]),
        ({}, {}, [*JUDGED[1:], "placement", "explanation"]),
        ({"passages": (1,)}, {"verdict_first": True},
         ["verdict", "quotations", "reasoning", *CERTAINTY, "placement", "explanation"]),
        ({"passages": (1,), "gate": False, "others": ("IPCC",)}, {}, [*JUDGED, "explanation", "questions"]),
        ({"passages": (1,), "gate": False, "statements": (1, 2), "apart": False}, {}, [*JUDGED, "explanation"]),
        ({"passages": (1,), "statements": (1, 2), "replies": 2}, {},
         ["replies", "statements", *JUDGED[1:], "placement", "explanation"]),
    ],
    ids=["advocate", "no passages", "verdict first", "mediator", "mediator of statements", "statements and replies"],
)  # fmt: skip
def test_fields_of_the_schema_stand_in_the_order_of_the_decisions(one, manner, order):
    schema = answer_schema(interview(**one), ElicitationConfig("schema", **manner))
    assert list(schema["properties"]) == schema["required"] == order
    Draft202012Validator.check_schema(schema)
    if "statements" in one and one.get("apart", True):
        several = schema["properties"]["statements"]["properties"]
        assert list(several) == ["1", "2"]
        assert all(list(part["properties"]) == JUDGED for part in several.values())


def nodes(schema):
    """Every node of a schema."""
    yield schema
    for part in schema.get("properties", {}).values():
        yield from nodes(part)
    if "items" in schema:
        yield from nodes(schema["items"])


def test_every_node_is_typed_and_no_information_is_always_a_verdict():
    whole = interview(CLIMATE_FEVER, passages=(1, 2), others=("IPCC",), statements=(1, 2), replies=1)
    schema = answer_schema(whole, ElicitationConfig("schema"))
    assert all("type" in node for node in nodes(schema))
    assert all(not node["additionalProperties"] for node in nodes(schema) if node["type"] == "object")
    verdicts = ["REFUTES", "DISPUTED", "SUPPORTS", "NOT_ENOUGH_INFO"]
    assert schema["properties"]["verdict"]["enum"] == verdicts
    assert schema["properties"]["statements"]["properties"]["2"]["properties"]["verdict"]["enum"] == verdicts


def judged(**changes):
    return {
        "quotations": [{"passage": 1, "quotation": "The Sun \n did not.", "side": "against"}], "reasoning": "So.",
        "verdict": "misleading", "evidence": "robust", "agreement": "high", "confidence": "very high",
        "likelihood": "unlikely", **changes,
    }  # fmt: skip


def whole(**changes):
    return {**judged(), "placement": "outlier", "explanation": "Because [1].", "questions": [], **changes}


def test_one_request_is_enough():
    asked = interview(passages=(1,), others=("IPCC", "WMO"), statements=(1, 2), replies=1)
    questions = [
        {"to": "WMO", "question": "Why \n so?"},
        {"to": "NASA", "question": "Who?"},
        {"to": "IPCC", "question": " "},
    ]
    parts = {"1": judged(), "2": judged(verdict=CLIMATE_FEEDBACK.nei, quotations=[])}
    text = json.dumps(whole(questions=questions, statements=parts, replies={"1": "Close to zero [1]."}))
    found, [[ask]] = drive(
        assess(asked, ElicitationConfig("schema", temperature=0.5, seed=3)), lambda _: Completion(text, "stop")
    )
    assert ask.request.schema == answer_schema(asked, ElicitationConfig("schema"))
    assert (ask.request.sampling.temperature, ask.request.sampling.seed) == (0.5, 3)
    assert (found.verdict, found.placement, found.draft, found.explanation) == (
        "misleading", "outlier", "So.", "Because [1].",
    )  # fmt: skip
    assert found.quotations == (Quotation(1, "The Sun did not.", "against"),)
    assert (found.levels.confidence, found.levels.likelihood, found.goes_on) == ("very high", "unlikely", True)
    assert found.questions == (("WMO", "Why so?", ()),)
    assert found.replies == ("Close to zero [1].",)
    assert [part.verdict for part in found.statements] == ["misleading", CLIMATE_FEEDBACK.nei]
    assert drive(explain(asked, ElicitationConfig("schema"), found), None) == (found, [])


def test_a_quotation_tells_the_statements_that_it_bears_on():
    mediator = interview(passages=(1,), statements=(1, 3), apart=False, gate=False)
    schema = answer_schema(mediator, ElicitationConfig("schema"))["properties"]["quotations"]["items"]["properties"]
    assert schema["statements"]["items"]["maximum"] == 3
    quotations = [{**judged()["quotations"][0], "statements": named} for named in ([3, 1, 9], [])]
    found = read_answer(whole(quotations=quotations), mediator)
    assert [one.statements for one in found.quotations] == [(1, 3), ()]
    advocate = interview(passages=(1,), statements=(1, 3))
    found = read_answer(whole(statements={"1": judged(), "3": judged()}), advocate)
    assert [one.statements for part in found.statements for one in part.quotations] == [(1,), (3,)]


def test_questions_come_with_search_queries():
    asked = interview(others=("IPCC",))
    manner = ElicitationConfig("schema", queries=2)
    schema = answer_schema(asked, manner)["properties"]["questions"]["items"]
    assert list(schema["properties"]) == schema["required"] == ["to", "question", "queries"]
    question = {"to": "IPCC", "question": "Why?", "queries": ["solar \n forcing", " ", "ice", "sea"]}
    text = json.dumps(whole(questions=[question]))
    found, _ = drive(assess(asked, manner), lambda _: Completion(text, "stop"))
    assert found.questions == (("IPCC", "Why?", ("solar forcing", "ice")),)
    assert (
        "queries"
        not in answer_schema(asked, ElicitationConfig("schema"))["properties"]["questions"]["items"]["properties"]
    )


def test_the_place_of_a_claim_may_be_told_to_be_unknown():
    assert UNPLACED in answer_schema(interview(), ElicitationConfig("schema"))["properties"]["placement"]["enum"]
    found = read_answer(whole(placement=UNPLACED), interview())
    assert (found.verdict, found.placement) == ("misleading", None)


def test_incoherent_certainty_is_mended_and_a_likelihood_without_confidence_left_out():
    found = read_answer(whole(evidence="limited", agreement="low"), interview())
    assert (found.levels.confidence, found.levels.likelihood) == ("low", None)
    assert read_answer(whole(likelihood="not quantified"), interview()).levels.likelihood is None


@pytest.mark.parametrize("gate", [True, False])
def test_no_information_is_a_verdict_of_advocates_and_mediator_and_has_no_levels(gate):
    found = read_answer(whole(verdict=CLIMATE_FEEDBACK.nei), interview(gate=gate))
    assert (found.verdict, found.levels, found.explanation) == (CLIMATE_FEEDBACK.nei, None, "Because [1].")


def instances(schema):
    """Any JSON that satisfies a schema of ours."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "object":
        return st.fixed_dictionaries({name: instances(part) for name, part in schema["properties"].items()})
    if schema["type"] == "array":
        return st.lists(instances(schema["items"]), max_size=2)
    if schema["type"] == "integer":
        return st.integers(schema["minimum"], schema["maximum"])
    return st.text(max_size=20)


INTERVIEWS = st.builds(
    interview, st.sampled_from(list(SCALES.values())), gate=st.booleans(),
    others=st.sampled_from([(), ("IPCC",), ("IPCC", "WMO")]), passages=st.sampled_from([(), (1,), (2, 7)]),
    statements=st.sampled_from([(), (1, 2)]), apart=st.booleans(), replies=st.integers(0, 2),
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def is_legal(found, one):
    """Whether an assessment can stand in a transcript, once its quotations are looked up."""
    if found.error is not None:
        return found.verdict is None
    levels = found.levels
    certain = levels is None if found.verdict == one.scale.nei else (
        any((levels.evidence, levels.agreement, levels.confidence) == (w.evidence, w.agreement, w.confidence)
            for w in ALL_LEVELS)
        and (levels.likelihood is None or (levels.likelihood in LIKELIHOODS and levels.confidence in QUANTIFIABLE))
    )  # fmt: skip
    return (
        found.verdict in (*one.scale.labels, one.scale.nei)
        and certain
        and found.placement in (*PLACEMENTS, None)
        and found.goes_on in (True, False, None)
        and all(asked.to in one.others and asked.text for asked in found.questions)
        and all(isinstance(quotation.passage, int) for quotation in found.quotations)
        and all(set(quotation.statements) <= set(one.statements) for quotation in found.quotations)
        and len(found.replies) == one.replies
        and len(found.statements) == (len(one.statements) if one.apart else 0)
    )


@given(INTERVIEWS, st.data(), st.booleans())
def test_every_answer_under_the_schema_is_a_legal_assessment(one, data, verdict_first):
    schema = answer_schema(one, ElicitationConfig("schema", verdict_first))
    answer = data.draw(instances(schema))
    Draft202012Validator(schema).validate(answer)
    found = read_answer(answer, one)
    assert is_legal(found, one)
    assert found.verdict is not None


@given(INTERVIEWS, st.data())
def test_no_answer_against_the_schema_becomes_an_illegal_assessment(one, data):
    answer = data.draw(instances(answer_schema(one, ElicitationConfig("schema"))))
    for name in data.draw(st.lists(st.sampled_from(list(answer)), max_size=3)):
        answer[name] = data.draw(JSON)
    for name in data.draw(st.lists(st.sampled_from(list(answer)), max_size=1)):
        del answer[name]
    text = json.dumps(data.draw(st.sampled_from([answer, answer, answer, [answer]]) | JSON))
    cut = data.draw(st.sampled_from([None, None, 10]))
    found, _ = drive(assess(one, ElicitationConfig("schema")), lambda _: Completion(text[:cut], "stop"))
    assert is_legal(found, one)


def test_a_failed_schema_call_gives_its_reason():
    found, _ = drive(assess(interview(), ElicitationConfig("schema")), lambda _: Completion.failed("No luck."))
    assert (found.verdict, found.error) == (None, "No luck.")
