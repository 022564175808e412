"""``climassay corpus``, ``ask`` and ``check-text``: collections of documents, search, and questions about them."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import App, Parameter, Token

from climassay.api import documents as api
from climassay.cli.commands import add_command, api_command
from climassay.cli.options import (
    POSITIVE,
    LoadingOptions,
    ModelOption,
    WorkspaceOptions,
    bounded,
    given_values,
    options_for,
)
from climassay.corpus.documents import ReadOptions, TableColumns
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.corpus import QuestionColumns

T = TypeVar("T")
app = App(name="corpus")


@dataclass(frozen=True)
class ColumnOptions:
    """Option for the columns of tables of paragraphs."""

    columns: Annotated[tuple[str, ...], Parameter(name=("--column", "-c"))] = ()
    """Column of a table that contains a field, as FIELD=COLUMN: text, document (repeatable), title, report, chapter,
    headings, paragraph_id, page, url, date, edition, licence or author."""

    def build(self) -> ReadOptions:
        """Return the options for the readers of documents.

        Raises:
            InputError: An option is not of the form FIELD=COLUMN.
        """
        return ReadOptions(parse_columns(self.columns, TableColumns), **given_values(self, ReadOptions))


@dataclass(frozen=True)
@options_for(
    ReadOptions,
    *("title", "report", "url", "author", "date", "edition", "licence"),
    captions=Parameter(negative=()),
    references=Parameter(negative=()),
)
class ReadingOptions(ColumnOptions):
    """Options for reading documents: columns of tables, and metadata."""


add_command(
    app,
    "add",
    api.add_documents,
    ray=True,
    common_options=WorkspaceOptions,
    files=Annotated[list[str], Parameter()],
    reading=ReadingOptions,
    replace_older=Parameter(name="--replace"),
    originals=Parameter(negative="--no-originals"),
)
add_command(app, "list", api.list_collections)


@dataclass(frozen=True)
class ThresholdOptions:
    """Options for the minimum similarity of hits to the query."""

    min_cosine: Annotated[float | None, bounded(-1, 1)] = None
    """Minimum cosine similarity of a passage to the query [default: as measured for the encoder]."""
    everything: Annotated[bool, Parameter(name="--all")] = False
    """Show hits regardless of their similarity."""

    def build(self) -> float | str | None:
        """Return the value for the parameter ``threshold`` of :func:`climassay.search`."""
        return None if self.everything else "measured" if self.min_cosine is None else self.min_cosine


add_command(
    app,
    "search",
    api.search,
    collections=Annotated[str, Parameter(name="collection")],
    k=bounded(1, 1000, name=("--passages", "-k")),
    mode=Parameter(alias="-m"),
    threshold=ThresholdOptions,
)
add_command(app, "show", api.show_collection)
add_command(app, "compact", api.compact_collection, common_options=WorkspaceOptions)
add_command(app, "edit", api.edit_document, common_options=WorkspaceOptions)


@app.command
def remove(
    name: str,
    document: str | None = None,
    /,
    *,
    yes: Annotated[bool, Parameter(alias="-y")] = False,
    common_options: Annotated[WorkspaceOptions, Parameter(name="*")] = WorkspaceOptions(),
) -> None:
    """Remove a document from a collection, or a whole collection.

    Args:
        name: Name of the collection.
        document: Id or title of the document; without it, the whole collection is removed.
        yes: Do not ask for confirmation before a whole collection is removed.
    """
    from climassay.corpus import Collection

    with common_options.open_session() as session:
        if document is None:
            n_passages = len(Collection.open(session.workspace, name))
            if common_options.as_json and not yes:
                raise InputError(f"Removing the whole collection {name} with --json needs --yes.")
            if not yes and not _confirm(f"Remove the collection {name} with its {n_passages:,} passages?"):
                raise InputError("Nothing was removed.")
        common_options.print_result(api.remove_documents(name, document, workspace=session))


def _confirm(question: str) -> bool:
    """Ask a yes-or-no question on stderr and return whether the answer on stdin is yes; end of input counts as no."""
    print(f"{question} [y/N]: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@dataclass(frozen=True)
class QuestionColumnOptions:
    """Option for the columns of questions and relevant passages."""

    column: tuple[str, ...] = ()
    """Column of the files that contains a field, as FIELD=COLUMN: question, passage, relevance (a grade; 0 or empty
    means not relevant) or group (for example a report; intervals are computed over groups)."""

    def build(self) -> "QuestionColumns":
        """Return the names of the columns.

        Raises:
            InputError: An option is not of the form FIELD=COLUMN.
        """
        from climassay.corpus import QuestionColumns

        return parse_columns(self.column, QuestionColumns)


add_command(
    app,
    "evaluate",
    api.evaluate_search,
    questions=Annotated[list[str], Parameter()],
    ks=Parameter(name=("--depth", "-k")),
    modes=Parameter(name=("--mode", "-m")),
    columns=QuestionColumnOptions,
)
_COLLECTION_OPTION = Parameter(name=("--collection", "-c"), help="Collection to search; repeat.")
ask = api_command(
    api.ask,
    model_options=LoadingOptions,
    collections=Annotated[list[str], _COLLECTION_OPTION],
    model=ModelOption,
    passages=bounded(1, alias="-k"),
    threshold=bounded(-1, 1, name="--min-cosine"),
    sentences=POSITIVE,
)


def _file_or_stdin(_: object, tokens: Sequence[Token]) -> str | Path:
    return sys.stdin.read() if tokens[0].value == "-" else Path(tokens[0].value)


check_text = api_command(
    api.check_text,
    model_options=LoadingOptions,
    text=Annotated[str | Path, Parameter(name="FILE|-", converter=_file_or_stdin, allow_leading_hyphen=True)],
    collections=Annotated[list[str], _COLLECTION_OPTION],
    judge=Annotated[str | None, Parameter()],
    passages=bounded(1, alias="-k"),
)


def parse_columns(options: Iterable[str], columns_type: type[T]) -> T:
    """Parse ``FIELD=COLUMN`` options into a dataclass of columns.

    Args:
        options: Options; only the field ``document`` may occur more than once.
        columns_type: Dataclass with a field for each possible column.

    Raises:
        InputError: An option is not FIELD=COLUMN, names an unknown field, or repeats a field other than ``document``.
    """
    names = [field.name for field in fields(columns_type)]  # type: ignore[arg-type]
    columns: dict[str, Any] = {}
    for option in options:
        name, equals, column = option.partition("=")
        if not equals or not column or name not in names:
            raise InputError(f"--column {option!r} is not FIELD=COLUMN with one of the fields {', '.join(names)}.")
        if name == "document":
            columns[name] = (*columns.get(name, ()), column)
        elif name in columns:
            raise InputError(f"--column names two columns for {name}: {columns[name]} and {column}.")
        else:
            columns[name] = column
    return columns_type(**columns)
