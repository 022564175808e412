"""Planning and reporting of experiments: sample sizes, contamination, tables, comparisons, and checks of judges."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from climassay import evaluation
from climassay.api.records import with_failed_calls
from climassay.errors import InputError
from climassay.evaluation.evaluation_result import scores_data
from climassay.evaluation.table_result import ExperimentTables
from climassay.generation import annotation
from climassay.models import DEFAULT_MODEL, Generator
from climassay.questions import read_questions
from climassay.reporting import Table
from climassay.reporting.results import AssembledResult, Result, as_json_data
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.evaluation import PublishedScore
    from climassay.evaluation.judge_check import JudgeCheck


EVERY = "all"


def experiment_tables(
    run: str,
    *,
    published: Sequence[str] = (),
    published_set: str = "gold",
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> ExperimentTables:
    """Return the tables of a recorded experiment.

    Args:
        run: Id of the experiment's run.
        published: Models of the ClimaQA paper whose published results are shown next to ours; ``all`` for all of them.
        published_set: Dataset of the published results: ``gold`` or ``silver``.
        metrics: Names of the metrics of the paired tests; by default one or two for each task.
        seed: Seed of the resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The run, a published model or a metric does not exist.
    """
    with Session.opened(workspace) as session:
        experiment = evaluation.load_experiment(session.records, run)
    published_rows = _select_published(published, published_set)
    scores = evaluation.score_experiment(experiment, tested=metrics, seed=seed)
    same_questions = evaluation.published_benchmarks(experiment, published_rows)
    return ExperimentTables(
        experiment, scores, published_rows, tuple(evaluation.experiment_tables(scores, published_rows, same_questions))
    )


def report_experiment(
    run: str,
    *,
    published: Sequence[str] = (),
    published_set: str = "gold",
    against: Sequence[str] = (),
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    html: Path | str | None = None,
    workspace: Place = None,
) -> Result:
    """Write a self-contained HTML report of an experiment: tables, figures, calibration, tests and all answers.

    Args:
        run: Id of a run of ``climassay evaluate run``; ``climassay records runs`` lists them.
        published: Models of the ClimaQA paper whose published results are shown next to ours; ``all`` for all of them.
        published_set: Dataset of the published results: ``gold`` or ``silver``.
        against: Collection, file or folder of texts whose overlap with the questions is reported; can be repeated.
        metrics: Names of the metrics of the paired tests; by default one or two for each task.
        seed: Seed of the resampling.
        html: File to which the report is written.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The run, a published model, a metric, or a collection or file of ``against`` does not exist.
    """
    from climassay.evaluation.contamination import contamination, read_texts

    html = None if html is None else Path(html)
    with Session.opened(workspace) as session:
        experiment = evaluation.load_experiment(session.records, run)
        scores = evaluation.score_experiment(experiment, tested=metrics, seed=seed)
        questions = [question for question_set in experiment.questions.values() for question in question_set]
        overlaps = [contamination(questions, read_texts(name, session.workspace), against=name) for name in against]
        page = evaluation.experiment_report(
            experiment,
            scores=scores,
            published=_select_published(published, published_set),
            contamination=overlaps,
            seed=seed,
        )
        data: dict[str, Any] = {"run": run, "name": experiment.name, **scores_data(scores)}
        if html is not None:
            data["html"] = html
        note = page.lead if html is None else f"{page.lead} The report is in {html}."
        result = with_failed_calls(AssembledResult(data, noted=(note,), reported=lambda: page), session.records, (run,))
    if html is not None:
        result.report().write(html)
    return result


def _select_published(models: Sequence[str], dataset: str) -> "tuple[PublishedScore, ...]":
    return evaluation.published_scores(cast("Any", dataset), () if EVERY in models else models) if models else ()


def plan_questions(
    points: Sequence[float] = (1, 2, 3, 5, 7, 10, 15),
    *,
    metric: str = "accuracy",
    run: str | None = None,
    accuracy: float | None = None,
    discordance: float | None = None,
    deviation: float | None = None,
    correlation: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
    workspace: Place = None,
) -> AssembledResult:
    """Compute how many questions are needed to detect a difference between two systems.

    Args:
        points: Difference to detect, in percentage points; can be repeated. By default 1, 2, 3, 5, 7, 10 and 15.
        metric: Metric, for example accuracy or factual_accuracy.
        run: Run of an experiment from which the assumptions are estimated.
        accuracy: Accuracy of the first system; by default 0.8.
        discordance: Proportion of questions that exactly one of the systems answers correctly; by default that of
            independent systems.
        deviation: Standard deviation of scores over questions, for metrics other than accuracy; by default 0.25.
        correlation: Correlation between the two systems' scores over questions; by default 0.5.
        power: Probability of detecting the difference if it exists.
        alpha: Two-sided significance level.
        tests: Number of tests to correct for; the significance level is divided by it.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The metric or the run does not exist, or an assumption does not apply to the metric.
    """
    from climassay.evaluation.planning import make_assumptions, plan_table

    values = {"accuracy": accuracy, "discordance": discordance, "deviation": deviation, "correlation": correlation}
    given_values = {name: value for name, value in values.items() if value is not None}
    if run is None:
        assumptions = make_assumptions(metric, given_values)
    else:
        if given_values:
            raise InputError(f"With --run, --{next(iter(given_values))} is estimated from the run: leave it out.")
        with Session.opened(workspace) as session:
            assumptions = evaluation.assume_from_run(evaluation.load_experiment(session.records, run), metric)
    differences = [point / 100 for point in points]
    question_plan = evaluation.plan(differences, assumptions, metric=metric, power=power, alpha=alpha / tests)
    return AssembledResult(question_plan, (plan_table(question_plan),))


def find_contamination(
    questions: str, against: Sequence[str], *, words: int = 8, worst: int = 10, workspace: Place = None
) -> AssembledResult:
    """Count the test questions that share word n-grams with training or retrieval texts.

    Args:
        questions: File of the test questions, or ``primer``.
        against: Collection, file or folder of training or retrieval texts; can be repeated.
        words: Minimum number of consecutive words that a contaminated question shares with a text.
        worst: Maximum number of questions to list, the most contaminated first.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The questions or texts cannot be read.
    """
    from climassay.evaluation.contamination import contamination, contamination_tables, read_texts

    question_list = read_questions(questions).questions
    with Session.opened(workspace) as session:
        reports = [
            contamination(question_list, read_texts(name, session.workspace), words, against=name) for name in against
        ]
    data = [
        {
            "against": report.against,
            "n": report.n,
            "texts": report.texts,
            "words": report.words,
            "questions": len(report.overlaps),
            "contaminated": [overlap.question.id for overlap in report.contaminated()],
            "worst": [
                {"question": o.question.id, "level": o.question.level, "covered": o.covered, "run": o.shared_run}
                for o in report.worst(worst)
            ],
        }
        for report in reports
    ]
    return AssembledResult(data, [table for report in reports for table in contamination_tables(report, worst)])


def compare_benchmarks(
    first: str,
    second: str,
    *,
    setting: str = "default",
    generator: str | None = None,
    resamples: int = 500,
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Compare the rankings of the same models by two benchmarks, such as gold and silver.

    Args:
        first: First benchmark: a run (RUN:BENCHMARK if it has several benchmarks), published:gold or published:silver.
        second: Second benchmark, for example a run with the silver questions.
        setting: Setting in which the models are compared.
        generator: Model that wrote the questions, to test whether metrics favour it.
        resamples: Number of bootstrap samples for the rank correlations.
        seed: Seed of the resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A run does not exist, or the benchmarks have too few models in common.
    """
    from climassay.evaluation.comparing import (
        agreement_table,
        find_self_preferences,
        load_means,
        means_table,
        self_preference_table,
    )

    with Session.opened(workspace) as session:
        benchmarks = [load_means(session.records, name, setting) for name in (first, second)]
    agreements = evaluation.rank_agreement(*benchmarks, resamples=resamples, seed=seed)
    self_preferences = [] if generator is None else find_self_preferences(benchmarks, generator, seed)
    return AssembledResult(
        {
            "agreement": agreements,
            "favour": [{"of": benchmark.name, "metrics": preferences} for benchmark, preferences in self_preferences],
        },
        [
            agreement_table(agreements, *benchmarks),
            means_table(agreements, *benchmarks),
            *(self_preference_table(preferences, benchmark) for benchmark, preferences in self_preferences),
        ],
    )


def check_judge(
    file: Path | str | None = None,
    *,
    dataset: str | None = None,
    model: Generator | str = DEFAULT_MODEL,
    labels: Mapping[str, str] | None = None,
    question: str = "question",
    answer: str = "answer",
    group: str | None = None,
    scale: tuple[float, float] = (1, 5),
    limit: int | None = None,
    pairs: int = 100,
    seed: int = 0,
    workspace: Place = None,
) -> "JudgeCheck":
    """Check the reliability of a judge of long answers.

    The tests measure the judge's agreement with people and with itself, and the influence of order, length and tone.

    Args:
        file: Table of answers with people's ratings (CSV, JSONL, Parquet; also .gz), for example a completed table
            written by ``climassay evaluate blind``.
        dataset: Dataset of answers that were rated in the browser, instead of a file.
        model: Name of the judge, or a loaded model.
        labels: Dimension of adequacy of each column of ratings, by name of the column; by default the columns that are
            named like a dimension.
        question: Column of the question, or of the source text, of each answer.
        answer: Column of the answers.
        group: Column that groups the answers that can be compared; by default the question.
        scale: Lowest and highest possible rating in the file.
        limit: Maximum number of groups, drawn at random.
        pairs: Maximum number of pairs of answers that are compared in both orders.
        seed: Random seed for sampling and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: Not exactly one of ``file`` and ``dataset`` is given, or the file cannot be read, lacks a column, or
            has an invalid rating.
        ModelError: The judge cannot be loaded.
    """
    import numpy as np

    from climassay.evaluation.judge_check import PreferredAnswer, read_ratings
    from climassay.evaluation.judge_check import check_judge as run_judge_check
    from climassay.generation.annotation.long_answers import collect_ratings

    if (file is None) == (dataset is None):
        raise InputError("Name either a file of ratings or, with --dataset, answers that were rated in the browser.")
    with Session.opened(workspace) as session:
        preferences: list[PreferredAnswer] = []
        if file is not None:
            items = read_ratings(Path(file), labels or {}, question=question, answer=answer, group=group, scale=scale)
        elif dataset is not None:
            items, preferences = collect_ratings(annotation.AnnotationStore(session.records).items(dataset))
            if not items and not preferences:
                raise InputError(
                    f"Nobody has rated an answer of the dataset {dataset} yet: people do so with climassay serve."
                )
        groups = list(dict.fromkeys([*(item.group for item in items), *(pair.question for pair in preferences)]))
        chosen_groups = {groups[int(index)] for index in np.random.default_rng(seed).permutation(len(groups))[:limit]}
        items = [item for item in items if item.group in chosen_groups]
        preferences = [pair for pair in preferences if pair.question in chosen_groups]
        judge = session.model(model)
        config = {
            "file": dataset if file is None else Path(file).name,
            "model": judge.name,
            "answers": len(items),
            "pairs": pairs,
        }
        with (
            session.run("evaluate judge-check", config, {"seed": seed}) as run,
            session.progress.task("Judging", None) as task,
        ):
            judge_check = run_judge_check(
                items,
                session.recorded(judge, run),
                preferred=preferences,
                pairs=pairs,
                seed=seed,
                on_step=lambda step: task.update(description=f"{step[0].upper()}{step[1:]}"),
            )
            judge_check = replace(judge_check, judge=judge.name)
            run.save_results("judge_check", [as_json_data(judge_check.to_dict())])
    return judge_check


def blind_answers(
    run: str,
    *,
    dataset: str | None = None,
    pairs: int = 0,
    overlap: int = 2,
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Prepare the long answers of an experiment for people to rate without knowing the models.

    Args:
        run: Id of a run of ``climassay evaluate run``; ``climassay records runs`` lists them.
        dataset: Name of a new dataset whose answers people rate in the browser (``climassay serve``).
        pairs: With --dataset: maximum number of pairs of answers to compare instead of rating single answers.
        overlap: With --dataset: number of people who rate each answer.
        seed: Seed of the order.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Returns:
        Rows with question, audience, answer and an empty column for each of the eight dimensions. Saved as CSV or a
        workbook and completed, they are the input of :func:`check_judge`.

    Raises:
        InputError: The run does not exist or has no long answer, or the dataset was created from other answers.
    """
    from climassay.api.annotation import begin_dataset
    from climassay.evaluation.judge_check import blind_answers as select_answers
    from climassay.evaluation.judge_check import blind_rows
    from climassay.generation.annotation.long_answers import rating_drafts

    with Session.opened(workspace) as session:
        experiment = evaluation.load_experiment(session.records, run)
        rows = blind_rows(experiment, seed=seed)
        if dataset is not None:
            drafts = rating_drafts(select_answers(experiment, seed=seed), pairs=pairs, seed=seed)
            if not drafts:
                raise InputError(f"The experiment {run} has no two answers to one question that could be compared.")
            origin = {"ratings": experiment.run, "pairs": pairs, "seed": seed}
            return begin_dataset(session, dataset, origin, drafts, overlap=overlap)
    headings = list(rows[0])
    table = Table.of(
        "Answers to rate from 1 to 5", headings, [list(row.values()) for row in rows], left_columns=len(headings)
    )
    return AssembledResult(rows, (table,), noted=(f"{len(rows)} answers; fill in the empty columns with 1 to 5.",))
