"""Elicitation of an assessment from a model.

The verdict comes from an answer under a JSON schema or from the probabilities of the scale's labels, never from a
search in free text, so it is always a label of the scale. There are two methods:

- ``schema``, for models that can reason: one JSON object with quotations for and against, reasoning, verdict, certainty
  and explanation, in this order. Several statements of a claim, the claim as a whole and the replies to questions come
  in the same object.
- ``scored``, for very small models: the answer is written line by line in the order of the paper (Leippold et al. 2024,
  appendix G and the listings: certainty, draft, verdict, explanation). Lines with a fixed set of options are decided by
  their probabilities, calibrated with a content-free prompt (Zhao et al. 2021); the model generates the other lines.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast, get_args

from climassay.errors import ModelError
from climassay.factcheck.certainty import (
    AGREEMENT,
    ALL_LEVELS,
    CONFIDENCES,
    EVIDENCE,
    LIKELIHOODS,
    QUANTIFIABLE,
    Levels,
    nearest_confidence,
)
from climassay.factcheck.debate.steps import ScoringRequest, Steps, request_scores, request_text
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import Placement, Quotation, Side
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
_PLACEMENT_OPTIONS: Mapping[Placement, str] = {
    "consensus": " the consensus view",
    "outlier": " an outlier view",
    "exaggerated": " an exaggeration of something true",
    "misleading": " something true that is presented in a misleading way",
}
UNQUANTIFIED = "not quantified"
"""Answer option for giving no likelihood."""
UNPLACED = "cannot be told"
"""Answer option for an unknown placement (``schema`` only)."""


@dataclass(frozen=True, slots=True)
class ElicitationConfig:
    """Settings for eliciting assessments, shared by all participants of a debate."""

    elicitation: Elicitation = "scored"
    verdict_first: bool = False
    """Whether to ask for the verdict before certainty and draft (for comparison)."""
    calibrated: bool = True
    """Whether to calibrate probabilities with a content-free prompt (``scored`` only)."""
    brief: bool = False
    """Whether to use short prompts for very small models (``scored`` only). A prompt for generated text then omits the
    preceding lines of the answer."""
    side_check: bool = True
    """Whether to ask the model for which side of the scale an explanation argues (``scored`` only)."""
    text_tokens: int = 80
    """Maximum number of tokens of a draft, an explanation or a reply."""
    temperature: float = 0.0
    seed: int = 0
    queries: int = 0
    """Maximum number of search queries that a model may add to a question to an advocate (``schema`` only)."""

    @property
    def sampling(self) -> Sampling:
        """Sampling settings for drafts, explanations, questions and replies."""
        return Sampling(self.text_tokens, self.temperature, seed=self.seed, stop=("\n\n",))


@dataclass(frozen=True, slots=True)
class AssessmentPrompt:
    """Prompt of one assessment."""

    model: str
    """Name of the model."""
    messages: tuple[Message, ...]
    """Messages that state role, duties and claim, and contain the passages or opinions to weigh."""
    blank_messages: tuple[Message, ...]
    """Content-free variant of the messages, for calibration."""
    scale: Scale
    asks_placement: bool = True
    """Whether to ask for the placement of the claim and, with ``scored``, whether there is enough information."""
    recipients: tuple[str, ...] = ()
    """Names of the advocates to whom questions may be addressed (``schema``)."""
    passages: tuple[int, ...] = ()
    """Numbers of the passages that may be quoted (``schema``)."""
    statements: tuple[int, ...] = ()
    """Numbers of the claim's statements if there are several (``schema``)."""
    judges_statements: bool = True
    """Whether each statement is judged before the whole claim; otherwise quotations name the statements that they
    concern."""
    n_replies: int = 0
    """Number of questions that the answer must reply to before the assessment (``schema``)."""


class AdvocateQuestion(NamedTuple):
    """A question to an advocate."""

    to: str
    """Name of the advocate."""
    text: str
    queries: tuple[str, ...] = ()
    """Search queries that may find the answer."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """Assessment given by a model."""

    verdict: str | None = None
    """Label of the scale, including "not enough information"; None if a call failed."""
    levels: Levels | None = None
    placement: Placement | None = None
    probabilities: tuple[float, ...] = ()
    draft: str = ""
    explanation: str = ""
    lead: str = ""
    """Fixed opening of the explanation, written by the program. It needs no citation."""
    truncated: bool = False
    """Whether the explanation was truncated."""
    answer: str = ""
    """Answer so far, which the explanation continues (``scored`` only)."""
    questions: tuple[AdvocateQuestion, ...] = ()
    continue_debate: bool | None = None
    """Whether the model asks a question; None if it could not ask any."""
    quotations: tuple[Quotation, ...] = ()
    """Quotations as the model wrote them, not yet verified."""
    replies: tuple[str, ...] = ()
    """Replies to the questions, in their order."""
    statements: "tuple[Assessment, ...]" = ()
    """Assessments of the individual statements; empty if they were not judged."""
    error: str | None = None


def assess(prompt: AssessmentPrompt, config: ElicitationConfig) -> Steps[Assessment]:
    """Request an assessment from a model; with ``scored``, it does not include an explanation (see :func:`explain`)."""
    if config.elicitation == "scored":
        try:
            return (yield from _assess_by_scores(prompt, config))
        except ModelError as error:
            return Assessment(error=str(error))
    sampling = Sampling(None, config.temperature, seed=config.seed)
    request = GenerationRequest(prompt.messages, sampling, schema=answer_schema(prompt, config))
    completion = yield from request_text(prompt.model, request)
    if completion.error is not None:
        return Assessment(error=completion.error)
    try:
        return parse_answer(json.loads(completion.text), prompt, config.queries)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Assessment(error="The model's answer does not satisfy the schema, although it was asked for.")


def explain(prompt: AssessmentPrompt, config: ElicitationConfig, assessment: Assessment) -> Steps[Assessment]:
    """Add an explanation to a ``scored`` assessment that has a verdict; other assessments are returned unchanged."""
    if config.elicitation == "schema" or assessment.error or assessment.verdict in (None, prompt.scale.nei):
        return assessment
    lead = explanation_lead(assessment.verdict or "")
    completion = yield from _generate(prompt, config, lead if config.brief else f"{assessment.answer}\nExplanation:")
    if completion.error is not None:
        return replace(assessment, error=completion.error)
    return replace(
        assessment,
        explanation=first_paragraph(completion.text),
        lead=lead if config.brief else "",
        truncated=completion.finish_reason == "length",
    )


def explanation_lead(verdict: str) -> str:
    """Return the opening words of an explanation, which a very small model continues."""
    return f"This is rated \u201c{verdict}\u201d, because"


def _generate(prompt: AssessmentPrompt, config: ElicitationConfig, answer: str) -> Steps[Completion]:
    request = GenerationRequest(prompt.messages, config.sampling, assistant_prefix=answer)
    return (yield from request_text(prompt.model, request))


_FIELDS = frozenset({"Information", "Evidence", "Likelihood", "Assessment", "Verdict", "Explanation", "Next"})


def first_paragraph(text: str) -> str:
    """Return the text up to the first empty line or the first line that starts another field."""
    lines: list[str] = []
    for line in text.strip().splitlines():
        if lines and (not line.strip() or line.partition(":")[0].strip() in _FIELDS):
            break
        lines.append(line.strip())
    return " ".join(line for line in lines if line)


# ------------------------------------------------------------------------------------------------------ by scores


@dataclass(slots=True)
class _PartialAnswer:
    """An unfinished answer, with the content-free counterpart used for calibration."""

    prompt: AssessmentPrompt
    calibrated: bool
    answer: str = ""
    blank: str = ""

    def append(self, text: str, blank: str | None = None) -> None:
        """Append a text to both answers; ``blank``, if given, replaces it in the content-free one."""
        self.answer += text
        self.blank += text if blank is None else blank

    def build_requests(self, lead: str, options: Sequence[str]) -> list[ScoringRequest]:
        """Return requests to score options after ``lead``: one and, if calibrated, its content-free counterpart."""
        prompt, choices = self.prompt, tuple(options)
        requests = [ScoringRequest(prompt.model, OptionRequest(prompt.messages, choices, self.answer + lead))]
        if self.calibrated:
            blank = OptionRequest(prompt.blank_messages, choices, self.blank + lead)
            requests.append(ScoringRequest(prompt.model, blank, blank=True))
        return requests

    def choose(self, lead: str, options: Sequence[str]) -> Steps[int]:
        """Return the index of the most probable option after ``lead``."""
        return index_of_maximum(compute_probabilities((yield from request_scores(self.build_requests(lead, options)))))


def compute_probabilities(answers: Sequence[OptionScores]) -> tuple[float, ...]:
    """Return the option probabilities of the first answer, calibrated by the second (to a content-free prompt), if any.

    Raises:
        ModelError: A request failed.
    """
    return option_probabilities(answers[0], answers[1] if len(answers) > 1 else None)


def score_options(
    model: str, prompts: Sequence[RenderedPrompt], options: Sequence[str], config: ElicitationConfig
) -> Steps[tuple[float, ...]]:
    """Return the probabilities of options after the first prompt, calibrated by the second, content-free one, if any.

    Raises:
        ModelError: A request failed.
    """
    requests = [
        ScoringRequest(model, OptionRequest(prompt.messages, tuple(options), prompt.assistant_prefix), blank)
        for prompt, blank in zip(prompts, (False, True), strict=True)
    ]
    return compute_probabilities((yield from request_scores(requests if config.calibrated else requests[:1])))


def index_of_maximum(probabilities: Sequence[float]) -> int:
    """Return the index of the highest probability; the first such index if there are ties."""
    return max(range(len(probabilities)), key=probabilities.__getitem__)


def _assess_by_scores(prompt: AssessmentPrompt, config: ElicitationConfig) -> Steps[Assessment]:
    scale, partial_answer = prompt.scale, _PartialAnswer(prompt, config.calibrated)
    placement: Placement | None = None
    if prompt.asks_placement:
        # Both questions are scored in one pass over the prompt.
        information = partial_answer.build_requests("Information:", (" enough", " not enough"))
        options = [_PLACEMENT_OPTIONS[option] for option in PLACEMENTS]
        answers = yield from request_scores(
            [*information, *partial_answer.build_requests("Information: enough\nThe claim is", options)]
        )
        p_enough, p_missing = compute_probabilities(answers[: len(information)])
        placement = PLACEMENTS[index_of_maximum(compute_probabilities(answers[len(information) :]))]
        if p_enough < p_missing:
            return Assessment(scale.nei, answer="Information: not enough")
        partial_answer.append(f"Information: enough\nThe claim is{_PLACEMENT_OPTIONS[placement]}\n")
    probabilities: tuple[float, ...] = ()
    if config.verdict_first:
        probabilities = yield from _score_verdict(partial_answer)
    index = yield from partial_answer.choose("Evidence:", [_levels_option(levels) for levels in ALL_LEVELS])
    levels = ALL_LEVELS[index]
    partial_answer.append(f"Evidence:{_levels_option(levels)}\n")
    if levels.confidence in QUANTIFIABLE:
        likelihoods = (UNQUANTIFIED, *LIKELIHOODS)
        index = yield from partial_answer.choose("Likelihood:", [f" {option}" for option in likelihoods])
        levels = replace(levels, likelihood=LIKELIHOODS[index - 1] if index else None)
        partial_answer.append(f"Likelihood: {likelihoods[index]}\n")
    # A small model continues in the style of short lines, so its text must begin without them.
    completion = yield from _generate(prompt, config, "" if config.brief else partial_answer.answer + "Assessment:")
    if completion.error is not None:
        raise ModelError(completion.error)
    draft = first_paragraph(completion.text)
    partial_answer.append(f"Assessment: {draft}", blank=f"Assessment: {BLANK}")
    if not config.verdict_first:
        probabilities = yield from _score_verdict(partial_answer)
    verdict = scale.labels[index_of_maximum(probabilities)]
    return Assessment(verdict, levels, placement, probabilities, draft, answer=partial_answer.answer)


def _levels_option(levels: Levels) -> str:
    return f" {levels.evidence}; agreement: {levels.agreement}; confidence: {levels.confidence}"


def _score_verdict(partial_answer: _PartialAnswer) -> Steps[tuple[float, ...]]:
    """Return the probabilities of the scale's labels, and append the most probable one to the answer."""
    scale = partial_answer.prompt.scale
    lead = "\nVerdict:" if partial_answer.answer and not partial_answer.answer.endswith("\n") else "Verdict:"
    answers = yield from request_scores(partial_answer.build_requests(lead, [f" {label}" for label in scale.labels]))
    probabilities = compute_probabilities(answers)
    label = scale.labels[index_of_maximum(probabilities)]
    ending = "" if lead.startswith("\n") else "\n"
    partial_answer.append(f"{lead} {label}{ending}", blank=f"{lead} {BLANK}{ending}")
    return probabilities


# ------------------------------------------------------------------------------------------------------ by schema

_CHARACTERS_PER_TOKEN = 10
"""Number of characters that the schema allows per token. The number is generous, because local models' texts are cut
off at the limit."""
_MAX_QUOTATION_LENGTH = 1000
_MAX_QUOTATIONS = 6
"""Maximum number of quotations in one answer. Small models fill the list, so this number determines their response
time."""
MAX_QUESTIONS = 3
"""Maximum number of questions of a participant in one round; the prompts state it."""


def answer_schema(prompt: AssessmentPrompt, config: ElicitationConfig) -> dict[str, Any]:
    """Return the JSON schema of an assessment, with the fields in the order in which they are to be decided."""
    text = {"type": "string", "maxLength": config.text_tokens * _CHARACTERS_PER_TOKEN}
    judgement = _judgement_schema(prompt, config, text)
    fields: dict[str, Any] = {}
    if prompt.n_replies:
        fields["replies"] = object_schema({str(number): text for number in range(1, prompt.n_replies + 1)})
    if prompt.statements and prompt.judges_statements:
        fields["statements"] = object_schema({str(number): object_schema(judgement) for number in prompt.statements})
        judgement = {name: schema for name, schema in judgement.items() if name != "quotations"}
    fields |= judgement
    if prompt.asks_placement:
        fields["placement"] = _enum_schema([*PLACEMENTS, UNPLACED])
    fields["explanation"] = text
    if prompt.recipients:
        question = {"to": _enum_schema(prompt.recipients), "question": text}
        if config.queries:
            question["queries"] = {"type": "array", "items": text, "maxItems": config.queries}
        fields["questions"] = {"type": "array", "items": object_schema(question), "maxItems": MAX_QUESTIONS}
    return object_schema(fields)


def _judgement_schema(prompt: AssessmentPrompt, config: ElicitationConfig, text: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schemas of the fields that judge a statement or a claim."""
    verdict: dict[str, Any] = {"verdict": _enum_schema([*prompt.scale.labels, prompt.scale.nei])}
    grounds_schema: dict[str, Any] = {}
    if prompt.passages:
        quotation: dict[str, Any] = {
            "passage": {"type": "integer", "enum": list(prompt.passages)},
            "quotation": {"type": "string", "maxLength": _MAX_QUOTATION_LENGTH},
            "side": _enum_schema(get_args(Side)),
        }
        if prompt.statements and not prompt.judges_statements:
            number = {"type": "integer", "minimum": 1, "maximum": max(prompt.statements)}
            quotation["statements"] = {"type": "array", "items": number, "maxItems": len(prompt.statements)}
        grounds_schema["quotations"] = {"type": "array", "items": object_schema(quotation), "maxItems": _MAX_QUOTATIONS}
    grounds_schema["reasoning"] = text
    certainty_schema: dict[str, Any] = {
        "evidence": _enum_schema(EVIDENCE),
        "agreement": _enum_schema(AGREEMENT),
        "confidence": _enum_schema(CONFIDENCES),
        "likelihood": _enum_schema([UNQUANTIFIED, *LIKELIHOODS]),
    }
    return (
        verdict | grounds_schema | certainty_schema
        if config.verdict_first
        else grounds_schema | verdict | certainty_schema
    )


def _enum_schema(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def parse_answer(data: Mapping[str, Any], prompt: AssessmentPrompt, max_queries: int = 0) -> Assessment:
    """Convert a model's JSON answer to an assessment with at most ``max_queries`` search queries per question.

    Raises:
        KeyError: A field is missing.
        ValueError: The verdict is not a label of the scale, or a level is unknown.
        TypeError, AttributeError: A field has another type.
    """
    questions = []
    for entry in data.get("questions", []):
        queries = tuple(filter(None, map(_join_lines, entry.get("queries", ()))))[:max_queries]
        question = AdvocateQuestion(str(entry["to"]), _join_lines(entry["question"]), queries)
        if question.to in prompt.recipients and question.text:
            questions.append(question)
    statements = []
    for number in prompt.statements if prompt.judges_statements else ():
        statement = _parse_judgement(data["statements"][str(number)], prompt)
        quotations = tuple(replace(quotation, statements=(number,)) for quotation in statement.quotations)
        statements.append(replace(statement, quotations=quotations))
    claim, placement = _parse_judgement(data, prompt), data.get("placement")
    return replace(
        claim,
        placement=cast(Placement, placement) if claim.levels is not None and placement in PLACEMENTS else None,
        explanation=str(data["explanation"]),
        questions=tuple(questions[:MAX_QUESTIONS]),
        continue_debate=bool(questions) if prompt.recipients else None,
        replies=tuple(str(data["replies"][str(number + 1)]) for number in range(prompt.n_replies)),
        statements=tuple(statements),
    )


def _join_lines(text: object) -> str:
    return " ".join(str(text).split())


def _parse_judgement(data: Mapping[str, Any], prompt: AssessmentPrompt) -> Assessment:
    scale = prompt.scale
    quotations = []
    for entry in data.get("quotations", []):
        number, side = entry["passage"], entry["side"]
        if not isinstance(number, int) or side not in get_args(Side):
            raise TypeError("A quotation names its passage by a number, and its side.")
        numbers = entry.get("statements", ())
        statements = tuple(statement for statement in prompt.statements if statement in numbers)
        quotations.append(Quotation(int(number), _join_lines(entry["quotation"]), side, statements))
    verdict = str(data["verdict"])
    assessment = Assessment(verdict, draft=str(data["reasoning"]), quotations=tuple(quotations))
    if verdict == scale.nei:
        return assessment
    if verdict not in scale.labels:
        raise ValueError(f"{verdict!r} is not a verdict of the scale {scale.name}.")
    confidence = nearest_confidence(data["evidence"], data["agreement"], data["confidence"])
    is_quantified = confidence in QUANTIFIABLE and data["likelihood"] in LIKELIHOODS
    likelihood = data["likelihood"] if is_quantified else None
    return replace(assessment, levels=Levels(data["evidence"], data["agreement"], confidence, likelihood))
