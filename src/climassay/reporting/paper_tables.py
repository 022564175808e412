"""Tables of a paper with our rows below the published rows, as printed by ``climassay reproduce PAPER``.

:func:`load_paper_tables` reads the published scores of a paper from a TOML file::

    paper = "PPairS"
    reference = "Maiya (2024), thesis"

    [[table]]
    number = "4.4"
    title = "Confidence tags assigned by insertion"
    source = "section 4.3.3"                      # where the paper prints the table
    columns = ["Third", "Fourth", "Overall"]
    decimals = 2
    [[table.row]]
    system = "Mistral-7B PPairS"
    group = "thesis"                              # optional: rows of a group stand together
    n = 160                                       # optional: number of items
    scores = [0.69, 0.67, 0.64]                   # in the order of columns; "" for a score that is not printed

The function that reproduces the table adds our scores and the differences in method::

    table = load_paper_tables(FILE)["4.4"]
    ours = PaperRow("smollm2 PPairS", {"Third": Estimate(0.41, Interval(0.3, 0.5), 120)})
    done = replace(table, ours=(ours,), differences=("Items are split by article: no pair is in both parts.",))
    return Reproduction((done,), (session_run.id,))

Scores have the unit that the paper prints; :func:`scale_estimate` converts proportions to per cent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.io import write_file
from climassay.reporting.figures import DotPlot
from climassay.reporting.html import Report, Section
from climassay.reporting.results import Result, as_json_data, write_rows
from climassay.reporting.tables import Table, as_latex, as_markdown, counted
from climassay.settings import load_toml
from climassay.statistics import Estimate, Interval, ResampledEstimate

NOT_COMPARABLE = "\N{DAGGER}"
"""Sign that marks a score of ours as not comparable with the published scores."""


@dataclass(frozen=True, slots=True)
class PaperRow:
    """Row of a paper's table, with the scores of one system."""

    system: str
    scores: Mapping[str, float | Estimate | ResampledEstimate]
    """Scores by column, in the paper's unit: numbers in published rows, estimates with interval and n in ours."""
    group: str = ""
    """Name of the group of rows, for example a panel or a model; empty if the table has no groups."""
    n: int | None = None
    """Number of items on which all scores of the row are based; None if it is unknown or if the scores are estimates,
    which have an n each."""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """Table of a paper with the published rows and ours."""

    paper: str
    number: str
    title: str
    source: str
    """Reference and the section or page that prints the table."""
    columns: tuple[str, ...]
    published: tuple[PaperRow, ...]
    ours: tuple[PaperRow, ...] = ()
    differences: tuple[str, ...] = ()
    """Sentences that say how the method behind our rows differs from the paper's, and why."""
    not_comparable: Mapping[str, str] = field(default_factory=dict)
    """Reason by column, for columns in which our scores cannot be compared with the published ones."""
    decimals: int | Mapping[str, int] = 2
    """Number of decimals with which scores are shown, for all columns or by column."""
    published_n: Mapping[str, int] = field(default_factory=dict)
    """Number of items on which the published scores of a column are based, by column; only if the paper states it."""

    @property
    def name(self) -> str:
        """Name of the paper, with the number of the table."""
        return f"{self.paper}, Table {self.number}"

    def format_score(self, column: str, value: float) -> str:
        """Format a score with the decimals that the paper prints in a column."""
        decimals = self.decimals if isinstance(self.decimals, int) else self.decimals[column]
        return f"{value:.{decimals}f}".replace("-", "\N{MINUS SIGN}")

    def table(self) -> Table:
        """Return a table of text cells; in each group, the published rows come before ours, which are bold."""
        groups = list(dict.fromkeys(row.group for row in (*self.published, *self.ours)))
        is_grouped = groups != [""]
        cells: list[tuple[str, ...]] = []
        bold_rows: list[int] = []
        for group in groups:
            for is_ours, rows in ((False, self.published), (True, self.ours)):
                for row in rows:
                    if row.group == group:
                        bold_rows += [len(cells)] if is_ours else []
                        cells.append(self._format_row(row, is_ours, is_grouped))
        notes = [f"Published: {self.source}.", *self.differences]
        for reason in dict.fromkeys(self.not_comparable.values()):
            columns = ", ".join(
                column for column, other_reason in self.not_comparable.items() if other_reason == reason
            )
            notes.append(f"{NOT_COMPARABLE} {columns}: {reason}")
        headings = (["group"] if is_grouped else []) + ["system", "rows", "n", *map(self._format_heading, self.columns)]
        return Table.of(
            f"{self.name}: {self.title}",
            headings,
            cells,
            note="\n".join(notes),
            left_columns=2 + is_grouped,
            strong=bold_rows,
            grouped=int(is_grouped),
        )

    def _format_heading(self, column: str) -> str:
        return f"{column}\n(n={self.published_n[column]})" if column in self.published_n else column

    def _format_row(self, row: PaperRow, is_ours: bool, is_grouped: bool) -> tuple[str, ...]:
        counts = {score.n for score in row.scores.values() if isinstance(score, Estimate | ResampledEstimate)}
        counts = counts if row.n is None else {row.n}
        n = "" if not counts else f"{min(counts)}" if len(counts) == 1 else f"{min(counts)}-{max(counts)}"
        scores = []
        for column in self.columns:
            score = row.scores.get(column)
            sign = NOT_COMPARABLE if is_ours and score is not None and column in self.not_comparable else ""
            scores.append("" if score is None else f"{self._format_cell(column, score)}{sign}")
        return (*([row.group] if is_grouped else []), row.system, "ours" if is_ours else "published", n, *scores)

    def _format_cell(self, column: str, score: float | Estimate | ResampledEstimate) -> str:
        if isinstance(score, float | int):
            return self.format_score(column, score)
        value = self.format_score(column, score.value)
        if score.interval is None:
            return value
        low, high = (self.format_score(column, end) for end in score.interval)
        return f"{value} [{low}, {high}]"

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each score as a record: table, origin, group, system, column, value, n, low and high."""
        for origin, rows in (("published", self.published), ("ours", self.ours)):
            for row in rows:
                for column in self.columns:
                    if (score := row.scores.get(column)) is None:
                        continue
                    estimate = score if isinstance(score, Estimate | ResampledEstimate) else None
                    interval = None if estimate is None else estimate.interval
                    yield {
                        "paper": self.paper,
                        "table": self.number,
                        "origin": origin,
                        "group": row.group,
                        "system": row.system,
                        "column": column,
                        "value": score if estimate is None else estimate.value,
                        "n": self._find_n(row, column, estimate, origin),
                        "low": None if interval is None else interval.low,
                        "high": None if interval is None else interval.high,
                        "comparable": origin == "published" or column not in self.not_comparable,
                    }

    def _find_n(
        self, row: PaperRow, column: str, estimate: Estimate | ResampledEstimate | None, origin: str
    ) -> int | None:
        if estimate is not None:
            return estimate.n
        return self.published_n.get(column) if row.n is None and origin == "published" else row.n


def model_label(name: str) -> str:
    """Return a model's name without its provider, as it stands in the tables."""
    return name.partition(":")[2] or name


def scale_estimate(estimate: Estimate, factor: float = 100.0) -> Estimate:
    """Return an estimate with value and interval multiplied by a factor, by default from proportion to per cent."""
    low, high = estimate.interval
    return replace(estimate, value=factor * estimate.value, interval=Interval(factor * low, factor * high))


def load_paper_tables(file: Path) -> dict[str, PaperTable]:
    """Read the published tables of a paper from a TOML file in the format shown in the module's docstring.

    Returns:
        Tables by number.

    Raises:
        InputError: The file is not valid TOML, or the number of scores in a row differs from the number of columns.
    """
    data = load_toml(file)
    tables = {}
    for entry in data["table"]:
        columns = tuple(entry["columns"])
        rows = []
        for row in entry.get("row", ()):
            if len(row["scores"]) != len(columns):
                raise InputError(f"{file}: {row['system']} has {len(row['scores'])} scores for {len(columns)} columns.")
            scores = {column: float(score) for column, score in zip(columns, row["scores"], strict=True) if score != ""}
            rows.append(PaperRow(row["system"], scores, row.get("group", ""), row.get("n")))
        decimals = entry.get("decimals", 2)
        tables[entry["number"]] = PaperTable(
            data["paper"],
            entry["number"],
            entry["title"],
            f"{data['reference']}, {entry['source']}",
            columns,
            tuple(rows),
            decimals=decimals if isinstance(decimals, int) else dict(zip(columns, decimals, strict=True)),
        )
    return tables


def choose_tables(tables: Mapping[str, PaperTable], numbers: Sequence[str]) -> dict[str, PaperTable]:
    """Return the tables with these numbers, or all tables if ``numbers`` is empty.

    Raises:
        InputError: There is no table with one of these numbers.
    """
    for number in numbers:
        if number not in tables:
            raise InputError(f"There is no recipe for Table {number}: there are recipes for {', '.join(tables)}.")
    return {number: tables[number] for number in numbers} if numbers else dict(tables)


@dataclass(frozen=True, slots=True)
class Reproduction(Result):
    """Result of reproducing tables of a paper, with published rows and ours."""

    paper_tables: tuple[PaperTable, ...]
    runs: tuple[str, ...]
    """Ids of the runs in which our answers are recorded."""
    remarks: tuple[str, ...] = ()
    """Sentences about the reproduction as a whole, for example about skipped rows."""
    figures: tuple[DotPlot, ...] = ()
    """Figures of the paper with our systems added, for the HTML report."""
    more_tables: tuple[Table, ...] = ()
    """Additional tables, for example of distributions that the paper shows as a figure."""
    facts: tuple[tuple[str, str], ...] = ()
    """Pairs of name and value that are needed to repeat the run, such as a model's fingerprint and number format."""

    def tables(self) -> tuple[Table, ...]:
        """Return all tables with text cells."""
        return (*(paper_table.table() for paper_table in self.paper_tables), *self.more_tables)

    def rows(self) -> list[dict[str, Any]]:
        """Return a record for each score, published or ours."""
        return [record for paper_table in self.paper_tables for record in paper_table.records()]

    def to_dict(self) -> dict[str, Any]:
        """Return all scores, and each table's source and differences in method, as JSON-serialisable values."""
        tables = [
            {
                "number": paper_table.number,
                "title": paper_table.title,
                "source": paper_table.source,
                "differences": list(paper_table.differences),
                "not_comparable": dict(paper_table.not_comparable),
            }
            for paper_table in self.paper_tables
        ]
        scores = self.rows()
        further_tables = [
            {"title": table.title, "columns": [column.label for column in table.columns], "rows": table.rows}
            for table in self.more_tables
        ]
        data: dict[str, Any] = {
            "runs": self.runs,
            "remarks": self.remarks,
            "tables": tables,
            "scores": scores,
            "more_tables": further_tables,
        }
        data["facts"] = dict(self.facts)
        return dict(as_json_data(data))

    def notes(self) -> Iterator[str]:
        """Yield the remarks, and a sentence with the ids of the runs."""
        yield from self.remarks
        if self.runs:
            yield f"{counted(len(self.runs), 'run')} in the records: {', '.join(self.runs)}."

    def report(self) -> Report:
        """Return a report of all tables and figures."""
        sections = [Section(table.title, (table,)) for table in self.tables()]
        sections += [Section(figure.title, (figure,)) for figure in self.figures]
        papers = ", ".join(dict.fromkeys(paper_table.paper for paper_table in self.paper_tables))
        return Report(f"{papers}: published and reproduced", " ".join(self.notes()), tuple(sections), self.facts)

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write each table as Markdown, LaTeX and CSV, and all tables and figures as HTML and JSON.

        The CSV files have a row per score, so that every number has a column of its own.

        Returns:
            Paths of the written files.

        Raises:
            InputError: A file cannot be written.
        """
        files = []
        for paper_table in self.paper_tables:
            stem = folder / f"table-{paper_table.number}"
            table = paper_table.table()
            write_file(stem.parent / f"{stem.name}.md", as_markdown(table))
            write_file(stem.parent / f"{stem.name}.tex", as_latex(table))
            write_rows(stem.parent / f"{stem.name}.csv", list(paper_table.records()))
            files += [stem.parent / f"{stem.name}{suffix}" for suffix in (".md", ".tex", ".csv")]
        return (*files, *(self.save(folder / f"tables{suffix}") for suffix in (".html", ".json")))


@dataclass(frozen=True, slots=True)
class PartEstimate:
    """Estimated model calls of one part of a reproduction, including those whose answers are already in the records."""

    part: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    """Maximum number of completion tokens of all calls."""
    cost: float | None
    """Cost in US dollars; None if a price is unknown."""


@dataclass(frozen=True, slots=True)
class ReproductionEstimate(Result):
    """Estimated calls, tokens and cost of a reproduction, by part."""

    parts: tuple[PartEstimate, ...]
    remarks: tuple[str, ...] = ()

    def tables(self) -> tuple[Table, ...]:
        """Return a table with the estimate of each part and the totals."""
        costs = [part.cost for part in self.parts]
        total = PartEstimate(
            "total",
            sum(part.calls for part in self.parts),
            sum(part.prompt_tokens for part in self.parts),
            sum(part.completion_tokens for part in self.parts),
            None if None in costs else sum(cost for cost in costs if cost is not None),
        )
        rows = [
            (
                part.part,
                f"{part.calls:,}",
                f"{part.prompt_tokens:,}",
                f"{part.completion_tokens:,}",
                "unknown" if part.cost is None else f"{part.cost:.2f}",
            )
            for part in (*self.parts, total)
        ]
        headings = ("part", "calls", "prompt\ntokens", "completion\ntokens (at most)", "cost ($)")
        note = "Answers that the records have are not asked again."
        return (Table.of("Estimated effort", headings, rows, note=note, strong=(len(rows) - 1,)),)

    def notes(self) -> tuple[str, ...]:
        """Return the remarks."""
        return self.remarks
