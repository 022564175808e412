"""Citations: read as models write them, and made honest.

1. Numbers in brackets name passages: ``[3]``, ``[1, 3]``, ``[1-3]``, ``[Passage 3]``, ``[p. 3]``, ``【3】``,
   ``(source 3)``. Ranges mean every number in them. In round brackets a number without a word (``(3)``) is one only
   where a citation may stand, and only in texts that have no square ones: round brackets also hold counts and the
   numbers of a list. Years, decimals, numbers with units, intervals behind a figure or before a unit, and numbers of
   figures and chapters are none.
2. Numbers of passages that were not retrieved are removed and counted. References by author and year
   (``(IPCC, 2021, p. 9)``, ``Smith et al. (2020)``) stay; those to a document that is not at hand are marked, for
   nothing was compared with them.
3. A sentence in which the model repeats itself over and over is taken out, as is one that it could not finish.
4. A sentence without a citation gets one where a passage says nearly the same (``attributed``), measured by the
   similarity of their sentences, and has all its quantities; otherwise it is marked as in-house knowledge. One that
   only says what the passages lack gets neither, nor does a bare "No." before a cited sentence
   (:func:`states_absence`).
5. Quantities of a cited sentence that its passages do not have are named beside it
   (:mod:`climassay.grounding.quantities`).
"""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np

from climassay.corpus.documents import Passage
from climassay.corpus.sentences import split_sentences
from climassay.grounding.quantities import foreign_quantities
from climassay.grounding.units import read_unit
from climassay.models.contract import Encoder
from climassay.reporting.marking import Piece, letters, mark_spans

_WORD = r"passages?|sources?|excerpts?|documents?|docs?\.?|references?|refs?\.?|pages?|pp\.?"
_PLACE = rf"(?:(?:{_WORD}|p\.)\s*[:#]?\s*)"
_SQUARE_PLACE = rf"(?:(?:{_WORD}|p\.?|s|cite[ds]?|citations?|nos?\.?|numbers?)\s*[:#]?\s*|[#^])"
_LEAD = r"\s*(?:(?:see|cf\.?|from|in|per|according\s+to|e\.g\.,?)\s+)?"
_DASH = r"\s*[-\u2010-\u2015\u2212]\s*"
_AND = r"\s*(?:,?\s*\b(?:and|or)\b|[,;&/\uff0c\u3001])\s*"
_NUMBER = r"\d{1,3}(?![\d%])"


def _inside(place: str) -> str:
    item = rf"(?:{place})?{_NUMBER}(?::\d+)?(?:\u2020[^\]\u3011]{{0,80}})?"
    return rf"{_LEAD}{item}(?:(?:{_DASH}|{_AND}|\s+(?:to|through)\s+){item})*\s*"


_LINK = r"(?:\(https?://[^\s()]{1,300}\))?"
_CITATION = re.compile(
    rf"(?P<square>[\[\uff3b\u3010\u3014{{])(?P<in_square>{_inside(_SQUARE_PLACE)})[\]\uff3d\u3011\u3015}}]{_LINK}"
    rf"|[(\uff08](?P<in_round>{_inside(_PLACE)})[)\uff09]",
    re.IGNORECASE,
)
_SPAN = re.compile(rf"({_NUMBER})(?::\d+)?(?:\u2020[^\]\u3011]*)?(?:({_DASH}|\s+(?:to|through)\s+)\D*?({_NUMBER}))?")
_NUMBERED = re.compile(
    r"\b(?:Fig(?:ure)?|Table|Eq(?:uation)?|Chapter|Section|Article|Annex|Appendix|Box|Part|Scenario|Category|Goal)\.?\s*$"
)
_INTERVAL = re.compile(r"\b(?:interval|ci|ranges?|scale|between|from|iqr)\s*:?\s*$", re.IGNORECASE)
_FIGURE = re.compile(r"(\d+(?:\.\d+)?)\s*\S{0,8}\s*$")
_MAY_STAND_BEFORE = re.compile(r"\s*(?:[.!?,;:)]|$|(?:and|but|while|whereas|as|which)\b|[\[(\u3010]\d)")
_FEW = 99
"""The highest number that a bare round bracket may hold without naming a passage."""

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
    """A work that a text names by its authors, with its year or a page."""

    text: str
    """As written, with its brackets."""
    words: tuple[str, ...]
    """Names and year, in lower case, without joining words."""
    pages: tuple[int, int] | None = None
    """First and last page; None where none is named."""

    def names(self, document: str) -> bool:
        """Whether a document's title, file name and date have all of the reference's words."""
        return set(self.words) <= set(re.findall(r"[^\W_]+", document.lower()))


@dataclass(frozen=True, slots=True)
class CitingSentence:
    """A sentence without the numbers that it cites."""

    text: str
    numbers: tuple[int, ...]
    """Each once, also those of no passage."""
    references: tuple[Reference, ...]

    @property
    def plain(self) -> str:
        """The text without its references."""
        bare = self.text
        for one in self.references:
            bare = bare.replace(one.text, "")
        return bare


_Found = tuple[int, ...] | Reference


def read_citations(text: str, known: Collection[int]) -> list[CitingSentence]:
    """The sentences of a text with what each cites, in or right behind it; ``known`` are numbers of passages."""
    results: list[_Found] = []

    def taken_out(pattern: re.Pattern[str], text: str, read: Callable[[str, re.Match[str]], _Found | None]) -> str:
        def place(match: re.Match[str]) -> str:
            one = read(text, match)
            if not one:
                return match[0]
            results.append(one)
            # A capital, so that a sentence may begin with a reference.
            return f"{' C' if isinstance(one, tuple) else 'R'}\ue000{len(results) - 1}\ue001"

        return pattern.sub(place, text)

    plain = re.sub("[\ue000\ue001]", " ", " ".join(text.split()))
    for pattern in (_NARRATIVE, _BRACKET, _BARE):
        plain = taken_out(pattern, plain, lambda _, match: _reference(match[0]))
    plain = taken_out(_CITATION, plain, lambda whole, match: _cited(whole, match, known) if match["square"] else None)
    bare_round = not any(isinstance(one, tuple) for one in results)
    plain = taken_out(_CITATION, plain, lambda whole, match: _cited(whole, match, known, bare_round=bare_round))
    # "[1], [2] and [3]" is one citation; what follows a full stop belongs to the sentence before it.
    plain = re.sub(r"(C\ue000\d+\ue001)\s*(?:,|;|&|,?\s*and\b)\s*(?=C\ue000)", r"\1 ", plain)
    plain = re.sub(
        r"([.!?]+)((?:\s*[CR]\ue000\d+\ue001)+)(?=\s|$)(?!\s+[a-z])",
        lambda match: f" {match[2].strip()}{match[1]}",
        plain,
    )
    sentences = []
    for sentence in split_sentences(plain):
        inside = [results[int(index)] for index in re.findall(r"\ue000(\d+)\ue001", sentence)]
        numbers = [number for one in inside if isinstance(one, tuple) for number in one]
        bare = re.sub(r"\s*C\ue000\d+\ue001", "", sentence)
        bare = re.sub(r"\s*[(\[]\s*(?:see|cf\.?|[,;]|\s)*[)\]]", "", bare)
        bare = re.sub(r"R\ue000(\d+)\ue001", lambda match: getattr(results[int(match[1])], "text", ""), bare)
        references = tuple(one for one in inside if isinstance(one, Reference))
        sentences.append(CitingSentence(bare.strip(), tuple(dict.fromkeys(numbers)), references))
    return sentences


def _cited(
    text: str, match: re.Match[str], known: Collection[int], *, bare_round: bool = False
) -> tuple[int, ...] | None:
    """Numbers of a bracket; None where it holds no citation."""
    # "[1, p. 9]" is a passage with a page of it.
    inside = re.sub(r"(?<=\d)\s*[,;]\s*(?:pages?|pp?\.?)\s*\d+", "", match["in_square"] or match["in_round"])
    if re.match(r"\s*(?:pages?|pp?\b)", inside, re.IGNORECASE):
        inside = match["in_square"] or match["in_round"]
    spans = [(int(one), int(other or one)) for one, _, other in _SPAN.findall(inside)]
    # "12-9" is not a range.
    numbers = tuple(number for low, high in spans for number in (range(low, high + 1) if low <= high else (low, high)))
    worded = bool(re.search(r"[a-z\u2020#^]", re.sub(r"\b(?:to|through|and|or)\b", "", inside), re.IGNORECASE))
    if worded:
        return numbers
    if re.search(r"\b(?:to|through)\b", inside):
        return None
    before, exist = text[max(0, match.start() - 40) : match.start()], set(numbers) <= set(known)
    apart = before[-1:].isspace()
    before = before.rstrip()
    if _NUMBERED.search(before):
        return None
    low, high = min(numbers), max(numbers)
    if (len(spans) == 2 or low < high) and len(spans) <= 2:
        figure = _FIGURE.search(before)
        within = figure is not None and low <= float(figure[1]) <= high
        if read_unit(text, match.end(), bracketed=False)[0]:
            return None
        if not exist and (within or _INTERVAL.search(before)):
            return None
    if match["square"]:
        return numbers
    fits = bare_round and apart and before[-1:].strip(".!?:;(") and _MAY_STAND_BEFORE.match(text, match.end())
    return numbers if fits and (exist or high <= _FEW) else None


def _reference(written: str) -> Reference | None:
    """The works that a bracket, or a name with a bracket, refers to; None where it holds anything else."""
    opened = written.find("(")
    inside = f"{written[:opened].strip()}, {written[opened + 1 : -1]}" if opened > 0 else written.strip("([])")
    words: list[str] = []
    pages = None
    for part in inside.split(";"):
        match = _REFERENCE.fullmatch(part.strip())
        if match is None:
            return None
        names = [one.strip(".") for one in re.findall(r"[^\s,]+", match["authors"])]
        proper = [one for one in names if not _JOINING.fullmatch(one)]
        if not proper or len(proper) > 8 or not all(_is_name(one) for one in proper):
            return None
        located = [_LOCATOR.fullmatch(one) for one in re.split(r"[,:]", match["rest"]) if one.strip()]
        if not all(located):
            return None
        paged = [one for one in located if one and one["page"]]
        if not match["year"] and not paged:
            return None
        if match["year"] and int(match["year"]) > date.today().year + 1:
            return None
        if paged:
            pages = (int(paged[0]["first"]), int(paged[0]["last"] or paged[0]["first"]))
        words += [piece for one in proper for piece in re.findall(r"[^\W_]+", one.lower())]
        words += [match["year"]] if match["year"] else []
    return Reference(written, tuple(dict.fromkeys(words)), pages)


def _is_name(word: str) -> bool:
    digits = any(letter.isdigit() for letter in word)
    return word[0].isupper() and not _NO_AUTHOR.fullmatch(word) and (not digits or bool(_REPORT.fullmatch(word)))


FEWEST_WORDS = 3
"""A quotation of fewer words shows nothing."""

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u00ad": "",
    }
)
LEFT_OUT = re.compile(r"[\[(]?\s*\.{3,}\s*[\])]?")
"""What shows that words are left out."""


def is_quoted(quotation: str, text: str) -> bool:
    """Whether all parts of a quotation stand in a text, in order."""
    return bool(_places(quotation, _without_gaps(text)))


def quoted_spans(quotation: str, text: str) -> tuple[tuple[int, int], ...]:
    """Beginning and end, in a text, of each part of a quotation; none where :func:`is_quoted` says that it is not."""
    within = _without_gaps(text)
    places = _places(quotation, within)
    (plain, whence), (original, where) = letters(within), letters(text)
    if not places or plain != original:
        return ()
    spans = []
    for start, end in places:
        first, last = bisect_left(whence, start), bisect_left(whence, end) - 1
        begin, opening = where[first], within[start : whence[first]]
        stop, closing = where[last] + 1, within[whence[last] + 1 : end]
        begin -= len(opening) * text.endswith(opening, 0, begin)
        spans.append((begin, stop + len(closing) * text.startswith(closing, stop)))
    return tuple(spans)


def mark_quotations(text: str, quotations: Iterable[str]) -> tuple[Piece, ...]:
    """A text in pieces, those marked that are quoted; quotations that do not stand in it mark nothing."""
    return mark_spans(text, [span for one in quotations for span in quoted_spans(one, text)])


def _without_gaps(text: str) -> str:
    """The text as quotations are looked up in it: what it leaves out itself is no border of a quotation's parts."""
    return " ".join(LEFT_OUT.sub(" ", _plain(text)).split())


def _places(quotation: str, within: str) -> list[tuple[int, int]]:
    """Where the parts of a quotation stand, in order; none unless all of them do."""
    given = _plain(quotation)
    parts = [part for piece in LEFT_OUT.split(given) if re.search(r"\w", part := piece.strip(" \"'.,;:"))]
    if sum(len(re.findall(r"\w+", part)) for part in parts) < FEWEST_WORDS:
        return []
    places: list[tuple[int, int]] = []
    for part in parts:
        match = _pattern(part).search(within, places[-1][1] if places else 0)
        if match is None:
            return []
        places.append(match.span())
    return places


def _plain(text: str) -> str:
    """The text in one form of signs; words divided by a hyphen are joined, so that both are the same."""
    plain = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    joined = re.sub(r"(?<=[^\W\d_])-\s*(?=[^\W\d_])", "", plain)
    return " ".join(joined.split())


def _pattern(part: str) -> re.Pattern[str]:
    """The part as whole words: neither in the middle of one nor of a number, nor a number without its sign."""
    # "-0.5" and "10.5" do not hold "0.5"; in "1901-2018" the dash is not a sign.
    before = r"(?<!\w)(?<!\d[.,])" + (r"(?<!^-)(?<![^\w]-)" if part[0].isdigit() else "")
    behind = r"(?!\w)" + (r"(?![.,]\d)(?!\s?%)" if part[-1].isdigit() else "")
    pieces = re.findall(r"[^\W\d_]+|\d+|[^\w\s]|_", part)
    first = f"(?i:{re.escape(pieces[0][0])})" + re.escape(pieces[0][1:])
    results = [first]
    for one, other in pairwise(pieces):
        # Readers of PDFs set spaces around signs and subscripts: "yr –1", "CO 2". Between two words there is one.
        apart = (one.isalpha() and other.isalpha()) or (one.isdigit() and other.isdigit())
        results.append((r"\s+" if apart else r"\s*") + re.escape(other))
    return re.compile(before + "".join(results) + behind)


_KIND = (
    r"(?:passages?|sources?|source\s+material|stud(?:y|ies)|reports?|papers?|texts?|documents?|abstracts?|excerpts?)"
)
_GIVEN = r"(?:(?:given|provided|retrieved|available|cited|quoted|numbered|two|three|four)\s+)"
_THESE = (
    rf"(?:(?:the|this|these|those|my|our)\s+(?:{_GIVEN}?{_KIND}|[\w-]+\s+passages?|information(?=\s+(?:provided|given)))"
    r"|passages?\s+\d+(?:(?:,|,?\s+and)\s+\d+)*)"
    r"(?:\s+(?:provided|given|retrieved|quoted|cited|above|here|at\s+hand|I\s+was\s+given))?"
)
"""What lay before the model: "the passages provided". Bare plurals ("studies") are the world's."""
_TELL = (
    r"(?:give|state|say|mention|cover|address|discuss|contain|include|provide|specif[iy]e?|report|quantif[iy]e?|describe|name"
    r"|list|allow|answer|tell|offer|define|compare|distinguish|speak|touch|single\s+out|break\s+\w+\s+down)(?:e?s)?"
)
_NOT = r"(?:do|does|did|can)(?:\s+not|n't|not)(?:,\s+however,|\s+(?:directly|explicitly|themselves|itself))?"
_LACKS = (
    rf"(?:{_NOT}\s+{_TELL}|{_TELL}\s+(?:no|nothing|neither)\b|makes?\s+no\s+mention|lacks?|(?:is|are)\s+(?:silent|insufficient)"
    r"|leaves?\s+(?:it\s+)?open|neither\s+\w+\s+nor)\b"
)
_ABSENCE = re.compile(
    r"(?:(?:however|but|yet|still|unfortunately),?\s+)?(?:"
    rf"{_THESE}\s+{_LACKS}"
    rf"|(?:(?:none|neither|nothing)\s+(?:of|in)\s+{_THESE}|(?:no|neither)\s+{_KIND}(?:\s+here)?)\s+{_TELL}\b"
    r"|(?:[^,;:]*\b(?:not|cannot)|(?:there\s+(?:is|are)\s+)?no)\b[^,;:]*\s"
    rf"(?:in\s+(?=[^,;:]*\bsources\b)|(?:in|by|from)\s+(?![^,;:]*\b(?:sources|stud|reports?|papers?)))(?:any\s+of\s+)?{_THESE}"
    r")",
    re.IGNORECASE,
)
"""At the beginning of a sentence. A finding ("do not show", "do not support") is a statement about the world."""
_MORE = re.compile(
    r"[;:]|,\s+(?:and|as|so|since|yet|while|which|where)\b|\b(?:but|although|though|whereas|because)\b", re.I
)
"""What another clause begins with, which may say something about the world."""
_LEFT_OPEN = re.compile(
    r",\s+so\s+(?:that\s+)?(?:the|this|that|its|a|an)\s+(?:[\w-]+\s+){1,3}?(?:itself\s+)?"
    r"(?:(?:is|are|was|can)\s*not(?:\s+be)?|(?:remains?|stays|is)(?=\s+(?:open|un)))\s+"
    r"(?:made|put\s+into\s+numbers|checked|compared|judged|assessed|answered|verified|quantified|settled|tested|decided"
    r"|open|unanswered|unsettled|untested|unverified)(?:\s+(?:here|from\s+them))?(?=\s*[.!]?\s*$)",
    re.IGNORECASE,
)
"""What follows from a lack and still says nothing about the world."""
_BARE_ANSWER = re.compile(
    r"(?:(?:yes|no|partly|not\s+(?:quite|entirely|exactly|really))\b[,.]?\s*)?"
    r"(?:(?:it|they|this|that|he|she|there)\s+(?:is|are|was|were|has|have|had|does|do|did|will|would|can|could)"
    r"(?:\s+not|n't|not)?)?[.!]?",
    re.IGNORECASE,
)


def states_absence(sentence: str) -> bool:
    """Whether a sentence says only what the passages do not say, as in "The passages give no figure for Spain".

    It may add that something is open for this reason: "so the comparison cannot be made". That there is no evidence
    for something, or that studies do not find it, is a statement about the world.
    """
    said = _LEFT_OPEN.sub("", sentence)
    return bool(_ABSENCE.match(said)) and not _MORE.search(said, 3)


def is_bare_answer(sentence: str) -> bool:
    """Whether a sentence answers a question in the question's own words: "No.", "It has not."."""
    return bool(_BARE_ANSWER.fullmatch(sentence))


Origin = Literal["model", "attributed", "none"]

IN_HOUSE_MARK = "(Not from the sources)"
"""As people read it."""
MODELS_MARK = "(In-house knowledge)"
"""The same as models are asked to write it, and read it in each other's answers."""
UNCHECKED_MARK = "(reference not checked)"
SUPPORT_COSINE = 0.6
"""Similarity of a sentence to its nearest sentence of a passage from which the passage is taken to support it.

Measured on the primer's 30 freeform reference answers with the bundled encoder: see docs/performance.md.
"""

_MARK = re.compile(r"\(?\s*in-house knowledge\s*\)?|\(\s*not from the sources\s*\)", re.IGNORECASE)


class NumberedPassage(Protocol):
    """A passage that citations name by its number."""

    @property
    def number(self) -> int:
        """From 1."""

    @property
    def passage(self) -> Passage:
        """What it says."""


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """One sentence of an answer and what it rests on."""

    text: str
    citations: tuple[int, ...]
    """Numbers of sources; every one exists."""
    origin: Origin
    """Who set the citation: the model, the comparison with the passages, or nobody."""
    in_house: bool
    """The model's own knowledge: neither cited nor found in a passage, and about the world."""
    support: float
    """Highest similarity to a sentence of the cited passages, else of any passage; 0 to 1."""
    foreign_numbers: tuple[str, ...] = ()
    """Quantities in the sentence, as written, that none of the cited passages has."""
    entailment: tuple[float | None, ...] = ()
    """Parallel to ``citations``: probability that the cited passage entails the sentence, None where that was not
    measured; empty where nothing was (see :data:`~climassay.metrics.entailment.ENTAILED`)."""
    unchecked_references: tuple[str, ...] = ()
    """Works that the sentence refers to, as written, which no document at hand is: nobody has looked them up."""

    @property
    def body(self) -> str:
        """The text without the full stop, question or exclamation mark that ends it, before which citations stand."""
        return self.text.rstrip(".!?\u2026")

    @property
    def stop(self) -> str:
        """What :attr:`body` leaves out; often empty."""
        return self.text[len(self.body) :]


def written(sentence: AnswerSentence, mark: str = IN_HOUSE_MARK) -> str:
    """A sentence with its citations and marks before its full stop, as it is shown in running text.

    Args:
        sentence: The sentence.
        mark: What stands behind one that does not rest on the sources.
    """
    numbers = "".join(f" [{number}]" for number in sentence.citations)
    foreign = f" ({', '.join(sentence.foreign_numbers)} not in the cited passage)" if sentence.foreign_numbers else ""
    marks = numbers + foreign + f" {UNCHECKED_MARK}" * bool(sentence.unchecked_references)
    return sentence.body + marks + (f" {mark}" if sentence.in_house else "") + sentence.stop


def ground_text(
    text: str,
    *,
    cut: bool,
    sources: Sequence[NumberedPassage],
    encoder: Encoder | None,
    given: str = "",
    loops: bool = True,
    documents: Callable[[], Sequence[str]] = tuple,
) -> tuple[tuple[AnswerSentence, ...], int]:
    """Sentences with citations that exist, and the number of citations removed.

    Args:
        text: What a model wrote.
        cut: Whether it was cut off, so that its last sentence is not whole.
        sources: The passages that lay before the model; none where it had none.
        encoder: Compares sentences with passages; None attributes nothing and measures no support.
        given: What the text is about, for example a claim: its quantities may be named whatever is cited.
        loops: Whether to take out sentences that repeat themselves, as very small models do. Others repeat words where
            they list the figures of several periods.
        documents: Gives title, file name and date of every document at hand; asked only where the text refers to a
            work that the passages are not from.
    """
    pieces = _pieces(text, sources, documents)
    if cut and len(pieces) > 1:
        pieces = pieces[:-1]
    pieces = [piece for piece in pieces if not (loops and _is_loop(piece.text))]
    known = {source.number for source in sources}
    removed = sum(number not in known for piece in pieces for number in piece.numbers)
    if not pieces:
        return (), removed
    if not sources or encoder is None:
        support = np.zeros((len(pieces), len(sources)))
    else:
        # The similarity of each sentence to the nearest sentence of each source.
        parts = [split_sentences(source.passage.text) or [source.passage.text] for source in sources]
        texts = [*(piece.text for piece in pieces), *(sentence for sentences in parts for sentence in sentences)]
        own, others = np.split(encoder.encode(texts), [len(pieces)])
        borders = np.cumsum([0, *map(len, parts)])
        similar = own @ others.T
        columns = [similar[:, low:high].max(axis=1) for low, high in pairwise(borders)]
        support = np.asarray(np.clip(np.stack(columns, axis=1), 0.0, 1.0))
    results = [_attribute(piece, row, sources, given) for piece, row in zip(pieces, support, strict=True)]
    for place, (piece, following) in enumerate(zip(pieces, results[1:], strict=False)):
        if following.citations and not (piece.numbers or piece.marked) and is_bare_answer(piece.text):
            results[place] = replace(results[place], citations=(), origin="none", in_house=False)
    return tuple(results), removed


def sentences_so_far(text: str, sources: Sequence[NumberedPassage]) -> tuple[AnswerSentence, ...]:
    """The sentences that are complete in a text that is still being written, with those of their citations that exist.

    A preview of :func:`ground_text`: nothing is compared with the passages yet, so no sentence is attributed or marked.
    A sentence counts as complete when the next one has begun, since citations may follow its full stop.

    Args:
        text: What a model has written so far.
        sources: The passages that lie before the model.
    """
    words = text[: max(text.rfind(" "), text.rfind("\n"), 0)]
    settled = re.sub(r"[\[(\uff3b\u3010\u3014{][^\])\uff3d\u3011\u3015}]*$", "", words)
    pieces = [piece for piece in _pieces(settled, sources, tuple)[:-1] if not _is_loop(piece.text)]
    known = {source.number for source in sources}
    cited = [tuple(number for number in piece.numbers if number in known) for piece in pieces]
    return tuple(
        AnswerSentence(piece.text, numbers, "model" if numbers else "none", in_house=False, support=0.0)
        for piece, numbers in zip(pieces, cited, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence as the model wrote it, its citations taken out."""

    text: str
    numbers: tuple[int, ...]
    marked: bool
    plain: str
    """Without references to works."""
    unchecked: tuple[str, ...]
    """References to works that are not at hand."""


def _pieces(text: str, sources: Sequence[NumberedPassage], documents: Callable[[], Sequence[str]]) -> list[_Piece]:
    """Sentences with the citations and marks that appear in or right behind them; repeated sentences once."""
    known = {source.number for source in sources}
    marks = r"\(\s*(?:in-house knowledge|not from the sources)\s*\)"
    moved = re.sub(rf"([.!?])\s*({marks})", r" \2\1", " ".join(text.split()), flags=re.IGNORECASE)
    results: dict[str, _Piece] = {}
    for sentence in read_citations(moved, known):
        numbers = list(sentence.numbers)
        unchecked = []
        for reference in sentence.references:
            if cited := [source.number for source in sources if _is_named(source.passage, reference)]:
                numbers += cited
            elif not any(reference.names(document) for document in documents()):
                unchecked.append(reference.text)
        marked = bool(_MARK.search(sentence.text))
        bare, plain = (
            re.sub(r"\s+([.!?,;:])", r"\1", _MARK.sub("", one)).strip() for one in (sentence.text, sentence.plain)
        )
        if not re.search(r"\w", bare):
            continue
        if bare in results:
            numbers = [*results[bare].numbers, *numbers]
        results[bare] = _Piece(bare, tuple(dict.fromkeys(numbers)), marked, plain, tuple(unchecked))
    return list(results.values())


def document_words(passage: Passage) -> str:
    """What a reference to a passage's document may name: its title, file name, report and date."""
    return " ".join(filter(None, (passage.document, passage.source, passage.report, passage.edition, passage.date)))


def _is_named(passage: Passage, reference: Reference) -> bool:
    if not reference.names(document_words(passage)):
        return False
    if reference.pages is None or passage.first_page is None:
        return True
    first, last = reference.pages
    return first <= (passage.last_page or passage.first_page) and passage.first_page <= last


def _is_loop(text: str) -> bool:
    """Whether a run of four words occurs three times: small models get caught in such loops, writers do not."""
    words = re.findall(r"\w+", text.lower())
    runs = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
    return max(runs.values(), default=0) >= 3


def _attribute(piece: _Piece, support: np.ndarray, sources: Sequence[NumberedPassage], given: str) -> AnswerSentence:
    texts = {source.number: source.passage.text for source in sources}
    numbers = list(texts)
    bare = AnswerSentence(
        piece.text, (), "none", False, float(support.max(initial=0.0)), unchecked_references=piece.unchecked
    )
    cited = tuple(number for number in piece.numbers if number in texts)
    if cited:
        best = max(float(support[numbers.index(number)]) for number in cited)
        foreign = foreign_quantities(piece.plain, [given, *(texts[number] for number in cited)])
        return replace(bare, citations=cited, origin="model", support=best, foreign_numbers=foreign)
    if not numbers:
        return replace(bare, in_house=True)
    if states_absence(piece.plain) and not piece.marked:
        return bare
    nearest = numbers[int(support.argmax())]
    fits = bare.support >= SUPPORT_COSINE and not foreign_quantities(piece.plain, [texts[nearest]])
    if fits and not piece.marked:
        return replace(bare, citations=(nearest,), origin="attributed")
    return replace(bare, in_house=True)
