"""Results of scoring answers and entailment scorers: tables, rows and notes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from climassay.reporting import Table
from climassay.reporting.results import Result, Shown
from climassay.reporting.tables import skipped_note, split_columns

if TYPE_CHECKING:
    from climassay.metrics import AnswerScores
    from climassay.metrics.answer_scores import AnswerTable


@dataclass(frozen=True, slots=True)
class ScoredAnswers(Result):
    """Result of scoring the answers of a file."""

    rests_on_calls = False

    answers: "AnswerTable"
    scores: "AnswerScores"

    def to_dict(self) -> dict[str, Any]:
        """Return the means with intervals and the scores of all answers as JSON-serialisable values."""
        scores = self.scores
        return {
            "file": self.answers.name,
            "skipped": list(self.answers.skipped),
            "means": scores.means,
            "pooled": scores.pooled,
            "computed_by": scores.sources,
            "judge_failures": sum(judgement.verdict is None for judgement in scores.judgements.values()),
            "answers": self.rows(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return each answer with its scores as a row."""
        scores = self.scores
        rows = []
        for index, answer in enumerate(scores.rows):
            row: dict[str, Any] = {"id": answer.id, "reference": answer.reference, "answer": answer.answer}
            row |= {"statement": answer.statement} if answer.statement else {}
            row |= {metric: values[index] for metric, values in scores.scores.items()}
            if (judgement := scores.judgements.get(index)) is not None:
                row |= {"verdict": judgement.verdict, "reason": judgement.reason, "judge_error": judgement.error}
            rows.append(row)
        return rows

    def tables(self) -> tuple[Table, ...]:
        """Return a table of the means, with a row per metric."""
        from climassay.metrics import METRICS
        from climassay.metrics.factual_accuracy import SCORES

        scores = self.scores
        rows = []
        for metric, mean in scores.means.items():
            pooled_score = scores.pooled.get(metric)
            rows.append(
                (
                    METRICS[metric].label,
                    f"{mean.value:.3f}",
                    f"{mean.interval.low:.3f} to {mean.interval.high:.3f}",
                    str(mean.n),
                    "" if pooled_score is None else f"{pooled_score:.3f}",
                    scores.sources.get(metric, ""),
                )
            )
        note = "Means over answers, as in ClimaQA's tables."
        note += " All together: BLEU with the counts of all answers summed." if scores.pooled else ""
        if scores.judgements:
            tally = Counter(judgement.verdict for judgement in scores.judgements.values())
            verdicts = ", ".join(f"{tally[verdict]} {verdict}" for verdict in SCORES)
            note += f" As judged: {verdicts}; {tally[None]} judgements failed. Partly correct counts one half."
        headings = ("metric", "mean", "95% interval", "n", "all together", "computed by")
        title = f"{self.answers.name}: {len(scores.rows)} answers"
        return (Table.of(title, headings, rows, note=note),)

    def notes(self) -> Iterator[str]:
        """Yield a note on skipped rows, if there are any."""
        yield from skipped_note(self.answers.skipped)


MIN_WIDE_SCREEN = 90
"""Minimum width of a screen, in characters, on which all scores of an entailment scorer fit side by side."""


@dataclass(frozen=True, slots=True)
class ScoredEntailment(Shown):
    """Result of evaluating entailment scorers on the same labelled pairs."""

    def terminal_tables(self, width: int) -> list[Table]:
        """Return the tables, split into narrow ones if a screen of ``width`` characters is too narrow for them."""
        columns = 4 if width >= MIN_WIDE_SCREEN else 2
        return [
            part
            for table in self.tables()
            for part in (split_columns(table, 1, columns) if table.grouped else (table,))
        ]
