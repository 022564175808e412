"""All text metrics of a table of answers, each with its mean and interval."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from climassay.errors import InputError, ModelError
from climassay.io import listed_names, parse_rows, read_bytes
from climassay.metrics.cloze import WINDOW, phrases
from climassay.metrics.factual_accuracy import AnswerJudgement, judge_answers
from climassay.metrics.registry import METRICS, Answered, Batch, Scorer
from climassay.models.contract import Generator
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.prompts import Prompt
from climassay.statistics import Estimate, mean_estimate, proportion

JUDGED = "judged_accuracy"


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer and what it is compared with."""

    id: str
    reference: str
    answer: str
    """Empty where the model gave none; it scores as it is."""
    statement: str = ""
    """The cloze statement with its gap; empty for freeform answers."""
    question: str = ""
    """What was asked; empty where the file does not say."""


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """The rows of a file, and which could not be used."""

    name: str
    rows: tuple[AnswerRow, ...]
    skipped: tuple[str, ...]
    """One sentence for each row that was left out, with its number."""


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """Scores of every row and their means."""

    rows: tuple[AnswerRow, ...]
    scores: Mapping[str, tuple[float | None, ...]]
    """By metric, one value per row; None where the metric does not go with the row."""
    means: Mapping[str, Estimate]
    """By metric, over the rows that have it."""
    pooled: Mapping[str, float]
    """BLEU of all rows together, which is not the mean of the rows' BLEU."""
    sources: Mapping[str, str]
    """What computed a metric: an encoder's name, sacreBLEU's signature, the judge."""
    judgements: Mapping[int, AnswerJudgement] = field(default_factory=dict)
    """What the judge said, by place of the row; empty without one. Failures have no score and count in no mean."""


ANSWER_METRICS = METRICS


def read_answers(path: str | Path) -> AnswerTable:
    """Answers from a table (CSV, TSV, JSON lines, JSON array, Parquet, gzip included).

    Args:
        path: Columns ``reference`` and ``answer``; ``statement`` (or a ``question`` with a gap) for cloze answers;
            ``question`` for the judge; ``id`` where there is one.

    Raises:
        InputError: The file cannot be read, lacks a column, or has no usable row.
    """
    file = Path(path)
    rows = list(parse_rows(file, read_bytes(file)))
    if not rows:
        raise InputError(f"{file} has no rows: there is nothing to score.")
    lacking = [name for name in ("reference", "answer") if not any(name in row for row in rows)]
    if lacking:
        raise InputError(f"{file} has no column {lacking[0]!r}; its columns are {listed_names(rows[0])}.")
    kept: list[AnswerRow] = []
    skipped: list[str] = []
    for number, row in enumerate(rows, start=1):
        try:
            cells = {name: "" if value is None else str(value) for name, value in row.items() if isinstance(name, str)}
            reference, statement = cells.get("reference", ""), cells.get("statement", "")
            if not reference.strip():
                raise InputError("the reference is empty")
            if statement:
                phrases(statement, reference, "")
            elif "question" in cells:
                with suppress(InputError):  # a question without a gap
                    phrases(cells["question"], reference, "")
                    statement = cells["question"]
            kept.append(
                AnswerRow(
                    cells.get("id") or str(number),
                    reference,
                    cells.get("answer", ""),
                    statement,
                    cells.get("question", ""),
                )
            )
        except InputError as error:
            skipped.append(f"row {number}: {error}")
    if not kept:
        raise InputError(f"{file} has no usable row; the first one fails because {skipped[0]}")
    return AnswerTable(file.name, tuple(kept), tuple(skipped))


def score_answers(
    rows: Sequence[AnswerRow],
    metrics: Sequence[str] | None = None,
    *,
    encoder: str = BUNDLED_ENCODER,
    window: int | None = WINDOW,
    seed: int = 0,
    judge: Generator | None = None,
    judge_prompt: Prompt | None = None,
) -> AnswerScores:
    """Score answers by the metrics that go with them.

    Args:
        rows: Answers with a statement are cloze answers, the others freeform answers.
        metrics: Names of :data:`METRICS`, computed for all rows (phrase similarity for those with a statement);
            by default the metrics of cloze answers for those and the metrics of freeform answers for the others.
        encoder: For BERTScore and phrase similarity.
        window: Words on each side of a gap; None is the whole statement.
        seed: Seed of the bootstrap.
        judge: A strong model for ``judged_accuracy``, which is left out without one.
        judge_prompt: The judge's template; the built-in one by default.

    Raises:
        InputError: No rows, a name that is not a metric, phrase similarity without any statement, or judged accuracy
            without a judge or without any question.
        ModelError: The encoder cannot be loaded, or the judge failed for every answer.
    """
    if not rows:
        raise InputError("There are no answers to score.")
    scorer = Scorer(encoder, encoder, window=window, judge=judge)
    usable = [one for one in METRICS.values() if one.name == JUDGED or (one.score is not None and not one.needs)]
    unknown = [name for name in metrics or () if name not in {one.name for one in usable}]
    if unknown:
        known = ", ".join(one.name for one in usable)
        raise InputError(f"{unknown[0]!r} is not a metric of answers: they are {known}.")
    if judge is None and JUDGED in (metrics or ()):
        raise InputError("Judged accuracy needs a judge: name a strong model (--judge openai:NAME).")
    scores: dict[str, tuple[float | None, ...]] = {}
    means: dict[str, Estimate] = {}
    pooled: dict[str, float] = {}
    judgements: dict[int, AnswerJudgement] = {}
    wanted = [METRICS[name] for name in metrics] if metrics is not None else usable
    wanted += [METRICS[JUDGED]] if judge is not None else []
    for one in dict.fromkeys(wanted):
        if one.score is None:
            if judge is None:
                continue
            places = [place for place, row in enumerate(rows) if row.question.strip() and not row.statement]
            if not places:
                raise InputError("Judged accuracy needs the questions: a column question beside reference and answer.")
            asked = [(rows[place].question, rows[place].reference, rows[place].answer) for place in places]
            judged = judge_answers(asked, judge, prompt=judge_prompt)
            if all(judgement.verdict is None for judgement in judged):
                raise ModelError(f"The judge failed for every answer: {judged[0].error}")
            judgements = dict(zip(places, judged, strict=True))
            results = {place: judgement.score for place, judgement in judgements.items()}
        else:
            if one.name == "phrase_similarity":
                places = [place for place, row in enumerate(rows) if row.statement]
                if metrics is not None and not places:
                    raise InputError(
                        "Phrase similarity needs cloze statements: a column statement with a gap (<MASK>)."
                    )
            else:
                kinds = ["cloze" if row.statement else "freeform" for row in rows]
                places = [n for n, kind in enumerate(kinds) if metrics is not None or kind in one.kinds]
            if not places:
                continue
            chosen = [rows[place] for place in places]
            items = [Answered(row.statement or row.question, row.reference, row.answer) for row in chosen]
            results = dict(zip(places, Batch(items, scorer).scores(one), strict=True))
            if one.pooled is not None:
                pooled[one.name] = one.pooled([item.reference for item in items], [item.answer for item in items])
        values = [value for value in results.values() if value is not None]
        scores[one.name] = tuple(results.get(place) for place in range(len(rows)))
        means[one.name] = (
            proportion(round(sum(values)), len(values)) if one.binary else mean_estimate(values, seed=seed)
        )
    sources = {name: METRICS[name].source(scorer) for name in scores}
    return AnswerScores(tuple(rows), scores, means, pooled, sources, judgements)
