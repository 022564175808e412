"""Report on an experiment as one page: tables, figures, calibration, tests, and every question with all answers."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from climassay.evaluation.calibration import (
    CellCalibration,
    calibrate_experiment,
    calibration_figures,
    calibration_table,
)
from climassay.evaluation.contamination import MIN_SHARED_WORDS, ContaminationReport, contamination_tables
from climassay.evaluation.long_answers import coloured_parts, point_findings
from climassay.evaluation.paper_scores import PublishedScore
from climassay.evaluation.results import Experiment, Outcome
from climassay.evaluation.scores import (
    OVERALL,
    ExperimentScores,
    McqScores,
    Score,
    metrics_of,
    score_experiment,
)
from climassay.evaluation.tables import (
    NamedTable,
    experiment_tables,
    format_score,
    mcq_tables,
    metric_plot,
    published_benchmarks,
    question_range,
)
from climassay.metrics.long_answers import CriterionJudgement, DimensionRating, LongAnswerAssessment
from climassay.metrics.registry import METRICS, Metric
from climassay.questions import LEVELS, TYPES, Kind, Question, kinds_where, option_letter
from climassay.reporting import (
    AnsweredQuestion,
    AnswerRow,
    AnswerTables,
    Category,
    Dot,
    DotPlot,
    Option,
    Prose,
    Report,
    Section,
    SourceText,
    StackedBar,
    StackedBars,
    Table,
    counted,
)
from climassay.reporting.html import Block, Finding, Tone

_N_COLOURS = 5
"""Number of distinguishable colours, and thus the maximum number of models in a figure."""


def level_figures(scores: ExperimentScores, benchmark: str) -> list[DotPlot]:
    """Return plots of scores by level in the first setting, with at most five models in each (paper's Figure 5)."""
    benchmark_scores = [score for score in scores.scores if score.cell.benchmark == benchmark]
    setting = next((score.cell.setting for score in benchmark_scores), "")
    figures = []
    for metric in METRICS.values():
        level_scores = [
            score
            for score in benchmark_scores
            if (score.metric, score.cell.setting) == (metric.name, setting)
            and score.level in LEVELS
            and TYPES[score.cell.task].has_levels
        ]
        models = list(dict.fromkeys(score.cell.model for score in level_scores))
        levels = [level for level in LEVELS if any(score.level == level for score in level_scores)]
        if metric.published and len(levels) > 1:
            for start in range(0, len(models), _N_COLOURS):
                group = tuple(models[start : start + _N_COLOURS])
                dots = [
                    Dot(score.level, score.cell.model, score.estimate.value, *score.estimate.interval)
                    for level in levels
                    for score in level_scores
                    if score.level == level and score.cell.model in group
                ]
                counts = [score.estimate.n for score in level_scores if score.cell.model in group]
                suffix = f" by level, setting {setting}"
                figures.append(metric_plot(metric, dots, counts, suffix, has_shared_rows=True, order=group))
    return figures


def setting_figures(scores: ExperimentScores, benchmark: str) -> list[DotPlot]:
    """Return a forest plot of all models and settings for each metric that the paper or another framework defines."""
    constants = {
        (constant.metric, constant.task): constant.value
        for constant in scores.constants
        if constant.benchmark == benchmark and constant.level == OVERALL
    }
    by_metric: dict[str, list[Score]] = defaultdict(list)
    for score in scores.scores:
        if score.cell.benchmark == benchmark and score.level == OVERALL:
            by_metric[score.metric].append(score)
    figures = []
    for metric in METRICS.ordered(by_metric):
        bounds = [bound for score in by_metric[metric.name] for bound in score.estimate.interval]
        if not (metric.published or (metric.external and min(bounds) >= 0 and max(bounds) <= 1)):
            continue
        for task in dict.fromkeys(score.cell.task for score in by_metric[metric.name]):
            task_scores = [score for score in by_metric[metric.name] if score.cell.task == task]
            constant = constants.get((metric.name, task))
            dots = []
            for score in task_scores:
                label = f"{score.cell.model}, {score.cell.setting}"
                dots.append(Dot(label, score.cell.model, score.estimate.value, *score.estimate.interval, constant))
            suffix = "" if metric.external or TYPES[task].in_climaqa else f", {TYPES[task].title.lower()}"
            note = "" if constant is None else " Dashed tick: the best constant answer."
            counts = [score.estimate.n for score in task_scores]
            figures.append(metric_plot(metric, dots, counts, suffix, note))
    return figures


def source_figure(questions: Sequence[Question], title: str) -> StackedBars | None:
    """Return a plot of the number of questions per book and task; None if no question names its book (Figure 6)."""
    kinds_present = {question.kind for question in questions}
    tasks = kinds_where(lambda question_type: question_type.in_climaqa or question_type.name in kinds_present)
    counts: Counter[tuple[str | None, Kind]] = Counter((question.document, question.kind) for question in questions)
    books = list(dict.fromkeys(question.document for question in questions))
    if books in ([], [None]):
        return None
    sorted_books = sorted(filter(None, books), key=lambda book: -sum(counts[book, task] for task in tasks))
    bars = [StackedBar(book, tuple(counts[book, task] for task in tasks)) for book in sorted_books]
    if None in books:
        bars.append(StackedBar("source not named", tuple(counts[None, task] for task in tasks)))
    # The blue half of the scale: the red half means wrong elsewhere.
    positions = [1.0 - 0.5 * index / (len(tasks) - 1) for index in range(len(tasks))]
    return StackedBars(
        title,
        tuple(Category(task, position) for task, position in zip(tasks, positions, strict=True)),
        tuple(bars),
        note="Each bar is one source; its parts are the shares of the tasks, with the number of questions.",
    )


BINARY_METRICS = ("accuracy", "exact_match", "supported")
"""Binary metrics, one for each task; an answer with a score below one half is wrong."""


def experiment_report(
    experiment: Experiment,
    *,
    scores: ExperimentScores | None = None,
    published: Sequence[PublishedScore] = (),
    contamination: Sequence[ContaminationReport] = (),
    seed: int = 0,
    answers: bool = True,
) -> Report:
    """Return the experiment as a self-contained HTML report.

    Args:
        experiment: Experiment with its outcomes.
        scores: Scores of the experiment; computed if None.
        published: Published scores to show next to ours.
        contamination: Overlaps of the questions with training or retrieval texts.
        seed: Seed of the bootstrap and the sign flips.
        answers: Whether every question is listed with all its answers.
    """
    scores = scores or score_experiment(experiment, seed=seed)
    tables = experiment_tables(scores, published, published_benchmarks(experiment, published))
    calibration = calibrate_experiment(experiment)
    sections = [Section("Summary", tuple(_summarise(experiment, scores)))]
    sections += [Section("All benchmarks", (entry.table,)) for entry in tables if entry.name == "overview"]
    for benchmark in (*experiment.questions, *experiment.groups):
        sections += _make_benchmark_sections(experiment, benchmark, scores, tables, calibration)
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
            "; ".join(
                _format_parameter(name, value) for name, value in record.setting.items() if value not in (None, "", [])
            ),
        ]
        for record in experiment.cells
    ]
    headings = ["benchmark", "model", "setting", "task", "named", "prompt", "fingerprint"]
    headings += ["number format", "notes", "all settings"]
    columns = [column for column in range(len(headings)) if any(row[column] for row in rows)]
    headings, rows = (
        [headings[column] for column in columns],
        [[row[column] or "-" for column in columns] for row in rows],
    )
    sections.append(
        Section("How it was asked", (Table.of("Models and settings", headings, rows, left_columns=len(headings)),))
    )
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
                (f"Metric {METRICS[name].label}", source)
                for name, source in experiment.metric_sources.items()
                if name in METRICS
            ),
            ("Seed of the resampling", str(seed)),
        ),
    )


def _format_parameter(name: str, value: Any) -> str:
    return f"{name} {', '.join(map(str, value)) if isinstance(value, list | tuple) else value}"


CHIEF_METRICS = ("accuracy", "judged_accuracy", "factual_accuracy", "exact_match", "rubric_score", "epistemics")
"""Metrics for which the summary names the model and setting with the highest score."""


def _summarise(experiment: Experiment, scores: ExperimentScores) -> list[Block]:
    """Return a summary of the highest scores, significant differences, failures and notes."""
    blocks: list[Block] = []
    for benchmark in (*experiment.questions, *experiment.groups):
        metrics = METRICS.ordered(score.metric for score in scores.scores if score.cell.benchmark == benchmark)
        # The first metric of another framework for which higher is better.
        external_names = [metric.name for metric in metrics if metric.external and not metric.is_lower_better][:1]
        sentences = [
            sentence
            for name in (*CHIEF_METRICS, *external_names)
            if (sentence := _describe_best(scores, benchmark, name))
        ]
        tests = [test for test in scores.tests if test.benchmark == benchmark]
        if tests:
            n_significant = sum(test.p_holm < 0.05 for test in tests)
            comparisons, verb = counted(len(tests), "paired comparison"), "differs" if n_significant == 1 else "differ"
            sentences.append(f"Of {comparisons}, {n_significant} {verb} beyond chance (Holm, 5%).")
        prefix = f"{benchmark}: " if len(experiment.questions) > 1 else ""
        blocks.append(Prose(f"{prefix}{' '.join(sentences) or 'No answer has a score.'}"))
    counts = [count for count in scores.counts if count.cell.benchmark in experiment.questions]
    n_failed = sum(count.failed for count in counts)
    n_unparsed = sum(count.unparsed for count in counts)
    n_violations = sum(count.violations for count in counts)
    sentence = f"{counted(n_failed, 'answer')} failed, {n_unparsed} named no option, {n_violations} broke a constraint"
    blocks.append(Prose(f"{sentence}; see the counts below."))
    # Contaminated questions have a table of their own, with every cell.
    overlaps = {record.overlap for record in experiment.cells}
    notes = dict.fromkeys(note for record in experiment.cells for note in record.notes)
    blocks += [Prose(f"Note: {note}") for note in notes if note not in overlaps]
    return blocks + [
        Prose(f"Note: {sentence}") for sentence in (*experiment.empty_tasks(), *experiment.omitted_metrics())
    ]


def _describe_best(scores: ExperimentScores, benchmark: str, metric: str) -> str:
    overall_scores = [
        score
        for score in scores.scores
        if score.cell.benchmark == benchmark and score.metric == metric and score.level == OVERALL
    ]
    if not overall_scores:
        return ""
    best_score = max(overall_scores, key=lambda score: score.estimate.value)
    n_tied = sum(score.estimate.value == best_score.estimate.value for score in overall_scores) - 1
    ties = f" and {counted(n_tied, 'other')}" if n_tied else ""
    sign = "%" if METRICS[metric].percent else ""
    lower_bound, upper_bound = (format_score(metric, end) for end in best_score.estimate.interval)
    baseline_accuracies = [
        entry.value
        for entry in scores.constants
        if (entry.benchmark, entry.metric, entry.level, entry.task)
        == (benchmark, metric, OVERALL, best_score.cell.task)
    ]
    constant_text = (
        f", best constant answer {format_score(metric, baseline_accuracies[0])}{sign}" if baseline_accuracies else ""
    )
    return (
        f"Highest {METRICS[metric].label}: {best_score.cell.model}, {best_score.cell.setting}{ties}, "
        f"{format_score(metric, best_score.estimate.value)}{sign} (95% interval {lower_bound} to {upper_bound}{sign}, "
        f"n = {best_score.estimate.n}{constant_text})."
    )


def _make_benchmark_sections(
    experiment: Experiment,
    benchmark: str,
    scores: ExperimentScores,
    tables: Sequence[NamedTable],
    calibration: Sequence[CellCalibration],
) -> list[Section]:
    table_by_name = {entry.name: entry.table for entry in tables if entry.benchmark == benchmark}
    suffix = f": {benchmark}" if len(experiment.questions) > 1 else ""
    books = source_figure(experiment.questions.get(benchmark, ()), "Questions over their sources")
    blocks: dict[str, list[Block]] = {
        "Scores": [table for name, table in table_by_name.items() if name not in ("settings", "models")],
        "Figures": [
            *setting_figures(scores, benchmark),
            *level_figures(scores, benchmark),
            *([books] if books else []),
        ],
        "Calibration": [],
        "Paired tests": [table_by_name[name] for name in ("settings", "models") if name in table_by_name],
    }
    if (contamination := _make_contamination_table(experiment, benchmark)) is not None:
        blocks["Scores"].append(contamination)
    if (table := calibration_table(calibration, benchmark)) is not None:
        blocks["Calibration"] = [table, *calibration_figures(calibration, benchmark)]
    return [Section(heading + suffix, tuple(result)) for heading, result in blocks.items() if result]


def _make_contamination_table(experiment: Experiment, benchmark: str) -> Table | None:
    """Return a table of the texts in prompts and training data, with the number of questions that they contaminate.

    Each row is for a model, setting and task of the benchmark. Return None if there are no such texts.
    """
    records = [record for record in experiment.cells if record.cell.benchmark == benchmark and record.texts]
    if not records:
        return None
    n_questions = Counter(question.kind for question in experiment.questions.get(benchmark, ()))
    rows = [
        [
            record.cell.model,
            record.cell.setting,
            record.cell.task,
            record.texts,
            str(n_questions[record.cell.task]),
            "not known" if record.contaminated is None else str(record.contaminated),
        ]
        for record in records
    ]
    return Table.of(
        f"Questions found in what a model was given or trained on, {benchmark}",
        ["model", "setting", "task", "texts", "n", f"{MIN_SHARED_WORDS} words\nor more"],
        rows,
        left_columns=4,
        grouped=1,
        note=f"Questions whose stem, option or answer (cloze: the filled statement) shares {MIN_SHARED_WORDS} words "
        "or more with a text in the question's prompt or in the training data. With retrieval from the questions' own "
        "books that is intended; in examples, training texts and other books it is a leak.",
    )


def answer_tables(experiment: Experiment) -> AnswerTables:
    """Return every question with all its answers, for the report; each passage is stored only once."""
    texts: dict[str, int] = {}
    sources: list[SourceText] = []

    def source_index(label: str, text: str, key: str) -> int:
        if key not in texts:
            texts[key] = len(sources)
            sources.append(SourceText(label, text))
        return texts[key]

    def origin(question: Question) -> int | None:
        if not question.context:
            return None
        label = ": ".join(("source", *filter(None, (question.document, question.section))))
        return source_index(label, question.context, question.context)

    def passage_indices(ids: Sequence[str]) -> tuple[int, ...]:
        passages = experiment.passages
        return tuple(source_index(id_, passages.get(id_, "(text not stored)"), f"passage {id_}") for id_ in ids)

    answers: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in experiment.outcomes:
        answers[outcome.cell.benchmark, outcome.question].append(outcome)
    questions = []
    for benchmark, benchmark_questions in experiment.questions.items():
        for question in benchmark_questions:
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
                        tuple(
                            answer_row(answer, question, metrics, passage_indices(answer.passages))
                            for answer in outcomes
                        ),
                        tuple(
                            Option(option_letter(index), text, index == question.correct)
                            for index, text in enumerate(question.options)
                        ),
                        origin(question),
                    )
                )
    return AnswerTables(
        "Every question, every answer",
        tuple(questions),
        tuple(sources),
        note="An answer is wrong if it chose another option (mcq), if it is not the reference's word (cloze), or "
        "if the judge says so or, without a judge, the reference does not support it (freeform, factual accuracy at "
        "most 0.5); a long answer if it earns less than half of its rubric or contradicts a criterion. Failed "
        "answers are wrong.",
    )


def answer_row(
    outcome: Outcome, question: Question, metrics: Sequence[Metric], sources: tuple[int, ...] = ()
) -> AnswerRow:
    """Return the row of an answer in the report, with its scores, the judge's findings, and remarks."""
    text = outcome.error or outcome.answer
    if outcome.chosen is not None and not outcome.error:
        text = f"{option_letter(outcome.chosen)}) {outcome.answer}"
    remarks = [] if outcome.probability is None else [f"probability {outcome.probability:.2f}"]
    remarks += outcome.violations
    if (judgement := outcome.judgement) is not None:
        parts = (
            (f"judged {judgement.verdict}", judgement.reason)
            if judgement.verdict
            else (f"not judged: {judgement.error}",)
        )
        remarks.append(": ".join(filter(None, parts)))
    scores = []
    for metric in metrics:
        value = outcome.scores.get(metric.name)
        scores.append("-" if value is None else f"{value:.2g}" if metric.percent else f"{value:.3f}")
    return AnswerRow(
        outcome.cell.model,
        outcome.cell.setting,
        text,
        tuple(scores),
        wrong=is_wrong(outcome),
        failed=outcome.error is not None,
        remarks=tuple(remarks),
        sources=sources,
        parts=coloured_parts(outcome.answer, outcome.points),
        findings=(
            *(() if outcome.assessment is None else _make_findings(outcome.assessment, question)),
            *point_findings(outcome.points),
        ),
    )


_COLOUR_BY_VERDICT: dict[str, Tone] = {
    "met": "right",
    "partly met": "middle",
    "not met": "outside",
    "contradicted": "wrong",
}


def _make_findings(assessment: LongAnswerAssessment, question: Question) -> Iterator[Finding]:
    """Yield the findings of a judge: first on criteria, then on dimensions, then failures."""
    for criterion, judgement in zip(question.rubric, assessment.criteria, strict=False):
        title = f"{criterion.text} ({criterion.level}, weight {criterion.weight:g})"
        yield Finding(
            title,
            judgement.verdict,
            _COLOUR_BY_VERDICT[judgement.verdict],
            judgement.reason,
            _format_quotation(judgement),
        )
    for rating in assessment.ratings:
        colour: Tone = "right" if rating.rating >= 4 else "middle" if rating.rating >= 3 else "wrong"
        title = f"{rating.dimension}{': ' if rating.issues else ''}{'; '.join(rating.issues)}"
        yield Finding(title, f"{rating.rating:.3g} of 5", colour, rating.reason, _format_quotation(rating))
    yield from (Finding(error, "judge failed", "outside") for error in assessment.errors)


def _format_quotation(judgement: CriterionJudgement | DimensionRating) -> str:
    return judgement.quotation if judgement.quoted else f"{judgement.quotation} (not in the answer)"


def is_wrong(outcome: Outcome) -> bool:
    """Return whether a report marks an answer as wrong.

    A failed answer is wrong. The judge decides on freeform and long answers; without a judge, a factual accuracy of at
    most 0.5 is wrong. Any other answer is wrong if the binary metric of its task, or the first metric of another
    framework, is below one half.
    """
    if outcome.error is not None:
        return True
    if "judged_accuracy" in outcome.scores:
        return outcome.scores["judged_accuracy"] == 0
    if "rubric_score" in outcome.scores:
        return outcome.scores["rubric_score"] < 0.5 or not outcome.scores["rubric_uncontradicted"]
    if "supported" not in outcome.scores and "factual_accuracy" in outcome.scores:
        return outcome.scores["factual_accuracy"] <= 0.5
    external = [
        metric.name for metric in METRICS.ordered(outcome.scores) if metric.external and not metric.is_lower_better
    ]
    return any(outcome.scores.get(name, 1.0) < 0.5 for name in (*BINARY_METRICS, *external[:1]))


def mcq_report_sections(scores: McqScores, heading: str, lead: str = "") -> list[Section]:
    """Return a section on a multiple-choice evaluation, with the introduction ``lead``, figures and tables."""
    has_several_models = len({row.model for row in scores.accuracy}) > 1
    overall: list[Dot] = []
    by_level: list[Dot] = []
    for row in scores.accuracy:
        if row.accuracy is None:
            continue
        setting = f"{row.model}, {row.setting}" if has_several_models else row.setting
        name = f"{setting}, {row.scoring}"
        label = name if row.level == OVERALL else f"{name}, {row.level}"
        dot = Dot(label, setting, row.accuracy.value, *row.accuracy.interval, row.baseline)
        (overall if row.level == OVERALL else by_level).append(dot)

    def note(is_overall: bool) -> str:
        counts = [row.accuracy.n for row in scores.accuracy if row.accuracy and (row.level == OVERALL) is is_overall]
        return f"Dots: accuracy on {question_range(counts)}. Bars: 95% interval. Dashed tick: the best constant answer."

    blocks: list[Block] = [Prose(lead)] if lead else []
    blocks.append(DotPlot("Overall accuracy", tuple(overall), note=note(True)))
    if by_level:
        blocks.append(DotPlot("Accuracy by level", tuple(by_level), note=note(False)))
    return [Section(heading, (*blocks, *mcq_tables(scores)))]
