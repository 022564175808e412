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
    """Answers of a file with their scores."""

    rests_on_calls = False

    answers: "AnswerTable"
    scores: "AnswerScores"

    def to_dict(self) -> dict[str, Any]:
        """Return the means with intervals, and the scores of every answer."""
        scored = self.scores
        return {
            "file": self.answers.name,
            "skipped": list(self.answers.skipped),
            "means": scored.means,
            "pooled": scored.pooled,
            "computed_by": scored.sources,
            "judge_failures": sum(judgement.verdict is None for judgement in scored.judgements.values()),
            "answers": self.rows(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per answer."""
        scored = self.scores
        rows = []
        for index, answer in enumerate(scored.rows):
            row: dict[str, Any] = {"id": answer.id, "reference": answer.reference, "answer": answer.answer}
            row |= {"statement": answer.statement} if answer.statement else {}
            row |= {metric: values[index] for metric, values in scored.scores.items()}
            if (judgement := scored.judgements.get(index)) is not None:
                row |= {"verdict": judgement.verdict, "reason": judgement.reason, "judge_error": judgement.error}
            rows.append(row)
        return rows

    def tables(self) -> tuple[Table, ...]:
        """Return a table with a row per metric."""
        from climassay.metrics import METRICS
        from climassay.metrics.factual_accuracy import SCORES

        scored = self.scores
        rows = []
        for metric, mean in scored.means.items():
            pooled = scored.pooled.get(metric)
            rows.append(
                (
                    METRICS[metric].label,
                    f"{mean.value:.3f}",
                    f"{mean.interval.low:.3f} to {mean.interval.high:.3f}",
                    str(mean.n),
                    "" if pooled is None else f"{pooled:.3f}",
                    scored.sources.get(metric, ""),
                )
            )
        note = "Means over answers, as in ClimaQA's tables."
        note += " All together: BLEU with the counts of all answers summed." if scored.pooled else ""
        if scored.judgements:
            tally = Counter(judgement.verdict for judgement in scored.judgements.values())
            verdicts = ", ".join(f"{tally[verdict]} {verdict}" for verdict in SCORES)
            note += f" As judged: {verdicts}; {tally[None]} judgements failed. Partly correct counts one half."
        headings = ("metric", "mean", "95% interval", "n", "all together", "computed by")
        title = f"{self.answers.name}: {len(scored.rows)} answers"
        return (Table.of(title, headings, rows, note=note),)

    def notes(self) -> Iterator[str]:
        """Return the notes on skipped rows."""
        yield from skipped_note(self.answers.skipped)


ALL_FIGURES = 90
"""Columns of a screen that holds all figures of a scorer side by side."""


@dataclass(frozen=True, slots=True)
class ScoredEntailment(Shown):
    """Entailment scorers compared on the same labelled pairs."""

    def terminal_tables(self, width: int) -> list[Table]:
        """Return the scores as several narrow tables, with the name of each scorer on a line of its own."""
        columns = 4 if width >= ALL_FIGURES else 2
        return [
            part
            for table in self.tables()
            for part in (split_columns(table, 1, columns) if table.grouped else (table,))
        ]
