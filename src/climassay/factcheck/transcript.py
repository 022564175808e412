"""What a fact-check is made of: claim, subclaims, advocates' opinions, rounds of debate, and the verdict.

Everything here is frozen and can be written as JSON (:func:`as_data`) and read again (:func:`from_data`). Passages are
numbered once for the whole debate: a citation ``[3]`` means the same passage whoever makes it. A debate withholds by
itself what nothing bears; :func:`reader_view` is the last look before any reader's, whoever made the transcript.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError, computed_field

from climassay.claim_identity import claim_id
from climassay.corpus.documents import Passage
from climassay.errors import InputError
from climassay.factcheck.configuration import DEFAULT_MODEL
from climassay.factcheck.scales import Scale
from climassay.grounding.citations import AnswerSentence
from climassay.models.contract import Usage

EvidenceLevel = Literal["limited", "medium", "robust"]
"""Type, amount, quality and consistency of evidence (IPCC Guidance Note on Uncertainty)."""
AgreementLevel = Literal["low", "medium", "high"]
"""How far the pieces of evidence point the same way."""
Confidence = Literal["very low", "low", "medium", "high", "very high"]
"""Qualitative synthesis of evidence and agreement."""
Likelihood = Literal[
    "exceptionally unlikely",
    "extremely unlikely",
    "very unlikely",
    "unlikely",
    "about as likely as not",
    "more likely than not",
    "likely",
    "very likely",
    "extremely likely",
    "virtually certain",
]
"""Terms of AR6 for probabilities of 0-1, 0-5, 0-10, 0-33, 33-66, 50-100, 66-100, 90-100, 95-100 and 99-100 per cent."""
Placement = Literal["consensus", "outlier", "exaggerated", "misleading"]
"""Where a claim appears in what is known: a consensus view, an outlier, or a fact that is presented beyond it."""
CloseReason = Literal[
    "close verdicts", "no change", "mediator", "round limit", "one informed advocate", "not enough information"
]
"""Why a debate ended: informed verdicts at most one step apart, nobody changed a verdict, the mediator was satisfied
although they differ, the limit, only one advocate has information, or none has."""
OpenReason = Literal["contrast", "uncertain"]
"""Why a further round was held: informed verdicts more than one step apart, or the mediator's own low confidence."""
Side = Literal["for", "against"]
"""Where a quotation stands with regard to what is judged."""
Outcome = Literal["verdict", "not enough information", "not checkable", "not about climate", "failed"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement to be checked."""

    text: str
    source: str = ""
    """Who said it, and where."""
    date: str = ""
    """When: ISO 8601 date or year."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """Hash of its text (:func:`~climassay.claim_identity.claim_id`): the same claim has the same id everywhere."""
        return claim_id(self.text)


@dataclass(frozen=True, slots=True)
class Subclaim:
    """One statement of a claim."""

    number: int
    """From 1."""
    text: str
    """The statement, able to stand alone."""
    start: int
    """Where it begins in the claim's text, in characters."""
    end: int
    """Where it ends there (exclusive)."""
    queries: tuple[str, ...] = ()
    """What was searched for beside the statement itself, in a model's words."""


@dataclass(frozen=True, slots=True)
class PassageCitation:
    """A passage that was retrieved in the debate; what citations name."""

    number: int
    """From 1, in order of first retrieval."""
    passage: Passage
    collection: str
    cosine: float | None
    """Highest similarity to a query that found it."""
    advocates: tuple[str, ...]
    """Who had it before them."""
    grade: int | None = None
    """2: a model found that it bears on the claim; 1: only on its subject; None: it was not graded."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def citation(self) -> str:
        """Where the passage stands, in words."""
        return self.passage.citation


_IPCC_WORDS = {"low": "limited", "high": "robust"}
"""Levels of evidence as files of earlier versions call them."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Certainty of an assessment, after the IPCC's guidance on uncertainty (Mastrandrea et al. 2010)."""

    evidence: Annotated[EvidenceLevel, BeforeValidator(lambda level: _IPCC_WORDS.get(str(level), level))]
    agreement: AgreementLevel
    confidence: Confidence
    likelihood: Likelihood | None = None
    """How likely it is that the claim is true; only where confidence is high or very high and a probability makes
    sense."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question in the debate, and the answer to it."""

    round: int
    """The round that it opens, from 2."""
    asker: str
    """``mediator`` or the name of an advocate."""
    to: str
    """Name of the advocate it is addressed to."""
    question: str
    origin: Literal["model", "template"] = "model"
    """``template`` where the model wrote no question that can be used."""
    queries: tuple[str, ...] = ()
    """What is searched for beside the question itself, in the asker's words."""
    reply: tuple[AnswerSentence, ...] = ()
    retrieved: tuple[int, ...] = ()
    """Numbers of the passages that were found for the question."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Quotation:
    """Words of a passage that speak for or against what is judged; they appear there as they are given here."""

    passage: int
    """Number of the passage."""
    text: str
    """Word for word, with ``...`` for what was left out."""
    side: Side | None
    """None where it was not the model that chose it: for very small models, which do not quote, the sentence is looked
    up that is nearest to what is judged."""
    statements: tuple[int, ...] = ()
    """Numbers of the claim's statements that it bears on; empty where the claim makes one, and where nobody said."""


def merge_quotations(quotations: Iterable[Quotation]) -> tuple[Quotation, ...]:
    """Each quotation once, with all statements that it was given for."""
    merged: dict[tuple[int, str, Side | None], Quotation] = {}
    for one in quotations:
        key = (one.passage, one.text, one.side)
        known = merged.get(key, one)
        merged[key] = replace(known, statements=tuple(sorted({*known.statements, *one.statements})))
    return tuple(merged.values())


def cited_numbers(sentences: Sequence[AnswerSentence], quotations: Sequence[Quotation] = ()) -> tuple[int, ...]:
    """Numbers of the passages that sentences cite and quotations come from, each once."""
    numbers = [number for sentence in sentences for number in sentence.citations]
    return tuple(dict.fromkeys([*(quotation.passage for quotation in quotations), *numbers]))


@dataclass(frozen=True, slots=True)
class AdvocateOpinion:
    """What an advocate holds of one subclaim, or of the whole claim, in one round."""

    advocate: str
    round: int
    """From 1."""
    subclaim: int | None
    """Number of the subclaim; None is the opinion on the whole claim."""
    verdict: str | None
    """A label of the scale, its "not enough information" included; None where a model call failed."""
    informed: bool
    """Whether it counts: it has a verdict, not for lack of information."""
    levels: Levels | None = None
    """None without information."""
    placement: Placement | None = None
    probabilities: tuple[float, ...] = ()
    """One a label of the scale, in order, summing to 1; empty where the model gives none."""
    draft: str = ""
    """Assessment written before the verdict was decided."""
    explanation: tuple[AnswerSentence, ...] = ()
    """Written after the verdict, with its citations."""
    retrieved: tuple[int, ...] = ()
    """Numbers of the passages that lay before the advocate."""
    removed_citations: int = 0
    """Citations of passages that were not retrieved, taken out."""
    contradicts: bool | None = None
    """Whether the explanation argues for the other side of the scale; None where it was not determined."""
    changed: bool = False
    """Whether the verdict differs from that of the round before."""
    asks: tuple[FollowUp, ...] = ()
    """What it would like to ask other advocates."""
    error: str | None = None
    quotations: tuple[Quotation, ...] = ()
    """What it found for and against, in its own order."""
    removed_quotations: int = 0
    """Quotations that do not appear in their passage, taken out."""
    withheld: str | None = None
    """The verdict that it gave although no quotation or citation of it holds; ``verdict`` is then "not enough
    information"."""
    unasked: bool = False
    """Whether no model was asked for it, because nothing in its source bears on the claim."""


@dataclass(frozen=True, slots=True)
class MediatorDecision:
    """What the mediator made of a round."""

    round: int
    closes: bool
    reason: Literal[CloseReason, OpenReason]
    verdict: str | None
    """Where the mediator would close with it now; None where a model call failed."""
    levels: Levels | None = None
    probabilities: tuple[float, ...] = ()
    """One a label of the scale, in order."""
    spread: int | None = None
    """Steps between the two most distant informed verdicts; None with fewer than two."""
    informed: tuple[str, ...] = ()
    """Names of the advocates with information."""
    draft: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the questions that opened it, every advocate's opinions, and what the mediator decided."""

    number: int
    follow_ups: tuple[FollowUp, ...]
    """Empty in round 1."""
    opinions: tuple[AdvocateOpinion, ...]
    """One an advocate, on the whole claim."""
    parts: tuple[AdvocateOpinion, ...]
    """One an advocate and subclaim; empty where the claim has one subclaim, whose opinion is that on the whole."""
    decision: MediatorDecision


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the fact-check ended."""

    outcome: Outcome
    label: str | None
    """A label of the scale; its "not enough information" where that is the outcome; None otherwise."""
    restated: str
    """The claim, said again."""
    levels: Levels | None = None
    probabilities: tuple[float, ...] = ()
    explanation: tuple[AnswerSentence, ...] = ()
    """In accessible language, with citations."""
    caveats: tuple[str, ...] = ()
    """What a reader must know: evidence from one advocate only, advocates that still differ, old evidence."""
    removed_citations: int = 0
    contradicts: bool | None = None
    error: str | None = None
    quotations: tuple[Quotation, ...] = ()
    """What the mediator rests it on."""
    removed_quotations: int = 0
    """Quotations that do not appear in their passage, taken out."""
    withheld: str | None = None
    """What the mediator would have said, where no quotation or citation holds for it: the outcome is then "not enough
    information"."""


@dataclass(frozen=True, slots=True)
class Fallacy:
    """How the claim misleads, by a classifier that knows its words alone (:mod:`climassay.factcheck.fallacies`)."""

    name: str
    definition: str
    probability: float
    precision: float
    """Share of held-out texts as likely to be shown whose fallacy was named rightly."""


@dataclass(frozen=True, slots=True)
class AdvocateProfile:
    """Who took part."""

    name: str
    kind: Literal["collection", "plain", "adversarial"]
    collections: tuple[str, ...]
    model: str
    fingerprint: str
    weight: float
    """Authority, 1 being that of the IPCC."""
    about: str = ""
    """What its source is, in one line."""
    dtype: str = ""
    """Number format that a local model computed in; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class Stability:
    """How often the same verdict comes out when the texts are drawn anew."""

    samples: int
    labels: tuple[str | None, ...]
    """Verdict of each sample, the first one being that of the transcript."""
    share: float
    """Share of the samples with the most frequent verdict."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """The whole debate about one claim."""

    claim: Claim
    scale: str
    """Name of the scale."""
    advocates: tuple[AdvocateProfile, ...]
    mediator: str
    """``expert`` or ``neutral``, and the model: ``expert, local:smollm2``."""
    subclaims: tuple[Subclaim, ...]
    rounds: tuple[Round, ...]
    verdict: Verdict
    sources: tuple[PassageCitation, ...]
    """Every passage retrieved, by number."""
    prefixed: bool = False
    """Whether the claim was put into a climate-change context."""
    split: Literal["model", "rules", "none"] = "none"
    """Who split the claim into subclaims."""
    warnings: tuple[str, ...] = ()
    """For example that all evidence is older than what the claim is about."""
    failures: int = 0
    """Model calls that failed."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of all requests that the debate needed, those served from the records included."""
    stability: Stability | None = None
    without: tuple[tuple[str, str | None], ...] = ()
    """Advocate, and the mediator's verdict without it, where that was asked: what drove the verdict?"""
    demonstration: bool = False
    """Whether a very small model took part, so that nothing in it is to be relied on."""
    fallacy: Fallacy | None = None
    """Only where the verdict is on the wrong side and a fallacy is likely."""

    @property
    def cited(self) -> tuple[PassageCitation, ...]:
        """Passages that the verdict or an advocate's last opinions cite or quote."""
        last = self.rounds[-1].opinions if self.rounds else ()
        numbers = {*cited_numbers(self.verdict.explanation, self.verdict.quotations)}
        numbers.update(number for one in last for number in cited_numbers(one.explanation, one.quotations))
        return tuple(source for source in self.sources if source.number in numbers)


EVIDENCE: tuple[EvidenceLevel, ...] = get_args(EvidenceLevel)
AGREEMENT: tuple[AgreementLevel, ...] = get_args(AgreementLevel)
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
LIKELIHOODS: tuple[Likelihood, ...] = get_args(Likelihood)
QUANTIFIABLE: frozenset[Confidence] = frozenset({"high", "very high"})
"""Confidence from which a likelihood may be given."""
UNCERTAIN: frozenset[Confidence] = frozenset({"very low", "low"})
"""Confidence at which the mediator holds another round."""


def allowed_confidences(evidence: EvidenceLevel, agreement: AgreementLevel) -> tuple[Confidence, ...]:
    """Levels of confidence that go with a pair of evidence and agreement: the one in the middle and its neighbours.

    Limited evidence with low agreement allows very low and low, robust with high allows high and very high.
    """
    middle = EVIDENCE.index(evidence) + AGREEMENT.index(agreement)
    return CONFIDENCES[max(middle - 1, 0) : middle + 2]


def coherent(evidence: EvidenceLevel, agreement: AgreementLevel, confidence: Confidence) -> Confidence:
    """The allowed confidence that is nearest to the one given."""
    allowed = allowed_confidences(evidence, agreement)
    place = CONFIDENCES.index(confidence)
    return min(allowed, key=lambda level: abs(CONFIDENCES.index(level) - place))


def takes_side(likelihood: Likelihood, right: bool) -> bool:
    """Whether a likelihood that a claim is true goes with a verdict on the right or the wrong side of a scale."""
    return likelihood == "about as likely as not" or right != ("unlikely" in likelihood)


ALL_LEVELS: tuple[Levels, ...] = tuple(
    Levels(evidence, agreement, confidence)
    for evidence in EVIDENCE
    for agreement in AGREEMENT
    for confidence in allowed_confidences(evidence, agreement)
)
"""Every coherent assessment, without likelihood."""


def weakest(levels: list[Levels]) -> Levels:
    """What holds for several statements at once: the lowest of each level; a likelihood does not carry over."""
    evidence = min((one.evidence for one in levels), key=EVIDENCE.index)
    agreement = min((one.agreement for one in levels), key=AGREEMENT.index)
    confidence = min((one.confidence for one in levels), key=CONFIDENCES.index)
    return Levels(evidence, agreement, coherent(evidence, agreement, confidence))


# ------------------------------------------------------------------------------------------------- to JSON and back

FORMAT = 1
"""Number of the layout; it grows when files of an older climassay can no longer be read as they are."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages have been found: what citations may name from now on."""

    passages: tuple[PassageCitation, ...]
    """Those that are new, and those that lie before one more advocate; a later one of the same number stands."""


Doing = Literal["searching", "judging", "checking quotations", "asking", "replying", "weighing", "concluding"]
"""What a participant may be doing: looking for passages, judging by them, looking its quotations up in them, writing
questions, replying to one; the mediator also weighs the opinions of a round and writes the verdict."""


@dataclass(frozen=True, slots=True)
class Activity:
    """A participant has begun to do something, and does it until its next activity, opinion or decision."""

    participant: str
    """``mediator`` or the name of an advocate."""
    doing: Doing
    round: int
    """From 1; what is done for the next round's questions belongs to that round."""


Event = tuple[Subclaim, ...] | Retrieval | Activity | AdvocateOpinion | FollowUp | MediatorDecision | Verdict
EventKind = Literal["subclaims", "passages", "activity", "opinion", "question", "decision", "verdict"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
_EVENTS: Mapping[str, type] = {
    "subclaims": tuple, "passages": Retrieval, "activity": Activity, "opinion": AdvocateOpinion, "question": FollowUp,
    "decision": MediatorDecision, "verdict": Verdict,
}  # fmt: skip
_KINDS: Mapping[type, EventKind] = dict(zip(_EVENTS.values(), EVENT_KINDS, strict=True))


def as_data(transcript: Transcript) -> dict[str, Any]:
    """A transcript as dictionaries, lists, texts and numbers, field by field in their order.

    Returns:
        What ``json.dumps`` takes; :func:`from_data` gives the same transcript back. The first key, ``format``, is
        :data:`FORMAT`. A claim's ``id`` and a passage's ``citation``, which follow from the rest, are written for
        readers without climassay.
    """
    return {"format": FORMAT, **_written(Transcript, transcript)}


def event_data(event: Event) -> tuple[EventKind, dict[str, Any]]:
    """An event's kind, and what happened: dictionaries, lists, texts and numbers.

    The fields of an activity, an opinion, a question, a decision or a verdict are those of its record; subclaims and
    passages appear under the name of the kind.
    """
    if isinstance(event, tuple):
        return "subclaims", {"subclaims": _written(tuple[Subclaim, ...], event)}
    return _KINDS[type(event)], _written(type(event), event)


def from_data(data: Any) -> Transcript:
    """The transcript that :func:`as_data` wrote.

    Fields with a default may be missing, so that files written before they existed stay readable.

    Args:
        data: What ``json.loads`` gives for a stored transcript.

    Raises:
        InputError: It is damaged: something is missing, of another kind, unknown, or names a passage that is not there.
            The message says where.
    """
    if not isinstance(data, dict):
        raise InputError(f"A stored fact-check must be a table of names and values, not {str(data)[:40]!r}.")
    if data.get("format") != FORMAT:
        raise InputError(
            f"The stored fact-check has the format {data.get('format')!r}, and this version of climassay "
            f"reads format {FORMAT}: "
            "check the claim again."
        )
    given = {name: data[name] for name in data if name != "format"} | {"claim": _without(data.get("claim"), "id")}
    transcript: Transcript = _read(Transcript, _bare(given, "sources"))
    # Every number must name a passage of the debate, and every subclaim must lie within the claim.
    numbers = [source.number for source in transcript.sources]
    if numbers != list(range(1, len(numbers) + 1)):
        raise InputError("The stored fact-check's sources must be numbered from 1, in order.")
    verdict = transcript.verdict
    named = [("verdict", cited_numbers(verdict.explanation, verdict.quotations))]
    for held in transcript.rounds:
        for opinion in (*held.opinions, *held.parts):
            cited = (*cited_numbers(opinion.explanation, opinion.quotations), *opinion.retrieved)
            named.append((f"opinion of {opinion.advocate} in round {held.number}", cited))
        for asked in held.follow_ups:
            cited = (*cited_numbers(asked.reply), *asked.retrieved)
            named.append((f"question to {asked.to} in round {held.number}", cited))
    for where, cited in named:
        if strange := sorted(set(cited) - set(numbers)):
            raise InputError(f"The stored fact-check's {where} names passage {strange[0]}, which it does not have.")
    for subclaim in transcript.subclaims:
        if not 0 <= subclaim.start <= subclaim.end <= len(transcript.claim.text):
            raise InputError(f"The stored fact-check's subclaim {subclaim.number} does not lie within the claim.")
    return transcript


def event_from_data(kind: str, data: Mapping[str, Any]) -> Event:
    """The event that :func:`event_data` wrote.

    Raises:
        InputError: It is damaged, or of no known kind.
    """
    if kind not in _EVENTS:
        raise InputError(f"{kind!r} is not an event of a debate; the events are {', '.join(EVENT_KINDS)}.")
    given = tuple[Subclaim, ...] if kind == "subclaims" else _EVENTS[kind]
    event: Event = _read(given, data.get(kind, ()) if kind == "subclaims" else _bare(data, "passages"))
    return event


def _bare(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Data whose list of passages is without the citations, which follow from the rest."""
    listed = data.get(name)
    return {**data, name: [_without(one, "citation") for one in listed]} if isinstance(listed, list) else data


def _without(entry: Any, derived: str) -> Any:
    return {name: entry[name] for name in entry if name != derived} if isinstance(entry, dict) else entry


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # A dataclass takes the settings of what holds it, here of a tuple.
    return TypeAdapter(tuple[kind], config=ConfigDict(strict=True, extra="forbid", allow_inf_nan=False))


def _written(kind: Any, record: Any) -> Any:
    return _adapter(kind).dump_python((record,), mode="json")[0]


def _read(kind: Any, data: Any) -> Any:
    try:
        # Strict JSON: lists become tuples, and whole numbers stand for numbers, but no text does.
        return _adapter(kind).validate_json(json.dumps([data]))[0]
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"][1:])
        raise InputError(f"The stored fact-check's {where.removeprefix('.') or 'data'}: {first['msg']}.") from None


def reader_view(transcript: Transcript, scale: Scale) -> Transcript:
    """The fact-check as readers may see it; the one given is not altered.

    - A verdict that cites and quotes no passage of the debate becomes "not enough information", and is reported as
      withheld.
    - A likelihood that says the opposite of the verdict beside it is left out.
    - How a claim misleads is said only where the verdict that is shown is against it.
    - A debate of the bundled model is a demonstration, also where it was stored before transcripts said so.

    Args:
        transcript: A finished fact-check.
        scale: Its scale.

    Raises:
        InputError: A verdict is not one of the scale's labels.
    """
    models = {transcript.mediator.rpartition(", ")[2], *(profile.model for profile in transcript.advocates)}
    rounds = tuple(
        replace(
            held,
            opinions=tuple(replace(one, levels=_agreeing(one.levels, one.verdict, scale)) for one in held.opinions),
            parts=tuple(replace(one, levels=_agreeing(one.levels, one.verdict, scale)) for one in held.parts),
            decision=replace(held.decision, levels=_agreeing(held.decision.levels, held.decision.verdict, scale)),
        )
        for held in transcript.rounds
    )
    verdict = transcript.verdict
    verdict = replace(verdict, levels=_agreeing(verdict.levels, verdict.label, scale))
    known = {source.number for source in transcript.sources}
    bears = known.intersection(cited_numbers(verdict.explanation, verdict.quotations))
    if verdict.outcome == "verdict" and verdict.label is not None and not bears:
        verdict = replace(
            verdict,
            outcome="not enough information",
            label=scale.nei,
            levels=None,
            probabilities=(),
            caveats=(withheld_caveat(verdict.label), *verdict.caveats),
            contradicts=None,
            withheld=verdict.label,
        )
    return replace(
        transcript,
        rounds=rounds,
        verdict=verdict,
        fallacy=transcript.fallacy if is_against(verdict, scale) else None,
        demonstration=transcript.demonstration or (bool(rounds) and DEFAULT_MODEL in models),
    )


def is_against(verdict: Verdict, scale: Scale) -> bool:
    """Whether a verdict stands on the wrong side of its scale."""
    return verdict.outcome == "verdict" and verdict.label in scale.labels and verdict.label not in scale.correct


def withheld_caveat(label: str) -> str:
    """What readers see of a verdict that is withheld."""
    return f"The mediator would say \u201c{label}\u201d, but rests it on no passage: it is not given as a verdict."


def _agreeing(levels: Levels | None, label: str | None, scale: Scale) -> Levels | None:
    """The levels without a likelihood that contradicts the verdict."""
    if levels is None or levels.likelihood is None or label is None or label == scale.nei:
        return levels
    return levels if takes_side(levels.likelihood, scale.is_correct(label)) else replace(levels, likelihood=None)
