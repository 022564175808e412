"""Self-contained HTML reports: one file, no request to anywhere, light and dark, made for reading and printing.

Words of a text are marked (:func:`marked`) as the full-text index of a collection compares them: English stems by
Porter's second algorithm, no case, accents folded; so what is marked in a passage is what BM25 found it by.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from climassay import __version__
from climassay.errors import InputError
from climassay.io import write_file
from climassay.reporting.figures import DotPlot, HeatMap, LinePlot, ScatterPlot, StackedBars
from climassay.reporting.tables import Table

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_](?:[^\W_]|[\u0300-\u036f])*")
"""A number with its decimals, or a word that begins with a letter. Hyphens divide words."""

_LISTED = """
a about an and any are as at be been but by can could did do does for from had has have how if in into is it its
may might more most much no nor not of on or our should so some such than that the their them then there these they
this those to very was we were what when where which while who whose why will with would you your
"""
STOP_WORDS = frozenset(_LISTED.split())
"""Words that are found everywhere and tell nothing; the index of a collection leaves out most of them as well."""

LONGEST_JOINED_GAP = 1
"""Marked words with no more than so many characters between them, all white space or hyphens, become one mark."""

Piece = tuple[str, bool]
"""A part of a text, and whether it is marked."""


def marked(text: str, words: Collection[str]) -> tuple[Piece, ...]:
    """A text in pieces, those marked that hold one of the words in any of its forms.

    Args:
        text: What is shown.
        words: What to look for: words, or whole phrases, whose words are looked for one by one. Stop words are left
            out. A number is found only as the same number: ``1.5`` does not mark ``15`` nor the ``1`` of ``1.2``.

    Returns:
        Pieces whose texts, one after the other, are the text again, none of them empty and marked and unmarked ones
        in turn; no piece for an empty text.

    Examples:
        >>> marked("Aerosols cool.", ["aerosol"])
        (('Aerosols', True), (' cool.', False))
    """
    phrases = (words,) if isinstance(words, str) else words
    wanted = {stem for phrase in phrases for stem in stems(phrase)}
    return tuple(_pieces(text, _spans(text, wanted)))


def mark_spans(text: str, spans: Iterable[tuple[int, int]]) -> tuple[Piece, ...]:
    """As :func:`marked`, for given beginnings and ends, which may overlap and come in any order."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(_pieces(text, joined))


def letters(text: str) -> tuple[str, tuple[int, ...]]:
    r"""The letters and digits of a text, and the place of each in it.

    They are in lower case, without accents, ligatures taken apart, so that what was broken at the end of a line, set
    with ligatures, or cleaned of odd signs is the same.

    Examples:
        >>> letters("De-\nfi ne")[0]
        'define'
    """
    results: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        plain = character.lower() if character.isascii() else unicodedata.normalize("NFKD", character).casefold()
        for one in plain:
            if one.isalnum():
                results.append(one)
                places.append(place)
    return "".join(results), tuple(places)


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """The stems of a text's words and its numbers, in order, stop words left out."""
    results = (_folded(match.group()) for match in _WORD.finditer(text))
    return tuple(_stem(word) for word in results if word not in STOP_WORDS)


def _pieces(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Piece]:
    done = 0
    for start, end in spans:
        if start > done:
            yield text[done:start], False
        yield text[start:end], True
        done = end
    if done < len(text):
        yield text[done:], False


def _spans(text: str, wanted: Collection[str]) -> Iterator[tuple[int, int]]:
    """Where the wanted words stand; neighbours with a space or a hyphen between them are one span."""
    start = end = 0
    for match in _WORD.finditer(text) if wanted else ():
        word = _folded(match.group())
        if word in STOP_WORDS or _stem(word) not in wanted:
            continue
        gap = text[end : match.start()]
        if end and len(gap) <= LONGEST_JOINED_GAP and not gap.strip(" -\u2010\u2011\n"):
            end = match.end()
            continue
        if end:
            yield start, end
        start, end = match.span()
    if end:
        yield start, end


def _folded(word: str) -> str:
    """Fold a word as the index does: lower case, no accents, raised and lowered figures as plain ones (CO₂: co2)."""
    lowered = word.lower()
    if lowered.isascii():
        return lowered
    decomposed = unicodedata.normalize("NFKD", lowered)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    if word[0].isdigit():
        return word
    stem: str = _stemmer().stem(word)
    return stem


@cache
def _stemmer() -> Any:
    from nltk.stem.snowball import EnglishStemmer

    return EnglishStemmer()


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a multiple-choice question."""

    letter: str
    text: str
    correct: bool


Tone = Literal["right", "middle", "wrong", "outside"]
"""Colour of a part: good, so so, bad, or not known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found in an answer in one respect."""

    head: str
    """What was looked at, for example a criterion."""
    verdict: str
    tone: Tone
    reason: str = ""
    quotation: str = ""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text, coloured by what was found of it."""

    text: str
    tone: Tone | None = None
    """None for a part of which nothing is said."""
    note: str = ""
    """Shown when somebody points at it."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer to a question."""

    group: str
    """Who answered, for example the model."""
    label: str
    """How, for example the setting."""
    text: str
    """The answer, or the error where there is none."""
    scores: tuple[str, ...]
    """Scores as shown, one for each of :attr:`AnsweredQuestion.metrics`."""
    wrong: bool
    failed: bool = False
    remarks: tuple[str, ...] = ()
    """For example constraints that were not kept, or how sure the model was."""
    sources: tuple[int, ...] = ()
    """Places of the texts it was given in :attr:`AnswerTables.sources`, from 0."""
    parts: tuple[TextPart, ...] = ()
    """The answer in parts, where they are coloured; together they are the text."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question, its reference and its answers."""

    id: str
    kind: str
    level: str
    """Empty where there is none."""
    collection: str
    """Where the question comes from, for example the benchmark."""
    text: str
    reference: str
    metrics: tuple[str, ...]
    answers: tuple[AnswerRow, ...]
    options: tuple[Option, ...] = ()
    source: int | None = None
    """Place of the text the question was made from."""

    @property
    def wrong(self) -> int:
        """Answers that are wrong."""
        return sum(answer.wrong for answer in self.answers)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text that answers rest on; stored once however often it was given."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerTables:
    """Questions, each folded away under its first line, with a filter above them.

    The page works without JavaScript, except for the filter.
    """

    title: str
    questions: tuple[AnsweredQuestion, ...]
    sources: tuple[SourceText, ...] = ()
    note: str = ""
    collection_word: str = "benchmark"
    """Heading of the filter by :attr:`AnsweredQuestion.collection`."""
    wrong_word: str = "wrong"
    """What a row marked wrong is called in "2 of 3 wrong"."""
    some_wrong: str = "some answer wrong"
    """Label of the filter for questions with such a row."""
    in_all: int = 0
    """Number of questions that there are, where these are the first of them."""

    def choices(self, field: str) -> tuple[str, ...]:
        """Values of ``kind``, ``level`` or ``collection`` that occur, in order of appearance."""
        values = (str(getattr(question, field)) for question in self.questions)
        return tuple(dict.fromkeys(value for value in values if value))


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph of text, and a command to type below it."""

    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, for example a run's configuration."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AnswerCard:
    """A question, its answer in sentences with marks, and the numbered sources."""

    question: str
    sentences: tuple[tuple[str, tuple[int, ...], bool], ...]
    """Text, numbers of its sources, and whether it is in-house knowledge."""
    sources: tuple[tuple[int, str, str], ...]
    """Number, citation, passage text."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """Something that a reader may want to look at by itself."""

    heading: str
    facts: tuple[tuple[str, str], ...]
    """Names and values; the list above the cases shows them in small."""
    text: str = ""
    href: str = ""
    """Where more is to be read, relative to the report; empty for nowhere."""


@dataclass(frozen=True, slots=True)
class Cases:
    """A list of links to the cases, and the cases below it."""

    title: str
    cases: tuple[Case, ...]
    note: str = ""


Block = (
    Prose | Facts | AnswerCard | AnswerTables | Cases | Table | DotPlot | LinePlot | ScatterPlot | HeatMap | StackedBars
)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what appears under it."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A report of several sections."""

    title: str
    lead: str
    """One or two sentences that say what the reader sees."""
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...] = field(default=())
    """Shown small at the end: versions, fingerprints, run ids."""

    def has(self, kind: str) -> bool:
        """Whether a block of that kind appears anywhere."""
        return any(_kind(block) == kind for section in self.sections for block in section.blocks)

    def to_html(self) -> str:
        """The page as text."""
        return render_page("report.html.j2", report=self, kind=_kind)

    def write(self, path: Path) -> Path:
        """Write the page, through a temporary file so that a reader never sees half of it."""
        write_file(path, self.to_html())
        return path


def render_page(template: str, **values: Any) -> str:
    """A page from one of the templates of this package; every value is escaped."""
    return str(_environment().get_template(template).render(version=__version__, **values))


def render_block(block: Block, section: str, number: int) -> Any:
    """One block as safe HTML, for a page that is made elsewhere; it needs :func:`block_style`.

    The ids within it are made of the section's id and the block's number there.

    Returns:
        Escaped ``markupsafe.Markup`` without any inline style or script.
    """
    return _environment().get_template("blocks.html.j2").module.show(block, _kind(block), section, number)


def render_answer(row: AnswerRow) -> Any:
    """Text and findings of one answer as safe HTML, likewise."""
    return _environment().get_template("answers.html.j2").module.said(row)


@cache
def block_style() -> str:
    """The style of all blocks, for pages of an application whose own style is another.

    The rules lie within ``.blocks``, so that they touch nothing else. Text and ground take the application's colours
    ``--ink``, ``--soft``, ``--card``, ``--line`` and ``--mark``.
    """
    rules = "".join(_render(name) for name in ("blocks.css.j2", "answers.css.j2"))
    return f"{_render('colours.css.j2')}.blocks {{\n{rules}}}\n"


@cache
def block_script() -> str:
    """The script of the filter above answers; the page works without it."""
    return _render("answers.js")


def _render(template: str) -> str:
    return str(_environment().get_template(template).render())


def _kind(block: Block) -> str:
    return type(block).__name__


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("climassay.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


Figure = DotPlot | LinePlot | ScatterPlot | HeatMap | StackedBars
FIGURES = (DotPlot, LinePlot, ScatterPlot, HeatMap, StackedBars)


def as_svg(figure: Figure) -> str:
    """A figure as a whole SVG document with its title, its legend and its style."""
    return render_page("figure.svg.j2", figure=figure, kind=type(figure).__name__, shades=_shades(figure))


def _shades(figure: Figure) -> dict[str, str]:
    """Fill of categories and specks by name; programs other than browsers cannot mix colours themselves."""
    if isinstance(figure, ScatterPlot):
        return {cloud.name: _tone(cloud.place, _DEEP) for cloud in figure.clouds} if figure.small else {}
    used = [category for _, category in figure.used] if isinstance(figure, StackedBars) else []
    return {one.name: "url(#hatching)" if one.hatched else _tone(one.place, _PALE) for one in used}


_OUTSIDE = "#c3ccd4"
_PALE = ((227, 139, 116), (240, 223, 166), (127, 186, 210))
"""As ``--wrong``, ``--middle`` and ``--right`` of the reports' style; outside is ``--outside``."""
_DEEP = ((178, 24, 43), (220, 168, 0), (18, 63, 158))
"""Tones of small points, as ``--least``, ``--mid`` and ``--most``: pale ones could not be seen, and five levels
must be distinguishable for readers who see no red and green, too."""


def _tone(place: float | None, colours: tuple[tuple[int, int, int], ...]) -> str:
    if place is None:
        return _OUTSIDE
    first, middle, last = colours
    low, high, share = (first, middle, 2 * place) if place <= 0.5 else (middle, last, 2 * place - 1)
    mixed = (round(a + (b - a) * share) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


_KINDS = {kind.__name__: kind for kind in get_args(Block)}


def report_data(report: Report) -> dict[str, Any]:
    """A report as dictionaries, lists, texts and numbers; :func:`report_from_data` gives the same report back."""
    data: dict[str, Any] = _plain(report)
    return data


def report_from_data(data: Any) -> Report:
    """The report that :func:`report_data` wrote.

    Raises:
        InputError: It is none, or damaged.
    """
    try:
        report: Report = _read(Report, data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"The stored report is damaged ({type(error).__name__}: {error}).") from None
    return report


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    kind = type(value).__name__
    own = {"strong", "marks"} if isinstance(value, Table) else set()
    data: dict[str, Any] = {"block": kind} if kind in _KINDS else {}
    data |= {one.name: None if one.name in own else _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Table):
        marks = [[row, column, sorted(result)] for (row, column), result in sorted(value.marks.items())]
        data |= {"strong": sorted(value.strong), "marks": marks}
    return data


def _read(kind: Any, value: Any) -> Any:
    """A value of the kind that a field's annotation names."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        if value is None:
            return _fitting(value, type(None) in inner)
        if isinstance(value, Mapping) and "block" in value:
            return _read(_KINDS[value["block"]], value)
        [only] = [one for one in inner if one is not type(None)]
        return _read(only, value)
    if origin is Literal:
        return _fitting(value, value in inner)
    if origin is tuple:
        wanted = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_read(one, entry) for one, entry in zip(wanted, value, strict=True))
    if is_dataclass(kind) and isinstance(kind, type):
        # Axes of earlier versions had ``names``.
        other = ("block", "names")
        given = {name: one for name, one in _fitting(value, isinstance(value, Mapping)).items() if name not in other}
        marked: dict[str, Any] = {}
        if kind is Table:
            marks = {(row, column): frozenset(result) for row, column, result in given.pop("marks", [])}
            marked = {"strong": frozenset(given.pop("strong", [])), "marks": marks}
        hints = _hints(kind)
        return kind(**{name: _read(hints[name], one) for name, one in given.items()}, **marked)
    if kind is float:
        return _fitting(value, isinstance(value, int | float) and not isinstance(value, bool))
    return _fitting(value, isinstance(value, kind) and (kind is bool or not isinstance(value, bool)))


_hints = cache(get_type_hints)


def _fitting(value: Any, fits: bool) -> Any:
    if not fits:
        raise ValueError(f"{str(value)[:40]!r} does not fit")
    return value
