"""Statements as input for taggers, and statements with known tags: the data set ClimateX, or extracted statements.

ClimateX holds statements of the three working-group reports of AR6. It was published with tags of other statements
inside 800 of its texts, with statements that occur twice, and without context. This module removes tags, references and
section marks from the texts, and removes duplicates (all copies if their tags differ). It recovers context, section and
chapter from the reports' paragraphs.

References:
    Lacombe, Wu and Dilworth 2023, ClimateX: Do LLMs Accurately Assess Human Expert Confidence in Climate Statements?
    arXiv 2311.17107.
"""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from climassay.claim_identity import bare_words
from climassay.confidence.extraction.cleaning import clean_sentence
from climassay.confidence.statement import Statement, read_statements
from climassay.confidence.vocabulary import LEVELS, Level
from climassay.errors import InputError
from climassay.io import parse_rows, read_bytes
from climassay.learning.features import Text

TAGGER_LEVELS: tuple[Level, ...] = LEVELS[1:]
"""Four levels of the ClimateX data set, from low to very high. ClimateX has no statements of very low confidence."""
Taggable: TypeAlias = "Statement | TaggingItem | tuple[str, str] | str"
"""Input of a tagger: a statement, a text, or a pair of a text and its context. Tags in the text are removed."""
CLIMATEX_LICENCE = "statements and tags: IPCC AR6; ClimateX (Lacombe, Wu and Dilworth 2023): CC BY 4.0"
CLIMATEX_CYCLE = "AR6"
"""Assessment cycle of all statements of ClimateX."""
OWN_LICENCE = "as the reports that the statements were extracted from"
_REPORTS = {"AR6_WGI": "wg1", "AR6_WGII": "wg2", "AR6_WGIII": "wg3"}
_COLUMNS = ("report", "page_num", "statement", "confidence")
_MIN_WORDS = 4
"""Minimum number of words of a statement after cleaning."""
_WORDS_PER_SHINGLE = 4
"""Number of consecutive words of a shingle."""
_MIN_SHARED_SHINGLES = 0.6
"""A statement counts as a sentence of a report if at least this proportion of its shingles occur in the sentence.

Two copies of a sentence that differ in footnote numbers, spaces in formulas and hyphens at line ends have a higher
proportion in common; two sentences on one subject have a lower proportion.
"""
_CONTEXT = 5
"""Number of context sentences on each side, as in Maiya (2024)."""


def clean_statement(text: str) -> str:
    """Return a statement without confidence tags, evidence and agreement terms, references and section numbers.

    The rules are those of the extraction of statements, so that a tagger gets texts of the same form in training and in
    use. Words that a line break has split at a hyphen ("climate- induced") are joined first.
    """
    joined_text = re.sub(r"(?<=[a-z]-)\s+(?=[a-z])(?!(?:and|or|to)\b)", "", text.replace("\u00ad", ""))
    return clean_sentence(" ".join(joined_text.split()))


@dataclass(frozen=True, slots=True)
class TaggingItem:
    """Statement with the sentences around it, without tags, references and section numbers."""

    text: str
    before: tuple[str, ...] = ()
    """Sentences before the statement in its section, in order."""
    after: tuple[str, ...] = ()

    @classmethod
    def convert(cls, item: Taggable) -> "TaggingItem":
        """Convert a statement, a text, or a text and its context.

        Args:
            item: Statement, text, or pair of text and context. The context is split at the text; a context that does
                not contain the text counts as preceding the text.
        """
        if isinstance(item, TaggingItem):
            return item
        if isinstance(item, Statement):
            sides = (tuple(map(clean_statement, side)) for side in (item.before, item.after))
            return cls(clean_statement(item.text), *sides)
        from climassay.corpus.sentences import split_sentences

        text, context = (item, "") if isinstance(item, str) else item
        preceding_text, match, following_text = context.partition(text) if text else (context, "", "")
        if not match:
            preceding_text, following_text = context, ""
        context_sides = (
            filter(None, map(clean_statement, split_sentences(side))) for side in (preceding_text, following_text)
        )
        return cls(clean_statement(text), *map(tuple, context_sides))

    def window(self, sentences: int) -> str:
        """Return the statement with up to ``sentences`` context sentences on each side, as one text."""
        if not sentences:
            return self.text
        return " ".join((*self.before[-sentences:], self.text, *self.after[:sentences]))

    def read(self, sentences: int = 5) -> Text:
        """Return the statement as input for a classifier, with up to ``sentences`` context sentences on each side."""
        return self.text, " ".join((*self.before[-sentences:], *self.after[:sentences]))


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """Statement with its known tag."""

    item: TaggingItem
    tag: Level
    report: str
    document: str
    """Chapter or summary of a report. In the evaluation of taggers, the statements of a document are held out together.
    """
    section: str
    """Section of the report; the statements of a section are never divided between training and test data."""
    recovered: bool = False
    """Whether the statement was found in the report; its context is then known."""
    id: str = ""
    """Id of the extracted statement; empty if the data has none."""
    cycle: str = ""
    """Assessment cycle, for example ``AR6``; empty if unknown."""


@dataclass(frozen=True, slots=True)
class LabelledTable:
    """Labelled statements for training or evaluation."""

    name: str
    sha256: str
    licence: str
    items: tuple[LabelledItem, ...]
    notes: tuple[str, ...]
    """Sentences that state the numbers of statements read and removed."""


def read_labelled(path: Path, paragraphs: Path | None = None) -> LabelledTable:
    """Read labelled statements.

    Args:
        path: ClimateX's table (``.tsv`` or ``.csv``), or JSON lines of ``climassay confidence extract``.
        paragraphs: File with the paragraphs of the reports, from which ClimateX's contexts are recovered.

    Raises:
        InputError: The file cannot be read, or has no statement with a tag.
    """
    from climassay.models.bundled import file_digest

    if path.suffix in (".tsv", ".csv"):
        climatex = read_climatex(path, paragraphs)
        licence, items = CLIMATEX_LICENCE, climatex.items
        notes = [
            f"{climatex.rows} rows: {climatex.duplicates} repeat another, {climatex.contradicting} have the words of "
            f"another but not its tag, {climatex.too_short} have hardly a word; {len(items)} are left.",
            f"The context of {climatex.recovered} ({climatex.match_rate:.1%}) was found in "
            f"{paragraphs.name if paragraphs else 'the table'}."
            if paragraphs or climatex.recovered
            else "No context: give --paragraphs to have it recovered.",
        ]
    else:
        statements = read_statements(path)
        levels_by_words: dict[str, set[Level | None]] = defaultdict(set)
        for statement in statements:
            levels_by_words[bare_words(statement.text)].add(statement.tag)
        unique_statements = [statement for statement in statements if statement.duplicate_of is None]
        consistent_statements = [
            statement for statement in unique_statements if len(levels_by_words[bare_words(statement.text)]) == 1
        ]
        licence, items = OWN_LICENCE, tuple(
            LabelledItem(
                TaggingItem.convert(statement), statement.tag, statement.report,
                document := f"{statement.document_id} {statement.chapter or ''}".strip(),
                f"{document}: {statement.section or statement.page}", bool(statement.headings), statement.id,
                statement.cycle or "",
            )
            for statement in consistent_statements if statement.tag in TAGGER_LEVELS
        )  # fmt: skip
        notes = [
            f"{len(statements)} statements: {len(statements) - len(unique_statements)} repeat another, "
            f"{len(unique_statements) - len(consistent_statements)} have the words of another but not its level "
            "(sentences with several levels), "
            f"{len(consistent_statements) - len(items)} have no tag or very low confidence."
        ]
    if not items:
        raise InputError(f"{path} has no statements with a tag of {', '.join(TAGGER_LEVELS)} confidence.")
    return LabelledTable(path.name, file_digest(path), licence, items, tuple(notes))


@dataclass(frozen=True, slots=True)
class ClimateX:
    """Statements of ClimateX prepared for tagging, with counts of removed rows."""

    items: tuple[LabelledItem, ...]
    rows: int
    duplicates: int
    """Number of rows removed because an earlier row has the same words and tag."""
    contradicting: int
    """Number of rows removed because another row has the same words but a different tag."""
    too_short: int
    """Number of rows removed because they have fewer than four words."""
    recovered: int

    @property
    def match_rate(self) -> float:
        """Proportion of items whose context was recovered."""
        return self.recovered / max(len(self.items), 1)


class _Row(NamedTuple):
    text: str
    tag: Level
    report: str
    page: str
    context: str


def read_climatex(path: Path, paragraphs: Path | None = None) -> ClimateX:
    """Read ClimateX, remove unusable rows and recover the statements' contexts.

    Args:
        path: Published table, as tab-separated values or CSV.
        paragraphs: File with the paragraphs of the reports (see :func:`read_sections`). If None, contexts are those of
            the table's column ``context``, if it has one, and pages serve as sections and documents.

    Raises:
        InputError: A file cannot be read, or a tag is not one of ClimateX's four.
    """
    from climassay.corpus.sentences import split_sentences

    rows = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = (
                csv.DictReader(file)
                if path.suffix == ".csv"
                else csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            )
            if missing_columns := [name for name in _COLUMNS if name not in (table.fieldnames or ())]:
                raise InputError(f"{path} has no column {', '.join(missing_columns)}.")
            for number, cells in enumerate(table, start=2):
                report, page, text, tag_text = (cells[name] for name in _COLUMNS)
                tag = next((level for level in TAGGER_LEVELS if level == tag_text), None)
                if tag is None:
                    raise InputError(f"{path}, line {number}: {tag_text!r} is not one of {', '.join(TAGGER_LEVELS)}.")
                rows.append(_Row(clean_statement(text), tag, report, page, cells.get("context") or ""))
    except (OSError, UnicodeDecodeError, TypeError, AttributeError, csv.Error) as error:
        raise InputError(f"{path} is not a table with the columns {', '.join(_COLUMNS)}: {error}.") from None
    tags: dict[str, set[Level]] = defaultdict(set)
    for row in rows:
        tags[bare_words(row.text)].add(row.tag)
    unique_rows: dict[str, _Row] = {}
    n_contradicting = n_too_short = 0
    for row in rows:
        words = bare_words(row.text)
        if len(words.split()) < _MIN_WORDS:
            n_too_short += 1
        elif len(tags[words]) > 1:
            n_contradicting += 1
        else:
            unique_rows.setdefault(words, row)
    sections = read_sections(paragraphs) if paragraphs else {}
    indices = {report: SectionIndex(report_sections) for report, report_sections in sections.items()}
    items: list[LabelledItem] = []
    latest_chapters: dict[str, str] = {}
    # The table is in page order: a statement that is not found belongs to the last chapter that was.
    for text, tag, report, page, context in unique_rows.values():
        section_index = indices.get(_REPORTS.get(report, report))
        if paragraphs is None and context:
            sentences = tuple(filter(None, map(clean_statement, split_sentences(context))))
            section_index = SectionIndex([ReportSection(f"{report}, page {page}", f"{report} opening", sentences)])
        location = section_index.find(text) if section_index else None
        if location is None:
            document = latest_chapters.get(report, f"{report} opening")
            items.append(
                LabelledItem(TaggingItem(text), tag, report, document, f"{report}, page {page}", cycle=CLIMATEX_CYCLE)
            )
            continue
        section, index = location
        latest_chapters[report] = section.document
        preceding_sentences = section.sentences[max(0, index - _CONTEXT) : index]
        item = TaggingItem(text, preceding_sentences, section.sentences[index + 1 : index + 1 + _CONTEXT])
        items.append(
            LabelledItem(item, tag, report, section.document, section.name, recovered=True, cycle=CLIMATEX_CYCLE)
        )
    n_duplicates = len(rows) - n_too_short - n_contradicting - len(items)
    return ClimateX(
        tuple(items), len(rows), n_duplicates, n_contradicting, n_too_short, sum(item.recovered for item in items)
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReportSection:
    """Section of a report, divided into cleaned sentences."""

    name: str
    """Name of the section, composed of document and headings."""
    document: str
    sentences: tuple[str, ...]


class SectionIndex:
    """Index that finds sections of a report by the shingles of their sentences."""

    def __init__(self, sections: Sequence[ReportSection]) -> None:
        self._sections = list(sections)
        self._locations: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for section_index, section in enumerate(self._sections):
            for sentence_index, sentence in enumerate(section.sentences):
                for shingle in _make_shingles(sentence):
                    self._locations[shingle].append((section_index, sentence_index))

    def find(self, text: str) -> tuple[ReportSection, int] | None:
        """Return the section and index of the sentence that shares the most shingles with a cleaned statement.

        In a tie, the first such sentence is returned.

        Returns:
            Section and index of the sentence in it; None if no sentence shares enough shingles.
        """
        shingles = _make_shingles(text)
        hits = Counter(location for shingle in shingles for location in self._locations.get(shingle, ()))
        max_hits = max(hits.values(), default=0)
        # A statement over two sentences is found at the one with more of it.
        if not max_hits or max_hits < _MIN_SHARED_SHINGLES * len(shingles):
            return None
        section, sentence_index = min(location for location, count in hits.items() if count == max_hits)
        return self._sections[section], sentence_index


def read_sections(path: Path) -> dict[str, list[ReportSection]]:
    """Read the sections of each report from a file of paragraphs.

    Args:
        path: JSON lines (gzip or plain) with ``report``, ``doc_id``, ``headings``, ``class`` and ``text``.

    Returns:
        Sections by the value of ``report``, in the order of the file, without footnotes and captions.

    Raises:
        InputError: The file cannot be read.
    """
    from climassay.corpus.sentences import split_sentences

    by_report: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(dict)
    try:
        for row in parse_rows(path, read_bytes(path)):
            if row["class"] == "body":
                name = f"{row['doc_id']}: {row['headings']}"
                sentences = by_report[row["report"]].setdefault((name, row["doc_id"]), [])
                sentences += filter(None, map(clean_statement, split_sentences(row["text"])))
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} is not a file of report paragraphs: {error}.") from None
    return {
        report: [ReportSection(name, document, tuple(sentences)) for (name, document), sentences in sections.items()]
        for report, sections in by_report.items()
    }


def _make_shingles(text: str) -> set[str]:
    # Blanks inside formulas and after hyphens depend on how a PDF was read, digits on footnotes.
    words = "".join(character if not character.isdigit() else " " for character in bare_words(text)).split()
    if len(words) < _WORDS_PER_SHINGLE:
        return {" ".join(words)} if words else set()
    return {" ".join(words[start : start + _WORDS_PER_SHINGLE]) for start in range(len(words) - _WORDS_PER_SHINGLE + 1)}
