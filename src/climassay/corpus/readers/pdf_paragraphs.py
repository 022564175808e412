"""Build paragraphs from the ordered lines of PDF pages, by distance, indent, size and style."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from climassay.corpus.documents import Block, ReadOptions
from climassay.corpus.readers.cleaning import LINE_END_HYPHEN, clean, count_words, join_hyphens
from climassay.corpus.readers.pdf_lines import Line, OmittedCounts, PdfTable
from climassay.corpus.readers.table_rows import format_rows
from climassay.corpus.sentences import split_sentences

MAX_LINE_DISTANCE = 1.3
"""Maximum line distance within a paragraph, as a multiple of the usual distance."""
MIN_ITEM_GAP = 1.08
MIN_INDENT = 0.8
"""Minimum indent, as a multiple of the type size."""
MIN_FULL_LINE_SHARE = 0.8
"""Minimum length of a full line, as a fraction of the column width; a shorter line that ends a sentence ends the
paragraph."""
MAX_SIZE_DIFFERENCE = 0.07
"""Maximum relative difference between two type sizes that count as equal."""
_BULLETS = "•◦▪■●○‣·\uf0b7\uf0a7\uf0d8\uf076\uf0fc"
_BULLET = re.compile(rf"[{_BULLETS}–—*→✓✔]\s")
_ITEM = re.compile(rf"(?:[{_BULLETS}*]|[–—-](?=\s[A-Z])|" + r"\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)])\s")
NUMBERED = re.compile(r"(?:[A-Z]\.\d+(?:\.\d+)*\.?|[A-Z]{1,4}\.\d+(?:\.\d+)*|\d{1,2}(?:\.\d{1,2}){1,4}\.?)\s+\S")
PART = re.compile(r"(?:Chapter|CHAPTER|Part|PART|Appendix|APPENDIX|Annex|ANNEX)\s+(?:\d+|[A-Z]|[IVXL]+)[.:]?$")
_NOTE = re.compile(r"(?:\d{1,3}|[*†‡§¶])\s*(?=[A-Z‘“(])")
_ENDS = ".!?:…}。！？؟۔।"
_SENTENCE_END = re.compile(rf"[{_ENDS}]" + r"[\"'”’»)\]}]*(?:\d{1,2})?$|[.!?]\)?\s?\([^()]*\)$")
_END_CHARACTERS = 120
_UNSPACED_CHARACTER = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
"""Pattern of Chinese and Japanese characters, which are written without spaces between words."""


class Kind(Enum):
    """Kind of a paragraph."""

    PROSE = "prose"
    HEADING = "heading"
    CAPTION = "caption"
    FOOTNOTE = "footnote"
    TABLE = "table"


@dataclass(slots=True)
class Paragraph:
    """Lines of one paragraph."""

    lines: list[Line]
    kind: Kind = Kind.PROSE
    last_page: int | None = None
    table: PdfTable | None = None
    caption: str = ""
    """Caption of the table, if the paragraph is a table."""
    _joined_text: tuple[int, str] = (0, "")

    @property
    def first(self) -> Line:
        """First line of the paragraph."""
        return self.lines[0]

    @property
    def last(self) -> Line:
        """Last line of the paragraph."""
        return self.lines[-1]

    @property
    def size(self) -> float:
        """Type size of the middle line."""
        return self.lines[len(self.lines) // 2].size

    @property
    def bold(self) -> bool:
        """Whether all lines are bold."""
        return all(line.bold for line in self.lines)

    @property
    def text(self) -> str:
        """Joined text of the lines, with a placeholder for each hyphen at a line end (see ``join_hyphens``)."""
        if self._joined_text[0] != len(self.lines):
            self._joined_text = (len(self.lines), join_lines(self.lines))
        return self._joined_text[1]


def ends_sentence(text: str) -> bool:
    """Return whether a text ends like a sentence."""
    return text[-1] in _ENDS or _SENTENCE_END.search(text[-_END_CHARACTERS:]) is not None


def join_lines(lines: Sequence[Line]) -> str:
    """Join consecutive lines, with placeholders for hyphens at line ends."""
    parts: list[str] = []
    for line, next_line in zip(lines, [*lines[1:], None], strict=True):
        parts.append(line.text)
        if next_line is None:
            break
        if line.hyphen:
            parts.append(LINE_END_HYPHEN)
        elif line.text[-1] in "-‐" and line.text[-2:-1].isalpha():
            parts[-1] = line.text[:-1]
            parts.append(LINE_END_HYPHEN)
        elif not (line.text[-1] in "/–-" and line.text[-2:-1].strip()) and not (
            _UNSPACED_CHARACTER.match(line.text[-1]) and _UNSPACED_CHARACTER.match(next_line.text)
        ):
            parts.append(" ")
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Style:
    """Usual typography of a document."""

    size: float
    families: frozenset[str]
    """Typefaces in which a considerable part of the text is set."""
    pitches: dict[int, float]
    """Usual distance between baselines, by type size in half points."""
    is_slides: bool = False
    """Whether the font is as large as is usual on slides, where few lines are complete sentences."""

    def pitch(self, size: float) -> float:
        """Return the usual distance between baselines for a type size."""
        return self.pitches.get(round(2 * size), 1.2 * size)


MIN_FAMILY_SHARE = 0.15
MIN_PITCH_COUNT = 3
MIN_PROSE_LINE_CHARACTERS = 35
"""Minimum length, in characters, of lines that determine the style. Shorter lines may be figure labels."""


MIN_SLIDE_SIZE = 0.02
"""Minimum type size of slides, as a fraction of the page height; in reports it is 0.01 to 0.018."""


def find_style(columns: Sequence[Sequence[Line]], page_height: float) -> Style:
    """Determine the usual type size, typefaces and line distances of a document, weighted by characters.

    ``columns`` has the lines of each page in reading order; ``page_height`` is in points.
    """
    sizes: Counter[float] = Counter()
    families: Counter[str] = Counter()
    distances: Counter[tuple[int, float]] = Counter()
    for lines in columns:
        previous_line: Line | None = None
        for line in lines:
            weight = len(line.text)
            half_points = round(2 * line.size)
            sizes[half_points / 2] += weight
            if weight >= MIN_PROSE_LINE_CHARACTERS:
                families[line.family] += weight
                gap = previous_line.y - line.y if previous_line is not None else 0.0
                if 0.8 * line.size < gap < 2.2 * line.size:
                    distances[half_points, round(gap * 4) / 4] += 1
            previous_line = line
    total = sum(families.values())
    size = sizes.most_common(1)[0][0]
    is_slides = size > MIN_SLIDE_SIZE * page_height
    pitches: dict[int, float] = {}
    for (half_points, gap), count in distances.most_common():
        if count >= MIN_PITCH_COUNT:
            pitches.setdefault(half_points, gap)
    if not families:  # nothing but short lines: every typeface may be the text's
        common_families = frozenset(line.family for lines in columns for line in lines)
    else:
        common_families = frozenset(family for family, count in families.items() if count >= MIN_FAMILY_SHARE * total)
    return Style(size, common_families, pitches, is_slides)


def build_paragraphs(lines: Sequence[Line], style: Style) -> list[Paragraph]:
    """Group the lines of one page, in reading order, into paragraphs."""
    paragraphs: list[Paragraph] = []
    for line in lines:
        if paragraphs and not _begins_paragraph(paragraphs[-1], line, style):
            paragraphs[-1].lines.append(line)
        else:
            paragraphs.append(Paragraph([line]))
    return paragraphs


def _begins_paragraph(paragraph: Paragraph, line: Line, style: Style) -> bool:
    last_line = paragraph.last
    gap = last_line.y - line.y
    pitch = style.pitch(max(last_line.size, line.size))
    if gap < 0.3 * line.size or gap > MAX_LINE_DISTANCE * pitch or line.x0 > last_line.right:
        return True
    if abs(line.size - last_line.size) > MAX_SIZE_DIFFERENCE * last_line.size or PART.match(last_line.text):
        return True
    if line.note_number or _BULLET.match(line.text):
        return True
    if NUMBERED.match(line.text) and line.x0 < last_line.x0 - MIN_INDENT * line.size:
        return True
    if gap > MIN_ITEM_GAP * pitch and (_ITEM.match(line.text) or NUMBERED.match(line.text) or _NOTE.match(line.text)):
        return True
    if (
        last_line.bold
        and not line.starts_bold
        and (gap > MIN_ITEM_GAP * pitch or last_line.x1 < MIN_FULL_LINE_SHARE * last_line.right)
    ):
        return True
    if (
        not last_line.bold
        and line.bold
        and last_line.x1 < last_line.right - 2 * line.size
        and ends_sentence(last_line.text)
    ):
        return True
    return _breaks_by_indent(paragraph, line)


def _breaks_by_indent(paragraph: Paragraph, line: Line) -> bool:
    last_line = paragraph.last
    step = MIN_INDENT * line.size
    has_margin = len(paragraph.lines) > 1 and abs(last_line.x0 - paragraph.lines[-2].x0) < step
    is_sentence_end = ends_sentence(last_line.text)
    if has_margin and abs(line.x0 - last_line.x0) > step:
        return True  # first line of an indented paragraph, or of a hanging one
    if len(paragraph.lines) == 1 and line.x0 < last_line.x0 - step:
        return False  # second line of an indented paragraph
    is_short = last_line.x1 - last_line.x0 < MIN_FULL_LINE_SHARE * (last_line.right - last_line.x0)
    return is_sentence_end and is_short and not (line.text[0].islower() or line.text[0] in "{(")


MAX_PARAGRAPHS_BETWEEN = 12
MAX_HEADING_CHARACTERS = 180
MAX_HEADING_LINES = 3
MAX_NUMBERED_HEADING_LINES = 5
MIN_BODY_WORDS = 5
MIN_SMALL_PRINT_WORDS = 12
MIN_OTHER_FAMILY_WORDS = 30
MIN_LOWER_WORDS = 3
MIN_LOWER_WORD_LENGTH = 3
CHARACTERS_PER_UNSPACED_WORD = 2
"""Number of Chinese or Japanese characters that count as one word."""
MIN_ITEM_SIZE = 0.7
"""Minimum type size of list and slide items, as a fraction of the text's type size; labels in figures are smaller."""
MIN_NOTE_WORDS = 2
MIN_SURE_WORDS = 40
MIN_SURE_PROSE_CHARACTERS = 250
MAX_NUMBER_SHARE = 0.45
_LETTER_WORD = re.compile(r"[^\W\d_]{2,}")
_TOKEN_WITH_LETTER = re.compile(r"\S*[^\W\d_]\S*")
_HEADING_WORD = re.compile(r"[^\W\d_]*[a-zà-þ]{2,}|[^\W\d_]{5,}")
_CAPTION = re.compile(
    r"(?:Supplementary\s+|Extended\s+Data\s+)?(?:(?:Cross-[\w-]+\s+)?(?:Box|FAQ)\s+\S+?,?\s+)?"
    r"(?:Figure|FIGURE|Fig\.|FIG\.|Fig|Table|TABLE|Tab\.|Panel|Scheme|Plate)\s*\(?"
    r"(?:[A-Z]{1,5}[.\s]?)?\d*(?:[.\-–]\d+)*[a-z]?\)?(?P<stop>\s*[|:]|\.?\s+(?=[A-Z(\[])|\.?$|\s*[–—]\s)"
)
_TABLE_CAPTION = re.compile(r"(?:Table|TABLE|Tab\.|Tabelle|Tableau|Tabla)\s")
_CONTINUATION_MARK = re.compile(r"\(?continued(?:\s+\w+){0,4}\)?\W*$|\(cont(?:inued|\.|’d)?\)\W*$", re.IGNORECASE)
_NUMBERING = re.compile(r"((?:[A-Z]|\d{1,2}|[A-Z]{2,4})(?:\.\d{1,2})*)\.?\s+\S")
REFERENCES = re.compile(
    r"(?:\d+(?:\.\d+)*\.?\s+)?(?:references|bibliography|literature cited|works cited|reference list)", re.IGNORECASE
)
CONTENTS = re.compile(r"(?:table of )?contents|list of (?:figures|tables)", re.IGNORECASE)
_NOTE_NUMBER = re.compile(r"(?:\d{1,3}(?=[\s‘“(A-Z])|[*†‡§¶])\s*(?=\S)")
_LEGEND = re.compile(r"(?:Panels?|Notes?|Sources?)\s*[(:]|Source:|Note\b|[a-z]\s[A-Z]")
_BOX_TITLE = re.compile(r"(?:Cross-[\w-]+\s+)?(?:Box|FAQ)\b")
_OPENING_PUNCTUATION = "\"'“‘([{"


def classify_paragraphs(paragraphs: Sequence[Paragraph], style: Style) -> None:
    """Set the kind of each paragraph of one page in place."""
    body_lines = [line for paragraph in paragraphs for line in paragraph.lines if _is_body_size(line.size, style)]
    for index, paragraph in enumerate(paragraphs):
        previous = paragraphs[index - 1] if index else None
        text = paragraph.text
        if _is_caption(paragraph, text, previous, style):
            paragraph.kind = Kind.CAPTION
        elif _is_footnote(paragraph, text, body_lines, style):
            paragraph.kind = Kind.FOOTNOTE
        elif _is_heading(paragraph, text, paragraphs[index + 1 : index + 3], style):
            paragraph.kind = Kind.HEADING


MAX_CAPTION_GAP = 4.0
"""Maximum distance between a caption and its table, in lines."""


def insert_tables(paragraphs: Sequence[Paragraph], tables: Sequence[PdfTable]) -> list[Paragraph]:
    """Insert the tables of a page among its paragraphs, and move each table's caption into it."""
    result = list(paragraphs)
    for table in tables:
        lines = table.lines
        left, right = min(line.x0 for line in lines), max(line.x1 for line in lines)
        top, bottom = max(line.y for line in lines), min(line.y for line in lines)
        paragraphs_in_column = [
            candidate
            for candidate in result
            if candidate.table is None and any(line.x0 < right and line.x1 > left for line in candidate.lines)
        ]
        paragraph_above = min(
            (candidate for candidate in paragraphs_in_column if candidate.last.y > top),
            key=lambda candidate: candidate.last.y - top,
            default=None,
        )
        paragraph_below = min(
            (candidate for candidate in paragraphs_in_column if candidate.first.y < bottom),
            key=lambda candidate: bottom - candidate.first.y,
            default=None,
        )
        paragraph = Paragraph(lines, Kind.TABLE, table=table)
        index = (
            result.index(paragraph_above) + 1
            if paragraph_above
            else result.index(paragraph_below)
            if paragraph_below
            else len(result)
        )
        result.insert(index, paragraph)
        for caption in (paragraph_above, paragraph_below):
            gap = 0.0 if caption is None else max(caption.last.y - top, bottom - caption.first.y)
            if caption and _TABLE_CAPTION.match(caption.text) and gap < MAX_CAPTION_GAP * 1.2 * caption.size:
                paragraph.caption = _shorten_caption(clean(caption.text))
                if paragraph.caption == clean(caption.text):
                    result.remove(caption)
                break
    return result


def _shorten_caption(caption: str) -> str:
    """Return the first sentences of a caption, up to :data:`MAX_HEADING_CHARACTERS` characters."""
    sentences = split_sentences(caption)
    text = sentences[0]
    for sentence in sentences[1:]:
        if len(text) + len(sentence) > MAX_HEADING_CHARACTERS:
            break
        text += " " + sentence
    return text if len(text) <= MAX_HEADING_CHARACTERS else text[:MAX_HEADING_CHARACTERS].rsplit(" ", 1)[0] + " …"


def _is_body_size(size: float, style: Style) -> bool:
    return abs(size - style.size) <= MAX_SIZE_DIFFERENCE * style.size


def _is_caption(paragraph: Paragraph, text: str, previous: Paragraph | None, style: Style) -> bool:
    match = _CAPTION.match(text)
    is_distinct = not _is_body_size(paragraph.size, style) or paragraph.first.starts_bold
    if match and any(char.isdigit() for char in match.group()):
        return is_distinct or match["stop"].strip() in {"|", ":"}
    if _is_body_size(paragraph.size, style):
        return False
    if _LEGEND.match(text):
        return True
    if previous is None or previous.kind is not Kind.CAPTION:
        return False
    is_below = 0 < previous.last.y - paragraph.first.y < 3 * paragraph.size
    return (
        is_below
        and abs(previous.size - paragraph.size) < MAX_SIZE_DIFFERENCE * paragraph.size
        and paragraph.size < style.size
    )


def _is_footnote(paragraph: Paragraph, text: str, body_lines: Sequence[Line], style: Style) -> bool:
    if paragraph.size > (1 - MAX_SIZE_DIFFERENCE) * style.size or not (
        paragraph.first.note_number or _NOTE_NUMBER.match(text)
    ):
        return False
    first_line = paragraph.first
    if not (ends_sentence(text) or "http" in text) or len(_LETTER_WORD.findall(text)) < MIN_NOTE_WORDS:
        return False
    return all(line.y > first_line.y for line in body_lines if line.x0 < first_line.x1 and line.x1 > first_line.x0)


def _is_heading(paragraph: Paragraph, text: str, next_paragraphs: Sequence[Paragraph], style: Style) -> bool:
    is_large = paragraph.size > (1 + MAX_SIZE_DIFFERENCE) * style.size
    if (
        not (is_large or paragraph.bold or NUMBERED.match(text))
        or paragraph.size < (1 - MAX_SIZE_DIFFERENCE) * style.size
    ):
        return False
    if style.is_slides and not is_large:
        return False
    is_numbered = NUMBERED.match(text) is not None
    if len(paragraph.lines) > (MAX_NUMBERED_HEADING_LINES if is_numbered else MAX_HEADING_LINES):
        return False
    if len(text) > MAX_HEADING_CHARACTERS or not _HEADING_WORD.search(text):
        return False
    if text[-1] in ".;,}" or text[0] in "{[" or "=" in text or _starts_lower(text):
        return False
    if is_numbered and paragraph.first.family in style.families:
        return True
    return any(_leads_to(paragraph, next_paragraph, style) for next_paragraph in next_paragraphs) or (
        is_large and not next_paragraphs
    )


def _leads_to(heading: Paragraph, next_paragraph: Paragraph, style: Style) -> bool:
    """Return whether the paragraph after a heading is text or another heading, not a label as in a figure."""
    if next_paragraph.first.family not in style.families:
        return False
    gap = heading.last.y - next_paragraph.first.y
    if gap > 0 and (gap > 5 * heading.size or next_paragraph.first.x0 > heading.last.x1 + heading.size):
        return False
    return (
        next_paragraph.bold
        or next_paragraph.size > heading.size
        or is_prose(next_paragraph, next_paragraph.text, style)
    )


def _starts_lower(text: str) -> bool:
    """Return whether the first letter after opening punctuation is lower-case."""
    return text.lstrip(_OPENING_PUNCTUATION)[:1].islower()


def is_prose(paragraph: Paragraph, text: str, style: Style) -> bool:
    """Return whether a paragraph is running text, and not a label, an axis or a table cell."""
    is_plain_body = _is_body_size(paragraph.size, style) and paragraph.first.family in style.families
    if is_plain_body and len(text) > MIN_SURE_PROSE_CHARACTERS and ends_sentence(text):
        return True
    letter_words = _LETTER_WORD.findall(text)
    n_words = len(letter_words)
    if not text.isascii():
        n_words += len(_UNSPACED_CHARACTER.findall(text)) // CHARACTERS_PER_UNSPACED_WORD
    in_text_family = paragraph.first.family in style.families
    if in_text_family and (_BULLET.match(text) or style.is_slides) and paragraph.size > MIN_ITEM_SIZE * style.size:
        return n_words >= 1 or (style.is_slides and any(char.isalnum() for char in text))
    n_tokens = text.count(" ") + 1
    if n_tokens - len(_TOKEN_WITH_LETTER.findall(text)) > MAX_NUMBER_SHARE * n_tokens:
        return False
    if n_words < MIN_SURE_WORDS and _CONTINUATION_MARK.search(text[-40:]):
        return False
    is_complete = ends_sentence(text) or (text[-1] in "),;" and _has_lower_words(letter_words))
    if not in_text_family:
        return n_words >= MIN_OTHER_FAMILY_WORDS and is_complete
    if not _is_body_size(paragraph.size, style):
        return n_words >= MIN_SMALL_PRINT_WORDS and is_complete
    if is_complete or _starts_lower(text):
        return n_words >= 1
    return n_words >= MIN_SURE_WORDS or (n_words >= MIN_BODY_WORDS and _has_lower_words(letter_words))


def _has_lower_words(words: Sequence[str]) -> bool:
    """Return whether enough words are in lower case, or in a script without case."""
    return sum(len(word) >= MIN_LOWER_WORD_LENGTH and word == word.lower() for word in words) >= MIN_LOWER_WORDS


@dataclass(slots=True)
class _Heading:
    text: str
    size: float
    bold: bool
    is_boxed: bool
    """Whether the heading is the title of a box, whose number does not belong to the numbering of sections."""
    depth: int | None
    """Depth of the section number, for example 3 for 7.2.1; None if the heading has no number."""
    paragraph: Paragraph
    has_text: bool = False


class BlockBuilder:
    """Builder of a document's blocks from the classified paragraphs of its pages."""

    def __init__(self, title: str, style: Style, options: ReadOptions, omitted_counts: OmittedCounts) -> None:
        self._style = style
        self._title = title.casefold().split()
        self._options = options
        self._omitted_counts = omitted_counts
        self._heading_stack: list[_Heading] = []
        self._current_paragraph: Paragraph | None = None
        self._notes: list[Paragraph] = []
        self._skipped_heading: _Heading | None = None
        self._is_after_heading = False
        self._paragraphs: list[tuple[Paragraph, tuple[_Heading, ...]]] = []

    def add(self, paragraph: Paragraph) -> None:
        """Add the next paragraph of the document."""
        match paragraph.kind:
            case Kind.HEADING:
                self._finish_paragraph()
                self._add_heading(paragraph)
            case Kind.CAPTION if not self._options.captions:
                self._omit("captions", paragraph)
            case Kind.TABLE if not self._options.tables:
                self._omit("tables", paragraph)
            case Kind.CAPTION | Kind.FOOTNOTE | Kind.TABLE:
                self._notes.append(paragraph)
            case Kind.PROSE:
                self._add_prose(paragraph)

    def _add_prose(self, paragraph: Paragraph) -> None:
        if self._skipped_heading is not None:
            self._omit_section_line(paragraph)
            return
        if not is_prose(paragraph, paragraph.text, self._style):
            self._omit("labels and other short lines", paragraph)
            return
        self._is_after_heading = False
        continued_paragraph = self._find_continued(paragraph)
        if continued_paragraph is not None:
            continued_paragraph.lines += paragraph.lines
            if paragraph.last.page != continued_paragraph.first.page:
                continued_paragraph.last_page = paragraph.last.page
            return
        self._finish_paragraph()
        if paragraph.size < (1 - MAX_SIZE_DIFFERENCE) * self._style.size and _starts_lower(paragraph.first.text):
            # The rest of a caption that was split by a page break.
            if self._options.captions:
                self._append_paragraph(paragraph)
            else:
                self._omit("captions", paragraph)
            return
        self._current_paragraph = paragraph
        if NUMBERED.match(paragraph.first.text):
            # A numbered statement is no longer part of the box before it.
            while self._heading_stack and self._heading_stack[-1].is_boxed:
                self._end_section()
        self._append_paragraph(paragraph)

    def _omit(self, kind: str, paragraph: Paragraph) -> None:
        self._omitted_counts[kind, paragraph.first.page] += 1

    def _omit_section_line(self, paragraph: Paragraph) -> None:
        """Count a paragraph in a list of references or a table of contents as omitted."""
        is_contents = self._skipped_heading is not None and CONTENTS.fullmatch(self._skipped_heading.text)
        self._omit("lines of contents" if is_contents else "references", paragraph)

    def _end_section(self) -> None:
        """End the current section.

        If the section has no text, its heading becomes a block on slides, and counts as omitted in other documents.
        """
        heading = self._heading_stack.pop()
        if heading.has_text or REFERENCES.fullmatch(heading.text) or CONTENTS.fullmatch(heading.text):
            return
        if self._style.is_slides:
            heading.paragraph.kind = Kind.PROSE
            self._append_paragraph(heading.paragraph)
        else:
            self._omit("headings without text", heading.paragraph)

    def _find_continued(self, paragraph: Paragraph) -> Paragraph | None:
        if self._current_paragraph is not None and _continues(self._current_paragraph, paragraph):
            return self._current_paragraph
        if not _starts_lower(paragraph.first.text):
            return None
        recent_paragraphs = (
            candidate
            for candidate, _ in reversed(self._paragraphs[-MAX_PARAGRAPHS_BETWEEN:])
            if candidate.kind is Kind.PROSE
        )
        return next((candidate for candidate in recent_paragraphs if _continues(candidate, paragraph)), None)

    def _append_paragraph(self, paragraph: Paragraph) -> None:
        for heading in self._heading_stack:
            heading.has_text = True
        self._paragraphs.append((paragraph, tuple(self._heading_stack)))

    def _finish_paragraph(self) -> None:
        """End the current paragraph, and add the notes of its page after it."""
        self._current_paragraph = None
        for note in self._notes:
            self._append_paragraph(note)
        self._notes = []

    def _add_heading(self, paragraph: Paragraph) -> None:
        text = clean(paragraph.text)
        # The title, perhaps with the number or mark of the chapter beside it.
        words = text.casefold().split()
        if len(self._title) <= len(words) <= len(self._title) + 1 and set(self._title) <= set(words):
            while self._heading_stack:
                self._end_section()
            return
        numbering_match = _NUMBERING.match(text)
        depth = numbering_match.group(1).count(".") + 1 if numbering_match else None
        heading = _Heading(text, paragraph.size, paragraph.bold, _BOX_TITLE.match(text) is not None, depth, paragraph)
        last_heading = self._heading_stack[-1] if self._heading_stack else None
        if (
            self._is_after_heading
            and last_heading
            and abs(last_heading.size - heading.size) < 0.5
            and PART.match(last_heading.text)
        ):
            last_heading.text = f"{last_heading.text.rstrip('.:')}: {text}"
            return
        if self._skipped_heading and heading.size < self._skipped_heading.size - 0.3:
            self._omit_section_line(paragraph)
            return
        self._skipped_heading = None
        if (REFERENCES.fullmatch(text) and not self._options.references) or CONTENTS.fullmatch(text):
            self._skipped_heading = heading
        while self._heading_stack and _ends_section(heading, self._heading_stack[-1]):
            self._end_section()
        self._heading_stack.append(heading)
        self._is_after_heading = True

    def blocks(self) -> list[Block]:
        """Return the document's blocks; words divided at line ends are rejoined using the document's vocabulary."""
        self._finish_paragraph()
        while self._heading_stack:
            self._end_section()
        texts = [paragraph.text for paragraph, _ in self._paragraphs]
        vocabulary = count_words(texts) if any("\ufffe" in text for text in texts) else Counter()
        return list(self._build_blocks(texts, vocabulary))

    def _build_blocks(self, texts: Sequence[str], vocabulary: Counter[str]) -> Iterator[Block]:
        for text, (paragraph, headings) in zip(texts, self._paragraphs, strict=True):
            text = clean(join_hyphens(text, vocabulary))
            if paragraph.table is not None:
                yield from self._build_table_blocks(paragraph, headings)
                continue
            footnote = paragraph.kind is Kind.FOOTNOTE
            if footnote:
                text = _NOTE_NUMBER.sub("", text, count=1)
            if any(char.isalpha() for char in text):
                heading_texts = tuple(join_hyphens(heading.text, vocabulary) for heading in headings)
                pages = paragraph.first.page, paragraph.last_page
                yield Block(text, *pages, headings=heading_texts, footnote=footnote)

    def _build_table_blocks(self, paragraph: Paragraph, headings: Sequence[_Heading]) -> Iterator[Block]:
        table = paragraph.table
        assert table is not None
        heading_texts = (*(heading.text for heading in headings), *([paragraph.caption] if paragraph.caption else []))
        cells = [[clean(cell) for cell in row] for row in table.texts]
        for text in format_rows(cells, table.n_header_rows):
            yield Block(text, paragraph.first.page, paragraph.last_page, headings=heading_texts)


def _continues(previous: Paragraph, paragraph: Paragraph) -> bool:
    """Return whether a paragraph continues the previous one in the next column, on the next page or past a figure."""
    last_line, first_line = previous.last, paragraph.first
    if (
        abs(last_line.size - first_line.size) > MAX_SIZE_DIFFERENCE * last_line.size
        or last_line.family != first_line.family
    ):
        return False
    if last_line.hyphen or last_line.text[-1] in "-–,":
        return True
    if ends_sentence(last_line.text):
        return False
    is_after_break = last_line.page != first_line.page or first_line.y > last_line.y or first_line.x0 > last_line.x1
    if _starts_lower(first_line.text):
        return is_after_break or last_line.x1 > last_line.right - 3 * last_line.size
    is_full = last_line.x1 > last_line.right - 4 * last_line.size and len(last_line.text) > 25
    return (
        is_after_break
        and is_full
        and not last_line.bold
        and not first_line.bold
        and not first_line.text.startswith("•")
    )


def _ends_section(heading: _Heading, heading_above: _Heading) -> bool:
    if heading.depth is not None and heading_above.depth is not None:
        return heading_above.depth >= heading.depth
    if heading.is_boxed or heading_above.is_boxed:
        return heading_above.is_boxed and (
            heading.is_boxed or heading.depth is not None or heading.size > heading_above.size
        )
    if abs(heading_above.size - heading.size) > 0.3:
        return heading_above.size < heading.size
    return heading.bold >= heading_above.bold
