"""Results of scoring answers and entailment scorers: tables, rows and notes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from climassay.reporting import Table
from climassay.reporting.results import AssembledResult, Result
from climassay.reporting.tables import percent, percent_interval, skipped_note, split_columns

if TYPE_CHECKING:
    from climassay.metrics import AnswerScores
    from climassay.metrics.answer_scores import AnswerTable
    from climassay.metrics.labelled_pairs import EntailmentScores


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
class ScoredEntailment(AssembledResult):
    """Result of evaluating entailment scorers on the same labelled pairs."""

    def terminal_tables(self, width: int) -> list[Table]:
        """Return the tables, split into narrow ones if a screen of ``width`` characters is too narrow for them."""
        columns = 4 if width >= MIN_WIDE_SCREEN else 2
        return [
            part
            for table in self.tables()
            for part in (split_columns(table, 1, columns) if table.grouped else (table,))
        ]


def make_entailment_tables(scores: "Sequence[EntailmentScores]") -> list[Table]:
    """Return tables of accuracies, rankings and marks, with a row for each scorer."""
    from climassay.learning.evaluation import comparison_table

    two_class_table = comparison_table([(score.scorer, score.two_class) for score in scores], "SUPPORTS or REFUTES")
    three_class_table = comparison_table([(score.scorer, score.three_class) for score in scores], "Three relations")
    rows = []
    for score in scores:
        auroc = score.two_class.auroc
        assert auroc is not None
        rows.append(
            (
                score.scorer,
                "{:.3f} [{:.3f}, {:.3f}]".format(auroc.value, *auroc.interval),
                f"{score.support_auroc:.3f}",
                f"{score.calibration.expected_calibration_error:.3f}",
                str(score.three_class.failed),
            )
        )
    columns = ("model", "AUROC", "AUROC of\nsupport", "calibration\nerror", "failed")
    note = "AUROC: supporting pairs above refuting ones; of support: above all others. 0.5 is chance."
    ranking_table = Table.of("Ranking", columns, rows, note=note)
    mark_rows = [
        (
            score.scorer,
            *("-" if proportion is None else f"{percent(proportion.value)} [{percent_interval(proportion.interval)}]"
              for proportion in (score.marked, score.unsupporting)),
            str(score.marked.n if score.marked else 0),
            str(score.unsupporting.n),
        )
        for score in scores
    ]  # fmt: skip
    columns = ("model", "marks right\n(%)", "on every pair\n(%)", "marks", "pairs")
    note = (
        "A mark is a probability of support below a half; it is right where the pair does not support. "
        "The second share is that of marks on every pair."
    )
    mark_table = Table.of('"May not say so"', columns, mark_rows, note=note)
    return [replace(table, grouped=1) for table in (two_class_table, three_class_table, ranking_table, mark_table)]
