"""Tables of the analysis of a run of fact-checks."""

from collections.abc import Iterator

from climassay.factcheck.results.analysis import MEDIATOR, RunAnalysis
from climassay.factcheck.results.page import ENTAILMENT_PRECISION
from climassay.factcheck.results.scoring import (
    GroupedScores,
    VerdictMetrics,
    VerdictScores,
)
from climassay.reporting import (
    Table,
    counted,
    format_p_value,
    percent,
    percent_interval,
)
from climassay.statistics import Estimate

_EMPTY_CELL = "-"
_PUBLISHED = (
    ("Climinator", "62.94 / 38.87", "64.71 / 44.27", "97.06 / 90.58"),
    ("IPCC advocate alone, NEI left out", "61.96 / 34.48", "63.80 / 38.85", "95.71 / 86.75"),
    ("GPT-4 without retrieval, NEI left out", "49.70 / 28.36", "52.10 / 35.52", "95.81 / 83.66"),
    ("always 'incorrect' (not in the paper)", "67.65", "68.82", "91.76"),
)


def analysis_tables(analysis: RunAnalysis) -> list[Table]:
    """Return all tables of a run that have rows, in the order of the report."""
    tables = [
        outcome_table(analysis),
        failed_table(analysis),
        score_table(analysis),
        informed_score_table(analysis),
        group_table(analysis.by_group),
        round_score_table(analysis),
        distribution_table(analysis),
        nei_table(analysis),
        round_table(analysis),
        agreement_table(analysis),
        left_out_table(analysis),
        citation_table(analysis),
        risk_table(analysis),
    ]
    return [table for table in tables if table.rows]


def outcome_table(analysis: RunAnalysis) -> Table:
    """Return the table of outcomes, tokens and cost."""
    usage = analysis.usage
    rows = [(str(outcome), str(count)) for outcome, count in analysis.outcomes if count]
    rows += [
        ("claims", str(analysis.claims)),
        ("with a published verdict", str(analysis.with_truth)),
        ("repeated, left out", str(analysis.repeated)),
        ("with failed model calls", f"{analysis.with_failures} ({analysis.failures} calls)"),
        ("prompt tokens", f"{usage.prompt_tokens:,}"),
        ("completion tokens", f"{usage.completion_tokens:,}"),
        ("cost", _EMPTY_CELL if usage.cost is None else f"{usage.cost:.4f} US dollars"),
    ]
    return Table.of("Fact-checks", ["what", "number"], rows, note="Tokens: those served from the records included.")


def failed_table(analysis: RunAnalysis) -> Table:
    """Return the table of failed fact-checks with their errors."""
    return Table.of(
        "Fact-checks that failed",
        ["claim", "reason"],
        [(check.text, check.error) for check in analysis.failed],
        left_columns=2,
        note='They have no verdict, not even "not enough information". The same command checks them again.',
    )


def score_table(analysis: RunAnalysis) -> Table:
    """Return accuracy and macro-F1 of all participants by number of classes."""
    rows = [
        (classes, party, *_metric_cells(scores.rows.figures), str(scores.rows.nei), str(scores.rows.missing))
        for classes, party, scores in scores_by_level(analysis)
    ]
    mediator_scores = analysis.scores[0].levels if analysis.scores else ()
    constant_classes = "; ".join(
        f"{len(scores.classes)}: {scores.rows.figures.constant!r}" for scores in mediator_scores
    )
    return Table.of(
        "Verdicts against the published ones (%)",
        ["classes", "participant", *_METRIC_HEADINGS, "NEI", "none"],
        rows,
        left_columns=2,
        grouped=1,
        strong=[number for number, row in enumerate(rows) if row[1] == MEDIATOR],
        note=f"const.: always the most frequent published class ({constant_classes}). NEI: not enough information, "
        "wrong unless it is the published verdict. none: no verdict (not debated, or failed), wrong too. Macro "
        "averages count a class that occurs on one side only with 0, as the paper does.",
    )


def informed_score_table(analysis: RunAnalysis) -> Table:
    """Return accuracy and macro-F1 on rows without "not enough information"; an empty table if it never occurs."""
    levels = list(scores_by_level(analysis))
    has_nei = any(scores.rows.nei or scores.rows.true_nei for _, _, scores in levels)
    rows = [
        (classes, party, *((_EMPTY_CELL,) * 7 if metrics is None else _metric_cells(metrics)))
        for classes, party, scores in levels
        for metrics in [scores.rows.without_nei]
        if has_nei
    ]
    return Table.of(
        "The same without 'not enough information' (%)",
        ["classes", "participant", *_METRIC_HEADINGS],
        rows,
        left_columns=2,
        grouped=1,
        strong=[number for number, row in enumerate(rows) if row[1] == MEDIATOR],
        note="Only claims where neither the verdict nor the published one is 'not enough information': other claims "
        "for each participant, so that participants cannot be compared with each other here.",
    )


_METRIC_HEADINGS = ("n", "right", "95% interval", "const.", "macro F1", "95% interval", "const.")


def scores_by_level(analysis: RunAnalysis) -> Iterator[tuple[str, str, VerdictScores]]:
    """Yield (number of classes, participant, scores), ordered by number of classes."""
    for levels in zip(*(party_scores.levels for party_scores in analysis.scores), strict=True):
        for party_scores, scores in zip(analysis.scores, levels, strict=True):
            yield f"{len(scores.classes)} classes", party_scores.party, scores


def _estimate_cells(share: Estimate) -> tuple[str, str, str]:
    """Format an estimate as three table cells: n, value and interval."""
    return str(share.n), percent(share.value), percent_interval(share.interval)


def _metric_cells(metrics: VerdictMetrics) -> tuple[str, ...]:
    return (
        str(metrics.n),
        *_estimate_cells(metrics.accuracy)[1:],
        percent(metrics.constant_accuracy.value),
        *_estimate_cells(metrics.f1)[1:],
        percent(metrics.constant_f1.value),
    )


def group_table(grouped_scores: GroupedScores | None) -> Table:
    """Return the scores by group; an empty table if there are no groups."""
    if grouped_scores is None:
        return Table.of("Scores by group", [], [])
    rows = [
        (
            name,
            *_metric_cells(scores.rows.figures),
            str(scores.rows.nei),
            str(scores.rows.missing),
            scores.rows.figures.constant,
        )
        for name, scores in grouped_scores.groups
    ]
    n_classes = len(grouped_scores.groups[0][1].classes)
    return Table.of(
        f"Scores by {grouped_scores.column}, {n_classes} classes (%)",
        [grouped_scores.column, *_METRIC_HEADINGS, "NEI", "none", "most frequent"],
        rows,
        left_columns=1,
        note="const.: always the most frequent true class of the group, in the last column.",
    )


def round_score_table(analysis: RunAnalysis) -> Table:
    """Return the scores of all participants after each round."""
    rows = [
        (
            round_scores.party,
            str(round_scores.round),
            str(round_scores.still_open),
            *_metric_cells(round_scores.scores.rows.figures),
            str(round_scores.scores.rows.nei),
        )
        for round_scores in analysis.by_round
    ]
    return Table.of(
        f"After each round, {analysis.n_classes} classes (%)",
        ["participant", "round", "open", *_METRIC_HEADINGS, "NEI"],
        rows,
        grouped=1,
        left_columns=1,
        note="open: debates that went on after the round. Debates that had closed count as they closed.",
    )


def distribution_table(analysis: RunAnalysis) -> Table:
    """Return the number of verdicts of each class, by participant."""
    names = [name for name, _ in analysis.distributions[0].counts]
    occurring_classes = [
        name for name in names if any(dict(distribution.counts)[name] for distribution in analysis.distributions)
    ]
    rows = [
        (name, *(str(dict(distribution.counts)[name]) for distribution in analysis.distributions))
        for name in occurring_classes
    ]
    return Table.of(
        f"Verdicts given, {analysis.n_classes} classes",
        ["class", *(distribution.party for distribution in analysis.distributions)],
        rows,
        note="Published verdicts are those of claims that have one." if analysis.with_truth else "",
    )


def nei_table(analysis: RunAnalysis) -> Table:
    """Return the proportion of "not enough information" by participant."""
    rows = [(rate.party, *_estimate_cells(rate.share)) for rate in analysis.nei]
    return Table.of(
        "Not enough information (%)",
        ["participant", "debates", "share", "95% interval"],
        rows,
        note="At the end of the debates. Intervals: Wilson.",
    )


def round_table(analysis: RunAnalysis) -> Table:
    """Return a table of debate counts by number of rounds, reason for closing and reason for further rounds."""
    rounds = analysis.rounds
    rows = [("rounds needed", str(number), str(count)) for number, count in rounds.needed]
    rows += [("closed because", reason, str(count)) for reason, count in rounds.closed]
    rows += [("went on because", reason, str(count)) for reason, count in rounds.opened]
    rows += [("opinions", "changed from one round to the next", str(rounds.changed))] if rounds.debates else []
    return Table.of(f"Rounds of {counted(rounds.debates, 'debate')}", ["what", "", "number"], rows, left_columns=2)


def agreement_table(analysis: RunAnalysis) -> Table:
    """Return Krippendorff's alpha between the advocates."""
    rows = []
    for agreement in analysis.agreement:
        cells = [agreement.stage, str(agreement.claims)]
        for alpha in (agreement.ordinal, agreement.sides):
            alpha_cells = (_EMPTY_CELL, _EMPTY_CELL)
            if alpha is not None:
                bounds = alpha.interval
                alpha_cells = (
                    f"{alpha.value:.2f}",
                    _EMPTY_CELL if bounds is None else " to ".join(f"{bound:.2f}" for bound in bounds),
                )
            cells += alpha_cells
        rows.append(cells)
    return Table.of(
        "Agreement between the advocates (Krippendorff's alpha)",
        ["when", "claims", "ordinal", "95% interval", "two sides", "95% interval"],
        rows,
        note="1: full agreement, 0: that of chance. Only claims on which at least two advocates were informed.",
    )


def left_out_table(analysis: RunAnalysis) -> Table:
    """Return a table of the effects of leaving each advocate out."""
    rows: list[tuple[str, ...]] = []
    for effect in analysis.left_out:
        for level in effect.levels:
            gain_cells: tuple[str, ...] = (_EMPTY_CELL,) * 4
            if level.gain is not None:
                gain = level.gain.difference
                interval = " to ".join(f"{100 * bound:+.1f}" for bound in gain.interval)
                gain_cells = (str(gain.n), f"{100 * gain.value:+.1f}", interval, format_p_value(level.gain.p_value))
            changed_cells = _estimate_cells(level.changed)[1:]
            rows.append(
                (
                    effect.advocate,
                    str(effect.claims),
                    str(effect.failed),
                    str(level.classes),
                    *changed_cells,
                    *gain_cells,
                )
            )
    rows += [
        (effect.advocate, "0", str(effect.failed), *(_EMPTY_CELL,) * 7)
        for effect in analysis.left_out
        if not effect.levels
    ]
    return Table.of(
        "Without each advocate in turn (%)",
        ["advocate", "claims", "failed", "classes", "changed", "95% interval", "n", "gain", "95% interval", "p"],
        rows,
        grouped=1,
        note="The mediator asked again without the advocate. changed: claims whose verdict becomes another one. gain: "
        "points of accuracy that the advocate brings, on the n claims with a published verdict, with interval and "
        "p-value of a sign-flip test.",
    )


def citation_table(analysis: RunAnalysis) -> Table:
    """Return the proportions of sentences by the origin of their citations."""
    rows = []
    for counts in (
        analysis.citations if any(counts.sentences or counts.removed for counts in analysis.citations) else ()
    ):
        shares = (counts.cited, counts.attributed, counts.in_house, counts.with_foreign_numbers)
        entailed_cells = (
            (_EMPTY_CELL, _EMPTY_CELL)
            if counts.entailed is None
            else (percent(counts.entailed.value), str(counts.entailed.n))
        )
        percentages = [percent(count / counts.sentences) if counts.sentences else _EMPTY_CELL for count in shares]
        rows.append(
            (
                counts.party,
                str(counts.explanations),
                str(counts.sentences),
                *percentages,
                str(counts.removed),
                *entailed_cells,
            )
        )
    return Table.of(
        "What the explanations rest on (% of sentences)",
        ["participant", "texts", "sentences", "cited", "attributed", "in-house", "foreign\nnumbers", "removed",
         "entailed", "of"],
        rows,
        note="cited: by the model; attributed: by comparison with the passages; in-house: by nothing; foreign numbers: "
        "a number that the cited passages do not have; removed: citations of passages that were not retrieved "
        "(a count); entailed: % of so many citations whose passage seems to entail the sentence."
        + (f" {ENTAILMENT_PRECISION}" if any(counts.entailed is not None for counts in analysis.citations) else ""),
    )  # fmt: skip


def risk_table(analysis: RunAnalysis) -> Table:
    """Return a risk-coverage table: accuracy of the most certain verdicts by proportion of claims covered."""
    risk = analysis.risk
    if risk is None:
        return Table.of("Accuracy of the surest verdicts", [], [])
    rows = [
        (subset, percent(point.coverage), *_estimate_cells(point.accuracy))
        for subset, share in (("surest quarter", 0.25), ("surest half", 0.5), ("all verdicts", 1.0))
        for point in [
            min(risk.points, key=lambda candidate: abs(candidate.coverage - share * risk.points[-1].coverage))
        ]
    ]
    return Table.of(
        f"Accuracy of the surest verdicts, {analysis.n_classes} classes (%)",
        ["kept", "coverage", "n", "right", "95% interval"],
        rows,
        note=f"Ordered by confidence; equally sure verdicts are kept together. Mean accuracy over all "
        f"coverages: {percent(risk.area)}; {percent(risk.unordered)} where the order says nothing. Always "
        f"{risk.constant!r}: {percent(risk.constant_accuracy)}.",
    )


def published_table() -> Table:
    """Return a table of the published scores on claims of Climate Feedback."""
    return Table.of(
        "Published: accuracy / macro F1 (%) on 170 claims of Climate Feedback",
        ["system", "7 classes", "5 classes", "2 classes"],
        _PUBLISHED,
        note="Leippold et al. (2024), table 1. Other claims and other models than in this run, so that the figures are "
        "a frame and no comparison. The constant answer is right more often than the system on 7 and 5 classes.",
    )
