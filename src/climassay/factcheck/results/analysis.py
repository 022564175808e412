"""Analysis of a run of fact-checks: scores against published verdicts, and statistics of the debates."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from pydantic import TypeAdapter

from climassay.errors import InputError
from climassay.factcheck.certainty import CONFIDENCES
from climassay.factcheck.results.scoring import (
    NO_VERDICT,
    GroupedScores,
    VerdictScores,
    score_groups,
    score_verdicts,
)
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import AdvocateOpinion, Outcome, Transcript, reader_view
from climassay.grounding import AnswerSentence, format_sentence
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
"""Name of the mediator among the parties; advocates cannot have it."""


def find_opinion(transcript: Transcript, advocate: str, number: int | None = None) -> AdvocateOpinion | None:
    """Return an advocate's opinion on the whole claim after round ``number``, by default the last one.

    If the debate closed earlier, return the advocate's last opinion; if it has none, return None.
    """
    if not transcript.rounds:
        return None
    debate_round = transcript.rounds[-1 if number is None else min(number, len(transcript.rounds)) - 1]
    return next((opinion for opinion in debate_round.opinions if opinion.advocate == advocate), None)


def verdict_of(transcript: Transcript, party: str, number: int | None = None) -> str | None:
    """Return an advocate's or the mediator's verdict after round ``number`` (by default the last).

    If the participant has no verdict after that round, return None.
    """
    if party == MEDIATOR:
        if number is None or number >= len(transcript.rounds):
            return transcript.verdict.label
        return transcript.rounds[number - 1].decision.verdict
    opinion = find_opinion(transcript, party, number)
    return None if opinion is None else opinion.verdict


FOLLOW_UP: Final = "follow-up"
"""Outcome of a round after which the mediator asks further questions (Leippold et al. 2024, Tables 3 to 5)."""


def round_outcome(transcript: Transcript, number: int) -> str | None:
    """Return the mediator's verdict after a round (``follow-up`` if the debate went on); None if it has none."""
    return FOLLOW_UP if number < len(transcript.rounds) else verdict_of(transcript, MEDIATOR)


def find_explanation(transcript: Transcript, party: str) -> tuple[tuple[AnswerSentence, ...], int]:
    """Return a party's last explanation and the number of removed citations."""
    source = transcript.verdict if party == MEDIATOR else find_opinion(transcript, party)
    return ((), 0) if source is None else (source.explanation, source.removed_citations)


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """Accuracy of the most confident verdicts as a function of coverage, the proportion of claims that they cover.

    "Not enough information" and failed checks cover no claim, so the curve may end below full coverage.
    """

    claims: int
    """Number of claims with a published verdict."""
    points: tuple[CoveragePoint, ...]
    """Points of the curve, most certain verdicts first. Equally certain verdicts form one point."""
    area: float
    """Mean accuracy over the range of coverage, with ties in random order.

    This is 1 minus the ratio of the area under the risk-coverage curve to the width of the range.
    """
    unordered: float
    """Area expected for a random order of the verdicts: the accuracy of all verdicts."""
    constant: str
    """Most frequent class among the published verdicts. The constant baseline always predicts this class."""
    constant_accuracy: float
    """Accuracy of the constant baseline on all claims."""


def risk_coverage(
    transcripts: Sequence[Transcript], truths: Mapping[str, str], scale: Scale, classes: int
) -> RiskCoverage | None:
    """Return the risk-coverage curve of the mediator's verdicts; None if there is no verdict.

    References:
        El-Yaniv and Wiener (2010), On the Foundations of Noise-free Selective Classification, JMLR 11.
    """
    verdict_transcripts = [transcript for transcript in transcripts if transcript.verdict.label in scale.labels]
    if not verdict_transcripts:
        return None
    scored_verdicts = []
    for transcript in verdict_transcripts:
        levels = transcript.verdict.levels
        confidence = -1 if levels is None else CONFIDENCES.index(levels.confidence)
        is_right = scale.collapse(transcript.verdict.label or "", classes) == scale.collapse(
            truths[transcript.claim.id], classes
        )
        scored_verdicts.append((confidence, is_right))
    curve = selective_curve(
        [confidence for confidence, _ in scored_verdicts],
        [is_right for _, is_right in scored_verdicts],
        n_items=len(transcripts),
    )
    constant = constant_baseline([scale.collapse(truths[transcript.claim.id], classes) for transcript in transcripts])
    return RiskCoverage(
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
"""Number of bootstrap samples for alpha, whose computation is slow."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Number of verdicts of each class that one participant of the debates reached, or that were published.

    See Leippold et al. (2024), figures 2 and 5.
    """

    party: str
    """``published``, ``mediator`` or an advocate's name."""
    counts: tuple[tuple[str, int], ...]
    """Number of verdicts per class, as pairs (class, number): the classes of the scale from wrong to right, then "not
    enough information" and ``no verdict``."""


@dataclass(frozen=True, slots=True)
class NeiRate:
    """Proportion of debates in which a party's last verdict is "not enough information"."""

    party: str
    share: Estimate


@dataclass(frozen=True, slots=True)
class RoundCounts:
    """Statistics of the rounds of the debates."""

    debates: int
    needed: tuple[tuple[int, int], ...]
    """Pairs (number of rounds, number of debates with that many rounds)."""
    closed: tuple[tuple[str, int], ...]
    """Pairs of a reason for closing and the number of debates closed for this reason, most frequent first."""
    opened: tuple[tuple[str, int], ...]
    """Pairs of a reason for a further round and the number of rounds opened for this reason, most frequent first."""
    changed: int
    """Number of advocates' verdicts that changed from one round to the next."""


@dataclass(frozen=True, slots=True)
class PartyAgreement:
    """Krippendorff's alpha between the informed advocates: 1 for full agreement, 0 for chance."""

    stage: AgreementStage
    claims: int
    """Number of claims on which at least two advocates have information."""
    ordinal: ResampledEstimate | None
    """Alpha on the ordinal scale, with a bootstrap interval over claims; None if there are no such claims."""
    sides: ResampledEstimate | None
    """Alpha of the verdicts collapsed to the two sides of the scale; None if there are no such claims."""


@dataclass(frozen=True, slots=True)
class CitationCounts:
    """Numbers of sentences in a party's last explanations by the origin of their citations."""

    party: str
    explanations: int
    sentences: int
    cited: int
    """Number of sentences with citations that the model wrote itself."""
    attributed: int
    """Number of sentences whose citation was found by comparison with the passages."""
    in_house: int
    """Number of sentences that no passage supports."""
    removed: int
    """Number of citations removed because they name no retrieved passage."""
    with_foreign_numbers: int
    """Number of sentences with citations that state a number absent from the cited passages."""
    entailed: Estimate | None
    """Proportion of citations whose passage entails the sentence; None if not measured."""


@dataclass(frozen=True, slots=True)
class LevelChange:
    """Effect of leaving an advocate out, on verdicts collapsed to a number of classes."""

    classes: int
    changed: Estimate
    """Proportion of claims whose verdict changes without the advocate."""
    gain: PairedDifference | None
    """Accuracy with the advocate minus accuracy without, on claims with a published verdict; None if there are none."""


@dataclass(frozen=True, slots=True)
class AdvocateEffect:
    """Effect on the scores of leaving one advocate out of the debates, by number of classes."""

    advocate: str
    claims: int
    """Number of claims with a verdict without the advocate."""
    failed: int
    levels: tuple[LevelChange, ...]
    """Effects by number of classes, finest first; empty if there are no such claims."""


def count_distributions(
    transcripts: Sequence[Transcript], truths: Mapping[str, str], parties: Sequence[str], scale: Scale, classes: int
) -> tuple[Distribution, ...]:
    """Count the verdicts by class: the published ones, if there are any, and those of each party."""
    verdicts_by_party: dict[str, list[str | None]] = {PUBLISHED: list(truths.values())} if truths else {}
    verdicts_by_party |= {party: [verdict_of(transcript, party) for transcript in transcripts] for party in parties}
    names = (*scale.classes(classes), scale.nei, NO_VERDICT)
    results = []
    for party, verdicts in verdicts_by_party.items():
        counts = Counter(NO_VERDICT if verdict is None else scale.collapse(verdict, classes) for verdict in verdicts)
        results.append(Distribution(party, tuple((name, counts[name]) for name in names)))
    return tuple(results)


def compute_nei_rates(debates: Sequence[Transcript], parties: Sequence[str], scale: Scale) -> tuple[NeiRate, ...]:
    """Return, for each party, the proportion of debates that it ended with the verdict "not enough information"."""
    if not debates:
        return ()
    counts = [(party, sum(verdict_of(transcript, party) == scale.nei for transcript in debates)) for party in parties]
    return tuple(NeiRate(party, proportion(count, len(debates))) for party, count in counts)


def count_rounds(debates: Sequence[Transcript]) -> RoundCounts:
    """Count rounds, reasons for further rounds and reasons for closing."""
    round_counts = Counter(len(transcript.rounds) for transcript in debates)
    endings = [(transcript.verdict.outcome, transcript.rounds[-1].decision.reason) for transcript in debates]
    closing_counts = Counter("a model call failed" if outcome == "failed" else reason for outcome, reason in endings)
    opening_counts = Counter(
        debate_round.decision.reason for transcript in debates for debate_round in transcript.rounds[:-1]
    )
    opinions = (
        opinion for transcript in debates for debate_round in transcript.rounds for opinion in debate_round.opinions
    )
    return RoundCounts(
        len(debates),
        tuple(sorted(round_counts.items())),
        tuple((str(reason), count) for reason, count in closing_counts.most_common()),
        tuple((str(reason), count) for reason, count in opening_counts.most_common()),
        sum(opinion.changed for opinion in opinions),
    )


def compute_agreement(
    debates: Sequence[Transcript], advocates: Sequence[str], scale: Scale, seed: int
) -> tuple[PartyAgreement, ...]:
    """Return the advocates' agreement after the first round and at the end."""
    results: list[PartyAgreement] = []
    stages: tuple[tuple[AgreementStage, int | None], ...] = (("after the first round", 1), ("at the end", None))
    for stage, number in stages if len(advocates) > 1 else ():
        opinions = [[find_opinion(transcript, name, number) for name in advocates] for transcript in debates]
        verdicts = [
            [opinion.verdict if opinion is not None and opinion.informed else None for opinion in row]
            for row in opinions
        ]
        ratings = [row for row in verdicts if sum(verdict is not None for verdict in row) >= 2]
        side_ratings = [[None if verdict is None else scale.is_correct(verdict) for verdict in row] for row in ratings]
        ordinal = _compute_alpha(ratings, scale.labels, seed) if ratings else None
        results.append(
            PartyAgreement(stage, len(ratings), ordinal, _compute_alpha(side_ratings, None, seed) if ratings else None)
        )
    return tuple(results)


def _compute_alpha(
    ratings: Sequence[Sequence[Hashable | None]], order: Sequence[str] | None, seed: int
) -> ResampledEstimate:
    """Return Krippendorff's alpha of ratings [claims][advocates] with a bootstrap interval.

    Alpha is ordinal if ``order`` is given, otherwise nominal.
    """

    def alpha(indices: Iterable[float]) -> float:
        by_advocate = list(zip(*(ratings[int(index)] for index in indices), strict=True))
        return krippendorff_alpha(by_advocate, measurement="nominal" if order is None else "ordinal", order=order)

    indices = list(range(len(ratings)))
    interval = bootstrap_interval(indices, alpha, resamples=ALPHA_RESAMPLES, seed=seed)
    return ResampledEstimate.from_resamples(alpha(indices), interval, len(ratings))


def count_citations(debates: Sequence[Transcript], parties: Sequence[str]) -> tuple[CitationCounts, ...]:
    """Count the sentences of each party's last explanations by the origin of their citations."""
    results = []
    for party in parties:
        explanations = [find_explanation(transcript, party) for transcript in debates]
        sentences = [sentence for explanation, _ in explanations for sentence in explanation]
        origins = Counter(sentence.origin for sentence in sentences)
        entailments = [value for sentence in sentences for value in sentence.entailment if value is not None]
        entailed_share = (
            proportion(sum(value >= ENTAILED for value in entailments), len(entailments)) if entailments else None
        )
        results.append(
            CitationCounts(
                party,
                explanations=sum(bool(explanation) for explanation, _ in explanations),
                sentences=len(sentences),
                cited=origins["model"],
                attributed=origins["attributed"],
                in_house=sum(sentence.in_house for sentence in sentences),
                removed=sum(n_removed for _, n_removed in explanations),
                with_foreign_numbers=sum(bool(sentence.foreign_numbers) for sentence in sentences),
                entailed=entailed_share,
            )
        )
    return tuple(results)


def compute_advocate_effects(
    debates: Sequence[Transcript],
    truths: Mapping[str, str],
    advocates: Sequence[str],
    scale: Scale,
    counts: Sequence[int],
    seed: int,
) -> tuple[AdvocateEffect, ...]:
    """Return the effect of leaving each advocate out, measured on the debates whose transcripts contain it."""
    results = []
    for advocate in advocates:
        ablated_labels = [
            (transcript, dict(transcript.without)[advocate])
            for transcript in debates
            if advocate in dict(transcript.without)
        ]
        usable_debates = [
            (transcript, label)
            for transcript, label in ablated_labels
            if label is not None and transcript.verdict.label is not None
        ]
        levels = []
        for count in counts if usable_debates else ():
            pairs = [
                (scale.collapse(verdict_of(transcript, MEDIATOR) or scale.nei, count), scale.collapse(label, count))
                for transcript, label in usable_debates
            ]
            triples = [
                (scale.collapse(truths[transcript.claim.id], count), *pair)
                for (transcript, _), pair in zip(usable_debates, pairs, strict=True)
                if transcript.claim.id in truths
            ]
            gain = None
            if triples:
                ablated_accuracy = [float(ablated_verdict == truth) for truth, _, ablated_verdict in triples]
                full_accuracy = [float(verdict == truth) for truth, verdict, _ in triples]
                gain = paired_difference(ablated_accuracy, full_accuracy, seed=seed)
            n_changed = sum(verdict != ablated_verdict for verdict, ablated_verdict in pairs)
            levels.append(LevelChange(count, proportion(n_changed, len(pairs)), gain))
        if ablated_labels:
            results.append(
                AdvocateEffect(advocate, len(usable_debates), len(ablated_labels) - len(usable_debates), tuple(levels))
            )
    return tuple(results)


@dataclass(frozen=True, slots=True)
class PartyScores:
    """Scores of a party's final verdicts against the published ones."""

    party: str
    """``mediator`` or the advocate's name."""
    levels: tuple[VerdictScores, ...]
    """Scores for each number of classes in which the published verdicts can be compared, finest first."""


@dataclass(frozen=True, slots=True)
class PartyRoundScores:
    """Scores of a party's verdicts after a round; debates that closed earlier count with their last verdict."""

    party: str
    round: int
    still_open: int
    """Number of debates that went on after this round, among those on claims with a published verdict."""
    scores: VerdictScores


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Verdict of the mediator, other than "not enough information", that differs from the published verdict."""

    claim: str
    """Id of the claim."""
    text: str
    truth: str
    verdict: str
    distance: int | None
    """Number of scale steps between the two verdicts; None if the published verdict has no position on the scale."""
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
    """Analysis of a run of fact-checks; each claim counts once."""

    scale: Scale
    n_classes: int
    """Number of classes to which verdicts are collapsed for distributions, rounds, risk and disagreements."""
    claims: int
    """Number of distinct claims."""
    repeated: int
    """Number of transcripts omitted because an earlier transcript has the same claim."""
    with_truth: int
    """Number of claims with a published verdict."""
    outcomes: tuple[tuple[Outcome, int], ...]
    """Pairs of outcome and number of fact-checks, including outcomes that did not occur."""
    scores: tuple[PartyScores, ...]
    """Scores of the mediator and the advocates; empty if no claim has a published verdict. Claims without a debate and
    failed checks count as wrong."""
    by_round: tuple[PartyRoundScores, ...]
    """Scores by party and round; empty without published verdicts or if no debate had a second round."""
    by_group: GroupedScores | None
    """Scores of the mediator by group of claims; None without groups or published verdicts."""
    distributions: tuple[Distribution, ...]
    """Distributions of the published verdicts, if there are any, and of all parties' final verdicts."""
    nei: tuple[NeiRate, ...]
    rounds: RoundCounts
    agreement: tuple[PartyAgreement, ...]
    """Agreement between advocates, after the first round and at the end; empty with fewer than two advocates."""
    citations: tuple[CitationCounts, ...]
    left_out: tuple[AdvocateEffect, ...]
    """Effects of leaving each advocate out; empty if not requested."""
    risk: RiskCoverage | None
    """Risk-coverage curve; None if no claim has both a published verdict and a verdict."""
    disagreements: tuple[Disagreement, ...]
    """Disagreements, farthest from the truth first, then most probable first."""
    failed: tuple[FailedCheck, ...]
    """Failed fact-checks, in the order of the claims."""
    demonstration: bool
    """Whether a very small model took part in any of the debates."""
    failures: int
    """Number of failed model calls."""
    with_failures: int
    """Number of claims with a failed model call."""
    usage: Usage


def analyse(
    transcripts: Sequence[Transcript],
    truths: Mapping[str, str],
    scale: Scale,
    *,
    classes: int | None = None,
    group_column: str = "",
    groups: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = 2000,
) -> RunAnalysis:
    """Analyse a run of fact-checks.

    Args:
        transcripts: Finished fact-checks on one scale; only the first one of each claim counts.
        truths: Published verdicts by claim id; claims may be missing.
        scale: Scale of the fact-checks.
        classes: Number of classes for distributions and rounds; by default the largest number in which the published
            verdicts can be compared.
        group_column: Column that contains the groups of the claims; empty if there are none.
        groups: Group by claim id.
        seed: Seed of the resampling.
        resamples: Number of bootstrap samples for scores.

    Raises:
        InputError: There is no transcript, one is on another scale, or the published verdicts cannot be compared with
            the scale in this number of classes.
    """
    first_transcripts = tuple({transcript.claim.id: transcript for transcript in reversed(transcripts)}.values())[::-1]
    if not first_transcripts:
        raise InputError("There is no fact-check to analyse.")
    for transcript in first_transcripts:
        if transcript.scale != scale.name:
            raise InputError(
                f"The fact-check of the claim {transcript.claim.text[:60]!r} is on the scale {transcript.scale}, not "
                f"{scale.name}: analyse runs of one scale at a time."
            )
    checks = tuple(reader_view(transcript, scale) for transcript in first_transcripts)
    n_classes = len(scale.classes(classes))
    verdict_texts = {transcript.claim.id: truths.get(transcript.claim.id, "").strip() for transcript in checks}
    published_verdicts = {claim: truth for claim, truth in verdict_texts.items() if truth}
    counts = scale.comparable_counts(published_verdicts.values())
    if classes is not None and n_classes not in counts:
        raise InputError(f"The published verdicts can be compared in {counts[0]} classes at most, not in {n_classes}.")
    n_classes = min(n_classes, counts[0])
    true_labels = {
        claim: scale.match(truth) or scale.match(truth, counts[0]) or "" for claim, truth in published_verdicts.items()
    }
    names = (profile.name for transcript in checks for profile in transcript.advocates)
    parties = (MEDIATOR, *dict.fromkeys(names))
    debates = tuple(transcript for transcript in checks if transcript.rounds)
    labelled_checks = tuple(transcript for transcript in checks if transcript.claim.id in true_labels)
    outcome_counts = Counter(transcript.verdict.outcome for transcript in checks)
    truth = [published_verdicts[transcript.claim.id] for transcript in labelled_checks]

    def score(party: str, count: int, after_round: int | None = None) -> VerdictScores:
        predictions = [verdict_of(transcript, party, after_round) for transcript in labelled_checks]
        return score_verdicts(truth, predictions, scale, classes=count, seed=seed, resamples=resamples)

    by_group = None
    if group_column and labelled_checks:
        values = [(groups or {}).get(transcript.claim.id, "") for transcript in labelled_checks]
        predictions = [verdict_of(transcript, MEDIATOR) for transcript in labelled_checks]
        by_group = score_groups(
            group_column, values, truth, predictions, scale, classes=n_classes, seed=seed, resamples=resamples
        )
    max_rounds = max((len(transcript.rounds) for transcript in labelled_checks), default=0)
    by_round = [
        PartyRoundScores(
            party,
            number,
            sum(len(transcript.rounds) > number for transcript in labelled_checks),
            score(party, n_classes, number),
        )
        for party in parties
        for number in range(1, max_rounds + 1)
        if max_rounds > 1
    ]
    return RunAnalysis(
        scale=scale,
        n_classes=n_classes,
        claims=len(checks),
        repeated=len(transcripts) - len(checks),
        with_truth=len(labelled_checks),
        outcomes=tuple((outcome, outcome_counts[outcome]) for outcome in get_args(Outcome)),
        scores=tuple(
            PartyScores(party, tuple(score(party, count) for count in counts)) for party in parties if labelled_checks
        ),
        by_round=tuple(by_round),
        by_group=by_group,
        distributions=count_distributions(checks, true_labels, parties, scale, n_classes),
        nei=compute_nei_rates(debates, parties, scale),
        rounds=count_rounds(debates),
        agreement=compute_agreement(debates, parties[1:], scale, seed),
        citations=count_citations(debates, parties),
        left_out=compute_advocate_effects(debates, true_labels, parties[1:], scale, counts, seed),
        risk=risk_coverage(labelled_checks, true_labels, scale, n_classes),
        disagreements=_find_disagreements(labelled_checks, true_labels, published_verdicts, scale, n_classes),
        failed=tuple(
            FailedCheck(transcript.claim.id, transcript.claim.text, transcript.verdict.error or "no reason is given")
            for transcript in checks
            if transcript.verdict.outcome == "failed"
        ),
        demonstration=any(transcript.demonstration for transcript in checks),
        failures=sum(transcript.failures for transcript in checks),
        with_failures=sum(transcript.failures > 0 for transcript in checks),
        usage=sum((transcript.usage for transcript in checks), Usage()),
    )


def read_truths(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the published verdicts of a run by claim id.

    Args:
        rows: Rows with ``claim`` (an id) and ``verdict``, as stored by
            :meth:`~climassay.factcheck.checking.Checker.save_transcripts`.
    """
    return {str(row["claim"]): str(row["verdict"]) for row in rows}


def analysis_data(analysis: RunAnalysis) -> dict[str, Any]:
    """Return an analysis as JSON-serialisable values, with the name of the scale."""
    data = TypeAdapter(RunAnalysis).dump_python(analysis, mode="json", exclude={"scale"})
    return {"scale": analysis.scale.name, **data}


def _find_disagreements(
    transcripts: Sequence[Transcript],
    truths: Mapping[str, str],
    published_verdicts: Mapping[str, str],
    scale: Scale,
    n_classes: int,
) -> tuple[Disagreement, ...]:
    results = []
    for transcript in transcripts:
        truth, verdict = truths[transcript.claim.id], verdict_of(transcript, MEDIATOR)
        if (
            verdict is None
            or verdict == scale.nei
            or scale.collapse(verdict, n_classes) == scale.collapse(truth, n_classes)
        ):
            continue
        levels = transcript.verdict.levels
        results.append(
            Disagreement(
                transcript.claim.id,
                transcript.claim.text,
                truth if truth in (*scale.labels, scale.nei) else published_verdicts[transcript.claim.id],
                verdict,
                scale.distance(truth, verdict) if truth in scale.labels else None,
                None if levels is None else levels.confidence,
                " ".join(format_sentence(sentence) for sentence in transcript.verdict.explanation),
            )
        )
    return tuple(sorted(results, key=lambda item: (-(item.distance or 0), item.claim)))
