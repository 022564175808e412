"""Text with citations, made honest: citations that exist, sentences attributed or marked, foreign quantities named.

1. Numbers of passages that were not retrieved are removed and counted, in whatever brackets they stand
   (:mod:`climassay.grounding.citations`). References by author and year stay; those to a document that is not at hand
   are marked, for nothing was compared with them.
2. A sentence in which the model repeats itself over and over is taken out, as is one that it could not finish.
3. A sentence without a citation gets one where a passage says nearly the same (``attributed``), measured by the
   similarity of their sentences, and has all its quantities; otherwise it is marked as in-house knowledge. One that
   only says what the passages lack gets neither, nor does a bare "No." before a cited sentence
   (:func:`states_absence`).
4. Quantities of a cited sentence that its passages do not have are named beside it
   (:mod:`climassay.grounding.quantities`).
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np

from climassay.corpus.documents import Passage
from climassay.corpus.sentences import split_sentences
from climassay.grounding.citations import Reference, read_citations
from climassay.grounding.quantities import foreign_quantities
from climassay.models.contract import Encoder

ENTAILED = 0.5
"""Probability from which a citation counts as faithful: entailment is then likelier than all else together."""


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
_BARE = re.compile(
    r"(?:(?:yes|no|partly|not\s+(?:quite|entirely|exactly|really))\b[,.]?\s*)?"
    r"(?:(?:it|they|this|that|he|she|there)\s+(?:is|are|was|were|has|have|had|does|do|did|will|would|can|could)"
    r"(?:\s+not|n't|not)?)?[.!]?",
    re.IGNORECASE,
)


def states_absence(sentence: str) -> bool:
    """Whether a sentence says only what the passages do not say, as in "The passages give no figure for Spain".

    That there is no evidence for something, or that studies do not find it, is a statement about the world.
    """
    return bool(_ABSENCE.match(sentence)) and not _MORE.search(sentence, 3)


def is_bare_answer(sentence: str) -> bool:
    """Whether a sentence answers a question in the question's own words: "No.", "It has not."."""
    return bool(_BARE.fullmatch(sentence))


Origin = Literal["model", "attributed", "none"]

IN_HOUSE_MARK = "(In-house knowledge)"
UNCHECKED_MARK = "(reference not checked)"
SUPPORT_COSINE = 0.6
"""Similarity of a sentence to its nearest sentence of a passage from which the passage is taken to support it.

Measured on the primer's 30 freeform reference answers with the bundled encoder: see docs/performance.md.
"""

_MARK = re.compile(r"\(?\s*in-house knowledge\s*\)?", re.IGNORECASE)


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
    measured; empty where nothing was (see :data:`ENTAILED`)."""
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


def written(sentence: AnswerSentence) -> str:
    """A sentence with its citations and marks before its full stop, as it is shown in running text."""
    numbers = "".join(f" [{number}]" for number in sentence.citations)
    foreign = f" ({', '.join(sentence.foreign_numbers)} not in the cited passage)" if sentence.foreign_numbers else ""
    marks = numbers + foreign + f" {UNCHECKED_MARK}" * bool(sentence.unchecked_references)
    return sentence.body + marks + (f" {IN_HOUSE_MARK}" if sentence.in_house else "") + sentence.stop


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
        support = _support([piece.text for piece in pieces], sources, encoder)
    found = [_attribute(piece, row, sources, given) for piece, row in zip(pieces, support, strict=True)]
    for place, (piece, following) in enumerate(zip(pieces, found[1:], strict=False)):
        if following.citations and not (piece.numbers or piece.marked) and is_bare_answer(piece.text):
            found[place] = replace(found[place], citations=(), origin="none", in_house=False)
    return tuple(found), removed


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
    moved = re.sub(r"([.!?])\s*(\(\s*in-house knowledge\s*\))", r" \2\1", " ".join(text.split()), flags=re.IGNORECASE)
    found: dict[str, _Piece] = {}
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
        if bare in found:
            numbers = [*found[bare].numbers, *numbers]
        found[bare] = _Piece(bare, tuple(dict.fromkeys(numbers)), marked, plain, tuple(unchecked))
    return list(found.values())


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


def _support(texts: Sequence[str], sources: Sequence[NumberedPassage], encoder: Encoder) -> np.ndarray:
    """Similarity of each text to the nearest sentence of each source, shape [texts, sources]."""
    parts = [split_sentences(source.passage.text) or [source.passage.text] for source in sources]
    vectors = encoder.encode([*texts, *[sentence for sentences in parts for sentence in sentences]])
    own, others = vectors[: len(texts)], vectors[len(texts) :]
    borders = np.cumsum([0, *[len(sentences) for sentences in parts]])
    similar = own @ others.T
    columns = [similar[:, low:high].max(axis=1) for low, high in pairwise(borders)]
    return np.asarray(np.clip(np.stack(columns, axis=1), 0.0, 1.0))


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
