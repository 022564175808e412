"""Scores of predicted verdicts against published ones: accuracy, macro averages, confusion, constant baseline.

Averages follow table 1 of Leippold et al. (2024): over the classes that occur in the truth *or* among the predictions,
and a class that occurs on one side only counts with precision, recall and F1 of 0. So does "not enough information"
where it is predicted; a prediction that is missing is wrong, and no class.
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
"""What becomes of a prediction that is not a verdict of the scale."""

NO_VERDICT = "no verdict"
"""Column of the confusion matrix for predictions that are missing or not of the scale."""
_MISSING = frozenset({"", "nan", "<na>", "none", "null"})


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often each true class was given each verdict."""

    truth: tuple[str, ...]
    """Classes of the rows, in the scale's order; "not enough information" last, where it is a true class."""
    predicted: tuple[str, ...]
    """Classes of the columns, then "not enough information", then ``no verdict``."""
    counts: tuple[tuple[int, ...], ...]
    """One tuple per true class, one number per predicted class."""


@dataclass(frozen=True, slots=True)
class VerdictFigures:
    """Accuracy and macro averages on a set of rows, beside those of a constant answer on the same rows.

    Shares from 0 to 1, with percentile bootstrap intervals over claims; where no claim is right, or every one, with
    Wilson's, as resampled they would seem to be known exactly. An estimate's ``n`` is the number of claims.
    """

    n: int
    """Rows."""
    accuracy: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate
    """Mean of the classes' F1, not the F1 of mean precision and mean recall."""
    constant: str
    """The most frequent true class (the first of the scale where several are); always answering it gives:"""
    constant_accuracy: Estimate
    constant_precision: Estimate
    constant_recall: Estimate
    constant_f1: Estimate
    averaged: tuple[str, ...]
    """Classes that the averages are over: those that occur on either side."""
    one_sided: tuple[str, ...]
    """Those of them that occur on one side only, and count with 0."""


@dataclass(frozen=True, slots=True)
class RowScores:
    """Scores of a set of rows, with "not enough information" (NEI) and without it."""

    figures: VerdictFigures
    """All rows: a prediction of NEI is wrong unless the truth is NEI, and NEI is a class where it occurs."""
    without_nei: VerdictFigures | None
    """Only rows where neither prediction nor truth is NEI; None where there are none."""
    claims: int
    """Different claims among the rows; the number of rows where claims are not known."""
    nei: int
    """Predictions of NEI."""
    true_nei: int
    """Rows whose truth is NEI."""
    missing: int
    """Predictions that are missing (failures, refusals): wrong with and without NEI."""
    unknown: int
    """Predictions that are not verdicts of the scale, where these count as wrong."""
    confusion: Confusion


@dataclass(frozen=True, slots=True)
class VerdictScores:
    """Predicted verdicts against true ones."""

    scale: str
    classes: tuple[str, ...]
    """Names of the classes, from wrong to right; without "not enough information"."""
    rows: RowScores
    """Every row that has a true verdict."""
    without_duplicates: RowScores | None
    """The first row of each claim; None where claims are not known."""
    duplicates: int | None
    """Rows whose claim appears in an earlier row; None where claims are not known."""
    unlabelled: int
    """Rows without a true verdict: left out of everything."""


@dataclass(frozen=True, slots=True)
class _Coded:
    """Rows as numbers: classes by their place, NEI after them, and after it, among predictions, no verdict."""

    truth: NDArray[np.int64]
    predicted: NDArray[np.int64]
    claims: NDArray[np.int64]
    """Number of each row's claim, from 0 without gaps."""
    missing: NDArray[np.bool_]

    def take(self, kept: NDArray[np.bool_]) -> "_Coded":
        claims = np.unique(self.claims[kept], return_inverse=True)[1].reshape(-1)
        return _Coded(self.truth[kept], self.predicted[kept], claims, self.missing[kept])


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
        truth: True verdicts as they appear in a file, matched by :meth:`Scale.match`; rows without one (None, empty,
            ``NaN``, ``null``) are left out and counted.
        predicted: Predictions of the same rows; one that is missing is wrong, never dropped.
        scale: Scale of both.
        classes: Number of classes to show them in; all labels of the scale by default.
        claims: Text of each row's claim. Rows of one claim (:func:`~climassay.claim_identity.claim_key`) are resampled
            as a whole, and scores without repetitions are given too. Rows without a text are claims of their own.
        unknown: Whether a prediction that is not a verdict of the scale is an error, or counts as wrong.
        level: Confidence level of the intervals.
        resamples: Bootstrap samples.
        seed: Seed of the resampling.

    Raises:
        InputError: The columns differ in length, no row has a true verdict, a true verdict (or, unless it counts as
            wrong, a prediction) is not of the scale, or the scale has no such number of classes.

    Notes:
        How averages treat a class that occurs on one side only was found by reproduction. On the 170 claims of the
        paper's appendix E the system never says "imprecise", which two claims are; the printed precision on 7 classes,
        42.74, results where the class counts with 0, and 49.86 where it is left out. That "not enough information" is
        such a class follows from the advocates' rows: the IPCC's precision on 7 and 2 classes, 34.13 and 83.69 without
        it, is printed as 29.86 and 55.80 with it: 7/8 and 2/3, for one more class of 0.

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
    wanted, got = (_places(verdicts, scale, classes, names) for verdicts in (truth, predicted))
    _refuse_unknown(truth, wanted, scale, "has the true verdict", "")
    if unknown == "error":
        _refuse_unknown(predicted, got, scale, "predicts", " --unknown wrong counts such predictions as wrong.")
    labelled = wanted != _NOTHING
    if not labelled.any():
        raise InputError("No row has a true verdict: there is nothing to score.")
    answered = np.where(got >= 0, got, len(names))
    numbers: dict[object, int] = {}
    texts = ["" if claim is None else str(claim) for claim in ([None] * len(truth) if claims is None else claims)]
    numbered = [numbers.setdefault(claim_key(text) or row, len(numbers)) for row, text in enumerate(texts)]
    coded = _Coded(wanted, answered, np.array(numbered, dtype=np.int64), got == _NOTHING).take(labelled)
    first = np.zeros(len(coded.claims), dtype=bool)
    first[np.unique(coded.claims, return_index=True)[1]] = True
    how = _Resampling(level, resamples, seed)
    scored = _score_rows(coded, names, how)
    unique = scored if first.all() else _score_rows(coded.take(first), names, how)
    return VerdictScores(
        scale=scale.name,
        classes=names[:-1],
        rows=scored,
        without_duplicates=None if claims is None else unique,
        duplicates=None if claims is None else int((~first).sum()),
        unlabelled=int((~labelled).sum()),
    )


_NOTHING, _OTHER = -1, -2
"""Places of a verdict that is missing, and of one that is not of the scale."""


def _places(verdicts: Sequence[object], scale: Scale, count: int | None, names: Sequence[str]) -> NDArray[np.int64]:
    """Place of each verdict among the names [n]; ``_NOTHING`` where it is missing, ``_OTHER`` where it is unknown."""
    known: dict[str, int] = {}
    texts = ["" if verdict is None else str(verdict) for verdict in verdicts]
    for text in dict.fromkeys(texts):
        name = scale.match(text, count)
        missing = text.strip().casefold() in _MISSING
        known[text] = names.index(name) if name is not None else _NOTHING if missing else _OTHER
    return np.array([known[text] for text in texts], dtype=np.int64)


def _refuse_unknown(verdicts: Sequence[object], places: NDArray[np.int64], scale: Scale, says: str, hint: str) -> None:
    for row in np.flatnonzero(places == _OTHER)[:1]:
        text = " ".join(str(verdicts[row]).split())
        raise InputError(
            f"Row {row + 1} {says} {text if len(text) <= 60 else text[:60] + ' …'!r}, which is not of the scale "
            f"{scale.name}: it has {', '.join((*scale.labels, scale.nei))}.{hint}"
        )


def _score_rows(coded: _Coded, names: Sequence[str], how: _Resampling) -> RowScores:
    nei, nothing = len(names) - 1, len(names)
    counts = np.zeros((len(names), len(names) + 1), dtype=np.int64)
    np.add.at(counts, (coded.truth, coded.predicted), 1)
    true_nei = int(counts[nei].sum())
    shown = len(names) if true_nei else nei
    informed = (coded.truth != nei) & (coded.predicted != nei)
    figures = _figures(coded, names, how)
    without = figures if informed.all() else _figures(coded.take(informed), names, how) if informed.any() else None
    return RowScores(
        figures=figures,
        without_nei=without,
        claims=int(coded.claims.max()) + 1,
        nei=int(counts[:, nei].sum()),
        true_nei=true_nei,
        missing=int(coded.missing.sum()),
        unknown=int(counts[:, nothing].sum() - coded.missing.sum()),
        confusion=Confusion(tuple(names[:shown]), (*names, NO_VERDICT), tuple(map(tuple, counts[:shown].tolist()))),
    )


def _figures(coded: _Coded, names: Sequence[str], how: _Resampling) -> VerdictFigures:
    k = len(names)
    cells = coded.truth * (k + 1) + coded.predicted
    counts = np.bincount(cells, minlength=k * (k + 1)).reshape(k, k + 1)
    resampled = _resample(cells, coded.claims, counts.size, how).reshape(-1, k, k + 1)
    constant = int(counts.sum(1).argmax())
    claims = int(coded.claims.max()) + 1

    def estimates(sample: NDArray[np.int64], samples: NDArray[np.int64]) -> list[Estimate]:
        spread = np.quantile(_averages(samples), [(1 - how.level) / 2, (1 + how.level) / 2], axis=1)
        return [
            Estimate(
                value, share_interval(Interval(*ends), value, claims, how.level, ends_only=True), claims, how.level
            )
            for value, ends in zip(_averages(sample[None])[:, 0].tolist(), spread.T.tolist(), strict=True)
        ]

    accuracy, precision, recall, f1 = estimates(counts, resampled)
    always = estimates(_answering(counts, constant), _answering(resampled, constant))
    truth, predicted = counts.sum(1), counts[:, :k].sum(0)
    return VerdictFigures(
        n=len(cells),
        accuracy=accuracy,
        precision=precision,
        recall=recall,
        f1=f1,
        constant=names[constant],
        constant_accuracy=always[0],
        constant_precision=always[1],
        constant_recall=always[2],
        constant_f1=always[3],
        averaged=tuple(name for place, name in enumerate(names) if truth[place] + predicted[place]),
        one_sided=tuple(name for place, name in enumerate(names) if bool(truth[place]) != bool(predicted[place])),
    )


def _answering(counts: NDArray[np.int64], constant: int) -> NDArray[np.int64]:
    """Confusion matrices [..., k, k + 1] of always giving one answer to the same rows."""
    answered = np.zeros_like(counts)
    answered[..., constant] = counts.sum(-1)
    return answered


def _averages(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Accuracy and macro precision, recall and F1, shape [4, m], of confusion matrices of shape [m, k, k + 1].

    Rows are true classes, columns predicted ones and, last, no verdict.
    """
    k = counts.shape[1]
    hits = np.diagonal(counts, axis1=1, axis2=2)
    truth, predicted = counts.sum(2), counts[:, :, :k].sum(1)
    occurring = np.maximum((truth + predicted > 0).sum(1), 1)
    accuracy = hits.sum(1) / np.maximum(truth.sum(1), 1)
    by_class = (
        hits / np.maximum(predicted, 1),
        hits / np.maximum(truth, 1),
        2 * hits / np.maximum(truth + predicted, 1),
    )
    return np.stack([accuracy, *(values.sum(1) / occurring for values in by_class)])


def _resample(cells: NDArray[np.int64], claims: NDArray[np.int64], size: int, how: _Resampling) -> NDArray[np.int64]:
    """Cell counts [resamples, size] of bootstrap samples of claims, every claim with all of its rows.

    Claims with the same rows are interchangeable, so that a sample is one draw from a multinomial distribution over the
    kinds of claims: exactly as drawing claims one by one, but in a fraction of the time. ``cells`` and ``claims`` give
    each row's cell of the confusion matrix and the number of its claim, shape [n].
    """
    occupied, places = np.unique(cells, return_inverse=True)
    rows = np.zeros((int(claims.max()) + 1, len(occupied)), dtype=np.int64)
    np.add.at(rows, (claims, places.reshape(-1)), 1)
    kinds, frequency = np.unique(rows, axis=0, return_counts=True)
    generator = np.random.default_rng(how.seed)
    drawn = generator.multinomial(len(rows), frequency / len(rows), size=how.resamples)
    samples = np.zeros((how.resamples, size), dtype=np.int64)
    samples[:, occupied] = drawn @ kinds
    return samples


_PAGE = 100
"""Characters across the page of a report."""


def verdict_data(scores: VerdictScores) -> dict[str, Any]:
    """Everything, for JSON; the figures of all rows appear at the top.

    Returns:
        ``n``, ``accuracy``, ``precision``, ``recall``, ``f1``, ``constant`` and its four figures, ``averaged``,
        ``one_sided``; the same under ``without_nei``; ``claims``, ``nei``, ``true_nei``, ``missing``, ``unknown``,
        ``confusion``; all of these once more under ``without_duplicates``; ``duplicates``, ``unlabelled``, ``scale``,
        ``classes``. An estimate is an object with ``value`` and ``interval`` (shares), ``n`` (claims) and ``level``.
    """
    once = scores.without_duplicates
    return {
        "scale": scores.scale,
        "classes": scores.classes,
        **_row_data(scores.rows),
        "unlabelled": scores.unlabelled,
        "duplicates": scores.duplicates,
        "without_duplicates": None if once is None else _row_data(once),
    }


def _row_data(rows: RowScores) -> dict[str, Any]:
    data = asdict(rows)
    return {**data.pop("figures"), **data}


def verdict_tables(scores: VerdictScores, *, width: int | None = None) -> list[Table]:
    """Figures beside those of the constant answer, and the confusion matrix, fitted to a screen of so many columns."""
    named = _confusion_table(scores, numbered=False)
    cells = zip(*([column.heading for column in named.columns], *named.rows), strict=True)
    wide = sum(2 + max(len(line) for cell in column for line in cell.split("\n")) for column in cells)
    fits = width is None or wide <= width
    rows = [
        (
            name,
            measure,
            str(figures.n),
            *(cell for one in (value, constant) for cell in (percent(one.value), percent_interval(one.interval))),
        )
        for name, figures in _variants(scores)
        for measure, value, constant in _lines(figures)
    ]
    whole = scores.rows.figures
    level = f"{100 * whole.accuracy.level:g}%"
    others = [f"{one.constant!r} {name}" for name, one in _variants(scores) if one.constant != whole.constant]
    note = f"const.: always {', '.join([repr(whole.constant), *others])}."
    if whole.constant_accuracy.value > whole.accuracy.value:
        note += " The constant answer is right more often than the verdicts scored here."
    repeated = ", each with all of its rows" if scores.duplicates else ""
    figures = Table.of(
        f"Verdicts against the truth: {scores.scale}, {len(scores.classes)} classes (%)",
        ["rows", "figure", "n", "value", f"{level} interval", "const.", f"const.\n{level} interval"],
        rows,
        left=2,
        grouped=1,
        note=f"{note} Intervals: bootstrap over {scores.rows.claims:,} claims{repeated}.",
    )
    return [figures, named if fits else _confusion_table(scores, numbered=True)]


def _variants(scores: VerdictScores) -> Iterator[tuple[str, VerdictFigures]]:
    """Names and figures of the sets of rows that differ, the whole one first."""
    for rows, whole, informed in (
        (scores.rows, "all rows", "without NEI"),
        (scores.without_duplicates if scores.duplicates else None, "each claim once", "each claim once, without NEI"),
    ):
        if rows is not None:
            yield whole, rows.figures
            if rows.without_nei is not None and rows.without_nei.n < rows.figures.n:
                yield informed, rows.without_nei


def _lines(figures: VerdictFigures) -> tuple[tuple[str, Estimate, Estimate], ...]:
    return (
        ("accuracy", figures.accuracy, figures.constant_accuracy),
        ("macro precision", figures.precision, figures.constant_precision),
        ("macro recall", figures.recall, figures.constant_recall),
        ("macro F1", figures.f1, figures.constant_f1),
    )


def _confusion_table(scores: VerdictScores, *, numbered: bool) -> Table:
    """Classes that occur on neither side are left out, so that fine scales fit on a screen."""
    confusion, occurring = scores.rows.confusion, set(scores.rows.figures.averaged)
    absent = [name for name in scores.classes if name not in occurring]
    columns = [place for place, name in enumerate(confusion.predicted) if name not in absent]
    numbers = [*map(str, range(1, len(columns) - 1)), "NEI", "none"]
    shown = [row for row in zip(confusion.truth, confusion.counts, strict=True) if row[0] not in absent]
    rows = [
        (f"{number} {name}" if numbered else name, *(str(counts[place]) for place in columns), str(sum(counts)))
        for number, (name, counts) in zip(numbers, shown, strict=False)
    ]
    totals = [sum(counts[place] for counts in confusion.counts) for place in columns]
    rows.append(("sum", *map(str, totals), str(scores.rows.figures.n)))
    names = [confusion.predicted[place].replace(" ", "\n") for place in columns]
    scored, nei = scores.rows, confusion.predicted[-2]
    unknown = f"; not of the scale: {scored.unknown:,}" if scored.unknown else ""
    right = ", except NEI where it is the truth" if scored.true_nei else ""
    note = ["Columns: numbers of the rows; none: no verdict."] if numbered else []
    wrong = f"{scored.nei:,}; missing: {scored.missing:,}{unknown}; all count as wrong{right}"
    note.append(f"Predictions of {nei!r} (NEI): {wrong}.")
    if scored.figures.one_sided:
        note.append(f"On one side only, and 0 in the averages: {', '.join(map(repr, scored.figures.one_sided))}.")
    if absent:
        note.append(f"On neither side, and not shown: {', '.join(map(repr, absent))}.")
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
    """Scores of ``subject`` as a self-contained report; ``facts`` appear at its end."""
    figures = scores.rows.figures
    dots = tuple(
        Dot(f"{measure}, {name}", measure, value.value, *value.interval, constant.value)
        for name, one in _variants(scores)
        for measure, value, constant in _lines(one)
        if measure in ("accuracy", "macro F1")
    )
    note = "Dots: share. Bars: bootstrap interval over claims. Dashed tick: the best constant answer."
    plot = DotPlot("Accuracy and macro F1", dots, axis="share", note=note)
    return Report(
        title=f"Verdicts of {subject}",
        lead=f"{figures.n:,} verdicts on the scale {scores.scale} in {len(scores.classes)} classes: "
        f"{percent(figures.accuracy.value)}% are right. Always answering {figures.constant!r} is right in "
        f"{percent(figures.constant_accuracy.value)}%.",
        sections=(Section("Figures", (plot, *verdict_tables(scores, width=_PAGE))),),
        facts=tuple(facts),
    )
