"""What a run of fact-checks amounts to: scores against published verdicts, and how the debates went."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, get_args

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.factcheck.analysis_debate import (
    CitationCounts,
    Contradictions,
    Distribution,
    LeftOut,
    NeiRate,
    PartyAgreement,
    RoundCounts,
    agreement_between,
    citation_counts,
    contradictions,
    count_rounds,
    distributions,
    leave_one_out,
    nei_rates,
)
from climassay.factcheck.parties import MEDIATOR, parties_of, verdict_of
from climassay.factcheck.risk_coverage import RiskCoverage, probability_of, risk_coverage
from climassay.factcheck.scales import Scale
from climassay.factcheck.scoring import VerdictScores, score_verdicts
from climassay.factcheck.serialisation import as_plain
from climassay.factcheck.shown import as_shown
from climassay.factcheck.transcript import Outcome, Transcript
from climassay.grounding import written
from climassay.models.contract import Usage


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
    """Its id."""
    text: str
    truth: str
    verdict: str
    distance: int | None
    """Steps between the two on the scale; None where the truth is "not enough information" or of another scale."""
    probability: float | None
    confidence: str | None
    explanation: str


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
    """Of published verdicts where there are any, then of the mediator and the advocates at the end."""
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
    _check(first, scale)
    checked = tuple(as_shown(transcript, scale) for transcript in first)
    shown = len(scale.classes(classes))
    told = {one.claim.id: truths.get(one.claim.id, "").strip() for one in checked}
    published = {claim: truth for claim, truth in told.items() if truth}
    counts = scale.comparable_counts(published.values())
    if classes is not None and shown not in counts:
        raise InputError(f"The published verdicts can be compared in {counts[0]} classes at most, not in {shown}.")
    shown = min(shown, counts[0])
    known = {claim: scale.match(truth) or scale.match(truth, counts[0]) or "" for claim, truth in published.items()}
    parties = parties_of(checked)
    debated = tuple(transcript for transcript in checked if transcript.rounds)
    scored = tuple(transcript for transcript in checked if transcript.claim.id in known)
    counted = Counter(transcript.verdict.outcome for transcript in checked)
    scoring = _Scoring(scored, tuple(published[one.claim.id] for one in scored), scale, counts, seed, resamples)
    return RunAnalysis(
        scale=scale,
        shown=shown,
        claims=len(checked),
        repeated=len(transcripts) - len(checked),
        with_truth=len(scored),
        outcomes=tuple((outcome, counted[outcome]) for outcome in get_args(Outcome)),
        scores=scoring.by_party(parties) if scored else (),
        by_round=scoring.by_round(parties, shown) if scored else (),
        distributions=distributions(checked, known, parties, scale, shown),
        nei=nei_rates(debated, parties, scale),
        rounds=count_rounds(debated),
        agreement=agreement_between(debated, parties[1:], scale, seed),
        contradictions=contradictions(debated, parties),
        citations=citation_counts(debated, parties),
        left_out=leave_one_out(debated, known, parties[1:], scale, counts, seed),
        risk=risk_coverage(scored, known, scale, shown),
        disagreements=_disagreements(scored, known, published, scale, shown),
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
    entries = {field.name: getattr(analysis, field.name) for field in fields(analysis) if field.name != "scale"}
    return {"scale": analysis.scale.name, **{name: as_plain(value) for name, value in entries.items()}}


def _check(transcripts: Sequence[Transcript], scale: Scale) -> None:
    if not transcripts:
        raise InputError("There is no fact-check to analyse.")
    for transcript in transcripts:
        if transcript.scale != scale.name:
            raise InputError(
                f"The fact-check of the claim {transcript.claim.text[:60]!r} is on the scale {transcript.scale}, not "
                f"{scale.name}: analyse runs on one scale at a time."
            )


@dataclass(frozen=True, slots=True)
class _Scoring:
    """Scores on the claims that have a published verdict."""

    transcripts: tuple[Transcript, ...]
    truths: tuple[str, ...]
    """As they were published."""
    scale: Scale
    counts: tuple[int, ...]
    """Numbers of classes in which they can be compared."""
    seed: int
    resamples: int

    def score(self, party: str, classes: int, after: int | None = None) -> VerdictScores:
        given = [verdict_of(transcript, party, after) for transcript in self.transcripts]
        return score_verdicts(self.truths, given, self.scale, classes=classes, seed=self.seed, resamples=self.resamples)

    def by_party(self, parties: Sequence[str]) -> tuple[PartyScores, ...]:
        return tuple(PartyScores(party, tuple(self.score(party, count) for count in self.counts)) for party in parties)

    def by_round(self, parties: Sequence[str], shown: int) -> tuple[RoundScores, ...]:
        most = max(len(transcript.rounds) for transcript in self.transcripts)
        if most < 2:
            return ()
        went_on = [sum(len(one.rounds) > number for one in self.transcripts) for number in range(most + 1)]
        return tuple(
            RoundScores(party, number, went_on[number], self.score(party, shown, number))
            for party in parties
            for number in range(1, most + 1)
        )


def _disagreements(
    transcripts: Sequence[Transcript],
    truths: Mapping[str, str],
    published: Mapping[str, str],
    scale: Scale,
    shown: int,
) -> tuple[Disagreement, ...]:
    found = []
    for transcript in transcripts:
        truth, given = truths[transcript.claim.id], verdict_of(transcript, MEDIATOR)
        if given is None or given == scale.nei or scale.collapse(given, shown) == scale.collapse(truth, shown):
            continue
        levels = transcript.verdict.levels
        found.append(
            Disagreement(
                transcript.claim.id,
                transcript.claim.text,
                truth if truth in (*scale.labels, scale.nei) else published[transcript.claim.id],
                given,
                scale.distance(truth, given) if truth in scale.labels else None,
                probability_of(transcript.verdict, scale),
                None if levels is None else levels.confidence,
                " ".join(written(sentence) for sentence in transcript.verdict.explanation),
            )
        )
    return tuple(sorted(found, key=lambda one: (-(one.distance or 0), -(one.probability or 0.0), one.claim)))
