"""ClimateX: statements of the three working-group reports of AR6 with their tags, made fit for learning.

Published with tags of other statements inside 800 of its texts, with statements that occur twice, and without context.
Here tags, references and section marks are taken out, equal statements are kept once (those with different tags not at
all), and context, section and chapter are recovered from the reports' paragraphs.

References:
    Lacombe, Wu and Dilworth 2023, ClimateX: Do LLMs Accurately Assess Human Expert Confidence in Climate Statements?
    arXiv 2311.17107.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from climassay.confidence.tagging.items import LEVELS, LabelledItem, TaggingItem
from climassay.confidence.tagging.recovery import Place, SectionIndex, index_reports, read_sections
from climassay.confidence.tagging.wording import normalised, plain_statement
from climassay.confidence.vocabulary import Tag
from climassay.errors import InputError

_REPORTS = {"AR6_WGI": "wg1", "AR6_WGII": "wg2", "AR6_WGIII": "wg3"}
_COLUMNS = ("report", "page_num", "statement", "confidence")
_SHORTEST = 4
"""Words; what is shorter after cleaning states nothing."""


@dataclass(frozen=True, slots=True)
class ClimateX:
    """The data set as it is learned from, and what was done to it."""

    items: tuple[LabelledItem, ...]
    rows: int
    """Read."""
    same: int
    """Left out because the same words with the same tag came before."""
    contradicting: int
    """Left out because the same words came with different tags."""
    too_short: int
    """Left out because hardly a word was left."""
    recovered: int
    """Items whose place in the report was found."""
    sha256: str

    @property
    def match_rate(self) -> float:
        """Share of items whose context was recovered."""
        return self.recovered / max(len(self.items), 1)


@dataclass(frozen=True, slots=True)
class _Row:
    text: str
    tag: Tag
    report: str
    page: str


def read_climatex(path: Path, paragraphs: Path | None = None) -> ClimateX:
    """Read the data set.

    Args:
        path: The published table, tab-separated.
        paragraphs: Paragraphs of the reports (:func:`~climassay.confidence.tagging.recovery.read_sections`); without
            them items have no context, and their pages stand for sections and documents.

    Raises:
        InputError: A file cannot be read, or a tag is none of ClimateX's four.
    """
    from climassay.models.file_digest import file_digest

    rows = _read(path)
    tags: dict[str, set[Tag]] = {}
    for row in rows:
        tags.setdefault(normalised(row.text), set()).add(row.tag)
    kept: dict[str, _Row] = {}
    contradicting = too_short = 0
    for row in rows:
        words = normalised(row.text)
        if len(words.split()) < _SHORTEST:
            too_short += 1
        elif len(tags[words]) > 1:
            contradicting += 1
        else:
            kept.setdefault(words, row)
    indices = index_reports(read_sections(paragraphs)) if paragraphs else {}
    items = _placed(list(kept.values()), indices)
    same = len(rows) - too_short - contradicting - len(items)
    recovered = sum(item.recovered for item in items)
    return ClimateX(tuple(items), len(rows), same, contradicting, too_short, recovered, file_digest(path))


def _read(path: Path) -> list[_Row]:
    rows = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE), start=2):
                report, page, text, said = (row[name] for name in _COLUMNS)
                tag = next((level for level in LEVELS if level == said), None)
                if tag is None:
                    raise InputError(f"{path}, line {number}: {said!r} is none of {', '.join(LEVELS)}.")
                rows.append(_Row(plain_statement(text), tag, report, page))
    except (OSError, UnicodeDecodeError, KeyError, TypeError, AttributeError, csv.Error) as error:
        raise InputError(f"{path} is no table with the columns {', '.join(_COLUMNS)}: {error}.") from None
    return rows


def _placed(rows: Sequence[_Row], indices: dict[str, SectionIndex]) -> list[LabelledItem]:
    """Items in the order of the table, which follows the pages: what is not found belongs to the last chapter found."""
    items = []
    chapter: dict[str, str] = {}
    for row in rows:
        index = indices.get(_REPORTS.get(row.report, row.report))
        place = index.find(row.text) if index else None
        if place is not None:
            chapter[row.report] = place.section.document
        items.append(_item(row, place, chapter.get(row.report, f"{row.report} opening")))
    return items


def _item(row: _Row, place: Place | None, chapter: str) -> LabelledItem:
    if place is None:
        section = f"{row.report}, page {row.page}"
        return LabelledItem(TaggingItem(row.text), row.tag, row.report, chapter, section)
    item = TaggingItem(row.text, place.before, place.after)
    return LabelledItem(item, row.tag, row.report, place.section.document, place.section.name, recovered=True)
