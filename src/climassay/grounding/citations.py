"""Citations of a model's text: parsing and verification.

1. Numbers in brackets cite passages: ``[3]``, ``[1, 3]``, ``[1-3]``, ``[1]-[3]``, ``[Passage 3]``, ``[p. 3]``,
   ``【3】``, ``(source 3)``. Ranges cite every number in them. A raised number behind a word or a full stop
   (``word.³``, ``word<sup>3</sup>``) is a citation if a passage has this number. A bare number in round brackets
   (``(3)``) is a citation only at the end of a clause and only in texts without square brackets, because round brackets
   also contain counts and list numbers. Years, decimals, numbers with units, intervals after a figure or before a unit,
   and numbers of figures and chapters are not citations.
2. Numbers of passages that were not retrieved are removed and counted. References by author and year
   (``(IPCC, 2021, p. 9)``, ``Smith et al. (2020)``) remain and are marked if no document matches them.
3. Sentences that repeat the same words in a loop are removed, and so is a truncated last sentence.
4. A sentence without citation gets one (``attributed``) if a passage has a very similar sentence and all its
   quantities; otherwise it is marked as in-house knowledge. Sentences that only state what the passages lack
   (:func:`states_absence`) and a bare "No." before a cited sentence are not marked.
5. Quantities of a cited sentence that its passages lack are reported (:mod:`climassay.grounding.quantities`).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, pairwise
from typing import Literal, Protocol

import numpy as np

from climassay.corpus.documents import Passage
from climassay.corpus.sentences import split_sentences
from climassay.grounding.absence import is_bare_answer, states_absence
from climassay.grounding.quantities import find_foreign_quantities
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
_BRACKETED_RANGE = re.compile(rf"\[({_NUMBER})\]{_DASH}\[({_NUMBER})\]")
_ESCAPED_BRACKETS = re.compile(r"\\\[([\d\s,;\u2010-\u2015-]+)\\\]")
_RAISED = re.compile(
    r"(?:(?<=[^\W\d_A-Z]{4})|(?<=[.,;!?\"\u201d]))(?:"
    rf"\s?(?i:<sup>)\s*\[?(?P<tagged>{_NUMBER}(?:(?:{_DASH}|{_AND}){_NUMBER})*)\]?\s*(?i:</sup>)"
    r"|(?P<sign>[\u2070\xb9\xb2\xb3\u2074-\u2079]{1,2}))(?!\w)"
)
"""Pattern of a raised number behind a word of four small letters or a punctuation mark, which excludes units such as
km² and hPa²."""
_SPAN = re.compile(rf"({_NUMBER})(?::\d+)?(?:\u2020[^\]\u3011]*)?(?:({_DASH}|\s+(?:to|through)\s+)\D*?({_NUMBER}))?")
_NUMBERED_ITEM = re.compile(
    r"\b(?:Fig(?:ure)?|Table|Eq(?:uation)?|Chapter|Section|Article|Annex|Appendix|Box|Part|Scenario|Category|Goal)\.?\s*$"
)
_INTERVAL = re.compile(r"\b(?:interval|ci|ranges?|scale|between|from|iqr)\s*:?\s*$", re.IGNORECASE)
_FIGURE = re.compile(r"(\d+(?:\.\d+)?)\s*\S{0,8}\s*$")
_AFTER_CITATION = re.compile(r"\s*(?:[.!?,;:)]|$|(?:and|but|while|whereas|as|which)\b|[\[(\u3010]\d)")
_MAX_BARE_NUMBER = 99
"""Largest number in round brackets that counts as a citation even if no passage has this number."""

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
_REPORTING_VERB = (
    r"(?:show|find|found|report|estimat|argu|suggest|conclud|not(?:es?|ed)\b|demonstrat|calculat|project|attribut"
    r"|observ|point)"
)
_YEAR_BEHIND = rf"\s*\({_YEAR}[a-z]?(?:,\s*pp?\.\s*\d+)?\)"
_NARRATIVE = re.compile(
    rf"(?:{_NAME}(?:\s+et\s+al\.?|\s+(?:and|&)\s+[^\W\d_a-z][\w'\u2019-]*)|\b[A-Z]{{3,8}}){_YEAR_BEHIND}"
    # Of a single name only what is said of it tells an author from a place or an eruption.
    rf"|{_NAME}{_YEAR_BEHIND}(?=\s+(?:also\s+)?{_REPORTING_VERB})"
    rf"|(?<=[Aa]ccording\sto\s){_NAME}{_YEAR_BEHIND}"
)
_UNBRACKETED_REFERENCE = re.compile(rf"{_NAME}\s+et\s+al\.?,?\s+{_YEAR}[a-z]?\b")
_JOINING_WORD = re.compile(r"et|al|and|of|the|de|la|van|von|der|den|on|for|in|to|&|du", re.IGNORECASE)
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
    """Text of the reference as written, with its brackets."""
    words: tuple[str, ...]
    """Names and year in lower case, without words such as "and" and "of"."""
    pages: tuple[int, int] | None = None
    """First and last page; None if no page is named."""

    def names(self, document: str) -> bool:
        """Return whether a text with a document's title, file name and date contains all words of the reference."""
        return set(self.words) <= set(re.findall(r"[^\W_]+", document.lower()))


@dataclass(frozen=True, slots=True)
class CitingSentence:
    """Sentence separated from its citations."""

    text: str
    numbers: tuple[int, ...]
    """Distinct numbers cited in the sentence, including numbers that no passage has."""
    references: tuple[Reference, ...]

    @property
    def plain(self) -> str:
        """Text of the sentence without references to works."""
        plain_text = self.text
        for reference in self.references:
            plain_text = plain_text.replace(reference.text, "")
        return plain_text


_Extracted = tuple[int, ...] | Reference


def read_citations(text: str, valid_numbers: Collection[int]) -> list[CitingSentence]:
    """Split a text into sentences with their citations; ``valid_numbers`` are the numbers of the passages."""
    citations: list[_Extracted] = []

    def replace_matches(
        pattern: re.Pattern[str], text: str, parse: Callable[[str, re.Match[str]], _Extracted | None]
    ) -> str:
        def replace_match(match: re.Match[str]) -> str:
            citation = parse(text, match)
            if not citation:
                return match[0]
            citations.append(citation)
            # The placeholder begins with a capital, so that a sentence may begin with a reference.
            return f"{' C' if isinstance(citation, tuple) else 'R'}\ue000{len(citations) - 1}\ue001"

        return pattern.sub(replace_match, text)

    marked_text = re.sub("[\ue000\ue001]", " ", " ".join(text.split()))
    marked_text = _ESCAPED_BRACKETS.sub(r"[\1]", marked_text)
    marked_text = _BRACKETED_RANGE.sub(r"[\1-\2]", marked_text)
    marked_text = _RAISED.sub(lambda match: _bracket_raised_citation(match, valid_numbers), marked_text)
    for pattern in (_NARRATIVE, _BRACKET, _UNBRACKETED_REFERENCE):
        marked_text = replace_matches(pattern, marked_text, lambda _, match: _parse_reference(match[0]))
    marked_text = replace_matches(
        _CITATION,
        marked_text,
        lambda string, match: _parse_bracket(string, match, valid_numbers) if match["square"] else None,
    )
    allows_round_brackets = not any(isinstance(citation, tuple) for citation in citations)
    marked_text = replace_matches(
        _CITATION,
        marked_text,
        lambda string, match: _parse_bracket(string, match, valid_numbers, allows_round_brackets=allows_round_brackets),
    )
    # "[1], [2] and [3]" is one citation; what follows a full stop belongs to the sentence before it.
    marked_text = re.sub(r"(C\ue000\d+\ue001)\s*(?:,|;|&|,?\s*and\b)\s*(?=C\ue000)", r"\1 ", marked_text)
    marked_text = re.sub(
        r"(?<![.!?])([.!?]+)((?:\s*[CR]\ue000\d+\ue001)+)(?=\s|$)(?!\s+[a-z])",
        lambda match: f" {match[2].strip()}{match[1]}",
        marked_text,
    )
    sentences = []
    for sentence in split_sentences(marked_text):
        sentence_citations = [citations[int(index)] for index in re.findall(r"\ue000(\d+)\ue001", sentence)]
        numbers = [number for citation in sentence_citations if isinstance(citation, tuple) for number in citation]
        sentence_text = re.sub(r"\s*C\ue000\d+\ue001", "", sentence)
        sentence_text = re.sub(r"\s*[(\[]\s*(?:see|cf\.?|[,;]|\s)*[)\]]", "", sentence_text)
        sentence_text = re.sub(
            r"R\ue000(\d+)\ue001", lambda match: getattr(citations[int(match[1])], "text", ""), sentence_text
        )
        references = tuple(citation for citation in sentence_citations if isinstance(citation, Reference))
        sentences.append(CitingSentence(sentence_text.strip(), tuple(dict.fromkeys(numbers)), references))
    return sentences


def _bracket_raised_citation(match: re.Match[str], valid_numbers: Collection[int]) -> str:
    """Return a raised citation in brackets, or unchanged if a number is not that of a passage."""
    numbers = match["tagged"] or unicodedata.normalize("NFKC", match["sign"])
    are_valid = {int(number) for number in re.findall(r"\d+", numbers)} <= set(valid_numbers)
    return f"[{numbers}]" if are_valid else match[0]


def _parse_bracket(
    text: str, match: re.Match[str], valid_numbers: Collection[int], *, allows_round_brackets: bool = False
) -> tuple[int, ...] | None:
    """Return the numbers cited in a bracket; None if the bracket is not a citation."""
    # "[1, p. 9]" is a passage with a page of it.
    content = re.sub(r"(?<=\d)\s*[,;]\s*(?:pages?|pp?\.?)\s*\d+", "", match["in_square"] or match["in_round"])
    if re.match(r"\s*(?:pages?|pp?\b)", content, re.IGNORECASE):
        content = match["in_square"] or match["in_round"]
    spans = [(int(first), int(last or first)) for first, _, last in _SPAN.findall(content)]
    # "12-9" is not a range.
    numbers = tuple(
        number for start, end in spans for number in (range(start, end + 1) if start <= end else (start, end))
    )
    has_words = bool(re.search(r"[a-z\u2020#^]", re.sub(r"\b(?:to|through|and|or)\b", "", content), re.IGNORECASE))
    if has_words:
        return numbers
    if re.search(r"\b(?:to|through)\b", content):
        return None
    text_before, are_valid = text[max(0, match.start() - 40) : match.start()], set(numbers) <= set(valid_numbers)
    is_separated = text_before[-1:].isspace()
    text_before = text_before.rstrip()
    if _NUMBERED_ITEM.search(text_before):
        return None
    min_number, max_number = min(numbers), max(numbers)
    if (len(spans) == 2 or min_number < max_number) and len(spans) <= 2:
        preceding_number = _FIGURE.search(text_before)
        is_within = preceding_number is not None and min_number <= float(preceding_number[1]) <= max_number
        if read_unit(text, match.end(), bracketed=False)[0]:
            return None
        if not are_valid and (is_within or _INTERVAL.search(text_before)):
            return None
    if match["square"]:
        return numbers
    is_citation = (
        allows_round_brackets
        and is_separated
        and text_before[-1:].strip(".!?:;(")
        and _AFTER_CITATION.match(text, match.end())
    )
    return numbers if is_citation and (are_valid or max_number <= _MAX_BARE_NUMBER) else None


def _parse_reference(text: str) -> Reference | None:
    """Parse a reference such as ``(IPCC, 2021)`` or ``Smith (2020)``; return None if the text is not a reference."""
    bracket_index = text.find("(")
    content = (
        f"{text[:bracket_index].strip()}, {text[bracket_index + 1 : -1]}" if bracket_index > 0 else text.strip("([])")
    )
    words: list[str] = []
    pages = None
    for part in content.split(";"):
        match = _REFERENCE.fullmatch(part.strip())
        if match is None:
            return None
        names = [name.strip(".") for name in re.findall(r"[^\s,]+", match["authors"])]
        proper_names = [name for name in names if not _JOINING_WORD.fullmatch(name)]
        if not proper_names or len(proper_names) > 8 or not all(_is_name(name) for name in proper_names):
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
        words += [word for name in proper_names for word in re.findall(r"[^\W_]+", name.lower())]
        words += [match["year"]] if match["year"] else []
    return Reference(text, tuple(dict.fromkeys(words)), pages)


def _is_name(word: str) -> bool:
    has_digits = any(letter.isdigit() for letter in word)
    return word[0].isupper() and not _NO_AUTHOR.fullmatch(word) and (not has_digits or bool(_REPORT.fullmatch(word)))


Origin = Literal["model", "attributed", "none"]

IN_HOUSE_MARK = "(Not from the sources)"
"""Mark on sentences from the model's own (in-house) knowledge, in texts for readers."""
MODELS_MARK = "(In-house knowledge)"
"""Mark on sentences from the model's own (in-house) knowledge, in prompts and in answers of models."""
UNCHECKED_MARK = "(reference not checked)"
SUPPORT_COSINE = 0.6
"""Minimum cosine similarity between a sentence and a sentence of a passage for the passage to support it.

Measured on the primer's 30 free-form reference answers with the bundled encoder; see docs/results/check_text.md.
"""

_MARK = re.compile(r"\(?\s*in-house knowledge\s*\)?|\(\s*not from the sources\s*\)", re.IGNORECASE)


class NumberedPassage(Protocol):
    """Passage with the number by which it is cited."""

    @property
    def number(self) -> int:
        """Number, starting at 1."""

    @property
    def passage(self) -> Passage:
        """Passage with this number."""


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """Sentence of an answer, with its citations and support."""

    text: str
    citations: tuple[int, ...]
    """Numbers of the cited passages, all of which exist."""
    origin: Origin
    """Origin of the citations: ``model``; ``attributed`` (found by comparing the sentence with the passages); or
    ``none``.
    """
    in_house: bool
    """Whether the sentence states something about the world that no passage supports. Its only basis is then the
    model's own knowledge."""
    support: float
    """Maximum cosine similarity, 0 to 1, to a sentence of the cited passages, or of all passages if none is cited."""
    foreign_numbers: tuple[str, ...] = ()
    """Quantities in the sentence, as written, that no cited passage contains, except the publication years of the cited
    documents.
    """
    entailment: tuple[float | None, ...] = ()
    """Probability that each cited passage entails the sentence, in the order of ``citations``; None for a failed
    comparison. Empty if entailment was not measured (see :data:`~climassay.metrics.entailment.ENTAILED`).
    """
    unchecked_references: tuple[str, ...] = ()
    """References, as written, to works that are not in the collections."""

    @property
    def body(self) -> str:
        """Text of the sentence without its final punctuation; citations are inserted after it."""
        return self.text.rstrip(".!?\u2026")

    @property
    def stop(self) -> str:
        """Final punctuation of the sentence; may be empty."""
        return self.text[len(self.body) :]


def format_sentence(sentence: AnswerSentence, mark: str = IN_HOUSE_MARK) -> str:
    """Return a sentence with its citations and marks inserted before its final punctuation.

    Args:
        sentence: Sentence.
        mark: Mark on sentences from in-house knowledge.
    """
    numbers = "".join(f" [{number}]" for number in sentence.citations)
    foreign_note = (
        f" ({', '.join(sentence.foreign_numbers)} not in the cited passage)" if sentence.foreign_numbers else ""
    )
    marks = numbers + foreign_note + f" {UNCHECKED_MARK}" * bool(sentence.unchecked_references)
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
        text: Text written by a model.
        truncated: Whether the text was truncated; its last sentence is then incomplete.
        sources: Passages in the model's prompt; may be empty.
        encoder: Encoder that compares sentences with passages; None disables this comparison, on which ``support`` and
            the attribution of uncited sentences depend.
        context: Claim or question that the text answers; its quantities may be repeated without a citation.
        remove_loops: Whether to remove sentences that repeat the same words, as very small models write them. Other
            models do so legitimately in lists of numbers.
        documents: Function that returns title, file name and date of every document; called only if the text refers to
            a work and no source is from that work.

    Returns:
        The sentences, and the number of removed citations.
    """
    sentences = _split_sentences(text, sources, documents)
    if truncated and len(sentences) > 1:
        sentences = sentences[:-1]
    sentences = [sentence for sentence in sentences if not (remove_loops and _is_repetitive(sentence.text))]
    valid_numbers = {source.number for source in sources}
    n_removed_citations = sum(number not in valid_numbers for sentence in sentences for number in sentence.numbers)
    if not sentences:
        return (), n_removed_citations
    if not sources or encoder is None:
        support = np.zeros((len(sentences), len(sources)))
    else:
        # Similarity of each sentence to the most similar sentence of each source.
        source_sentences = [split_sentences(source.passage.text) or [source.passage.text] for source in sources]
        texts = [*(sentence.text for sentence in sentences), *chain.from_iterable(source_sentences)]
        sentence_vectors, source_vectors = np.split(encoder.encode(texts), [len(sentences)])
        offsets = np.cumsum([0, *map(len, source_sentences)])
        similarities = sentence_vectors @ source_vectors.T
        columns = [similarities[:, start:end].max(axis=1) for start, end in pairwise(offsets)]
        support = np.asarray(np.clip(np.stack(columns, axis=1), 0.0, 1.0))
    answer_sentences = [
        _attribute(sentence, row, sources, context) for sentence, row in zip(sentences, support, strict=True)
    ]
    for index, (sentence, next_sentence) in enumerate(zip(sentences, answer_sentences[1:], strict=False)):
        if next_sentence.citations and not (sentence.numbers or sentence.is_marked) and is_bare_answer(sentence.text):
            answer_sentences[index] = replace(answer_sentences[index], citations=(), origin="none", in_house=False)
    return tuple(answer_sentences), n_removed_citations


def extract_complete_sentences(text: str, sources: Sequence[NumberedPassage]) -> tuple[AnswerSentence, ...]:
    """Return the complete sentences of an unfinished text with their valid citations.

    This is a preview of :func:`ground_text` without comparison with the passages: no uncited sentence is attributed to
    a passage or marked as in-house knowledge. A sentence is complete once the next one has begun, because citations may
    follow its full stop.

    Args:
        text: Unfinished text of a model.
        sources: Passages in the model's prompt.
    """
    words = text[: max(text.rfind(" "), text.rfind("\n"), 0)]
    closed_end = 1 + max(map(words.rfind, "])\uff3d\u3011\u3015}"))
    open_bracket = re.compile(r"[\[(\uff3b\u3010\u3014{]").search(words, closed_end)
    complete_text = words if open_bracket is None else words[: open_bracket.start()]
    sentences = [
        sentence
        for sentence in _split_sentences(complete_text, sources, tuple)[:-1]
        if not _is_repetitive(sentence.text)
    ]
    valid_numbers = {source.number for source in sources}
    valid_citations = [
        tuple(number for number in sentence.numbers if number in valid_numbers) for sentence in sentences
    ]
    return tuple(
        AnswerSentence(sentence.text, numbers, "model" if numbers else "none", in_house=False, support=0.0)
        for sentence, numbers in zip(sentences, valid_citations, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _ParsedSentence:
    """Sentence of a model's text, without its citations."""

    text: str
    numbers: tuple[int, ...]
    is_marked: bool
    plain: str
    """Text without references to works."""
    unchecked: tuple[str, ...]
    """References, as written, to works that are not in the collections."""


def _split_sentences(
    text: str, sources: Sequence[NumberedPassage], documents: Callable[[], Sequence[str]]
) -> list[_ParsedSentence]:
    """Split a text into distinct sentences, and separate each from its citations and in-house marks."""
    valid_numbers = {source.number for source in sources}
    mark_pattern = r"\(\s*(?:in-house knowledge|not from the sources)\s*\)"
    normalised_text = re.sub(rf"([.!?])\s*({mark_pattern})", r" \2\1", " ".join(text.split()), flags=re.IGNORECASE)
    sentences_by_text: dict[str, _ParsedSentence] = {}
    for sentence in read_citations(normalised_text, valid_numbers):
        numbers = list(sentence.numbers)
        unchecked_references = []
        for reference in sentence.references:
            if cited_numbers := [source.number for source in sources if _names_document(source.passage, reference)]:
                numbers += cited_numbers
            elif not any(reference.names(document) for document in documents()):
                unchecked_references.append(reference.text)
        is_marked = bool(_MARK.search(sentence.text))
        sentence_text, plain_text = (
            re.sub(r"\s+([.!?,;:])", r"\1", _MARK.sub("", version)).strip()
            for version in (sentence.text, sentence.plain)
        )
        if not re.search(r"\w", sentence_text):
            continue
        if sentence_text in sentences_by_text:
            numbers = [*sentences_by_text[sentence_text].numbers, *numbers]
        sentences_by_text[sentence_text] = _ParsedSentence(
            sentence_text, tuple(dict.fromkeys(numbers)), is_marked, plain_text, tuple(unchecked_references)
        )
    return list(sentences_by_text.values())


_PUBLICATION_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")


def describe_document(passage: Passage) -> str:
    """Return title, file name, report, edition and date of a passage's document, to compare references with them."""
    return " ".join(filter(None, (passage.document, passage.source, passage.report, passage.edition, passage.date)))


def _names_document(passage: Passage, reference: Reference) -> bool:
    if not reference.names(describe_document(passage)):
        return False
    if reference.pages is None or passage.first_page is None:
        return True
    first_page, last_page = reference.pages
    return first_page <= (passage.last_page or passage.first_page) and passage.first_page <= last_page


def _is_repetitive(text: str) -> bool:
    """Return whether a text repeats any sequence of four words at least three times, as very small models do."""
    words = re.findall(r"\w+", text.lower())
    runs = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
    return max(runs.values(), default=0) >= 3


def _attribute(
    sentence: _ParsedSentence, support: np.ndarray, sources: Sequence[NumberedPassage], context: str
) -> AnswerSentence:
    texts = {source.number: source.passage.text for source in sources}
    years = {
        source.number: " ".join(_PUBLICATION_YEAR.findall(describe_document(source.passage))) for source in sources
    }
    numbers = list(texts)
    answer_sentence = AnswerSentence(
        sentence.text,
        (),
        "none",
        False,
        float(support.max(initial=0.0)),
        unchecked_references=sentence.unchecked,
    )
    cited_numbers = tuple(number for number in sentence.numbers if number in texts)
    if cited_numbers:
        max_support = max(float(support[numbers.index(number)]) for number in cited_numbers)
        cited_texts = [text for number in cited_numbers for text in (texts[number], years[number])]
        foreign_numbers = find_foreign_quantities(sentence.plain, [context, *cited_texts])
        return replace(
            answer_sentence,
            citations=cited_numbers,
            origin="model",
            support=max_support,
            foreign_numbers=foreign_numbers,
        )
    if not numbers:
        return replace(answer_sentence, in_house=True)
    if states_absence(sentence.plain) and not sentence.is_marked:
        return answer_sentence
    nearest_number = numbers[int(support.argmax())]
    is_supported = answer_sentence.support >= SUPPORT_COSINE and not find_foreign_quantities(
        sentence.plain, [texts[nearest_number], years[nearest_number]]
    )
    if is_supported and not sentence.is_marked:
        return replace(answer_sentence, citations=(nearest_number,), origin="attributed")
    return replace(answer_sentence, in_house=True)
