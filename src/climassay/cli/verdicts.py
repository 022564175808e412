"""``climassay verdicts``: score predicted verdicts against published ones."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from climassay.cli.output import JsonOption, print_json, stdout_console, write_text
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.factcheck.scoring import VerdictScores
    from climassay.questions.rows import Row

app = typer.Typer(no_args_is_help=True, help="Score verdicts on claims against published ones.")

_CLAIM_COLUMNS = ("claim", "statement", "text")
"""Columns taken for the claim's text where none is named, the first that there is, in whatever case."""


class UnknownChoice(StrEnum):
    """What becomes of a prediction that is no verdict of the scale."""

    error = "error"
    wrong = "wrong"


@app.callback()
def group() -> None:
    """Score verdicts on claims against published ones."""


@app.command()
def score(
    file: Annotated[Path, typer.Argument(help="Verdicts: CSV, TSV, JSON, JSONL or Parquet, also .gz.")],
    truth: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the true verdicts.")],
    predicted: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the predicted verdicts.")],
    scale: Annotated[
        str,
        typer.Option(
            help="accuracy, climate-feedback, climate-fever, science-feedback, binary, or a .toml file of your own. "
            "Verdicts of another of these scales can be scored in 2 classes."
        ),
    ] = "climate-feedback",
    classes: Annotated[
        int | None, typer.Option(help="Collapse the scale to so many classes (climate-feedback: 7, 5 or 2).")
    ] = None,
    claim: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of the claims, for duplicates; claim, statement or text if there is one."
        ),
    ] = None,
    unknown: Annotated[
        UnknownChoice, typer.Option(help="Predictions that are not of the scale: stop, or count them as wrong.")
    ] = UnknownChoice.error,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 0,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the figures as CSV.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write all tables as Markdown.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Accuracy and macro averages, with intervals and the best constant answer, with and without NEI and duplicates."""
    from climassay.factcheck.scales import load_scale
    from climassay.factcheck.scoring import score_verdicts
    from climassay.factcheck.scoring_tables import verdict_data

    wanted = load_scale(scale)
    table = _read(file, truth, predicted, claim)
    scores = score_verdicts(
        table.column(truth),
        table.column(predicted),
        wanted,
        classes=classes,
        claims=None if table.claim is None else table.column(table.claim),
        unknown=unknown.value,
        seed=seed,
    )
    facts = [("File", str(file)), ("Truth", truth), ("Predicted", predicted), ("Claims", table.claim or "no column")]
    facts += [("Scale", scale), ("Not of the scale", unknown.value), ("Seed", str(seed))]
    _write_files(scores, f"{predicted} in {file.name}", facts, csv_file, markdown, html)
    if as_json:
        print_json(verdict_data(scores))
    else:
        _show(scores)


class _Read(NamedTuple):
    rows: list["Row"]
    claim: str | None

    def column(self, name: str) -> list[object]:
        return [row.get(name) for row in self.rows]


def _read(file: Path, truth: str, predicted: str, claim: str | None) -> _Read:
    from climassay.questions.rows import parse_rows, read_bytes

    rows = list(parse_rows(file, read_bytes(file)))
    if not rows:
        raise InputError(f"{file} has no rows.")
    # Cells beyond the heading of a CSV file have no name.
    columns = list(dict.fromkeys(column for row in rows for column in row if column is not None))
    for option, column in (("--truth", truth), ("--predicted", predicted), ("--claim", claim)):
        if column is not None and column not in columns:
            raise InputError(f"{file} has no column {column!r} ({option}): it has {', '.join(map(repr, columns))}.")
    lower = {column.strip().lower(): column for column in reversed(columns) if column not in (truth, predicted)}
    usual = next((lower[name] for name in _CLAIM_COLUMNS if name in lower), None)
    return _Read(rows, claim or usual)


def _write_files(
    scores: "VerdictScores",
    subject: str,
    facts: list[tuple[str, str]],
    csv_file: Path | None,
    markdown: Path | None,
    html: Path | None,
) -> None:
    from climassay.factcheck.scoring_tables import verdict_report, verdict_tables
    from climassay.reporting import as_csv, as_markdown

    tables = verdict_tables(scores)
    if csv_file:
        write_text(csv_file, as_csv(tables[0]))
    if markdown:
        write_text(markdown, "\n".join(map(as_markdown, tables)))
    if html:
        write_text(html, verdict_report(scores, subject, facts).to_html())


def _show(scores: "VerdictScores") -> None:
    from climassay.factcheck.scoring_tables import verdict_tables
    from climassay.reporting import as_rich

    console = stdout_console()
    for table in verdict_tables(scores, width=console.width):
        console.print(as_rich(table))
