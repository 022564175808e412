"""Planning and reporting of experiments: sample sizes, contamination, tables, comparisons, and checks of judges."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from climassay import evaluation
from climassay.api.records import with_failed_calls
from climassay.errors import InputError
from climassay.evaluation.evaluation_result import scores_data
from climassay.evaluation.table_result import ExperimentTables
from climassay.generation import annotation
from climassay.models import DEFAULT_MODEL, Generator
from climassay.questions import read_questions
from climassay.reporting import Table
from climassay.reporting.results import Result, Shown, as_json_data
from climassay.session import Place, Session
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.evaluation import Experiment, PublishedScore
    from climassay.evaluation.comparing import ModelMeans, SelfPreference
    from climassay.evaluation.contamination import LabelledText
    from climassay.evaluation.judge_check import JudgeCheck
    from climassay.evaluation.planning import Assumptions


EVERY = "all"
DEFAULT_POINTS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0)
DEFAULT_ACCURACY = 0.8
DEFAULT_DEVIATION = 0.25
ANCHORS = ("accuracy", "factual_accuracy")
PUBLISHED = "published"


def _experiment(session: Session, run: str) -> "Experiment":
    return evaluation.load_experiment(session.records, run)


def experiment_tables(
    run: str,
    *,
    published: Sequence[str] = (),
    published_set: str = "gold",
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> ExperimentTables:
    """Return the tables of an experiment in the records.

    Args:
        run: Id of the experiment's run.
        published: Models whose published results appear beside ours; ``all`` for every one.
        published_set: ``gold`` or ``silver``.
        metrics: Names of metrics in which cells are compared; by default one or two for each task.
        seed: Seed of the resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The run, a published model or a metric does not exist.
    """
    with Session.opened(workspace) as session:
        experiment = _experiment(session, run)
    published_rows = _published(published, published_set)
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
    """Write an experiment as a self-contained page: tables, figures, calibration, tests, and all answers.

    Args:
        run: Id of a run of climassay evaluate run; see climassay records runs.
        published: Models whose published results appear beside ours; ``all`` for every one.
        published_set: ``gold`` or ``silver``.
        against: Report the overlap of the questions with this collection, file or folder; repeat.
        metrics: Names of metrics in which cells are compared; by default one or two for each task.
        seed: Seed of the resampling.
        html: File of the report.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The run, a published model, a metric, or a collection or file of ``against`` does not exist.
    """
    from climassay.evaluation.contamination import contamination

    html = None if html is None else Path(html)
    with Session.opened(workspace) as session:
        experiment = _experiment(session, run)
        scores = evaluation.score_experiment(experiment, tested=metrics, seed=seed)
        questions = [question for question_set in experiment.questions.values() for question in question_set]
        overlaps = [contamination(questions, read_texts(name, session.workspace), against=name) for name in against]
        page = evaluation.experiment_report(
            experiment, scores=scores, published=_published(published, published_set), contamination=overlaps, seed=seed
        )
        data: dict[str, Any] = {"run": run, "name": experiment.name, **scores_data(scores)}
        if html is not None:
            data["html"] = html
        note = page.lead if html is None else f"{page.lead} The report is in {html}."
        result = with_failed_calls(Shown(data, noted=(note,), reported=lambda: page), session.records, (run,))
    if html is not None:
        result.report().write(html)
    return result


def _published(models: Sequence[str], dataset: str) -> "tuple[PublishedScore, ...]":
    return evaluation.published_scores(cast("Any", dataset), () if EVERY in models else models) if models else ()


def plan_questions(
    differences: Sequence[float],
    assumed: Mapping[str, float],
    *,
    metric: str = "accuracy",
    run: str | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    workspace: Place = None,
) -> Shown:
    """Compute how many questions are needed to see a difference between two systems.

    Args:
        differences: Differences to detect, as shares.
        assumed: Assumptions about the two systems: ``accuracy`` and ``discordance``, or ``deviation`` and
            ``correlation``.
        metric: Metric, for example accuracy or factual_accuracy.
        run: Id of an experiment's run from which the assumptions are estimated.
        power: Probability of detecting the difference (power).
        alpha: Two-sided significance level.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The metric or the run does not exist, or an assumption does not apply to the metric.
    """
    from climassay.evaluation.planning import plan_table

    assumptions = _assumptions(metric, assumed, run, workspace)
    question_plan = evaluation.plan(differences, assumptions, metric=metric, power=power, alpha=alpha)
    return Shown(question_plan, (plan_table(question_plan),))


def _assumptions(metric: str, values: Mapping[str, float], run: str | None, workspace: Place) -> "Assumptions":
    from climassay.metrics.registry import METRICS

    METRICS.find(metric)
    if run is not None:
        if values:
            raise InputError(f"With --run, --{next(iter(values))} is estimated from the run: leave it out.")
        with Session.opened(workspace) as session:
            return evaluation.assume_from_run(_experiment(session, run), metric)
    fitting = ("accuracy", "discordance") if METRICS[metric].binary else ("deviation", "correlation")
    strange = [name for name in values if name not in fitting]
    if strange:
        raise InputError(f"--{strange[0]} says nothing about {metric}: it takes --{' and --'.join(fitting)}.")
    if METRICS[metric].binary:
        return evaluation.assume_binary(values.get("accuracy", DEFAULT_ACCURACY), values.get("discordance"))
    return evaluation.assume_mean(values.get("deviation", DEFAULT_DEVIATION), values.get("correlation", 0.5))


def find_contamination(
    questions: str, against: Sequence[str], *, words: int = 8, worst: int = 10, workspace: Place = None
) -> Shown:
    """Count the test questions that share word n-grams with texts that a model has read.

    Args:
        questions: Test questions: a file, or 'primer'.
        against: Collection, file or folder of training or retrieval texts; repeat.
        words: Length of the n-grams in words.
        worst: Number of questions with the longest shared runs to list.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The questions or texts cannot be read.
    """
    from climassay.evaluation.contamination import contamination, contamination_tables

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
                {"question": o.question.id, "level": o.question.level, "covered": o.covered, "run": o.run}
                for o in report.worst(worst)
            ],
        }
        for report in reports
    ]
    return Shown(data, [table for report in reports for table in contamination_tables(report, worst)])


def read_texts(name: str, workspace: Workspace) -> "Iterator[str | LabelledText]":
    """Read the texts of a question file, of other files and folders, or of a collection.

    Raises:
        InputError: The file or collection does not exist, or nothing in it can be read.
    """
    path = Path(name)
    if not path.exists():
        from climassay.corpus import Collection

        try:
            collection = Collection.open(workspace, name)
        except InputError as error:
            raise InputError(f"{name} is neither a file or folder nor a collection: {error}") from None
        return (text for batch in collection.texts() for text in batch)
    questions = None if path.is_dir() else _question_texts(path)
    return _file_texts(path) if questions is None else iter(questions)


def _question_texts(path: Path) -> "list[str | LabelledText] | None":
    """Return all texts of a question file, or None if the file is no question file."""
    from climassay.evaluation.contamination import LabelledText

    try:
        question_list = read_questions(path).questions
    except InputError:
        return None
    return [
        LabelledText(f"{path.name}, {item.id}", text)
        for item in question_list
        for text in (
            item.question.replace("<MASK>", item.answer),
            *(item.options or (item.answer,)),
            *((item.context,) if item.context else ()),
        )
    ]


def _file_texts(path: Path) -> "Iterator[str | LabelledText]":
    from climassay.corpus import read_all
    from climassay.evaluation.contamination import LabelledText

    read = 0
    reasons = []
    for result in read_all([path]):
        reasons += [skipped.reason for skipped in result.skipped]
        for document in result.documents:
            for block in document.blocks:
                read += 1
                yield LabelledText(document.title, block.text)
    if not read:
        raise InputError(f"There is no text in {path}{': ' + reasons[0] if reasons else '.'}")


def compare_benchmarks(
    first: str,
    second: str,
    *,
    setting: str = "default",
    generator: str | None = None,
    resamples: int = 500,
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Compare how two benchmarks, such as gold and silver, rank the same models.

    Args:
        first: Run (RUN:BENCHMARK if it has several benchmarks), or published:gold or published:silver.
        second: Run or published set to compare with, for example the run of the silver set.
        setting: Setting in which models are compared.
        generator: Model that wrote the questions: check whether metrics favour it.
        resamples: Bootstrap samples of the rank correlations.
        seed: Seed of the resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A run does not exist, or the two have too few models in common.
    """
    from climassay.evaluation.comparing import agreement_table, means_table, self_preference_table

    with Session.opened(workspace) as session:
        sides = [_means(session, name, setting) for name in (first, second)]
    result = evaluation.rank_agreement(*sides, resamples=resamples, seed=seed)
    favours = [] if generator is None else _self_preferences(sides, generator, seed)
    return Shown(
        {"agreement": result, "favour": [{"of": side.name, "metrics": preferences} for side, preferences in favours]},
        [
            agreement_table(result, *sides),
            means_table(result, *sides),
            *(self_preference_table(preferences, side) for side, preferences in favours),
        ],
    )


def _means(session: Session, name: str, setting: str) -> "ModelMeans":
    from climassay.evaluation.paper_scores import Dataset

    run, _, part = name.partition(":")
    if run != PUBLISHED:
        return evaluation.experiment_means(_experiment(session, run), setting, part or None)
    if part in get_args(Dataset):
        return evaluation.published_means(cast("Dataset", part), setting)
    raise InputError(f"The published results are published:gold and published:silver, not {name!r}.")


def _self_preferences(
    sides: "Sequence[ModelMeans]", generator: str, seed: int
) -> "list[tuple[ModelMeans, list[SelfPreference]]]":
    """Return an entry per benchmark and anchor that has enough models."""
    results, reasons = [], []
    for side in sides:
        for anchor in ANCHORS:
            try:
                results.append((side, evaluation.self_preference(side, generator, anchor, seed=seed)))
            except InputError as error:
                reasons.append(error)
    if not results:
        raise reasons[0]
    return results


def check_judge(
    file: Path | str,
    *,
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
    """Check how reliable a judge of long answers is: agreement with people and itself, order, length, tone.

    Args:
        file: Table of answers with people's ratings, for example one of :func:`blind_answers`, filled in; or the name
            of a dataset of answers that people rated in the browser.
        model: Name of the judge, or a loaded model.
        labels: Dimension of adequacy by column; by default the columns that have the names of dimensions.
        question: Column of the question, or of the source.
        answer: Column of the answer.
        group: Column that says which answers belong together; by default the question.
        scale: Lowest and highest rating of the file.
        limit: Maximum number of groups, drawn by the seed.
        pairs: Maximum number of pairs compared in both orders.
        seed: Seed of draws and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be read, lacks a column, or has an invalid rating.
        ModelError: The judge cannot be loaded.
    """
    import numpy as np

    from climassay.evaluation.judge_check import Preferred, read_ratings
    from climassay.evaluation.judge_check import check_judge as checked
    from climassay.generation.annotation.long_answers import collect_ratings

    with Session.opened(workspace) as session:
        preferred: list[Preferred] = []
        if isinstance(file, Path):
            items = read_ratings(file, labels or {}, question=question, answer=answer, group=group, scale=scale)
        else:
            items, preferred = collect_ratings(annotation.AnnotationStore(session.records).items(file))
            if not items and not preferred:
                raise InputError(
                    f"Nobody has rated an answer of the dataset {file} yet: people do so with climassay serve."
                )
        groups = list(dict.fromkeys([*(item.group for item in items), *(pair.question for pair in preferred)]))
        chosen_groups = {groups[int(index)] for index in np.random.default_rng(seed).permutation(len(groups))[:limit]}
        items = [item for item in items if item.group in chosen_groups]
        preferred = [pair for pair in preferred if pair.question in chosen_groups]
        judge = session.model(model)
        name = file.name if isinstance(file, Path) else file
        config = {"file": name, "model": judge.name, "answers": len(items), "pairs": pairs}
        with (
            session.run("evaluate judge-check", config, {"seed": seed}) as run,
            session.progress.task("Judging", None) as task,
        ):
            done = checked(
                items,
                session.recorded(judge, run),
                preferred=preferred,
                pairs=pairs,
                seed=seed,
                on_step=lambda what: task.update(description=f"{what[0].upper()}{what[1:]}"),
            )
            done = replace(done, judge=judge.name)
            run.save_results("judge_check", [as_json_data(done.to_dict())])
    return done


def blind_answers(
    run: str,
    *,
    dataset: str | None = None,
    pairs: int = 0,
    overlap: int = 2,
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Prepare the long answers of an experiment for blind rating by people.

    Args:
        run: Id of a run of climassay evaluate run; see climassay records runs.
        dataset: Name of a new dataset; people rate its answers in the browser (climassay serve).
        pairs: With --dataset: maximum number of pairs to compare, in place of single answers.
        overlap: With --dataset: number of people who rate each answer.
        seed: Seed of the order.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Returns:
        Rows with question, audience, answer and an empty column for each of the eight dimensions; saved as CSV or a
        workbook and filled in, :func:`check_judge` reads them.

    Raises:
        InputError: The run does not exist or has no long answer, or the dataset was begun with other answers.
    """
    from climassay.api.annotation import begin_dataset
    from climassay.evaluation.judge_check import blind_answers as answers_of
    from climassay.evaluation.judge_check import blind_rows
    from climassay.generation.annotation.long_answers import rating_drafts

    with Session.opened(workspace) as session:
        experiment = evaluation.load_experiment(session.records, run)
        rows = blind_rows(experiment, seed=seed)
        if dataset is not None:
            drafts = rating_drafts(answers_of(experiment, seed=seed), pairs=pairs, seed=seed)
            if not drafts:
                raise InputError(f"The experiment {run} has no two answers to one question that could be compared.")
            origin = {"ratings": experiment.run, "pairs": pairs, "seed": seed}
            return begin_dataset(session, dataset, origin, drafts, overlap=overlap)
    headings = list(rows[0])
    table = Table.of("Answers to rate from 1 to 5", headings, [list(row.values()) for row in rows], left=len(headings))
    return Shown(rows, (table,), noted=(f"{len(rows)} answers; fill in the empty columns with 1 to 5.",))
