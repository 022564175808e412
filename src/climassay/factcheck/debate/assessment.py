"""How an assessment is got out of a model.

The verdict comes from an answer under a JSON schema or from weighing the scale's labels, never from searching a text,
so that it is legal every time. Two ways to ask:

- ``schema``, for models that can reason: one JSON object, whose fields appear in the order in which a careful person
  would fill them in: what speaks for and against, quoted; the reasoning; the verdict; evidence, agreement, confidence
  and likelihood; the explanation. Several statements of a claim, the claim as a whole and the answers to questions come
  in one object.
- ``scored``, for very small models: the answer is written line by line in the paper's order (Leippold et al. 2024,
  appendix G and the listings: certainty, draft, verdict, explanation); what has a fixed set of answers is decided by
  their probabilities, corrected by those of a content-free prompt (Zhao et al. 2021), and texts are generated between.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast, get_args

from climassay.errors import ModelError
from climassay.factcheck.debate.scheduler import AskOptions, Steps, ask_options, ask_text
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import (
    AGREEMENT,
    ALL_LEVELS,
    CONFIDENCES,
    EVIDENCE,
    LIKELIHOODS,
    QUANTIFIABLE,
    Levels,
    Placement,
    Quotation,
    Side,
    coherent,
)
from climassay.models.contract import (
    BLANK,
    Completion,
    GenerationRequest,
    Message,
    OptionRequest,
    OptionScores,
    Sampling,
    object_schema,
    option_probabilities,
)
from climassay.prompts import RenderedPrompt

Elicitation = Literal["scored", "schema"]
PLACEMENTS: tuple[Placement, ...] = get_args(Placement)
_PLACEMENT_WORDS: Mapping[Placement, str] = {
    "consensus": " the consensus view",
    "outlier": " an outlier view",
    "exaggerated": " an exaggeration of something true",
    "misleading": " something true that is presented in a misleading way",
}
UNQUANTIFIED = "not quantified"
"""The answer where no likelihood is given."""
UNPLACED = "cannot be told"
"""The answer where nothing tells the claim's place in what is known (``schema``)."""


@dataclass(frozen=True, slots=True)
class ElicitationConfig:
    """How assessments are asked for; the same in a whole debate."""

    elicitation: Elicitation = "scored"
    verdict_first: bool = False
    """Decide the verdict before certainty and draft, for comparison."""
    calibrated: bool = True
    """Correct probabilities by those of a content-free prompt (``scored`` only: generated answers never are)."""
    brief: bool = False
    """For models too small to follow all rules at once: a short prompt, and texts begin without the lines above them
    (``scored`` only)."""
    side_check: bool = True
    """Ask the model which side an explanation takes (``scored`` only)."""
    text_tokens: int = 80
    """Room for a draft, an explanation or a reply."""
    temperature: float = 0.0
    seed: int = 0
    queries: int = 0
    """Maximum number of search queries that come with a question to an advocate (``schema`` only)."""

    @property
    def sampling(self) -> Sampling:
        """How drafts, explanations, questions and replies are written."""
        return Sampling(self.text_tokens, self.temperature, seed=self.seed, stop=("\n\n",))


@dataclass(frozen=True, slots=True)
class AssessmentPrompt:
    """What one assessment is asked with."""

    model: str
    messages: tuple[Message, ...]
    """The prompt: role, duties, claim, and what the assessment rests on."""
    blank: tuple[Message, ...]
    """The same prompt without content."""
    scale: Scale
    gate: bool = True
    """Whether the claim's place in what is known is asked for, and in ``scored`` whether there is enough information;
    in ``schema`` "not enough information" is always one of the verdicts."""
    others: tuple[str, ...] = ()
    """Whom it may put a question to (``schema``)."""
    passages: tuple[int, ...] = ()
    """Numbers of the passages that it may quote (``schema``)."""
    statements: tuple[int, ...] = ()
    """Numbers of the claim's statements, where there are several (``schema``)."""
    apart: bool = True
    """Whether each of them is judged, before the whole claim; if not, quotations name those that they bear on."""
    replies: int = 0
    """Questions to be answered first (``schema``)."""


class Question(NamedTuple):
    """A question to an advocate."""

    to: str
    text: str
    queries: tuple[str, ...] = ()
    """What to search for, to answer it."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What came of an interview."""

    verdict: str | None = None
    """A label of the scale, its "not enough information" included; None where a call failed."""
    levels: Levels | None = None
    placement: Placement | None = None
    probabilities: tuple[float, ...] = ()
    draft: str = ""
    explanation: str = ""
    lead: str = ""
    """Words of ours that the explanation continues; they rest on no passage."""
    cut: bool = False
    """Whether the explanation was cut off."""
    answer: str = ""
    """The assistant's answer so far, to be continued (``scored``)."""
    questions: tuple[Question, ...] = ()
    goes_on: bool | None = None
    """Whether the debate should go on, which is to say whether there are questions; None where none could be put."""
    quotations: tuple[Quotation, ...] = ()
    """As the model gave them, before they are looked up."""
    replies: tuple[str, ...] = ()
    """To the questions that were put to it, in their order."""
    statements: "tuple[Assessment, ...]" = ()
    """The single statements, where they were judged along with the whole."""
    error: str | None = None


def assess(interview: AssessmentPrompt, config: ElicitationConfig) -> Steps[Assessment]:
    """Everything but the explanation where the elicitation is ``scored``; with it where it is ``schema``."""
    if config.elicitation != "schema":
        try:
            return (yield from _by_scores(interview, config))
        except ModelError as error:
            return Assessment(error=str(error))
    sampling = Sampling(None, config.temperature, seed=config.seed)
    request = GenerationRequest(interview.messages, sampling, schema=answer_schema(interview, config))
    completion = yield from ask_text(interview.model, request)
    if completion.error is not None:
        return Assessment(error=completion.error)
    try:
        return read_answer(json.loads(completion.text), interview, config.queries)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Assessment(error="The model's answer does not satisfy the schema, although it was asked for.")


def explain(interview: AssessmentPrompt, config: ElicitationConfig, assessment: Assessment) -> Steps[Assessment]:
    """The assessment with its explanation; as it is where it has one, failed, or has not enough information."""
    if config.elicitation == "schema" or assessment.error or assessment.verdict in (None, interview.scale.nei):
        return assessment
    lead = explanation_lead(assessment.verdict or "")
    completion = yield from _write(interview, config, lead if config.brief else f"{assessment.answer}\nExplanation:")
    if completion.error is not None:
        return replace(assessment, error=completion.error)
    return replace(
        assessment,
        explanation=first_paragraph(completion.text),
        lead=lead if config.brief else "",
        cut=completion.finish_reason == "length",
    )


def explanation_lead(verdict: str) -> str:
    """How the explanation of a very small model begins."""
    return f"This is rated \u201c{verdict}\u201d, because"


def _write(interview: AssessmentPrompt, config: ElicitationConfig, answer: str) -> Steps[Completion]:
    request = GenerationRequest(interview.messages, config.sampling, assistant_prefix=answer)
    return (yield from ask_text(interview.model, request))


def first_paragraph(text: str) -> str:
    """The text up to the first empty line or to a line that begins another field."""
    kept: list[str] = []
    for line in text.strip().splitlines():
        if kept and (not line.strip() or line.partition(":")[0].strip() in _FIELDS):
            break
        kept.append(line.strip())
    return " ".join(part for part in kept if part)


_FIELDS = frozenset({"Information", "Evidence", "Likelihood", "Assessment", "Verdict", "Explanation", "Next"})


# ------------------------------------------------------------------------------------------------------ by scores


@dataclass(slots=True)
class _Sheet:
    """An answer on its way, beside the content-free answer that it is compared with."""

    interview: AssessmentPrompt
    calibrated: bool
    answer: str = ""
    blank: str = ""

    def add(self, text: str, blank: str | None = None) -> None:
        """Continue both answers; the content-free one with ``blank`` where the text is the model's own."""
        self.answer += text
        self.blank += text if blank is None else blank

    def asks(self, lead: str, options: Sequence[str]) -> list[AskOptions]:
        """Requests that weigh the options after ``lead``, the content-free one second."""
        one, model = self.interview, self.interview.model
        asks = [AskOptions(model, OptionRequest(one.messages, tuple(options), self.answer + lead))]
        if self.calibrated:
            asks.append(AskOptions(model, OptionRequest(one.blank, tuple(options), self.blank + lead), blank=True))
        return asks


def probabilities_of(answers: Sequence[OptionScores]) -> tuple[float, ...]:
    """Probabilities from the scores of a request, and of its content-free twin where there is one.

    Raises:
        ModelError: A request failed.
    """
    return option_probabilities(answers[0], answers[1] if len(answers) > 1 else None)


def weigh(
    model: str, prompts: Sequence[RenderedPrompt], options: Sequence[str], config: ElicitationConfig
) -> Steps[tuple[float, ...]]:
    """Probabilities of options after a prompt, corrected by those after the second one, which has no content.

    Raises:
        ModelError: A request failed.
    """
    asks = [
        AskOptions(model, OptionRequest(one.messages, tuple(options), one.assistant_prefix), blank)
        for one, blank in zip(prompts, (False, True), strict=True)
    ]
    return probabilities_of((yield from ask_options(asks if config.calibrated else asks[:1])))


def most_probable(probabilities: Sequence[float]) -> int:
    """Place of the greatest, the first of equals."""
    return max(range(len(probabilities)), key=probabilities.__getitem__)


def _by_scores(interview: AssessmentPrompt, config: ElicitationConfig) -> Steps[Assessment]:
    scale, sheet = interview.scale, _Sheet(interview, config.calibrated)
    known: dict[str, Any] = {}
    if interview.gate:
        # Whether there is enough to judge by, and where the claim stands, are read off one pass over the prompt.
        gate = sheet.asks("Information:", (" enough", " not enough"))
        place = sheet.asks("Information: enough\nThe claim is", [_PLACEMENT_WORDS[one] for one in PLACEMENTS])
        answers = yield from ask_options([*gate, *place])
        enough, missing = probabilities_of(answers[: len(gate)])
        known["placement"] = PLACEMENTS[most_probable(probabilities_of(answers[len(gate) :]))]
        sheet.add(f"Information: enough\nThe claim is{_PLACEMENT_WORDS[known['placement']]}\n")
        if enough < missing:
            return Assessment(scale.nei, answer="Information: not enough")
    if config.verdict_first:
        known["probabilities"] = yield from _ask_verdict(sheet)
    answers = yield from ask_options(sheet.asks("Evidence:", [_levels_words(levels) for levels in ALL_LEVELS]))
    levels = ALL_LEVELS[most_probable(probabilities_of(answers))]
    sheet.add(f"Evidence:{_levels_words(levels)}\n")
    if levels.confidence in QUANTIFIABLE:
        options = (UNQUANTIFIED, *LIKELIHOODS)
        answers = yield from ask_options(sheet.asks("Likelihood:", [f" {option}" for option in options]))
        chosen: Any = options[most_probable(probabilities_of(answers))]
        levels = replace(levels, likelihood=None if chosen == UNQUANTIFIED else chosen)
        sheet.add(f"Likelihood: {chosen}\n")
    # A small model goes on in the style of short lines, so that its text has to begin without them.
    completion = yield from _write(interview, config, "" if config.brief else sheet.answer + "Assessment:")
    if completion.error is not None:
        raise ModelError(completion.error)
    draft = first_paragraph(completion.text)
    sheet.add(f"Assessment: {draft}", blank=f"Assessment: {BLANK}")
    if not config.verdict_first:
        known["probabilities"] = yield from _ask_verdict(sheet)
    verdict = scale.labels[most_probable(known["probabilities"])]
    return Assessment(verdict, levels, draft=draft, answer=sheet.answer, **known)


def _levels_words(levels: Levels) -> str:
    return f" {levels.evidence}; agreement: {levels.agreement}; confidence: {levels.confidence}"


def _ask_verdict(sheet: _Sheet) -> Steps[tuple[float, ...]]:
    scale = sheet.interview.scale
    lead = "\nVerdict:" if sheet.answer and not sheet.answer.endswith("\n") else "Verdict:"
    answers = yield from ask_options(sheet.asks(lead, [f" {label}" for label in scale.labels]))
    probabilities = probabilities_of(answers)
    label = scale.labels[most_probable(probabilities)]
    ending = "" if lead.startswith("\n") else "\n"
    sheet.add(f"{lead} {label}{ending}", blank=f"{lead} {BLANK}{ending}")
    return probabilities


# ------------------------------------------------------------------------------------------------------ by schema

_CHARACTERS_A_TOKEN = 10
"""Generous: a bound of the grammar cuts a local model off. What a server sends is kept at any length."""
_LONGEST_QUOTATION = 1000
_MOST_QUOTATIONS = 12
MOST_QUESTIONS = 3
"""Maximum number of questions from one participant in one round; the prompts say so."""


def answer_schema(interview: AssessmentPrompt, config: ElicitationConfig) -> dict[str, Any]:
    """The JSON schema of an assessment; its fields appear in the order in which they are to be decided."""
    text = {"type": "string", "maxLength": config.text_tokens * _CHARACTERS_A_TOKEN}
    judged = _judgement_schema(interview, config, text)
    fields: dict[str, Any] = {}
    if interview.replies:
        fields["replies"] = object_schema({str(number): text for number in range(1, interview.replies + 1)})
    if interview.statements and interview.apart:
        fields["statements"] = object_schema({str(number): object_schema(judged) for number in interview.statements})
        judged = {name: kind for name, kind in judged.items() if name != "quotations"}
    fields |= judged
    if interview.gate:
        fields["placement"] = _words([*PLACEMENTS, UNPLACED])
    fields["explanation"] = text
    if interview.others:
        question = {"to": _words(interview.others), "question": text}
        if config.queries:
            question["queries"] = {"type": "array", "items": text, "maxItems": config.queries}
        fields["questions"] = {"type": "array", "items": object_schema(question), "maxItems": MOST_QUESTIONS}
    return object_schema(fields)


def _judgement_schema(
    interview: AssessmentPrompt, config: ElicitationConfig, text: Mapping[str, Any]
) -> dict[str, Any]:
    """What is asked of every statement: quotations, reasoning, verdict, levels."""
    verdict: dict[str, Any] = {"verdict": _words([*interview.scale.labels, interview.scale.nei])}
    grounds: dict[str, Any] = {}
    if interview.passages:
        quotation: dict[str, Any] = {
            "passage": {"type": "integer", "minimum": 1, "maximum": max(interview.passages)},
            "quotation": {"type": "string", "maxLength": _LONGEST_QUOTATION},
            "side": _words(get_args(Side)),
        }
        if interview.statements and not interview.apart:
            number = {"type": "integer", "minimum": 1, "maximum": max(interview.statements)}
            quotation["statements"] = {"type": "array", "items": number, "maxItems": len(interview.statements)}
        grounds["quotations"] = {"type": "array", "items": object_schema(quotation), "maxItems": _MOST_QUOTATIONS}
    grounds["reasoning"] = text
    certainty: dict[str, Any] = {
        "evidence": _words(EVIDENCE),
        "agreement": _words(AGREEMENT),
        "confidence": _words(CONFIDENCES),
        "likelihood": _words([UNQUANTIFIED, *LIKELIHOODS]),
    }
    return verdict | grounds | certainty if config.verdict_first else grounds | verdict | certainty


def _words(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def read_answer(data: Mapping[str, Any], interview: AssessmentPrompt, queries: int = 0) -> Assessment:
    """An assessment from the JSON of a model, which may have put so many search queries to each question.

    Raises:
        KeyError: A field is missing.
        ValueError: The verdict is not one of those asked for, or a level is not one.
        TypeError, AttributeError: A field is of another kind.
    """
    placement = data.get("placement")
    questions = [
        Question(str(entry["to"]), _line(entry["question"]), tuple(filter(None, map(_line, entry.get("queries", ())))))
        for entry in data.get("questions", [])
    ]
    asked = tuple(
        one._replace(queries=one.queries[:queries]) for one in questions if one.to in interview.others and one.text
    )
    whole = _read_judgement(data, interview)
    statements = []
    for number in interview.statements if interview.apart else ():
        judged = _read_judgement(data["statements"][str(number)], interview)
        quotations = tuple(replace(one, statements=(number,)) for one in judged.quotations)
        statements.append(replace(judged, quotations=quotations))
    return replace(
        whole,
        placement=cast(Placement, placement) if whole.levels is not None and placement in PLACEMENTS else None,
        explanation=str(data["explanation"]),
        questions=asked[:MOST_QUESTIONS],
        goes_on=bool(asked) if interview.others else None,
        replies=tuple(str(data["replies"][str(number + 1)]) for number in range(interview.replies)),
        statements=tuple(statements),
    )


def _line(text: object) -> str:
    return " ".join(str(text).split())


def _read_judgement(data: Mapping[str, Any], interview: AssessmentPrompt) -> Assessment:
    scale = interview.scale
    quotations = []
    for entry in data.get("quotations", []):
        number, side = entry["passage"], entry["side"]
        if not isinstance(number, int) or side not in get_args(Side):
            raise TypeError("A quotation names its passage by a number, and its side.")
        named = entry.get("statements", ())
        statements = tuple(one for one in interview.statements if one in named)
        quotations.append(Quotation(int(number), _line(entry["quotation"]), side, statements))
    verdict = str(data["verdict"])
    result = Assessment(verdict, draft=str(data["reasoning"]), quotations=tuple(quotations))
    if verdict == scale.nei:
        return result
    if verdict not in scale.labels:
        raise ValueError(f"{verdict!r} is not a verdict of the scale {scale.name}.")
    confidence = coherent(data["evidence"], data["agreement"], data["confidence"])
    quantified = confidence in QUANTIFIABLE and data["likelihood"] in LIKELIHOODS
    levels = Levels(data["evidence"], data["agreement"], confidence, data["likelihood"] if quantified else None)
    return replace(result, levels=levels)
