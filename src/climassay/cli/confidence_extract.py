"""``climassay confidence extract``: the statements of reports, with the confidence that their authors gave them."""

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.output import (
    JsonOption,
    WorkspaceOption,
    print_json,
    progress_bar,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.confidence.extraction import CertaintyTerm, ExtractOptions
    from climassay.confidence.statement import Statement
    from climassay.corpus.documents import Document, Skipped
    from climassay.corpus.options import TableColumns


class AcronymChoice(StrEnum):
    """Which acronyms are spelled out."""

    every = "every"
    first = "first"
    none = "none"


class ParagraphChoice(StrEnum):
    """Whether tags behind a paragraph's last full stop hold for all its sentences."""

    found = "found"
    always = "always"
    never = "never"


class RangeChoice(StrEnum):
    """Which end of a range is the level."""

    UPPER = "upper"
    LOWER = "lower"


def extract(
    reports: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="REPORT...", help="PDF, HTML, Word, Markdown, text, EPUB, tables of paragraphs; folders."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the statements (.jsonl for other commands, .csv, .xlsx)."),
    ] = None,
    collection: Annotated[
        list[str] | None, typer.Option(help="Take the documents of a collection (may be given several times).")
    ] = None,
    report: Annotated[str | None, typer.Option(help='Which report the files are, for example "AR5 WG2".')] = None,
    cycle: Annotated[
        str | None, typer.Option(help="Assessment cycle, AR3 to AR6, where the files do not tell.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", "-c", metavar="FIELD=COLUMN", help="Columns of tables, as for climassay corpus add."),
    ] = None,
    acronyms: Annotated[
        AcronymChoice, typer.Option(help="Spell out every acronym, the first of each in a sentence, or none.")
    ] = AcronymChoice.every,
    ranges: Annotated[
        RangeChoice, typer.Option(help='Level of "medium to high confidence": the upper or the lower end.')
    ] = RangeChoice.UPPER,
    paragraph_tags: Annotated[
        ParagraphChoice,
        typer.Option(
            help="Tags behind a paragraph's last full stop: for the whole paragraph where a report means it so."
        ),
    ] = ParagraphChoice.found,
    untagged: Annotated[bool, typer.Option("--untagged", help="Give sentences without a level too.")] = False,
    context: Annotated[int, typer.Option(help="Sentences kept before and after, in the same section.")] = 5,
    terms: Annotated[
        Path | None,
        typer.Option(help="Write terms of likelihood, evidence and agreement, one a row (.csv, .xlsx or .jsonl)."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to review the statements.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Extract statements with their level of confidence, likelihood, evidence and agreement, and their context."""
    from climassay.cli.corpus import table_columns
    from climassay.confidence.extraction import ExtractOptions, extract_terms
    from climassay.confidence.extraction.review import review_page
    from climassay.confidence.statement import write_statements
    from climassay.reporting.row_files import write_rows

    options = ExtractOptions(
        acronyms.value, context, untagged, ranges.value, paragraph_tags.value, report=report, cycle=cycle
    )
    if not reports and not collection:
        raise InputError("Nothing to read: name the files of reports, or --collection.")
    skipped: list[Skipped] = []
    documents = [
        *_read(reports or [], table_columns(columns or []), skipped, as_json),
        *_from_collections(collection or [], workspace),
    ]
    if not documents:
        reason = f": {skipped[0].source}: {skipped[0].reason}" if skipped else "."
        raise InputError(f"Nothing was read{reason}")
    statements = _extracted(documents, options, as_json)
    other_terms = extract_terms(documents, report)
    if output is not None:
        write_statements(statements, output)
    if terms is not None:
        write_rows(terms, [asdict(one) for one in other_terms])
    if html is not None:
        write_text(html, review_page(statements, other_terms))
    if as_json:
        print_json({"statements": statements, "terms": other_terms, "skipped": skipped})
    else:
        _show(statements, other_terms, skipped, {"Statements": output, "Terms": terms, "Review page": html})


def _extracted(documents: "Sequence[Document]", options: "ExtractOptions", quiet: bool) -> "list[Statement]":
    """Statements of documents, one after the other so that progress shows."""
    from climassay.confidence.extraction import extract, mark_duplicates

    found: list[Statement] = []
    with progress_bar(quiet=quiet or len(documents) == 1) as progress:
        task = progress.add_task("extracting", total=len(documents))
        for document in documents:
            found += extract([document], options)
            progress.advance(task)
    return mark_duplicates(found)


def _read(
    reports: "Sequence[Path]", columns: "TableColumns", skipped: "list[Skipped]", quiet: bool
) -> "list[Document]":
    from climassay.corpus.reading import ReadOptions, find_files, read

    documents: list[Document] = []
    files = find_files(reports)
    with progress_bar(quiet=quiet or len(files) <= 1) as progress:
        task = progress.add_task("reading", total=len(files))
        for file in files:
            result = read(file, ReadOptions(columns=columns))
            documents += result.documents
            skipped += result.skipped
            progress.advance(task)
    return documents


def _from_collections(names: "Sequence[str]", workspace: Path | None) -> "list[Document]":
    if not names:
        return []
    from climassay.confidence.extraction import documents_of_collection
    from climassay.corpus import Collection
    from climassay.workspace import Workspace

    place = Workspace.open(workspace)
    return [document for name in names for document in documents_of_collection(Collection.open(place, name))]


def _show(
    statements: "Sequence[Statement]",
    terms: "Sequence[CertaintyTerm]",
    skipped: "Sequence[Skipped]",
    written: dict[str, Path | None],
) -> None:
    from climassay.confidence.extraction.review import summary_table, term_table
    from climassay.reporting.terminal import as_rich

    stdout_console().print(as_rich(summary_table(statements)))
    if terms:
        stdout_console().print(as_rich(term_table(terms)))
    for one in skipped:
        stderr_console().print(f"Not read: {one.source}: {one.reason}", highlight=False)
    for said, path in written.items():
        if path is not None:
            stderr_console().print(f"{said}: {path}", highlight=False)
    if not any(written.values()):
        hint = "Keep the statements with -o statements.jsonl, or look at them with --html review.html."
        stderr_console().print(hint, highlight=False)
