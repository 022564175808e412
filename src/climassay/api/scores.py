"""Answers scored against references, by metrics and by a judge."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.models import Generator
from climassay.reporting import Table
from climassay.reporting.results import Result
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.metrics import AnswerScores
    from climassay.metrics.answer_scores import AnswerTable


@dataclass(frozen=True, slots=True)
class ScoredAnswers(Result):
    """Answers of a file with their scores."""

    answers: "AnswerTable"
    scores: "AnswerScores"

    def to_dict(self) -> dict[str, Any]:
        """Means with intervals, and the scores of every answer."""
        scored = self.scores
        return {
            "file": self.answers.name,
            "skipped": list(self.answers.skipped),
            "means": scored.means,
            "pooled": scored.pooled,
            "computed_by": scored.sources,
            "judge_failures": sum(one.verdict is None for one in scored.judgements.values()),
            "answers": self.rows(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row an answer."""
        scored = self.scores
        rows = []
        for place, one in enumerate(scored.rows):
            row: dict[str, Any] = {"id": one.id, "reference": one.reference, "answer": one.answer}
            row |= {"statement": one.statement} if one.statement else {}
            row |= {metric: values[place] for metric, values in scored.scores.items()}
            if (said := scored.judgements.get(place)) is not None:
                row |= {"verdict": said.verdict, "reason": said.reason, "judge_error": said.error}
            rows.append(row)
        return rows

    def tables(self) -> tuple[Table, ...]:
        """A row a metric."""
        from climassay.metrics import ANSWER_METRICS

        scored = self.scores
        rows = []
        for metric, mean in scored.means.items():
            pooled = scored.pooled.get(metric)
            rows.append(
                (
                    ANSWER_METRICS[metric].label,
                    f"{mean.value:.3f}",
                    f"{mean.interval.low:.3f} to {mean.interval.high:.3f}",
                    str(mean.n),
                    "" if pooled is None else f"{pooled:.3f}",
                    scored.sources.get(metric, ""),
                )
            )
        note = "Means over answers, as in ClimaQA's tables."
        note += " All together: BLEU with the counts of all answers summed." if scored.pooled else ""
        headings = ("metric", "mean", "95% interval", "n", "all together", "computed by")
        title = f"{self.answers.name}: {len(scored.rows)} answers"
        return (Table.of(title, headings, rows, note=note + _judge_note(scored)),)

    def notes(self) -> Iterator[str]:
        """Rows that were left out."""
        if self.answers.skipped:
            yield f"{len(self.answers.skipped)} rows left out, the first: {self.answers.skipped[0]}"


def score_answers(
    file: str | Path,
    *,
    metrics: Sequence[str] | None = None,
    encoder: str = "local:minilm",
    window: int | None = 4,
    judge: Generator | str | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> ScoredAnswers:
    """Score answers against their references: every answer, and means with intervals.

    Args:
        file: Table with the columns ``reference`` and ``answer``, and for cloze answers ``statement``.
        metrics: Names of metrics; by default those that go with the rows.
        encoder: Encoder of BERTScore and phrase similarity.
        window: Words on each side of the gap, for phrase similarity; None takes the whole statement.
        judge: A strong model that marks each answer, with its reason; needs a column ``question``.
        seed: Seed of the resampling.
        workspace: Where the judge's answers are kept.

    Raises:
        InputError: The file cannot be read, or there is no such metric.
        ModelError: The judge cannot be loaded.
    """
    from climassay.metrics import read_answers
    from climassay.metrics import score_answers as scored
    from climassay.prompts import load_prompt

    answers = read_answers(Path(file))
    with Session.opened(workspace) as session:
        words = f"Scoring {len(answers.rows)} answers ..."
        if judge is None:
            with session.progress.waiting(words):
                scores = scored(answers.rows, metrics, encoder=encoder, window=window, seed=seed)
            return ScoredAnswers(answers, scores)
        prompt = load_prompt("judged_accuracy", session.options.prompts)
        model = session.model(judge)
        config = {"file": answers.name, "model": model.name, "prompt_sha256": prompt.sha256}
        with session.run("metrics score", config) as run, session.progress.waiting(words):
            scores = scored(
                answers.rows,
                metrics,
                encoder=encoder,
                window=window,
                seed=seed,
                judge=session.recorded(model, run),
                judge_prompt=prompt,
            )
    return ScoredAnswers(answers, scores)


def _judge_note(scored: "AnswerScores") -> str:
    from climassay.metrics.factual_accuracy import SCORES

    if not scored.judgements:
        return ""
    counted = Counter(one.verdict for one in scored.judgements.values())
    verdicts = ", ".join(f"{counted[verdict]} {verdict}" for verdict in SCORES)
    return f" As judged: {verdicts}; {counted[None]} judgements failed. Partly correct counts one half."
