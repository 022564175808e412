"""Evaluation of models on question benchmarks: questions in, scores with intervals out."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay import evaluation
from climassay.errors import InputError
from climassay.evaluation.evaluation_result import Evaluation, ScoredChoices, describe_requests
from climassay.models import DEFAULT_MODEL, Generator, ModelOptions, load_model
from climassay.progress import Task
from climassay.questions import TYPES, Kind, read_questions
from climassay.reporting.tables import skipped_note
from climassay.session import Place, Session, one_or_several
from climassay.settings import with_changes

if TYPE_CHECKING:
    from climassay.evaluation import Cell, Experiment, ExperimentPlan, ModelSpec, Scoring
    from climassay.questions import QuestionSet


Models = Generator | str | Sequence[Generator | str]
"""One or several models, each a name or a loaded model. Named models are loaded in turn; loaded models stay open."""


def evaluate(
    questions: "QuestionSet | str | Path",
    *,
    models: Models = DEFAULT_MODEL,
    settings: Sequence[str] = ("default",),
    metrics: Sequence[str] = (),
    judge: str | None = None,
    scoring: "Scoring | Sequence[Scoring]" = "likelihood",
    permutations: int = 1,
    passages: int = 3,
    examples: int = 5,
    limit: int | None = None,
    seed: int = 0,
    workspace: Place = None,
    on_answers: Callable[[int], None] | None = None,
) -> Evaluation:
    """Evaluate one or several models on questions of any kinds, in one or several settings.

    Args:
        questions: ``primer`` (the bundled questions), a question file, or a set of questions.
        models: Name of a model, a loaded model, or several of them; of several named models one is loaded at a time.
        settings: Names of settings such as ``default``, ``few-shot:POOL`` and ``rag:COLLECTION``; see
            :mod:`climassay.evaluation.settings`.
        metrics: Names of metrics (:data:`climassay.metrics.METRICS`) to compute and compare; questions of kinds that
            none of them scores are skipped. By default all metrics are computed, and one or two per kind compared.
        judge: Name of a strong model that grades freeform answers (``judged_accuracy``).
        scoring: Way of scoring multiple-choice answers: ``likelihood`` of the letters, ``letter`` for a generated
            letter, ``text`` for the likelihood of the options' texts, or another scoring of
            :mod:`climassay.evaluation.tasks`. If there are several, their results are compared.
        permutations: Number of option orders per question; with more than one, position bias is measured.
        passages: Number of passages per question in settings with retrieval.
        examples: Number of examples per prompt in few-shot settings.
        limit: Maximum number of questions of each kind, drawn at random.
        seed: Random seed for sampling and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        on_answers: Function that is called with the number of new answers.

    Raises:
        InputError: The questions cannot be read, two models have the same name, a metric is unknown or scores none of
            the questions, or a collection or file of a setting does not exist.
        ModelError: A model cannot be loaded, or returns no log-probabilities although the scoring needs them.

    Example:
        >>> result = evaluate("primer", models=["local:smollm2"], metrics=["accuracy"], scoring="text", limit=1,
        ...                   workspace=folder)
        >>> [(row["model"], row["metric"], row["n"]) for row in result.rows() if row["level"] == "overall"]
        [('smollm2', 'accuracy', 1)]
    """
    from climassay.evaluation.experiment_file import MetricSpec
    from climassay.metrics.registry import METRICS

    question_set = read_questions(questions) if isinstance(questions, (str, Path)) else questions
    kinds = tuple(dict.fromkeys(question.kind for question in question_set.questions))
    scored_kinds = tuple(kind for kind in kinds if any(METRICS.find(name).scores(kind) for name in metrics))
    with Session.opened(workspace) as session:
        experiment = _ask_questions(
            question_set,
            session,
            models=models,
            settings=settings,
            passages=passages,
            examples=examples,
            on_answers=on_answers,
            tasks=scored_kinds or kinds,
            **({"scoring": scoring} if isinstance(scoring, str) else {"scorings": tuple(scoring)}),
            permutations=permutations,
            limit=limit,
            seed=seed,
            metrics=MetricSpec(names=tuple(metrics), judge=None if judge is None else evaluation.ModelSpec(judge)),
        )
    return _score(experiment, seed, {question_set.name: question_set.skipped})


def _ask_questions(
    question_set: "QuestionSet",
    session: Session,
    *,
    models: Models,
    settings: Sequence[str],
    passages: int,
    examples: int,
    seed: int,
    tasks: Sequence[Kind],
    name: str = "",
    whole_names: bool = False,
    on_answers: Callable[[int], None] | None = None,
    command: str | None = None,
    **plan_fields: Any,
) -> "Experiment":
    """Run an experiment on the questions of the kinds ``tasks``; ``plan_fields`` are other fields of its plan."""
    from climassay.evaluation.experiment_file import check_plan

    specs, loaded_models = make_model_specs(models, session, whole_names=whole_names)
    plan = evaluation.ExperimentPlan(
        name=name or f"{', '.join(spec.display_name for spec in specs)} on {question_set.name}",
        benchmarks=(evaluation.BenchmarkSpec(question_set.name, (question_set.name,)),),
        models=specs,
        settings=tuple(
            evaluation.parse_spec(setting, passages=passages, examples=examples, seed=seed) for setting in settings
        ),
        tasks=tuple(tasks),
        seed=seed,
        **plan_fields,
    )
    check_plan(plan, "The command")
    sets = {question_set.name: evaluation.limit_questions(question_set, plan)}
    return _run_experiment(plan, sets, loaded_models, session, on_answers, command=command)


def run_plan(
    plan: "ExperimentPlan", *, loaded: Mapping[str, Generator | str] | None = None, workspace: Place = None
) -> Evaluation:
    """Run the experiment of a plan, as ``climassay evaluate run`` does.

    Args:
        plan: Plan with models, settings, tasks and benchmarks; :func:`climassay.evaluation.load_plan` loads one.
        loaded: Models by label, loaded or to be loaded by the session with its options; each is used in place of the
            plan's model with that label, and stays open.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The questions cannot be read, or a collection or file of a setting does not exist.
        ModelError: A model cannot be loaded, or returns no log-probabilities although the scoring needs them.
    """
    with Session.opened(workspace) as session:
        sets = {spec.name: evaluation.read_benchmark(spec, plan) for spec in plan.benchmarks}
        experiment = _run_experiment(plan, sets, loaded or {}, session)
        return _score(experiment, plan.seed, {name: question_set.skipped for name, question_set in sets.items()})


def run_experiment_file(file: Path | str, *, limit: int | None = None, workspace: Place = None) -> Evaluation:
    """Run every model in every setting on every task of every benchmark of an experiment file.

    Answers are stored, so that running the same file again resumes an interrupted experiment.

    Args:
        file: Experiment file, such as the one written by ``climassay evaluate init``.
        limit: Maximum number of questions per task and benchmark, drawn at random.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file or the questions cannot be read, or a collection or file of a setting does not exist.
        ModelError: A model cannot be loaded, or returns no log-probabilities although the scoring needs them.
    """
    file = Path(file)
    plan = evaluation.load_plan(file)
    if limit is not None:
        plan = replace(plan, limit=limit)
    with Session.opened(workspace) as session:
        plan = replace(plan, models=tuple(spec.limited_by(session.options) for spec in plan.models))
        if (judge := plan.metrics.judge) is not None:
            judge = with_changes(judge, timeout=session.options.timeout)
            plan = replace(plan, metrics=replace(plan.metrics, judge=judge))
        return run_plan(plan, workspace=session)


def make_model_specs(
    models: Models, session: Session, *, whole_names: bool = False
) -> "tuple[tuple[ModelSpec, ...], dict[str, Generator | str]]":
    """Return the plan's specifications of models and, by label, the models that stay open after the experiment.

    These are the loaded models and the name of a single model, which the session loads. If several models are named,
    the experiment loads one after the other. ``whole_names`` uses complete names, such as ``local:smollm2``, as labels.
    """
    models_to_run = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    options = session.options.fitting_each(model for model in models_to_run if isinstance(model, str))
    specs: list[evaluation.ModelSpec] = []
    loaded_models: dict[str, Generator | str] = {}
    for model in models_to_run:
        name = model if isinstance(model, str) else model.name
        model_options = options[model] if isinstance(model, str) else ModelOptions()
        label = name if whole_names else ""
        specs.append(evaluation.ModelSpec.from_options(model_options, name=name, label=label))
        if not isinstance(model, str) or len(models_to_run) == 1:
            loaded_models[specs[-1].display_name] = model
    return tuple(specs), loaded_models


def _run_experiment(
    plan: "ExperimentPlan",
    sets: "Mapping[str, QuestionSet]",
    loaded: Mapping[str, Generator | str],
    session: Session,
    on_answers: Callable[[int], None] | None = None,
    *,
    command: str | None = None,
) -> "Experiment":
    """Run and record an experiment, showing progress; see :func:`run_plan` for ``loaded``."""
    from climassay.api.judges import side_by_side_judge
    from climassay.evaluation import count_answers
    from climassay.evaluation.results import COMMANDS

    templates = evaluation.TaskPrompts.load(session.options.prompts)
    n_answers = count_answers(plan, sets)
    with ExitStack() as tasks:
        task = tasks.enter_context(session.progress.task("Asking", n_answers))
        trainings: dict[str, Task] = {}
        final_tasks: list[Task] = []

        def on_training(name: str, step: int, steps: int, loss: float) -> None:
            if name not in trainings:
                trainings[name] = tasks.enter_context(session.progress.task("", steps))
            trainings[name].update(description=f"Training {name}, validation loss {loss:.3f}", completed=step)

        def on_cell(cell: "Cell", stage: str) -> None:
            verb = "Scoring" if stage == "scored" else "Asking"
            task.update(description=f"{verb} {cell.model}, {cell.setting}, {cell.task}")

        def on_answer(count: int) -> None:
            task.advance(count)
            if on_answers is not None:
                on_answers(count)

        def on_answers_added(count: int) -> None:
            nonlocal n_answers
            n_answers += count
            task.update(total=n_answers)

        def on_final_step(step_name: str) -> None:
            if not final_tasks:
                final_tasks.append(tasks.enter_context(session.progress.task(step_name)))
            final_tasks[0].update(description=step_name)

        base_resources = evaluation.open_resources(
            plan,
            session.workspace,
            prompts=templates,
            deadline=session.options.deadline,
            on_training=on_training,
            load=load_model if session.pool is None else session.pool.load_model,
        )

        def open_model(spec: "ModelSpec", adapter: Path | None = None) -> Generator:
            if adapter is not None or spec.display_name not in loaded:
                return base_resources.open_model(spec, adapter)
            shared_models.append(session.model(loaded[spec.display_name]))
            return shared_models[-1]

        shared_models: list[Generator] = []
        harnesses = {}
        if plan.lm_eval.tasks:
            from climassay.integrations import lm_eval_tasks

            harnesses["lm_eval"] = partial(lm_eval_tasks.run_tasks, load=partial(_load_for_harness, session=session))
        if plan.inspect.tasks:
            from climassay.integrations.inspect import experiment_tasks

            harnesses["inspect"] = partial(experiment_tasks.run_tasks, load=open_model, caller_models=shared_models)
        return evaluation.run_experiment(
            plan,
            sets,
            replace(
                base_resources,
                open_model=open_model,
                shared_models=shared_models,
                harnesses=harnesses,
                load_trained_judge=partial(side_by_side_judge, session),
            ),
            session.records,
            prompts=templates,
            use_cache=not session.options.no_cache,
            callbacks=evaluation.ExperimentCallbacks(on_cell, on_answer, on_answers_added, on_final_step),
            command=command or COMMANDS[0],
        )


def _score(experiment: "Experiment", seed: int, skipped: Mapping[str, Sequence[str]]) -> Evaluation:
    return Evaluation(experiment, evaluation.score_experiment(experiment, seed=seed), skipped)


def _load_for_harness(spec: "ModelSpec", session: Session) -> Generator:
    """Load a plan's model with the interface that lm-evaluation-harness needs."""
    from climassay.integrations.lm_eval_model import load_text_model

    options = spec.options(deadline=session.options.deadline)
    return load_text_model(spec.name, options, folder=session.workspace.root)


def evaluate_lm_eval(
    tasks: str | Sequence[str],
    *,
    models: str | Sequence[str] = DEFAULT_MODEL,
    include_path: str | Path | Sequence[str | Path] = (),
    num_fewshot: int | Sequence[int] = (),
    chat_template: bool = False,
    limit: int | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> Evaluation:
    """Run tasks of lm-evaluation-harness, such as ClimateEval, with recorded answers, intervals and paired tests.

    Every answer is stored, so that the same call after an interruption requests only the missing answers.

    Args:
        tasks: Names of tasks, groups or tags of the harness, patterns of such names, or YAML files of tasks.
        models: Names of models. Models behind a server generate their choice, because servers do not return
            log-probabilities of options.
        include_path: Folder with further tasks, whose code is run; can be repeated.
        num_fewshot: Number of examples per prompt; if repeated, the numbers are compared. By default each task decides.
        chat_template: Whether each model's chat template is applied to the prompts.
        limit: Maximum number of samples of each task, drawn at random.
        seed: Seed of the choice of examples and of resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A task does not exist or cannot be loaded.
        ModelError: A model cannot be loaded, or lacks an ability that a task needs.
    """
    from climassay.evaluation.experiment_file import HarnessSpec, check_plan

    names, model_names = one_or_several(tasks), dict.fromkeys(one_or_several(models))
    with Session.opened(workspace) as session:
        options_by_model = session.options.fitting_each(model_names)
        plan = evaluation.ExperimentPlan(
            name=", ".join(names),
            benchmarks=(),
            models=tuple(evaluation.ModelSpec.from_options(options_by_model[name], name=name) for name in model_names),
            settings=(evaluation.parse_spec("default"),),
            limit=limit,
            seed=seed,
            lm_eval=HarnessSpec(
                tasks=names,
                include_path=tuple(map(str, one_or_several(include_path))),
                num_fewshot=(num_fewshot,) if isinstance(num_fewshot, int) else tuple(dict.fromkeys(num_fewshot)),
                chat_template=chat_template,
            ),
        )
        check_plan(plan, "The command")
        return _score(_run_experiment(plan, {}, {}, session, command="evaluate lm-eval"), seed, {})


def evaluate_inspect(
    tasks: str | Sequence[str],
    *,
    models: Models = DEFAULT_MODEL,
    task_args: Mapping[str, Any] | None = None,
    epochs: int | None = None,
    grader: str | None = None,
    max_tokens: int | None = None,
    log_dir: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> Evaluation:
    """Run Inspect tasks, with recorded answers, intervals and paired tests.

    Every answer is stored, so that the same call after an interruption requests only the missing answers.

    Args:
        tasks: Tasks, whose code is run: FILE.py@NAME, FILE.py for all tasks in a file, or PACKAGE/NAME for a task from
            a package.
        models: Name of a model, a loaded model, or several of them; of several named models one is loaded at a time.
        task_args: Arguments of the tasks by name.
        epochs: Number of times that each sample is run; by default each task decides.
        grader: Model that grades answers if a task needs grading; by default the evaluated model itself.
        max_tokens: Maximum number of tokens of an answer, for tasks that set no maximum.
        log_dir: Folder for Inspect's own logs (inspect view --log-dir).
        limit: Maximum number of samples of each task, drawn at random.
        seed: Seed of the resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A task does not exist, cannot be loaded or run, or needs tools, which are not supported.
        ModelError: A model cannot be loaded.
    """
    from climassay.evaluation.experiment_file import InspectSpec, check_plan

    names = one_or_several(tasks)
    with Session.opened(workspace) as session:
        specs, loaded_models = make_model_specs(models, session)
        grader_spec = None
        if grader is not None:
            grader_spec = evaluation.ModelSpec.from_options(session.options.fitting_each([grader])[grader], name=grader)
        plan = evaluation.ExperimentPlan(
            name=", ".join(names),
            benchmarks=(),
            models=specs,
            settings=(evaluation.parse_spec("default"),),
            limit=limit,
            seed=seed,
            inspect=InspectSpec(names, dict(task_args or {}), epochs, grader_spec, max_tokens, str(log_dir or "")),
        )
        check_plan(plan, "The command")
        return _score(_run_experiment(plan, {}, loaded_models, session, command="evaluate inspect"), seed, {})


def evaluate_choices(
    questions: str,
    *,
    models: Models = DEFAULT_MODEL,
    settings: Sequence[str] = ("default",),
    scorings: "Sequence[Scoring]" = ("likelihood",),
    permutations: int = 1,
    passages: int = 3,
    examples: int = 5,
    limit: int | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> "ScoredChoices":
    """Measure accuracy on multiple-choice questions, with intervals, baselines and paired tests.

    Args:
        questions: Question file (CSV, JSONL or Parquet, also gzipped) with the columns question, A, B, C, D and
            answer, or with those of ClimaQA or Pira; or ``primer``.
        models: Name of a model, a loaded model, or several of them; of several named models one is loaded at a time.
        settings: Settings to compare: default, few-shot:POOL, rag:COLLECTION (rag:A+B for several),
            long-context:auto@COLLECTION (or DOCUMENT@COLLECTION) or context; can be repeated.
        scorings: Scorings to compare: likelihood (of the letters), letter (generated), or the log-likelihood of the
            options' texts: text (per character), text-sum, text-per-token, text-per-byte, or text-pmi (minus the
            log-likelihood without the question); can be repeated.
        permutations: Number of option orders per question; with more than one, position bias is measured.
        passages: Number of passages per question in rag settings.
        examples: Number of examples per prompt in few-shot settings.
        limit: Maximum number of questions, drawn at random.
        seed: Seed of option orders and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The questions cannot be read, or a collection or file of a setting does not exist.
        ModelError: A model cannot be loaded, or returns no log-probabilities although the scoring needs them.
    """
    question_set = read_questions(questions)
    tasks = [kind for kind, question_type in TYPES.items() if question_type.has_lettered_options]
    if not question_set.select(tasks).questions:
        raise InputError(f"{question_set.name} has no multiple-choice question.")
    with Session.opened(workspace) as session:
        experiment = _ask_questions(
            question_set,
            session,
            models=models,
            settings=settings,
            passages=passages,
            examples=examples,
            seed=seed,
            tasks=tasks,
            name=question_set.name,
            whole_names=True,
            command="evaluate mcq",
            scorings=tuple(scorings),
            permutations=permutations,
            limit=limit,
        )
    rows = [prediction for predictions in experiment.predictions.values() for prediction in predictions]
    scores, tally = evaluation.score_mcq(rows, seed=seed), experiment.tally
    asked_models = {record.model: record for record in experiment.cells}
    names, n_questions = ", ".join(asked_models), len(experiment.questions[question_set.name])
    data = {
        "run": experiment.run,
        "questions": question_set.name,
        "questions_sha256": question_set.sha256,
        "n": n_questions,
        "skipped": question_set.skipped,
        "models": [
            {"model": name, "fingerprint": record.fingerprint, "dtype": record.dtype}
            for name, record in asked_models.items()
        ],
        "settings": list(dict.fromkeys(settings)),
        "scorings": tuple(scorings),
        "orders": permutations,
        "seed": seed,
        "scores": scores,
        "tally": tally,
        "n_predictions": len(rows),
    }
    return ScoredChoices(
        data,
        evaluation.mcq_tables(scores),
        printed_lines=(f"{question_set.name}: {n_questions} multiple-choice questions, {names}",),
        noted=(*skipped_note(question_set.skipped), describe_requests(experiment)),
        reported=lambda: evaluation.experiment_report(experiment, seed=seed),
        predictions=[asdict(row) for row in rows],
    )
