"""``climassay corpus``: collections of documents, and what is found in them."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, WorkspaceOption, print_json, progress_bar, stdout_console
from climassay.cli.ray_option import RayOptions
from climassay.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress

    from climassay.corpus.collection_adding import AddProgress
    from climassay.corpus.documents import Document, Skipped
    from climassay.corpus.options import ReadOptions
    from climassay.workspace import Workspace

PRIMER = "primer"
PRIMER_PREFIX = f"{PRIMER}:"

app = typer.Typer(no_args_is_help=True, help="Make collections of documents, search them, and measure the search.")

NameArgument = Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection.")]
ModeOption = Annotated[str, typer.Option("--mode", "-m", help="hybrid, dense, bm25 or rrf.")]


@app.command()
@grouped
def add(
    name: NameArgument,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...",
            help="PDF, HTML, Markdown, text, EPUB, CSV, JSONL or Parquet files, folders of them, or primer:BOOK.",
        ),
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            "-c",
            metavar="FIELD=COLUMN",
            help="What a column of a table holds: text, document (may be given several times), title, report, chapter, "
            "headings, paragraph_id, page, url, date, edition or licence.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of all documents added.")] = None,
    report: Annotated[str | None, typer.Option(help="Report or series they belong to.")] = None,
    url: Annotated[str | None, typer.Option(help="Their address.")] = None,
    date: Annotated[str | None, typer.Option(help="Their ISO date or year.")] = None,
    edition: Annotated[str | None, typer.Option(help="Their edition.")] = None,
    licence: Annotated[str | None, typer.Option(help="Their licence.")] = None,
    captions: Annotated[bool, typer.Option("--captions", help="Keep captions of figures and tables in PDFs.")] = False,
    references: Annotated[bool, typer.Option("--references", help="Keep lists of references in PDFs.")] = False,
    encoder: Annotated[
        str | None,
        typer.Option(help="local:minilm (default), or local: and a sentence-transformers folder or hub id."),
    ] = None,
    passage_size: Annotated[int | None, typer.Option(help="Characters of a passage [default: 2000].")] = None,
    passage_overlap: Annotated[
        int | None, typer.Option(help="Most characters neighbours share [default: 200].")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take out older versions of the documents added (same file and title).")
    ] = False,
    where: RayOptions = RayOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add documents to a collection; it is made when it is not there. Run again, it goes on where it stopped."""
    from climassay.corpus.collection import open_or_create
    from climassay.corpus.collection_store import check_name
    from climassay.corpus.presentation import added_lines
    from climassay.corpus.reading import ReadOptions

    options = ReadOptions(
        columns=table_columns(columns or []),
        title=title,
        report=report,
        url=url,
        date=date,
        edition=edition,
        licence=licence,
        captions=captions,
        references=references,
    )
    check_name(name)
    skipped: list[Skipped] = []
    documents = _documents([_source(file) for file in files], options, skipped)
    first = next(documents, None)
    if first is None:
        # Before anything is made: a mistyped file name leaves no empty collection behind.
        _refuse_unread(name, skipped, as_json)
        return
    with where.opened(quiet=as_json) as pool, progress_bar(quiet=as_json) as progress:
        collection = open_or_create(
            _workspace(workspace),
            name,
            encoder=encoder,
            passage_size=passage_size,
            passage_overlap=passage_overlap,
            **({} if pool is None else {"load": pool.load_encoder}),
        )
        show = _Progress(progress, name)
        report_of_add = collection.add(chain([first], documents), replace=replace, on_progress=show)
    skipped += report_of_add.skipped
    if as_json:
        print_json({"collection": collection.summary(), **asdict(report_of_add), "skipped": skipped})
    else:
        _print_lines(added_lines(name, report_of_add, skipped))
    if not (report_of_add.added or report_of_add.already_there):
        raise InputError(f"None of the documents has any text, so nothing was added to {name}.")


@app.command("list")
def list_(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the collections; damaged ones are named on stderr, and the exit code is 2."""
    from climassay.corpus.collection import survey_collections
    from climassay.corpus.presentation import collections_table
    from climassay.reporting.terminal import as_rich

    place = _workspace(workspace)
    summaries, damaged = survey_collections(place)
    if as_json:
        print_json(summaries)
    elif summaries:
        stdout_console().print(as_rich(collections_table(summaries)))
    elif not damaged:
        typer.echo(f"No collections yet in {place.root}: make one with `climassay corpus add NAME FILES`.", err=True)
    for error in damaged[:-1]:
        typer.echo(f"climassay: {error}", err=True)
    if damaged:
        raise damaged[-1]


@app.command()
def search(
    name: NameArgument,
    query: Annotated[str, typer.Argument(help="A question or statement.")],
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Most hits.")] = 8,
    mode: ModeOption = "hybrid",
    min_cosine: Annotated[
        float | None,
        typer.Option(help="Leave out passages of lower cosine [default: the encoder's measured threshold]."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Apply no threshold.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print whole passages.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find passages."""
    from climassay.corpus.collection import Collection
    from climassay.corpus.presentation import hit_lines

    collection = Collection.open(_workspace(workspace), name)
    threshold = None if everything else collection.relevance_threshold if min_cosine is None else min_cosine
    hits = collection.search(query, k=k, mode=_mode(mode), min_cosine=threshold)
    if as_json:
        found = [asdict(hit) | {"citation": hit.passage.citation} for hit in hits]
        print_json({"collection": name, "query": query, "mode": mode, "min_cosine": threshold, "hits": found})
    elif not hits:
        limit = (
            "" if threshold is None else f" (nothing reaches a cosine of {threshold:g}; --all shows what is nearest)"
        )
        typer.echo(f"Nothing relevant in {name}{limit}.", err=True)
    else:
        _print_lines(hit_lines(hits, full))


@app.command()
def show(
    name: NameArgument,
    passage_id: Annotated[str | None, typer.Argument(metavar="[PASSAGE]", help="Id of a passage.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a collection's documents and settings, or one passage in full."""
    from climassay.corpus.collection import Collection
    from climassay.corpus.presentation import documents_table, passage_lines
    from climassay.reporting.terminal import as_rich

    collection = Collection.open(_workspace(workspace), name)
    if passage_id is not None:
        passage = collection.passage(passage_id)
        if as_json:
            print_json(asdict(passage) | {"citation": passage.citation})
        else:
            _print_lines(passage_lines(passage))
        return
    documents, settings = collection.documents(), collection.settings
    if as_json:
        print_json({"name": name, "settings": settings, "documents": documents})
        return
    stdout_console().print(as_rich(documents_table(name, settings, documents)))


@app.command()
def remove(
    name: NameArgument,
    document: Annotated[
        str | None, typer.Argument(metavar="[DOCUMENT]", help="Id or title; without it the whole collection goes.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before removing a whole collection.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a document from a collection, or the whole collection."""
    from climassay.corpus.collection import Collection, remove_collection

    place = _workspace(workspace)
    collection = Collection.open(place, name)
    if document is not None:
        gone = collection.remove(document)
        if as_json:
            print_json({"collection": name, "removed": gone})
        else:
            for stored in gone:
                typer.echo(f"Removed {stored.title} ({stored.id}, {stored.passages:,} passages) from {name}.")
        return
    if as_json and not yes:
        raise InputError(f"Removing the whole collection {name} with --json needs --yes.")
    if not yes:
        typer.confirm(f"Remove the collection {name} with its {len(collection):,} passages?", abort=True, err=True)
    remove_collection(place, name)
    print_json({"removed": name}) if as_json else typer.echo(f"Removed the collection {name}.")


@app.command()
def evaluate(
    name: NameArgument,
    questions: Annotated[
        list[str],
        typer.Argument(
            metavar="QUESTIONS...", help="JSONL or CSV files with question and passage; primer, or primer:BOOK."
        ),
    ],
    k: Annotated[list[int] | None, typer.Option("-k", help="Depths of recall [default: 1, 3, 5 and 10].")] = None,
    modes: Annotated[
        list[str] | None, typer.Option("--mode", "-m", help="hybrid, dense, bm25, rrf [default: all].")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well search finds the passages that questions rest on: recall and mean reciprocal rank."""
    from climassay.corpus.collection import Collection
    from climassay.corpus.presentation import evaluation_table
    from climassay.corpus.retrieval_evaluation import DEFAULT_KS, evaluate_retrieval, read_labelled
    from climassay.corpus.search import SEARCH_MODES
    from climassay.reporting.terminal import as_rich

    collection = Collection.open(_workspace(workspace), name)
    files = [path for file in questions for path in _question_files(file)]
    labelled = [question for path in files for question in read_labelled(path)]
    chosen = tuple(_mode(mode) for mode in modes) if modes else SEARCH_MODES
    report = evaluate_retrieval(collection, labelled, ks=tuple(k) if k else DEFAULT_KS, modes=chosen)
    print_json(report) if as_json else stdout_console().print(as_rich(evaluation_table(report)))


class _Progress:
    """Shows how far adding is, with the passages embedded a second."""

    def __init__(self, progress: "Progress", name: str) -> None:
        self._progress = progress
        self._name = name
        self._task = progress.add_task(name, total=None)
        self._start = time.monotonic()

    def __call__(self, state: "AddProgress") -> None:
        if state.passages_done == 0:
            self._start = time.monotonic()
        spent = time.monotonic() - self._start
        rate = f", {state.passages_done / spent:.0f}/s" if state.passages_done and spent > 0 else ""
        documents = f"{state.documents:,} document" + ("" if state.documents == 1 else "s")
        self._progress.update(
            self._task,
            completed=state.passages_done,
            total=state.passages_known or None,
            description=f"{self._name}: {documents}, passages{rate}",
        )


def _refuse_unread(name: str, skipped: "Sequence[Skipped]", as_json: bool) -> None:
    """Say why no file could be read."""
    if as_json:
        print_json({"collection": None, "added": [], "skipped": skipped})
    else:
        for item in skipped:
            typer.echo(f"skipped   {item.source}: {item.reason}", err=True)
    raise InputError(f"None of the files could be read, so nothing was added to {name}.")


def _workspace(root: Path | None) -> "Workspace":
    from climassay.workspace import Workspace

    return Workspace.open(root)


def _source(file: str) -> Path:
    if not file.startswith(PRIMER_PREFIX):
        return Path(file).expanduser()
    from climassay.primer import book_path

    return book_path(file.removeprefix(PRIMER_PREFIX))


def _question_files(file: str) -> list[Path]:
    """The file itself, or the primer's: ``primer`` has all questions, ``primer:BOOK`` those on one book."""
    if file != PRIMER and not file.startswith(PRIMER_PREFIX):
        return [Path(file).expanduser()]
    from climassay.primer import question_paths

    paths = {path.stem: path for path in question_paths()}
    if file == PRIMER:
        return list(paths.values())
    book = file.removeprefix(PRIMER_PREFIX)
    if book not in paths:
        raise InputError(f"The primer has no questions on {book!r}: it has some on {', '.join(paths)}.")
    return [paths[book]]


def table_columns(given: Sequence[str]) -> Any:
    """Table columns of ``FIELD=COLUMN`` options.

    Raises:
        InputError: One is not of this form, or there is no such field.
    """
    from climassay.corpus.reading import TableColumns

    known = [field.name for field in fields(TableColumns)]
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
    return TableColumns(**chosen)


def _mode(mode: str) -> Any:
    from climassay.corpus.search import check_mode

    return check_mode(mode)


def _documents(paths: Sequence[Path], options: "ReadOptions", skipped: "list[Skipped]") -> "Iterator[Document]":
    """Documents of files, one after the other; what could not be read goes into ``skipped``."""
    from climassay.corpus.reading import read_all

    for result in read_all(paths, options):
        skipped.extend(result.skipped)
        yield from result.documents


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)
