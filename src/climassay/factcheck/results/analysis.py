"""What a run of fact-checks amounts to: scores against published verdicts, and how the debates went."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from pydantic import TypeAdapter

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.factcheck.certainty import CONFIDENCES
from climassay.factcheck.results.scoring import NO_VERDICT, VerdictScores, score_verdicts
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import AdvocateOpinion, Outcome, Transcript, reader_view
from climassay.grounding import AnswerSentence, written
from climassay.metrics.entailment import ENTAILED
from climassay.models.contract import Usage
from climassay.statistics import (
    CoveragePoint,
    Estimate,
    PairedDifference,
    ResampledEstimate,
    bootstrap_interval,
    constant_baseline,
    krippendorff_alpha,
    paired_difference,
    proportion,
    selective_curve,
)

MEDIATOR: Final = "mediator"
"""The mediator among the parties; no advocate can be called so."""


def opinion_of(transcript: Transcript, advocate: str, number: int | None = None) -> AdvocateOpinion | None:
    """An advocate's opinion on the whole claim after so many rounds, or at the end; None where it has none.

    A debate that closed earlier stays as it closed.
    """
    if not transcript.rounds:
        return None
    held = transcript.rounds[-1 if number is None else min(number, len(transcript.rounds)) - 1]
    return next((opinion for opinion in held.opinions if opinion.advocate == advocate), None)


def verdict_of(transcript: Transcript, party: str, number: int | None = None) -> str | None:
    """A party's verdict after so many rounds, or at the end; None where there is none."""
    if party == MEDIATOR:
        if number is None or number >= len(transcript.rounds):
            return transcript.verdict.label
        return transcript.rounds[number - 1].decision.verdict
    opinion = opinion_of(transcript, party, number)
    return None if opinion is None else opinion.verdict


def explanation_of(transcript: Transcript, party: str) -> tuple[tuple[AnswerSentence, ...], int, bool | None]:
    """A party's last explanation, how many citations were removed from it, and whether it contradicts its verdict."""
    source = transcript.verdict if party == MEDIATOR else opinion_of(transcript, party)
    if source is None:
        return (), 0, None
    return source.explanation, source.removed_citations, source.contradicts


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """Accuracy of the surest verdicts against how many claims they cover.

    "Not enough information" and failed checks cover nothing, so that the curve may end before all claims are covered.
    """

    ordered_by: Literal["probability", "confidence"]
    """By the verdict's probability; where a verdict has none, all are ordered by confidence, then probability."""
    claims: int
    """Claims with a published verdict."""
    points: tuple[CoveragePoint, ...]
    """Surest first; verdicts that are equally sure make one point."""
    area: float
    """Mean accuracy over the coverages reached, equally sure verdicts in random order: 1 minus the area under the
    risk-coverage curve, per unit of coverage."""
    unordered: float
    """What that area is when the order says nothing: the accuracy of all verdicts."""
    constant: str
    """The most frequent published class."""
    constant_accuracy: float
    """Accuracy of always giving it, on all claims."""


def risk_coverage(
    transcripts: Sequence[Transcript], truths: Mapping[str, str], scale: Scale, classes: int
) -> RiskCoverage | None:
    """The risk-coverage curve of the mediator's verdicts in so many classes; None where there is no verdict.

    References:
        El-Yaniv and Wiener (2010), On the Foundations of Noise-free Selective Classification, JMLR 11.
    """
    given = [transcript for transcript in transcripts if transcript.verdict.label in scale.labels]
    if not given:
        return None
    chances = [scale.probability(transcript.verdict.label, transcript.verdict.probabilities) for transcript in given]
    by_probability = all(chance is not None for chance in chances)
    ranked = []
    for transcript, chance in zip(given, chances, strict=True):
        levels = transcript.verdict.levels
        confidence = -1 if levels is None else CONFIDENCES.index(levels.confidence)
        sure = (0 if by_probability else confidence, chance or 0.0)
        right = scale.collapse(transcript.verdict.label or "", classes) == scale.collapse(
            truths[transcript.claim.id], classes
        )
        ranked.append((sure, right))
    curve = selective_curve([sure for sure, _ in ranked], [right for _, right in ranked], items=len(transcripts))
    constant = constant_baseline([scale.collapse(truths[one.claim.id], classes) for one in transcripts])
    return RiskCoverage(
        "probability" if by_probability else "confidence",
        len(transcripts),
        curve.points,
        curve.area,
        curve.unordered,
        str(constant.label),
        constant.accuracy,
    )


AgreementStage = Literal["after the first round", "at the end"]
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

    stage: AgreementStage
    claims: int
    """Claims on which at least two advocates were informed; nothing else counts."""
    ordinal: ResampledEstimate | None
    """On the scale's order; None without such claims. Interval: bootstrap over claims."""
    sides: ResampledEstimate | None
    """On the two sides of the scale."""


@dataclass(frozen=True, slots=True)
class Contradictions:
    """Explanations that argue for the other side than their verdict."""

    party: str
    share: Estimate | None
    """Share of the explanations for which it was determined; None where it was for none."""
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
    """Verdicts published, where there are any, and given by each participant; claims not debated have none."""
    given: dict[str, list[str | None]] = {PUBLISHED: list(truths.values())} if truths else {}
    given |= {party: [verdict_of(transcript, party) for transcript in transcripts] for party in parties}
    names = (*scale.classes(classes), scale.nei, NO_VERDICT)
    results = []
    for party, verdicts in given.items():
        counted = Counter(NO_VERDICT if one is None else scale.collapse(one, classes) for one in verdicts)
        results.append(Distribution(party, tuple((name, counted[name]) for name in names)))
    return tuple(results)


def nei_rates(debated: Sequence[Transcript], parties: Sequence[str], scale: Scale) -> tuple[NeiRate, ...]:
    """How often each participant had not enough information, among all debated claims."""
    if not debated:
        return ()
    counts = [(party, sum(verdict_of(one, party) == scale.nei for one in debated)) for party in parties]
    return tuple(NeiRate(party, proportion(count, len(debated))) for party, count in counts)


def count_rounds(debated: Sequence[Transcript]) -> RoundCounts:
    """Rounds, why they were held, and why the last one was the last."""
    needed = Counter(len(transcript.rounds) for transcript in debated)
    ended = [(one.verdict.outcome, one.rounds[-1].decision.reason) for one in debated]
    closed = Counter("a model call failed" if outcome == "failed" else reason for outcome, reason in ended)
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
    results: list[PartyAgreement] = []
    stages: tuple[tuple[AgreementStage, int | None], ...] = (("after the first round", 1), ("at the end", None))
    for stage, number in stages if len(advocates) > 1 else ():
        held = [[opinion_of(transcript, name, number) for name in advocates] for transcript in debated]
        views = [[one.verdict if one is not None and one.informed else None for one in row] for row in held]
        rated = [row for row in views if sum(view is not None for view in row) >= 2]
        sides = [[None if view is None else scale.is_correct(view) for view in row] for row in rated]
        ordinal = _alpha(rated, scale.labels, seed) if rated else None
        results.append(PartyAgreement(stage, len(rated), ordinal, _alpha(sides, None, seed) if rated else None))
    return tuple(results)


def _alpha(rated: Sequence[Sequence[Hashable | None]], order: Sequence[str] | None, seed: int) -> ResampledEstimate:
    """Alpha of claims by advocates, ordinal where there is an order, with a bootstrap interval over claims."""

    def alpha(places: Iterable[float]) -> float:
        by_advocate = list(zip(*(rated[int(place)] for place in places), strict=True))
        return krippendorff_alpha(by_advocate, measurement="nominal" if order is None else "ordinal", order=order)

    places = list(range(len(rated)))
    drawn = bootstrap_interval(places, alpha, resamples=ALPHA_RESAMPLES, seed=seed)
    return ResampledEstimate.of(alpha(places), drawn, len(rated))


def contradictions(debated: Sequence[Transcript], parties: Sequence[str]) -> tuple[Contradictions, ...]:
    """How many of each participant's last explanations argue against their verdict."""
    results = []
    for party in parties:
        explained = [explanation_of(transcript, party) for transcript in debated]
        answers = [contradicts for sentences, _, contradicts in explained if sentences]
        known = [answer for answer in answers if answer is not None]
        share = proportion(sum(known), len(known)) if known else None
        results.append(Contradictions(party, share, len(answers) - len(known)))
    return tuple(results)


def citation_counts(debated: Sequence[Transcript], parties: Sequence[str]) -> tuple[CitationCounts, ...]:
    """What the sentences of each participant's last explanations rest on."""
    results = []
    for party in parties:
        explained = [explanation_of(one, party) for one in debated]
        sentences = [sentence for explanation, _, _ in explained for sentence in explanation]
        origins = Counter(sentence.origin for sentence in sentences)
        measured = [value for sentence in sentences for value in sentence.entailment if value is not None]
        entailed = proportion(sum(value >= ENTAILED for value in measured), len(measured)) if measured else None
        results.append(
            CitationCounts(
                party,
                explanations=sum(bool(explanation) for explanation, _, _ in explained),
                sentences=len(sentences),
                cited=origins["model"],
                attributed=origins["attributed"],
                in_house=sum(sentence.in_house for sentence in sentences),
                removed=sum(removed for _, removed, _ in explained),
                with_foreign_numbers=sum(bool(sentence.foreign_numbers) for sentence in sentences),
                entailed=entailed,
            )
        )
    return tuple(results)


def leave_one_out(
    debated: Sequence[Transcript],
    truths: Mapping[str, str],
    advocates: Sequence[str],
    scale: Scale,
    counts: Sequence[int],
    seed: int,
) -> tuple[LeftOut, ...]:
    """What each advocate changed, on the claims for which the mediator was asked again without it."""
    results = []
    for advocate in advocates:
        asked = [(one, dict(one.without)[advocate]) for one in debated if advocate in dict(one.without)]
        answered = [(one, label) for one, label in asked if label is not None and one.verdict.label is not None]
        levels = []
        for count in counts if answered else ():
            pairs = [
                (scale.collapse(verdict_of(one, MEDIATOR) or scale.nei, count), scale.collapse(label, count))
                for one, label in answered
            ]
            known = [
                (scale.collapse(truths[one.claim.id], count), *pair)
                for (one, _), pair in zip(answered, pairs, strict=True)
                if one.claim.id in truths
            ]
            gain = None
            if known:
                without_it = [float(without == truth) for truth, _, without in known]
                with_it = [float(given == truth) for truth, given, _ in known]
                gain = paired_difference(without_it, with_it, seed=seed)
            changed = sum(given != without for given, without in pairs)
            levels.append(LevelChange(count, proportion(changed, len(pairs)), gain))
        if asked:
            results.append(LeftOut(advocate, len(answered), len(asked) - len(answered), tuple(levels)))
    return tuple(results)


@dataclass(frozen=True, slots=True)
class PartyScores:
    """The mediator or an advocate against the published verdicts, at the end of the debates."""

    party: str
    """``mediator`` or the advocate's name."""
    levels: tuple[VerdictScores, ...]
    """One a number of classes in which the published verdicts can be compared, finest first."""


@dataclass(frozen=True, slots=True)
class RoundScores:
    """Where a party stood after so many rounds; debates that closed earlier count as they closed."""

    party: str
    round: int
    still_open: int
    """Debates on claims with a published verdict that went on after this round."""
    scores: VerdictScores


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A verdict other than the published one; "not enough information" is none."""

    claim: str
    """Id of the claim."""
    text: str
    truth: str
    verdict: str
    distance: int | None
    """Steps between the two on the scale; None where the truth is "not enough information" or of another scale."""
    probability: float | None
    confidence: str | None
    explanation: str


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A fact-check without an outcome, because a model call failed."""

    claim: str
    """Id of the claim."""
    text: str
    error: str


@dataclass(frozen=True, slots=True)
class RunAnalysis:
    """A run of fact-checks, each claim counted once."""

    scale: Scale
    shown: int
    """Number of classes that distributions, rounds, risk and disagreements are shown in."""
    claims: int
    """Different claims."""
    repeated: int
    """Transcripts left out because an earlier one is about the same claim."""
    with_truth: int
    """Claims that have a published verdict."""
    outcomes: tuple[tuple[Outcome, int], ...]
    """How many fact-checks ended how; outcomes that did not occur are there with 0."""
    scores: tuple[PartyScores, ...]
    """The mediator first; empty where no claim has a published verdict. A claim that was not debated, or whose check
    failed, counts as wrong."""
    by_round: tuple[RoundScores, ...]
    """By party, then round; empty without published verdicts, or where no debate had a second round."""
    distributions: tuple[Distribution, ...]
    """The published verdicts where there are any, then the mediator's and the advocates' at the end."""
    nei: tuple[NeiRate, ...]
    rounds: RoundCounts
    agreement: tuple[PartyAgreement, ...]
    """Between advocates, after the first round and at the end; empty with fewer than two advocates."""
    contradictions: tuple[Contradictions, ...]
    citations: tuple[CitationCounts, ...]
    left_out: tuple[LeftOut, ...]
    """One an advocate; empty where it was not asked."""
    risk: RiskCoverage | None
    """None without published verdicts or without a verdict on such a claim."""
    disagreements: tuple[Disagreement, ...]
    """Farthest from the truth first, then the most probable."""
    failed: tuple[FailedCheck, ...]
    """In the order of the claims."""
    demonstration: bool
    """Whether a very small model took part in any of the debates."""
    failures: int
    """Model calls that failed."""
    with_failures: int
    """Claims with such a call."""
    usage: Usage


def analyse(
    transcripts: Sequence[Transcript],
    truths: Mapping[str, str],
    scale: Scale,
    *,
    classes: int | None = None,
    seed: int = 0,
    resamples: int = 2000,
) -> RunAnalysis:
    """Everything that a report of a run shows.

    Args:
        transcripts: Finished fact-checks on one scale; of several on the same claim the first counts.
        truths: Published verdict by the claim's id; claims may be missing.
        scale: The scale of all of them.
        classes: Number of classes to show distributions and rounds in; by default as many as the published verdicts
            can be compared in.
        seed: Seed of the resampling.
        resamples: Bootstrap samples for scores.

    Raises:
        InputError: There is no transcript, one is on another scale, a published verdict cannot be compared with the
            scale's, or neither can be shown in so many classes.
    """
    first = tuple({transcript.claim.id: transcript for transcript in reversed(transcripts)}.values())[::-1]
    if not first:
        raise InputError("There is no fact-check to analyse.")
    for one in first:
        if one.scale != scale.name:
            raise InputError(
                f"The fact-check of the claim {one.claim.text[:60]!r} is on the scale {one.scale}, not {scale.name}: "
                "analyse runs of one scale at a time."
            )
    checked = tuple(reader_view(transcript, scale) for transcript in first)
    shown = len(scale.classes(classes))
    told = {one.claim.id: truths.get(one.claim.id, "").strip() for one in checked}
    published = {claim: truth for claim, truth in told.items() if truth}
    counts = scale.comparable_counts(published.values())
    if classes is not None and shown not in counts:
        raise InputError(f"The published verdicts can be compared in {counts[0]} classes at most, not in {shown}.")
    shown = min(shown, counts[0])
    known = {claim: scale.match(truth) or scale.match(truth, counts[0]) or "" for claim, truth in published.items()}
    names = (profile.name for transcript in checked for profile in transcript.advocates)
    parties = (MEDIATOR, *dict.fromkeys(names))
    debated = tuple(transcript for transcript in checked if transcript.rounds)
    scored = tuple(transcript for transcript in checked if transcript.claim.id in known)
    counted = Counter(transcript.verdict.outcome for transcript in checked)
    truth = [published[one.claim.id] for one in scored]

    def score(party: str, count: int, after: int | None = None) -> VerdictScores:
        given = [verdict_of(transcript, party, after) for transcript in scored]
        return score_verdicts(truth, given, scale, classes=count, seed=seed, resamples=resamples)

    most = max((len(transcript.rounds) for transcript in scored), default=0)
    by_round = [
        RoundScores(party, number, sum(len(one.rounds) > number for one in scored), score(party, shown, number))
        for party in parties
        for number in range(1, most + 1)
        if most > 1
    ]
    return RunAnalysis(
        scale=scale,
        shown=shown,
        claims=len(checked),
        repeated=len(transcripts) - len(checked),
        with_truth=len(scored),
        outcomes=tuple((outcome, counted[outcome]) for outcome in get_args(Outcome)),
        scores=tuple(PartyScores(one, tuple(score(one, count) for count in counts)) for one in parties if scored),
        by_round=tuple(by_round),
        distributions=distributions(checked, known, parties, scale, shown),
        nei=nei_rates(debated, parties, scale),
        rounds=count_rounds(debated),
        agreement=agreement_between(debated, parties[1:], scale, seed),
        contradictions=contradictions(debated, parties),
        citations=citation_counts(debated, parties),
        left_out=leave_one_out(debated, known, parties[1:], scale, counts, seed),
        risk=risk_coverage(scored, known, scale, shown),
        disagreements=_disagreements(scored, known, published, scale, shown),
        failed=tuple(
            FailedCheck(one.claim.id, one.claim.text, one.verdict.error or "no reason is known")
            for one in checked
            if one.verdict.outcome == "failed"
        ),
        demonstration=any(transcript.demonstration for transcript in checked),
        failures=sum(transcript.failures for transcript in checked),
        with_failures=sum(transcript.failures > 0 for transcript in checked),
        usage=sum((transcript.usage for transcript in checked), Usage()),
    )


def stored_truths(rows: Iterable[Mapping[str, Any]], transcripts: Sequence[Transcript]) -> dict[str, str]:
    """Published verdicts that a run keeps, by the claim's id.

    Args:
        rows: What :meth:`~climassay.factcheck.checking.Checker.keep` stored: ``claim`` (an id) and ``verdict``.
        transcripts: The run's.

    Notes:
        Older runs name claims by their words alone. Where claims that differ in a sign share such a name,
        nobody can tell whose the verdict is, and none of them has one.
    """
    kept = {str(row["claim"]): str(row["verdict"]) for row in rows}
    by_words: dict[str, set[str]] = {}
    for transcript in transcripts:
        by_words.setdefault(words_id(transcript.claim.text), set()).add(transcript.claim.id)
    for name, ids in by_words.items():
        if name in kept and len(ids) == 1:
            kept.setdefault(next(iter(ids)), kept[name])
    return kept


def analysis_data(analysis: RunAnalysis) -> dict[str, Any]:
    """Everything, for JSON: the records as objects; of the scale only its name."""
    counted = TypeAdapter(RunAnalysis).dump_python(analysis, mode="json", exclude={"scale"})
    return {"scale": analysis.scale.name, **counted}


def _disagreements(
    transcripts: Sequence[Transcript], truths: Mapping[str, str], published: Mapping[str, str], scale: Scale, shown: int
) -> tuple[Disagreement, ...]:
    results = []
    for transcript in transcripts:
        truth, given = truths[transcript.claim.id], verdict_of(transcript, MEDIATOR)
        if given is None or given == scale.nei or scale.collapse(given, shown) == scale.collapse(truth, shown):
            continue
        levels = transcript.verdict.levels
        results.append(
            Disagreement(
                transcript.claim.id,
                transcript.claim.text,
                truth if truth in (*scale.labels, scale.nei) else published[transcript.claim.id],
                given,
                scale.distance(truth, given) if truth in scale.labels else None,
                scale.probability(transcript.verdict.label, transcript.verdict.probabilities),
                None if levels is None else levels.confidence,
                " ".join(written(sentence) for sentence in transcript.verdict.explanation),
            )
        )
    return tuple(sorted(results, key=lambda one: (-(one.distance or 0), -(one.probability or 0.0), one.claim)))
