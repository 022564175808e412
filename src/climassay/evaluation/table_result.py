"""Tables of an experiment in several formats."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from climassay import evaluation
from climassay.errors import InputError
from climassay.evaluation.evaluation_result import scores_data
from climassay.reporting import Report, Section, Table, as_csv, as_latex, as_markdown
from climassay.reporting.results import Result

if TYPE_CHECKING:
    from climassay.evaluation import Experiment, ExperimentScores, PublishedScore
    from climassay.evaluation.tables import NamedTable


Form = Literal["screen", "markdown", "latex", "csv", "html"]


@dataclass(frozen=True)
class ExperimentTables(Result):
    """Tables of an experiment: scores with intervals and baselines, counts and paired tests."""

    experiment: "Experiment"
    scores: "ExperimentScores"
    published: "tuple[PublishedScore, ...]"
    named: "tuple[NamedTable, ...]"

    def to_dict(self) -> dict[str, Any]:
        """Return the scores and the published scores as JSON-serialisable values."""
        names = {"run": self.experiment.run, "name": self.experiment.name}
        return {**names, **scores_data(self.scores), "published": list(self.published)}

    def tables(self) -> list[Table]:
        """Return all tables."""
        return [named_table.table for named_table in self.named]

    def select(self, only: Sequence[str] = (), form: Form = "screen") -> list[tuple[str, Table]]:
        """Return (name, table) for the tables that are named, by default all; for CSV by default only ``scores``.

        Raises:
            InputError: A table does not exist, or several tables are selected for one CSV file.
        """
        from climassay.evaluation.tables import score_rows

        names = only or (
            ["scores"] if form == "csv" else list(dict.fromkeys(named_table.name for named_table in self.named))
        )
        results: list[tuple[str, Table]] = []
        for name in names:
            tables = [named_table.table for named_table in self.named if named_table.name == name]
            if name == "scores":
                tables = [score_rows(self.scores, self.published)]
            if not tables:
                available_names = ", ".join([*dict.fromkeys(named_table.name for named_table in self.named), "scores"])
                raise InputError(f"The experiment has no table {name!r}: it has {available_names}.")
            results += [(name, named_table) for named_table in tables]
        if form == "csv" and len(results) > 1:
            raise InputError("A CSV file holds one table: choose one with --table, or another format.")
        return results

    def for_screen(self, only: Sequence[str], width: int) -> list[Table]:
        """Return the selected tables, laid out for a screen of a width in characters; named tables keep all rows."""
        from climassay.evaluation.tables import NamedTable

        selected_tables = [NamedTable(name, "", table) for name, table in self.select(only)]
        return evaluation.screen_tables(selected_tables, width, complete=only)

    def format_tables(self, only: Sequence[str], form: Form) -> str:
        """Return the selected tables as text in a format."""
        tables = [table for _, table in self.select(only, form)]
        if form == "html":
            introduction = "Scores with 95% intervals, constant answers, counts and paired tests."
            sections = (Section("Tables", tuple(tables)),)
            return Report(
                f"Experiment {self.experiment.name}", introduction, sections, (("Run", self.experiment.run),)
            ).to_html()
        write = {"latex": as_latex, "csv": as_csv}.get(form, as_markdown)
        return "\n".join(write(table) for table in tables)
