"""All text metrics of a table of answers, each with its mean and interval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from climassay.errors import InputError, ModelError
from climassay.metrics.bert_score import bert_score
from climassay.metrics.bleu import bleu, bleu_each, bleu_signature, character_bleu, character_bleu_each
from climassay.metrics.exact_match import exact_match, exact_match_normalised
from climassay.metrics.judged_accuracy import Judgement, judge_answers
from climassay.metrics.phrase_similarity import WINDOW, ClozeAnswer, phrase_similarities, phrases, sentence_encoder
from climassay.models.contract import Generator
from climassay.models.encoder import BUNDLED_ENCODER
from climassay.prompts import Prompt
from climassay.questions.rows import Row, parse_rows, read_bytes
from climassay.statistics import Estimate, mean_estimate, proportion


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
class AnswerMetric:
    """A metric of single answers."""

    label: str
    cloze: bool
    """Whether it is one of cloze answers; the others are of freeform answers."""
    binary: bool = False
    """Right or wrong: its interval is Wilson's, else a bootstrap over answers."""


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """Scores of every row and their means."""

    rows: tuple[AnswerRow, ...]
    scores: Mapping[str, tuple[float | None, ...]]
    """By metric, one value a row; None where the metric does not go with the row."""
    means: Mapping[str, Estimate]
    """By metric, over the rows that have it."""
    pooled: Mapping[str, float]
    """BLEU of all rows together, which is not the mean of the rows' BLEU."""
    sources: Mapping[str, str]
    """What computed a metric: an encoder's name, sacreBLEU's signature, the judge."""
    judgements: Mapping[int, Judgement] = field(default_factory=dict)
    """What the judge said, by place of the row; empty without one. Failures have no score and count in no mean."""


ANSWER_METRICS: Mapping[str, AnswerMetric] = {
    "bleu_char": AnswerMetric("BLEU (characters)", cloze=False),
    "bleu": AnswerMetric("BLEU (words)", cloze=False),
    "bert_score": AnswerMetric("BERTScore (F1)", cloze=False),
    "judged_accuracy": AnswerMetric("accuracy as judged", cloze=False),
    "exact_match": AnswerMetric("exact match", cloze=True, binary=True),
    "exact_match_normalised": AnswerMetric("exact match, normalised", cloze=True, binary=True),
    "phrase_similarity": AnswerMetric("phrase similarity", cloze=True),
}
"""By name, in the order of tables."""


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
        columns = ", ".join(map(str, rows[0]))
        raise InputError(f"{file} has no column {lacking[0]!r}; its columns are {columns}.")
    kept: list[AnswerRow] = []
    skipped: list[str] = []
    for number, row in enumerate(rows, start=1):
        try:
            kept.append(_row(row, number))
        except InputError as error:
            skipped.append(f"row {number}: {error}")
    if not kept:
        raise InputError(f"{file} has no usable row; the first fails because {skipped[0]}")
    return AnswerTable(file.name, tuple(kept), tuple(skipped))


def _row(row: Row, number: int) -> AnswerRow:
    cells = {name: "" if value is None else str(value) for name, value in row.items() if isinstance(name, str)}
    reference, statement = cells.get("reference", ""), cells.get("statement", "")
    if not reference.strip():
        raise InputError("the reference is empty")
    if not statement and _has_gap(cells.get("question", ""), reference):
        statement = cells["question"]
    if statement:
        phrases(statement, reference, "")
    return AnswerRow(
        cells.get("id") or str(number), reference, cells.get("answer", ""), statement, cells.get("question", "")
    )


def _has_gap(text: str, reference: str) -> bool:
    try:
        phrases(text, reference, "")
    except InputError:
        return False
    return True


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
        metrics: Names of :data:`ANSWER_METRICS`, computed for all rows (phrase similarity for those with a statement);
            by default the metrics of cloze answers for those and the metrics of freeform answers for the others.
        encoder: For BERTScore and phrase similarity.
        window: Words on each side of a gap; None is the whole statement.
        seed: Of the bootstrap.
        judge: A strong model for ``judged_accuracy`` (:mod:`climassay.metrics.judged_accuracy`), which is left out
            without one.
        judge_prompt: The judge's template; the built-in one by default.

    Raises:
        InputError: No rows, a name that is no metric, phrase similarity without any statement, or judged accuracy
            without a judge or without any question.
        ModelError: The encoder cannot be loaded, or the judge failed for every answer.
    """
    if not rows:
        raise InputError("There are no answers to score.")
    unknown = [name for name in metrics or () if name not in ANSWER_METRICS]
    if unknown:
        raise InputError(f"{unknown[0]!r} is no metric of answers: they are {', '.join(ANSWER_METRICS)}.")
    scores: dict[str, tuple[float | None, ...]] = {}
    means: dict[str, Estimate] = {}
    pooled: dict[str, float] = {}
    judgements: dict[int, Judgement] = {}
    wanted = [*(metrics if metrics is not None else ANSWER_METRICS), *(("judged_accuracy",) if judge else ())]
    for name in dict.fromkeys(wanted):
        if name == "judged_accuracy":
            if judge is not None:
                judgements = _judged(rows, judge, judge_prompt)
                scores[name] = tuple(
                    one.score if (one := judgements.get(place)) else None for place in range(len(rows))
                )
                means[name] = mean_estimate([score for score in scores[name] if score is not None], seed=seed)
            elif metrics is not None:
                raise InputError("Judged accuracy needs a judge: name a strong model (--judge openai:NAME).")
            continue
        places = _places(rows, name, asked=metrics is not None)
        if not places:
            continue
        chosen = [rows[place] for place in places]
        values = _values(name, chosen, encoder, window)
        found = dict(zip(places, values, strict=True))
        scores[name] = tuple(found.get(place) for place in range(len(rows)))
        binary = ANSWER_METRICS[name].binary
        means[name] = proportion(round(sum(values)), len(values)) if binary else mean_estimate(values, seed=seed)
        if name in _POOLED:
            pooled[name] = _POOLED[name]([row.reference for row in chosen], [row.answer for row in chosen])
    sources = {
        name: judge.name if judge and name == "judged_accuracy" else _source(name, encoder, window) for name in scores
    }
    return AnswerScores(tuple(rows), scores, means, pooled, sources, judgements)


def _judged(rows: Sequence[AnswerRow], judge: Generator, prompt: Prompt | None) -> dict[int, Judgement]:
    places = [place for place, row in enumerate(rows) if row.question.strip() and not row.statement]
    if not places:
        raise InputError("Judged accuracy needs the questions: a column question beside reference and answer.")
    items = [(rows[place].question, rows[place].reference, rows[place].answer) for place in places]
    found = judge_answers(items, judge, prompt=prompt)
    if all(one.verdict is None for one in found):
        raise ModelError(f"The judge failed for every answer: {found[0].error}")
    return dict(zip(places, found, strict=True))


_POOLED: Mapping[str, Callable[[list[str], list[str]], float]] = {"bleu_char": character_bleu, "bleu": bleu}


def _places(rows: Sequence[AnswerRow], name: str, *, asked: bool) -> list[int]:
    """Places of the rows that a metric is computed for."""
    if name == "phrase_similarity":
        places = [place for place, row in enumerate(rows) if row.statement]
        if asked and not places:
            raise InputError("Phrase similarity needs cloze statements: a column statement with a gap (<MASK>).")
        return places
    if asked:
        return list(range(len(rows)))
    return [place for place, row in enumerate(rows) if bool(row.statement) is ANSWER_METRICS[name].cloze]


def _values(name: str, rows: Sequence[AnswerRow], encoder: str, window: int | None) -> list[float]:
    references, answers = [row.reference for row in rows], [row.answer for row in rows]
    if name == "bleu_char":
        return character_bleu_each(references, answers)
    if name == "bleu":
        return bleu_each(references, answers)
    if name == "bert_score":
        return list(bert_score(references, answers, encoder).f1)
    if name == "phrase_similarity":
        items = [ClozeAnswer(row.statement, row.reference, row.answer) for row in rows]
        return phrase_similarities(items, window=window, encoder=encoder)
    match = exact_match if name == "exact_match" else exact_match_normalised
    return [float(same) for same in match(references, answers)]


def _source(name: str, encoder: str, window: int | None) -> str:
    if name == "bleu":
        return f"sacreBLEU {bleu_signature(each=True)}"
    if name == "bleu_char":
        return "NLTK corpus_bleu over characters, smoothing 1"
    if name == "bert_score":
        return encoder
    if name == "phrase_similarity":
        words = "whole statement" if window is None else f"window {window}"
        return f"{sentence_encoder(encoder).name}, {words}"
    return ""
