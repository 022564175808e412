"""An experiment as one page: tables, figures, calibration, tests, and every question with every answer."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from climassay.evaluation.contamination import MIN_SHARED_WORDS, ContaminationReport, contamination_tables
from climassay.evaluation.long_answers import coloured, point_findings
from climassay.evaluation.results import Cell, Experiment, Outcome
from climassay.evaluation.scores import (
    OVERALL,
    ExperimentScores,
    McqScores,
    PublishedScore,
    metrics_of,
    outcomes_by_cell,
    score_experiment,
)
from climassay.evaluation.tables import (
    NamedTable,
    experiment_tables,
    mcq_tables,
    metric_plot,
    question_range,
    shown_value,
)
from climassay.metrics.long_answers import CriterionJudgement, DimensionRating, LongAnswerAssessment
from climassay.metrics.registry import METRICS, Metric
from climassay.questions import KINDS, LEVELS, TYPES, Kind, Question, option_letter
from climassay.reporting import (
    AnsweredQuestion,
    AnswerRow,
    AnswerTables,
    Axis,
    Category,
    Dot,
    DotPlot,
    LinePlot,
    Option,
    Point,
    Prose,
    Report,
    Section,
    Series,
    SourceText,
    StackedBar,
    StackedBars,
    Table,
    counted,
    percent,
    thinned,
)
from climassay.reporting.html import Block, Finding, Tone
from climassay.statistics import (
    ReliabilityBin,
    SelectiveCurve,
    expected_calibration_error,
    reliability_curve,
    selective_curve,
)

_COLOURS = 5
"""Colours of a figure, and so its most lines or models."""
_PAPER = 3
"""Types of questions that the paper has."""


def level_figures(scores: ExperimentScores, benchmark: str) -> list[DotPlot]:
    """Models by level in the first setting: at most five models a figure (the paper's Figure 5)."""
    ours = [score for score in scores.scores if score.cell.benchmark == benchmark]
    shown = next((score.cell.setting for score in ours), "")
    figures = []
    for metric in METRICS.values():
        chosen = [
            s
            for s in ours
            if s.metric == metric.name and s.cell.setting == shown and s.level in LEVELS and s.cell.task in metric.kinds
        ]
        models = list(dict.fromkeys(score.cell.model for score in chosen))
        levels = [level for level in LEVELS if any(score.level == level for score in chosen)]
        if metric.published and len(levels) > 1:
            for start in range(0, len(models), _COLOURS):
                part = tuple(models[start : start + _COLOURS])
                dots = [
                    Dot(score.level, score.cell.model, score.estimate.value, *score.estimate.interval)
                    for level in levels
                    for score in chosen
                    if score.level == level and score.cell.model in part
                ]
                counts = [score.estimate.n for score in chosen if score.cell.model in part]
                more = f" by level, setting {shown}"
                figures.append(metric_plot(metric, dots, counts, more, has_shared_rows=True, order=part))
    return figures


def setting_figures(scores: ExperimentScores, benchmark: str) -> list[DotPlot]:
    """All models and settings with their intervals, one forest plot a published or external metric, over all levels."""
    constants = {
        (constant.metric, constant.task): constant.value
        for constant in scores.constants
        if constant.benchmark == benchmark and constant.level == OVERALL
    }
    overall = [one for one in scores.scores if one.cell.benchmark == benchmark and one.level == OVERALL]
    figures = []
    for metric in METRICS.ordered(one.metric for one in overall):
        shares = [value for one in overall if one.metric == metric.name for value in one.estimate.interval]
        if not (metric.published or (metric.external and min(shares) >= 0 and max(shares) <= 1)):
            continue
        for task in dict.fromkeys(one.cell.task for one in overall if one.metric == metric.name):
            constant = constants.get((metric.name, task))
            dots = [
                Dot(
                    f"{one.cell.model}, {one.cell.setting}",
                    one.cell.model,
                    one.estimate.value,
                    *one.estimate.interval,
                    constant,
                )
                for one in overall
                if one.metric == metric.name and one.cell.task == task
            ]
            of_type = "" if metric.external or task in metric.kinds else f", {TYPES[task].title.lower()}"
            note = "" if constant is None else " Dashed tick: the best constant answer."
            counts = [one.estimate.n for one in overall if one.metric == metric.name and one.cell.task == task]
            figures.append(metric_plot(metric, dots, counts, of_type, note))
    return figures


def source_figure(questions: Sequence[Question], title: str) -> StackedBars | None:
    """Questions over the books they were made from, parted by task (the paper's Figure 6); None where none says."""
    present = {question.kind for question in questions}
    tasks = tuple(kind for place, kind in enumerate(KINDS) if place < _PAPER or kind in present)
    counts: Counter[tuple[str | None, Kind]] = Counter((question.document, question.kind) for question in questions)
    books = list(dict.fromkeys(question.document for question in questions))
    if books in ([], [None]):
        return None
    named = sorted((book for book in books if book), key=lambda book: -sum(counts[book, task] for task in tasks))
    bars = [StackedBar(book, tuple(counts[book, task] for task in tasks)) for book in named]
    if None in books:
        bars.append(StackedBar("source not named", tuple(counts[None, task] for task in tasks)))
    # The blue half of the scale: the red half means wrong elsewhere.
    places = [1.0 - 0.5 * place / (len(tasks) - 1) for place in range(len(tasks))]
    return StackedBars(
        title,
        tuple(Category(task, place) for task, place in zip(tasks, places, strict=True)),
        tuple(bars),
        note="Each bar is one source; its parts are the shares of the tasks, with the number of questions.",
    )


COVERAGES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class CellCalibration:
    """How the probability of the chosen option goes with being right, in one cell."""

    cell: Cell
    n: int
    """Answers with a probability."""
    without: int
    """Answers without one: failed, unparsed, or of a model without log-probabilities. The curve never covers them."""
    confidence: float
    accuracy: float
    """Accuracy of the same answers."""
    calibration_error: float
    """Expected calibration error over ten bins."""
    curve: SelectiveCurve
    reliability: tuple[ReliabilityBin, ...]

    @property
    def name(self) -> str:
        """The cell in figures."""
        return f"{self.cell.model}, {self.cell.setting}"


def calibrate_experiment(experiment: Experiment) -> tuple[CellCalibration, ...]:
    """Calibration of every multiple-choice cell in which answers have probabilities."""
    results = []
    for cell, outcomes in outcomes_by_cell(experiment).items():
        # The probability is that of the choice in the file's order, and so must be what is right of it.
        first = {one.question: one.correct for one in experiment.predictions.get(cell, ()) if one.permutation == 0}
        sure = [one for one in outcomes if one.probability is not None]
        if sure:
            confidence = [one.probability for one in sure if one.probability is not None]
            correct = [first.get(one.question, bool(one.scores.get("accuracy"))) for one in sure]
            results.append(
                CellCalibration(
                    cell,
                    len(sure),
                    len(outcomes) - len(sure),
                    sum(confidence) / len(sure),
                    sum(correct) / len(sure),
                    expected_calibration_error(confidence, correct),
                    selective_curve(confidence, correct, items=len(outcomes)),
                    reliability_curve(confidence, correct),
                )
            )
    return tuple(results)


def calibration_table(found: Sequence[CellCalibration], benchmark: str) -> Table | None:
    """Calibration and abstention of the cells of a benchmark; None where there are none."""
    cells = [one for one in found if one.cell.benchmark == benchmark]
    if not cells:
        return None
    headings = ["model", "setting", "n", "without", "confidence", "accuracy", "ECE", "AURC", "random\nAURC"]
    rows = []
    for one in cells:
        curve = one.curve
        figures = (one.confidence, one.accuracy, one.calibration_error, curve.aurc, 1 - curve.unordered)
        row = [one.cell.model, one.cell.setting, str(one.n), str(one.without), *map(percent, figures)]
        for share in COVERAGES:
            # The first point that covers so much; none where the curve ends before.
            reached = next((point for point in curve.points if point.coverage >= share - 1e-9), None)
            row.append("-" if reached is None else percent(reached.accuracy.value))
        rows.append(row)
    return Table.of(
        f"Calibration and abstention on multiple choice, {benchmark} (%)",
        [*headings, *(f"surest\n{share:.0%}" for share in COVERAGES)],
        rows,
        note="confidence: mean probability of the chosen option. ECE: expected calibration error, ten bins. AURC: area "
        "under the risk-coverage curve, lower is better; random AURC: the same if confidence said nothing. surest: "
        "accuracy when only that share of all questions is answered. without: answers that have no probability.",
        left=2,
        grouped=1,
    )


def calibration_figures(found: Sequence[CellCalibration], benchmark: str) -> list[LinePlot]:
    """Risk-coverage and reliability curves of the cells of a benchmark, at most five lines a figure."""
    cells = [one for one in found if one.cell.benchmark == benchmark]
    figures = []
    for start in range(0, len(cells), _COLOURS):
        part = cells[start : start + _COLOURS]
        more = f" ({start + 1} to {start + len(part)})" if len(cells) > _COLOURS else ""
        lines = tuple(
            Series(
                one.name,
                tuple(
                    Point(b.confidence, b.accuracy.value, *b.accuracy.interval, f"{b.accuracy.n} answers")
                    for b in one.reliability
                ),
            )
            for one in part
        )
        diagonal = Series("as sure as right", (Point(0.0, 0.0), Point(1.0, 1.0)), reference=True)
        figures += [
            LinePlot(
                f"Accuracy when only the surest are answered{more}",
                tuple(
                    Series(
                        one.name,
                        tuple(
                            Point(point.coverage, point.accuracy.value, note=f"{point.accuracy.n} answers")
                            for point in thinned(one.curve.points)
                        ),
                    )
                    for one in part
                ),
                Axis.shares("questions answered"),
                Axis.shares("accuracy on them"),
                note="A line that falls to the right belongs to a model that knows when it is right.",
                square=True,
            ),
            LinePlot(
                f"Reliability{more}",
                (*lines, diagonal),
                Axis.shares("probability of the chosen option"),
                Axis.shares("accuracy"),
                note="Bars: 95% interval (Wilson). Below the dashed line a model is surer than it is right.",
                square=True,
            ),
        ]
    return figures


WRONG_WHERE_ZERO = ("accuracy", "exact_match", "supported")
"""An answer is called wrong where one of these is below a half: the binary metric of its task."""


def experiment_report(
    experiment: Experiment,
    *,
    scores: ExperimentScores | None = None,
    published: Sequence[PublishedScore] = (),
    contamination: Sequence[ContaminationReport] = (),
    seed: int = 0,
    answers: bool = True,
) -> Report:
    """The whole experiment as a self-contained HTML report.

    Args:
        experiment: The matrix with its outcomes.
        scores: Its numbers, where they are known already.
        published: Rows of the paper to show beside ours.
        contamination: Overlaps of the questions with texts that models have read.
        seed: Seed of bootstrap and sign flips.
        answers: Whether every question with every answer appears at its end.
    """
    numbers = scores or score_experiment(experiment, seed=seed)
    tables = experiment_tables(numbers, published)
    calibration = calibrate_experiment(experiment)
    sections = [Section("Summary", tuple(_summary(experiment, numbers)))]
    sections += [Section("All benchmarks", (one.table,)) for one in tables if one.name == "overview"]
    for benchmark in (*experiment.questions, *experiment.groups):
        sections += _benchmark_sections(experiment, benchmark, numbers, tables, calibration)
    if contamination:
        results = tuple(table for report in contamination for table in contamination_tables(report))
        sections.append(Section("Contamination", results))
    rows = [
        [
            record.cell.benchmark,
            record.cell.model,
            record.cell.setting,
            record.cell.task,
            record.model,
            f"{record.prompt} ({record.prompt_sha256[:8]})",
            record.fingerprint[:12],
            record.dtype or "-",
            " ".join(record.notes),
            "; ".join(_entry(name, value) for name, value in record.setting.items() if value not in (None, "", [])),
        ]
        for record in experiment.cells
    ]
    headings = ["benchmark", "model", "setting", "task", "named", "prompt", "fingerprint"]
    headings += ["number format", "notes", "all settings"]
    kept = [place for place in range(len(headings)) if any(row[place] for row in rows)]
    headings, rows = [headings[place] for place in kept], [[row[place] or "-" for place in kept] for row in rows]
    sections.append(Section("How it was asked", (Table.of("Models and settings", headings, rows, left=len(headings)),)))
    if answers:
        sections.append(Section("Questions and answers", (answer_tables(experiment),)))
    models = dict.fromkeys(record.cell.model for record in experiment.cells)
    settings = dict.fromkeys(record.cell.setting for record in experiment.cells)
    questions = sum(len(questions) for questions in experiment.questions.values())
    return Report(
        title=f"Experiment {experiment.name}",
        lead=f"{counted(len(models), 'model')} in {counted(len(settings), 'setting')} on "
        f"{counted(questions, 'question')} of {', '.join(experiment.questions)}: "
        f"{counted(len(experiment.outcomes), 'answer')}.",
        sections=tuple(sections),
        facts=(
            ("Run", experiment.run),
            *(
                (f"Metric {METRICS[name].label}", by)
                for name, by in experiment.metric_sources.items()
                if name in METRICS
            ),
            ("Seed of the resampling", str(seed)),
        ),
    )


def _entry(name: str, value: Any) -> str:
    return f"{name} {', '.join(map(str, value)) if isinstance(value, list | tuple) else value}"


CHIEF = ("accuracy", "judged_accuracy", "factual_accuracy", "exact_match", "rubric_score", "epistemics")
"""Metrics of which the summary names the best cell."""


def _summary(experiment: Experiment, scores: ExperimentScores) -> list[Block]:
    """The best cell of each benchmark and chief metric, what differs beyond chance, and what went wrong."""
    blocks: list[Block] = []
    for benchmark in (*experiment.questions, *experiment.groups):
        given = METRICS.ordered(one.metric for one in scores.scores if one.cell.benchmark == benchmark)
        # Of the metrics that another framework gave, the first of which higher values are better.
        external = [one.name for one in given if one.external and not one.lower][:1]
        sentences = [
            sentence for metric in (*CHIEF, *external) if (sentence := _best_sentence(scores, benchmark, metric))
        ]
        tests = [test for test in scores.tests if test.benchmark == benchmark]
        if tests:
            beyond = sum(test.p_holm < 0.05 for test in tests)
            compared, differ = counted(len(tests), "paired comparison"), "differs" if beyond == 1 else "differ"
            sentences.append(f"Of {compared}, {beyond} {differ} beyond chance (Holm, 5%).")
        named = f"{benchmark}: " if len(experiment.questions) > 1 else ""
        blocks.append(Prose(f"{named}{' '.join(sentences) or 'No answer has a score.'}"))
    counts = [count for count in scores.counts if count.cell.benchmark in experiment.questions]
    failed = sum(count.failed for count in counts)
    unparsed = sum(count.unparsed for count in counts)
    broken = sum(count.violations for count in counts)
    said = f"{counted(failed, 'answer')} failed, {unparsed} named no option, {broken} broke a constraint"
    blocks.append(Prose(f"{said}; see the counts below."))
    # What questions share with texts has a table of its own, with every cell.
    shared = {record.overlap for record in experiment.cells}
    notes = dict.fromkeys(note for record in experiment.cells for note in record.notes)
    blocks += [Prose(f"Note: {note}") for note in notes if note not in shared]
    return blocks + [
        Prose(f"Note: {sentence}") for sentence in (*experiment.empty_tasks(), *experiment.omitted_metrics())
    ]


def _best_sentence(scores: ExperimentScores, benchmark: str, metric: str) -> str:
    results = [
        score
        for score in scores.scores
        if score.cell.benchmark == benchmark and score.metric == metric and score.level == OVERALL
    ]
    if not results:
        return ""
    best = max(results, key=lambda score: score.estimate.value)
    others = sum(score.estimate.value == best.estimate.value for score in results) - 1
    tied = f" and {counted(others, 'other')}" if others else ""
    sign = "%" if METRICS[metric].percent else ""
    low, high = (shown_value(metric, end) for end in best.estimate.interval)
    constant = [
        one.value
        for one in scores.constants
        if (one.benchmark, one.metric, one.level, one.task) == (benchmark, metric, OVERALL, best.cell.task)
    ]
    beside = f", best constant answer {shown_value(metric, constant[0])}{sign}" if constant else ""
    return (
        f"Highest {METRICS[metric].label}: {best.cell.model}, {best.cell.setting}{tied}, "
        f"{shown_value(metric, best.estimate.value)}{sign} (95% interval {low} to {high}{sign}, "
        f"n = {best.estimate.n}{beside})."
    )


def _benchmark_sections(
    experiment: Experiment,
    benchmark: str,
    scores: ExperimentScores,
    tables: Sequence[NamedTable],
    calibration: Sequence[CellCalibration],
) -> list[Section]:
    named = {one.name: one.table for one in tables if one.benchmark == benchmark}
    more = f": {benchmark}" if len(experiment.questions) > 1 else ""
    books = source_figure(experiment.questions.get(benchmark, ()), "Questions over their sources")
    blocks: dict[str, list[Block]] = {
        "Scores": [table for name, table in named.items() if name not in ("settings", "models")],
        "Figures": [
            *setting_figures(scores, benchmark),
            *level_figures(scores, benchmark),
            *([books] if books else []),
        ],
        "Calibration": [],
        "Paired tests": [named[name] for name in ("settings", "models") if name in named],
    }
    if (shared := _shared_table(experiment, benchmark)) is not None:
        blocks["Scores"].append(shared)
    if (table := calibration_table(calibration, benchmark)) is not None:
        blocks["Calibration"] = [table, *calibration_figures(calibration, benchmark)]
    return [Section(heading + more, tuple(result)) for heading, result in blocks.items() if result]


def _shared_table(experiment: Experiment, benchmark: str) -> Table | None:
    """What the models of a benchmark's cells had beside the questions, and how many questions appear in it."""
    records = [record for record in experiment.cells if record.cell.benchmark == benchmark and record.texts]
    if not records:
        return None
    asked = Counter(question.kind for question in experiment.questions.get(benchmark, ()))
    rows = [
        [
            record.cell.model,
            record.cell.setting,
            record.cell.task,
            record.texts,
            str(asked[record.cell.task]),
            "not known" if record.contaminated is None else str(record.contaminated),
        ]
        for record in records
    ]
    return Table.of(
        f"Questions found in what a model was given or trained on, {benchmark}",
        ["model", "setting", "task", "texts", "n", f"{MIN_SHARED_WORDS} words\nor more"],
        rows,
        left=4,
        grouped=1,
        note=f"Questions whose stem, option or answer (cloze: the filled statement) shares {MIN_SHARED_WORDS} words "
        "or more with a text in the question's prompt or in the training data. With retrieval from the questions' own "
        "books that is intended; in examples, training texts and other books it is a leak.",
    )


def answer_tables(experiment: Experiment) -> AnswerTables:
    """Every question with every answer; texts that were given are stored once."""
    texts: dict[str, int] = {}
    sources: list[SourceText] = []

    def place(label: str, text: str, key: str) -> int:
        if key not in texts:
            texts[key] = len(sources)
            sources.append(SourceText(label, text))
        return texts[key]

    def origin(question: Question) -> int | None:
        if not question.context:
            return None
        where = ", ".join(part for part in (question.document, question.section) if part)
        return place(f"source{': ' + where if where else ''}", question.context, question.context)

    def given(ids: Sequence[str]) -> tuple[int, ...]:
        kept = experiment.passages
        return tuple(place(name, kept.get(name, "(text not kept)"), f"passage {name}") for name in ids)

    answers: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in experiment.outcomes:
        answers[outcome.cell.benchmark, outcome.question].append(outcome)
    questions = []
    for benchmark, asked in experiment.questions.items():
        for question in asked:
            outcomes = answers[benchmark, question.id]
            metrics = metrics_of(outcomes)
            if outcomes:
                questions.append(
                    AnsweredQuestion(
                        question.id,
                        question.kind,
                        question.level or "",
                        benchmark,
                        question.question,
                        question.answer,
                        tuple(metric.label for metric in metrics),
                        tuple(answer_row(one, question, metrics, given(one.passages)) for one in outcomes),
                        tuple(
                            Option(option_letter(n), text, n == question.correct)
                            for n, text in enumerate(question.options)
                        ),
                        origin(question),
                    )
                )
    return AnswerTables(
        "Every question, every answer",
        tuple(questions),
        tuple(sources),
        note="An answer is wrong where it chose another option (mcq), where it is not the reference's word (cloze), or "
        "where the judge says so or, without one, the reference does not support it (freeform, factual accuracy at "
        "most 0.5); a long answer where it earns less than half of its rubric or contradicts a criterion. Failed "
        "answers are wrong.",
    )


def answer_row(one: Outcome, question: Question, metrics: Sequence[Metric], sources: tuple[int, ...] = ()) -> AnswerRow:
    """An answer with its scores, what the judge found in it and what is to be remarked."""
    text = one.error or one.answer
    if one.chosen is not None and not one.error:
        text = f"{option_letter(one.chosen)}) {one.answer}"
    remarks = [] if one.probability is None else [f"probability {one.probability:.2f}"]
    remarks += one.violations
    if (mark := one.judgement) is not None:
        named = (f"judged {mark.verdict}", mark.reason) if mark.verdict else (f"not judged: {mark.error}",)
        remarks.append(": ".join(filter(None, named)))
    scores = []
    for metric in metrics:
        value = one.scores.get(metric.name)
        scores.append("-" if value is None else f"{value:.2g}" if metric.percent else f"{value:.3f}")
    return AnswerRow(
        one.cell.model,
        one.cell.setting,
        text,
        tuple(scores),
        wrong=is_wrong(one),
        failed=one.error is not None,
        remarks=tuple(remarks),
        sources=sources,
        parts=coloured(one.answer, one.points),
        findings=(
            *(() if one.assessment is None else _findings(one.assessment, question)),
            *point_findings(one.points),
        ),
    )


_TONES: dict[str, Tone] = {"met": "right", "partly met": "middle", "not met": "outside", "contradicted": "wrong"}


def _findings(assessment: LongAnswerAssessment, question: Question) -> Iterator[Finding]:
    """Criteria, dimensions and failures of a judge, in this order."""
    for criterion, judged in zip(question.rubric, assessment.criteria, strict=False):
        head = f"{criterion.text} ({criterion.level}, weight {criterion.weight:g})"
        yield Finding(head, judged.verdict, _TONES[judged.verdict], judged.reason, _quotation(judged))
    for rated in assessment.ratings:
        tone: Tone = "right" if rated.rating >= 4 else "middle" if rated.rating >= 3 else "wrong"
        head = f"{rated.dimension}{': ' if rated.issues else ''}{'; '.join(rated.issues)}"
        yield Finding(head, f"{rated.rating:.3g} of 5", tone, rated.reason, _quotation(rated))
    yield from (Finding(error, "judge failed", "outside") for error in assessment.errors)


def _quotation(judged: CriterionJudgement | DimensionRating) -> str:
    return judged.quotation if judged.quoted else f"{judged.quotation} (not in the answer)"


def is_wrong(outcome: Outcome) -> bool:
    """Whether a reader who looks for mistakes should see this answer.

    It failed, or its task's binary metric is 0 (below a half where it was asked in several option orders), or the first
    of another framework. For a freeform answer the judge decides, where there is one; without ``supported`` it is
    factual accuracy.
    """
    if outcome.error is not None:
        return True
    if "judged_accuracy" in outcome.scores:
        return outcome.scores["judged_accuracy"] == 0
    if "rubric_score" in outcome.scores:
        return outcome.scores["rubric_score"] < 0.5 or not outcome.scores["rubric_uncontradicted"]
    if "supported" not in outcome.scores and "factual_accuracy" in outcome.scores:
        return outcome.scores["factual_accuracy"] <= 0.5
    external = [one.name for one in METRICS.ordered(outcome.scores) if one.external and not one.lower]
    return any(outcome.scores.get(name, 1.0) < 0.5 for name in (*WRONG_WHERE_ZERO, *external[:1]))


def mcq_report_sections(scores: McqScores, heading: str, lead: str = "") -> list[Section]:
    """Figures and tables of an evaluation as a section of a report, below a sentence or two that say what they are."""
    several = len({row.model for row in scores.accuracy}) > 1
    overall: list[Dot] = []
    by_level: list[Dot] = []
    for row in scores.accuracy:
        if row.accuracy is None:
            continue
        setting = f"{row.model}, {row.setting}" if several else row.setting
        name = f"{setting}, {row.scoring}"
        label = name if row.level == OVERALL else f"{name}, {row.level}"
        dot = Dot(label, setting, row.accuracy.value, *row.accuracy.interval, row.baseline)
        (overall if row.level == OVERALL else by_level).append(dot)

    def note(overall: bool) -> str:
        asked = [row.accuracy.n for row in scores.accuracy if row.accuracy and (row.level == OVERALL) is overall]
        return f"Dots: accuracy on {question_range(asked)}. Bars: 95% interval. Dashed tick: the best constant answer."

    blocks: list[Block] = [Prose(lead)] if lead else []
    blocks.append(DotPlot("Overall accuracy", tuple(overall), note=note(True)))
    if by_level:
        blocks.append(DotPlot("Accuracy by level", tuple(by_level), note=note(False)))
    return [Section(heading, (*blocks, *mcq_tables(scores)))]
