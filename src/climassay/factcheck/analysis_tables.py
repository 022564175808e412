"""A run of fact-checks as tables, for the terminal, Markdown, CSV and reports."""

from collections.abc import Iterator

from climassay.factcheck.analysis import RunAnalysis
from climassay.factcheck.analysis_debate import LevelChange
from climassay.factcheck.parties import MEDIATOR
from climassay.factcheck.scoring import VerdictFigures, VerdictScores
from climassay.reporting import Table
from climassay.statistics import Estimate

_NONE = "-"

_PUBLISHED = (
    ("Climinator", "62.94 / 38.87", "64.71 / 44.27", "97.06 / 90.58"),
    ("IPCC advocate alone, NEI left out", "61.96 / 34.48", "63.80 / 38.85", "95.71 / 86.75"),
    ("GPT-4 without retrieval, NEI left out", "49.70 / 28.36", "52.10 / 35.52", "95.81 / 83.66"),
    ("always 'incorrect' (not in the paper)", "67.65", "68.82", "91.76"),
)


def analysis_tables(analysis: RunAnalysis) -> list[Table]:
    """Every table of a run that has something to show, in the order of the report."""
    tables = [
        outcome_table(analysis),
        score_table(analysis),
        informed_score_table(analysis),
        round_score_table(analysis),
        distribution_table(analysis),
        nei_table(analysis),
        round_table(analysis),
        agreement_table(analysis),
        left_out_table(analysis),
        citation_table(analysis),
        contradiction_table(analysis),
        risk_table(analysis),
    ]
    return [table for table in tables if table is not None]


def outcome_table(analysis: RunAnalysis) -> Table:
    """How the fact-checks ended, and what they took."""
    usage = analysis.usage
    rows = [(str(outcome), str(count)) for outcome, count in analysis.outcomes if count]
    rows += [
        ("claims", str(analysis.claims)),
        ("with a published verdict", str(analysis.with_truth)),
        ("repeated, left out", str(analysis.repeated)),
        ("with failed model calls", f"{analysis.with_failures} ({analysis.failures} calls)"),
        ("prompt tokens", f"{usage.prompt_tokens:,}"),
        ("completion tokens", f"{usage.completion_tokens:,}"),
        ("cost", _NONE if usage.cost is None else f"{usage.cost:.4f} US dollars"),
    ]
    return Table.of("Fact-checks", ["what", "number"], rows, note="Tokens: those served from the records included.")


def score_table(analysis: RunAnalysis) -> Table | None:
    """Accuracy and macro-F1 of everybody on every level, beside the constant answer; NEI is wrong."""
    if not analysis.scores:
        return None
    rows = [
        (classes, party, *_figure_cells(scores.rows.figures), str(scores.rows.nei), str(scores.rows.missing))
        for classes, party, scores in _by_level(analysis)
    ]
    constants = [(len(one.classes), one.rows.figures.constant) for one in analysis.scores[0].levels]
    named = "; ".join(f"{classes}: {label!r}" for classes, label in constants)
    return Table.of(
        "Verdicts against the published ones (%)",
        ["classes", "party", *_FIGURE_HEADINGS, "NEI", "none"],
        rows,
        left=2,
        grouped=1,
        strong=[number for number, row in enumerate(rows) if row[1] == MEDIATOR],
        note=f"const.: always the most frequent published class ({named}). NEI: not enough information, wrong unless "
        "it is the published verdict. none: no verdict (not debated, or failed), wrong too. Macro averages count a "
        "class that occurs on one side only with 0, as the paper does.",
    )


def informed_score_table(analysis: RunAnalysis) -> Table | None:
    """The same on the claims where a party had enough information; None where that makes no difference."""
    levels = list(_by_level(analysis))
    if not any(scores.rows.nei or scores.rows.true_nei for _, _, scores in levels):
        return None
    rows = [
        (classes, party, *((_NONE,) * 7 if informed is None else _figure_cells(informed)))
        for classes, party, scores in levels
        for informed in [scores.rows.without_nei]
    ]
    return Table.of(
        "The same without 'not enough information' (%)",
        ["classes", "party", *_FIGURE_HEADINGS],
        rows,
        left=2,
        grouped=1,
        strong=[number for number, row in enumerate(rows) if row[1] == MEDIATOR],
        note="Only claims where neither the verdict nor the published one is 'not enough information': other claims "
        "for each party, so that parties cannot be compared with each other here.",
    )


_FIGURE_HEADINGS = ("n", "right", "95% interval", "const.", "macro F1", "95% interval", "const.")


def _by_level(analysis: RunAnalysis) -> Iterator[tuple[str, str, VerdictScores]]:
    """Number of classes in words, party and scores, by level."""
    for levels in zip(*(one.levels for one in analysis.scores), strict=True):
        for one, scores in zip(analysis.scores, levels, strict=True):
            yield f"{len(scores.classes)} classes", one.party, scores


def _figure_cells(figures: VerdictFigures) -> tuple[str, ...]:
    return (
        str(figures.n),
        percent(figures.accuracy.value),
        interval(figures.accuracy),
        percent(figures.constant_accuracy.value),
        percent(figures.f1.value),
        interval(figures.f1),
        percent(figures.constant_f1.value),
    )


def round_score_table(analysis: RunAnalysis) -> Table | None:
    """Where everybody stood after each round."""
    if not analysis.by_round:
        return None
    rows = [
        (
            one.party,
            str(one.round),
            str(one.still_open),
            *_figure_cells(one.scores.rows.figures),
            str(one.scores.rows.nei),
        )
        for one in analysis.by_round
    ]
    return Table.of(
        f"After each round, {analysis.shown} classes (%)",
        ["party", "round", "open", *_FIGURE_HEADINGS, "NEI"],
        rows,
        grouped=1,
        left=1,
        note="open: debates that went on after the round. Debates that had closed count as they closed.",
    )


def distribution_table(analysis: RunAnalysis) -> Table:
    """How often each class was given."""
    names = [name for name, _ in analysis.distributions[0].counts]
    kept = [name for name in names if any(dict(one.counts)[name] for one in analysis.distributions)]
    rows = [(name, *(str(dict(one.counts)[name]) for one in analysis.distributions)) for name in kept]
    return Table.of(
        f"Verdicts given, {analysis.shown} classes",
        ["class", *(one.party for one in analysis.distributions)],
        rows,
        note="Published verdicts are those of claims that have one." if analysis.with_truth else "",
    )


def nei_table(analysis: RunAnalysis) -> Table | None:
    """How often everybody had not enough information."""
    if not analysis.nei:
        return None
    rows = [(one.party, str(one.share.n), percent(one.share.value), interval(one.share)) for one in analysis.nei]
    return Table.of(
        "Not enough information (%)",
        ["party", "debates", "share", "95% interval"],
        rows,
        note="At the end of the debates. Intervals: Wilson.",
    )


def round_table(analysis: RunAnalysis) -> Table | None:
    """How many rounds it took, and why."""
    rounds = analysis.rounds
    if not rounds.debates:
        return None
    rows = [("rounds needed", str(number), str(count)) for number, count in rounds.needed]
    rows += [("closed because", reason, str(count)) for reason, count in rounds.closed]
    rows += [("went on because", reason, str(count)) for reason, count in rounds.opened]
    rows.append(("opinions", "changed from one round to the next", str(rounds.changed)))
    return Table.of(f"Rounds of {rounds.debates} debates", ["what", "", "number"], rows, left=2)


def agreement_table(analysis: RunAnalysis) -> Table | None:
    """Alpha between advocates."""
    if not analysis.agreement:
        return None
    rows = [
        (one.stage, str(one.claims), *(cell for alpha in (one.ordinal, one.sides) for cell in _alpha(alpha)))
        for one in analysis.agreement
    ]
    return Table.of(
        "Agreement between the advocates (Krippendorff's alpha)",
        ["when", "claims", "ordinal", "95% interval", "two sides", "95% interval"],
        rows,
        note="1: full agreement, 0: that of chance. Only claims on which at least two advocates were informed.",
    )


def _alpha(alpha: Estimate | None) -> tuple[str, str]:
    if alpha is None:
        return _NONE, _NONE
    return f"{alpha.value:.2f}", f"{alpha.interval.low:.2f} to {alpha.interval.high:.2f}"


def left_out_table(analysis: RunAnalysis) -> Table | None:
    """What drove the verdicts."""
    if not analysis.left_out:
        return None
    rows = [
        (one.advocate, str(one.claims), str(one.failed), str(level.classes), *_change_cells(level))
        for one in analysis.left_out
        for level in one.levels
    ]
    rows += [(one.advocate, "0", str(one.failed), *(_NONE,) * 7) for one in analysis.left_out if not one.levels]
    return Table.of(
        "Without each advocate in turn (%)",
        ["advocate", "claims", "failed", "classes", "changed", "95% interval", "n", "gain", "95% interval", "p"],
        rows,
        grouped=1,
        note="The mediator asked again without the advocate. changed: claims whose verdict becomes another one. gain: "
        "points of accuracy that the advocate brings, on the n claims with a published verdict; paired bootstrap and "
        "sign-flip test.",
    )


def _change_cells(level: LevelChange) -> tuple[str, ...]:
    shares = (percent(level.changed.value), interval(level.changed))
    if level.gain is None:
        return (*shares, *(_NONE,) * 4)
    gain = level.gain.difference
    p_value = "<0.001" if level.gain.p_value < 0.001 else f"{level.gain.p_value:.3f}"
    reach = f"{100 * gain.interval.low:+.1f} to {100 * gain.interval.high:+.1f}"
    return (*shares, str(gain.n), f"{100 * gain.value:+.1f}", reach, p_value)


def citation_table(analysis: RunAnalysis) -> Table | None:
    """What explanations rest on."""
    if not any(one.sentences or one.removed for one in analysis.citations):
        return None
    rows = []
    for one in analysis.citations:
        shares = (one.cited, one.attributed, one.in_house, one.with_foreign_numbers)
        entailed = (_NONE, _NONE) if one.entailed is None else (percent(one.entailed.value), str(one.entailed.n))
        parts = [percent(count / one.sentences) if one.sentences else _NONE for count in shares]
        rows.append((one.party, str(one.explanations), str(one.sentences), *parts, str(one.removed), *entailed))
    return Table.of(
        "What the explanations rest on (% of sentences)",
        ["party", "texts", "sentences", "cited", "attributed", "in-house", "foreign\nnumbers", "removed", "entailed",
         "of"],
        rows,
        note="cited: by the model; attributed: by comparison with the passages; in-house: by nothing; foreign numbers: "
        "a number that the cited passages do not have; removed: citations of passages that were not retrieved "
        "(a count); entailed: % of so many citations whose passage entails the sentence.",
    )  # fmt: skip


def contradiction_table(analysis: RunAnalysis) -> Table | None:
    """Explanations against verdicts."""
    rows = [
        (one.party, _NONE, _NONE, _NONE, str(one.unknown))
        if one.share is None
        else (one.party, str(one.share.n), percent(one.share.value), interval(one.share), str(one.unknown))
        for one in analysis.contradictions
        if one.share is not None or one.unknown
    ]
    if not rows:
        return None
    return Table.of(
        "Explanations that contradict their verdict (%)",
        ["party", "n", "share", "95% interval", "unknown"],
        rows,
        note="An explanation contradicts where it argues for the other side of the scale. unknown: not determined.",
    )


def risk_table(analysis: RunAnalysis) -> Table | None:
    """Accuracy of the surest verdicts."""
    risk = analysis.risk
    if risk is None:
        return None
    rows = [
        (name, percent(point.coverage), str(point.accuracy.n), percent(point.accuracy.value), interval(point.accuracy))
        for name, share in (("surest quarter", 0.25), ("surest half", 0.5), ("all verdicts", 1.0))
        for point in [min(risk.points, key=lambda one: abs(one.coverage - share * risk.points[-1].coverage))]
    ]
    return Table.of(
        f"Accuracy of the surest verdicts, {analysis.shown} classes (%)",
        ["kept", "coverage", "n", "right", "95% interval"],
        rows,
        note=f"Ordered by {risk.ordered_by}; equally sure verdicts are kept together. Mean accuracy over all "
        f"coverages: {percent(risk.area)}; {percent(risk.unordered)} where the order says nothing. Always "
        f"{risk.constant!r}: {percent(risk.constant_accuracy)}.",
    )


def published_table(analysis: RunAnalysis) -> Table | None:
    """The paper's figures; only for the scale that they are on."""
    if analysis.scale.name != "climate-feedback":
        return None
    return Table.of(
        "Published: accuracy / macro F1 (%) on 170 claims of Climate Feedback",
        ["system", "7 classes", "5 classes", "2 classes"],
        _PUBLISHED,
        note="Leippold et al. (2024), table 1. Other claims and other models than in this run, so that the figures are "
        "a frame and no comparison. The constant answer is right more often than the system on 7 and 5 classes.",
    )


def percent(share: float) -> str:
    """A share as per cent with one decimal."""
    return f"{100 * share:.1f}"


def interval(estimate: Estimate) -> str:
    """An interval of shares as per cent."""
    return f"{percent(estimate.interval.low)}-{percent(estimate.interval.high)}"


def shortened(text: str, words: int) -> str:
    """The first words of a text."""
    parts = text.split()
    return text if len(parts) <= words else " ".join(parts[:words]) + " ..."
