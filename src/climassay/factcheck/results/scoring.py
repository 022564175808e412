"""Scores of predicted verdicts against published ones: accuracy, macro averages, confusion, constant baseline.

Averages follow table 1 of Leippold et al. (2024): they include all classes that occur among the true *or* the predicted
verdicts, and a class that occurs on one side only has precision, recall and F1 of 0. "Not enough information" is such a
class if it is predicted. A missing prediction is wrong but is not a class.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from climassay.claim_identity import claim_key
from climassay.errors import InputError
from climassay.factcheck.scales import Scale
from climassay.reporting import Dot, DotPlot, Report, Section, Table, percent, percent_interval
from climassay.statistics import Estimate, Interval, share_interval

Unknown = Literal["error", "wrong"]
"""Treatment of predictions that are not verdicts of the scale: raise an error, or count them as wrong."""

NO_VERDICT = "no verdict"
"""Column of the confusion matrix for predictions that are missing or not verdicts of the scale."""
_MISSING_SPELLINGS = frozenset({"", "nan", "<na>", "none", "null"})


@dataclass(frozen=True, slots=True)
class Confusion:
    """Confusion matrix of true and predicted verdicts."""

    truth: tuple[str, ...]
    """Row labels of the matrix: the classes from wrong to right, then "not enough information" if it is the truth of a
    row."""
    predicted: tuple[str, ...]
    """Column labels of the matrix: the classes from wrong to right, "not enough information" and ``no verdict``."""
    counts: tuple[tuple[int, ...], ...]
    """Number of verdicts for each true class (outer) and predicted class (inner)."""


@dataclass(frozen=True, slots=True)
class VerdictMetrics:
    """Accuracy and macro averages on a set of rows, with the same scores of the majority-class baseline.

    Values range from 0 to 1. Intervals are percentile bootstraps over claims. If no claim or every claim is right, they
    are Wilson's, because a bootstrap interval would have no width. An estimate's ``n`` is the number of claims.
    """

    n: int
    """Number of rows."""
    accuracy: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate
    """Mean of the classes' F1, not the F1 of mean precision and mean recall."""
    constant: str
    """Most frequent true class (the first of the scale in a tie); the next fields are the scores of always predicting
    it."""
    constant_accuracy: Estimate
    constant_precision: Estimate
    constant_recall: Estimate
    constant_f1: Estimate
    averaged: tuple[str, ...]
    """Classes included in the averages: those that occur among the true or the predicted verdicts."""
    one_sided: tuple[str, ...]
    """Classes that occur only among the true or only among the predicted verdicts; their scores are 0."""


@dataclass(frozen=True, slots=True)
class RowScores:
    """Scores of a set of rows, with "not enough information" (NEI) and without it."""

    figures: VerdictMetrics
    """Scores on all rows: NEI is a class if it occurs, so a prediction of NEI is wrong unless the truth is NEI."""
    without_nei: VerdictMetrics | None
    """Scores on rows in which neither prediction nor truth is NEI; None if there are none."""
    claims: int
    """Number of distinct claims; number of rows if the claims are unknown."""
    nei: int
    """Number of predictions of NEI."""
    true_nei: int
    """Number of rows whose truth is NEI."""
    missing: int
    """Number of missing predictions (failures, refusals); they count as wrong, with and without NEI."""
    unknown: int
    """Number of predictions that are not verdicts of the scale and count as wrong."""
    confusion: Confusion


@dataclass(frozen=True, slots=True)
class VerdictScores:
    """Scores of predicted verdicts."""

    scale: str
    classes: tuple[str, ...]
    """Names of the classes, from wrong to right; without "not enough information"."""
    rows: RowScores
    """Scores of all rows with a true verdict."""
    without_duplicates: RowScores | None
    """Scores of the first row of each claim; None if the claims are unknown."""
    duplicates: int | None
    """Number of rows whose claim appears in an earlier row; None if the claims are unknown."""
    unlabelled: int
    """Number of rows without a true verdict, which are left out."""


@dataclass(frozen=True, slots=True)
class GroupedScores:
    """Scores by the values of a column, for example by field of science."""

    column: str
    groups: tuple[tuple[str, VerdictScores], ...]
    """Pairs of value and scores, in the order in which the values occur."""


@dataclass(frozen=True, slots=True)
class _EncodedVerdicts:
    """Verdicts as class indices.

    The index after the last class means NEI (not enough information). In predictions, the next index means no verdict.
    """

    truth: NDArray[np.int64]
    predicted: NDArray[np.int64]
    claims: NDArray[np.int64]
    """Index of each row's claim, numbered from 0 without gaps."""
    missing: NDArray[np.bool_]

    def take(self, mask: NDArray[np.bool_]) -> "_EncodedVerdicts":
        claims = np.unique(self.claims[mask], return_inverse=True)[1].reshape(-1)
        return _EncodedVerdicts(self.truth[mask], self.predicted[mask], claims, self.missing[mask])


@dataclass(frozen=True, slots=True)
class _Resampling:
    level: float
    resamples: int
    seed: int


def score_verdicts(
    truth: Sequence[object],
    predicted: Sequence[object],
    scale: Scale,
    *,
    classes: int | None = None,
    claims: Sequence[object] | None = None,
    unknown: Unknown = "error",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> VerdictScores:
    """Score predicted verdicts against true ones.

    Args:
        truth: True verdicts as spelled in a file, matched by :meth:`Scale.match`; rows without one (None, empty,
            ``NaN``, ``null``) are left out and counted.
        predicted: Predictions of the same rows; a missing prediction is wrong.
        scale: Scale of the true and the predicted verdicts.
        classes: Number of classes; all labels of the scale by default.
        claims: Text of each row's claim. Rows of the same claim (:func:`~climassay.claim_identity.claim_key`) are
            resampled together, and the scores on distinct claims are also returned. Each row without a text counts as
            a claim of its own.
        unknown: Treatment of a prediction that is not a verdict of the scale: ``error`` raises an error, ``wrong``
            counts it as wrong.
        level: Confidence level of the intervals.
        resamples: Number of bootstrap samples.
        seed: Seed of the resampling.

    Raises:
        InputError: The columns differ in length, no row has a true verdict, a verdict is not of the scale (for
            predictions only if ``unknown`` is ``error``), or the scale cannot be collapsed to ``classes`` classes.

    Notes:
        A class that occurs only among the true or only among the predicted verdicts counts in the macro averages with
        precision, recall and F1 of 0. The paper does not state this rule, but its figures follow from it. On the 170
        claims of its appendix E, the system never predicts "imprecise", the true verdict on two claims: the precision
        on 7 classes is 42.74, as published, if this class counts as 0, and 49.86 if it is left out. The same is true
        of "not enough information": the IPCC advocate's precision on 7 and 2 classes, 34.13 and 83.69 without it, is
        published as 29.86 and 55.80, the averages over 8 and 3 classes of which one is 0.

    References:
        Leippold et al. (2024), arXiv 2401.12566v1, table 1 and appendix E.
    """
    if len(truth) != len(predicted):
        raise InputError(f"{len(truth)} true verdicts cannot be compared with {len(predicted)} predictions.")
    if claims is not None and len(claims) != len(truth):
        raise InputError(f"{len(claims)} claims do not belong to {len(truth)} verdicts.")
    if not 0 < level < 1:
        raise InputError(f"A confidence level must be between 0 and 1, not {level}.")
    if resamples < 1:
        raise InputError(f"Intervals need at least one bootstrap sample, not {resamples}.")
    names = (*scale.classes(classes), scale.nei)
    truth_codes, predicted_codes = (_encode(verdicts, scale, classes, names) for verdicts in (truth, predicted))
    _raise_for_unknown_verdict(truth, truth_codes, scale, "has the true verdict", "")
    if unknown == "error":
        _raise_for_unknown_verdict(
            predicted, predicted_codes, scale, "predicts", " --unknown wrong counts such predictions as wrong."
        )
    is_labelled = truth_codes != _MISSING_CODE
    if not is_labelled.any():
        raise InputError("No row has a true verdict: there is nothing to score.")
    predicted_classes = np.where(predicted_codes >= 0, predicted_codes, len(names))
    index_by_claim: dict[object, int] = {}
    texts = ["" if claim is None else str(claim) for claim in ([None] * len(truth) if claims is None else claims)]
    claim_indices = [
        index_by_claim.setdefault(claim_key(text) or row, len(index_by_claim)) for row, text in enumerate(texts)
    ]
    codes = _EncodedVerdicts(
        truth_codes, predicted_classes, np.array(claim_indices, dtype=np.int64), predicted_codes == _MISSING_CODE
    ).take(is_labelled)
    is_first = np.zeros(len(codes.claims), dtype=bool)
    is_first[np.unique(codes.claims, return_index=True)[1]] = True
    resampling = _Resampling(level, resamples, seed)
    row_scores = _score_rows(codes, names, resampling)
    scores_without_duplicates = row_scores if is_first.all() else _score_rows(codes.take(is_first), names, resampling)
    return VerdictScores(
        scale=scale.name,
        classes=names[:-1],
        rows=row_scores,
        without_duplicates=None if claims is None else scores_without_duplicates,
        duplicates=None if claims is None else int((~is_first).sum()),
        unlabelled=int((~is_labelled).sum()),
    )


def score_groups(
    column: str,
    values: Sequence[object],
    truth: Sequence[object],
    predicted: Sequence[object],
    scale: Scale,
    *,
    claims: Sequence[object] | None = None,
    **options: Any,
) -> GroupedScores:
    """Score the rows of each value of a column separately.

    Args:
        column: Name of the column.
        values: Value of each row; rows with an empty cell form a group of their own.
        truth: True verdicts; rows without one are left out.
        predicted: Predictions of the same rows.
        scale: Scale of the true and the predicted verdicts.
        claims: Text of each row's claim.
        options: Other options of :func:`score_verdicts`.

    Raises:
        InputError: A verdict is not of the scale, or the scale cannot be collapsed to ``classes`` classes.
    """
    indices_by_value: dict[str, list[int]] = {}
    for index, (value, verdict) in enumerate(zip(values, truth, strict=True)):
        if not _is_missing(verdict):
            name = _NO_VALUE if _is_missing(value) else " ".join(str(value).split())
            indices_by_value.setdefault(name, []).append(index)
    return GroupedScores(
        column,
        tuple(
            (
                name,
                score_verdicts(
                    [truth[index] for index in indices],
                    [predicted[index] for index in indices],
                    scale,
                    claims=None if claims is None else [claims[index] for index in indices],
                    **options,
                ),
            )
            for name, indices in indices_by_value.items()
        ),
    )


_NO_VALUE = "(none)"
"""Name of the group of rows without a value."""
_MISSING_CODE, _UNKNOWN_CODE = -1, -2
"""Codes of a missing verdict and of a verdict that is not on the scale."""


def _encode(verdicts: Sequence[object], scale: Scale, count: int | None, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the index of each verdict in ``names``, or the code of a missing or unknown verdict, shape [n]."""
    codes: dict[str, int] = {}
    texts = ["" if verdict is None else str(verdict) for verdict in verdicts]
    for text in dict.fromkeys(texts):
        name = scale.match(text, count)
        codes[text] = names.index(name) if name is not None else _MISSING_CODE if _is_missing(text) else _UNKNOWN_CODE
    return np.array([codes[text] for text in texts], dtype=np.int64)


def _is_missing(cell: object) -> bool:
    return cell is None or str(cell).strip().casefold() in _MISSING_SPELLINGS


def _raise_for_unknown_verdict(
    verdicts: Sequence[object], codes: NDArray[np.int64], scale: Scale, description: str, hint: str
) -> None:
    for row in np.flatnonzero(codes == _UNKNOWN_CODE)[:1]:
        text = " ".join(str(verdicts[row]).split())
        raise InputError(
            f"Row {row + 1} {description} {text if len(text) <= 60 else text[:60] + ' …'!r}, which is not of the scale "
            f"{scale.name}: it has {', '.join((*scale.labels, scale.nei))}.{hint}"
        )


def _score_rows(codes: _EncodedVerdicts, names: Sequence[str], resampling: _Resampling) -> RowScores:
    nei, no_verdict = len(names) - 1, len(names)
    counts = np.zeros((len(names), len(names) + 1), dtype=np.int64)
    np.add.at(counts, (codes.truth, codes.predicted), 1)
    true_nei = int(counts[nei].sum())
    n_rows = len(names) if true_nei else nei
    is_informed = (codes.truth != nei) & (codes.predicted != nei)
    metrics = _compute_metrics(codes, names, resampling)
    metrics_without_nei = (
        metrics
        if is_informed.all()
        else _compute_metrics(codes.take(is_informed), names, resampling)
        if is_informed.any()
        else None
    )
    return RowScores(
        figures=metrics,
        without_nei=metrics_without_nei,
        claims=int(codes.claims.max()) + 1,
        nei=int(counts[:, nei].sum()),
        true_nei=true_nei,
        missing=int(codes.missing.sum()),
        unknown=int(counts[:, no_verdict].sum() - codes.missing.sum()),
        confusion=Confusion(tuple(names[:n_rows]), (*names, NO_VERDICT), tuple(map(tuple, counts[:n_rows].tolist()))),
    )


def _compute_metrics(codes: _EncodedVerdicts, names: Sequence[str], resampling: _Resampling) -> VerdictMetrics:
    k = len(names)
    cell_indices = codes.truth * (k + 1) + codes.predicted
    counts = np.bincount(cell_indices, minlength=k * (k + 1)).reshape(k, k + 1)
    resampled_counts = _resample_counts(cell_indices, codes.claims, counts.size, resampling).reshape(-1, k, k + 1)
    constant_index = int(counts.sum(1).argmax())
    n_claims = int(codes.claims.max()) + 1

    def compute_estimates(sample: NDArray[np.int64], samples: NDArray[np.int64]) -> list[Estimate]:
        bounds = np.quantile(
            _compute_averages(samples), [(1 - resampling.level) / 2, (1 + resampling.level) / 2], axis=1
        )
        return [
            Estimate(
                value,
                share_interval(Interval(*interval_bounds), value, n_claims, resampling.level, ends_only=True),
                n_claims,
                resampling.level,
            )
            for value, interval_bounds in zip(
                _compute_averages(sample[None])[:, 0].tolist(), bounds.T.tolist(), strict=True
            )
        ]

    accuracy, precision, recall, f1 = compute_estimates(counts, resampled_counts)
    constant_estimates = compute_estimates(
        _predict_constant(counts, constant_index), _predict_constant(resampled_counts, constant_index)
    )
    truth_counts, predicted_counts = counts.sum(1), counts[:, :k].sum(0)
    return VerdictMetrics(
        n=len(cell_indices),
        accuracy=accuracy,
        precision=precision,
        recall=recall,
        f1=f1,
        constant=names[constant_index],
        constant_accuracy=constant_estimates[0],
        constant_precision=constant_estimates[1],
        constant_recall=constant_estimates[2],
        constant_f1=constant_estimates[3],
        averaged=tuple(name for index, name in enumerate(names) if truth_counts[index] + predicted_counts[index]),
        one_sided=tuple(
            name for index, name in enumerate(names) if bool(truth_counts[index]) != bool(predicted_counts[index])
        ),
    )


def _predict_constant(counts: NDArray[np.int64], constant_index: int) -> NDArray[np.int64]:
    """Return the confusion matrices [..., k, k + 1] of a baseline that predicts one class for all rows."""
    result = np.zeros_like(counts)
    result[..., constant_index] = counts.sum(-1)
    return result


def _compute_averages(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return accuracy and macro precision, recall and F1, shape [4, m], of confusion matrices of shape [m, k, k + 1].

    Rows are true classes; columns are predicted classes and, last, no verdict.
    """
    k = counts.shape[1]
    n_right = np.diagonal(counts, axis1=1, axis2=2)
    n_true, n_predicted = counts.sum(2), counts[:, :, :k].sum(1)
    n_occurring = np.maximum((n_true + n_predicted > 0).sum(1), 1)
    accuracy = n_right.sum(1) / np.maximum(n_true.sum(1), 1)
    by_class = (
        n_right / np.maximum(n_predicted, 1),
        n_right / np.maximum(n_true, 1),
        2 * n_right / np.maximum(n_true + n_predicted, 1),
    )
    return np.stack([accuracy, *(values.sum(1) / n_occurring for values in by_class)])


def _resample_counts(
    cell_indices: NDArray[np.int64], claims: NDArray[np.int64], size: int, resampling: _Resampling
) -> NDArray[np.int64]:
    """Return the cell counts, shape [resamples, size], of bootstrap samples of claims with all their rows.

    Claims with the same rows are interchangeable. A sample is therefore one draw from a multinomial distribution over
    the kinds of claims. This is equivalent to drawing single claims, but much faster.

    Args:
        cell_indices: Index of each row's cell of the confusion matrix, shape [n].
        claims: Index of each row's claim, shape [n].
        size: Number of cells.
        resampling: Number of samples and seed.
    """
    occupied_cells, columns = np.unique(cell_indices, return_inverse=True)
    rows = np.zeros((int(claims.max()) + 1, len(occupied_cells)), dtype=np.int64)
    np.add.at(rows, (claims, columns.reshape(-1)), 1)
    distinct_rows, frequency = np.unique(rows, axis=0, return_counts=True)
    generator = np.random.default_rng(resampling.seed)
    draws = generator.multinomial(len(rows), frequency / len(rows), size=resampling.resamples)
    samples = np.zeros((resampling.resamples, size), dtype=np.int64)
    samples[:, occupied_cells] = draws @ distinct_rows
    return samples


_PAGE_WIDTH = 100
"""Width of a report's page in characters."""


def verdict_data(scores: VerdictScores) -> dict[str, Any]:
    """Return all scores as JSON-serialisable values, with the scores on all rows at the top level.

    Returns:
        ``n``, ``accuracy``, ``precision``, ``recall``, ``f1``, ``constant`` and its four scores, ``averaged``,
        ``one_sided``; the same under ``without_nei``; ``claims``, ``nei``, ``true_nei``, ``missing``, ``unknown``,
        ``confusion``; all of these once more under ``without_duplicates``; ``duplicates``, ``unlabelled``, ``scale``,
        ``classes``. An estimate is an object with ``value`` and ``interval`` (proportions), ``n`` (number of claims)
        and ``level``.
    """
    deduplicated_scores = scores.without_duplicates
    return {
        "scale": scores.scale,
        "classes": scores.classes,
        **_row_data(scores.rows),
        "unlabelled": scores.unlabelled,
        "duplicates": scores.duplicates,
        "without_duplicates": None if deduplicated_scores is None else _row_data(deduplicated_scores),
    }


def _row_data(rows: RowScores) -> dict[str, Any]:
    data = asdict(rows)
    return {**data.pop("figures"), **data}


def verdict_tables(scores: VerdictScores, *, width: int | None = None) -> list[Table]:
    """Return a table of scores and the majority-class baseline, and the confusion matrix, at most ``width`` wide."""
    named_table = _confusion_table(scores, numbered=False)
    table_columns = zip(*([column.heading for column in named_table.columns], *named_table.rows), strict=True)
    table_width = sum(2 + max(len(line) for cell in column for line in cell.split("\n")) for column in table_columns)
    fits = width is None or table_width <= width
    rows = [
        (
            name,
            measure,
            str(metrics.n),
            *(
                cell
                for estimate in (value, constant)
                for cell in (percent(estimate.value), percent_interval(estimate.interval))
            ),
        )
        for name, metrics in _variants(scores)
        for measure, value, constant in _metric_rows(metrics)
    ]
    overall = scores.rows.figures
    level = f"{100 * overall.accuracy.level:g}%"
    other_constants = [
        f"{metrics.constant!r} {name}" for name, metrics in _variants(scores) if metrics.constant != overall.constant
    ]
    note = f"const.: always {', '.join([repr(overall.constant), *other_constants])}."
    if overall.constant_accuracy.value > overall.accuracy.value:
        note += " The constant answer is right more often than the verdicts scored here."
    duplicates_note = ", each with all of its rows" if scores.duplicates else ""
    figure_table = Table.of(
        f"Verdicts against the truth: {scores.scale}, {len(scores.classes)} classes (%)",
        ["rows", "figure", "n", "value", f"{level} interval", "const.", f"const.\n{level} interval"],
        rows,
        left_columns=2,
        grouped=1,
        note=f"{note} Intervals: bootstrap over {scores.rows.claims:,} claims{duplicates_note}.",
    )
    return [figure_table, named_table if fits else _confusion_table(scores, numbered=True)]


def _variants(scores: VerdictScores) -> Iterator[tuple[str, VerdictMetrics]]:
    """Yield pairs of name and scores for each distinct set of rows; the set of all rows comes first."""
    for rows, label, informed_label in (
        (scores.rows, "all rows", "without NEI"),
        (scores.without_duplicates if scores.duplicates else None, "each claim once", "each claim once, without NEI"),
    ):
        if rows is not None:
            yield label, rows.figures
            if rows.without_nei is not None and rows.without_nei.n < rows.figures.n:
                yield informed_label, rows.without_nei


def _metric_rows(metrics: VerdictMetrics) -> tuple[tuple[str, Estimate, Estimate], ...]:
    return (
        ("accuracy", metrics.accuracy, metrics.constant_accuracy),
        ("macro precision", metrics.precision, metrics.constant_precision),
        ("macro recall", metrics.recall, metrics.constant_recall),
        ("macro F1", metrics.f1, metrics.constant_f1),
    )


def _confusion_table(scores: VerdictScores, *, numbered: bool) -> Table:
    """Return the confusion matrix without classes that never occur, neither as truth nor as prediction."""
    confusion, occurring_classes = scores.rows.confusion, set(scores.rows.figures.averaged)
    absent_classes = [name for name in scores.classes if name not in occurring_classes]
    columns = [column for column, name in enumerate(confusion.predicted) if name not in absent_classes]
    numbers = [*map(str, range(1, len(columns) - 1)), "NEI", "none"]
    listed_rows = [row for row in zip(confusion.truth, confusion.counts, strict=True) if row[0] not in absent_classes]
    rows = [
        (f"{number} {name}" if numbered else name, *(str(counts[column]) for column in columns), str(sum(counts)))
        for number, (name, counts) in zip(numbers, listed_rows, strict=False)
    ]
    totals = [sum(counts[column] for counts in confusion.counts) for column in columns]
    rows.append(("sum", *map(str, totals), str(scores.rows.figures.n)))
    names = [confusion.predicted[column].replace(" ", "\n") for column in columns]
    row_scores, nei = scores.rows, confusion.predicted[-2]
    unknown_note = f"; not of the scale: {row_scores.unknown:,}" if row_scores.unknown else ""
    exception_note = ", except NEI where it is the truth" if row_scores.true_nei else ""
    note = ["Columns: numbers of the rows; none: no verdict."] if numbered else []
    counts_note = (
        f"{row_scores.nei:,}; missing: {row_scores.missing:,}{unknown_note}; all count as wrong{exception_note}"
    )
    note.append(f"Predictions of {nei!r} (NEI): {counts_note}.")
    if row_scores.figures.one_sided:
        note.append(f"On one side only, and 0 in the averages: {', '.join(map(repr, row_scores.figures.one_sided))}.")
    if absent_classes:
        note.append(f"On neither side, and not shown: {', '.join(map(repr, absent_classes))}.")
    if scores.duplicates is not None:
        note.append(f"Rows that repeat the claim of an earlier row: {scores.duplicates:,}.")
    if scores.unlabelled:
        note.append(f"Rows without a true verdict, left out: {scores.unlabelled:,}.")
    return Table.of(
        "Confusion matrix: true verdicts in rows, predicted ones in columns",
        ["truth", *(numbers if numbered else names), "sum"],
        rows,
        strong=[len(rows) - 1],
        note=" ".join(note),
    )


def verdict_report(scores: VerdictScores, subject: str, facts: Sequence[tuple[str, str]] = ()) -> Report:
    """Return a report of scores; ``subject`` names what was scored, and ``facts`` are listed at the end."""
    metrics = scores.rows.figures
    dots = tuple(
        Dot(f"{measure}, {name}", measure, value.value, *value.interval, constant.value)
        for name, metrics_of_rows in _variants(scores)
        for measure, value, constant in _metric_rows(metrics_of_rows)
        if measure in ("accuracy", "macro F1")
    )
    note = "Dots: share. Bars: bootstrap interval over claims. Dashed tick: the best constant answer."
    plot = DotPlot("Accuracy and macro F1", dots, axis="share", note=note)
    return Report(
        title=f"Verdicts of {subject}",
        lead=f"{metrics.n:,} verdicts on the scale {scores.scale} in {len(scores.classes)} classes: "
        f"{percent(metrics.accuracy.value)}% are right. Always answering {metrics.constant!r} is right in "
        f"{percent(metrics.constant_accuracy.value)}%.",
        sections=(Section("Figures", (plot, *verdict_tables(scores, width=_PAGE_WIDTH))),),
        facts=tuple(facts),
    )
