"""Citations of a model's text: parsing and verification.

1. Numbers in brackets cite passages: ``[3]``, ``[1, 3]``, ``[1-3]``, ``[Passage 3]``, ``[p. 3]``, ``【3】``,
   ``(source 3)``. Ranges cite every number in them. A bare number in round brackets (``(3)``) is a citation only at
   the end of a clause and only in texts without square brackets, because round brackets also contain counts and list
   numbers. Years, decimals, numbers with units, intervals after a figure or before a unit, and numbers of figures and
   chapters are not citations.
2. Numbers of passages that were not retrieved are removed and counted. References by author and year
   (``(IPCC, 2021, p. 9)``, ``Smith et al. (2020)``) remain and are marked if no document matches them.
3. Sentences that repeat themselves in a loop and a truncated last sentence are removed.
4. A sentence without citation gets one (``attributed``) if a passage has a very similar sentence and all its
   quantities; otherwise it is marked as in-house knowledge. Sentences that only state what the passages lack
   (:func:`states_absence`) and a bare "No." before a cited sentence are not marked.
5. Quantities of a cited sentence that its passages lack are reported (:mod:`climassay.grounding.quantities`).
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np

from climassay.corpus.documents import Passage
from climassay.corpus.sentences import split_sentences
from climassay.grounding.absence import is_bare_answer, states_absence
from climassay.grounding.quantities import foreign_quantities
from climassay.grounding.units import read_unit
from climassay.models.contract import Encoder

_WORD = r"passages?|sources?|excerpts?|documents?|docs?\.?|references?|refs?\.?|pages?|pp\.?"
_PLACE = rf"(?:(?:{_WORD}|p\.)\s*[:#]?\s*)"
_SQUARE_PLACE = rf"(?:(?:{_WORD}|p\.?|s|cite[ds]?|citations?|nos?\.?|numbers?)\s*[:#]?\s*|[#^])"
_LEAD = r"\s*(?:(?:see|cf\.?|from|in|per|according\s+to|e\.g\.,?)\s+)?"
_DASH = r"\s*[-\u2010-\u2015\u2212]\s*"
_AND = r"\s*(?:,?\s*\b(?:and|or)\b|[,;&/\uff0c\u3001])\s*"
_NUMBER = r"\d{1,3}(?![\d%])"


def _bracket_pattern(prefix: str) -> str:
    item = rf"(?:{prefix})?{_NUMBER}(?::\d+)?(?:\u2020[^\]\u3011]{{0,80}})?"
    return rf"{_LEAD}{item}(?:(?:{_DASH}|{_AND}|\s+(?:to|through)\s+){item})*\s*"


_LINK = r"(?:\(https?://[^\s()]{1,300}\))?"
_CITATION = re.compile(
    rf"(?P<square>[\[\uff3b\u3010\u3014{{])(?P<in_square>{_bracket_pattern(_SQUARE_PLACE)})[\]\uff3d\u3011\u3015}}]{_LINK}"
    rf"|[(\uff08](?P<in_round>{_bracket_pattern(_PLACE)})[)\uff09]",
    re.IGNORECASE,
)
_SPAN = re.compile(rf"({_NUMBER})(?::\d+)?(?:\u2020[^\]\u3011]*)?(?:({_DASH}|\s+(?:to|through)\s+)\D*?({_NUMBER}))?")
_NUMBERED = re.compile(
    r"\b(?:Fig(?:ure)?|Table|Eq(?:uation)?|Chapter|Section|Article|Annex|Appendix|Box|Part|Scenario|Category|Goal)\.?\s*$"
)
_INTERVAL = re.compile(r"\b(?:interval|ci|ranges?|scale|between|from|iqr)\s*:?\s*$", re.IGNORECASE)
_FIGURE = re.compile(r"(\d+(?:\.\d+)?)\s*\S{0,8}\s*$")
_MAY_STAND_BEFORE = re.compile(r"\s*(?:[.!?,;:)]|$|(?:and|but|while|whereas|as|which)\b|[\[(\u3010]\d)")
_MAX_BARE_NUMBER = 99
"""Maximum number in a round bracket that is read as a citation even if no passage has this number."""

_YEAR = r"(?:1[89]|20)\d\d"
_BRACKET = re.compile(r"[(\[]([^()\[\]]{4,200})[)\]]")
_REFERENCE = re.compile(
    rf"(?:(?:see(?:\s+also)?|cf\.?|e\.g\.|after|based\s+on|according\s+to|source:|from)[,:]?\s+)?"
    rf"(?P<authors>[^\W\d_a-z][^;]*?)(?:,?\s+(?P<year>{_YEAR})[a-z]?)?(?P<rest>(?:[,:]\s*[^,:]*)*)"
)
_LOCATOR = re.compile(
    r"\s*(?:(?P<page>pp?\.?|pages?)\s*(?P<first>\d+)(?:\s*[-\u2013]\s*(?P<last>\d+))?|\d+(?:\s*[-\u2013]\s*\d+)?"
    rf"|(?:ch|chap|chapter|sec|section|\u00a7|fig|figure|table|para|box|annex|vol)s?\.?\s*[\w.]+|SPM[\w.]*|TS[\w.]*"
    rf"|{_YEAR}[a-z]?)\s*",
    re.IGNORECASE,
)
_NAME = r"\b[^\W\d_a-z][\w'\u2019-]*"
_REPORTING = (
    r"(?:show|find|found|report|estimat|argu|suggest|conclud|not(?:es?|ed)\b|demonstrat|calculat|project|attribut"
    r"|observ|point)"
)
_YEAR_BEHIND = rf"\s*\({_YEAR}[a-z]?(?:,\s*pp?\.\s*\d+)?\)"
_NARRATIVE = re.compile(
    rf"(?:{_NAME}(?:\s+et\s+al\.?|\s+(?:and|&)\s+[^\W\d_a-z][\w'\u2019-]*)|\b[A-Z]{{3,8}}){_YEAR_BEHIND}"
    # Of a single name only what is said of it tells an author from a place or an eruption.
    rf"|{_NAME}{_YEAR_BEHIND}(?=\s+(?:also\s+)?{_REPORTING})"
    rf"|(?<=[Aa]ccording\sto\s){_NAME}{_YEAR_BEHIND}"
)
_BARE = re.compile(rf"{_NAME}\s+et\s+al\.?,?\s+{_YEAR}[a-z]?\b")
_JOINING = re.compile(r"et|al|and|of|the|de|la|van|von|der|den|on|for|in|to|&|du", re.IGNORECASE)
_NO_AUTHOR = re.compile(
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|tember|ember|ober)?"
    r"|spring|summer|autumn|winter|since|until|by|between|before|after|during",
    re.IGNORECASE,
)
_REPORT = re.compile(r"(?:AR|WG|SR|TAR|FAR|SAR)[\dIVX.]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference to a work by its authors and its year or a page."""

    text: str
    """Reference as written, with its brackets."""
    words: tuple[str, ...]
    """Names and year of the reference in lower case, without words such as "and" and "of"."""
    pages: tuple[int, int] | None = None
    """First and last page; None if no page is named."""

    def names(self, document: str) -> bool:
        """Return whether a document's title, file name and date contain all words of the reference."""
        return set(self.words) <= set(re.findall(r"[^\W_]+", document.lower()))


@dataclass(frozen=True, slots=True)
class CitingSentence:
    """Sentence without its citations, which are listed separately."""

    text: str
    numbers: tuple[int, ...]
    """Distinct cited numbers, including those of no passage."""
    references: tuple[Reference, ...]

    @property
    def plain(self) -> str:
        """Text of the sentence without references to works."""
        bare = self.text
        for reference in self.references:
            bare = bare.replace(reference.text, "")
        return bare


_Extracted = tuple[int, ...] | Reference


def read_citations(text: str, valid_numbers: Collection[int]) -> list[CitingSentence]:
    """Split a text into sentences with their citations; ``valid_numbers`` are the numbers of passages."""
    extracted: list[_Extracted] = []

    def replace_matches(
        pattern: re.Pattern[str], text: str, read: Callable[[str, re.Match[str]], _Extracted | None]
    ) -> str:
        def replace_match(match: re.Match[str]) -> str:
            citation = read(text, match)
            if not citation:
                return match[0]
            extracted.append(citation)
            # A capital, so that a sentence may begin with a reference.
            return f"{' C' if isinstance(citation, tuple) else 'R'}\ue000{len(extracted) - 1}\ue001"

        return pattern.sub(replace_match, text)

    plain = re.sub("[\ue000\ue001]", " ", " ".join(text.split()))
    for pattern in (_NARRATIVE, _BRACKET, _BARE):
        plain = replace_matches(pattern, plain, lambda _, match: _parse_reference(match[0]))
    plain = replace_matches(
        _CITATION,
        plain,
        lambda string, match: _parse_bracket(string, match, valid_numbers) if match["square"] else None,
    )
    bare_round = not any(isinstance(item, tuple) for item in extracted)
    plain = replace_matches(
        _CITATION, plain, lambda string, match: _parse_bracket(string, match, valid_numbers, bare_round=bare_round)
    )
    # "[1], [2] and [3]" is one citation; what follows a full stop belongs to the sentence before it.
    plain = re.sub(r"(C\ue000\d+\ue001)\s*(?:,|;|&|,?\s*and\b)\s*(?=C\ue000)", r"\1 ", plain)
    plain = re.sub(
        r"(?<![.!?])([.!?]+)((?:\s*[CR]\ue000\d+\ue001)+)(?=\s|$)(?!\s+[a-z])",
        lambda match: f" {match[2].strip()}{match[1]}",
        plain,
    )
    sentences = []
    for sentence in split_sentences(plain):
        items = [extracted[int(index)] for index in re.findall(r"\ue000(\d+)\ue001", sentence)]
        numbers = [number for item in items if isinstance(item, tuple) for number in item]
        bare = re.sub(r"\s*C\ue000\d+\ue001", "", sentence)
        bare = re.sub(r"\s*[(\[]\s*(?:see|cf\.?|[,;]|\s)*[)\]]", "", bare)
        bare = re.sub(r"R\ue000(\d+)\ue001", lambda match: getattr(extracted[int(match[1])], "text", ""), bare)
        references = tuple(item for item in items if isinstance(item, Reference))
        sentences.append(CitingSentence(bare.strip(), tuple(dict.fromkeys(numbers)), references))
    return sentences


def _parse_bracket(
    text: str, match: re.Match[str], valid_numbers: Collection[int], *, bare_round: bool = False
) -> tuple[int, ...] | None:
    """Return the numbers cited by a bracket; None if it is not a citation."""
    # "[1, p. 9]" is a passage with a page of it.
    content = re.sub(r"(?<=\d)\s*[,;]\s*(?:pages?|pp?\.?)\s*\d+", "", match["in_square"] or match["in_round"])
    if re.match(r"\s*(?:pages?|pp?\b)", content, re.IGNORECASE):
        content = match["in_square"] or match["in_round"]
    spans = [(int(first), int(last or first)) for first, _, last in _SPAN.findall(content)]
    # "12-9" is not a range.
    numbers = tuple(number for low, high in spans for number in (range(low, high + 1) if low <= high else (low, high)))
    worded = bool(re.search(r"[a-z\u2020#^]", re.sub(r"\b(?:to|through|and|or)\b", "", content), re.IGNORECASE))
    if worded:
        return numbers
    if re.search(r"\b(?:to|through)\b", content):
        return None
    preceding, exist = text[max(0, match.start() - 40) : match.start()], set(numbers) <= set(valid_numbers)
    is_separated = preceding[-1:].isspace()
    preceding = preceding.rstrip()
    if _NUMBERED.search(preceding):
        return None
    low, high = min(numbers), max(numbers)
    if (len(spans) == 2 or low < high) and len(spans) <= 2:
        figure = _FIGURE.search(preceding)
        is_within = figure is not None and low <= float(figure[1]) <= high
        if read_unit(text, match.end(), bracketed=False)[0]:
            return None
        if not exist and (is_within or _INTERVAL.search(preceding)):
            return None
    if match["square"]:
        return numbers
    fits = bare_round and is_separated and preceding[-1:].strip(".!?:;(") and _MAY_STAND_BEFORE.match(text, match.end())
    return numbers if fits and (exist or high <= _MAX_BARE_NUMBER) else None


def _parse_reference(text: str) -> Reference | None:
    """Parse a reference such as ``(IPCC, 2021)`` or ``Smith (2020)``; return None if the text is not one."""
    opened = text.find("(")
    content = f"{text[:opened].strip()}, {text[opened + 1 : -1]}" if opened > 0 else text.strip("([])")
    words: list[str] = []
    pages = None
    for part in content.split(";"):
        match = _REFERENCE.fullmatch(part.strip())
        if match is None:
            return None
        names = [name.strip(".") for name in re.findall(r"[^\s,]+", match["authors"])]
        proper = [name for name in names if not _JOINING.fullmatch(name)]
        if not proper or len(proper) > 8 or not all(_is_name(name) for name in proper):
            return None
        locations = [
            _LOCATOR.fullmatch(location_text)
            for location_text in re.split(r"[,:]", match["rest"])
            if location_text.strip()
        ]
        if not all(locations):
            return None
        page_locations = [location for location in locations if location and location["page"]]
        if not match["year"] and not page_locations:
            return None
        if match["year"] and int(match["year"]) > date.today().year + 1:
            return None
        if page_locations:
            pages = (int(page_locations[0]["first"]), int(page_locations[0]["last"] or page_locations[0]["first"]))
        words += [piece for name in proper for piece in re.findall(r"[^\W_]+", name.lower())]
        words += [match["year"]] if match["year"] else []
    return Reference(text, tuple(dict.fromkeys(words)), pages)


def _is_name(word: str) -> bool:
    digits = any(letter.isdigit() for letter in word)
    return word[0].isupper() and not _NO_AUTHOR.fullmatch(word) and (not digits or bool(_REPORT.fullmatch(word)))


Origin = Literal["model", "attributed", "none"]

IN_HOUSE_MARK = "(Not from the sources)"
"""Mark of a sentence from the model's own (in-house) knowledge, in texts for readers."""
MODELS_MARK = "(In-house knowledge)"
"""Mark of a sentence from the model's own (in-house) knowledge, in prompts and answers."""
UNCHECKED_MARK = "(reference not checked)"
SUPPORT_COSINE = 0.6
"""Minimum cosine similarity of a sentence to a sentence of a passage that supports it.

Measured on the primer's 30 freeform reference answers with the bundled encoder: see docs/results/check_text.md.
"""

_MARK = re.compile(r"\(?\s*in-house knowledge\s*\)?|\(\s*not from the sources\s*\)", re.IGNORECASE)


class NumberedPassage(Protocol):
    """A passage with the number by which it is cited."""

    @property
    def number(self) -> int:
        """Number, starting at 1."""

    @property
    def passage(self) -> Passage:
        """The passage."""


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """Sentence of an answer, with its citations and support."""

    text: str
    citations: tuple[int, ...]
    """Numbers of the cited passages, all of which exist."""
    origin: Origin
    """Origin of the citations: ``model``, ``attributed`` (found by comparison with the passages) or ``none``."""
    in_house: bool
    """Whether the sentence is the model's own knowledge: a statement about the world that no passage supports."""
    support: float
    """Highest cosine similarity, 0 to 1, to a sentence of the cited passages; of all passages if none is cited."""
    foreign_numbers: tuple[str, ...] = ()
    """Quantities of the sentence, as written, that no cited passage has, except the years of the cited documents."""
    entailment: tuple[float | None, ...] = ()
    """Probability that each cited passage entails the sentence, in the order of ``citations``; None if it failed, empty
    if it was not measured (see :data:`~climassay.metrics.entailment.ENTAILED`)."""
    unchecked_references: tuple[str, ...] = ()
    """References, as written, to works that are not in the collections."""

    @property
    def body(self) -> str:
        """Text of the sentence without its final punctuation, before which citations are inserted."""
        return self.text.rstrip(".!?\u2026")

    @property
    def stop(self) -> str:
        """Final punctuation of the sentence; may be empty."""
        return self.text[len(self.body) :]


def format_sentence(sentence: AnswerSentence, mark: str = IN_HOUSE_MARK) -> str:
    """Return a sentence with its citations and marks before its final punctuation.

    Args:
        sentence: Sentence.
        mark: Mark of in-house knowledge.
    """
    numbers = "".join(f" [{number}]" for number in sentence.citations)
    foreign = f" ({', '.join(sentence.foreign_numbers)} not in the cited passage)" if sentence.foreign_numbers else ""
    marks = numbers + foreign + f" {UNCHECKED_MARK}" * bool(sentence.unchecked_references)
    return sentence.body + marks + (f" {mark}" if sentence.in_house else "") + sentence.stop


def ground_text(
    text: str,
    *,
    truncated: bool,
    sources: Sequence[NumberedPassage],
    encoder: Encoder | None,
    context: str = "",
    remove_loops: bool = True,
    documents: Callable[[], Sequence[str]] = tuple,
) -> tuple[tuple[AnswerSentence, ...], int]:
    """Split a model's text into sentences with verified citations.

    Args:
        text: Text of a model.
        truncated: Whether the text was truncated, so that its last sentence is incomplete.
        sources: Passages in the model's prompt; may be empty.
        encoder: Encoder that compares sentences with passages; None disables attribution and support.
        context: Claim or question that the text answers; its quantities may be repeated without citation.
        remove_loops: Whether to remove sentences with loops, which very small models write. Other models repeat words
            in lists of figures.
        documents: Function that returns title, file name and date of every document; called only if the text refers to
            a work to which no passage belongs.

    Returns:
        The sentences, and the number of removed citations.
    """
    pieces = _split_sentences(text, sources, documents)
    if truncated and len(pieces) > 1:
        pieces = pieces[:-1]
    pieces = [piece for piece in pieces if not (remove_loops and _is_loop(piece.text))]
    valid_numbers = {source.number for source in sources}
    removed = sum(number not in valid_numbers for piece in pieces for number in piece.numbers)
    if not pieces:
        return (), removed
    if not sources or encoder is None:
        support = np.zeros((len(pieces), len(sources)))
    else:
        # Similarity of each sentence to the most similar sentence of each source.
        parts = [split_sentences(source.passage.text) or [source.passage.text] for source in sources]
        texts = [*(piece.text for piece in pieces), *(sentence for sentences in parts for sentence in sentences)]
        piece_vectors, source_vectors = np.split(encoder.encode(texts), [len(pieces)])
        borders = np.cumsum([0, *map(len, parts)])
        similar = piece_vectors @ source_vectors.T
        columns = [similar[:, low:high].max(axis=1) for low, high in pairwise(borders)]
        support = np.asarray(np.clip(np.stack(columns, axis=1), 0.0, 1.0))
    results = [_attribute(piece, row, sources, context) for piece, row in zip(pieces, support, strict=True)]
    for index, (piece, following) in enumerate(zip(pieces, results[1:], strict=False)):
        if following.citations and not (piece.numbers or piece.marked) and is_bare_answer(piece.text):
            results[index] = replace(results[index], citations=(), origin="none", in_house=False)
    return tuple(results), removed


def complete_sentences(text: str, sources: Sequence[NumberedPassage]) -> tuple[AnswerSentence, ...]:
    """Return the complete sentences of an unfinished text with their valid citations.

    This is a preview of :func:`ground_text` without comparison with the passages, so no sentence is attributed or
    marked. A sentence is complete if the next one has started, because citations may follow its full stop.

    Args:
        text: Unfinished text of a model.
        sources: Passages in the model's prompt.
    """
    words = text[: max(text.rfind(" "), text.rfind("\n"), 0)]
    complete_text = re.sub(r"[\[(\uff3b\u3010\u3014{][^\])\uff3d\u3011\u3015}]*$", "", words)
    pieces = [piece for piece in _split_sentences(complete_text, sources, tuple)[:-1] if not _is_loop(piece.text)]
    valid_numbers = {source.number for source in sources}
    cited = [tuple(number for number in piece.numbers if number in valid_numbers) for piece in pieces]
    return tuple(
        AnswerSentence(piece.text, numbers, "model" if numbers else "none", in_house=False, support=0.0)
        for piece, numbers in zip(pieces, cited, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _ParsedSentence:
    """A sentence of the model's text, without citations."""

    text: str
    numbers: tuple[int, ...]
    marked: bool
    plain: str
    """Text without references to works."""
    unchecked: tuple[str, ...]
    """References to works that are not in the collections."""


def _split_sentences(
    text: str, sources: Sequence[NumberedPassage], documents: Callable[[], Sequence[str]]
) -> list[_ParsedSentence]:
    """Split a text into distinct sentences with their citations and marks."""
    valid_numbers = {source.number for source in sources}
    marks = r"\(\s*(?:in-house knowledge|not from the sources)\s*\)"
    moved = re.sub(rf"([.!?])\s*({marks})", r" \2\1", " ".join(text.split()), flags=re.IGNORECASE)
    results: dict[str, _ParsedSentence] = {}
    for sentence in read_citations(moved, valid_numbers):
        numbers = list(sentence.numbers)
        unchecked = []
        for reference in sentence.references:
            if cited := [source.number for source in sources if _is_named(source.passage, reference)]:
                numbers += cited
            elif not any(reference.names(document) for document in documents()):
                unchecked.append(reference.text)
        marked = bool(_MARK.search(sentence.text))
        bare, plain = (
            re.sub(r"\s+([.!?,;:])", r"\1", _MARK.sub("", version)).strip()
            for version in (sentence.text, sentence.plain)
        )
        if not re.search(r"\w", bare):
            continue
        if bare in results:
            numbers = [*results[bare].numbers, *numbers]
        results[bare] = _ParsedSentence(bare, tuple(dict.fromkeys(numbers)), marked, plain, tuple(unchecked))
    return list(results.values())


_PUBLICATION_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")


def document_words(passage: Passage) -> str:
    """Return title, file name, report, edition and date of a passage's document, which references may name."""
    return " ".join(filter(None, (passage.document, passage.source, passage.report, passage.edition, passage.date)))


def _is_named(passage: Passage, reference: Reference) -> bool:
    if not reference.names(document_words(passage)):
        return False
    if reference.pages is None or passage.first_page is None:
        return True
    first, last = reference.pages
    return first <= (passage.last_page or passage.first_page) and passage.first_page <= last


def _is_loop(text: str) -> bool:
    """Return whether a sequence of four words occurs at least three times, as in loops of small models."""
    words = re.findall(r"\w+", text.lower())
    runs = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
    return max(runs.values(), default=0) >= 3


def _attribute(
    piece: _ParsedSentence, support: np.ndarray, sources: Sequence[NumberedPassage], context: str
) -> AnswerSentence:
    texts = {source.number: source.passage.text for source in sources}
    years = {source.number: " ".join(_PUBLICATION_YEAR.findall(document_words(source.passage))) for source in sources}
    numbers = list(texts)
    bare = AnswerSentence(
        piece.text, (), "none", False, float(support.max(initial=0.0)), unchecked_references=piece.unchecked
    )
    cited = tuple(number for number in piece.numbers if number in texts)
    if cited:
        best = max(float(support[numbers.index(number)]) for number in cited)
        cited_texts = [text for number in cited for text in (texts[number], years[number])]
        foreign = foreign_quantities(piece.plain, [context, *cited_texts])
        return replace(bare, citations=cited, origin="model", support=best, foreign_numbers=foreign)
    if not numbers:
        return replace(bare, in_house=True)
    if states_absence(piece.plain) and not piece.marked:
        return bare
    nearest = numbers[int(support.argmax())]
    fits = bare.support >= SUPPORT_COSINE and not foreign_quantities(piece.plain, [texts[nearest], years[nearest]])
    if fits and not piece.marked:
        return replace(bare, citations=(nearest,), origin="attributed")
    return replace(bare, in_house=True)
