"""Statements as taggers see them, and those with known tags: ClimateX, made fit for learning, or extracted ones.

ClimateX holds statements of the three working-group reports of AR6. It was published with tags of other statements
inside 800 of its texts, with statements that occur twice, and without context. Here tags, references and section marks
are taken out, equal statements are kept once (those with different tags not at all), and context, section and chapter
are recovered from the reports' paragraphs.

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
from climassay.confidence.vocabulary import TAGS, Tag
from climassay.errors import InputError
from climassay.io import parse_rows, read_bytes
from climassay.learning.features import Text

LEVELS: tuple[Tag, ...] = TAGS[1:]
"""Low to very high: the four levels of ClimateX, which has no statement of very low confidence."""
Taggable: TypeAlias = "Statement | TaggingItem | tuple[str, str] | str"
"""A statement; a text; or a text and its context. Tags in them are taken out before they are read."""
CLIMATEX_LICENCE = "statements and tags: IPCC AR6; ClimateX (Lacombe, Wu and Dilworth 2023): CC BY 4.0"
OWN_LICENCE = "as the reports that the statements were extracted from"
_REPORTS = {"AR6_WGI": "wg1", "AR6_WGII": "wg2", "AR6_WGIII": "wg3"}
_COLUMNS = ("report", "page_num", "statement", "confidence")
_SHORTEST = 4
"""Words; what is shorter after cleaning states nothing."""
_SHINGLE = 4
"""Words in a row that are looked up."""
_FOUND = 0.6
"""Least share of a statement's shingles in one paragraph: a sentence of the same words but for numbers of footnotes,
blanks inside formulas and hyphens at line ends has more, another sentence on the same matter less."""
_CONTEXT = 5
"""Sentences each side, as the thesis takes."""


def plain_statement(text: str) -> str:
    """A statement without confidence tags, evidence and agreement terms, references and section marks.

    The same rules as for statements extracted from reports, so that a tagger reads at use what it read in training;
    words that a line end broke are joined by their hyphen first ("climate- induced").
    """
    joined = re.sub(r"(?<=[a-z]-)\s+(?=[a-z])(?!(?:and|or|to)\b)", "", text.replace("\u00ad", ""))
    return clean_sentence(" ".join(joined.split()))


@dataclass(frozen=True, slots=True)
class TaggingItem:
    """A statement with the sentences around it, freed of tags, references and section marks."""

    text: str
    before: tuple[str, ...] = ()
    """Sentences before it in its section, in order."""
    after: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Taggable) -> "TaggingItem":
        """From whatever a user may have.

        Args:
            given: A statement; a text; or a text and its context, as one string: where the context contains the text
                it is parted there, else all of it counts as standing before.
        """
        if isinstance(given, TaggingItem):
            return given
        if isinstance(given, Statement):
            sides = (tuple(map(plain_statement, side)) for side in (given.before, given.after))
            return cls(plain_statement(given.text), *sides)
        from climassay.corpus.sentences import split_sentences

        text, context = (given, "") if isinstance(given, str) else given
        before, result, after = context.partition(text) if text else (context, "", "")
        if not result:
            before, after = context, ""
        around = (filter(None, map(plain_statement, split_sentences(side))) for side in (before, after))
        return cls(plain_statement(text), *map(tuple, around))

    def window(self, sentences: int) -> str:
        """The statement between this many sentences each side."""
        if not sentences:
            return self.text
        return " ".join((*self.before[-sentences:], self.text, *self.after[:sentences]))

    def read(self, sentences: int = 5) -> Text:
        """The statement, and this many sentences each side of it, without itself; empty where there are none."""
        return self.text, " ".join((*self.before[-sentences:], *self.after[:sentences]))


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """A statement whose tag is known."""

    item: TaggingItem
    tag: Tag
    report: str
    document: str
    """Chapter or summary of a report; taggers are tested on documents that they have not seen."""
    section: str
    """Statements of one section never appear on both sides of a split."""
    recovered: bool = False
    """Whether its place in the report, and so its context, was found."""
    id: str = ""
    """Id of the extracted statement; empty where the data has none."""


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
        paragraphs: Paragraphs of the reports, for ClimateX's contexts.

    Raises:
        InputError: It cannot be read, or has no statement with a tag.
    """
    from climassay.models.bundled import file_digest

    if path.suffix == ".tsv":
        read = read_climatex(path, paragraphs)
        licence, items = CLIMATEX_LICENCE, read.items
        notes = [
            f"{read.rows} rows: {read.same} repeat another, {read.contradicting} have the words of another but not its "
            f"tag, {read.too_short} have hardly a word; {len(items)} are left.",
            f"The context of {read.recovered} ({read.match_rate:.1%}) was found in {paragraphs.name}."
            if paragraphs
            else "No context: give --paragraphs to have it recovered.",
        ]
    else:
        statements = read_statements(path)
        levels: dict[str, set[Tag | None]] = defaultdict(set)
        for one in statements:
            levels[bare_words(one.text)].add(one.tag)
        once = [one for one in statements if one.duplicate_of is None]
        clear = [one for one in once if len(levels[bare_words(one.text)]) == 1]
        licence, items = OWN_LICENCE, tuple(
            LabelledItem(
                TaggingItem.of(one), one.tag, one.report,
                document := f"{one.document_id} {one.chapter or ''}".strip(),
                f"{document}: {one.section or one.page}", bool(one.headings), one.id,
            )
            for one in clear if one.tag in LEVELS
        )  # fmt: skip
        notes = [
            f"{len(statements)} statements: {len(statements) - len(once)} repeat another, {len(once) - len(clear)} "
            "have the words of another but not its level (sentences with several levels), "
            f"{len(clear) - len(items)} have no tag or very low confidence."
        ]
    if not items:
        raise InputError(f"{path} has no statements with a tag of {', '.join(LEVELS)} confidence.")
    return LabelledTable(path.name, file_digest(path), licence, items, tuple(notes))


@dataclass(frozen=True, slots=True)
class ClimateX:
    """The data set as it is learned from, and what was done to it."""

    items: tuple[LabelledItem, ...]
    rows: int
    same: int
    """Left out because the same words with the same tag came before."""
    contradicting: int
    """Left out because the same words came with different tags."""
    too_short: int
    """Left out because hardly a word was left."""
    recovered: int

    @property
    def match_rate(self) -> float:
        """Share of items whose context was recovered."""
        return self.recovered / max(len(self.items), 1)


class _Row(NamedTuple):
    text: str
    tag: Tag
    report: str
    page: str


def read_climatex(path: Path, paragraphs: Path | None = None) -> ClimateX:
    """Read the data set.

    Args:
        path: The published table, tab-separated.
        paragraphs: Paragraphs of the reports (:func:`read_sections`); without them items have no context, and their
            pages stand for sections and documents.

    Raises:
        InputError: A file cannot be read, or a tag is not one of ClimateX's four.
    """
    rows = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE), start=2):
                report, page, text, said = (row[name] for name in _COLUMNS)
                tag = next((level for level in LEVELS if level == said), None)
                if tag is None:
                    raise InputError(f"{path}, line {number}: {said!r} is not one of {', '.join(LEVELS)}.")
                rows.append(_Row(plain_statement(text), tag, report, page))
    except (OSError, UnicodeDecodeError, KeyError, TypeError, AttributeError, csv.Error) as error:
        raise InputError(f"{path} is not a table with the columns {', '.join(_COLUMNS)}: {error}.") from None
    tags: dict[str, set[Tag]] = defaultdict(set)
    for one in rows:
        tags[bare_words(one.text)].add(one.tag)
    kept: dict[str, _Row] = {}
    contradicting = too_short = 0
    for one in rows:
        words = bare_words(one.text)
        if len(words.split()) < _SHORTEST:
            too_short += 1
        elif len(tags[words]) > 1:
            contradicting += 1
        else:
            kept.setdefault(words, one)
    sections = read_sections(paragraphs) if paragraphs else {}
    indices = {report: SectionIndex(result) for report, result in sections.items()}
    items: list[LabelledItem] = []
    chapter: dict[str, str] = {}
    # The table follows the pages: what is not found belongs to the last chapter found.
    for text, tag, report, page in kept.values():
        index = indices.get(_REPORTS.get(report, report))
        place = index.find(text) if index else None
        if place is None:
            document = chapter.get(report, f"{report} opening")
            items.append(LabelledItem(TaggingItem(text), tag, report, document, f"{report}, page {page}"))
            continue
        section, at = place
        chapter[report] = section.document
        around = section.sentences[max(0, at - _CONTEXT) : at], section.sentences[at + 1 : at + 1 + _CONTEXT]
        items.append(LabelledItem(TaggingItem(text, *around), tag, report, section.document, section.name, True))
    same = len(rows) - too_short - contradicting - len(items)
    return ClimateX(
        tuple(items), len(rows), same, contradicting, too_short, sum(item.recovered for item in items)
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report as cleaned sentences."""

    name: str
    """Document and headings."""
    document: str
    sentences: tuple[str, ...]


class SectionIndex:
    """Sections of one report, found by what is said in them."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self._sections = list(sections)
        self._places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, section in enumerate(self._sections):
            for first, sentence in enumerate(section.sentences):
                for shingle in _shingles(sentence):
                    self._places[shingle].append((number, first))

    def find(self, text: str) -> tuple[Section, int] | None:
        """The section, and the place in it, of the sentence that has most of a statement's words in a row.

        Args:
            text: A cleaned statement. Of equally good sentences the first is taken.

        Returns:
            None where no sentence has enough of its words.
        """
        wanted = _shingles(text)
        hits = Counter(place for shingle in wanted for place in self._places.get(shingle, ()))
        best = max(hits.values(), default=0)
        # A statement that runs over two sentences is found by the one that has more of it.
        if not best or best < _FOUND * len(wanted):
            return None
        section, first = min(place for place, count in hits.items() if count == best)
        return self._sections[section], first


def read_sections(path: Path) -> dict[str, list[Section]]:
    """Sections of each report in a file of paragraphs.

    Args:
        path: JSON lines (gzip or plain) with ``report``, ``doc_id``, ``headings``, ``class`` and ``text``.

    Returns:
        By ``report``, in the order of the file; footnotes and captions left out.

    Raises:
        InputError: The file cannot be read.
    """
    from climassay.corpus.sentences import split_sentences

    result: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(dict)
    try:
        for row in parse_rows(path, read_bytes(path)):
            if row["class"] == "body":
                name = f"{row['doc_id']}: {row['headings']}"
                kept = result[row["report"]].setdefault((name, row["doc_id"]), [])
                kept += filter(None, map(plain_statement, split_sentences(row["text"])))
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} is not a file of report paragraphs: {error}.") from None
    return {
        report: [Section(name, document, tuple(sentences)) for (name, document), sentences in sections.items()]
        for report, sections in result.items()
    }


def _shingles(text: str) -> set[str]:
    # Blanks inside formulas and after hyphens come and go with the way a PDF was read, digits with footnotes.
    words = "".join(one if not one.isdigit() else " " for one in bare_words(text)).split()
    if len(words) < _SHINGLE:
        return {" ".join(words)} if words else set()
    return {" ".join(words[start : start + _SHINGLE]) for start in range(len(words) - _SHINGLE + 1)}
