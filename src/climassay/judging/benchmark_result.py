"""Result of the benchmark of judges: tables, rows and a report."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.reporting import Report
from climassay.reporting.results import Result

if TYPE_CHECKING:
    from climassay.judging.benchmark import JudgeBenchmark, JudgeTask
    from climassay.judging.training import TrainedProbe
    from climassay.reporting import Table


@dataclass(frozen=True)
class BenchmarkedJudges(Result):
    """Agreement of judges with experts on unseen groups."""

    benchmark: "JudgeBenchmark"
    tasks: "tuple[JudgeTask, ...]"
    file: str
    evidence: "TrainedProbe | None" = None
    """Probe of the first fold; the report plots its contrast differences."""

    def tables(self) -> "Sequence[Table]":
        """Return the tables of accuracies, correlations and costs."""
        from climassay.judging.report import judge_tables

        return judge_tables(self.benchmark.results)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as a list, or a single result as a flat mapping."""
        from climassay.judging.benchmark import result_row

        benchmark, settings = self.benchmark, self.benchmark.settings
        run_facts = {
            "run": benchmark.run,
            "file": self.file,
            "model": benchmark.model,
            "fingerprint": benchmark.fingerprint,
            "dtype": benchmark.dtype,
            "seed": settings.seed,
            "train_items": settings.train_items,
            "folds": settings.folds,
        }
        rows = [result_row(result) for result in benchmark.results]
        if len(rows) == 1:
            return {**rows[0], **run_facts}
        ranges = _find_ranges(rows)
        return {
            **run_facts,
            **asdict(benchmark.cost),
            "results": rows,
            **({"spread_over_wordings": ranges} if ranges else {}),
        }

    def rank_rows(self) -> list[dict[str, Any]]:
        """Return a row for every item and judge, with the item's rank in its group."""
        return [
            {
                "quality": result.scores.quality,
                "wording": result.quality.wording,
                "method": result.scores.method,
                "item": item,
                "rank": int(rank),
            }
            for result in self.benchmark.results
            for item, rank in result.scores.order
        ]

    def notes(self) -> Iterator[str]:
        """Yield notes on skipped rows and on the run."""
        for task in self.tasks:
            yield from (f"{task.quality.name}: {note}" for note in task.notes)
        cost = self.benchmark.cost
        if not self.benchmark.dtype:
            cost_note = f"{cost.computed} asked, {cost.tokens_computed} prompt tokens"
            yield f"Run {self.benchmark.run}: {cost.stored} answers from the records, {cost_note}."
            return
        yield (
            f"Run {self.benchmark.run}: {cost.stored:,} requests from disk, {cost.computed:,} computed in "
            f"{cost.passes:,} passes; {cost.tokens_computed:,} tokens where plain passes take {cost.tokens_two_pass:,}."
        )

    def report(self) -> "Report":
        """Return the report with figures and tables."""
        from climassay.judging.report import judge_report

        return judge_report(self.benchmark, list(self.tasks), Path(self.file).name, self.evidence)


def _find_ranges(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the range of each score over the wordings of the prompts."""
    results = []
    for quality, method in dict.fromkeys((row["quality"], row["method"]) for row in rows):
        rows_of_method = [row for row in rows if (row["quality"], row["method"]) == (quality, method)]
        if len(rows_of_method) < 2:
            continue
        entry: dict[str, Any] = {
            "quality": quality,
            "method": method,
            "wordings": [row["wording"] for row in rows_of_method],
        }
        for name in ("accuracy_differing", "accuracy_three_way", "spearman", "kendall"):
            values = [row[name]["value"] for row in rows_of_method if row[name]["value"] is not None]
            if values:
                entry[name] = {"mean": sum(values) / len(values), "lowest": min(values), "highest": max(values)}
        results.append(entry)
    return results
