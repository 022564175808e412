"""What an experiment keeps: its cells, and what came of every question in every cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from climassay.metrics.judged_accuracy import Judgement
from climassay.questions import Kind, Level, Question


@dataclass(frozen=True, slots=True)
class Cell:
    """One model in one setting on one task of one benchmark."""

    benchmark: str
    """Name of the question set."""
    model: str
    """The model's label in tables."""
    setting: str
    """The setting's label in tables."""
    task: Kind


@dataclass(frozen=True, slots=True)
class CellRecord:
    """How a cell was asked."""

    cell: Cell
    model: str
    """The model as the user named it."""
    fingerprint: str
    """Of the model with its adapter, where the setting has one."""
    setting: Mapping[str, object]
    """All settings, defaults filled in, for example collections, number of passages, examples, adapter."""
    prompt: str
    """Name of the template."""
    prompt_sha256: str
    asked: int
    """Answers asked for, not served from the records."""
    failed: int
    """Of all answers, those that failed."""
    notes: tuple[str, ...] = ()
    """What a reader must know, for example that contexts were cut to the model's window, or a leakage warning."""
    texts: str = ""
    """What the model was given or trained on beside the questions, for example ``5 examples``; empty for nothing."""
    contaminated: int | None = None
    """Questions that share a run of words with these texts, see :mod:`climassay.evaluation.cell_contamination`; None
    where no text is known."""
    dtype: str = ""
    """Number format that a local model computed in; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question, asked once in one cell, answered and scored.

    A question whose answer failed scores 0 in every metric of its task. A metric that could not be computed for an
    answer (its own model call failed) is missing from :attr:`scores`, and tables count it.
    """

    cell: Cell
    question: str
    """Id of the question."""
    level: Level | None
    answer: str
    """The text of the chosen option (mcq), or the text written (freeform, cloze); empty where there is none."""
    scores: Mapping[str, float]
    """By the names of :data:`METRICS`."""
    chosen: int | None = None
    """Index of the chosen option in the file's order (mcq); None where the answer named none."""
    probability: float | None = None
    """Probability of the chosen option among the options (mcq with log-probabilities)."""
    violations: tuple[str, ...] = ()
    """Answer constraints not kept, for example ``more than two sentences``."""
    passages: tuple[str, ...] = ()
    """Ids of the passages the model was given, see :attr:`Experiment.passages`."""
    error: str | None = None
    judgement: Judgement | None = None
    """What the judge says about the answer, with its reason (freeform, where the experiment has a judge)."""


@dataclass(frozen=True, slots=True)
class Metric:
    """How a metric is shown and compared."""

    name: str
    """Key in :attr:`Outcome.scores`."""
    label: str
    task: Kind
    binary: bool = False
    """Right or wrong: Wilson intervals, exact McNemar tests, shown as per cent. Else: bootstrap, sign flips."""
    published: str = ""
    """Name of the column in the published tables; empty for our additions."""


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", "mcq", binary=True, published="accuracy"),
        Metric("bleu_char", "BLEU (characters)", "freeform", published="bleu"),
        Metric("bleu", "BLEU (words)", "freeform"),
        Metric("bert_score", "BERTScore", "freeform", published="bert_score"),
        Metric("judged_accuracy", "accuracy as judged", "freeform"),
        Metric("factual_accuracy", "factual accuracy", "freeform", published="factual_accuracy"),
        Metric("supported", "supported", "freeform", binary=True),
        Metric("fact_precision", "fact precision", "freeform"),
        Metric("fact_recall", "fact recall", "freeform"),
        Metric("fact_f1", "fact F1", "freeform"),
        Metric("exact_match", "exact match", "cloze", binary=True, published="exact_match"),
        Metric("exact_match_normalised", "exact match, normalised", "cloze", binary=True),
        Metric("phrase_similarity", "phrase similarity", "cloze", published="phrase_similarity"),
    )
}
"""Every metric of an experiment, in the order of tables; all are means over questions."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A whole matrix: models x settings x tasks x benchmarks."""

    run: str
    """Id in the records."""
    name: str
    config: Mapping[str, object]
    """The experiment file as it was understood."""
    cells: tuple[CellRecord, ...]
    """In the order of the file."""
    outcomes: tuple[Outcome, ...]
    questions: Mapping[str, tuple[Question, ...]]
    """By benchmark."""
    passages: Mapping[str, str] = field(default_factory=dict)
    """Text of every passage that was given to a model, by id."""
    metric_sources: Mapping[str, str] = field(default_factory=dict)
    """What computed a metric, for example ``bert_score``: the encoder's name; for the notes of tables."""
