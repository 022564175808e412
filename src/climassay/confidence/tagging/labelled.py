"""Statements with known tags from a file: ClimateX's table, or statements that climassay extracted."""

from dataclasses import dataclass
from pathlib import Path

from climassay.confidence.statement_files import read_statements
from climassay.confidence.tagging.climatex import read_climatex
from climassay.confidence.tagging.items import LEVELS, LabelledItem, TaggingItem
from climassay.errors import InputError

CLIMATEX_LICENCE = "statements and tags: IPCC AR6; ClimateX (Lacombe, Wu and Dilworth 2023): CC BY 4.0"
OWN_LICENCE = "as the reports that the statements were extracted from"


@dataclass(frozen=True, slots=True)
class LabelledTable:
    """Statements to learn from or to test on."""

    name: str
    sha256: str
    licence: str
    items: tuple[LabelledItem, ...]
    notes: tuple[str, ...]
    """What was read and left out, one sentence each."""


def read_labelled(path: Path, paragraphs: Path | None = None) -> LabelledTable:
    """Read a file.

    Args:
        path: ``.tsv``: ClimateX's table; else JSON lines of ``climassay confidence extract``.
        paragraphs: Of the reports, for ClimateX's contexts.

    Raises:
        InputError: It cannot be read, or has no statement with a tag.
    """
    table = _climatex(path, paragraphs) if path.suffix == ".tsv" else _extracted(path)
    if not table.items:
        raise InputError(f"{path} has no statements with a tag of {', '.join(LEVELS)} confidence.")
    return table


def _climatex(path: Path, paragraphs: Path | None) -> LabelledTable:
    read = read_climatex(path, paragraphs)
    notes = [
        f"{read.rows} rows: {read.same} repeat another, {read.contradicting} have the words of another but not its "
        f"tag, {read.too_short} have hardly a word; {len(read.items)} are left."
    ]
    if paragraphs:
        notes.append(f"The context of {read.recovered} ({read.match_rate:.1%}) was found in {paragraphs.name}.")
    else:
        notes.append("No context: give --paragraphs to have it recovered.")
    return LabelledTable(path.name, read.sha256, CLIMATEX_LICENCE, read.items, tuple(notes))


def _extracted(path: Path) -> LabelledTable:
    from climassay.models.file_digest import file_digest

    statements = read_statements(path)
    items = []
    repeated = other = 0
    for one in statements:
        if one.duplicate_of is not None:
            repeated += 1
        elif one.tag not in LEVELS:
            other += 1
        else:
            document = f"{one.document_id} {one.chapter or ''}".strip()
            section = f"{document}: {one.section or one.page}"
            found = bool(one.headings)
            items.append(LabelledItem(TaggingItem.of(one), one.tag, one.report, document, section, found, one.id))
    notes = (f"{len(statements)} statements: {repeated} repeat another, {other} have no tag or very low confidence.",)
    return LabelledTable(path.name, file_digest(path), OWN_LICENCE, tuple(items), notes)
