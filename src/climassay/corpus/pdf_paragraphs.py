"""Build paragraphs from the ordered lines of a PDF page, by distance, indent, size and style."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from climassay.corpus.cleaning import LINE_END_HYPHEN
from climassay.corpus.pdf_lines import Line

PARAGRAPH_GAP = 1.3
"""Lines further apart than this times the usual distance belong to different paragraphs."""
ITEM_GAP = 1.08
INDENT = 0.8
"""In units of the type size."""
SHORT_LINE = 0.8
"""A line that fills less than this part of its column ends a paragraph, if it ends a sentence."""
SIZE_STEP = 0.07
"""Relative difference between sizes of type that are not the same."""
_BULLET = re.compile(r"[•◦▪■●○‣·–—*→✓✔]\s")
_ITEM = re.compile(r"(?:[•◦▪■●○‣·*]|[–—-](?=\s[A-Z])|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)])\s")
NUMBERED = re.compile(r"(?:[A-Z]\.\d+(?:\.\d+)*\.?|[A-Z]{1,4}\.\d+(?:\.\d+)*|\d{1,2}(?:\.\d{1,2}){1,4}\.?)\s+\S")
PART = re.compile(r"(?:Chapter|CHAPTER|Part|PART|Appendix|APPENDIX|Annex|ANNEX)\s+(?:\d+|[A-Z]|[IVXL]+)[.:]?$")
_NOTE = re.compile(r"(?:\d{1,3}|[*†‡§¶])\s*(?=[A-Z‘“(])")
_SENTENCE_END = re.compile(r"[.!?:…}][\"'”’»)\]}]*(?:\d{1,2})?$|[.!?]\)?\s?\([^()]*\)$")
_LAST_CHARACTERS = 120


class Kind(Enum):
    """What a paragraph is."""

    PROSE = "prose"
    HEADING = "heading"
    CAPTION = "caption"
    FOOTNOTE = "footnote"


@dataclass(slots=True)
class Paragraph:
    """Lines that belong together."""

    lines: list[Line]
    kind: Kind = Kind.PROSE
    last_page: int | None = None
    _joined: tuple[int, str] = (0, "")

    @property
    def first(self) -> Line:
        """Its first line."""
        return self.lines[0]

    @property
    def last(self) -> Line:
        """Its last line."""
        return self.lines[-1]

    @property
    def size(self) -> float:
        """Size of its type, as its middle line has it."""
        return self.lines[len(self.lines) // 2].size

    @property
    def bold(self) -> bool:
        """Whether all of it is bold."""
        return all(line.bold for line in self.lines)

    @property
    def text(self) -> str:
        """Lines joined; a hyphen at the end of a line is marked for :func:`~climassay.corpus.cleaning.join_hyphens`."""
        if self._joined[0] != len(self.lines):
            self._joined = (len(self.lines), join_lines(self.lines))
        return self._joined[1]


def ends_sentence(text: str) -> bool:
    """Whether a line ends as sentences do."""
    return text[-1] in ".!?:…}" or _SENTENCE_END.search(text[-_LAST_CHARACTERS:]) is not None


def join_lines(lines: Sequence[Line]) -> str:
    """The text of consecutive lines."""
    parts: list[str] = []
    for line, after in zip(lines, [*lines[1:], None], strict=True):
        parts.append(line.text)
        if after is None:
            break
        if line.hyphen:
            parts.append(LINE_END_HYPHEN)
        elif line.text[-1] in "-‐" and line.text[-2:-1].isalpha():
            parts[-1] = line.text[:-1]
            parts.append(LINE_END_HYPHEN)
        elif not (line.text[-1] in "/–-" and line.text[-2:-1].strip()):
            parts.append(" ")
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Style:
    """What most of a document looks like."""

    size: float
    families: frozenset[str]
    """Typefaces of a good part of the text."""
    pitches: dict[int, float]
    """Usual distance of baselines by size of type (in half points)."""

    def pitch(self, size: float) -> float:
        """Usual distance between lines of this size."""
        return self.pitches.get(round(2 * size), 1.2 * size)


FAMILY_SHARE = 0.15
FEWEST_DISTANCES = 3
PROSE_LINE = 35
"""Lines of at least so many characters tell what a document's text looks like; shorter ones may be a figure's."""


def find_style(columns: Sequence[Sequence[Line]]) -> Style:
    """The usual size, typefaces and line distances of a document, weighed by characters."""
    sizes: Counter[float] = Counter()
    families: Counter[str] = Counter()
    distances: Counter[tuple[int, float]] = Counter()
    for lines in columns:
        before: Line | None = None
        for line in lines:
            weight = len(line.text)
            half_points = round(2 * line.size)
            sizes[half_points / 2] += weight
            if weight >= PROSE_LINE:
                families[line.family] += weight
                gap = before.y - line.y if before is not None else 0.0
                if 0.8 * line.size < gap < 2.2 * line.size:
                    distances[half_points, round(gap * 4) / 4] += 1
            before = line
    total = sum(families.values())
    pitches: dict[int, float] = {}
    for (size, gap), count in distances.most_common():
        if count >= FEWEST_DISTANCES:
            pitches.setdefault(size, gap)
    if not families:  # nothing but short lines: every typeface may be the text's
        return Style(sizes.most_common(1)[0][0], frozenset(line.family for lines in columns for line in lines), pitches)
    common = frozenset(family for family, count in families.items() if count >= FAMILY_SHARE * total)
    return Style(sizes.most_common(1)[0][0], common, pitches)


def build_paragraphs(lines: Sequence[Line], style: Style) -> list[Paragraph]:
    """Group the ordered lines of one page into paragraphs."""
    paragraphs: list[Paragraph] = []
    for line in lines:
        if paragraphs and not _begins(paragraphs[-1], line, style):
            paragraphs[-1].lines.append(line)
        else:
            paragraphs.append(Paragraph([line]))
    return paragraphs


def _begins(paragraph: Paragraph, line: Line, style: Style) -> bool:
    """Whether a line begins a new paragraph after the one before it."""
    last = paragraph.last
    gap = last.y - line.y
    pitch = style.pitch(max(last.size, line.size))
    if gap < 0.3 * line.size or gap > PARAGRAPH_GAP * pitch or line.x0 > last.right:
        return True
    if abs(line.size - last.size) > SIZE_STEP * last.size or PART.match(last.text):
        return True
    if line.mark or _BULLET.match(line.text):
        return True
    if NUMBERED.match(line.text) and line.x0 < last.x0 - INDENT * line.size:
        return True
    if gap > ITEM_GAP * pitch and (_ITEM.match(line.text) or NUMBERED.match(line.text) or _NOTE.match(line.text)):
        return True
    if last.bold and not line.starts_bold and (gap > ITEM_GAP * pitch or last.x1 < SHORT_LINE * last.right):
        return True
    if not last.bold and line.bold and last.x1 < last.right - 2 * line.size and ends_sentence(last.text):
        return True
    return _breaks_by_indent(paragraph, line)


def _breaks_by_indent(paragraph: Paragraph, line: Line) -> bool:
    last = paragraph.last
    step = INDENT * line.size
    settled = len(paragraph.lines) > 1 and abs(last.x0 - paragraph.lines[-2].x0) < step
    ended = ends_sentence(last.text)
    if settled and abs(line.x0 - last.x0) > step:
        return True  # first line of an indented paragraph, or of a hanging one
    if len(paragraph.lines) == 1 and line.x0 < last.x0 - step:
        return False  # second line of an indented paragraph
    short = last.x1 - last.x0 < SHORT_LINE * (last.right - last.x0)
    return ended and short and not (line.text[0].islower() or line.text[0] in "{(")
