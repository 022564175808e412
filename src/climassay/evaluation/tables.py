"""The tables of experiments, plans and comparisons, in the shapes of the paper and with what the paper leaves out."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from climassay.evaluation.long_answers import side_by_side_table
from climassay.evaluation.results import Cell, ConstantScore
from climassay.evaluation.scores import (
    OVERALL,
    CellCounts,
    DimensionScore,
    ExperimentScores,
    McqScores,
    PairedScores,
    PairedTest,
    PointCounts,
    PositionRow,
    PublishedScore,
    Score,
)
from climassay.grounding.references import ReferenceStatus
from climassay.grounding.text_check import STATUSES
from climassay.metrics.long_answers import GROUP_OF
from climassay.metrics.registry import METRICS, Metric
from climassay.questions import LEVELS, TYPES
from climassay.reporting import Axis, Dot, DotPlot, Mark, Table, counted, percent, percent_interval, shown_p_value
from climassay.reporting.tables import Column, split_columns
from climassay.statistics import Estimate, PairedComparison

SHORT_LEVELS: Mapping[str, str] = {"base": "Base", "reasoning": "Reason", "hypothetical": "Hypo", OVERALL: "Overall"}


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table and the name by which it can be asked for."""

    name: str
    """``overview``, ``mcq-cloze``, ``freeform``, ``own-metrics``, ``dimensions``, ``points``, ``side-by-side``,
    ``position``, ``counts``, ``settings``, ``models``, or a type of question that the paper does not have."""
    benchmark: str
    table: Table


@dataclass(frozen=True, slots=True)
class _Column:
    """One metric at one level."""

    metric: Metric
    level: str

    def heading(self, n: int, *, plain: bool = False) -> str:
        name = self.metric.label if plain or not self.metric.short else self.metric.short
        level = "" if "cloze" in self.metric.kinds or self.metric.external else f" {SHORT_LEVELS[self.level]}"
        return f"{name}{level}\nn={n}"


@dataclass(frozen=True, slots=True)
class _Numbers:
    """All that the tables of scores of one benchmark show."""

    cells: tuple[Cell, ...]
    """Also those that have no score, because all calls failed."""
    ours: tuple[Score, ...]
    constants: tuple[ConstantScore, ...]
    published: tuple[PublishedScore, ...]

    def columns(self, wanted: Callable[[Metric], bool]) -> list[_Column]:
        """Columns of the metrics wanted that have a score; cloze questions have no levels."""
        present = dict.fromkeys((score.metric, score.level) for score in self.ours)
        return [
            _Column(metric, level)
            for metric in METRICS.ordered(name for name, _ in present)
            if wanted(metric)
            for level in ([OVERALL] if "cloze" in metric.kinds else [*LEVELS, OVERALL])
            if (metric.name, level) in present
        ]

    def variants(self, columns: Sequence[_Column]) -> list[tuple[str, str]]:
        """Model and setting of each row, the variants of a model together; also those whose calls all failed."""
        shown = {(column.metric.name, column.level) for column in columns}
        having = {s.cell for s in self.ours if (s.metric, s.level) in shown}
        scored = {s.cell for s in self.ours}
        having |= {c for c in set(self.cells) - scored if any(column.metric.scores(c.task) for column in columns)}
        result = dict.fromkeys((cell.model, cell.setting) for cell in self.cells if cell in having)
        models = list(dict.fromkeys(model for model, _ in result))
        return sorted(result, key=lambda variant: models.index(variant[0]))

    def of(self, variant: tuple[str, str], columns: Sequence[_Column]) -> list[Estimate | None]:
        """A row."""
        row = {(s.metric, s.level): s.estimate for s in self.ours if (s.cell.model, s.cell.setting) == variant}
        return [row.get((column.metric.name, column.level)) for column in columns]


def shown_value(metric: str, value: float) -> str:
    """A score as tables show it: per cent with one decimal for accuracy and exact match, else three decimals."""
    return f"{100 * value:.1f}" if METRICS[metric].percent else f"{value:.3f}"


def metric_plot(
    metric: Metric, dots: Sequence[Dot], counts: Collection[int], more: str = "", note: str = "", **options: Any
) -> DotPlot:
    """Scores of a metric with their intervals, per cent where tables show it so.

    Args:
        metric: Whose name begins the title.
        dots: Shares from 0 to 1 have an axis from 0 to 1, others one that goes as far as the intervals reach.
        counts: Number of questions of each dot.
        more: End of the title.
        note: What follows the explanation of dots and bars.
        **options: Further fields of :class:`DotPlot`.
    """
    ends = [end for dot in dots for end in (dot.low, dot.high)]
    if all(0 <= end <= 1 for end in ends):
        axis = Axis.shares(metric.label, percent=metric.percent)
    else:
        axis = Axis.over(metric.label, (0.0, *ends), percent=metric.percent)
    note = f"Dots: mean over {question_range(counts)}. Bars: 95% interval.{note}"
    return DotPlot(f"{heading(metric)}{more}", tuple(dots), metric.label, note, axis, decimals=3, **options)


def question_range(counts: Collection[int]) -> str:
    """How many questions figures rest on, for example ``30 questions`` or ``20 to 30 questions``."""
    fewest, most = min(counts, default=0), max(counts, default=0)
    return f"{fewest:,} to {counted(most, 'question')}" if fewest < most else counted(most, "question")


def heading(metric: Metric) -> str:
    """The metric's label as a title begins with it."""
    return metric.label[:1].upper() + metric.label[1:]


def shown_estimate(metric: str, estimate: Estimate) -> str:
    """A score with both ends of its interval, for example ``61.1 [52.0, 69.4]``."""
    low, high = (shown_value(metric, end) for end in estimate.interval)
    return f"{shown_value(metric, estimate.value)} [{low}, {high}]"


def shown_difference(metric: str, value: float) -> str:
    """A difference of two scores with its sign: percentage points for accuracy and exact match, else three decimals."""
    return f"{100 * value:+.1f}" if METRICS[metric].percent else f"{value:+.3f}"


TEST_HEADINGS = ("95% interval", "gained /\nlost", "p", "p\n(Holm)")


def paired_cells(test: PairedComparison | PairedScores, metric: str) -> list[str]:
    """Number of items and difference of a paired test, then the cells below :data:`TEST_HEADINGS`."""
    return [
        str(test.difference.n),
        shown_difference(metric, test.difference.value),
        " to ".join(shown_difference(metric, end) for end in test.difference.interval),
        "-" if test.first_only is None else f"{test.second_only} / {test.first_only}",
        shown_p_value(test.p_value),
        shown_p_value(test.p_holm),
    ]


def experiment_tables(scores: ExperimentScores, published: Sequence[PublishedScore] = ()) -> list[NamedTable]:
    """All tables of an experiment, benchmark by benchmark; those without any row are left out.

    Args:
        scores: From :func:`~climassay.evaluation.scores.score_experiment`.
        published: Rows of the paper to show below ours, marked as published.
    """
    tables = [one for one in [_overview(scores)] if one is not None]
    for benchmark in dict.fromkeys(count.cell.benchmark for count in scores.counts):
        ours = [one for one in scores.scores if one.cell.benchmark == benchmark]
        constants = [one for one in scores.constants if one.benchmark == benchmark]
        dimensions = [one for one in scores.dimensions if one.cell.benchmark == benchmark]
        points = [one for one in scores.points if one.cell.benchmark == benchmark]
        cells = tuple(count.cell for count in scores.counts if count.cell.benchmark == benchmark)
        numbers = _Numbers(
            cells,
            tuple(one for one in ours if one.cell.task in METRICS[one.metric].kinds),
            tuple(one for one in constants if one.task in METRICS[one.metric].kinds),
            tuple(published),
        )
        named = {
            "mcq-cloze": _score_table(
                f"Multiple choice and cloze, {benchmark}",
                numbers.columns(lambda metric: bool(metric.published) and "freeform" not in metric.kinds),
                numbers,
                "Accuracy and exact match (EM) in per cent; PS: phrase similarity. In brackets: 95% intervals (Wilson; "
                "PS, and accuracy over several option orders: bootstrap over questions).",
            ),
            "freeform": _score_table(
                f"Freeform answers, {benchmark}",
                numbers.columns(lambda metric: bool(metric.published) and "freeform" in metric.kinds),
                numbers,
                "BLEU counts characters, as published. FA: factual accuracy. In brackets: 95% bootstrap intervals.",
            ),
            "own-metrics": _score_table(
                f"Further metrics, {benchmark}",
                [one for one in numbers.columns(lambda metric: not metric.published) if one.level == OVERALL],
                replace(numbers, published=()),
                "Metrics that the paper does not have, over all levels, from 0 to 1. In brackets: 95% intervals.",
            ),
        }
        # The types of questions that no metric names, but which name their metrics, have tables of their own.
        for task in dict.fromkeys(one.cell.task for one in ours if one.cell.task not in METRICS[one.metric].kinds):
            numbers = _Numbers(
                tuple(cell for cell in cells if cell.task == task),
                tuple(one for one in ours if one.cell.task == task),
                tuple(one for one in constants if one.task == task),
                (),
            )
            columns = numbers.columns(lambda _: True)
            columns = [column for column in columns if TYPES[task].levels or column.level == OVERALL]
            note = "In brackets: 95% intervals."
            named[task] = _score_table(f"{TYPES[task].title}, {benchmark}", columns, numbers, note, plain=True)
        positions = [((c.model, c.setting), row) for c, row in scores.positions.items() if c.benchmark == benchmark]
        if positions:
            named["position"] = _position_table(f"Position bias, {benchmark} (%)", ("model", "setting"), positions)
        named["dimensions"] = _dimensions(benchmark, dimensions)
        named["points"] = _points(benchmark, points)
        for judge, compared in scores.side_by_side.get(benchmark, {}).items():
            named["-".join(filter(None, ("side-by-side", judge)))] = side_by_side_table(compared, benchmark, judge)
        named["counts"] = _counts(benchmark, scores.counts)
        named["settings"] = _tests(benchmark, "settings", scores.tests)
        named["models"] = _tests(benchmark, "models", scores.tests)
        tables += [NamedTable(name, benchmark, table) for name, table in named.items() if table.rows]
    return tables


SCORE_TABLES = ("mcq-cloze", "freeform", "own-metrics")
"""Tables that may be wider than a screen: one column per score."""
_WIDE = 160
"""Columns of a screen that shows eight scores side by side."""
_MOST_TESTS = 24
"""Rows of a table of tests on a screen; of a longer one only differences beyond chance are shown."""


def screen_tables(named: Sequence[NamedTable], width: int, *, whole: Collection[str] = ()) -> list[Table]:
    """Tables as a screen shows them: scores in parts that fit, and of many tests those beyond chance.

    Args:
        named: From :func:`experiment_tables`.
        width: Columns of the screen.
        whole: Names of the tables whose rows are all shown.
    """
    # A score with its interval takes some 14 columns; the levels of a metric are four scores.
    wide, results = 8 if width >= _WIDE else 4, []
    for one in named:
        table = one.table
        if one.name in ("settings", "models") and one.name not in whole and len(table.rows) > _MOST_TESTS:
            shown = sorted(table.strong)
            note = f"{len(table.rows) - len(shown)} of {len(table.rows)} tests, those with p (Holm) of 0.05 or more, "
            note += f"are not shown: --table {one.name} of climassay evaluate table shows all. {table.note}"
            rows = tuple(table.rows[place] for place in shown)
            table = replace(table, rows=rows, strong=frozenset(), note=note)
        results += split_columns(table, 2, wide) if one.name in SCORE_TABLES else [table]
    return results


def _overview(scores: ExperimentScores) -> NamedTable | None:
    """Chief metrics of all benchmarks in one table, where some are tasks of another framework."""
    shown = [one for one in scores.scores if one.level == OVERALL and METRICS[one.metric].tested]
    rows = list(dict.fromkeys((one.cell.benchmark, one.metric) for one in shown))
    if len({name for name, _ in rows}) < 2 or not any(METRICS[metric].external for _, metric in rows):
        return None
    variants = list(dict.fromkeys((one.cell.model, one.cell.setting) for one in shown))
    results = {(one.cell.benchmark, one.metric, one.cell.model, one.cell.setting): one.estimate for one in shown}
    constants = {(one.benchmark, one.metric): one.value for one in scores.constants if one.level == OVERALL}
    lines = []
    for name, metric in rows:
        given = [results.get((name, metric, *variant)) for variant in variants]
        constant = constants.get((name, metric))
        lines.append(
            [
                name,
                METRICS[metric].label,
                str(max(one.n for one in given if one is not None)),
                *("-" if one is None else shown_estimate(metric, one) for one in given),
                "-" if constant is None else shown_value(metric, constant),
            ]
        )
    headings = ["benchmark", "metric", "n", *(f"{model}\n{setting}" for model, setting in variants), "constant"]
    note = "In brackets: 95% intervals. constant: the most frequent answer to all."
    return NamedTable("overview", "", Table.of("All benchmarks", headings, lines, left=2, grouped=1, note=note))


def _score_table(title: str, columns: Sequence[_Column], numbers: _Numbers, note: str, *, plain: bool = False) -> Table:
    variants = numbers.variants(columns)
    values = [numbers.of(variant, columns) for variant in variants]
    sizes = [max((estimate.n for estimate in column if estimate), default=0) for column in zip(*values, strict=True)]
    names = [column.metric.name for column in columns]
    rows = [
        [*variant, *("-" if one is None else shown_estimate(name, one) for name, one in zip(names, row, strict=True))]
        for variant, row in zip(variants, values, strict=True)
    ]
    known = {(constant.metric, constant.level): constant for constant in numbers.constants}
    results = [known.get((column.metric.name, column.level)) for column in columns]
    if any(results):
        cells = ["-" if one is None else shown_value(one.metric, one.value) for one in results]
        rows.append(["best constant answer", "always the same", *cells])
    beside = {(one.model, one.setting, one.metric, one.level): one.value for one in numbers.published}
    printed = False
    for model, setting in dict.fromkeys((score.model, score.setting) for score in numbers.published):
        given = [beside.get((model, setting, column.metric.name, column.level)) for column in columns]
        if any(value is not None for value in given):
            cells = []
            for column, value in zip(columns, given, strict=True):
                # With as many digits as the paper prints.
                digits = 3 if column.metric.name in ("bleu_char", "bert_score") else 2
                percents = 100.0 if column.metric.binary else 1.0
                cells.append("-" if value is None else f"{percents * value:.{digits}f}")
            rows.append([f"{model} (published)", setting, *cells])
            printed = True
    if printed:
        note += (
            " Rows named published are numbers of the ClimaQA paper: other questions, other books, other prompts; they "
            "cannot be compared with ours item by item and have no part in the marks."
        )
    return Table.of(
        title,
        ["model", "setting", *(column.heading(size, plain=plain) for column, size in zip(columns, sizes, strict=True))],
        rows,
        note=note,
        left=2,
        grouped=1,
        marks=_marks(columns, [model for model, _ in variants], values),
    )


def _marks(
    columns: Sequence[_Column], groups: Sequence[str], values: Sequence[Sequence[Estimate | None]]
) -> dict[tuple[int, int], frozenset[Mark]]:
    """Marks of the best values of each column, within a group and over all; equal as printed, equal in marks."""
    marks: dict[tuple[int, int], set[Mark]] = {}
    for place, column in enumerate(columns):
        printed = {
            row: float(shown_value(column.metric.name, estimate.value))
            for row, estimate in enumerate(one[place] for one in values)
            if estimate is not None
        }
        parts: list[tuple[Mark, list[int]]] = [("top", list(printed))]
        parts += [("best", [row for row in printed if groups[row] == group]) for group in dict.fromkeys(groups)]
        for mark, rows in parts:
            best = min if column.metric.lower else max
            highest = best((printed[row] for row in rows), default=0.0)
            # Where all are alike, none is the best.
            for row in rows if len({printed[row] for row in rows}) > 1 else []:
                if printed[row] == highest:
                    # Two leading columns, model and setting, hold no numbers.
                    marks.setdefault((row, place + 2), set()).add(mark)
    return {cell: frozenset(result) for cell, result in marks.items()}


def _dimensions(benchmark: str, dimensions: Iterable[DimensionScore]) -> Table:
    rows = []
    for one in dimensions:
        interval = " to ".join(f"{end:.2f}" for end in one.estimate.interval)
        issues = "; ".join(f"{issue}: {count}" for issue, count in one.issues) or "-"
        facts = [str(one.estimate.n), f"{one.estimate.value:.2f}", interval, issues]
        rows.append([one.cell.model, one.cell.setting, GROUP_OF[one.dimension], one.dimension, *facts])
    headings = ["model", "setting", "group", "dimension", "n", "rating", "95% interval", "issues"]
    note = "Ratings from 1 (not usable) to 5 (no fault) by the judge; issues: in how many answers it named them."
    return Table.of(f"Adequacy of long answers, {benchmark}", headings, rows, left=4, grouped=1, note=note)


def _points(benchmark: str, points: Iterable[PointCounts]) -> Table:
    sentences, references = STATUSES[:-1], get_args(ReferenceStatus)
    rows = [
        [
            one.cell.model,
            one.cell.setting,
            *(str(one.sentences.get(status, 0)) for status in sentences),
            *(str(one.references.get(status, 0)) for status in references),
        ]
        for one in points
    ]
    headings = ["model", "setting", *(f"sentences\n{one}" for one in sentences)]
    headings += [f"references\n{one}" for one in references]
    note = (
        "Sentences that claim something, by what the collections say (supported: a judge has read both); "
        "references by what could be looked up."
    )
    return Table.of(f"Points and references, {benchmark}", headings, rows, left=2, grouped=1, note=note)


def _counts(benchmark: str, counts: Iterable[CellCounts]) -> Table:
    rows = [
        [
            count.cell.model,
            count.cell.setting,
            count.cell.task,
            str(count.n),
            str(count.failed),
            str(count.unparsed) if TYPES[count.cell.task].options else "-",
            _shown_readings(count.readings),
            str(count.violations),
            "; ".join(f"{kind}: {number}" for kind, number in count.kinds) or "-",
            "; ".join(f"{METRICS[name].label}: {number}" for name, number in count.unscored) or "-",
        ]
        for count in counts
        if count.cell.benchmark == benchmark
    ]
    words = ("model", "setting", "task", "read by", "which", "unscored")
    headings = (
        "model",
        "setting",
        "task",
        "n",
        "failed",
        "unparsed",
        "read by",
        "broken\nconstraints",
        "which",
        "unscored",
    )
    return Table(
        f"Answers that are not plain answers, {benchmark}",
        tuple(Column(heading, "left" if heading in words else "right") for heading in headings),
        tuple(tuple(row) for row in rows),
        note="Failed and unparsed answers score 0. Answers that break a constraint are scored as they are. Unscored: "
        f"the metric itself failed; such answers are in no mean of it. Read by: {READ_BY}.",
        grouped=1,
    )


READ_BY = (
    "probability: of the letters, which hold at least half of it; low mass: likewise, with less than half; "
    "enumeration: the model could write nothing but a letter; text: what it wrote"
)


def _shown_readings(readings: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{reading} {count}" for reading, count in readings) or "-"


def _tests(benchmark: str, family: str, tests: Iterable[PairedTest]) -> Table:
    results = [test for test in tests if test.benchmark == benchmark and test.family == family]
    kinds = " and ".join(dict.fromkeys(test.test for test in results))
    shared, differing = ("model", "settings") if family == "settings" else ("setting", "models")
    return Table.of(
        f"{differing.capitalize()} compared on the same questions, {benchmark}",
        [shared, "difference", "metric", "n", "value", *TEST_HEADINGS],
        [
            [test.fixed, f"{test.second} - {test.first}", METRICS[test.metric].label, *paired_cells(test, test.metric)]
            for test in results
        ],
        left=3,
        grouped=1,
        strong=[number for number, test in enumerate(results) if test.p_holm < 0.05],
        note=f"Paired tests: {kinds}. Interval: differences that sign flips do not reject. gained / lost: "
        "questions that only the one named first, or only the one named second, got right. Holm: corrected for the "
        f"{counted(len(results), 'test')} of this table; rows below 0.05 are set off. Accuracy and exact "
        "match in percentage points, all others as differences of values from 0 to 1.",
    )


def score_rows(scores: ExperimentScores, published: Sequence[PublishedScore] = ()) -> Table:
    """Every score on a line of its own with its interval: the form for other programs."""
    ours = [
        (
            *(one.cell.benchmark, one.cell.model, one.cell.setting, one.cell.task, one.metric, one.level),
            str(one.estimate.n),
            *(f"{value:.6g}" for value in (one.estimate.value, *one.estimate.interval)),
            "ours",
        )
        for one in scores.scores
    ]
    beside = [
        (f"ClimaQA {p.dataset}", p.model, p.setting, p.task, p.metric, p.level, str(p.n or ""), f"{p.value:g}", "", "")
        for p in published
    ]
    headings = ["benchmark", "model", "setting", "task", "metric", "level", "n", "value", "low", "high", "origin"]
    return Table.of("Scores", headings, [*ours, *((*row, "published") for row in beside)], left=6)


def mcq_tables(scores: McqScores) -> list[Table]:
    """Accuracy by level, paired tests, position bias; the last two only where there is something to show."""
    several = len({row.model for row in scores.accuracy}) > 1
    named = ("model", "setting", "scoring") if several else ("setting", "scoring")
    again = any(row.asked_again for row in scores.accuracy)
    usual = {"likelihood": {"probability"}, "letter": {"text"}}
    mixed = any({reading for reading, _ in row.readings} - usual.get(row.scoring, set()) for row in scores.accuracy)
    accuracy = [
        (
            *[row.model] * several,
            row.setting,
            row.scoring,
            row.level,
            *(
                ("-", "-", "-")
                if row.accuracy is None
                else (str(row.accuracy.n), percent(row.accuracy.value), percent_interval(row.accuracy.interval))
            ),
            percent(row.baseline),
            percent(row.chance),
            str(row.unparsed),
            str(row.failed),
            *[str(row.asked_again)] * again,
            *[_shown_readings(row.readings)] * mixed,
        )
        for row in scores.accuracy
    ]
    note = "const.: always the same letter. unparsed and failed answers count as wrong."
    if again:
        note += " asked again: answers that named no option, after which the model said which one it had chosen."
    if mixed:
        note += f" read by: {READ_BY}."
    headings = ["level", "n", "accuracy", "95% interval", "const.", "chance", "unparsed", "failed"]
    tables = [
        Table.of(
            "Accuracy by level (%)",
            [*named, *headings, *["asked again"] * again, *["read by"] * mixed],
            accuracy,
            left=len(named) + 1,
            grouped=len(named),
            strong=[number for number, row in enumerate(scores.accuracy) if row.level == OVERALL],
            note=note,
        )
    ]
    for family in dict.fromkeys(row.family for row in scores.paired):
        paired = [row for row in scores.paired if row.family == family]
        pairs = [
            [row.fixed] * several + [f"{row.second} - {row.first}", row.scoring, *paired_cells(row, "accuracy")]
            for row in paired
        ]
        tests = " and ".join(dict.fromkeys(row.test for row in paired))
        shared = ["model" if family == "settings" else "setting"] if several else []
        tables.append(
            Table.of(
                f"{family.capitalize()} compared on the same questions (percentage points)",
                [*shared, "difference", "scoring", "n", "points", *TEST_HEADINGS],
                pairs,
                left=len(shared) + 2,
                note=f"Paired test: {tests}. Interval: differences that sign flips do not reject. gained / lost: "
                "questions that only the one named first, or only the one named second, got right, in the option order "
                "of the file.",
            )
        )
    if scores.position:
        rows = [((row.model, row.setting, row.scoring)[-len(named) :], row) for row in scores.position]
        tables.append(_position_table("Position bias (%)", named, rows))
    return tables


def _position_table(title: str, names: Sequence[str], found: Sequence[tuple[Sequence[str], PositionRow]]) -> Table:
    rows = [
        (
            *labels,
            str(row.orders),
            "/".join(f"{100 * share:.0f}" for share in row.picked),
            "/".join(f"{100 * share:.0f}" for share in row.right),
            percent(row.recall_spread),
            "-" if row.p_value is None else shown_p_value(row.p_value),
            percent(row.consistent),
            "-"
            if row.averaged is None
            else f"{percent(row.averaged.value)} ({percent_interval(row.averaged.interval)})",
        )
        for labels, row in found
    ]
    return Table.of(
        title,
        [*names, "orders", "picked\na/b/...", "right at\na/b/...", "spread", "p", "same\nchoice", "averaged (95%)"],
        rows,
        left=len(names),
        grouped=len(names),
        note="picked: share of choices at each position. right: share answered right when the correct option stood "
        "there; spread: its standard deviation. p: of choices that follow the correct options' positions, with as many "
        "orders as options. same choice: questions with one choice in all orders. averaged: "
        "accuracy when log-probabilities are averaged over the orders.",
    )
