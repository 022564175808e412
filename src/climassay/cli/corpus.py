"""``climassay corpus`` and ``climassay ask``: collections of documents, and what is found in them."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer import Argument, Option

from climassay.api import documents as api
from climassay.cli.options import (
    CommandGroup,
    LoadingOptions,
    ModelOption,
    WorkspaceOptions,
    grouped,
    verb_command,
)
from climassay.corpus.documents import ReadOptions, TableColumns
from climassay.errors import InputError

T = TypeVar("T")
app = CommandGroup(no_args_is_help=True)

COLLECTION = Argument(metavar="COLLECTION", help="Name of the collection.")


ColumnsOption = Annotated[
    list[str] | None,
    Option(
        "--column",
        "-c",
        metavar="FIELD=COLUMN",
        help="Content of a column of a table: text, document (may be given several times), title, report, chapter, "
        "headings, paragraph_id, page, url, date, edition or licence.",
    ),
]


@dataclass(frozen=True)
class ReadingOptions:
    """Columns of tables, and what is known of documents."""

    columns: ColumnsOption = None
    title: Annotated[str | None, Option(help="Title of all documents added.")] = None
    report: Annotated[str | None, Option(help="Report or series they belong to.")] = None
    url: Annotated[str | None, Option(help="Their address.")] = None
    date: Annotated[str | None, Option(help="Their ISO date or year.")] = None
    edition: Annotated[str | None, Option(help="Their edition.")] = None
    licence: Annotated[str | None, Option(help="Their licence.")] = None
    captions: Annotated[bool, Option("--captions", help="Keep captions of figures and tables in PDFs.")] = False
    references: Annotated[bool, Option("--references", help="Keep lists of references.")] = False

    def made(self) -> ReadOptions:
        """How the files are read.

        Raises:
            InputError: A column is not named as it must be.
        """
        return ReadOptions(**{**vars(self), "columns": chosen_columns(self.columns or (), TableColumns)})


app.add_verb(
    "add",
    api.add_documents,
    ray=True,
    to=WorkspaceOptions,
    collection=COLLECTION,
    files=Annotated[list[str], Argument(metavar="FILES")],
    reading=ReadingOptions,
    replace_older=Option("--replace"),
)


app.add_verb("list", api.list_collections)


@dataclass(frozen=True)
class ThresholdOptions:
    """How relevant a passage must be."""

    min_cosine: Annotated[
        float | None,
        Option(help="Leave out passages of lower cosine [default: as measured for the encoder]."),
    ] = None
    everything: Annotated[bool, Option("--all", help="Apply no threshold.")] = False

    def made(self) -> float | str | None:
        """The threshold of :func:`climassay.search`."""
        return None if self.everything else "measured" if self.min_cosine is None else self.min_cosine


app.add_verb(
    "search",
    api.search,
    collections=Annotated[str, COLLECTION],
    k=Option("--passages", "-k", min=1, max=1000),
    mode=Option("--mode", "-m"),
    threshold=ThresholdOptions,
)
app.add_verb("show", api.show_collection, name=COLLECTION, passage=Argument())
app.add_verb("compact", api.compact_collection, to=WorkspaceOptions, name=COLLECTION)
app.add_verb("rename", api.rename_document, to=WorkspaceOptions, name=COLLECTION)


@app.command()
def remove(
    name: Annotated[str, COLLECTION],
    document: Annotated[str | None, Argument(help="Id or title; without it, the whole collection is removed.")] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask before removing a whole collection.")] = False,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Remove a document from a collection, or the whole collection."""
    from climassay.corpus import Collection

    with to.session() as session:
        if document is None:
            passages = len(Collection.open(session.workspace, name))
            if to.as_json and not yes:
                raise InputError(f"Removing the whole collection {name} with --json needs --yes.")
            if not yes:
                typer.confirm(f"Remove the collection {name} with its {passages:,} passages?", abort=True, err=True)
        to.emit(api.remove_documents(name, document, workspace=session))


def _judged(
    columns: Annotated[
        list[str] | None,
        Option(
            "--column",
            metavar="FIELD=COLUMN",
            help="Columns of the files: question, passage, relevance (grades; 0 or nothing is not relevant), group "
            "(what questions share, as a report: intervals are drawn over groups).",
        ),
    ] = None,
) -> dict[str, Any]:
    from climassay.corpus import QuestionColumns

    return {"columns": chosen_columns(columns or (), QuestionColumns)}


app.add_verb(
    "evaluate",
    api.evaluate_search,
    parse=_judged,
    collection=COLLECTION,
    questions=Annotated[list[str], Argument(metavar="QUESTIONS")],
    ks=Option("--depth", "-k"),
    modes=Option("--mode", "-m"),
    columns=None,
)


_LOOKED_IN = Option("--collection", "-c", help="Collection to look in; repeat.")
ask = grouped(
    verb_command(
        api.ask,
        reach=LoadingOptions,
        collections=_LOOKED_IN,
        model=ModelOption,
        passages=Option("--passages", "-k", min=1),
        threshold=Option("--min-cosine", min=-1, max=1),
        sentences=Option(min=1),
    )
)
check_text = grouped(
    verb_command(
        api.check_text,
        reach=LoadingOptions,
        text=Annotated[
            str,
            Argument(metavar="FILE|-", callback=lambda file: sys.stdin.read() if file == "-" else Path(file)),
        ],
        collections=_LOOKED_IN,
        judge=Annotated[str | None, Option(metavar="MODEL")],
        passages=Option("--passages", "-k", min=1),
    )
)


def chosen_columns(given: Iterable[str], kind: type[T]) -> T:
    """A dataclass of columns from ``FIELD=COLUMN`` options; ``document`` may have several.

    Raises:
        InputError: One is not of this form, or there is no such field.
    """
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    chosen: dict[str, Any] = {}
    for text in given:
        field, equals, column = text.partition("=")
        if not equals or not column or field not in known:
            raise InputError(f"--column {text!r} is not FIELD=COLUMN with one of the fields {', '.join(known)}.")
        if field == "document":
            chosen[field] = (*chosen.get(field, ()), column)
        elif field in chosen:
            raise InputError(f"--column names two columns for {field}: {chosen[field]} and {column}.")
        else:
            chosen[field] = column
    return kind(**chosen)
