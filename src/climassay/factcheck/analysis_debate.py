"""How the debates of a run went: verdicts given, rounds, agreement, citations, and what drove the verdicts."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from climassay.factcheck.parties import MEDIATOR, explanation_of, opinion_of, verdict_of
from climassay.factcheck.scales import Scale
from climassay.factcheck.scoring import NO_VERDICT
from climassay.factcheck.transcript import Transcript
from climassay.grounding import AnswerSentence
from climassay.grounding.faithfulness import ENTAILED
from climassay.statistics import (
    Estimate,
    PairedDifference,
    bootstrap_interval,
    krippendorff_alpha,
    paired_difference,
    proportion,
)

PUBLISHED = "published"
"""Name of the distribution of published verdicts."""
ALPHA_RESAMPLES = 300
"""Bootstrap samples for alpha, whose computation is slow."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """How often a party gave each class (Leippold et al. 2024, figures 2 and 5)."""

    party: str
    """``published``, ``mediator`` or an advocate's name."""
    counts: tuple[tuple[str, int], ...]
    """Classes from wrong to right, "not enough information", and ``no verdict``."""


@dataclass(frozen=True, slots=True)
class NeiRate:
    """How often a party had not enough information at the end of a debate."""

    party: str
    share: Estimate


@dataclass(frozen=True, slots=True)
class RoundCounts:
    """How long the debates went on."""

    debates: int
    needed: tuple[tuple[int, int], ...]
    """Number of rounds, and debates that took so many."""
    closed: tuple[tuple[str, int], ...]
    """Why debates closed, most frequent first."""
    opened: tuple[tuple[str, int], ...]
    """Why further rounds were held, most frequent first; one debate can have several."""
    changed: int
    """Opinions of advocates that changed from one round to the next."""


@dataclass(frozen=True, slots=True)
class PartyAgreement:
    """Krippendorff's alpha between the informed advocates: 1 full agreement, 0 that of chance."""

    stage: Literal["after the first round", "at the end"]
    claims: int
    """Claims on which at least two advocates were informed; nothing else counts."""
    ordinal: Estimate | None
    """On the scale's order; None without such claims. Interval: bootstrap over claims."""
    sides: Estimate | None
    """On the two sides of the scale."""


@dataclass(frozen=True, slots=True)
class Contradictions:
    """Explanations that argue for the other side than their verdict."""

    party: str
    share: Estimate | None
    """Of the explanations for which it was determined; None where it was for none."""
    unknown: int
    """Explanations for which it was not determined."""


@dataclass(frozen=True, slots=True)
class CitationCounts:
    """What the sentences of a party's last explanations rest on."""

    party: str
    explanations: int
    sentences: int
    cited: int
    """Sentences with citations by the model itself."""
    attributed: int
    """Sentences whose citation was found by comparison with the passages."""
    in_house: int
    """Sentences that rest on no passage."""
    removed: int
    """Citations of passages that were not retrieved, taken out."""
    with_foreign_numbers: int
    """Cited sentences with a number that their passages do not have."""
    entailed: Estimate | None
    """Share of citations whose passage entails the sentence; None where it was not measured. Its n are citations."""


@dataclass(frozen=True, slots=True)
class LevelChange:
    """What leaving an advocate out does, in so many classes."""

    classes: int
    changed: Estimate
    """Share of claims whose verdict is another one without the advocate."""
    gain: PairedDifference | None
    """Accuracy with the advocate minus accuracy without it, on claims with a published verdict; None without any."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What the mediator would have said without an advocate."""

    advocate: str
    claims: int
    """Claims for which there is an answer."""
    failed: int
    levels: tuple[LevelChange, ...]
    """Finest first; empty without an answer."""


def distributions(
    transcripts: Sequence[Transcript], truths: Mapping[str, str], parties: Sequence[str], scale: Scale, classes: int
) -> tuple[Distribution, ...]:
    """Of published verdicts, where there are any, and of each party at the end; claims not debated have no verdict."""
    given: dict[str, list[str | None]] = {PUBLISHED: list(truths.values())} if truths else {}
    given |= {party: [verdict_of(transcript, party) for transcript in transcripts] for party in parties}
    names = (*scale.classes(classes), scale.nei, NO_VERDICT)
    found = []
    for party, verdicts in given.items():
        counted = Counter(NO_VERDICT if one is None else scale.collapse(one, classes) for one in verdicts)
        found.append(Distribution(party, tuple((name, counted[name]) for name in names)))
    return tuple(found)


def nei_rates(debated: Sequence[Transcript], parties: Sequence[str], scale: Scale) -> tuple[NeiRate, ...]:
    """Of all debated claims; none without debates."""
    if not debated:
        return ()
    counts = [(party, sum(verdict_of(one, party) == scale.nei for one in debated)) for party in parties]
    return tuple(NeiRate(party, proportion(count, len(debated))) for party, count in counts)


def count_rounds(debated: Sequence[Transcript]) -> RoundCounts:
    """Rounds, why they were held, and why the last one was the last."""
    needed = Counter(len(transcript.rounds) for transcript in debated)
    closed = Counter(transcript.rounds[-1].decision.reason for transcript in debated)
    opened = Counter(held.decision.reason for transcript in debated for held in transcript.rounds[:-1])
    opinions = (opinion for transcript in debated for held in transcript.rounds for opinion in held.opinions)
    return RoundCounts(
        len(debated),
        tuple(sorted(needed.items())),
        tuple((str(reason), count) for reason, count in closed.most_common()),
        tuple((str(reason), count) for reason, count in opened.most_common()),
        sum(opinion.changed for opinion in opinions),
    )


def agreement_between(
    debated: Sequence[Transcript], advocates: Sequence[str], scale: Scale, seed: int
) -> tuple[PartyAgreement, ...]:
    """Agreement before and after the advocates have heard each other."""
    if len(advocates) < 2:
        return ()
    return (
        _agreement("after the first round", 1, debated, advocates, scale, seed),
        _agreement("at the end", None, debated, advocates, scale, seed),
    )


def _agreement(
    stage: Literal["after the first round", "at the end"],
    number: int | None,
    debated: Sequence[Transcript],
    advocates: Sequence[str],
    scale: Scale,
    seed: int,
) -> PartyAgreement:
    held = [[opinion_of(transcript, name, number) for name in advocates] for transcript in debated]
    views = [[one.verdict if one is not None and one.informed else None for one in row] for row in held]
    rated = [row for row in views if sum(view is not None for view in row) >= 2]
    if not rated:
        return PartyAgreement(stage, 0, None, None)
    sides = [[None if view is None else scale.is_correct(view) for view in row] for row in rated]
    return PartyAgreement(stage, len(rated), _alpha(rated, scale.labels, seed), _alpha(sides, None, seed))


def _alpha(rated: Sequence[Sequence[Hashable | None]], order: Sequence[str] | None, seed: int) -> Estimate:
    """Alpha of claims by advocates, ordinal where there is an order, with a bootstrap interval over claims."""

    def alpha(places: Iterable[float]) -> float:
        by_advocate = list(zip(*(rated[int(place)] for place in places), strict=True))
        return krippendorff_alpha(by_advocate, measurement="nominal" if order is None else "ordinal", order=order)

    places = list(range(len(rated)))
    return Estimate(alpha(places), bootstrap_interval(places, alpha, resamples=ALPHA_RESAMPLES, seed=seed), len(rated))


def contradictions(debated: Sequence[Transcript], parties: Sequence[str]) -> tuple[Contradictions, ...]:
    """Of the last explanations of each party."""
    found = []
    for party in parties:
        explained = [explanation_of(transcript, party) for transcript in debated]
        answers = [contradicts for sentences, _, contradicts in explained if sentences]
        known = [answer for answer in answers if answer is not None]
        share = proportion(sum(known), len(known)) if known else None
        found.append(Contradictions(party, share, len(answers) - len(known)))
    return tuple(found)


def citation_counts(debated: Sequence[Transcript], parties: Sequence[str]) -> tuple[CitationCounts, ...]:
    """Of the last explanations of each party."""
    return tuple(_count_citations(party, [explanation_of(one, party) for one in debated]) for party in parties)


def _count_citations(
    party: str, explained: Sequence[tuple[Sequence[AnswerSentence], int, bool | None]]
) -> CitationCounts:
    sentences = [sentence for explanation, _, _ in explained for sentence in explanation]
    origins = Counter(sentence.origin for sentence in sentences)
    measured = [value for sentence in sentences for value in sentence.entailment if value is not None]
    return CitationCounts(
        party,
        explanations=sum(bool(explanation) for explanation, _, _ in explained),
        sentences=len(sentences),
        cited=origins["model"],
        attributed=origins["attributed"],
        in_house=sum(sentence.in_house for sentence in sentences),
        removed=sum(removed for _, removed, _ in explained),
        with_foreign_numbers=sum(bool(sentence.foreign_numbers) for sentence in sentences),
        entailed=proportion(sum(value >= ENTAILED for value in measured), len(measured)) if measured else None,
    )


def leave_one_out(
    debated: Sequence[Transcript],
    truths: Mapping[str, str],
    advocates: Sequence[str],
    scale: Scale,
    counts: Sequence[int],
    seed: int,
) -> tuple[LeftOut, ...]:
    """What each advocate changed, on the claims for which the mediator was asked again without it."""
    found = []
    for advocate in advocates:
        asked = [(one, dict(one.without)[advocate]) for one in debated if advocate in dict(one.without)]
        answered = [(one, label) for one, label in asked if label is not None and one.verdict.label is not None]
        if asked:
            levels = tuple(_change(answered, truths, scale, count, seed) for count in counts if answered)
            found.append(LeftOut(advocate, len(answered), len(asked) - len(answered), levels))
    return tuple(found)


def _change(
    answered: Sequence[tuple[Transcript, str]], truths: Mapping[str, str], scale: Scale, count: int, seed: int
) -> LevelChange:
    pairs = [
        (one.claim.id, scale.collapse(verdict_of(one, MEDIATOR) or scale.nei, count), scale.collapse(label, count))
        for one, label in answered
    ]
    wanted = [
        (scale.collapse(truths[claim], count), given, without) for claim, given, without in pairs if claim in truths
    ]
    gain = None
    if wanted:
        without_it = [float(without == truth) for truth, _, without in wanted]
        with_it = [float(given == truth) for truth, given, _ in wanted]
        gain = paired_difference(without_it, with_it, seed=seed)
    changed = sum(given != without for _, given, without in pairs)
    return LevelChange(count, proportion(changed, len(pairs)), gain)
