"""Whether test questions stand, word for word, in texts that a model was trained on or is given.

Two texts share a run of words where the same words follow each other in both, whatever the case and punctuation. A
question is *touched* at n where one of its parts shares a run of n words or more with any text; 8 and 13 words are the
lengths in use (GPT-3 paper, Brown et al. 2020, appendix C: 13; PaLM and others: 8). Reading questions in full makes a
model look better than it is; sharing a definition of eight words with a textbook need not.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from climassay.errors import InputError
from climassay.questions import KINDS, LETTERS, LEVELS, Question
from climassay.reporting import Table, percent, percent_interval
from climassay.statistics import proportion

SHORTEST_RUN = 4
"""Words; shorter runs are in any two texts of a field and are counted as 0."""
LONG_RUN = 13
"""Words; the longer of the two usual lengths."""
_WORD = re.compile(r"[^\W_]+")
_GAP = re.compile(r"<mask>", re.IGNORECASE)


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


def contamination(
    questions: Sequence[Question], texts: Iterable[str | LabelledText], n: int = 8, *, against: str = "texts"
) -> ContaminationReport:
    """Compare questions with texts, word by word.

    The questions' parts are the question, its options or answer; a cloze statement is compared with its gap filled.
    Texts are read once, one by one, so that a large collection need not fit into memory.

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
        raise InputError(f"N-grams of {n} words occur in almost any two texts: use {SHORTEST_RUN} or more.")
    if not questions:
        raise InputError("Contamination needs at least one question.")
    index = _Index(questions, n)
    counted = words = 0
    for counted, given in enumerate(texts, start=1):
        label, text = given if isinstance(given, LabelledText) else (f"text {counted}", given)
        words += index.read(label, _split(text))
    if not counted:
        raise InputError(f"There is no text to compare the questions with in {against}.")
    return ContaminationReport(against, n, counted, words, tuple(index.overlaps()))


def _split(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def question_parts(question: Question) -> dict[str, str]:
    """Texts of a question by the names of :attr:`SharedRun.part`: stem and options or answer; a filled statement."""
    if question.type.gap:
        return {"statement": _GAP.sub(lambda _: question.answer, question.question)}
    if question.options and not question.type.fixed:
        return {"question": question.question, **dict(zip(LETTERS, question.options, strict=False))}
    return {"question": question.question, "answer": question.answer}


class _Index:
    """Places of the first :data:`SHORTEST_RUN` words of runs in the parts of questions, and the runs found so far."""

    def __init__(self, questions: Sequence[Question], n: int) -> None:
        self._questions, self._n = questions, n
        self._parts = [
            (number, part, _split(text))
            for number, question in enumerate(questions)
            for part, text in question_parts(question).items()
        ]
        self._covered = [bytearray(len(words)) for _, _, words in self._parts]
        self._best: dict[int, SharedRun] = {}
        self._places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        for part, (_, _, words) in enumerate(self._parts):
            for place, window in enumerate(_windows(words)):
                self._places[window].append((part, place))

    def read(self, label: str, words: tuple[str, ...]) -> int:
        """Find the runs that a text shares with the questions; gives the number of words read."""
        find = self._places.get
        for at, window in enumerate(_windows(words)):
            # Of equal runs of a question, the one in its last part is kept.
            for part, place in reversed(find(window, ())):
                number, name, asked = self._parts[part]
                if at and place and words[at - 1] == asked[place - 1]:
                    continue  # a part of the run that began a word before
                length = SHORTEST_RUN
                most = min(len(words) - at, len(asked) - place)
                while length < most and words[at + length] == asked[place + length]:
                    length += 1
                if length >= self._n:
                    self._covered[part][place : place + length] = b"\1" * length
                best = self._best.get(number)
                if best is None or length > best.words:
                    self._best[number] = SharedRun(name, length, " ".join(words[at : at + length]), label)
        return len(words)

    def overlaps(self) -> Iterator[QuestionOverlap]:
        """What each question shares with all texts that were read."""
        for number, parts in groupby(zip(self._parts, self._covered, strict=True), key=lambda one: one[0][0]):
            covered = [marks for _, marks in parts]
            sizes = [len(marks) for marks in covered]
            share = sum(map(sum, covered)) / sum(sizes) if any(sizes) else 0.0
            yield QuestionOverlap(self._questions[number], max(sizes), self._best.get(number), share)


def _windows(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every :data:`SHORTEST_RUN` words that follow each other."""
    return zip(*(words[shift:] for shift in range(SHORTEST_RUN)), strict=False)


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
