"""What ``climassay confidence tag`` reads: statements to be tagged, and statements whose tag is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.output import stderr_console
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.confidence.tagging.labelled import LabelledTable
    from climassay.confidence.tagging.tagger import Taggable
    from climassay.models.contract import OpenWeights

TextArgument = Annotated[
    str, typer.Argument(metavar="STATEMENT|FILE", help="A statement in quotes, or a table of them.")
]
ContextOption = Annotated[str, typer.Option(help="The sentences around the statement.")]
ColumnOption = Annotated[
    str | None,
    typer.Option("--text", help="Column of a table that holds the statements; files of extract need none."),
]
ContextColumnOption = Annotated[str | None, typer.Option(help="Column that holds their contexts.")]
LabelledArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="ClimateX's table (.tsv) or JSON lines of climassay confidence extract.")
]
ParagraphsOption = Annotated[
    Path | None, typer.Option(help="Paragraphs of the reports, to recover the context of ClimateX's statements.")
]

_TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".gz")


def read_taggable(
    text: str, context: str, column: str | None, context_column: str | None
) -> "tuple[list[Taggable], list[dict[str, Any]]]":
    """Statements, and what each is known by in an answer.

    Raises:
        InputError: There is none, or a file cannot be read.
    """
    if column is None and context_column is None and not Path(text).is_file():
        if not text.strip():
            raise InputError("There is nothing to tag: give a statement in quotes, or a file and --text COLUMN.")
        if Path(text).suffix in _TABLES and " " not in text:
            raise InputError(f"There is no file {text}.")
        return [(text, context)], [{"statement": text}]
    if column is None and context_column is None and Path(text).suffix == ".jsonl":
        return _extracted(Path(text))
    return _from_table(Path(text), column, context_column)


def read_known(file: Path, paragraphs: Path | None, quiet: bool) -> "LabelledTable":
    """Statements with known tags, telling what was left out."""
    from climassay.confidence.tagging.labelled import read_labelled

    table = read_labelled(file, paragraphs)
    if not quiet:
        for note in table.notes:
            stderr_console().print(note, highlight=False)
    return table


def _extracted(file: Path) -> "tuple[list[Taggable], list[dict[str, Any]]]":
    """Statements of ``climassay confidence extract`` with what they are known by, and the level that they carry."""
    from climassay.confidence.statement_files import read_statements

    try:
        read = read_statements(file)
    except InputError as error:
        raise InputError(f"{error} Of other tables, name the column of the statements with --text COLUMN.") from None
    if not read:
        raise InputError(f"{file} has no statements.")
    return list(read), [{"id": one.id, "statement": one.text, "authors": one.tag} for one in read]


def _from_table(
    file: Path, column: str | None, context_column: str | None
) -> "tuple[list[Taggable], list[dict[str, Any]]]":
    from climassay.questions.rows import parse_rows, read_bytes

    if column is None:
        raise InputError(f"{file} is a file: name the column of its statements with --text COLUMN.")
    statements: list[Taggable] = []
    known: list[dict[str, Any]] = []
    for number, values in enumerate(parse_rows(file, read_bytes(file)), start=1):
        missing = next((name for name in (column, context_column) if name is not None and name not in values), None)
        if missing is not None:
            raise InputError(f"Row {number} of {file} has no column {missing!r}.")
        said = str(values[column] or "")
        if not any(map(str.isalpha, said)):
            raise InputError(f"Row {number} of {file} has no statement in the column {column!r}.")
        statements.append((said, str(values[context_column] or "") if context_column else ""))
        known.append({"id": values["id"], "statement": said} if "id" in values else {"statement": said})
    if not statements:
        raise InputError(f"{file} has no rows.")
    return statements, known


def open_weights(name: str) -> "OpenWeights":
    """A model whose hidden states can be read.

    Raises:
        InputError: It shows none.
        ModelError: It cannot be loaded.
    """
    from climassay.models import OpenWeights, load_model

    model = load_model(name)
    if not isinstance(model, OpenWeights):
        model.close()
        raise InputError(f"The states of {name} cannot be read: give a local: model.")
    return model
