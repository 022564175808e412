"""From questions to scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.api.opening import Place, opened_model, opened_workspace
from climassay.models import DEFAULT_MODEL, Generator

if TYPE_CHECKING:
    from climassay.evaluation import Experiment, ExperimentPlan, ExperimentScores, Scoring
    from climassay.questions import QuestionSet
    from climassay.reporting import Report, Table


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was asked, and the numbers made of it."""

    experiment: "Experiment"
    """Every answer to every question."""
    scores: "ExperimentScores"

    @property
    def tables(self) -> "tuple[Table, ...]":
        """All tables, each figure with its n and its interval."""
        from climassay.evaluation import experiment_tables

        return tuple(one.table for one in experiment_tables(self.scores))

    @property
    def report(self) -> "Report":
        """Tables, figures and single answers; ``report.write(Path("report.html"))`` makes one self-contained file."""
        from climassay.evaluation import experiment_report

        return experiment_report(self.experiment, scores=self.scores)


def evaluate(
    questions: "QuestionSet | str | Path",
    *,
    model: Generator | str = DEFAULT_MODEL,
    settings: Sequence[str] = ("default",),
    scoring: "Scoring" = "likelihood",
    limit: int | None = None,
    seed: int = 0,
    workspace: Place = None,
    on_answers: Callable[[int], None] | None = None,
) -> Evaluation:
    """Evaluate a model on questions of any kinds, in one or several settings.

    Args:
        questions: ``primer`` (the bundled ones), a question file, or what was read from one.
        model: Who is asked.
        settings: ``default``, ``few-shot:POOL``, ``rag:COLLECTION`` and so on; see
            :mod:`climassay.evaluation.settings`.
        scoring: How multiple-choice answers are read: ``likelihood`` of the letters, ``letter`` that the model writes,
            or likelihood of the options' ``text``; all ways in :mod:`climassay.evaluation.tasks`.
        limit: Most questions of each kind, drawn by the seed.
        seed: Of draws and resampling.
        workspace: Where collections and records lie.
        on_answers: Told how many more answers came in.

    Raises:
        InputError: The questions cannot be read, or a setting names what is not there.
        ModelError: The model cannot be loaded, or gives no log-probabilities where they are needed.

    Example:
        >>> result = evaluate("primer", settings=["default"], scoring="text", limit=1, workspace=folder)
        >>> len(result.experiment.outcomes)  # one of each kind
        3
    """
    from climassay.evaluation import BenchmarkSpec, ExperimentPlan, ModelSpec, limited, parse_spec
    from climassay.primer import named_questions

    given = named_questions(questions) if isinstance(questions, (str, Path)) else questions
    place = opened_workspace(workspace)
    with opened_model(model, place) as loaded:
        plan = ExperimentPlan(
            name=f"{loaded.name} on {given.name}",
            benchmarks=(BenchmarkSpec(given.name, (given.name,)),),
            models=(ModelSpec(loaded.name),),
            settings=tuple(parse_spec(name, seed=seed) for name in settings),
            tasks=tuple(dict.fromkeys(question.kind for question in given.questions)),
            scoring=scoring,
            limit=limit,
            seed=seed,
        )
        return _run(plan, {given.name: limited(given, plan)}, loaded, place, on_answers)


def run_plan(
    plan: "ExperimentPlan",
    *,
    model: Generator | None = None,
    workspace: Place = None,
    on_answers: Callable[[int], None] | None = None,
) -> Evaluation:
    """Run a whole experiment, as ``climassay evaluate run`` does.

    Args:
        plan: Models, settings, tasks and benchmarks; :func:`climassay.evaluation.load_plan` reads one from a file.
        model: Takes the place of every model that the plan names, where it is loaded already; it stays open.
        workspace: Where collections, adapters and records lie.
        on_answers: Told how many more answers came in.

    Raises:
        InputError: The questions cannot be read, or a setting names what is not there.
        ModelError: A model cannot be loaded, or gives no log-probabilities where they are needed.
    """
    from climassay.evaluation import read_benchmark

    sets = {spec.name: read_benchmark(spec, plan) for spec in plan.benchmarks}
    return _run(plan, sets, model, workspace, on_answers)


def _run(
    plan: "ExperimentPlan",
    sets: "Mapping[str, QuestionSet]",
    model: Generator | None,
    workspace: Place,
    on_answers: Callable[[int], None] | None,
) -> Evaluation:
    from climassay.evaluation import Progress, open_resources, run_experiment, score_experiment
    from climassay.records import Records

    place = opened_workspace(workspace)
    bench = open_resources(plan, place)
    if model is not None:
        bench = replace(bench, open_model=lambda _spec, _adapter: model, keeps_models=True)
    progress = Progress() if on_answers is None else Progress(on_answer=on_answers)
    with Records(place.records_url) as store:
        experiment = run_experiment(plan, sets, bench, store, progress=progress)
    return Evaluation(experiment, score_experiment(experiment, seed=plan.seed))
