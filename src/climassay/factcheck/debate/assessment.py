"""Assessments of a claim, each requested from a model as one JSON object under a schema.

The object has quotations for and against the claim, reasoning, verdict, certainty and explanation, in this order. The
judgements of a claim's statements and the replies to questions come in the same object. The schema allows no verdict
but the labels of the scale, including "not enough information".
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast, get_args

from climassay.factcheck.certainty import (
    AGREEMENT,
    CONFIDENCES,
    EVIDENCE,
    LIKELIHOODS,
    QUANTIFIABLE,
    Levels,
    nearest_confidence,
)
from climassay.factcheck.debate.requests import RequestGenerator, request_text
from climassay.factcheck.debate.setup import DebateSetup
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import Placement, Quotation, Side
from climassay.models.contract import GenerationRequest, Message, object_schema
from climassay.prompts import Profile

PLACEMENTS: tuple[Placement, ...] = get_args(Placement)
UNQUANTIFIED = "not quantified"
"""Answer option for giving no likelihood."""
UNPLACED = "cannot be told"
"""Answer option for an unknown placement."""
MAX_QUESTIONS = 3
"""Maximum number of questions of a participant in one round; the prompts state it."""
_MAX_QUOTATION_LENGTH = 1000
_MAX_QUOTATIONS = 6
"""Maximum number of quotations in one answer. Small models fill the list, so this number determines their response
time."""
_CHARACTERS_PER_TOKEN = 10
"""Number of characters that the schema allows per token. The number is generous, because local models' texts are cut
off at the limit."""


@dataclass(frozen=True, slots=True)
class AssessmentPrompt:
    """Prompt of one assessment, with the values that its answer may contain."""

    messages: tuple[Message, ...]
    """Messages that state role, duties and claim, and contain the passages or opinions to weigh."""
    passages: tuple[int, ...]
    """Numbers of the passages that may be quoted."""
    statements: tuple[int, ...]
    """Numbers of the claim's statements if there are several."""
    recipients: tuple[str, ...]
    """Names of the advocates to whom questions may be addressed."""
    is_advocate: bool
    """Whether an advocate answers: it judges each statement and then the claim, and places the claim. The mediator
    judges the claim only; its quotations name the statements that they concern."""
    n_replies: int = 0
    """Number of questions that the answer must reply to before the assessment."""


class AdvocateQuestion(NamedTuple):
    """A question to an advocate."""

    to: str
    """Name of the advocate."""
    text: str
    queries: tuple[str, ...] = ()
    """Search queries that may find the answer."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """Assessment of a claim by a model."""

    verdict: str | None = None
    """Label of the scale, including "not enough information"; None if the call failed."""
    levels: Levels | None = None
    placement: Placement | None = None
    reasoning: str = ""
    """Text written before the verdict."""
    explanation: str = ""
    questions: tuple[AdvocateQuestion, ...] = ()
    quotations: tuple[Quotation, ...] = ()
    """Quotations as the model wrote them, not yet verified."""
    replies: tuple[str, ...] = ()
    """Replies to the questions, in their order."""
    statements: "tuple[Assessment, ...]" = ()
    """Assessments of the individual statements; empty if they were not judged."""
    error: str | None = None


def assess(model: str, prompt: AssessmentPrompt, setup: DebateSetup) -> RequestGenerator[Assessment]:
    """Request an assessment from a model; a failed call or a malformed answer is an assessment with an error."""
    schema = answer_schema(prompt, setup.scale, setup.profile)
    completion = yield from request_text(model, GenerationRequest(prompt.messages, setup.sampling, schema=schema))
    if completion.error is not None:
        return Assessment(error=completion.error)
    try:
        return parse_answer(json.loads(completion.text), prompt, setup.scale, setup.profile)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Assessment(error="The model's answer does not satisfy the schema, although it was asked for.")


# ----------------------------------------------------------------------------------------------------------- schema


def answer_schema(prompt: AssessmentPrompt, scale: Scale, profile: Profile) -> dict[str, Any]:
    """Return the JSON schema of an assessment, with the fields in the order in which they are to be decided."""
    text = {"type": "string", "maxLength": profile.text_tokens * _CHARACTERS_PER_TOKEN}
    judgement = _judgement_schema(prompt, scale, text)
    fields: dict[str, Any] = {}
    if prompt.n_replies:
        fields["replies"] = object_schema({str(number): text for number in range(1, prompt.n_replies + 1)})
    if prompt.is_advocate and prompt.statements:
        fields["statements"] = object_schema({str(number): object_schema(judgement) for number in prompt.statements})
        judgement = {name: schema for name, schema in judgement.items() if name != "quotations"}
    fields |= judgement
    if prompt.is_advocate:
        fields["placement"] = _enum_schema([*PLACEMENTS, UNPLACED])
    fields["explanation"] = text
    if prompt.recipients:
        question = {"to": _enum_schema(prompt.recipients), "question": text}
        if profile.queries:
            question["queries"] = {"type": "array", "items": text, "maxItems": profile.queries}
        fields["questions"] = {"type": "array", "items": object_schema(question), "maxItems": MAX_QUESTIONS}
    return object_schema(fields)


def _judgement_schema(prompt: AssessmentPrompt, scale: Scale, text: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schemas of the fields that judge a statement or a claim."""
    fields: dict[str, Any] = {}
    if prompt.passages:
        quotation: dict[str, Any] = {
            "passage": {"type": "integer", "enum": list(prompt.passages)},
            "quotation": {"type": "string", "maxLength": min(_MAX_QUOTATION_LENGTH, text["maxLength"])},
            "side": _enum_schema(get_args(Side)),
        }
        if prompt.statements and not prompt.is_advocate:
            number = {"type": "integer", "minimum": 1, "maximum": max(prompt.statements)}
            quotation["statements"] = {"type": "array", "items": number, "maxItems": len(prompt.statements)}
        fields["quotations"] = {"type": "array", "items": object_schema(quotation), "maxItems": _MAX_QUOTATIONS}
    return fields | {
        "reasoning": text,
        "verdict": _enum_schema([*scale.labels, scale.nei]),
        "evidence": _enum_schema(EVIDENCE),
        "agreement": _enum_schema(AGREEMENT),
        "confidence": _enum_schema(CONFIDENCES),
        "likelihood": _enum_schema([UNQUANTIFIED, *LIKELIHOODS]),
    }


def _enum_schema(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


# ----------------------------------------------------------------------------------------------------------- answer


def parse_answer(data: Mapping[str, Any], prompt: AssessmentPrompt, scale: Scale, profile: Profile) -> Assessment:
    """Convert a model's JSON answer to an assessment.

    Questions to unknown advocates are dropped, and the numbers of questions and of their queries are limited.

    Raises:
        KeyError: A field is missing.
        ValueError: The verdict is not a label of the scale, or a level is unknown.
        TypeError, AttributeError: A field has another type.
    """
    questions = []
    for entry in data.get("questions", []):
        queries = tuple(filter(None, map(_join_lines, entry.get("queries", ()))))[: profile.queries]
        question = AdvocateQuestion(str(entry["to"]), _join_lines(entry["question"]), queries)
        if question.to in prompt.recipients and question.text:
            questions.append(question)
    statements = []
    for number in prompt.statements if prompt.is_advocate else ():
        statement = _parse_judgement(data["statements"][str(number)], prompt, scale)
        quotations = tuple(replace(quotation, statements=(number,)) for quotation in statement.quotations)
        statements.append(replace(statement, quotations=quotations))
    claim, placement = _parse_judgement(data, prompt, scale), data.get("placement")
    return replace(
        claim,
        placement=cast(Placement, placement) if claim.levels is not None and placement in PLACEMENTS else None,
        explanation=str(data["explanation"]),
        questions=tuple(questions[:MAX_QUESTIONS]),
        replies=tuple(str(data["replies"][str(number + 1)]) for number in range(prompt.n_replies)),
        statements=tuple(statements),
    )


def _join_lines(text: object) -> str:
    return " ".join(str(text).split())


def _parse_judgement(data: Mapping[str, Any], prompt: AssessmentPrompt, scale: Scale) -> Assessment:
    quotations = []
    for entry in data.get("quotations", []):
        number, side = entry["passage"], entry["side"]
        if not isinstance(number, int) or side not in get_args(Side):
            raise TypeError("A quotation names its passage by a number, and its side.")
        numbers = entry.get("statements", ())
        statements = tuple(statement for statement in prompt.statements if statement in numbers)
        quotations.append(Quotation(int(number), _join_lines(entry["quotation"]), side, statements))
    verdict = str(data["verdict"])
    assessment = Assessment(verdict, reasoning=str(data["reasoning"]), quotations=tuple(quotations))
    if verdict == scale.nei:
        return assessment
    if verdict not in scale.labels:
        raise ValueError(f"{verdict!r} is not a verdict of the scale {scale.name}.")
    confidence = nearest_confidence(data["evidence"], data["agreement"], data["confidence"])
    is_quantified = confidence in QUANTIFIABLE and data["likelihood"] in LIKELIHOODS
    likelihood = data["likelihood"] if is_quantified else None
    return replace(assessment, levels=Levels(data["evidence"], data["agreement"], confidence, likelihood))
