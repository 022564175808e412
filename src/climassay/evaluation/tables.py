"""Tables of experiments in the layout of the paper, with intervals, counts and tests that the paper lacks."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from climassay.evaluation.long_answers import side_by_side_table
from climassay.evaluation.paper_scores import PublishedScore, has_published_questions
from climassay.evaluation.position_bias import PositionRow
from climassay.evaluation.results import Cell, ConstantScore, Experiment
from climassay.evaluation.scores import (
    OVERALL,
    CellCounts,
    DimensionScore,
    ExperimentScores,
    McqScores,
    PairedScores,
    PairedTest,
    PointCounts,
    Score,
)
from climassay.grounding.references import ReferenceStatus
from climassay.grounding.text_check import STATUSES
from climassay.metrics.long_answers import GROUP_OF
from climassay.metrics.registry import METRICS, Metric
from climassay.questions import LEVELS, TYPES, Kind
from climassay.reporting import Axis, Dot, DotPlot, Mark, Table, counted, format_p_value, percent, percent_interval
from climassay.reporting.tables import Column, split_columns
from climassay.statistics import Estimate, PairedComparison

SHORT_LEVELS: Mapping[str, str] = {"base": "Base", "reasoning": "Reason", "hypothetical": "Hypo", OVERALL: "Overall"}


@dataclass(frozen=True, slots=True)
class NamedTable:
    """Table with the name by which users select it."""

    name: str
    """Name of the table: ``overview``, ``mcq-cloze``, ``freeform``, ``own-metrics``, ``dimensions``, ``points``,
    ``side-by-side``, ``position``, ``counts``, ``settings``, ``models``, or a kind of questions that is not in the
    paper."""
    benchmark: str
    table: Table


@dataclass(frozen=True, slots=True)
class _ScoreColumn:
    """Column of a score table: a metric at one level."""

    metric: Metric
    level: str

    def heading(self, n: int, *, plain: bool = False) -> str:
        name = self.metric.label if plain or not self.metric.short else self.metric.short
        level = f" {SHORT_LEVELS[self.level]}" if self.metric.has_levels and not self.metric.external else ""
        return f"{name}{level}\nn={n}"


@dataclass(frozen=True, slots=True)
class _BenchmarkScores:
    """Scores of one benchmark, from which a score table is made."""

    cells: tuple[Cell, ...]
    """Cells of the table, including those without a score because all requests failed."""
    scores: tuple[Score, ...]
    constants: tuple[ConstantScore, ...]
    published: tuple[PublishedScore, ...]
    has_published_questions: bool = False
    """Whether the published scores were measured on the same questions."""

    def columns(self, is_included: Callable[[Metric], bool]) -> list[_ScoreColumn]:
        """Return a column for each included metric and each level at which the benchmark has a score."""
        scored_columns = dict.fromkeys((score.metric, score.level) for score in self.scores)
        return [
            _ScoreColumn(metric, level)
            for metric in METRICS.ordered(name for name, _ in scored_columns)
            if is_included(metric)
            for level in ([*LEVELS, OVERALL] if metric.has_levels else [OVERALL])
            if (metric.name, level) in scored_columns
        ]

    def variants(self, columns: Sequence[_ScoreColumn]) -> list[tuple[str, str]]:
        """Return (model, setting) of each row, grouped by model; cells whose requests all failed have a row, too."""
        keys = {(column.metric.name, column.level) for column in columns}
        cells = {score.cell for score in self.scores if (score.metric, score.level) in keys}
        unscored_cells = set(self.cells) - {score.cell for score in self.scores}
        cells |= {cell for cell in unscored_cells if any(column.metric.scores(cell.task) for column in columns)}
        variants = dict.fromkeys((cell.model, cell.setting) for cell in self.cells if cell in cells)
        models = list(dict.fromkeys(model for model, _ in variants))
        return sorted(variants, key=lambda variant: models.index(variant[0]))

    def row(self, variant: tuple[str, str], columns: Sequence[_ScoreColumn]) -> list[Estimate | None]:
        row = {
            (score.metric, score.level): score.estimate
            for score in self.scores
            if (score.cell.model, score.cell.setting) == variant
        }
        return [row.get((column.metric.name, column.level)) for column in columns]


def format_score(metric: str, value: float) -> str:
    """Format a score: in per cent with one decimal for accuracy and exact match, else with three decimals."""
    return f"{100 * value:.1f}" if METRICS[metric].percent else f"{value:.3f}"


def metric_plot(
    metric: Metric, dots: Sequence[Dot], counts: Collection[int], suffix: str = "", note: str = "", **options: Any
) -> DotPlot:
    """Return a dot plot of a metric's scores with intervals, in the same units as in tables.

    Args:
        metric: Metric whose name begins the title.
        dots: Scores; the axis goes from 0 to 1 if all intervals are in this range, else over all intervals.
        counts: Number of questions of each dot.
        suffix: End of the title.
        note: Text at the end of the note, which explains dots and bars.
        **options: Further fields of :class:`DotPlot`.
    """
    bounds = [bound for dot in dots for bound in (dot.low, dot.high)]
    if all(0 <= bound <= 1 for bound in bounds):
        axis = Axis.shares(metric.label, percent=metric.percent)
    else:
        axis = Axis.over(metric.label, (0.0, *bounds), percent=metric.percent)
    note = f"Dots: mean over {question_range(counts)}. Bars: 95% interval.{note}"
    return DotPlot(f"{heading(metric)}{suffix}", tuple(dots), metric.label, note, axis, decimals=3, **options)


def question_range(counts: Collection[int]) -> str:
    """Format the range of several numbers of questions, for example ``30 questions`` or ``20 to 30 questions``."""
    min_count, max_count = min(counts, default=0), max(counts, default=0)
    return (
        f"{min_count:,} to {counted(max_count, 'question')}"
        if min_count < max_count
        else counted(max_count, "question")
    )


def heading(metric: Metric) -> str:
    """Return the label of a metric with a capital letter, for the beginning of a title."""
    return metric.label[:1].upper() + metric.label[1:]


def format_estimate(metric: str, estimate: Estimate) -> str:
    """Format a score with its interval, for example ``61.1 [52.0, 69.4]``."""
    lower_bound, upper_bound = (format_score(metric, bound) for bound in estimate.interval)
    return f"{format_score(metric, estimate.value)} [{lower_bound}, {upper_bound}]"


def format_difference(metric: str, value: float) -> str:
    """Format a difference of scores: in percentage points for accuracy and exact match, else with three decimals."""
    return f"{100 * value:+.1f}" if METRICS[metric].percent else f"{value:+.3f}"


TEST_HEADINGS = ("95% interval", "gained /\nlost", "p", "p\n(Holm)")


def paired_cells(test: PairedComparison | PairedScores, metric: str) -> list[str]:
    """Return the table cells of a paired test: number of items, difference, and the columns :data:`TEST_HEADINGS`."""
    return [
        str(test.difference.n),
        format_difference(metric, test.difference.value),
        " to ".join(format_difference(metric, bound) for bound in test.difference.interval),
        "-" if test.first_only is None else f"{test.second_only} / {test.first_only}",
        format_p_value(test.p_value),
        format_p_value(test.p_holm),
    ]


def published_benchmarks(experiment: Experiment, published: Sequence[PublishedScore]) -> frozenset[str]:
    """Return the names of the benchmarks that have the same questions as the published scores."""
    config: Mapping[str, Any] = experiment.config
    files = {benchmark["name"]: benchmark["files"] for benchmark in config.get("benchmarks", ())}
    return frozenset(
        name
        for name, questions in experiment.questions.items()
        if published and has_published_questions(published[0].dataset, questions, files.get(name, ()))
    )


def experiment_tables(
    scores: ExperimentScores, published: Sequence[PublishedScore] = (), same_questions: Collection[str] = ()
) -> list[NamedTable]:
    """Return all tables of an experiment, benchmark by benchmark; tables without rows are left out.

    Args:
        scores: Scores of the experiment (:func:`~climassay.evaluation.scores.score_experiment`).
        published: Published scores, which are shown below ours.
        same_questions: Names of the benchmarks with the questions of the published scores
            (:func:`published_benchmarks`).
    """
    overview = _make_overview(scores)
    tables = [] if overview is None else [overview]
    for benchmark in dict.fromkeys(count.cell.benchmark for count in scores.counts):
        benchmark_scores = [score for score in scores.scores if score.cell.benchmark == benchmark]
        constants = [constant for constant in scores.constants if constant.benchmark == benchmark]
        dimensions = [dimension for dimension in scores.dimensions if dimension.cell.benchmark == benchmark]
        point_counts = [count for count in scores.points if count.cell.benchmark == benchmark]
        cells = tuple(count.cell for count in scores.counts if count.cell.benchmark == benchmark)
        selection = _BenchmarkScores(
            cells,
            tuple(score for score in benchmark_scores if _has_shared_table(score.metric, score.cell.task)),
            tuple(constant for constant in constants if _has_shared_table(constant.metric, constant.task)),
            tuple(published),
            benchmark in same_questions,
        )
        tables_by_name = {
            "mcq-cloze": _make_score_table(
                f"Multiple choice and cloze, {benchmark}",
                selection.columns(lambda metric: bool(metric.published) and not metric.scores_prose),
                selection,
                "Accuracy and exact match (EM) in per cent; PS: phrase similarity. In brackets: 95% intervals (Wilson; "
                "PS, and accuracy over several option orders: bootstrap over questions).",
            ),
            "freeform": _make_score_table(
                f"Freeform answers, {benchmark}",
                selection.columns(lambda metric: bool(metric.published) and metric.scores_prose),
                selection,
                "BLEU counts characters, as published. FA: factual accuracy. In brackets: 95% bootstrap intervals.",
            ),
            "own-metrics": _make_score_table(
                f"Further metrics, {benchmark}",
                [
                    column
                    for column in selection.columns(lambda metric: not metric.published)
                    if column.level == OVERALL
                ],
                replace(selection, published=()),
                "Metrics that the paper does not have, over all levels, from 0 to 1. In brackets: 95% intervals.",
            ),
        }
        for task in dict.fromkeys(
            s.cell.task for s in benchmark_scores if not _has_shared_table(s.metric, s.cell.task)
        ):
            selection = _BenchmarkScores(
                tuple(cell for cell in cells if cell.task == task),
                tuple(score for score in benchmark_scores if score.cell.task == task),
                tuple(constant for constant in constants if constant.task == task),
                (),
            )
            columns = selection.columns(lambda _: True)
            columns = [column for column in columns if TYPES[task].has_levels or column.level == OVERALL]
            note = "In brackets: 95% intervals."
            tables_by_name[task] = _make_score_table(
                f"{TYPES[task].title}, {benchmark}", columns, selection, note, has_full_headings=True
            )
        positions = [((c.model, c.setting), row) for c, row in scores.positions.items() if c.benchmark == benchmark]
        if positions:
            tables_by_name["position"] = _make_position_table(
                f"Position bias, {benchmark} (%)", ("model", "setting"), positions
            )
        tables_by_name["dimensions"] = _make_dimension_table(benchmark, dimensions)
        tables_by_name["points"] = _make_point_table(benchmark, point_counts)
        for judge, result in scores.side_by_side.get(benchmark, {}).items():
            tables_by_name["-".join(filter(None, ("side-by-side", judge)))] = side_by_side_table(
                result, benchmark, judge
            )
        tables_by_name["counts"] = _make_count_table(benchmark, scores.counts)
        tables_by_name["settings"] = _make_test_table(benchmark, "settings", scores.tests)
        tables_by_name["models"] = _make_test_table(benchmark, "models", scores.tests)
        tables += [NamedTable(name, benchmark, table) for name, table in tables_by_name.items() if table.rows]
    return tables


def _has_shared_table(metric: str, task: Kind) -> bool:
    """Return whether a score appears in a table that several kinds of questions share.

    The kinds of the ClimaQA paper and metrics of other packages share tables. Other kinds, and metrics of other
    frameworks, have a table for each kind.
    """
    return not METRICS[metric].external and (TYPES[task].in_climaqa or task in METRICS[metric].kinds)


SCORE_TABLES = ("mcq-cloze", "freeform", "own-metrics")
"""Names of the tables with a column for each score, which may be too wide for a screen."""
_WIDE_SCREEN = 160
"""Minimum width of a screen, in characters, for eight scores side by side."""
_MAX_SCREEN_TESTS = 24
"""Maximum number of tests on a screen; if there are more, only significant tests are shown."""


def screen_tables(named: Sequence[NamedTable], width: int, *, complete: Collection[str] = ()) -> list[Table]:
    """Return tables for a screen: wide tables are split, and long lists of tests show only significant tests.

    Args:
        named: Tables with their names (:func:`experiment_tables`).
        width: Width of the screen in characters.
        complete: Names of the tables that keep all their rows.
    """
    # A score with its interval takes some 14 characters; the levels of a metric are four scores.
    n_scores, results = 8 if width >= _WIDE_SCREEN else 4, []
    for entry in named:
        name, table = entry.name, entry.table
        if name in ("settings", "models") and name not in complete and len(table.rows) > _MAX_SCREEN_TESTS:
            significant_indices = sorted(table.strong)
            n_hidden = len(table.rows) - len(significant_indices)
            note = f"{n_hidden} of {len(table.rows)} tests, those with p (Holm) of 0.05 or more, are not shown: "
            note += f"--table {name} of climassay evaluate table shows all. {table.note}"
            rows = tuple(table.rows[index] for index in significant_indices)
            table = replace(table, rows=rows, strong=frozenset(), note=note)
        results += split_columns(table, 2, n_scores) if name in SCORE_TABLES else [table]
    return results


def _make_overview(scores: ExperimentScores) -> NamedTable | None:
    """Return a table of the chief metrics of all benchmarks.

    Return None for a single benchmark, or if no benchmark comes from another framework.
    """
    overall = [score for score in scores.scores if score.level == OVERALL and METRICS[score.metric].tested]
    keys = list(dict.fromkeys((score.cell.benchmark, score.metric) for score in overall))
    if len({name for name, _ in keys}) < 2 or not any(METRICS[metric].external for _, metric in keys):
        return None
    variants = list(dict.fromkeys((score.cell.model, score.cell.setting) for score in overall))
    estimates = {(s.cell.benchmark, s.metric, s.cell.model, s.cell.setting): s.estimate for s in overall}
    constants = {(c.benchmark, c.metric): c.value for c in scores.constants if c.level == OVERALL}
    rows = []
    for name, metric in keys:
        row = [estimates.get((name, metric, *variant)) for variant in variants]
        constant = constants.get((name, metric))
        rows.append(
            [
                name,
                METRICS[metric].label,
                str(max(estimate.n for estimate in row if estimate is not None)),
                *(_format_optional(metric, estimate) for estimate in row),
                "-" if constant is None else format_score(metric, constant),
            ]
        )
    headings = ["benchmark", "metric", "n", *(f"{model}\n{setting}" for model, setting in variants), "constant"]
    note = "In brackets: 95% intervals. constant: the most frequent answer to all."
    return NamedTable("overview", "", Table.of("All benchmarks", headings, rows, left_columns=2, grouped=1, note=note))


def _format_optional(metric: str, estimate: Estimate | None) -> str:
    return "-" if estimate is None else format_estimate(metric, estimate)


def _make_score_table(
    title: str,
    columns: Sequence[_ScoreColumn],
    selection: _BenchmarkScores,
    note: str,
    *,
    has_full_headings: bool = False,
) -> Table:
    variants = selection.variants(columns)
    values = [selection.row(variant, columns) for variant in variants]
    sizes = [max((estimate.n for estimate in column if estimate), default=0) for column in zip(*values, strict=True)]
    names = [column.metric.name for column in columns]
    rows = [[*variant, *map(_format_optional, names, row)] for variant, row in zip(variants, values, strict=True)]
    constants = {(constant.metric, constant.level): constant.value for constant in selection.constants}
    constant_row = [constants.get((column.metric.name, column.level)) for column in columns]
    if any(value is not None for value in constant_row):
        cells = ["-" if v is None else format_score(name, v) for name, v in zip(names, constant_row, strict=True)]
        rows.append(["best constant answer", "always the same", *cells])
    published_values = {(p.model, p.setting, p.metric, p.level): p.value for p in selection.published}
    published_rows = []
    for model, setting in dict.fromkeys((score.model, score.setting) for score in selection.published):
        cells = []
        for column in columns:
            value = published_values.get((model, setting, column.metric.name, column.level))
            # With as many digits as the paper prints.
            digits = 3 if column.metric.name in ("bleu_char", "bert_score") else 2
            factor = 100.0 if column.metric.binary else 1.0
            cells.append("-" if value is None else f"{factor * value:.{digits}f}")
        if any(cell != "-" for cell in cells):
            published_rows.append([f"{model} (published)", setting, *cells])
    rows += published_rows
    if published_rows:
        questions = "the same questions, other" if selection.has_published_questions else "other questions,"
        note += (
            f" Rows marked published are numbers of the ClimaQA paper: {questions} books and prompts; they "
            "cannot be compared with ours item by item and are not considered in the marks."
        )
    return Table.of(
        title,
        [
            "model",
            "setting",
            *(column.heading(size, plain=has_full_headings) for column, size in zip(columns, sizes, strict=True)),
        ],
        rows,
        note=note,
        left_columns=2,
        grouped=1,
        marks=_find_marks(columns, [model for model, _ in variants], values),
    )


def _find_marks(
    columns: Sequence[_ScoreColumn], groups: Sequence[str], values: Sequence[Sequence[Estimate | None]]
) -> dict[tuple[int, int], frozenset[Mark]]:
    """Return the marks that highlight each column's best values, overall and within each group, by row and column.

    Values that are printed alike get the same mark.
    """
    marks_by_cell: dict[tuple[int, int], set[Mark]] = {}
    for index, column in enumerate(columns):
        rounded_by_row = {
            row: float(format_score(column.metric.name, estimate.value))
            for row, estimate in enumerate(estimates[index] for estimates in values)
            if estimate is not None
        }
        row_groups: list[tuple[Mark, list[int]]] = [("top", list(rounded_by_row))]
        row_groups += [
            ("best", [row for row in rounded_by_row if groups[row] == group]) for group in dict.fromkeys(groups)
        ]
        for mark, rows in row_groups:
            select_best = min if column.metric.is_lower_better else max
            best_value = select_best((rounded_by_row[row] for row in rows), default=0.0)
            # If all values are equal, none is the best.
            for row in rows if len({rounded_by_row[row] for row in rows}) > 1 else []:
                if rounded_by_row[row] == best_value:
                    # Two leading columns, model and setting, hold no numbers.
                    marks_by_cell.setdefault((row, index + 2), set()).add(mark)
    return {position: frozenset(cell_marks) for position, cell_marks in marks_by_cell.items()}


def _make_dimension_table(benchmark: str, dimensions: Iterable[DimensionScore]) -> Table:
    rows = []
    for score in dimensions:
        interval = " to ".join(f"{end:.2f}" for end in score.estimate.interval)
        issues = "; ".join(f"{issue}: {count}" for issue, count in score.issues) or "-"
        cells = [str(score.estimate.n), f"{score.estimate.value:.2f}", interval, issues]
        rows.append([score.cell.model, score.cell.setting, GROUP_OF[score.dimension], score.dimension, *cells])
    headings = ["model", "setting", "group", "dimension", "n", "rating", "95% interval", "issues"]
    note = "Ratings from 1 (not usable) to 5 (no fault) by the judge; issues: in how many answers it named them."
    return Table.of(f"Adequacy of long answers, {benchmark}", headings, rows, left_columns=4, grouped=1, note=note)


def _make_point_table(benchmark: str, points: Iterable[PointCounts]) -> Table:
    sentences, references = STATUSES[:-1], get_args(ReferenceStatus)
    rows = [
        [
            count.cell.model,
            count.cell.setting,
            *(str(count.sentences.get(status, 0)) for status in sentences),
            *(str(count.references.get(status, 0)) for status in references),
        ]
        for count in points
    ]
    headings = ["model", "setting", *(f"sentences\n{status}" for status in sentences)]
    headings += [f"references\n{status}" for status in references]
    note = (
        "Sentences with a claim by their support in the collections (supported: a judge has read both); "
        "references by the result of their look-up."
    )
    return Table.of(f"Points and references, {benchmark}", headings, rows, left_columns=2, grouped=1, note=note)


def _make_count_table(benchmark: str, counts: Iterable[CellCounts]) -> Table:
    rows = [
        [
            count.cell.model,
            count.cell.setting,
            count.cell.task,
            str(count.n),
            str(count.failed),
            str(count.unparsed) if TYPES[count.cell.task].has_options else "-",
            _format_readings(count.readings),
            str(count.violations),
            "; ".join(f"{kind}: {number}" for kind, number in count.kinds) or "-",
            "; ".join(f"{METRICS[name].label}: {number}" for name, number in count.unscored) or "-",
        ]
        for count in counts
        if count.cell.benchmark == benchmark
    ]
    left_columns = ("model", "setting", "task", "read by", "which", "unscored")
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
        tuple(Column(heading, "left" if heading in left_columns else "right") for heading in headings),
        tuple(tuple(row) for row in rows),
        note="Failed and unparsed answers score 0. Answers that break a constraint are scored unchanged. Unscored: "
        f"the metric itself failed; its means leave out such answers. Read by: {READ_BY}.",
        grouped=1,
    )


READ_BY = (
    "probability: of the letters, which hold at least half of it; low mass: likewise, with less than half; "
    "enumeration: the model could write nothing but a letter; text: what it wrote"
)
"""Explanation of the reading methods, for the notes of tables."""


def _format_readings(readings: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{reading} {count}" for reading, count in readings) or "-"


def _make_test_table(benchmark: str, family: str, tests: Iterable[PairedTest]) -> Table:
    family_tests = [test for test in tests if test.benchmark == benchmark and test.family == family]
    kinds = " and ".join(dict.fromkeys(test.test for test in family_tests))
    shared_label, compared_property = ("model", "settings") if family == "settings" else ("setting", "models")
    return Table.of(
        f"{compared_property.capitalize()} compared on the same questions, {benchmark}",
        [shared_label, "difference", "metric", "n", "value", *TEST_HEADINGS],
        [
            [test.fixed, f"{test.second} - {test.first}", METRICS[test.metric].label, *paired_cells(test, test.metric)]
            for test in family_tests
        ],
        left_columns=3,
        grouped=1,
        strong=[index for index, test in enumerate(family_tests) if test.p_holm < 0.05],
        note=f"Paired tests: {kinds}. Interval: differences that sign flips do not reject. gained / lost: "
        "questions that only the one named first, or only the one named second, got right. Holm: corrected for the "
        f"{counted(len(family_tests), 'test')} of this table; rows below 0.05 are set off. Accuracy and exact "
        "match in percentage points, all others as differences of values from 0 to 1.",
    )


def score_rows(scores: ExperimentScores, published: Sequence[PublishedScore] = ()) -> Table:
    """Return a table with a row for each score and its interval, for further processing."""
    our_rows = [
        (
            *(score.cell.benchmark, score.cell.model, score.cell.setting, score.cell.task, score.metric, score.level),
            str(score.estimate.n),
            *(f"{value:.6g}" for value in (score.estimate.value, *score.estimate.interval)),
            "ours",
        )
        for score in scores.scores
    ]
    published_rows = [
        (f"ClimaQA {p.dataset}", p.model, p.setting, p.task, p.metric, p.level, str(p.n or ""), f"{p.value:g}", "", "")
        for p in published
    ]
    headings = ["benchmark", "model", "setting", "task", "metric", "level", "n", "value", "low", "high", "origin"]
    return Table.of("Scores", headings, [*our_rows, *((*row, "published") for row in published_rows)], left_columns=6)


def mcq_tables(scores: McqScores) -> list[Table]:
    """Return the tables of a multiple-choice evaluation: accuracy, and if available paired tests and position bias."""
    has_models = len({row.model for row in scores.accuracy}) > 1
    labels = ("model", "setting", "scoring") if has_models else ("setting", "scoring")
    has_asked_again = any(row.asked_again for row in scores.accuracy)
    usual_readings = {"likelihood": {"probability"}, "letter": {"text"}}
    has_mixed_readings = any(
        {reading for reading, _ in row.readings} - usual_readings.get(row.scoring, set()) for row in scores.accuracy
    )
    accuracy = [
        (
            *[row.model] * has_models,
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
            *[str(row.asked_again)] * has_asked_again,
            *[_format_readings(row.readings)] * has_mixed_readings,
        )
        for row in scores.accuracy
    ]
    note = "const.: always the same letter. unparsed and failed answers count as wrong."
    if has_asked_again:
        note += " asked again: answers that named no option, after which the model said which one it had chosen."
    if has_mixed_readings:
        note += f" read by: {READ_BY}."
    headings = ["level", "n", "accuracy", "95% interval", "const.", "chance", "unparsed", "failed"]
    tables = [
        Table.of(
            "Accuracy by level (%)",
            [*labels, *headings, *["asked again"] * has_asked_again, *["read by"] * has_mixed_readings],
            accuracy,
            left_columns=len(labels) + 1,
            grouped=len(labels),
            strong=[index for index, row in enumerate(scores.accuracy) if row.level == OVERALL],
            note=note,
        )
    ]
    for family in dict.fromkeys(row.family for row in scores.paired):
        paired_rows = [row for row in scores.paired if row.family == family]
        pairs = [
            [row.fixed] * has_models + [f"{row.second} - {row.first}", row.scoring, *paired_cells(row, "accuracy")]
            for row in paired_rows
        ]
        tests = " and ".join(dict.fromkeys(row.test for row in paired_rows))
        shared_label = ["model" if family == "settings" else "setting"] if has_models else []
        tables.append(
            Table.of(
                f"{family.capitalize()} compared on the same questions (percentage points)",
                [*shared_label, "difference", "scoring", "n", "points", *TEST_HEADINGS],
                pairs,
                left_columns=len(shared_label) + 2,
                note=f"Paired test: {tests}. Interval: differences that sign flips do not reject. gained / lost: "
                "questions that only the one named first, or only the one named second, got right, in the option order "
                "of the file.",
            )
        )
    if scores.position:
        rows = [((row.model, row.setting, row.scoring)[-len(labels) :], row) for row in scores.position]
        tables.append(_make_position_table("Position bias (%)", labels, rows))
    return tables


def _make_position_table(
    title: str, names: Sequence[str], rows_by_label: Sequence[tuple[Sequence[str], PositionRow]]
) -> Table:
    rows = [
        (
            *labels,
            str(row.orders),
            "/".join(f"{100 * proportion:.0f}" for proportion in row.picked),
            "/".join(f"{100 * proportion:.0f}" for proportion in row.right),
            percent(row.recall_spread),
            "-" if row.p_value is None else format_p_value(row.p_value),
            percent(row.consistent),
            "-"
            if row.averaged is None
            else f"{percent(row.averaged.value)} ({percent_interval(row.averaged.interval)})",
        )
        for labels, row in rows_by_label
    ]
    return Table.of(
        title,
        [*names, "orders", "picked\na/b/...", "right at\na/b/...", "spread", "p", "same\nchoice", "averaged (95%)"],
        rows,
        left_columns=len(names),
        grouped=len(names),
        note="picked: share of choices at each position. right: share answered right when the correct option stood "
        "there; spread: its standard deviation. p: of choices that follow the correct options' positions, with as many "
        "orders as options. same choice: questions with one choice in all orders. averaged: "
        "accuracy when log-probabilities are averaged over the orders.",
    )
