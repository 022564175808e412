"""Contamination: test questions that appear, word for word, in training texts or in prompts.

Two texts share a run of words if both contain the same consecutive words; case and punctuation are ignored. A question
is *contaminated* at n if one of its parts shares a run of at least n words with any text. Usual lengths are 8
(PaLM and others) and 13 words (GPT-3 paper, Brown et al. 2020, appendix C). Reading questions in full makes a model
look better than it is; sharing a definition of eight words with a textbook need not.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from climassay.corpus import Collection, read_all
from climassay.errors import InputError
from climassay.evaluation.settings import PromptContext
from climassay.questions import GAP, KINDS, LETTERS, LEVELS, Question, read_questions
from climassay.reporting import Table, counted, percent, percent_interval
from climassay.statistics import proportion
from climassay.workspace import Workspace

MIN_SHARED_WORDS = 8
"""Default minimum number of consecutive words that a contaminated question shares with a text."""
MIN_RUN = 4
"""Minimum length, in words, of a run: a sequence of consecutive words in both a question and a text. Almost any two
texts of a field share shorter runs."""
LONG_RUN = 13
"""Minimum length of a long run. Tables also give the number of questions that share a long run with a text."""
_WORD = re.compile(r"[^\W_]+")
_GAP = re.compile(r"<mask>", re.IGNORECASE)


class LabelledText(NamedTuple):
    """A text with the label that identifies it in tables."""

    label: str
    text: str


def read_texts(name: str, workspace: Workspace) -> Iterator[str | LabelledText]:
    """Return an iterator over the texts of a question file, another file, a folder or a collection.

    Raises:
        InputError: The file or collection does not exist, or nothing in it can be read.
    """
    path = Path(name)
    if not path.exists():
        try:
            collection = Collection.open(workspace, name)
        except InputError as error:
            raise InputError(f"{name} is neither a file or folder nor a collection: {error}") from None
        return (text for batch in collection.texts() for text in batch)
    questions = None if path.is_dir() else _read_question_texts(path)
    return _read_file_texts(path) if questions is None else iter(questions)


def _read_question_texts(path: Path) -> list[str | LabelledText] | None:
    """Return all texts of a question file, or None if the file is not a question file."""
    try:
        question_list = read_questions(path).questions
    except InputError:
        return None
    return [
        LabelledText(f"{path.name}, {item.id}", text)
        for item in question_list
        for text in (
            item.question.replace(GAP, item.answer),
            *(item.options or (item.answer,)),
            *((item.context,) if item.context else ()),
        )
    ]


def _read_file_texts(path: Path) -> Iterator[str | LabelledText]:
    n_texts = 0
    reasons = []
    for result in read_all([path]):
        reasons += [skipped_file.reason for skipped_file in result.skipped]
        for document in result.documents:
            for block in document.blocks:
                n_texts += 1
                yield LabelledText(document.title, block.text)
    if not n_texts:
        raise InputError(f"There is no text in {path}{': ' + reasons[0] if reasons else '.'}")


@dataclass(frozen=True, slots=True)
class SharedRun:
    """Longest run of consecutive words that a question shares with the texts."""

    part: str
    """Part of the question that contains the words in common: ``question``, ``answer``, ``statement`` (cloze, with its
    gap filled), or an option's letter."""
    words: int
    """Number of shared words."""
    shared: str
    """Words that the question and the text have in common, in lower case."""
    text: str
    """Label of the first text that contains the shared words."""


@dataclass(frozen=True, slots=True)
class QuestionOverlap:
    """Overlap of a question with the texts."""

    question: Question
    words: int
    """Length, in words, of the question's longest part; a run of shared words cannot be longer."""
    shared_run: SharedRun | None
    """Longest run of words that the question shares with a text; None if it is shorter than :data:`MIN_RUN` words."""
    covered: float
    """Proportion of the words in all parts of the question that lie in shared runs of at least
    :attr:`ContaminationReport.n` words."""

    @property
    def longest(self) -> int:
        """Number of words of the longest run that the question shares with a text; 0 if there is none."""
        return 0 if self.shared_run is None else self.shared_run.words


@dataclass(frozen=True, slots=True)
class ContaminationReport:
    """Overlap of a set of questions with texts."""

    against: str
    """Name of the texts in tables."""
    n: int
    """Minimum number of consecutive words that a contaminated question shares with a text."""
    texts: int
    """Number of texts compared."""
    words: int
    """Total number of words of the texts."""
    overlaps: tuple[QuestionOverlap, ...]
    """Overlap of each question, in the order of the questions."""

    def contaminated(self, length: int | None = None) -> tuple[QuestionOverlap, ...]:
        """Return the overlaps of questions that share a run of at least ``length`` words, by default :attr:`n`."""
        min_length = max(length or self.n, MIN_RUN)
        return tuple(overlap for overlap in self.overlaps if overlap.longest >= min_length)

    def worst(self, count: int = 10) -> tuple[QuestionOverlap, ...]:
        """Return at most ``count`` contaminated questions, those with the longest runs first."""
        sorted_overlaps = sorted(
            self.contaminated(), key=lambda overlap: (-overlap.longest, -overlap.covered, overlap.question.id)
        )
        return tuple(sorted_overlaps[:count])


def contamination(
    questions: Sequence[Question],
    texts: Iterable[str | LabelledText],
    n: int = MIN_SHARED_WORDS,
    *,
    against: str = "texts",
) -> ContaminationReport:
    """Find the questions that share runs of consecutive words with texts.

    For a cloze question, the words of the filled statement are compared; for other questions, those of the stem and of
    the options or the answer. The texts are iterated over once, so that a large collection need not fit into memory.

    Args:
        questions: Test questions.
        texts: Training or retrieval texts; a run never spans two texts.
        n: Minimum number of words of a shared run for a question to count as contaminated; at least :data:`MIN_RUN`.
        against: Name of the texts in tables.

    Raises:
        InputError: There are no questions or no texts, or n is too small.

    Example:
        >>> report = contamination(questions, (row.text for row in training_rows))
        >>> len(report.contaminated()), len(report.contaminated(13))
        (3, 0)
    """
    if n < MIN_RUN:
        raise InputError(f"N-grams of {n} words occur in almost any two texts: use {MIN_RUN} or more.")
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
    questions: Sequence[Question], contexts: Mapping[str, PromptContext], training_texts: Sequence[str] | None = ()
) -> tuple[str, int | None]:
    """Describe the texts that a model saw in training or in prompts, and count the questions that they contaminate.

    If passages are retrieved from the books of the questions, some overlap is intended; otherwise it is a leak.

    Args:
        questions: Questions of one task.
        contexts: Passages and examples in each question's prompt, by question id; they are compared only with that
            question.
        training_texts: Training texts of the adapter, which are compared with every question; None if they are
            unknown.

    Returns:
        Description of the texts, and number of contaminated questions; the number is None if no text is known.

    Example:
        >>> prompt_contamination(questions, {}, ["The training's first text.", "Its second."])
        ('2 training texts', 0)
    """
    questions_by_texts: dict[tuple[str, ...], list[Question]] = defaultdict(list)
    for question in questions:
        context = contexts.get(question.id, PromptContext())
        questions_by_texts[(*context.passages, *map(question_text, context.examples))].append(question)
    # Examples are the same for all questions, passages for few: each text is read once for all questions that had it.
    comparisons = [(group, texts) for texts, group in questions_by_texts.items() if texts]
    if training_texts:
        comparisons.append(([*questions], (*training_texts,)))
    reports = [contamination(group, texts) for group, texts in comparisons]
    counts = {
        "example": len({example.id for context in contexts.values() for example in context.examples}),
        "passage": len({text for context in contexts.values() for text in context.passages}),
        "training text": len(training_texts or ()),
    }
    descriptions = [counted(count, noun) for noun, count in counts.items() if count]
    if training_texts is None:
        descriptions.append("training texts that are not known")
    contaminated_ids = {overlap.question.id for report in reports for overlap in report.contaminated()}
    return ", ".join(descriptions), len(contaminated_ids) if reports else None


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def question_parts(question: Question) -> dict[str, str]:
    """Return the texts of a question's parts by name (:attr:`SharedRun.part`)."""
    if question.type.has_gap:
        return {"statement": _GAP.sub(lambda _: question.answer, question.question)}
    if question.options and not question.type.fixed_options:
        return {"question": question.question, **dict(zip(LETTERS, question.options, strict=False))}
    return {"question": question.question, "answer": question.answer}


class _RunIndex:
    """Index of all sequences of :data:`MIN_RUN` words in the questions' parts.

    It stores the longest run of words that each question shares with a text.
    """

    def __init__(self, questions: Sequence[Question], n: int) -> None:
        self._questions, self._n = questions, n
        self._parts = [
            (question_index, part, _split_words(text))
            for question_index, question in enumerate(questions)
            for part, text in question_parts(question).items()
        ]
        self._covered = [bytearray(len(words)) for _, _, words in self._parts]
        self._best: dict[int, SharedRun] = {}
        self._positions: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        for part, (_, _, words) in enumerate(self._parts):
            for start, window in enumerate(_iterate_windows(words)):
                self._positions[window].append((part, start))

    def read(self, label: str, words: tuple[str, ...]) -> int:
        """Find the runs that a text shares with the questions; return the number of the text's words."""
        find_positions = self._positions.get
        for position, window in enumerate(_iterate_windows(words)):
            # Of equally long runs of a question, the one in its last part wins.
            for part_index, start in reversed(find_positions(window, ())):
                question_index, name, part_words = self._parts[part_index]
                if position and start and words[position - 1] == part_words[start - 1]:
                    continue  # a part of the run that began a word before
                length = MIN_RUN
                max_length = min(len(words) - position, len(part_words) - start)
                while length < max_length and words[position + length] == part_words[start + length]:
                    length += 1
                if length >= self._n:
                    self._covered[part_index][start : start + length] = b"\1" * length
                longest_run = self._best.get(question_index)
                if longest_run is None or length > longest_run.words:
                    self._best[question_index] = SharedRun(
                        name, length, " ".join(words[position : position + length]), label
                    )
        return len(words)

    def overlaps(self) -> Iterator[QuestionOverlap]:
        """Yield the overlap of each question with all texts that were read."""
        for question_index, parts in groupby(
            zip(self._parts, self._covered, strict=True), key=lambda entry: entry[0][0]
        ):
            coverage_flags = [flags for _, flags in parts]
            sizes = [len(flags) for flags in coverage_flags]
            covered_proportion = sum(map(sum, coverage_flags)) / sum(sizes) if any(sizes) else 0.0
            yield QuestionOverlap(
                self._questions[question_index], max(sizes), self._best.get(question_index), covered_proportion
            )


def _iterate_windows(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[shift:] for shift in range(MIN_RUN)), strict=False)


def contamination_tables(report: ContaminationReport, worst: int = 10) -> list[Table]:
    """Return a table of contamination by task and level, and a table of the ``worst`` contaminated questions."""
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
            estimate = proportion(sum(overlap.longest >= size for overlap in overlaps), len(overlaps))
            count = round(estimate.value * estimate.n)
            cells.append(f"{count} ({percent(estimate.value)}; {percent_interval(estimate.interval)})")
        median = float(np.median([overlap.longest for overlap in overlaps]))
        cells.append(f"{median:g}" if median >= MIN_RUN else f"<{MIN_RUN}")
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
            f"{MIN_RUN} words are not searched for.",
            left_columns=2,
            strong=[len(rows) - 1],
        )
    ]
    worst_overlaps = report.worst(worst)
    if worst_overlaps:
        tables.append(
            Table.of(
                f"Questions that share the longest runs with {report.against}",
                ["question", "level", "part", "shared words", "text", "run", "covered\n(%)"],
                [
                    [
                        overlap.question.id,
                        overlap.question.level or "-",
                        overlap.shared_run.part,
                        overlap.shared_run.shared,
                        overlap.shared_run.text,
                        str(overlap.shared_run.words),
                        f"{100 * overlap.covered:.0f}",
                    ]
                    for overlap in worst_overlaps
                    if overlap.shared_run is not None
                ],
                note=f"covered: share of the question's words that lie in shared runs of {report.n} words or more.",
                left_columns=5,
            )
        )
    return tables


def question_text(question: Question) -> str:
    """Return the texts of all parts of a question (:func:`question_parts`), joined by line breaks."""
    return "\n".join(question_parts(question).values())
