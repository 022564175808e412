"""Turn the paragraphs of a PDF into blocks: residue out, sentences over columns and pages joined, headings tracked."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from climassay.corpus.cleaning import clean, count_words, join_hyphens
from climassay.corpus.documents import Block
from climassay.corpus.options import ReadOptions
from climassay.corpus.pdf_lines import Line
from climassay.corpus.pdf_paragraphs import NUMBERED, PART, SIZE_STEP, Kind, Paragraph, Style, ends_sentence

UNFINISHED_WITHIN = 12
LONGEST_HEADING = 180
HEADING_LINES = 3
NUMBERED_HEADING_LINES = 5
FEWEST_BODY_WORDS = 5
FEWEST_SMALL_PRINT_WORDS = 12
FEWEST_FOREIGN_WORDS = 30
FEWEST_SMALL_WORDS = 3
FEWEST_NOTE_WORDS = 2
MANY_WORDS = 40
SURELY_PROSE = 250
MOST_NUMBERS = 0.45
_LETTER_WORD = re.compile(r"[^\W\d_]{2,}")
_TOKEN_WITH_LETTER = re.compile(r"\S*[^\W\d_]\S*")
_HEADING_WORD = re.compile(r"[^\W\d_]*[a-zà-þ]{2,}|[^\W\d_]{5,}")
_CAPTION = re.compile(
    r"(?:Supplementary\s+|Extended\s+Data\s+)?(?:(?:Cross-[\w-]+\s+)?(?:Box|FAQ)\s+\S+?,?\s+)?"
    r"(?:Figure|FIGURE|Fig\.|FIG\.|Fig|Table|TABLE|Tab\.|Panel|Scheme|Plate)\s*\(?"
    r"(?:[A-Z]{1,5}[.\s]?)?\d*(?:[.\-–]\d+)*[a-z]?\)?(?P<stop>\s*[|:]|\.?\s+(?=[A-Z(\[])|\.?$|\s*[–—]\s)"
)
_CONTINUED = re.compile(r"\(?continued(?:\s+\w+){0,4}\)?\W*$|\(cont(?:inued|\.|’d)?\)\W*$", re.IGNORECASE)
_NUMBERING = re.compile(r"((?:[A-Z]|\d{1,2}|[A-Z]{2,4})(?:\.\d{1,2})*)\.?\s+\S")
REFERENCES = re.compile(
    r"(?:\d+(?:\.\d+)*\.?\s+)?(?:references|bibliography|literature cited|works cited|reference list)", re.IGNORECASE
)
CONTENTS = re.compile(r"(?:table of )?contents|list of (?:figures|tables)", re.IGNORECASE)
_NOTE_NUMBER = re.compile(r"(?:\d{1,3}(?=[\s‘“(A-Z])|[*†‡§¶])\s*(?=\S)")
_LEGEND = re.compile(r"(?:Panels?|Notes?|Sources?)\s*[(:]|Source:|Note\b|[a-z]\s[A-Z]")
_SMALL_WORD = re.compile(r"\b[a-zà-þ]{3,}")
_BOXED = re.compile(r"(?:Cross-[\w-]+\s+)?(?:Box|FAQ)\b")
_LOWER_START = re.compile(r"[\"'“‘(\[{]*[a-zà-þ]")


def classify(paragraphs: Sequence[Paragraph], style: Style) -> None:
    """Set the kind of each paragraph of one page, in place: what is no heading, caption or footnote stays prose."""
    body_lines = [line for paragraph in paragraphs for line in paragraph.lines if _is_body(line.size, style)]
    for number, paragraph in enumerate(paragraphs):
        before = paragraphs[number - 1] if number else None
        text = paragraph.text
        if _is_caption(paragraph, text, before, style):
            paragraph.kind = Kind.CAPTION
        elif _is_footnote(paragraph, text, body_lines, style):
            paragraph.kind = Kind.FOOTNOTE
        elif _is_heading(paragraph, text, paragraphs[number + 1 : number + 3], style):
            paragraph.kind = Kind.HEADING


def _is_body(size: float, style: Style) -> bool:
    return abs(size - style.size) <= SIZE_STEP * style.size


def _is_caption(paragraph: Paragraph, text: str, before: Paragraph | None, style: Style) -> bool:
    match = _CAPTION.match(text)
    apart = not _is_body(paragraph.size, style) or paragraph.first.starts_bold
    if match and any(char.isdigit() for char in match.group()):
        return apart or match["stop"].strip() in {"|", ":"}
    if _is_body(paragraph.size, style):
        return False
    if _LEGEND.match(text):
        return True
    if before is None or before.kind is not Kind.CAPTION:
        return False
    below = 0 < before.last.y - paragraph.first.y < 3 * paragraph.size
    return below and abs(before.size - paragraph.size) < SIZE_STEP * paragraph.size and paragraph.size < style.size


def _is_footnote(paragraph: Paragraph, text: str, body_lines: Sequence[Line], style: Style) -> bool:
    if paragraph.size > (1 - SIZE_STEP) * style.size or not (paragraph.first.mark or _NOTE_NUMBER.match(text)):
        return False
    first = paragraph.first
    if not (ends_sentence(text) or "http" in text) or len(_LETTER_WORD.findall(text)) < FEWEST_NOTE_WORDS:
        return False
    return all(line.y > first.y for line in body_lines if line.x0 < first.x1 and line.x1 > first.x0)


def _is_heading(paragraph: Paragraph, text: str, following: Sequence[Paragraph], style: Style) -> bool:
    large = paragraph.size > (1 + SIZE_STEP) * style.size
    if not (large or paragraph.bold or NUMBERED.match(text)) or paragraph.size < (1 - SIZE_STEP) * style.size:
        return False
    numbered = NUMBERED.match(text) is not None
    if len(paragraph.lines) > (NUMBERED_HEADING_LINES if numbered else HEADING_LINES):
        return False
    if len(text) > LONGEST_HEADING or not _HEADING_WORD.search(text):
        return False
    if text[-1] in ".;,}" or text[0] in "{[" or "=" in text or _LOWER_START.match(text):
        return False
    if numbered and paragraph.first.family in style.families:
        return True
    return any(_leads_to(paragraph, after, style) for after in following) or (large and not following)


def _leads_to(heading: Paragraph, after: Paragraph, style: Style) -> bool:
    """Whether text or another heading follows below or in the next column; what stands in a figure leads to labels."""
    if after.first.family not in style.families:
        return False
    gap = heading.last.y - after.first.y
    if gap > 0 and (gap > 5 * heading.size or after.first.x0 > heading.last.x1 + heading.size):
        return False
    return after.bold or after.size > heading.size or is_prose(after, after.text, style)


def is_prose(paragraph: Paragraph, text: str, style: Style) -> bool:
    """Whether a paragraph is running text, not the label, axis or table cell it may also be."""
    plain_body = _is_body(paragraph.size, style) and paragraph.first.family in style.families
    if plain_body and len(text) > SURELY_PROSE and ends_sentence(text):
        return True
    words = len(_LETTER_WORD.findall(text))
    tokens = text.count(" ") + 1
    if tokens - len(_TOKEN_WITH_LETTER.findall(text)) > MOST_NUMBERS * tokens:
        return False
    if words < MANY_WORDS and _CONTINUED.search(text[-40:]):
        return False
    small = len(_SMALL_WORD.findall(text))
    ended = ends_sentence(text) or (text[-1] in "),;" and small >= FEWEST_SMALL_WORDS)
    if paragraph.first.family not in style.families:
        return words >= FEWEST_FOREIGN_WORDS and ended
    if not _is_body(paragraph.size, style):
        return words >= FEWEST_SMALL_PRINT_WORDS and ended
    if ended or _LOWER_START.match(text):
        return words >= 1
    return words >= MANY_WORDS or (words >= FEWEST_BODY_WORDS and small >= FEWEST_SMALL_WORDS)


@dataclass(slots=True)
class _Heading:
    text: str
    size: float
    bold: bool
    boxed: bool
    """Title of a box, which stands in a section and is no part of the numbering."""
    depth: int | None
    """Parts of its number: 3 for 7.2.1."""


class BlockBuilder:
    """Takes the classified paragraphs of page after page and gives the blocks of the document.

    Args:
        title: Title of the document; a heading that repeats it is none.
        style: What most of the text looks like.
        options: What to keep.
    """

    def __init__(self, title: str, style: Style, options: ReadOptions) -> None:
        self._style = style
        self._title = title.casefold().split()
        self._options = options
        self._stack: list[_Heading] = []
        self._open: Paragraph | None = None
        self._notes: list[Paragraph] = []
        self._left_out: _Heading | None = None
        self._fresh_heading = False
        self._drafts: list[tuple[Paragraph, tuple[_Heading, ...]]] = []

    def add(self, paragraph: Paragraph) -> None:
        """Take the next paragraph."""
        match paragraph.kind:
            case Kind.HEADING:
                self._close()
                self._add_heading(paragraph)
            case Kind.CAPTION if self._options.captions:
                self._notes.append(paragraph)
            case Kind.FOOTNOTE:
                self._notes.append(paragraph)
            case Kind.PROSE:
                self._add_prose(paragraph)

    def _add_prose(self, paragraph: Paragraph) -> None:
        if self._left_out is not None or not is_prose(paragraph, paragraph.text, self._style):
            return
        self._fresh_heading = False
        before = self._continued_by(paragraph)
        if before is not None:
            before.lines += paragraph.lines
            if paragraph.last.page != before.first.page:
                before.last_page = paragraph.last.page
            return
        self._close()
        if paragraph.size < (1 - SIZE_STEP) * self._style.size and _LOWER_START.match(paragraph.first.text):
            # The rest of a caption that a page break cut.
            if self._options.captions:
                self._draft(paragraph)
            return
        self._open = paragraph
        if NUMBERED.match(paragraph.first.text):
            # A numbered statement is no longer part of the box before it.
            while self._stack and self._stack[-1].boxed:
                self._stack.pop()
        self._draft(paragraph)

    def _continued_by(self, paragraph: Paragraph) -> Paragraph | None:
        """The paragraph that this one goes on: the one before it, or one left unfinished before a box or a heading."""
        if self._open is not None and _goes_on(self._open, paragraph):
            return self._open
        if not _LOWER_START.match(paragraph.first.text):
            return None
        recent = (draft for draft, _ in reversed(self._drafts[-UNFINISHED_WITHIN:]) if draft.kind is Kind.PROSE)
        return next((draft for draft in recent if _goes_on(draft, paragraph)), None)

    def _draft(self, paragraph: Paragraph) -> None:
        self._drafts.append((paragraph, tuple(self._stack)))

    def _close(self) -> None:
        """No more lines for the open paragraph; the notes of its page come after it."""
        self._open = None
        for note in self._notes:
            self._draft(note)
        self._notes = []

    def _repeats_title(self, text: str) -> bool:
        """Whether a heading is the title, perhaps with the number or mark of the chapter beside it."""
        words = text.casefold().split()
        return len(self._title) <= len(words) <= len(self._title) + 1 and set(self._title) <= set(words)

    def _add_heading(self, paragraph: Paragraph) -> None:
        text = clean(paragraph.text)
        if self._repeats_title(text):
            self._stack.clear()
            return
        numbering = _NUMBERING.match(text)
        depth = numbering.group(1).count(".") + 1 if numbering else None
        heading = _Heading(text, paragraph.size, paragraph.bold, _BOXED.match(text) is not None, depth)
        last = self._stack[-1] if self._stack else None
        if self._fresh_heading and last and abs(last.size - heading.size) < 0.5 and PART.match(last.text):
            last.text = f"{last.text.rstrip('.:')}: {text}"
            return
        if self._left_out and heading.size < self._left_out.size - 0.3:
            return
        self._left_out = None
        if (REFERENCES.fullmatch(text) and not self._options.references) or CONTENTS.fullmatch(text):
            self._left_out = heading
        while self._stack and _closes(heading, self._stack[-1]):
            self._stack.pop()
        self._stack.append(heading)
        self._fresh_heading = True

    def blocks(self) -> list[Block]:
        """The blocks of the document, words joined over line ends with the document's own vocabulary."""
        self._close()
        texts = [paragraph.text for paragraph, _ in self._drafts]
        vocabulary = count_words(texts) if any("\ufffe" in text for text in texts) else Counter()
        return list(self._finished(texts, vocabulary))

    def _finished(self, texts: Sequence[str], vocabulary: Counter[str]) -> Iterator[Block]:
        for text, (paragraph, headings) in zip(texts, self._drafts, strict=True):
            text = clean(join_hyphens(text, vocabulary))
            if paragraph.kind is Kind.FOOTNOTE:
                text = _NOTE_NUMBER.sub("", text, count=1)
            if any(char.isalpha() for char in text):
                path = tuple(join_hyphens(heading.text, vocabulary) for heading in headings)
                yield Block(text=text, page=paragraph.first.page, last_page=paragraph.last_page, headings=path)


def _goes_on(before: Paragraph, paragraph: Paragraph) -> bool:
    """Whether a paragraph continues the one before it, in the next column, on the next page or past a figure."""
    last, first = before.last, paragraph.first
    if abs(last.size - first.size) > SIZE_STEP * last.size or last.family != first.family:
        return False
    if last.hyphen or last.text[-1] in "-–,":
        return True
    if ends_sentence(last.text):
        return False
    moved = last.page != first.page or first.y > last.y or first.x0 > last.x1
    if _LOWER_START.match(first.text):
        return moved or last.x1 > last.right - 3 * last.size
    full = last.x1 > last.right - 4 * last.size and len(last.text) > 25
    return moved and full and not last.bold and not first.bold and not first.text.startswith("•")


def _closes(heading: _Heading, above: _Heading) -> bool:
    """Whether a new heading ends the section of the heading above it."""
    if heading.depth is not None and above.depth is not None:
        return above.depth >= heading.depth
    if heading.boxed or above.boxed:
        return above.boxed and (heading.boxed or heading.depth is not None or heading.size > above.size)
    if abs(above.size - heading.size) > 0.3:
        return above.size < heading.size
    return heading.bold >= above.bold
