"""Records of a fact-check: claim, subclaims, advocates' opinions, rounds of debate and verdict.

All records are frozen, and :func:`as_data` and :func:`from_data` convert a transcript to and from JSON. Passages are
numbered once per debate: the citation ``[3]`` refers to the same passage in every text. :func:`reader_view` applies the
rules that every transcript must satisfy before it is shown to a reader.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError, computed_field

from climassay.claim_identity import claim_id
from climassay.corpus.documents import Passage
from climassay.errors import InputError
from climassay.factcheck.certainty import Levels, fits_verdict
from climassay.factcheck.configuration import DEFAULT_MODEL
from climassay.factcheck.scales import Scale
from climassay.grounding.citations import AnswerSentence
from climassay.models.contract import Usage

Placement = Literal["consensus", "outlier", "exaggerated", "misleading"]
"""Position of a claim relative to scientific knowledge: the consensus view, an outlier view, an exaggerated fact, or a
fact presented misleadingly."""
CloseReason = Literal[
    "close verdicts", "no change", "mediator", "round limit", "one informed advocate", "not enough information"
]
"""Reason for closing a debate, in the order of the values: informed verdicts are at most one step apart; no verdict
changed; the mediator accepted differing verdicts; the maximum number of rounds was reached; only one advocate has
information; no advocate has information."""
OpenReason = Literal["contrast", "uncertain"]
"""Reason for another round: informed verdicts are more than one step apart, or the mediator's confidence is low."""
Side = Literal["for", "against"]
"""Side of a quotation: for or against the claim."""
Outcome = Literal["verdict", "not enough information", "not checkable", "not about climate", "failed"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement to be checked."""

    text: str
    source: str = ""
    """Person or organisation that made the claim."""
    date: str = ""
    """Date of the claim: ISO 8601 date or year."""
    appearance: str = ""
    """Web address or name of the publication in which the claim appeared."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """Hash of the text (:func:`~climassay.claim_identity.claim_id`), identical in all workspaces."""
        return claim_id(self.text)


@dataclass(frozen=True, slots=True)
class Subclaim:
    """One statement of a claim."""

    number: int
    """Number of the statement within the claim, starting at 1."""
    text: str
    """Statement in a form that can be understood alone."""
    start: int
    """Index of the statement's first character in the claim."""
    end: int
    """Index after the statement's last character in the claim."""
    queries: tuple[str, ...] = ()
    """Search queries written by a model, used in addition to the statement itself."""


@dataclass(frozen=True, slots=True)
class PassageCitation:
    """A retrieved passage with the number by which it is cited."""

    number: int
    """Number of the passage in the transcript, starting at 1, in order of first retrieval."""
    passage: Passage
    collection: str
    cosine: float | None
    """Highest cosine similarity to any query that found the passage."""
    advocates: tuple[str, ...]
    """Names of the advocates that received the passage."""
    grade: int | None = None
    """Relevance grade by a model: 2 if relevant to the claim, 1 if only to the claim's subject; None if not graded."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def citation(self) -> str:
        """Location of the passage, for readers."""
        return self.passage.citation


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question in the debate, with its reply."""

    round: int
    """Number of the round that the question opens, at least 2."""
    asker: str
    """``mediator`` or the name of an advocate."""
    to: str
    """Name of the advocate to whom the question is addressed."""
    question: str
    origin: Literal["model", "template"] = "model"
    """Author of the question: ``template`` if the model wrote no usable one."""
    queries: tuple[str, ...] = ()
    """Search queries written by the asker, used in addition to the question itself."""
    reply: tuple[AnswerSentence, ...] = ()
    retrieved: tuple[int, ...] = ()
    """Numbers of the passages found for the question."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Quotation:
    """Literal words of a passage that support or contradict the claim."""

    passage: int
    """Number of the passage."""
    text: str
    """Literal words of the passage; ``...`` marks omissions."""
    side: Side
    """Side that the model assigned."""
    statements: tuple[int, ...] = ()
    """Numbers of the subclaims that the quotation concerns; empty if the claim has only one or none was named."""


def merge_quotations(quotations: Iterable[Quotation]) -> tuple[Quotation, ...]:
    """Remove duplicate quotations and combine the statements of the duplicates."""
    quotations_by_key: dict[tuple[int, str, Side], Quotation] = {}
    for quotation in quotations:
        key = (quotation.passage, quotation.text, quotation.side)
        first_quotation = quotations_by_key.get(key, quotation)
        quotations_by_key[key] = replace(
            first_quotation, statements=tuple(sorted({*first_quotation.statements, *quotation.statements}))
        )
    return tuple(quotations_by_key.values())


def cited_numbers(sentences: Sequence[AnswerSentence], quotations: Sequence[Quotation] = ()) -> tuple[int, ...]:
    """Return the distinct numbers of the passages that are quoted or cited, quoted passages first."""
    numbers = [number for sentence in sentences for number in sentence.citations]
    return tuple(dict.fromkeys([*(quotation.passage for quotation in quotations), *numbers]))


@dataclass(frozen=True, slots=True)
class AdvocateOpinion:
    """Opinion of an advocate on a subclaim or on the whole claim, in one round."""

    advocate: str
    round: int
    """Number of the round, starting at 1."""
    subclaim: int | None
    """Number of the subclaim; None for the whole claim."""
    verdict: str | None
    """Label of the scale, including "not enough information"; None if a model call failed."""
    informed: bool
    """Whether the opinion counts, that is, whether its verdict does not express a lack of information."""
    levels: Levels | None = None
    """Certainty of the verdict; None if the advocate has no information."""
    placement: Placement | None = None
    draft: str = ""
    """Assessment written before the verdict."""
    explanation: tuple[AnswerSentence, ...] = ()
    """Explanation written after the verdict, with citations."""
    retrieved: tuple[int, ...] = ()
    """Numbers of the passages in the advocate's prompt."""
    removed_citations: int = 0
    """Number of citations removed because they name no passage of the debate."""
    changed: bool = False
    """Whether the verdict differs from that of the previous round."""
    asks: tuple[FollowUp, ...] = ()
    """Questions to other advocates."""
    error: str | None = None
    quotations: tuple[Quotation, ...] = ()
    """Quotations for and against the claim, in the order in which the advocate gave them."""
    removed_quotations: int = 0
    """Number of quotations removed because they do not occur in their passage."""
    withheld: str | None = None
    """Verdict withdrawn for lack of a valid quotation or citation; ``verdict`` is then "not enough information"."""
    unasked: bool = False
    """Whether the model call was skipped because no retrieved passage is relevant to the claim."""


@dataclass(frozen=True, slots=True)
class MediatorDecision:
    """Decision of the mediator after a round."""

    round: int
    closes: bool
    """Whether the debate ends."""
    reason: Literal[CloseReason, OpenReason]
    verdict: str | None
    """Verdict that the debate would have if it ended now; None if a model call failed."""
    levels: Levels | None = None
    spread: int | None = None
    """Number of steps between the two most distant informed verdicts; None if fewer than two advocates are informed."""
    informed: tuple[str, ...] = ()
    """Names of the advocates whose opinions count."""
    draft: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One round: its opening questions, the opinions of all advocates, and the mediator's decision."""

    number: int
    follow_ups: tuple[FollowUp, ...]
    """Questions that opened the round; empty in round 1."""
    opinions: tuple[AdvocateOpinion, ...]
    """Opinion of each advocate on the whole claim."""
    parts: tuple[AdvocateOpinion, ...]
    """Opinions of all advocates on the individual subclaims; empty if there is only one subclaim."""
    decision: MediatorDecision


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a fact-check."""

    outcome: Outcome
    label: str | None
    """Label of the scale; "not enough information" if that is the outcome; None for other outcomes."""
    restated: str
    """Text of the claim, to be shown with the verdict."""
    levels: Levels | None = None
    explanation: tuple[AnswerSentence, ...] = ()
    """Explanation in plain language, with citations."""
    caveats: tuple[str, ...] = ()
    """Warnings for the reader, for example that only one advocate has evidence or that advocates differ."""
    removed_citations: int = 0
    error: str | None = None
    quotations: tuple[Quotation, ...] = ()
    """Quotations on which the mediator bases the verdict."""
    removed_quotations: int = 0
    """Number of quotations removed because they do not occur in their passage."""
    withheld: str | None = None
    """Verdict withdrawn for lack of a valid quotation or citation; the outcome is then "not enough information"."""


@dataclass(frozen=True, slots=True)
class Fallacy:
    """Fallacy of a claim, predicted from its words alone (:mod:`climassay.factcheck.fallacies`)."""

    name: str
    definition: str
    probability: float
    precision: float
    """Precision of the classifier on held-out texts at its threshold."""


@dataclass(frozen=True, slots=True)
class AdvocateProfile:
    """Name, model and sources of one advocate in a debate."""

    name: str
    kind: Literal["collection", "plain", "adversarial"]
    collections: tuple[str, ...]
    model: str
    fingerprint: str
    weight: float
    """Authority of the advocate, above 0; 1 for an assessment report such as the IPCC's."""
    about: str = ""
    """Description of the source in one line."""
    dtype: str = ""
    """Number format of a local model; empty if unknown."""


@dataclass(frozen=True, slots=True)
class Stability:
    """Agreement among the verdicts of repeated debates about a claim."""

    samples: int
    """Number of debates."""
    labels: tuple[str | None, ...]
    """Verdicts of all debates about the claim; the first is from the debate that the transcript records."""
    share: float
    """Proportion of the debates that ended with the most frequent verdict."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A complete debate about one claim."""

    claim: Claim
    scale: str
    """Name of the scale."""
    advocates: tuple[AdvocateProfile, ...]
    mediator: str
    """Style (``expert`` or ``neutral``) and model: ``expert, local:smollm2``."""
    subclaims: tuple[Subclaim, ...]
    rounds: tuple[Round, ...]
    verdict: Verdict
    sources: tuple[PassageCitation, ...]
    """All retrieved passages, ordered by number."""
    prefixed: bool = False
    """Whether prompts put the claim in the context of climate change by a prefix."""
    split: Literal["model", "rules", "whole"] = "whole"
    """Method that split the claim into subclaims."""
    warnings: tuple[str, ...] = ()
    """Warnings, for example that all evidence is older than the subject of the claim."""
    failures: int = 0
    """Number of failed model calls."""
    usage: Usage = field(default_factory=Usage)
    """Usage of all requests of the debate, including cached ones."""
    stability: Stability | None = None
    without: tuple[tuple[str, str | None], ...] = ()
    """Pairs of an informed advocate's name and the mediator's verdict without that advocate; empty if not requested."""
    demonstration: bool = False
    """Whether a very small model took part in the debate; the result is then not reliable."""
    fallacy: Fallacy | None = None
    """Likely fallacy of a refuted claim."""

    @property
    def cited(self) -> tuple[PassageCitation, ...]:
        """Passages that the verdict or the last round's opinions cite or quote."""
        opinions = self.rounds[-1].opinions if self.rounds else ()
        numbers = {*cited_numbers(self.verdict.explanation, self.verdict.quotations)}
        for opinion in opinions:
            numbers.update(cited_numbers(opinion.explanation, opinion.quotations))
        return tuple(source for source in self.sources if source.number in numbers)


# ----------------------------------------------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Event of a debate: passages were found, which may be cited from now on."""

    passages: tuple[PassageCitation, ...]
    """New passages, and known passages that another advocate has now received; these replace their earlier entries."""


ActivityKind = Literal["searching", "judging", "checking quotations", "asking", "weighing", "concluding"]
"""Activity of a participant. Only the mediator weighs opinions and concludes the debate."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Event: a participant started an activity, which lasts until the participant's next event."""

    participant: str
    """``mediator`` or the name of an advocate."""
    doing: ActivityKind
    round: int
    """Number of the round, starting at 1. Questions belong to the round that they open."""


Event = tuple[Subclaim, ...] | Retrieval | Activity | AdvocateOpinion | FollowUp | MediatorDecision | Verdict
EventKind = Literal["subclaims", "passages", "activity", "opinion", "question", "decision", "verdict"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
_EVENT_TYPES: Mapping[str, Any] = {
    "subclaims": tuple[Subclaim, ...], "passages": Retrieval, "activity": Activity, "opinion": AdvocateOpinion,
    "question": FollowUp, "decision": MediatorDecision, "verdict": Verdict,
}  # fmt: skip
_KINDS: Mapping[type, EventKind] = dict(zip(_EVENT_TYPES.values(), EVENT_KINDS, strict=True))


# ------------------------------------------------------------------------------------------------------------- JSON


def as_data(transcript: Transcript) -> dict[str, Any]:
    """Return a transcript as JSON-serialisable values, which :func:`from_data` reads.

    The derived values ``claim.id`` and ``sources[*].citation`` are included for other programs.
    """
    data: dict[str, Any] = _dump(Transcript, transcript)
    return data


def from_data(data: Any) -> Transcript:
    """Return the transcript that :func:`as_data` converted.

    Args:
        data: Parsed JSON.

    Raises:
        InputError: A field is missing, unknown or of another type, a citation names no passage of the debate, or a
            subclaim does not lie within the claim. The message names the field.
    """
    transcript: Transcript = _load(Transcript, data)
    numbers = [source.number for source in transcript.sources]
    if numbers != list(range(1, len(numbers) + 1)):
        raise InputError("The stored fact-check's sources must be numbered from 1, in order.")
    for owner, passage_numbers in _passage_references(transcript):
        if unknown_numbers := sorted(set(passage_numbers) - set(numbers)):
            raise InputError(
                f"The stored fact-check's {owner} names passage {unknown_numbers[0]}, which it does not have."
            )
    for subclaim in transcript.subclaims:
        if not 0 <= subclaim.start <= subclaim.end <= len(transcript.claim.text):
            raise InputError(f"The stored fact-check's subclaim {subclaim.number} does not lie within the claim.")
    return transcript


def _passage_references(transcript: Transcript) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield (description, passage numbers) for each text that cites passages."""
    verdict = transcript.verdict
    yield "verdict", cited_numbers(verdict.explanation, verdict.quotations)
    for debate_round in transcript.rounds:
        for opinion in (*debate_round.opinions, *debate_round.parts):
            numbers = cited_numbers(opinion.explanation, opinion.quotations)
            yield f"opinion of {opinion.advocate} in round {debate_round.number}", (*numbers, *opinion.retrieved)
        for follow_up in debate_round.follow_ups:
            numbers = cited_numbers(follow_up.reply)
            yield f"question to {follow_up.to} in round {debate_round.number}", (*numbers, *follow_up.retrieved)


def event_data(event: Event) -> tuple[EventKind, dict[str, Any]]:
    """Return the kind of an event and its JSON-serialisable fields, which :func:`event_from_data` reads."""
    if isinstance(event, tuple):
        return "subclaims", {"subclaims": _dump(tuple[Subclaim, ...], event)}
    return _KINDS[type(event)], _dump(type(event), event)


def event_from_data(kind: str, data: Mapping[str, Any]) -> Event:
    """Return the event that :func:`event_data` converted.

    Raises:
        InputError: The kind is unknown, or a field is missing, unknown or of another type.
    """
    if kind not in _EVENT_TYPES:
        raise InputError(f"{kind!r} is not an event of a debate; the events are {', '.join(EVENT_KINDS)}.")
    event: Event = _load(_EVENT_TYPES[kind], data.get(kind, ()) if kind == "subclaims" else data)
    return event


@cache
def _adapter(record_type: Any) -> TypeAdapter[Any]:
    # A dataclass takes the configuration of the type that contains it, here a tuple.
    return TypeAdapter(tuple[record_type], config=ConfigDict(strict=True, allow_inf_nan=False))


def _dump(record_type: Any, record: Any) -> Any:
    return _adapter(record_type).dump_python((record,), mode="json")[0]


def _load(record_type: Any, data: Any) -> Any:
    try:
        # Strict validation of JSON accepts lists as tuples and integers as floats, but no strings as numbers.
        record = _adapter(record_type).validate_json(json.dumps([data]))[0]
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
        raise InputError(f"The stored fact-check's {_format_path(problem['loc'][1:])}: {problem['msg']}.") from None
    # Pydantic could forbid unknown fields, but then also the derived ones, which the data contain.
    if unknown_path := _unknown_field(data, _dump(record_type, record)):
        raise InputError(f"The stored fact-check's {_format_path(unknown_path)} is not a field of a fact-check.")
    return record


def _unknown_field(data: Any, valid: Any) -> tuple[str | int, ...]:
    """Return the path of the first field of ``data`` that is absent from ``valid``; empty if there is none."""
    pairs: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(data, Mapping):
        pairs = iter(data.items())
    elif isinstance(data, list | tuple):
        pairs = enumerate(data)
    for key, value in pairs:
        if isinstance(data, Mapping) and key not in valid:
            return (key,)
        if path := _unknown_field(value, valid[key]):
            return (key, *path)
    return ()


def _format_path(steps: Sequence[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".") or "data"


# ---------------------------------------------------------------------------------------------------------- readers


def reader_view(transcript: Transcript, scale: Scale) -> Transcript:
    """Return a copy of a fact-check that is safe to show to readers.

    - A verdict that no passage of the debate supports (:func:`cited_numbers`) becomes "not enough information"
      and is marked as withheld.
    - A likelihood that contradicts its verdict is removed.
    - A fallacy is removed unless the verdict is against the claim.
    - A debate of the bundled model is marked as a demonstration.

    Raises:
        InputError: A verdict is not a label of the scale.
    """

    def with_consistent_levels(opinions: Sequence[AdvocateOpinion]) -> tuple[AdvocateOpinion, ...]:
        return tuple(
            replace(item, levels=_remove_inconsistent_likelihood(item.levels, item.verdict, scale)) for item in opinions
        )

    rounds = tuple(
        replace(
            item,
            opinions=with_consistent_levels(item.opinions),
            parts=with_consistent_levels(item.parts),
            decision=replace(
                item.decision,
                levels=_remove_inconsistent_likelihood(item.decision.levels, item.decision.verdict, scale),
            ),
        )
        for item in transcript.rounds
    )
    verdict = transcript.verdict
    verdict = replace(verdict, levels=_remove_inconsistent_likelihood(verdict.levels, verdict.label, scale))
    numbers = {source.number for source in transcript.sources}
    support = numbers.intersection(cited_numbers(verdict.explanation, verdict.quotations))
    if verdict.outcome == "verdict" and verdict.label is not None and not support:
        verdict = replace(
            verdict,
            outcome="not enough information",
            label=scale.nei,
            levels=None,
            caveats=(withheld_caveat(verdict.label), *verdict.caveats),
            withheld=verdict.label,
        )
    models = {transcript.mediator.rpartition(", ")[2], *(profile.model for profile in transcript.advocates)}
    return replace(
        transcript,
        rounds=rounds,
        verdict=verdict,
        fallacy=transcript.fallacy if is_against(verdict, scale) else None,
        demonstration=transcript.demonstration or (bool(rounds) and DEFAULT_MODEL in models),
    )


def is_against(verdict: Verdict, scale: Scale) -> bool:
    """Return whether a verdict's label is on the incorrect side of the scale."""
    return verdict.outcome == "verdict" and verdict.label in scale.labels and verdict.label not in scale.correct


def withheld_caveat(label: str) -> str:
    """Return the caveat that reports a withheld verdict to readers."""
    return f"The mediator would say \u201c{label}\u201d, but rests it on no passage: it is not given as a verdict."


def _remove_inconsistent_likelihood(levels: Levels | None, label: str | None, scale: Scale) -> Levels | None:
    """Return the levels without a likelihood that contradicts the verdict."""
    if levels is None or levels.likelihood is None or label is None or label == scale.nei:
        return levels
    return levels if fits_verdict(levels.likelihood, scale.is_correct(label)) else replace(levels, likelihood=None)
