"""Tasks of lm-evaluation-harness in an experiment: climassay's recorded models answer, and the harness scores.

The harness builds the prompts, filters the answers and scores each sample. Every sample becomes an outcome, so that
intervals, paired tests, tables and pages are the same as in other experiments. Scores have the harness's names of
metric and filter, for example ``acc,none`` or ``exact_match,strict``.
"""

import hashlib
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from lm_eval.evaluator import evaluate
from lm_eval.tasks import TaskManager

from climassay import evaluation
from climassay.errors import InputError
from climassay.integrations.lm_eval_model import UNKNOWN_LOGPROB, ClimassayLM, SampleKey
from climassay.integrations.task_outcomes import SampleScores, TaskOutcomes, is_mean
from climassay.metrics.registry import LOWER
from climassay.models.contract import Generator
from climassay.questions import CHOICE_KIND, LETTERS, PROSE_KIND, Question
from climassay.records import RecordedModel, RequestCounts
from climassay.settings import resolve_file

Aggregate = Callable[[list[Any]], Any]


def run_tasks(
    plan: evaluation.ExperimentPlan,
    model: evaluation.ModelSpec,
    ask: evaluation.RecordModel,
    progress: evaluation.ExperimentCallbacks,
    *,
    load: Callable[[evaluation.ModelSpec], Generator],
) -> evaluation.HarnessCells:
    """Evaluate one model on all lm-evaluation-harness tasks of a plan, with each number of examples.

    Args:
        plan: Experiment with the tasks in :attr:`~ExperimentPlan.lm_eval`; its limit is the number of samples per task.
        model: Entry of the model to evaluate.
        ask: Function that wraps a loaded model so that its answers are recorded.
        progress: Callbacks that follow the run.
        load: Function that loads a model for the harness; the model is closed afterwards.

    Raises:
        InputError: A task does not exist or cannot be loaded.
        ModelError: The model cannot be loaded, or lacks what a task needs, such as log-probabilities.
    """
    spec, cells, groups = plan.lm_eval, [], {}
    for label, shots in spec.settings:
        loaded_tasks = load_tasks(spec, plan.folder)
        tasks: dict[str, Any] = loaded_tasks["tasks"]
        tasks_with_fixed_examples = [
            name for name, task in tasks.items() if not set_example_count(task, shots, plan.seed)
        ]
        groups = loaded_tasks["task_groups"]
        loaded_model = load(model)
        try:
            recorded_model = ask(loaded_model)
            assert isinstance(recorded_model, RecordedModel)
            harness_model = ClimassayLM.of_model(recorded_model, max_gen_toks=spec.max_gen_toks, progress=progress)
            for name in tasks:
                progress.on_cell(evaluation.Cell(name, model.display_name, label, CHOICE_KIND), "asked")
            sample_indices = {
                name: evaluation.draw_indices(len(task.eval_docs), plan.limit, plan.seed)
                for name, task in tasks.items()
            }
            harness_results: Any = evaluate(
                harness_model,
                loaded_tasks,
                samples=sample_indices,
                bootstrap_iters=0,
                apply_chat_template=spec.chat_template,
            )
            counts = recorded_model.tally
            for name, task in tasks.items():
                result = _HarnessOutcomes(
                    name, task, harness_results["samples"][name], harness_model, sample_indices[name]
                )
                notes = (
                    [f"{name} says itself how many examples it has."]
                    if name in tasks_with_fixed_examples and shots
                    else []
                )
                if harness_model.generates_choices and task.OUTPUT_TYPE == "multiple_choice":
                    notes.append(
                        f"{name}: the model wrote its choice, for a server gives no log-probabilities of texts."
                    )
                settings = {
                    "num_fewshot": task.get_config("num_fewshot"),
                    "chat_template": spec.chat_template,
                    "version": task.VERSION,
                    "lm_eval": version("lm_eval"),
                }
                cells.append(result.cell(model, label, loaded_model, settings, counts, notes, result.constant_scores()))
                counts = RequestCounts()  # asked once, counted once
        finally:
            loaded_model.close()
    return evaluation.HarnessCells(cells, groups)


def load_tasks(spec: evaluation.HarnessSpec, folder: Path) -> dict[str, Any]:
    """Load a plan's tasks and groups for the harness's ``evaluate``.

    The additional entry ``task_groups`` contains, by group, the tasks over which the group's scores are averaged.

    Raises:
        InputError: A folder or task does not exist, or a task cannot be loaded, for example without a network.
    """
    paths = [str(resolve_file(folder, path)) for path in spec.include_path]
    for path in paths:
        if not Path(path).is_dir():
            raise InputError(f"{path} is not a folder with tasks of lm-evaluation-harness.")
    manager = TaskManager(include_path=paths, include_defaults=False)
    names = [result for name in spec.tasks for result in _match_tasks(manager, name, folder)]
    if None in names:  # looking through the thousands of tasks that the harness brings takes a while
        manager = TaskManager(include_path=paths, include_defaults=True)
        names = [result for name in spec.tasks for result in _match_tasks(manager, name, folder)]
    if None in names:
        missing_name = next(name for name in spec.tasks if None in _match_tasks(manager, name, folder))
        raise InputError(
            f"lm-evaluation-harness has no task, group or tag {missing_name!r}"
            + (
                f", and {', '.join(spec.include_path)} brings none."
                if paths
                else ": name its folder with --include-path."
            )
        )
    try:
        # Loaded one by one because a task may belong to several groups and tags; its first definition is used.
        parts = [manager.load(name) for name in dict.fromkeys(map(str, names))]
    except Exception as error:  # a task is anybody's YAML and code, and its data may lie on a hub
        raise InputError(
            f"The tasks {', '.join(spec.tasks)} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    entries_by_part: dict[str, dict[str, Any]] = {
        part: {name: entry for result in reversed(parts) for name, entry in result[part].items()}
        for part in ("tasks", "groups")
    }
    groups: dict[str, tuple[evaluation.TaskGroup, ...]] = {}
    for name, group in entries_by_part["groups"].items():
        members = tuple(task.task_name for task in group.get_all_tasks())
        groups[name] = tuple(
            evaluation.TaskGroup(
                members,
                metric.metric,
                None if metric.filter_list is None else tuple(metric.filter_list),
                metric.weight_by_size,
            )
            for metric in group.aggregate_metric_list or ()
        )
    for name_or_tag in map(str, names):
        entry = manager.task_index.get(name_or_tag)
        if entry is not None and entry.kind.name == "TAG":
            groups[name_or_tag] = (
                evaluation.TaskGroup(tuple(task for task in entries_by_part["tasks"] if task in entry.tags)),
            )
    return {**entries_by_part, "task_groups": {name: result for name, result in groups.items() if result}}


def _match_tasks(manager: TaskManager, name: str, folder: Path) -> list[str | None]:
    """Return the names of the tasks that match ``name``, which may be a pattern; [None] if none match.

    If ``name`` ends in ``.yaml`` or ``.yml``, return the path of that file; [None] if it does not exist.
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(resolve_file(folder, name))
        return [str(path) if path.is_file() else None]
    return list(manager.match_tasks([name])) or [None]


def set_example_count(task: Any, shots: int | None, seed: int) -> bool:
    """Set the number of a task's examples and their seed as the harness's command does.

    A task that requires 0 examples keeps that number.

    Returns:
        Whether the task now has ``shots`` examples; always True if ``shots`` is None.
    """
    n_examples = task.get_config("num_fewshot")
    if n_examples is None or (shots is not None and n_examples != 0):
        task.set_config(key="num_fewshot", value=shots or 0)
    task.set_fewshot_seed(seed=seed)
    return shots is None or task.get_config("num_fewshot") == shots


def _mean(values: list[Any]) -> Any:
    return sum(values) / len(values)


def _aggregate_values(aggregate: Aggregate, values: list[Any]) -> dict[str, float]:
    with redirect_stdout(io.StringIO()):  # some tasks print while they count
        result = aggregate(values)
    values_by_suffix = (
        {f".{name}": value for name, value in result.items()} if isinstance(result, Mapping) else {"": result}
    )
    return {name: float(value) for name, value in values_by_suffix.items() if isinstance(value, Real | np.bool_)}


class _HarnessOutcomes(TaskOutcomes[int]):
    """Outcomes of a task's samples, parsed from the harness's log, which has one entry per sample and filter.

    Errors and unparsed answers come from the evaluated model.
    """

    def __init__(
        self,
        name: str,
        task: Any,
        samples: Sequence[Mapping[str, Any]],
        model: ClimassayLM,
        sample_indices: Sequence[int],
    ) -> None:
        self.task = task
        self.samples_by_doc: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for sample in samples:
            self.samples_by_doc[sample["doc_id"]].append(sample)
        # Requests number the drawn samples; the harness's log has the samples' indices in the full task.
        docs_by_key: dict[SampleKey, int] = {
            (name, number): doc for number, doc in enumerate(sample_indices) if doc in self.samples_by_doc
        }
        errors = {doc: model.failures[key] for key, doc in docs_by_key.items() if key in model.failures}
        self.unparsed = {doc for key, doc in docs_by_key.items() if key in model.unparsed}
        choices: dict[int, tuple[str, ...]] = dict.fromkeys(self.samples_by_doc, ())
        if task.OUTPUT_TYPE == "multiple_choice" and not task.multiple_input:
            choices = {
                doc: tuple(map(str, task.doc_to_choice(result[0]["doc"])))
                for doc, result in self.samples_by_doc.items()
            }
        self.choices = choices if all(1 < len(texts) <= len(LETTERS) for texts in choices.values()) else {}
        kind = CHOICE_KIND if self.choices else PROSE_KIND
        questions = {}
        for doc, (sample, *_) in self.samples_by_doc.items():
            options, target = self.choices.get(doc, ()), sample["target"]
            first_target = target[0] if isinstance(target, list) and target else target
            correct_index = None
            if options:
                correct_index = (
                    first_target
                    if isinstance(first_target, int)
                    else options.index(first_target)
                    if first_target in options
                    else None
                )
                correct_index = (
                    correct_index if correct_index is not None and 0 <= correct_index < len(options) else None
                )
            text = task.doc_to_text(sample["doc"])
            prompt_text = text if isinstance(text, str) else sample["arguments"][0][0]
            answer = str(first_target) if correct_index is None else options[correct_index]
            questions[doc] = Question(
                f"{name}-{doc}", kind, prompt_text.strip(), answer.strip(), None, options, correct_index
            )
        hashes = [result[0]["prompt_hash"] for result in self.samples_by_doc.values()]
        digest = hashlib.sha256("".join(hashes).encode()).hexdigest()
        super().__init__("lm-evaluation-harness", name, kind, questions, errors, digest)

    def find_answer(self, sample: int, question: Question) -> tuple[int | None, str, bool]:
        """Return index and text of the most likely choice, and whether the answer names no choice.

        If the task has no choices, the index is None and the text is the generated text.
        """
        responses = self.samples_by_doc[sample][0]["filtered_resps"]
        if sample in self.unparsed:
            return None, "", True
        if self.choices:
            choice_index = int(np.argmax([float(response[0]) for response in responses[: len(question.options)]]))
            return choice_index, question.options[choice_index], False
        return None, str(responses[0]).strip() if self.task.OUTPUT_TYPE == "generate_until" else "", False

    def compute_scores(self) -> dict[int, dict[str, float]]:
        """Return scores by sample and ``metric,filter``; add notes on metrics that are not means over samples."""
        values: dict[tuple[str, str], dict[int, Any]] = defaultdict(dict)
        for doc, samples in self.samples_by_doc.items():
            if doc not in self.errors and doc not in self.unparsed:
                for sample in samples:
                    for metric in sample["metrics"]:
                        values[metric, sample["filter"]][doc] = sample[metric]
        scores = SampleScores(
            self.samples_by_doc, [doc for doc in self.samples_by_doc if doc in self.errors or doc in self.unparsed]
        )
        for (metric, filter_name), value_by_doc in values.items():
            sample_values, aggregate = list(value_by_doc.values()), self._aggregate(metric)
            totals = _aggregate_values(aggregate, sample_values)
            metric_names = {suffix: self._metric_name(metric, suffix, filter_name) for suffix in totals}
            if list(totals) == [""] and is_mean(totals[""], sample_values):
                scores.add(metric_names[""], dict(zip(value_by_doc, map(float, sample_values), strict=True)))
                continue
            # Whichever of several equal values is left out, the totals are the same.
            totals_without_value: dict[str, dict[str, float]] = {}
            for index, value in enumerate(sample_values):
                if (key := repr(value)) not in totals_without_value and len(sample_values) > 1:
                    other_values = sample_values[:index] + sample_values[index + 1 :]
                    totals_without_value[key] = _aggregate_values(aggregate, other_values)
            for suffix, metric_name in metric_names.items():
                leave_one_out = {
                    doc: totals_without_value.get(repr(value), {}).get(suffix, np.nan)
                    for doc, value in value_by_doc.items()
                }
                scores.add_aggregate(metric_name, totals[suffix], leave_one_out)
        self.notes += scores.notes(self.name, "the harness")
        return scores.by_sample

    def _metric_name(self, metric: str, suffix: str, filter_name: str) -> str:
        is_higher_better = self.task.higher_is_better().get(metric, True)
        return f"{metric}{suffix}{'' if is_higher_better else LOWER},{filter_name}".replace(" ", "_")

    def _aggregate(self, metric: str) -> Aggregate:
        result: Aggregate = self.task.aggregation().get(metric, _mean)
        return result

    def constant_scores(self) -> tuple[evaluation.ConstantScore, ...]:
        """Return the harness's scores of a model that always answers with the most frequent target of the task.

        If the samples have different choices, the answer is the most frequent letter. Return () if the output type of
        the task is not supported, or if its code fails on this answer.
        """
        if self.task.OUTPUT_TYPE not in ("multiple_choice", "generate_until"):
            return ()
        by_letter = bool(self.choices) and len(set(self.choices.values())) > 1
        targets = [
            (LETTERS[question.correct] if by_letter and question.correct is not None else question.answer)
            for question in self.questions.values()
        ]
        answer = Counter(targets).most_common(1)[0][0]
        values: dict[str, list[Any]] = defaultdict(list)
        with suppress(Exception), redirect_stdout(io.StringIO()):  # a task's own code may take no answer but a model's
            for question, samples in zip(self.questions.values(), self.samples_by_doc.values(), strict=True):
                for metric, value in self._score_constant(answer, question, samples[0], by_letter=by_letter).items():
                    values[metric].append(value)
            return tuple(
                evaluation.ConstantScore(
                    self.name,
                    self._metric_name(metric, suffix, filter_name),
                    evaluation.OVERALL,
                    answer,
                    total,
                    self.kind,
                )
                for metric, column in values.items()
                for suffix, total in _aggregate_values(self._aggregate(metric), column).items()
                for filter_name in dict.fromkeys(
                    sample["filter"] for sample in next(iter(self.samples_by_doc.values()))
                )
            )
        return ()

    def _score_constant(
        self, answer: str, question: Question, sample: Mapping[str, Any], *, by_letter: bool
    ) -> dict[str, Any]:
        responses: list[Any] = [answer]
        if self.choices:
            choices = LETTERS[: len(question.options)] if by_letter else question.options
            responses = [(0.0, True) if name == answer else (UNKNOWN_LOGPROB, False) for name in choices]
            responses += [(0.0, False)] * (len(sample["arguments"]) - len(responses))
        scores: dict[str, Any] = self.task.process_results(sample["doc"], responses)
        return scores
