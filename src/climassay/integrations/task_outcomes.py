"""Convert another framework's results for a task's samples to outcomes of an experiment.

If a framework's metric is a mean over samples, the sample scores of the framework are used. Other metrics, such as a
macro-averaged F1, are not means of sample scores. For these, a sample's score is its jackknife pseudo-value: with T the
metric of all n samples and T_i the metric of all but sample i, ``T + (n - 1) * (mean of all T_j - T_i)``. The mean of
these is T exactly, and their spread gives its interval.

References:
    Efron and Stein (1981), The Jackknife Estimate of Variance, Annals of Statistics 9(3), section 1.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Generic, TypeGuard, TypeVar

import numpy as np

from climassay.evaluation import Cell, CellRecord, ConstantScore, HarnessCell, ModelSpec, Outcome
from climassay.metrics.registry import LOWER
from climassay.models.contract import Generator, number_format
from climassay.questions import Kind, Question
from climassay.records import RequestCounts

K = TypeVar("K")


def is_mean(metric_value: float, values: Sequence[Any]) -> "TypeGuard[Sequence[float]]":
    """Return whether all values are numbers and ``metric_value`` is their mean, up to 1e-9."""
    if not all(isinstance(value, Real | np.bool_) for value in values):
        return False
    return abs(metric_value - sum(float(value) for value in values) / len(values)) < 1e-9


class SampleScores(Generic[K]):
    """Scores of a task's samples, by metric.

    Args:
        samples: Ids of all samples.
        unanswered: Ids of samples without an answer. Their score is 0 or, if lower scores are better, the highest score
            of the others.
    """

    def __init__(self, samples: Iterable[K], unanswered: Collection[K]) -> None:
        self.by_sample: dict[K, dict[str, float]] = {sample: {} for sample in samples}
        self._unanswered: Collection[K] = unanswered
        self._jackknife_metrics: list[str] = []
        self._omitted_metrics: list[str] = []

    def add(self, metric: str, scores: Mapping[K, float]) -> None:
        """Add a metric that is the mean of the samples' scores.

        Args:
            metric: Name of the metric.
            scores: Scores by sample, without the unanswered samples; other samples that are missing get no score.
        """
        for sample, value in scores.items():
            self.by_sample[sample][metric] = value
        for sample in self._unanswered:
            self.by_sample[sample][metric] = max(scores.values(), default=0.0) if LOWER in metric else 0.0

    def add_aggregate(self, metric: str, total: float, leave_one_out: Mapping[K, float]) -> None:
        """Add a metric that is not the mean of the samples' scores, by its jackknife pseudo-values.

        Args:
            metric: Name of the metric.
            total: Value of the metric over all answered samples.
            leave_one_out: For each of these samples, the value of the metric over all others; NaN if it cannot be
                computed. If any value is NaN, the metric is omitted and a note is added.
        """
        values = np.array(list(leave_one_out.values()))
        pseudo_values = np.full(1, total) if len(values) == 1 else total + (len(values) - 1) * (values.mean() - values)
        if np.isfinite(pseudo_values).all():
            self.add(metric, dict(zip(leave_one_out, map(float, pseudo_values), strict=True)))
            self._jackknife_metrics.append(metric)
        else:
            self._omitted_metrics.append(metric)

    def notes(self, task: str, framework: str) -> tuple[str, ...]:
        """Return sentences on metrics without an interval and on those whose scores are pseudo-values."""
        omission_notes = [
            f"{task}: {metric} has no interval, for it cannot be computed without any one sample."
            for metric in self._omitted_metrics
        ]
        jackknife_note = (
            f"{task}: {', '.join(self._jackknife_metrics)} is not a mean over samples; a sample's score is its part "
            f"in the whole by the jackknife, and the mean of these is the figure of {framework}."
        )
        return (*omission_notes, *([jackknife_note] if self._jackknife_metrics else []))


class TaskOutcomes(Generic[K]):
    """Results of one model on a task of another framework.

    Args:
        framework: Name of the framework in notes.
        name: Name of the task.
        kind: Kind of the questions; ``mcq`` if every sample has options.
        questions: Questions by sample.
        errors: Messages of failed samples, by sample.
        prompts_sha256: SHA-256 of the prompts.
    """

    def __init__(
        self,
        framework: str,
        name: str,
        kind: Kind,
        questions: Mapping[K, Question],
        errors: Mapping[K, str],
        prompts_sha256: str,
    ) -> None:
        self.framework, self.name, self.kind, self.prompts_sha256 = framework, name, kind, prompts_sha256
        self.questions, self.errors = questions, errors
        self.notes: tuple[str, ...] = ()

    def compute_scores(self) -> Mapping[K, Mapping[str, float]]:
        """Return scores by sample and metric; subclasses may add to :attr:`notes`."""
        raise NotImplementedError

    def find_answer(self, sample: K, question: Question) -> tuple[int | None, str, bool]:
        """Return the index of the chosen option, the answer, and whether the answer names none of the choices.

        Only called for samples without an error.
        """
        raise NotImplementedError

    def cell(
        self,
        model: ModelSpec,
        label: str,
        loaded_model: Generator,
        setting: Mapping[str, Any],
        counts: RequestCounts,
        notes: Iterable[str] = (),
        constants: tuple[ConstantScore, ...] = (),
    ) -> HarnessCell:
        """Return this task's results for an experiment: each sample's outcome, and a record of model and settings."""
        cell, scores, outcomes = Cell(self.name, model.display_name, label, self.kind), self.compute_scores(), []
        for sample, question in self.questions.items():
            error = self.errors.get(sample)
            option_index, answer, is_unparsed = (None, "", False) if error else self.find_answer(sample, question)
            outcomes.append(
                Outcome(
                    cell=cell,
                    question=question.id,
                    level=None,
                    answer=answer,
                    scores=dict(scores.get(sample, {})),
                    chosen=option_index,
                    violations=("none of the choices",) if is_unparsed else (),
                    error=error,
                )
            )
        record = CellRecord(
            cell=cell,
            model=model.name,
            fingerprint=loaded_model.fingerprint,
            setting=dict(setting),
            prompt=f"{self.framework}, {self.name}",
            prompt_sha256=self.prompts_sha256,
            n_requested=counts.sent,
            failed=len(self.errors),
            notes=(*notes, *self.notes),
            dtype=number_format(loaded_model),
        )
        return HarnessCell(record, outcomes, tuple(self.questions.values()), constants, counts)
