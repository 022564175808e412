"""Text metrics of a table of answers, each with its mean and interval."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from climassay.errors import InputError, ModelError
from climassay.io import find_column, parse_rows, read_bytes, require_column
from climassay.metrics.cloze import WINDOW, phrases
from climassay.metrics.factual_accuracy import AnswerJudgement, judge_answers
from climassay.metrics.registry import METRICS, AnswerItem, Batch, Scorer
from climassay.models.contract import Generator
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.prompts import Prompt
from climassay.questions import GAP_KIND, PROSE_KIND
from climassay.statistics import Estimate, mean_estimate, proportion

JUDGED_ACCURACY = "judged_accuracy"


@dataclass(frozen=True, slots=True)
class ReferencedAnswer:
    """An answer with its reference answer."""

    id: str
    reference: str
    answer: str
    """Answer of a model; empty if it gave none, which is scored like any other answer."""
    statement: str = ""
    """Cloze statement with its gap; empty for a freeform answer."""
    question: str = ""
    """Question, which only a judge needs; empty if the file has none."""


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """Answers that were read from a file."""

    name: str
    rows: tuple[ReferencedAnswer, ...]
    skipped: tuple[str, ...]
    """A sentence for each row that cannot be used, with the row's number and the reason."""


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """Scores of all answers by several metrics, with their means."""

    rows: tuple[ReferencedAnswer, ...]
    scores: Mapping[str, tuple[float | None, ...]]
    """Scores by metric, one per answer; None if the metric does not apply to the answer."""
    means: Mapping[str, Estimate]
    """Mean by metric, over the answers with a score."""
    pooled: Mapping[str, float]
    """Score of all answers together by metric, for metrics such as BLEU for which it differs from the mean."""
    sources: Mapping[str, str]
    """Source of each metric's scores: an encoder's name, sacreBLEU's signature, or the judge's name."""
    judgements: Mapping[int, AnswerJudgement] = field(default_factory=dict)
    """Judgements by index of the answer; empty without a judge."""


_COLUMNS = {
    "id": ("id",),
    "question": ("question",),
    "statement": ("statement",),
    "reference": ("reference", "reference_answer", "gold"),
    "answer": ("answer", "model_answer", "prediction", "response"),
}
"""Accepted names for each column of a table of answers, in order of preference."""


def read_answers(path: str | Path) -> AnswerTable:
    """Read answers from a table (CSV, TSV, JSON lines, JSON or Parquet, also gzipped).

    Args:
        path: File with the columns ``reference`` and ``answer`` (or ``prediction`` or ``response``); case is ignored.
            Cloze answers also need ``statement``, or a ``question`` with a gap. The columns ``question``, for the
            judge, and ``id`` are optional.

    Raises:
        InputError: The file cannot be read, lacks a column, or has no usable row.
    """
    file = Path(path)
    rows = list(parse_rows(file, read_bytes(file)))
    if not rows:
        raise InputError(f"{file} has no rows: there is nothing to score.")
    names = list(dict.fromkeys(name for row in rows for name in row if isinstance(name, str)))
    columns = {name: find_column(names, *_COLUMNS[name]) for name in _COLUMNS}
    for name in ("reference", "answer"):
        columns[name] = columns[name] or require_column(file, names, name)
    answers: list[ReferencedAnswer] = []
    skip_reasons: list[str] = []
    for row_number, row in enumerate(rows, start=1):
        try:
            cells = {name: str(row.get(column or name) or "") for name, column in columns.items()}
            reference, statement, question = cells["reference"], cells["statement"], cells["question"]
            if not reference.strip():
                raise InputError("the reference is empty")
            if statement:
                phrases(statement, reference, "")
            elif question:
                with suppress(InputError):  # a question without a gap
                    phrases(question, reference, "")
                    statement = question
            answers.append(
                ReferencedAnswer(cells["id"] or str(row_number), reference, cells["answer"], statement, question)
            )
        except InputError as error:
            skip_reasons.append(f"row {row_number}: {error}")
    if not answers:
        raise InputError(f"{file} has no usable row; the first one fails because {skip_reasons[0]}")
    return AnswerTable(file.name, tuple(answers), tuple(skip_reasons))


def score_answers(
    rows: Sequence[ReferencedAnswer],
    metrics: Sequence[str] | None = None,
    *,
    encoder: str = BUNDLED_ENCODER,
    window: int | None = WINDOW,
    seed: int = 0,
    judge: Generator | None = None,
    judge_prompt: Prompt | None = None,
) -> AnswerScores:
    """Score answers against their references by several metrics.

    Args:
        rows: Answers; those with a statement are cloze answers, the others freeform answers.
        metrics: Names of metrics in :data:`METRICS`, which are computed for all answers; phrase similarity only for
            cloze answers. By default each answer is scored by the metrics of its kind.
        encoder: Encoder of BERTScore and phrase similarity.
        window: Number of words on each side of the gap that phrase similarity compares; None for the whole statement.
        seed: Seed of the bootstrap.
        judge: Strong model that computes ``judged_accuracy``; without one, this metric is left out.
        judge_prompt: Prompt template of the judge; the built-in template by default.

    Raises:
        InputError: There are no answers, a metric does not exist, phrase similarity is requested without statements, or
            judged accuracy without a judge or questions.
        ModelError: The encoder cannot be loaded, or the judge failed for every answer.
    """
    if not rows:
        raise InputError("There are no answers to score.")
    scorer = Scorer(encoder, encoder, window=window, judge=judge)
    available_metrics = [
        metric
        for metric in METRICS.values()
        if metric.name == JUDGED_ACCURACY or (metric.score is not None and not metric.needs)
    ]
    names = [metric.name for metric in available_metrics]
    unknown_names = [name for name in metrics or () if name not in names]
    if unknown_names:
        raise InputError(f"{unknown_names[0]!r} is not a metric of answers: they are {', '.join(names)}.")
    if judge is None and JUDGED_ACCURACY in (metrics or ()):
        raise InputError("Judged accuracy needs a judge: name a strong model (--judge openai:NAME).")
    scores: dict[str, tuple[float | None, ...]] = {}
    means: dict[str, Estimate] = {}
    pooled_scores: dict[str, float] = {}
    judgements: dict[int, AnswerJudgement] = {}
    selected_metrics = [METRICS[name] for name in metrics] if metrics is not None else available_metrics
    selected_metrics += [METRICS[JUDGED_ACCURACY]] if judge is not None else []
    for metric in dict.fromkeys(selected_metrics):
        if metric.score is None:
            if judge is None:
                continue
            judgements = _judge_rows(rows, judge, judge_prompt)
            results = {index: judgement.score for index, judgement in judgements.items()}
        else:
            if metric.name == "phrase_similarity":
                indices = [index for index, row in enumerate(rows) if row.statement]
                if metrics is not None and not indices:
                    raise InputError(
                        "Phrase similarity needs cloze statements: a column statement with a gap (<MASK>)."
                    )
            else:
                kinds = [GAP_KIND if row.statement else PROSE_KIND for row in rows]
                indices = [index for index, kind in enumerate(kinds) if metrics is not None or metric.scores(kind)]
            if not indices:
                continue
            items = [
                AnswerItem(row.statement or row.question, row.reference, row.answer)
                for row in (rows[index] for index in indices)
            ]
            results = dict(zip(indices, Batch(items, scorer).scores(metric), strict=True))
            if metric.pooled is not None:
                references, answers = [item.reference for item in items], [item.answer for item in items]
                pooled_scores[metric.name] = metric.pooled(references, answers)
        values = [value for value in results.values() if value is not None]
        scores[metric.name] = tuple(results.get(index) for index in range(len(rows)))
        means[metric.name] = (
            proportion(round(sum(values)), len(values)) if metric.binary else mean_estimate(values, seed=seed)
        )
    sources = {name: METRICS[name].source(scorer) for name in scores}
    return AnswerScores(tuple(rows), scores, means, pooled_scores, sources, judgements)


def _judge_rows(
    rows: Sequence[ReferencedAnswer], judge: Generator, prompt: Prompt | None
) -> dict[int, AnswerJudgement]:
    """Judge the freeform answers that have a question; return the judgements by index of the answer."""
    indices = [index for index, row in enumerate(rows) if row.question.strip() and not row.statement]
    if not indices:
        raise InputError("Judged accuracy needs the questions: a column question next to reference and answer.")
    items = [(rows[index].question, rows[index].reference, rows[index].answer) for index in indices]
    judgements = judge_answers(items, judge, prompt=prompt)
    if all(judgement.verdict is None for judgement in judgements):
        raise ModelError(f"The judge failed for every answer: {judgements[0].error}")
    return dict(zip(indices, judgements, strict=True))
