"""Inspect's tasks in an experiment: climassay's recorded models answer, and Inspect builds the prompts and scores.

Inspect's result for each sample becomes an outcome, so that intervals, paired tests, tables and pages are the same as
in other experiments. Scores are named by Inspect's metric and scorer (``accuracy,choice``). The key follows if the
scorer has several values (``mean,marks.clarity``), and the reducer of epochs if it is not the mean
(``accuracy,match.pass_at_2``). Several epochs of a sample are one outcome.
"""

import hashlib
import json
import signal
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog, EvalSample, EvalScore, recompute_metrics
from inspect_ai.model import ChatMessage, GenerateConfig, Model
from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, PARTIAL, value_to_float

from climassay import evaluation
from climassay.errors import InputError
from climassay.integrations.inspect.provider import ClimassayModel, inspect_model
from climassay.integrations.task_outcomes import SampleScores, TaskOutcomes, is_mean
from climassay.models import contract
from climassay.questions import CHOICE_KIND, LETTERS, PROSE_KIND, Kind, Question
from climassay.records import RecordedModel, RequestCounts
from climassay.settings import resolve_file

SETTING = "default"
_SPREAD_METRICS = {"stderr", "bootstrap_stderr", "std", "var"}
"""Inspect's metrics of spread; they are omitted because climassay computes intervals."""
_QUIET_OPTIONS: Mapping[str, Any] = {
    "display": "none",
    "log_level": "error",
    "log_realtime": False,
    "log_buffer": 1000,
    "score_display": False,
    "ctl_server": False,
    "acp_server": False,
}
_to_float = value_to_float()


def run_tasks(
    plan: evaluation.ExperimentPlan,
    model: evaluation.ModelSpec,
    ask: evaluation.RecordModel,
    progress: evaluation.ExperimentCallbacks,
    *,
    load: Callable[[evaluation.ModelSpec], contract.Generator],
    caller_models: Sequence[contract.Generator] = (),
) -> evaluation.HarnessCells:
    """Evaluate one model on all Inspect tasks of a plan.

    Args:
        plan: Experiment with the tasks in :attr:`~ExperimentPlan.inspect`; its limit is the number of samples per task.
        model: Entry of the model to evaluate.
        ask: Function that wraps a loaded model so that its answers are recorded.
        progress: Callbacks that follow the run.
        load: Function that loads a model; the model is closed afterwards.
        caller_models: Loaded models that may be used, which the caller closes.

    Raises:
        InputError: A task does not exist, cannot be loaded or run, or needs a capability that climassay's models lack.
        ModelError: The model cannot be loaded.
    """
    spec, cells = plan.inspect, []
    with ExitStack() as exit_stack:

        def open_model(model_spec: evaluation.ModelSpec) -> contract.Generator:
            result = load(model_spec)
            if not any(result is caller_model for caller_model in caller_models):
                exit_stack.callback(result.close)
            return result

        loaded_model = open_model(model)
        recorded_model = ask(loaded_model)
        assert isinstance(recorded_model, RecordedModel)
        runner = _Runner(plan, exit_stack.enter_context(tempfile.TemporaryDirectory(prefix="climassay-inspect-")))
        n_answers_by_task = runner.draw_samples()
        n_expected = sum(n_answers_by_task.values())
        progress.on_answers_added(n_expected)

        def on_answer(count: int) -> None:
            nonlocal n_expected
            n_expected -= count
            if n_expected < 0:  # a sample may take several requests, a number that is unknown before
                progress.on_answers_added(count)
            progress.on_answer(count)

        evaluated_model = inspect_model(recorded_model, on_answer=on_answer)
        grader = None if spec.grader is None else inspect_model(ask(open_model(spec.grader)))
        for name in n_answers_by_task:
            progress.on_cell(evaluation.Cell(name, model.display_name, SETTING, CHOICE_KIND), "asked")
        logs = runner.run(evaluated_model, grader)
        counts = recorded_model.tally
        for log in logs:
            result = _InspectOutcomes(log)
            recorded_names = {
                f"climassay/{provider.model_name}" for provider in (evaluated_model, grader) if provider is not None
            }
            notes = [
                f"{result.name} itself asked {model_name}, past the records."
                for model_name in log.stats.model_usage
                if model_name not in recorded_names
            ]
            settings = {
                "task_args": dict(spec.task_args),
                "epochs": log.eval.config.epochs,
                "grader": spec.grader and spec.grader.name,
                "version": log.eval.task_version,
                "inspect_ai": version("inspect_ai"),
            }
            constant_scores = runner.constant_scores(result) if model == plan.models[0] else ()
            cells.append(result.cell(model, SETTING, loaded_model, settings, counts, notes, constant_scores))
            counts = RequestCounts()  # asked once, counted once
    return evaluation.HarnessCells(cells, {})


class _Runner:
    """Runner of a plan's Inspect tasks, with a temporary folder for logs that are not saved."""

    def __init__(self, plan: evaluation.ExperimentPlan, folder: str) -> None:
        self._plan, self._spec, self._folder = plan, plan.inspect, folder
        self._task_references: dict[str, str] = {}
        self._sample_ids: dict[str, list[int | str]] = {}
        """Ids of the drawn samples, by task."""

    def draw_samples(self) -> dict[str, int]:
        """Draw the samples of each task; return the number of expected answers (samples times epochs) by task name.

        Raises:
            InputError: A task cannot be loaded, two tasks have the same name, or an argument is accepted by no task.
        """
        results: dict[str, int] = {}
        argument_names: set[str] = set()
        for name in self._spec.tasks:
            file, separator, task_name = name.partition("@")
            reference = f"{resolve_file(self._plan.folder, file)}{separator}{task_name}"
            for log in self._eval([reference], constant_model(""), subject=name, run_samples=False):
                task = log.eval.task
                if task in results:
                    raise InputError(f"Two tasks of Inspect are called {task!r}: run them one after the other.")
                argument_names |= set(log.eval.task_args)
                registered_name = log.eval.task_registry_name or task
                self._task_references[task] = (
                    reference if separator or not Path(reference).is_file() else f"{reference}@{registered_name}"
                )
                ids = log.eval.dataset.sample_ids or []
                self._sample_ids[task] = [
                    ids[i] for i in evaluation.draw_indices(len(ids), self._plan.limit, self._plan.seed)
                ]
                results[task] = len(self._sample_ids[task]) * (log.eval.config.epochs or 1)
        if unknown_arguments := sorted(set(self._spec.task_args) - argument_names):
            raise InputError(
                f"{', '.join(self._spec.tasks)} of Inspect takes no argument {', '.join(unknown_arguments)}."
            )
        return results

    def run(self, evaluated_model: ClimassayModel, grader: ClimassayModel | None) -> list[EvalLog]:
        """Evaluate a model on the drawn samples of all tasks and return Inspect's logs.

        Raises:
            InputError: A task needs a capability that climassay's models lack, or fails.
        """
        model = Model(evaluated_model, GenerateConfig(max_tokens=self._spec.max_tokens))
        roles = {} if grader is None else {"grader": Model(grader, GenerateConfig())}
        providers = [evaluated_model] if grader is None else [evaluated_model, grader]
        folder = str(self._plan.folder / self._spec.log_dir) if self._spec.log_dir else self._folder
        with _stop_on_interrupt(providers):
            options: dict[str, Any] = {"log_dir": folder, "model_roles": roles}
            if self._plan.limit is None:
                logs = self._eval(list(self._task_references.values()), model, **options)
            else:
                logs = [
                    log
                    for task, reference in self._task_references.items()
                    for log in self._eval([reference], model, sample_id=self._sample_ids[task], **options)
                ]
        for provider in providers:
            if provider.unsupported_request_error is not None:
                raise provider.unsupported_request_error
        return logs

    def constant_scores(self, outcomes: "_InspectOutcomes") -> tuple[evaluation.ConstantScore, ...]:
        """Return Inspect's scores of a model that always answers with the most frequent target of a task.

        Return () if the task has a sandbox or a sample takes several requests, since the constant model would then also
        answer requests of a scorer.
        """
        if outcomes.log.eval.sandbox is not None or not outcomes.has_single_requests:
            return ()
        target = Counter(outcomes.targets).most_common(1)[0][0]
        model = constant_model(f"ANSWER: {target}" if outcomes.has_choices else target)
        sample_ids = None if self._plan.limit is None else self._sample_ids[outcomes.name]
        [log] = self._eval([self._task_references[outcomes.name]], model, sample_id=sample_ids)
        excerpt = target if len(target) < 80 else f"{target[:79]}…"
        by_metric: dict[str, list[float]] = defaultdict(list)
        for scores in _InspectOutcomes(log).compute_scores().values():
            for metric, value in scores.items():
                by_metric[metric].append(value)
        return tuple(
            evaluation.ConstantScore(
                outcomes.name, metric, evaluation.OVERALL, excerpt, sum(values) / len(values), outcomes.kind
            )
            for metric, values in by_metric.items()
        )

    def _eval(self, references: list[str], model: Model, *, subject: str = "", **extra_options: Any) -> list[EvalLog]:
        options: dict[str, Any] = {
            "task_args": dict(self._spec.task_args),
            "epochs": self._spec.epochs,
            "log_dir": self._folder,
            "fail_on_error": False,  # samples that fail are counted
            **_QUIET_OPTIONS,
            **extra_options,
        }
        try:
            logs = inspect_eval(references, model=model, **options)
        except Exception as error:  # a task is anybody's code, and its data may lie on a hub
            raise InputError(
                f"Inspect cannot run {subject or ', '.join(self._spec.tasks)}: {_error_sentence(error)}"
            ) from error
        for log in logs:
            if log.status == "cancelled":
                raise KeyboardInterrupt
            if log.status == "error" and log.error is not None:
                raise InputError(f"Inspect cannot run {log.eval.task}: {log.error.message.rstrip('.')}.")
        return logs


def _error_sentence(error: Exception) -> str:
    text = str(getattr(error, "message", "") or error).strip().removeprefix("Error: ")
    message = text if type(error).__module__.startswith("inspect_ai") else f"{type(error).__name__}: {text}"
    return f"{message.rstrip('.')}."


@contextmanager
def _stop_on_interrupt(models: Sequence[ClimassayModel]) -> Iterator[None]:
    """Cancel the models' requests in other threads on Ctrl-C, which only the main thread receives."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        for model in models:
            model.stop()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def constant_model(answer: str) -> Model:
    """Return a model that gives the same answer to every request."""
    return Model(inspect_model(_ConstantGenerator(answer)), GenerateConfig())


class _ConstantGenerator:
    name = "constant"
    fingerprint = "constant"

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def generate(
        self, requests: Sequence[contract.GenerationRequest], *, on_result: contract.CompletionCallback | None = None
    ) -> list[contract.Completion]:
        answers = [contract.Completion(self._answer, "stop") for _ in requests]
        for index, answer in enumerate(answers):
            if on_result is not None:
                on_result(index, answer)
        return answers

    def render(self, messages: Sequence[contract.Message], assistant_prefix: str = "") -> str:
        return "\n\n".join([*(message.content for message in messages), assistant_prefix])

    def close(self) -> None:
        pass


def _score_name(score: EvalScore) -> str:
    """Return the scorer's name, followed by key and epoch reducer of the score unless they are the default."""
    name = score.scorer if score.name == score.scorer else f"{score.scorer}.{score.name}"
    return name if score.reducer in (None, "mean") else f"{name}.{score.reducer}"


def _metric_values(score: EvalScore) -> dict[str, float]:
    """Return a scorer's metrics by ``metric,scorer``, without metrics of spread."""
    return {
        f"{name.replace(',', ';')},{_score_name(score)}".replace(" ", "_"): float(metric.value)
        for name, metric in score.metrics.items()
        if not _SPREAD_METRICS & {name, metric.name, metric.group}
    }


def _to_number(value: Any, key: str | None) -> float | None:
    """Return a sample's value, or its entry ``key``, as the number that Inspect averages; None if there is none."""
    if key is not None and isinstance(value, Mapping):
        value = value.get(key)
    if isinstance(value, str):
        is_grade = value in (CORRECT, INCORRECT, PARTIAL, NOANSWER) or value.lower() in ("yes", "no", "true", "false")
        return _to_float(value) if is_grade or _is_number(value) else None
    return float(value) if isinstance(value, int | float) else None


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def _to_letter(text: str | list[str], options: Sequence[str]) -> str | None:
    """Return the option letter, in upper case, if a target or answer consists of only a letter; otherwise None."""
    value = text[0] if isinstance(text, list) and len(text) == 1 else text
    is_letter = isinstance(value, str) and len(value) == 1 and value.upper() in LETTERS.upper()[: len(options)]
    return value.upper() if is_letter and isinstance(value, str) else None


def _input_text(sample_input: str | list[ChatMessage]) -> str:
    if isinstance(sample_input, str):
        return sample_input
    return "\n\n".join(turn.text for turn in sample_input)


class _InspectOutcomes(TaskOutcomes[str]):
    """Outcomes of a task's samples, parsed from Inspect's log."""

    def __init__(self, log: EvalLog) -> None:
        self.log, name = log, log.eval.task
        self.samples_by_id: dict[str, list[EvalSample]] = defaultdict(list)
        for sample in log.samples or ():
            self.samples_by_id[str(sample.id)].append(sample)
        if not self.samples_by_id:
            raise InputError(f"The task {name} of Inspect has no sample.")
        errors = {
            sample: next(epoch_sample.error.message for epoch_sample in samples if epoch_sample.error)
            for sample, samples in self.samples_by_id.items()
            if any(epoch_sample.error for epoch_sample in samples)
        }
        first_samples = [samples[0] for samples in self.samples_by_id.values()]
        letters = [_to_letter(sample.target, sample.choices or ()) for sample in first_samples]
        solver_names = {step.solver.rpartition("/")[2] for step in log.plan.steps}
        is_multiple_choice = "multiple_choice" in solver_names or "choice" in {
            scorer.name.rpartition("/")[2] for scorer in log.eval.scorers or ()
        }
        can_letter_choices = all(1 < len(sample.choices or ()) <= len(LETTERS) for sample in first_samples)
        self.has_choices = is_multiple_choice and can_letter_choices and None not in letters
        target_texts = [
            sample.target if isinstance(sample.target, str) else ", ".join(sample.target) for sample in first_samples
        ]
        self.targets = [str(letter) for letter in letters] if self.has_choices else target_texts
        kind: Kind = CHOICE_KIND if self.has_choices else PROSE_KIND
        questions = {}
        for sample, target in zip(first_samples, self.targets, strict=True):
            options = tuple(sample.choices or ()) if self.has_choices else ()
            correct_index = LETTERS.upper().index(target) if options else None
            answer = target if correct_index is None else options[correct_index]
            question_id, text = f"{name}-{sample.id}", _input_text(sample.input).strip()
            questions[str(sample.id)] = Question(question_id, kind, text, answer.strip(), None, options, correct_index)
        inputs = json.dumps(
            [[str(sample.id), _input_text(sample.input), sample.choices, sample.target] for sample in first_samples]
        )
        digest = hashlib.sha256((inputs + log.plan.model_dump_json()).encode()).hexdigest()
        super().__init__("Inspect", name, kind, questions, errors, digest)

    @property
    def has_single_requests(self) -> bool:
        """Whether every sample took at most one model request, counting the requests of scorers."""
        return all(
            sum(event.event == "model" for event in sample.events) <= 1
            for samples in self.samples_by_id.values()
            for sample in samples
        )

    def find_answer(self, sample: str, question: Question) -> tuple[int | None, str, bool]:
        """Return the index and text of the option chosen in the first epoch, and whether the scorer found no option.

        If the task has no options, the index is None and the text is the completion.
        """
        first_epoch = self.samples_by_id[sample][0]
        if not self.has_choices:
            return None, first_epoch.output.completion.strip(), False
        letters = [_to_letter(score.answer or "", question.options) for score in (first_epoch.scores or {}).values()]
        option_index = next((LETTERS.upper().index(letter) for letter in letters if letter), None)
        return option_index, "" if option_index is None else question.options[option_index], option_index is None

    def compute_scores(self) -> dict[str, dict[str, float]]:
        """Return scores by sample and ``metric,scorer``; add notes on metrics that are not means over samples."""
        answered_samples = [name for name in self.samples_by_id if name not in self.errors]
        scores = SampleScores(self.samples_by_id, list(self.errors))
        if not answered_samples:
            return scores.by_sample
        complete_log = self._without() if self.errors else self.log

        @cache
        def metric_values_without(name: str) -> dict[str, float]:
            results = self._without(name).results
            return {
                key: value
                for score in (results.scores if results else ())
                for key, value in _metric_values(score).items()
            }

        for score in complete_log.results.scores if complete_log.results else ():
            values = self._values(score, complete_log)
            numbers = {name: value for name, value in values.items() if value is not None}
            for metric, metric_value in _metric_values(score).items():
                if values and len(numbers) == len(values) and is_mean(metric_value, list(numbers.values())):
                    scores.add(metric, numbers)
                elif len(values) == 1:
                    scores.add_aggregate(metric, metric_value, dict.fromkeys(values, metric_value))
                elif not values:
                    self.notes += (f"{self.name}: {metric} scores no sample.",)
                else:
                    parts = {name: metric_values_without(name).get(metric, np.nan) for name in values}
                    scores.add_aggregate(metric, metric_value, parts)
        self.notes += scores.notes(self.name, "Inspect")
        return scores.by_sample

    def _values(self, score: EvalScore, log: EvalLog) -> dict[str, float | None]:
        """Return each scored sample's value, reduced over epochs; None if the value of an epoch is not a number."""
        key = None if score.name == score.scorer else score.name
        scorer_and_reducer = (score.scorer, score.reducer)
        reduced_scores = next(
            (
                reduction.samples
                for reduction in log.reductions or ()
                if (reduction.scorer, reduction.reducer) == scorer_and_reducer
            ),
            None,
        )
        values: dict[str, list[float | None]] = defaultdict(list)
        if reduced_scores is not None:
            for sample_score in reduced_scores:
                values[str(sample_score.sample_id)].append(_to_number(sample_score.value, key))
        else:  # a metric that takes every epoch by itself
            for sample in log.samples or ():
                if sample.scores and score.scorer in sample.scores:
                    values[str(sample.id)].append(_to_number(sample.scores[score.scorer].value, key))
        results: dict[str, float | None] = {}
        for name, epoch_values in values.items():
            numbers = [value for value in epoch_values if value is not None]
            mean = sum(numbers) / len(numbers) if len(numbers) == len(epoch_values) else None
            if mean is None or np.isfinite(mean):
                results[name] = mean
        return results

    def _without(self, name: str = "") -> EvalLog:
        """Return the log with Inspect's metrics computed without failed samples and without the sample ``name``."""
        samples = [
            sample for sample in self.log.samples or () if str(sample.id) not in self.errors and str(sample.id) != name
        ]
        log = self.log.model_copy(update={"samples": samples})
        try:
            recompute_metrics(log)
        except Exception as error:  # a metric is anybody's code
            raise InputError(
                f"Inspect cannot compute the metrics of {self.name} again: {_error_sentence(error)}"
            ) from error
        return log
