"""How well a collection's search finds the passages that questions rest on, apart from any answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from climassay.corpus.collection import Collection
from climassay.corpus.gold_text import REQUIRED_SHARE, GoldText, locate
from climassay.corpus.labelled_questions import LabelledQuestion, read_labelled
from climassay.corpus.search import LARGEST_K, SEARCH_MODES, SearchMode, check_mode
from climassay.errors import InputError
from climassay.reporting.results import Result
from climassay.reporting.tables import Table
from climassay.statistics import Estimate, Interval, bootstrap_interval, wilson_interval

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
