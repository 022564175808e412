"""Whether test questions stand, word for word, in texts that a model was trained on or is given.

Two texts share a run of words where the same words follow each other in both, whatever the case and punctuation. A
question is *touched* at n where one of its parts shares a run of n words or more with any text; 8 and 13 words are the
lengths in use (GPT-3 paper, Brown et al. 2020, appendix C: 13; PaLM and others: 8). Reading questions in full makes a
model look better than it is; sharing a definition of eight words with a textbook need not.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.questions import KINDS, LETTERS, LEVELS, Question
from climassay.reporting import Table, percent, percent_interval
from climassay.statistics import proportion

SHORTEST_RUN = 4
"""Words; shorter runs are in any two texts of a field and are counted as 0."""
LONG_RUN = 13
"""Words; the longer of the two usual lengths."""
_WORDS_AT_ONCE = 200_000
_WORD = re.compile(r"[^\W_]+")
_GAP = re.compile(r"<mask>", re.IGNORECASE)
_NO_WORD = 0
"""Stands for words that no question has, and between texts: no run goes across it."""


class LabelledText(NamedTuple):
    """A text and what to call it."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class SharedRun:
    """The longest run of words that a question shares with the texts."""

    part: str
    """Part of the question: ``question``, ``answer``, ``statement`` (cloze, gap filled) or an option's letter."""
    words: int
    shared: str
    """The words, in lower case."""
    text: str
    """Label of the first text that has them."""


@dataclass(frozen=True, slots=True)
class QuestionOverlap:
    """What a question shares with the texts."""

    question: Question
    words: int
    """Words of its longest part: no longer run is possible."""
    run: SharedRun | None
    """None where no run of :data:`SHORTEST_RUN` words is shared."""
    covered: float
    """Share of its words, over all parts, that lie in shared runs of n words or more."""

    @property
    def longest(self) -> int:
        """Words of the longest run; 0 below :data:`SHORTEST_RUN`."""
        return 0 if self.run is None else self.run.words


@dataclass(frozen=True, slots=True)
class ContaminationReport:
    """Overlap of a set of questions with texts."""

    against: str
    n: int
    """Length of the n-grams of words."""
    texts: int
    words: int
    """Words of all texts."""
    overlaps: tuple[QuestionOverlap, ...]
    """One a question, in their order."""

    def touched(self, length: int | None = None) -> tuple[QuestionOverlap, ...]:
        """Questions that share a run of so many words, by default n."""
        least = max(length or self.n, SHORTEST_RUN)
        return tuple(one for one in self.overlaps if one.longest >= least)

    def worst(self, count: int = 10) -> tuple[QuestionOverlap, ...]:
        """The touched questions with the longest runs, then the largest share covered."""
        ranked = sorted(self.touched(), key=lambda one: (-one.longest, -one.covered, one.question.id))
        return tuple(ranked[:count])


class _Probe(NamedTuple):
    """One part of one question."""

    question: int
    part: str
    words: tuple[str, ...]


def contamination(
    questions: Sequence[Question], texts: Iterable[str | LabelledText], n: int = 8, *, against: str = "texts"
) -> ContaminationReport:
    """Compare questions with texts, word by word.

    The questions' parts are the question, its options or answer; a cloze statement is compared with its gap filled.
    Texts are read once, in portions, so that a large collection need not fit into memory.

    Args:
        questions: Test questions.
        texts: Training or retrieval texts; a run never goes from one into the next.
        n: Words that make a question touched, at least :data:`SHORTEST_RUN`.
        against: What the texts are, for tables.

    Raises:
        InputError: No questions, no texts, or n is too small.

    Example:
        >>> report = contamination(questions, (row.text for row in training_rows))
        >>> len(report.touched()), len(report.touched(13))
        (3, 0)
    """
    if n < SHORTEST_RUN:
        raise InputError(f"N-grams of {n} words are in any two texts: take {SHORTEST_RUN} or more.")
    if not questions:
        raise InputError("Contamination needs at least one question.")
    index = _Index(
        [
            _Probe(place, part, _split(text))
            for place, question in enumerate(questions)
            for part, text in question_parts(question).items()
        ],
        n,
    )
    counted, words = 0, 0
    for portion in _portions(texts):
        counted += len(portion)
        words += index.read(portion)
    if not counted:
        raise InputError(f"There is no text to compare the questions with in {against}.")
    return ContaminationReport(against, n, counted, words, tuple(index.overlaps(questions)))


def _split(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def question_parts(question: Question) -> dict[str, str]:
    """Texts of a question by the names of :attr:`SharedRun.part`: stem and options or answer; a filled statement."""
    if question.type.gap:
        return {"statement": _GAP.sub(lambda _: question.answer, question.question)}
    if question.options and not question.type.fixed:
        return {"question": question.question, **dict(zip(LETTERS, question.options, strict=False))}
    return {"question": question.question, "answer": question.answer}


def _portions(texts: Iterable[str | LabelledText]) -> Iterator[list[tuple[str, tuple[str, ...]]]]:
    """Labels and words of texts, some 200,000 words at a time."""
    portion: list[tuple[str, tuple[str, ...]]] = []
    count = 0
    for number, given in enumerate(texts, start=1):
        label, text = given if isinstance(given, LabelledText) else (f"text {number}", given)
        words = _split(text)
        portion.append((label, words))
        count += len(words)
        if count >= _WORDS_AT_ONCE:
            yield portion
            portion, count = [], 0
    if portion:
        yield portion


class _Index:
    """The windows of :data:`SHORTEST_RUN` words of all probes, and the runs found so far."""

    def __init__(self, probes: Sequence[_Probe], n: int) -> None:
        self._probes = probes
        self._n = n
        vocabulary: dict[str, int] = {}
        for probe in probes:
            for word in probe.words:
                vocabulary.setdefault(word, len(vocabulary) + 1)
        self._vocabulary = vocabulary
        self._base = np.uint64(len(vocabulary) + 1)
        self._starts = _starts([len(probe.words) for probe in probes])
        self._ids = self._number([probe.words for probe in probes])
        windows = self._windows(self._ids)
        places = np.flatnonzero(windows != _NO_WORD)
        order = np.argsort(windows[places], kind="stable")
        self._places = places[order]
        self._keys = windows[self._places]
        self._covered = np.zeros(len(self._ids), dtype=bool)
        self._best: dict[int, SharedRun] = {}

    def read(self, portion: Sequence[tuple[str, tuple[str, ...]]]) -> int:
        """Find the runs that texts share with the probes; gives the number of words read."""
        ids = self._number([words for _, words in portion])
        starts = _starts([len(words) for _, words in portion])
        for text_at, probe_at, length in self._runs(ids):
            if length >= self._n:
                self._covered[probe_at : probe_at + length] = True
            probe = int(np.searchsorted(self._starts, probe_at, side="right")) - 1
            best = self._best.get(self._probes[probe].question)
            if best is None or length > best.words:
                text = int(np.searchsorted(starts, text_at, side="right")) - 1
                first = text_at - int(starts[text])
                label, words = portion[text]
                shared = " ".join(words[first : first + length])
                part = self._probes[probe].part
                self._best[self._probes[probe].question] = SharedRun(part, length, shared, label)
        return sum(len(words) for _, words in portion)

    def overlaps(self, questions: Sequence[Question]) -> Iterator[QuestionOverlap]:
        covered, words, longest = ([0] * len(questions) for _ in range(3))
        for probe, start in zip(self._probes, self._starts.tolist(), strict=True):
            covered[probe.question] += int(self._covered[start : start + len(probe.words)].sum())
            words[probe.question] += len(probe.words)
            longest[probe.question] = max(longest[probe.question], len(probe.words))
        for place, question in enumerate(questions):
            share = covered[place] / words[place] if words[place] else 0.0
            yield QuestionOverlap(question, longest[place], self._best.get(place), share)

    def _number(self, texts: Sequence[Sequence[str]]) -> NDArray[np.uint64]:
        """Numbers of the words of all texts, each text followed by one :data:`_NO_WORD`."""
        find = self._vocabulary.get
        parts = ([find(word, _NO_WORD) for word in words] + [_NO_WORD] for words in texts)
        return np.fromiter(chain.from_iterable(parts), dtype=np.uint64)

    def _windows(self, ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """One number for the words from each place on, :data:`_NO_WORD` where the window holds an unknown word.

        Different windows may get the same number only beyond 65,535 different words; :meth:`_runs` compares the words.
        """
        size = max(0, len(ids) - SHORTEST_RUN + 1)
        numbers = np.zeros(size, dtype=np.uint64)
        known = np.ones(size, dtype=bool)
        for shift in range(SHORTEST_RUN):
            part = ids[shift : shift + size]
            numbers = numbers * self._base + part
            known &= part != _NO_WORD
        return np.where(known, numbers, np.uint64(_NO_WORD))

    def _runs(self, ids: NDArray[np.uint64]) -> Iterator[tuple[int, int, int]]:
        """Maximal runs as (place in the texts, place in the probes, words)."""
        windows = self._windows(ids)
        low = np.searchsorted(self._keys, windows, side="left")
        counts = np.where(windows == _NO_WORD, 0, np.searchsorted(self._keys, windows, side="right") - low)
        hits = np.flatnonzero(counts)
        text_at = np.repeat(hits, counts[hits])
        within = np.arange(len(text_at)) - np.repeat(np.cumsum(counts[hits]) - counts[hits], counts[hits])
        probe_at = self._places[np.repeat(low[hits], counts[hits]) + within]
        same = np.ones(len(text_at), dtype=bool)
        for shift in range(SHORTEST_RUN):
            same &= ids[text_at + shift] == self._ids[probe_at + shift]
        text_at, probe_at = text_at[same], probe_at[same]
        # Windows of one run lie on one diagonal, at places that follow each other.
        diagonal = text_at.astype(np.int64) - probe_at.astype(np.int64)
        order = np.lexsort((text_at, diagonal))
        text_at, probe_at, diagonal = text_at[order], probe_at[order], diagonal[order]
        new = np.ones(len(text_at), dtype=bool)
        new[1:] = (np.diff(diagonal) != 0) | (np.diff(text_at) != 1)
        firsts = np.flatnonzero(new)
        lengths = np.diff(np.append(firsts, len(text_at))) + SHORTEST_RUN - 1
        # In the order of the texts, so that of equal runs the first text's is kept.
        for place in np.argsort(text_at[firsts], kind="stable"):
            yield int(text_at[firsts[place]]), int(probe_at[firsts[place]]), int(lengths[place])


def _starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    """Places of the first words of texts that each take one place more than they have words."""
    return np.concatenate([[0], np.cumsum(np.array(lengths, dtype=np.int64) + 1)])[:-1].astype(np.int64)


def contamination_tables(report: ContaminationReport, worst: int = 10) -> list[Table]:
    """Shares of questions touched by task and level, and the worst questions where there are any."""
    lengths = tuple(dict.fromkeys((report.n, LONG_RUN))) if report.n < LONG_RUN else (report.n,)
    groups: dict[tuple[str, str], list[QuestionOverlap]] = {}
    levels = [None, *LEVELS]
    order = [(kind, level) for kind in KINDS for level in levels]
    for one in sorted(report.overlaps, key=lambda one: order.index((one.question.kind, one.question.level))):
        groups.setdefault((one.question.kind, one.question.level or "-"), []).append(one)
    groups["all", "all"] = list(report.overlaps)
    rows = []
    for names, ones in groups.items():
        cells = [*names, str(len(ones))]
        for size in lengths:
            share = proportion(sum(one.longest >= size for one in ones), len(ones))
            count = round(share.value * share.n)
            cells.append(f"{count} ({percent(share.value)}; {percent_interval(share.interval)})")
        middle = float(np.median([one.longest for one in ones]))
        cells.append(f"{middle:g}" if middle >= SHORTEST_RUN else f"<{SHORTEST_RUN}")
        rows.append([*cells, str(sum(one.words < report.n for one in ones))])
    tables = [
        Table.of(
            f"Questions that share words with {report.against}",
            [
                "task",
                "level",
                "n",
                *(f"{size} words\nor more" for size in lengths),
                "median\nlongest run",
                "too\nshort",
            ],
            rows,
            note=f"Texts: {report.texts:,}, of {report.words:,} words. A question counts where its question, "
            "an option or its answer (cloze: the statement with its gap filled) shares a run of so many words; in "
            f"brackets per cent and the 95% interval (Wilson). Too short: no part has {report.n} words. Runs below "
            f"{SHORTEST_RUN} words are not looked for.",
            left=2,
            strong=[len(rows) - 1],
        )
    ]
    result = report.worst(worst)
    if result:
        tables.append(
            Table.of(
                f"Questions that share the longest runs with {report.against}",
                ["question", "level", "part", "shared words", "text", "run", "covered\n(%)"],
                [
                    [
                        one.question.id,
                        one.question.level or "-",
                        one.run.part,
                        one.run.shared,
                        one.run.text,
                        str(one.run.words),
                        f"{100 * one.covered:.0f}",
                    ]
                    for one in result
                    if one.run is not None
                ],
                note=f"covered: share of the question's words that lie in shared runs of {report.n} words or more.",
                left=5,
            )
        )
    return tables


RUN_LENGTH = 8
"""Words that make a question count, as in ``climassay evaluate contamination``."""


def question_text(question: Question) -> str:
    """All words of a question: stem and options or answer; a statement with its gap filled."""
    return "\n".join(question_parts(question).values())
