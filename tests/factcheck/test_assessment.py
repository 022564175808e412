"""Assessments by scores: their order, verdicts that are legal whatever a model answers, and calibration."""

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from climassay.factcheck.debate.assessment import (
    PLACEMENTS,
    AssessmentPrompt,
    ElicitationConfig,
    answer_schema,
    assess,
    explain,
    first_paragraph,
    read_answer,
    with_head,
)
from climassay.factcheck.debate.scheduler import AskOptions, AskText
from climassay.factcheck.scales import BINARY, CLIMATE_FEEDBACK, CLIMATE_FEVER, SCALES
from climassay.factcheck.transcript import ALL_LEVELS, LIKELIHOODS, QUANTIFIABLE, Quotation
from climassay.models.contract import Completion, Message, OptionScores
from debate_parts import drive

PROMPT = (Message("user", "Claim: the Sun did it."),)
BLANK = (Message("user", "Claim: N/A"),)
LEVELS_WORDS = " {}; agreement: {}; confidence: {}"
SURE = LEVELS_WORDS.format("robust", "high", "very high")
MEDIUM = LEVELS_WORDS.format("medium", "medium", "medium")


def interview(scale=CLIMATE_FEEDBACK, **changes):
    return AssessmentPrompt("m", PROMPT, BLANK, scale, **changes)


class Answers:
    """Prefers what is named, the first option otherwise; notes in words what it was asked, and the requests."""

    def __init__(self, *preferred, text="Sunlight has hardly changed.", fails=None, blank=None):
        self.preferred, self.text, self.fails, self.blank = preferred, text, fails, blank
        self.steps, self.asks = [], []

    def __call__(self, ask):
        self.asks.append(ask)
        prefix = ask.request.assistant_prefix
        kind = re.split("[:\n]", prefix.strip("\n").rpartition("\n")[2])[0] or "text"
        kind = "The claim is" if kind.startswith("The claim is") else kind
        if not (isinstance(ask, AskOptions) and ask.blank):
            self.steps.append(kind)
        if self.fails == (kind, getattr(ask, "blank", False)):
            return OptionScores.failed("No luck.") if isinstance(ask, AskOptions) else Completion.failed("No luck.")
        if isinstance(ask, AskText):
            return Completion(self.text, "stop")
        if ask.blank and self.blank is not None:
            return OptionScores(self.blank(ask))
        if ask.blank:
            return OptionScores((-1.0,) * len(ask.request.options))
        chosen = next((option for option in self.preferred if option in ask.request.options), ask.request.options[0])
        return OptionScores(tuple(-0.1 if option == chosen else -5.0 for option in ask.request.options))


def interviewed(answers, one=None, **manner):
    one, how = one or interview(), ElicitationConfig(**manner)

    def both():
        found = yield from assess(one, how)
        return (yield from explain(one, how, found))

    return drive(both(), answers)[0]


def test_certainty_then_draft_then_verdict_then_explanation():
    answers = Answers(SURE, " an outlier view", " very likely", " misleading")
    found = interviewed(answers)
    assert answers.steps == [
        "Information", "The claim is", "Evidence", "Likelihood", "Assessment", "Verdict", "Explanation"
    ]  # fmt: skip
    assert (found.verdict, found.placement, found.levels.likelihood) == ("misleading", "outlier", "very likely")
    assert (found.levels.evidence, found.levels.agreement, found.levels.confidence) == ("robust", "high", "very high")
    assert found.draft == found.explanation == "Sunlight has hardly changed."
    assert max(found.probabilities) == found.probabilities[CLIMATE_FEEDBACK.labels.index("misleading")]
    assert sum(found.probabilities) == pytest.approx(1)
    assert found.answer == (
        "Information: enough\nThe claim is an outlier view\nEvidence: robust; agreement: high; confidence: very high\n"
        "Likelihood: very likely\nAssessment: Sunlight has hardly changed.\nVerdict: misleading"
    )


def test_verdict_first_moves_the_verdict_and_nothing_else():
    preferred = (SURE, " an outlier view", " very likely", " misleading")
    last, first = Answers(*preferred), Answers(*preferred)
    interviewed(last)
    found = interviewed(first, verdict_first=True)
    assert first.steps == [
        "Information", "The claim is", "Verdict", "Evidence", "Likelihood", "Assessment", "Explanation"
    ]  # fmt: skip
    assert found.verdict == "misleading"
    assert found.answer == (
        "Information: enough\nThe claim is an outlier view\nVerdict: misleading\n"
        "Evidence: robust; agreement: high; confidence: very high\nLikelihood: very likely\n"
        "Assessment: Sunlight has hardly changed."
    )
    asked = [
        sorted((ask.request.options, ask.blank) for ask in one.asks if isinstance(ask, AskOptions))
        for one in (first, last)
    ]
    assert asked[0] == asked[1]


def test_every_question_continues_what_was_answered_before():
    answers = Answers(SURE)
    found = interviewed(answers)
    prefixes = [ask.request.assistant_prefix for ask in answers.asks if not getattr(ask, "blank", False)]
    assert all(f"{found.answer}\nExplanation:".startswith(prefix) for prefix in prefixes)
    assert all(ask.request.messages == (BLANK if getattr(ask, "blank", False) else PROMPT) for ask in answers.asks)


@pytest.mark.parametrize("levels", ALL_LEVELS, ids=lambda one: f"{one.evidence} {one.agreement} {one.confidence}")
def test_a_likelihood_is_asked_for_with_high_confidence_only(levels):
    answers = Answers(LEVELS_WORDS.format(levels.evidence, levels.agreement, levels.confidence), " unlikely")
    found = interviewed(answers)
    quantified = levels.confidence in QUANTIFIABLE
    assert ("Likelihood" in answers.steps) == quantified
    assert found.levels.likelihood == ("unlikely" if quantified else None)
    assert (found.levels.evidence, found.levels.agreement) == (levels.evidence, levels.agreement)
    assert found.levels.confidence == levels.confidence


@pytest.mark.parametrize("verdict_first", [False, True])
def test_without_information_nothing_more_is_asked(verdict_first):
    answers = Answers(" not enough")
    found = interviewed(answers, verdict_first=verdict_first)
    assert answers.steps == ["Information", "The claim is"]
    assert (found.verdict, found.levels, found.probabilities, found.explanation) == (CLIMATE_FEEDBACK.nei, None, (), "")


def test_the_mediator_is_not_asked_whether_there_is_information():
    answers = Answers(" not enough", MEDIUM)
    found = interviewed(answers, interview(gate=False))
    assert answers.steps == ["Evidence", "Assessment", "Verdict", "Explanation"]
    assert found.placement is None


def test_brief_texts_begin_without_the_lines_above_them():
    answers = Answers(MEDIUM, " incorrect")
    found = interviewed(answers, brief=True)
    lead = "This is rated \u201cincorrect\u201d, because"
    assert [ask.request.assistant_prefix for ask in answers.asks if isinstance(ask, AskText)] == ["", lead]
    assert found.draft == "Sunlight has hardly changed."
    assert (found.lead, found.explanation) == (lead, "Sunlight has hardly changed.")
    assert "Assessment: Sunlight has hardly changed.\nVerdict: incorrect" in found.answer


WEIGHED = ("Information", "The claim is", "Evidence", "Likelihood", "Verdict")


@pytest.mark.parametrize(
    ("kind", "blank"), [("Assessment", False), *((kind, blank) for kind in WEIGHED for blank in (False, True))]
)
def test_a_failed_call_gives_no_verdict_but_its_reason(kind, blank):
    found = interviewed(Answers(SURE, fails=(kind, blank)))
    assert (found.verdict, found.error, found.probabilities) == (None, "No luck.", ())


LOGS = st.floats(-1e6, 0)


@given(st.data(), st.sampled_from(list(SCALES.values())), st.booleans(), st.booleans(), st.booleans())
def test_any_scores_lead_to_a_legal_verdict(data, scale, calibrated, verdict_first, gate):
    def answer(ask):
        if isinstance(ask, AskText):
            return Completion(data.draw(st.text(max_size=20)), "length")
        count = len(ask.request.options)
        return OptionScores(tuple(data.draw(st.lists(LOGS, min_size=count, max_size=count))))

    found = interviewed(answer, interview(scale, gate=gate), calibrated=calibrated, verdict_first=verdict_first)
    assert found.error is None
    if found.verdict == scale.nei:
        assert gate
        return
    assert found.verdict in scale.labels
    assert len(found.probabilities) == len(scale.labels)
    assert sum(found.probabilities) == pytest.approx(1)
    assert found.probabilities[scale.labels.index(found.verdict)] == max(found.probabilities)
    levels = found.levels
    assert (levels.evidence, levels.agreement, levels.confidence) in {
        (one.evidence, one.agreement, one.confidence) for one in ALL_LEVELS
    }
    assert levels.likelihood in (None, *LIKELIHOODS)
    assert found.placement in (PLACEMENTS if gate else (None,))


def prefers_first(ask):
    """What a model answers that likes the first option whatever it reads."""
    return tuple(-0.1 if place == 0 else -9.0 for place in range(len(ask.request.options)))


def test_what_a_model_prefers_without_content_is_taken_off():
    def biased(ask):
        if isinstance(ask, AskText):
            return Completion("So.", "stop")
        scores = list(prefers_first(ask))
        if not ask.blank and " accurate" in ask.request.options:
            scores[ask.request.options.index(" accurate")] += 1.0
        return OptionScores(tuple(scores))

    assert interviewed(biased, calibrated=False).verdict == "incorrect"
    found = interviewed(biased)
    assert found.verdict == "accurate"
    others = [p for label, p in zip(CLIMATE_FEEDBACK.labels, found.probabilities, strict=True) if label != "accurate"]
    assert found.probabilities[CLIMATE_FEEDBACK.labels.index("accurate")] == pytest.approx(others[0] * math.e)
    assert others == pytest.approx([others[0]] * 11)


def test_gate_levels_and_likelihood_are_calibrated_too():
    def answer(ask):
        if isinstance(ask, AskText):
            return Completion("So.", "stop")
        wanted = {" not enough", SURE, " likely", " misleading"} & set(ask.request.options)
        scores = prefers_first(ask)
        return OptionScores(
            scores if ask.blank else tuple(s + (o in wanted) for s, o in zip(scores, ask.request.options, strict=True))
        )

    assert interviewed(answer).verdict == CLIMATE_FEEDBACK.nei
    found = interviewed(answer, interview(gate=False))
    assert (found.levels.confidence, found.levels.likelihood, found.verdict) == ("very high", "likely", "misleading")


@pytest.mark.parametrize("verdict_first", [False, True])
def test_the_content_free_twin_of_a_question_depends_on_no_text(verdict_first):
    """So that it is the same for every claim that is answered alike, and is asked once a run."""
    asked = []
    for text in ("One draft.", "Quite another draft, which is longer."):
        answers = Answers(SURE, text=text)
        interviewed(answers, verdict_first=verdict_first)
        options = [ask for ask in answers.asks if isinstance(ask, AskOptions)]
        asked.append([ask for ask in options if ask.blank])
        assert len(asked[-1]) == len(options) / 2
    assert asked[0] == asked[1]
    assert not any("draft" in ask.request.assistant_prefix for ask in asked[0])


SHARES = st.lists(st.floats(1e-6, 1), min_size=4, max_size=4).map(lambda some: tuple(one / sum(some) for one in some))


@given(SHARES, st.data(), st.sampled_from(list(SCALES.values())))
def test_a_head_decides_between_the_sides_and_the_model_within_one(head, data, scale):
    scores = data.draw(st.lists(st.floats(-800, 0), min_size=len(scale.labels), max_size=len(scale.labels)))
    weights = [math.exp(score - max(scores)) for score in scores]
    model = tuple(weight / sum(weights) for weight in weights)
    found = with_head(model, head, scale)
    assert sum(found) == pytest.approx(1)
    assert all(share >= 0 for share in found)
    refutes, disputed, supports, _ = head
    total = refutes + disputed + supports
    if scale is CLIMATE_FEVER:
        assert found == pytest.approx((refutes / total, disputed / total, supports / total))
        return
    right = sum(share for label, share in zip(scale.labels, found, strict=True) if scale.is_correct(label))
    assert right == pytest.approx((supports + disputed / 2) / total)
    for side in (True, False):
        places = [place for place, label in enumerate(scale.labels) if scale.is_correct(label) is side]
        if sum(model[place] for place in places) > 1e-9:
            order = sorted(places, key=lambda place: model[place])
            assert [found[place] for place in order] == sorted(found[place] for place in places)


def test_worked_example_of_a_head():
    # 0.6 on the right (0.5 supports, half of 0.2 disputed); the model is sure that it is on the wrong side.
    assert with_head((0.9, 0.1), (0.3, 0.2, 0.5, 0.0), BINARY) == pytest.approx((0.4, 0.6))


def test_with_a_head_the_gate_stops_nothing():
    answers = Answers(" not enough", " incorrect")
    found = interviewed(answers, interview(BINARY, head=(0.1, 0.0, 0.8, 0.1)))
    assert found.verdict == "correct"
    assert found.probabilities == pytest.approx((0.1 / 0.9, 0.8 / 0.9))
    assert "Verdict: correct" in found.answer


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("One. Two.", "One. Two."), ("\n\n  One.\nTwo. \n\nThree.", "One. Two."), ("One.\nVerdict: correct", "One."),
        ("One.\n  Verdict: correct", "One."), ("One.\nNext: close the debate", "One."),
        ("One.\nThe claim is wrong: it says so.", "One. The claim is wrong: it says so."),
        ("Note: one.\nVerdicts: many", "Note: one. Verdicts: many"), ("", ""),
    ],
)  # fmt: skip
def test_a_text_ends_where_another_field_begins(text, kept):
    assert first_paragraph(text) == kept


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


def test_incoherent_certainty_is_mended_and_a_likelihood_without_confidence_left_out():
    found = read_answer(whole(evidence="limited", agreement="low"), interview())
    assert (found.levels.confidence, found.levels.likelihood) == ("low", None)
    assert read_answer(whole(likelihood="not quantified"), interview()).levels.likelihood is None


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
