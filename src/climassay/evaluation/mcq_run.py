"""One evaluation as a run: asked through the records, scored, and kept with everything needed to repeat it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from climassay.errors import InputError
from climassay.evaluation.examples import TaskPrompts
from climassay.evaluation.mcq import Prediction, Scoring, ask_mcq, mcq_prompt
from climassay.evaluation.scores import McqScores, score_mcq
from climassay.evaluation.settings import Setting
from climassay.models.contract import Generator, number_format
from climassay.questions import QuestionSet
from climassay.records import RecordedModel, Records, Tally


@dataclass(frozen=True, slots=True)
class McqEvaluation:
    """What was asked, how, and what came of it."""

    run: str
    """Id in the records."""
    questions: str
    """Name of the question set."""
    questions_sha256: str
    n: int
    """Multiple-choice questions asked."""
    skipped: tuple[str, ...]
    """Rows of the file that could not be used, with the reason."""
    model: str
    fingerprint: str
    settings: tuple[str, ...]
    scorings: tuple[str, ...]
    orders: int
    seed: int
    scores: McqScores
    tally: Tally
    """Answers served from the records, asked, failed, and their usage."""
    predictions: tuple[Prediction, ...]
    dtype: str = ""
    """Number format that a local model computed in; empty where it is not known."""


def evaluate_mcq(
    question_set: QuestionSet,
    model: Generator,
    settings: Sequence[Setting],
    store: Records,
    *,
    scorings: Sequence[Scoring] = ("likelihood",),
    orders: int = 1,
    seed: int = 0,
    prompts: TaskPrompts | None = None,
    use_cache: bool = True,
    on_progress: Callable[[int], None] | None = None,
) -> McqEvaluation:
    """Evaluate a model on multiple-choice questions in several settings.

    Every answer is stored before it is used: kill the process and call again, and only what is missing is asked.

    Args:
        question_set: Questions; those that are not multiple choice are left out.
        model: Any generator; every scoring but ``letter`` needs log-probabilities.
        settings: See :func:`~climassay.evaluation.settings.parse_setting`.
        store: Where requests, answers and results are kept.
        scorings: ``likelihood``, ``letter``, ``text`` and others; see :mod:`climassay.evaluation.mcq`.
        orders: Option orders a question, to measure position bias.
        seed: Seed of orders and resampling.
        prompts: Templates; the built-in ones by default.
        use_cache: False asks everything afresh.
        on_progress: Called with the number of answers that came in, stored ones included.

    Raises:
        InputError: There is no multiple-choice question, or two settings have the same name.
    """
    questions = question_set.of_kind("mcq")
    if not questions:
        raise InputError(f"{question_set.name} has no multiple-choice question.")
    names = tuple(setting.name for setting in settings)
    if len(set(names)) < len(names):
        raise InputError(f"Every setting can be named once, got {', '.join(names)}.")
    templates = prompts or TaskPrompts.load()
    used = [mcq_prompt(templates, scoring) for scoring in scorings]
    config: dict[str, Any] = {
        "questions": question_set.name,
        "questions_sha256": question_set.sha256,
        "n": len(questions),
        "model": model.name,
        "fingerprint": model.fingerprint,
        "dtype": number_format(model),
        "settings": list(names),
        "scorings": list(scorings),
        "orders": orders,
        "prompts": {prompt.name: {"sha256": prompt.sha256, "origin": prompt.origin} for prompt in used},
        "use_cache": use_cache,
    }
    with store.run(command="evaluate mcq", config=config, seeds={"orders": seed, "resampling": seed}) as run:
        recorded = RecordedModel(model, store, run, use_cache=use_cache)
        predictions = ask_mcq(
            questions,
            recorded,
            settings,
            templates,
            scorings=scorings,
            orders=orders,
            seed=seed,
            on_progress=on_progress,
        )
        scores = score_mcq(questions, predictions, seed=seed)
        run.save_results("questions", [asdict(question) for question in questions])
        run.save_results("predictions", [asdict(prediction) for prediction in predictions])
        run.save_results("accuracy", [asdict(row) for row in scores.accuracy])
        run.save_results("paired", [asdict(row) for row in scores.paired])
        run.save_results("position", [asdict(row) for row in scores.position])
    return McqEvaluation(
        run=run.id,
        questions=question_set.name,
        questions_sha256=question_set.sha256,
        n=len(questions),
        skipped=question_set.skipped,
        model=model.name,
        fingerprint=model.fingerprint,
        settings=names,
        scorings=tuple(scorings),
        orders=orders,
        seed=seed,
        scores=scores,
        tally=recorded.tally,
        predictions=tuple(predictions),
        dtype=number_format(model),
    )
