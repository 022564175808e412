"""Contamination: test questions that appear, word for word, in texts that a model was trained on or was given.

Two texts share a run of words if the same words follow each other in both, whatever their case and punctuation. A
question is *contaminated* at n if one of its parts shares a run of n words or more with any text. Usual lengths are 8
(PaLM and others) and 13 words (GPT-3 paper, Brown et al. 2020, appendix C). Reading questions in full makes a model
look better than it is; sharing a definition of eight words with a textbook need not.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from climassay.errors import InputError
from climassay.evaluation.settings import Prepared
from climassay.questions import KINDS, LETTERS, LEVELS, Question
from climassay.reporting import Table, counted, percent, percent_interval
from climassay.statistics import proportion

MIN_SHARED_WORDS = 8
"""Minimum number of consecutive words that a contaminated question shares with a text."""
SHORTEST_RUN = 4
"""Number of words of the shortest run that is searched for; any two texts of a field share shorter runs."""
LONG_RUN = 13
"""Number of words of the longer of the two usual lengths."""
_WORD = re.compile(r"[^\W_]+")
_GAP = re.compile(r"<mask>", re.IGNORECASE)


class LabelledText(NamedTuple):
    """A text and its label in tables."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class SharedRun:
    """Longest run of words that a question shares with the texts."""

    part: str
    """Part of the question: ``question``, ``answer``, ``statement`` (cloze, gap filled) or an option's letter."""
    words: int
    """Number of words."""
    shared: str
    """Shared run of words, in lower case."""
    text: str
    """Label of the first text that contains the run."""


@dataclass(frozen=True, slots=True)
class QuestionOverlap:
    """Overlap of one question with the texts."""

    question: Question
    words: int
    """Number of words of the question's longest part, the maximum length of a shared run."""
    run: SharedRun | None
    """Longest shared run; None if no run of :data:`SHORTEST_RUN` words is shared."""
    covered: float
    """Share of the question's words, over all parts, in shared runs of n words or more."""

    @property
    def longest(self) -> int:
        """Number of words of the longest run; 0 below :data:`SHORTEST_RUN`."""
        return 0 if self.run is None else self.run.words


@dataclass(frozen=True, slots=True)
class ContaminationReport:
    """Overlap of a set of questions with texts."""

    against: str
    """Name of the texts in tables."""
    n: int
    """Minimum number of words of a run that contaminates a question."""
    texts: int
    """Number of texts."""
    words: int
    """Number of words in all texts."""
    overlaps: tuple[QuestionOverlap, ...]
    """Overlap of each question, in the order of the questions."""

    def contaminated(self, length: int | None = None) -> tuple[QuestionOverlap, ...]:
        """Return overlaps of questions that share a run of ``length`` words or more, by default n."""
        min_length = max(length or self.n, SHORTEST_RUN)
        return tuple(overlap for overlap in self.overlaps if overlap.longest >= min_length)

    def worst(self, count: int = 10) -> tuple[QuestionOverlap, ...]:
        """Return at most ``count`` contaminated questions, sorted by longest run, then by the share covered."""
        ranked = sorted(
            self.contaminated(), key=lambda overlap: (-overlap.longest, -overlap.covered, overlap.question.id)
        )
        return tuple(ranked[:count])


def contamination(
    questions: Sequence[Question],
    texts: Iterable[str | LabelledText],
    n: int = MIN_SHARED_WORDS,
    *,
    against: str = "texts",
) -> ContaminationReport:
    """Compare questions with texts, word by word.

    A cloze statement is compared with its gap filled, any other question by its stem and its options or answer. Texts
    are read once, one by one, so that a large collection need not fit into memory.

    Args:
        questions: Test questions.
        texts: Training or retrieval texts; a run does not cross from one text into the next.
        n: Minimum number of words of a run that contaminates a question, at least :data:`SHORTEST_RUN`.
        against: Name of the texts in tables.

    Raises:
        InputError: No questions, no texts, or n is too small.

    Example:
        >>> report = contamination(questions, (row.text for row in training_rows))
        >>> len(report.contaminated()), len(report.contaminated(13))
        (3, 0)
    """
    if n < SHORTEST_RUN:
        raise InputError(f"N-grams of {n} words occur in almost any two texts: use {SHORTEST_RUN} or more.")
    if not questions:
        raise InputError("Contamination needs at least one question.")
    index = _RunIndex(questions, n)
    n_texts = n_words = 0
    for n_texts, entry in enumerate(texts, start=1):
        label, text = entry if isinstance(entry, LabelledText) else (f"text {n_texts}", entry)
        n_words += index.read(label, _split_words(text))
    if not n_texts:
        raise InputError(f"There is no text to compare the questions with in {against}.")
    return ContaminationReport(against, n, n_texts, n_words, tuple(index.overlaps()))


def prompt_contamination(
    questions: Sequence[Question], prepared: Mapping[str, Prepared], learned: Sequence[str] | None = ()
) -> tuple[str, int | None]:
    """Describe the passages, examples and training texts a model saw, and count the questions they contaminate.

    In retrieval from the books of the questions some overlap is intended; elsewhere it is a leak.

    Args:
        questions: Questions of one task.
        prepared: Passages and examples of each prompt, by question id; each question is compared with its own only.
        learned: Texts that the adapter was trained on, compared with every question; None if they are unknown.

    Returns:
        Description and number of contaminated questions; None as the number if no text is known.

    Example:
        >>> prompt_contamination(questions, {}, ["The training's first text.", "Its second."])
        ('2 training texts', 0)
    """
    by_texts: dict[tuple[str, ...], list[Question]] = defaultdict(list)
    for question in questions:
        context = prepared.get(question.id, Prepared())
        by_texts[(*context.passages, *map(question_text, context.examples))].append(question)
    # Examples are the same for all questions, passages for few: each text is read once for all questions that had it.
    comparisons = [(group, texts) for texts, group in by_texts.items() if texts]
    if learned:
        comparisons.append(([*questions], (*learned,)))
    reports = [contamination(group, texts) for group, texts in comparisons]
    counts = {
        "example": len({example.id for context in prepared.values() for example in context.examples}),
        "passage": len({text for context in prepared.values() for text in context.passages}),
        "training text": len(learned or ()),
    }
    parts = [counted(number, noun) for noun, number in counts.items() if number]
    if learned is None:
        parts.append("training texts that are not known")
    contaminated = {overlap.question.id for report in reports for overlap in report.contaminated()}
    return ", ".join(parts), len(contaminated) if reports else None


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def question_parts(question: Question) -> dict[str, str]:
    """Return texts of a question by :attr:`SharedRun.part`: stem and options or answer, or the filled statement."""
    if question.type.has_gap:
        return {"statement": _GAP.sub(lambda _: question.answer, question.question)}
    if question.options and not question.type.fixed_options:
        return {"question": question.question, **dict(zip(LETTERS, question.options, strict=False))}
    return {"question": question.question, "answer": question.answer}


class _RunIndex:
    """Index of the first :data:`SHORTEST_RUN` words of runs in the questions' parts, with the longest runs found."""

    def __init__(self, questions: Sequence[Question], n: int) -> None:
        self._questions, self._n = questions, n
        self._parts = [
            (number, part, _split_words(text))
            for number, question in enumerate(questions)
            for part, text in question_parts(question).items()
        ]
        self._covered = [bytearray(len(words)) for _, _, words in self._parts]
        self._best: dict[int, SharedRun] = {}
        self._positions: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        for part, (_, _, words) in enumerate(self._parts):
            for start, window in enumerate(_windows(words)):
                self._positions[window].append((part, start))

    def read(self, label: str, words: tuple[str, ...]) -> int:
        """Find the runs that a text shares with the questions; return the number of words read."""
        positions_of = self._positions.get
        for at, window in enumerate(_windows(words)):
            # Of equally long runs of a question, the one in its last part wins.
            for part, start in reversed(positions_of(window, ())):
                number, name, part_words = self._parts[part]
                if at and start and words[at - 1] == part_words[start - 1]:
                    continue  # a part of the run that began a word before
                length = SHORTEST_RUN
                max_length = min(len(words) - at, len(part_words) - start)
                while length < max_length and words[at + length] == part_words[start + length]:
                    length += 1
                if length >= self._n:
                    self._covered[part][start : start + length] = b"\1" * length
                best = self._best.get(number)
                if best is None or length > best.words:
                    self._best[number] = SharedRun(name, length, " ".join(words[at : at + length]), label)
        return len(words)

    def overlaps(self) -> Iterator[QuestionOverlap]:
        """Yield the overlap of each question with all texts read."""
        for number, parts in groupby(zip(self._parts, self._covered, strict=True), key=lambda entry: entry[0][0]):
            covered = [flags for _, flags in parts]
            sizes = [len(flags) for flags in covered]
            share = sum(map(sum, covered)) / sum(sizes) if any(sizes) else 0.0
            yield QuestionOverlap(self._questions[number], max(sizes), self._best.get(number), share)


def _windows(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[shift:] for shift in range(SHORTEST_RUN)), strict=False)


def contamination_tables(report: ContaminationReport, worst: int = 10) -> list[Table]:
    """Return the shares of contaminated questions by task and level, and the worst questions if there are any."""
    lengths = tuple(dict.fromkeys((report.n, LONG_RUN))) if report.n < LONG_RUN else (report.n,)
    groups: dict[tuple[str, str], list[QuestionOverlap]] = {}
    levels = [None, *LEVELS]
    order = [(kind, level) for kind in KINDS for level in levels]
    for overlap in sorted(
        report.overlaps, key=lambda overlap: order.index((overlap.question.kind, overlap.question.level))
    ):
        groups.setdefault((overlap.question.kind, overlap.question.level or "-"), []).append(overlap)
    groups["all", "all"] = list(report.overlaps)
    rows = []
    for labels, overlaps in groups.items():
        cells = [*labels, str(len(overlaps))]
        for size in lengths:
            share = proportion(sum(overlap.longest >= size for overlap in overlaps), len(overlaps))
            count = round(share.value * share.n)
            cells.append(f"{count} ({percent(share.value)}; {percent_interval(share.interval)})")
        middle = float(np.median([overlap.longest for overlap in overlaps]))
        cells.append(f"{middle:g}" if middle >= SHORTEST_RUN else f"<{SHORTEST_RUN}")
        rows.append([*cells, str(sum(overlap.words < report.n for overlap in overlaps))])
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
            note=f"Texts: {report.texts:,}, of {report.words:,} words. A question counts if its question, "
            "an option or its answer (cloze: the statement with its gap filled) shares a run of that many words; in "
            f"brackets per cent and the 95% interval (Wilson). Too short: no part has {report.n} words. Runs below "
            f"{SHORTEST_RUN} words are not searched for.",
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
                        overlap.question.id,
                        overlap.question.level or "-",
                        overlap.run.part,
                        overlap.run.shared,
                        overlap.run.text,
                        str(overlap.run.words),
                        f"{100 * overlap.covered:.0f}",
                    ]
                    for overlap in result
                    if overlap.run is not None
                ],
                note=f"covered: share of the question's words that lie in shared runs of {report.n} words or more.",
                left=5,
            )
        )
    return tables


def question_text(question: Question) -> str:
    """Return all words of a question: stem and options or answer, or a statement with its gap filled."""
    return "\n".join(question_parts(question).values())
