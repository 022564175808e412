"""A question answered from passages.

1. Passages are retrieved. Where none is relevant the answer is "not enough information", and no model is asked.
2. The model writes a few sentences, each with the numbers of the passages it rests on.
3. Numbers of passages that were not retrieved are removed and counted.
4. A sentence in which the model repeats itself over and over is taken out, as is one that it could not finish.
5. A sentence without a citation gets one where a passage says nearly the same (``attributed``), measured by the
   similarity of their sentences, and has all its numbers; otherwise it is marked as in-house knowledge.
6. Numbers of a cited sentence that its passages do not have are named beside it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from climassay.corpus.documents import Passage
from climassay.corpus.sentences import split_sentences
from climassay.errors import InputError
from climassay.models.contract import Encoder, GenerationRequest, Generator, Sampling, Usage
from climassay.prompts import Prompt, load_prompt

if TYPE_CHECKING:
    from climassay.grounding.retrieval import CollectionGroup

Origin = Literal["model", "attributed", "none"]

IN_HOUSE_MARK = "(In-house knowledge)"
NOT_ENOUGH = "not enough information"
SUPPORT_COSINE = 0.6
"""Similarity of a sentence to its nearest sentence of a passage from which the passage is taken to support it.

Measured on the primer's 30 freeform reference answers with the bundled encoder: see docs/performance.md.
"""

_CITATION = re.compile(r"\s*\[\s*(\d+(?:\s*[,;&-]\s*\d+)*)\s*\]")
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_MARK = re.compile(r"\(?\s*in-house knowledge\s*\)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that was put before the model."""

    number: int
    """From 1; what citations name."""
    passage: Passage
    cosine: float | None
    """Similarity to the question."""

    @property
    def citation(self) -> str:
        """Where the passage stands, in words."""
        return self.passage.citation


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """One sentence of an answer and what it rests on."""

    text: str
    citations: tuple[int, ...]
    """Numbers of sources; every one exists."""
    origin: Origin
    """Who set the citation: the model, the comparison with the passages, or nobody."""
    in_house: bool
    """The model's own knowledge: neither cited nor found in a passage."""
    support: float
    """Highest similarity to a sentence of the cited passages, else of any passage; 0 to 1."""
    foreign_numbers: tuple[str, ...] = ()
    """Numbers in the sentence that none of the cited passages has."""


@dataclass(frozen=True, slots=True)
class GroundedAnswer:
    """What was answered, from what, and how sure the ground is."""

    question: str
    enough_information: bool
    sentences: tuple[AnswerSentence, ...]
    sources: tuple[Source, ...]
    model: str
    fingerprint: str
    removed_citations: int = 0
    """Citations of passages that do not exist, taken out of the text."""
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    """Why the model gave no answer; None when it did."""

    @property
    def text(self) -> str:
        """The answer with its citations and marks, as one paragraph."""
        if self.error is not None:
            return f"No answer: {self.error}"
        if not self.enough_information:
            return "Not enough information."
        return " ".join(_written(sentence) for sentence in self.sentences)


def _written(sentence: AnswerSentence) -> str:
    numbers = "".join(f" [{number}]" for number in sentence.citations)
    foreign = f" ({', '.join(sentence.foreign_numbers)} not in the cited passage)" if sentence.foreign_numbers else ""
    return sentence.text + numbers + foreign + (f" {IN_HOUSE_MARK}" if sentence.in_house else "")


def answer_question(
    question: str,
    collections: "CollectionGroup",
    model: Generator,
    *,
    k: int = 4,
    min_cosine: float | None = None,
    sentences: int = 3,
    prompt: Prompt | None = None,
    sampling: Sampling | None = None,
) -> GroundedAnswer:
    """Answer a question from the passages of one or several collections.

    Args:
        question: In plain language.
        collections: Where to look.
        model: Who writes.
        k: Passages put before the model.
        min_cosine: Similarity to the question below which a passage is not relevant; by default the measured threshold
            of the collection's encoder.
        sentences: At most so many are asked for.
        prompt: Template with ``question``, ``sources`` (``number``, ``citation``, ``text``) and ``sentences``.
        sampling: How the model writes; greedy with room for the sentences by default.

    Raises:
        InputError: The question is empty.
    """
    if not question.strip():
        raise InputError("The question is empty.")
    hits = collections.search(question, k=k, min_cosine=min_cosine)
    sources = tuple(Source(number, hit.passage, hit.cosine) for number, hit in enumerate(hits, start=1))
    if not sources:
        return GroundedAnswer(question, False, (), (), model.name, model.fingerprint)
    rendered = (prompt or load_prompt("ask")).render(
        question=question,
        sentences=sentences,
        sources=[{"number": s.number, "citation": s.citation, "text": s.passage.text} for s in sources],
    )
    request = GenerationRequest(
        rendered.messages,
        sampling or Sampling(max_tokens=60 * sentences),
        assistant_prefix=rendered.assistant_prefix,
    )
    completion = model.generate([request])[0]
    told = GroundedAnswer(
        question, True, (), sources, model.name, model.fingerprint, usage=completion.usage, error=completion.error
    )
    if completion.error is not None:
        return told
    written, removed = _ground(completion.text, completion.finish_reason == "length", sources, collections.encoder)
    refused = _is_refusal(completion.text)
    return GroundedAnswer(
        question=question,
        enough_information=not refused,
        sentences=written,
        sources=sources,
        model=model.name,
        fingerprint=model.fingerprint,
        removed_citations=removed,
        usage=completion.usage,
        error=None if written or refused else "it wrote no sentence that can be used (empty, or caught in a loop).",
    )


def _is_refusal(text: str) -> bool:
    return bool(re.match(rf"[\W_]*{NOT_ENOUGH}\b", text, re.IGNORECASE))


def _ground(
    text: str, cut: bool, sources: Sequence[Source], encoder: Encoder
) -> tuple[tuple[AnswerSentence, ...], int]:
    """Sentences with citations that exist, and the number of those removed; no sentences for a refusal."""
    if _is_refusal(text):
        return (), 0
    pieces = _pieces(text)
    if cut and len(pieces) > 1:
        pieces = pieces[:-1]
    pieces = [piece for piece in pieces if not _is_loop(piece.text)]
    known = {source.number for source in sources}
    removed = sum(number not in known for piece in pieces for number in piece.numbers)
    if not pieces:
        return (), removed
    support = _support([piece.text for piece in pieces], sources, encoder)
    return tuple(_attribute(piece, row, sources) for piece, row in zip(pieces, support, strict=True)), removed


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence as the model wrote it, its citations taken out."""

    text: str
    numbers: tuple[int, ...]
    marked: bool


def _pieces(text: str) -> list[_Piece]:
    """Sentences with the citations and marks that stand in or right behind them; repeated sentences once."""
    # A citation behind the full stop belongs to the sentence before it: move it in front.
    moved = re.sub(r"([.!?])((?:\s*\[\s*\d+(?:\s*[,;&-]\s*\d+)*\s*\])+)", r"\2\1", " ".join(text.split()))
    moved = re.sub(r"([.!?])\s*(\(\s*in-house knowledge\s*\))", r" \2\1", moved, flags=re.IGNORECASE)
    found: dict[str, _Piece] = {}
    for sentence in split_sentences(moved):
        numbers = [int(n) for match in _CITATION.finditer(sentence) for n in re.findall(r"\d+", match[1])]
        bare = _CITATION.sub("", sentence)
        marked = bool(_MARK.search(bare))
        bare = re.sub(r"\s+([.!?,;:])", r"\1", _MARK.sub("", bare)).strip()
        if not re.search(r"\w", bare):
            continue
        if bare in found:
            numbers = [*found[bare].numbers, *numbers]
        found[bare] = _Piece(bare, tuple(dict.fromkeys(numbers)), marked)
    return list(found.values())


def _is_loop(text: str) -> bool:
    """Whether a run of four words occurs three times: small models get caught in such loops, writers do not."""
    words = re.findall(r"\w+", text.lower())
    runs = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
    return max(runs.values(), default=0) >= 3


def _support(texts: Sequence[str], sources: Sequence[Source], encoder: Encoder) -> np.ndarray:
    """Similarity of each text to the nearest sentence of each source, shape [texts, sources]."""
    parts = [split_sentences(source.passage.text) or [source.passage.text] for source in sources]
    vectors = encoder.encode([*texts, *[sentence for sentences in parts for sentence in sentences]])
    own, others = vectors[: len(texts)], vectors[len(texts) :]
    borders = np.cumsum([0, *[len(sentences) for sentences in parts]])
    similar = own @ others.T
    columns = [similar[:, low:high].max(axis=1) for low, high in pairwise(borders)]
    return np.asarray(np.clip(np.stack(columns, axis=1), 0.0, 1.0))


def _attribute(piece: _Piece, support: np.ndarray, sources: Sequence[Source]) -> AnswerSentence:
    texts = {source.number: source.passage.text for source in sources}
    numbers = list(texts)
    cited = tuple(number for number in piece.numbers if number in texts)
    if cited:
        best = max(float(support[numbers.index(number)]) for number in cited)
        foreign = foreign_numbers(piece.text, [texts[number] for number in cited])
        return AnswerSentence(piece.text, cited, "model", False, best, foreign)
    place = int(support.argmax())
    best = float(support[place])
    fits = best >= SUPPORT_COSINE and not foreign_numbers(piece.text, [texts[numbers[place]]])
    if fits and not piece.marked:
        return AnswerSentence(piece.text, (numbers[place],), "attributed", False, best)
    return AnswerSentence(piece.text, (), "none", True, best)


def foreign_numbers(sentence: str, passages: Sequence[str]) -> tuple[str, ...]:
    """Numbers of a sentence that occur in none of the passages, compared by value (``1,000`` equals ``1000``)."""
    known = {_value(number) for passage in passages for number in _NUMBER.findall(passage)}
    found = dict.fromkeys(_NUMBER.findall(sentence))
    return tuple(number for number in found if _value(number) not in known)


def _value(number: str) -> float:
    return float(number.replace(",", ""))
