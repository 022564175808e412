"""Finding a verbatim gold text again in passages that may cut it in two."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np

from climassay.corpus.collection import Collection
from climassay.corpus.documents import Hit
from climassay.corpus.search import LARGEST_K, SEARCH_MODES, SearchMode, check_mode
from climassay.errors import InputError
from climassay.questions.rows import parse_rows, read_bytes
from climassay.reporting.results import Result
from climassay.reporting.tables import Table
from climassay.statistics import Estimate, Interval, bootstrap_interval, wilson_interval

REQUIRED_SHARE = 0.8
"""Part of the gold text's words that hits must contain, in order, to count as having found it."""
SHORTEST_RUN = 3
"""Words in a row that must agree; a shorter agreement is chance."""

_WORD = re.compile(r"\w+")


def words_of(text: str) -> tuple[str, ...]:
    """Words of a text, without case, punctuation and differences of typography (``CO₂`` and ``CO2`` are one)."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


@dataclass(frozen=True, slots=True)
class GoldText:
    """The words of a text that is looked for."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "GoldText":
        """The gold text of a verbatim text."""
        return cls(words_of(text))

    def covered(self, words: Sequence[str]) -> frozenset[int]:
        """Positions of the gold text's words that stand in another text in the same order.

        Only runs of at least :data:`SHORTEST_RUN` words count (or of all words, where the gold text has fewer).
        """
        shared = sum((Counter(self.words) & Counter(words)).values())
        if shared < min(SHORTEST_RUN, len(self.words)):
            return frozenset()
        matcher = SequenceMatcher(None, words, self.words, autojunk=False)
        least = min(SHORTEST_RUN, len(self.words))
        blocks = (block for block in matcher.get_matching_blocks() if block.size >= least)
        return frozenset(position for block in blocks for position in range(block.b, block.b + block.size))

    def rank_in(self, hits: Iterable[Hit], share: float = REQUIRED_SHARE) -> int | None:
        """Rank of the hit that completes the gold text; None when no hit does.

        Hits come best first. One of them, or some that are neighbours in a document, must have so much of its words.
        """
        needed = share * len(self.words)
        found: dict[tuple[str, int], frozenset[int]] = {}
        for hit in hits:
            passage = hit.passage
            here = self.covered(words_of(passage.text))
            found[passage.document_id, passage.position] = here
            before = found.get((passage.document_id, passage.position - 1), frozenset())
            after = found.get((passage.document_id, passage.position + 1), frozenset())
            if here and len(before | here | after) >= needed:
                return hit.rank
        return None


def locate(golds: Sequence[GoldText], texts: Iterable[Sequence[str]]) -> list[bool]:
    """Whether each gold text stands, at least in a run of eight of its words, in any of many texts.

    Args:
        golds: What is looked for.
        texts: Batches of texts, read once; at most one batch is held.
    """
    runs = [_runs(gold.words) for gold in golds]
    located = [False] * len(golds)
    for batch in texts:
        if all(located):
            break
        joined = " \0 ".join(" " + " ".join(words_of(text)) + " " for text in batch)
        for number, candidates in enumerate(runs):
            located[number] = located[number] or any(run in joined for run in candidates)
    return located


def _runs(words: Sequence[str], length: int = 8) -> list[str]:
    """The first, middle and last run of a text, each as words between spaces."""
    if len(words) <= length:
        return [f" {' '.join(words)} "]
    starts = sorted({0, (len(words) - length) // 2, len(words) - length})
    return [f" {' '.join(words[start : start + length])} " for start in starts]


QUESTION_FIELDS = ("question", "Question", "query")
PASSAGE_FIELDS = ("passage", "context", "Context", "text")
SHORTEST_PASSAGE = 5
"""Words; fewer stand in too many places to say what was found."""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question and the verbatim text of its source that it rests on."""

    question: str
    passage: str
    id: str = ""
    document: str | None = None
    """Where the passage stands, as told by the file; for the reader, not for the search."""

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise InputError(f"The question {self.id or 'without id'} is empty.")
        if len(words_of(self.passage)) < SHORTEST_PASSAGE:
            raise InputError(
                f"The gold passage of question {self.id or self.question!r} has fewer than {SHORTEST_PASSAGE} words, "
                "too few to be recognised."
            )


def read_labelled(path: str | Path) -> list[LabelledQuestion]:
    """Read question-passage pairs.

    Args:
        path: JSONL, a JSON array, or CSV with a header, gzip included; a row has a question (``question``,
            ``Question`` or ``query``), the passage it rests on (``passage``, ``context``, ``Context`` or ``text``), and
            may have ``id`` and ``document``.

    Raises:
        InputError: The file cannot be read, or a row lacks one of the two; the message names the row.
    """
    file = Path(path)
    questions = []
    for number, row in enumerate(parse_rows(file, read_bytes(file)), start=1):
        question, passage = _first(row, QUESTION_FIELDS), _first(row, PASSAGE_FIELDS)
        if not question or not passage:
            lacking = QUESTION_FIELDS if not question else PASSAGE_FIELDS
            raise InputError(
                f"{file.name}, row {number} has no {' or '.join(lacking)}: every row needs a question and its passage."
            )
        name = str(row.get("id") or f"q{number:04d}")
        questions.append(LabelledQuestion(question, passage, name, _first(row, ("document",)) or None))
    if not questions:
        raise InputError(f"{file.name} has no rows: retrieval is evaluated on question-passage pairs.")
    return questions


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((str(row[name]).strip() for name in names if row.get(name)), "")


__all__ = [
    "LabelledQuestion",
    "ModeScores",
    "RecallAt",
    "RetrievalReport",
    "evaluate_retrieval",
    "read_labelled",
]

DEFAULT_KS = (1, 3, 5, 10)
_QUESTION_BLOCK = 256
"""Questions searched at once, so that the hits of a large set are not all in memory."""


@dataclass(frozen=True, slots=True)
class RecallAt:
    """Share of questions whose gold passage is among the first k hits."""

    k: int
    found: int
    n: int
    recall: float
    interval: Interval
    """Wilson, 95%."""


@dataclass(frozen=True, slots=True)
class ModeScores:
    """How one search mode did."""

    mode: SearchMode
    recall: tuple[RecallAt, ...]
    mrr: Estimate
    """Mean reciprocal rank, 0 for what is not among the first ``depth`` hits; bootstrap interval over questions."""
    ranks: tuple[int | None, ...]
    """Rank of each question's gold passage, in the order of the questions."""


@dataclass(frozen=True, slots=True)
class RetrievalReport(Result):
    """Recall and mean reciprocal rank of the search modes on the same questions."""

    collection: str
    encoder: str
    passages: int
    n: int
    """Questions; the n of every figure."""
    not_in_collection: tuple[str, ...]
    """Ids of questions whose gold passage is not in the collection; they count as not found."""
    depth: int
    """Hits looked at."""
    share: float
    """Part of the gold passage's words that hits must contain."""
    modes: tuple[ModeScores, ...]

    def tables(self) -> tuple[Table, ...]:
        """One column a search mode."""
        from climassay.corpus.presentation import evaluation_table

        return (evaluation_table(self),)


def evaluate_retrieval(
    collection: Collection,
    questions: Sequence[LabelledQuestion],
    *,
    ks: Sequence[int] = DEFAULT_KS,
    modes: Sequence[SearchMode] = SEARCH_MODES,
    share: float = REQUIRED_SHARE,
    seed: int = 0,
) -> RetrievalReport:
    """Search every question in every mode and see at which rank its gold passage has been found.

    A gold passage counts as found at the first rank at which one hit, or hits that are neighbours in a document,
    contain ``share`` of its words in order: so a passage that was cut in two needs both halves.

    Args:
        collection: Where to search.
        questions: Each with the verbatim text it rests on.
        ks: Depths of recall@k, at least one; the largest is also the depth of the mean reciprocal rank.
        modes: Search modes to compare.
        share: More than 0, at most 1.
        seed: Of the bootstrap.

    Raises:
        InputError: No questions, no sensible ``ks``, modes or share, an empty collection, or a collection that has
            none of the gold passages.
    """
    ks = _check(questions, ks, modes, share)
    golds = [GoldText.of(question.passage) for question in questions]
    located = locate(golds, collection.texts())
    if not any(located):
        raise InputError(
            f"The collection {collection.name!r} has none of the {len(questions)} gold passages: "
            "add the documents that they were taken from, or take another collection."
        )
    return RetrievalReport(
        collection=collection.name,
        encoder=collection.settings.encoder,
        passages=len(collection),
        n=len(questions),
        not_in_collection=tuple(question.id for question, there in zip(questions, located, strict=True) if not there),
        depth=max(ks),
        share=share,
        modes=tuple(_mode_scores(collection, questions, golds, ks, mode, share, seed) for mode in modes),
    )


def _mode_scores(
    collection: Collection,
    questions: Sequence[LabelledQuestion],
    golds: Sequence[GoldText],
    ks: Sequence[int],
    mode: SearchMode,
    share: float,
    seed: int,
) -> ModeScores:
    ranks = tuple(_ranks(collection, questions, golds, max(ks), mode, share))
    found = {k: sum(rank is not None and rank <= k for rank in ranks) for k in ks}
    n = len(ranks)
    reciprocal = np.array([0.0 if rank is None else 1.0 / rank for rank in ranks])
    interval = bootstrap_interval(reciprocal, lambda rows: float(rows.mean()), seed=seed)
    return ModeScores(
        mode=mode,
        recall=tuple(RecallAt(k, found[k], n, found[k] / n, wilson_interval(found[k], n)) for k in ks),
        mrr=Estimate(float(reciprocal.mean()), interval, n),
        ranks=ranks,
    )


def _ranks(
    collection: Collection,
    questions: Sequence[LabelledQuestion],
    golds: Sequence[GoldText],
    depth: int,
    mode: SearchMode,
    share: float,
) -> Iterator[int | None]:
    for start in range(0, len(questions), _QUESTION_BLOCK):
        block = [question.question for question in questions[start : start + _QUESTION_BLOCK]]
        for number, hits in enumerate(collection.search_many(block, k=depth, mode=mode), start=start):
            yield golds[number].rank_in(hits, share)


def _check(
    questions: Sequence[LabelledQuestion], ks: Sequence[int], modes: Sequence[str], share: float
) -> tuple[int, ...]:
    if not questions:
        raise InputError("There are no questions to evaluate retrieval with.")
    if not ks or min(ks) < 1 or max(ks) > LARGEST_K:
        raise InputError(
            f"Recall@k needs at least one k from 1 to {LARGEST_K}, not {', '.join(map(str, ks)) or 'none'}."
        )
    if not modes:
        raise InputError("There is no search mode to evaluate.")
    for mode in modes:
        check_mode(mode)
    if not 0 < share <= 1:
        raise InputError(
            f"The share of a gold passage that must be found lies above 0 and at most at 1, not at {share}."
        )
    return tuple(sorted(set(ks)))
