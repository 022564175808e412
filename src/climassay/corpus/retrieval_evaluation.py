"""Evaluate search on questions with gold passages: recall, mean reciprocal rank and nDCG of each search mode."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.collection import Collection
from climassay.corpus.documents import Passage
from climassay.corpus.gold_texts import MIN_GOLD_SHARE, GoldText, LabelledQuestion, judge, locate
from climassay.corpus.search import MAX_K, SEARCH_MODES, SearchMode, check_mode
from climassay.errors import InputError
from climassay.reporting.results import Result
from climassay.reporting.tables import Table, counted
from climassay.statistics import (
    Estimate,
    Interval,
    bootstrap_interval,
    holm,
    paired_differences,
    share_interval,
    wilson_interval,
)


def ndcg(gains: Sequence[float], ideal: Iterable[float], k: int) -> float:
    """Return the normalised discounted cumulative gain of a ranking, from 0 to 1.

    The gain of a hit is its relevance itself, divided by log2(1 + rank).

    Args:
        gains: Relevance of each hit, best first; 0 if not relevant.
        ideal: Relevance of all relevant passages, in any order.
        k: Number of ranks that count.

    Returns:
        nDCG; 0 if no passage is relevant.

    References:
        Järvelin, K. and Kekäläinen, J. (2002), ACM Trans. Inf. Syst. 20, 422-446.
    """
    best = _discounted(sorted(ideal, reverse=True)[:k])
    return _discounted(gains[:k]) / best if best else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return float(sum(gain / np.log2(1 + rank) for rank, gain in enumerate(gains, start=1)))


DEFAULT_KS = (1, 3, 5, 10)
_QUESTION_BLOCK = 256
"""Number of questions per search call, which bounds the hits in memory."""


@dataclass(frozen=True, slots=True)
class RecallAt:
    """Mean over questions of the share of a question's gold passages among the first k hits."""

    k: int
    found: int
    """Number of gold passages of all questions among the first k hits."""
    n: int
    """Number of questions."""
    recall: float
    interval: Interval
    """95% interval: Wilson if every question has one gold passage and no group, otherwise bootstrap."""


@dataclass(frozen=True, slots=True)
class ModeScores:
    """Scores of one search mode."""

    mode: SearchMode
    recall: tuple[RecallAt, ...]
    mrr: Estimate
    """Mean reciprocal rank of the first gold passage, 0 if it is not among the first ``depth`` hits; bootstrap interval
    over questions or groups."""
    ndcg: Estimate
    """Mean nDCG of the first ``depth`` hits (:func:`ndcg`); bootstrap interval over questions or groups."""
    ranks: tuple[int | None, ...]
    """Rank of each gold passage, in input order."""


@dataclass(frozen=True, slots=True)
class ModeDifference:
    """Difference between a search mode and the mode with the highest nDCG, on the same questions."""

    mode: SearchMode
    ndcg: Estimate
    """nDCG minus that of the best mode."""
    ndcg_p: float
    """p-value by sign flips (of groups, if any), Holm-corrected over the modes."""
    recall: Estimate
    """Recall at ``depth`` minus that of the best mode."""
    recall_p: float
    """p-value, computed as ``ndcg_p``."""


@dataclass(frozen=True, slots=True)
class RetrievalReport(Result):
    """Recall, mean reciprocal rank and nDCG of the search modes on the same questions."""

    collection: str
    encoder: str
    passages: int
    n: int
    """Number of questions."""
    golds: int
    """Number of gold passages of all questions."""
    groups: int | None
    """Number of groups that intervals are computed over; None without groups."""
    within_group: bool
    """True if each question was searched only in the report named by its group."""
    left_out: int
    """Number of rows without a relevant passage."""
    not_in_collection: tuple[str, ...]
    """Ids of pairs whose gold passage is not in the collection; they count as not found."""
    depth: int
    """Number of hits evaluated per question."""
    share: float
    """Share of the gold passage's words that hits must contain."""
    modes: tuple[ModeScores, ...]
    best: SearchMode
    """Mode with the highest nDCG."""
    differences: tuple[ModeDifference, ...]
    """Differences of the other modes from the best one."""

    def tables(self) -> tuple[Table, ...]:
        """Return one table with a column per mode: recall at each depth, mean reciprocal rank and nDCG."""
        by_depth = zip(*(scores.recall for scores in self.modes), strict=True)
        rows = [[f"recall@{recalls[0].k}", *map(_share, recalls)] for recalls in by_depth]
        rows.append([f"MRR@{self.depth}", *(_share(scores.mrr) for scores in self.modes)])
        rows.append([f"nDCG@{self.depth}", *(_share(scores.ndcg) for scores in self.modes)])
        by_mode = {difference.mode: difference for difference in self.differences}
        if by_mode:
            compared = [by_mode.get(scores.mode) for scores in self.modes]
            for name, of in (("nDCG", "ndcg"), (f"recall@{self.depth}", "recall")):
                cells = [
                    "best"
                    if difference is None
                    else f"{_share(getattr(difference, of), '+')} p = {getattr(difference, f'{of}_p'):.2g}"
                    for difference in compared
                ]
                rows.append([f"{name} less {self.best}'s", *cells])
        missing = len(self.not_in_collection)
        bootstrap = "bootstrap" if self.groups is None else f"bootstrap over {self.groups} groups"
        recall = "Wilson" if self.groups is None and self.golds == self.n else bootstrap
        scope = ", each asked within its own report" if self.within_group else ""
        note = (
            f"n = {self.n} questions with {self.golds} gold passages over {self.passages:,} passages{scope}; 95% "
            f"intervals (recall: {recall}, others: {bootstrap}; differences: sign flips). nDCG takes "
            "grades as they are; p-values of differences: sign flips, Holm. Found means that hits hold "
            f"{self.share:.0%} of the gold passage's words in order."
        )
        if missing:
            note += f" {missing} gold passages are not in the collection and count as not found."
        if self.left_out:
            note += f" {counted(self.left_out, 'row')} of the files without a relevant passage left out."
        headings = ["", *(scores.mode for scores in self.modes)]
        return (Table.of(f"Retrieval from {self.collection}", headings, rows, note=note),)


def _share(estimate: Estimate | RecallAt, sign: str = "") -> str:
    value = estimate.recall if isinstance(estimate, RecallAt) else estimate.value
    return f"{value:{sign}.3f} [{estimate.interval.low:{sign}.3f}, {estimate.interval.high:{sign}.3f}]"


def evaluate_retrieval(
    collection: Collection,
    questions: Sequence[LabelledQuestion],
    *,
    ks: Sequence[int] = DEFAULT_KS,
    modes: Sequence[SearchMode] = SEARCH_MODES,
    share: float = MIN_GOLD_SHARE,
    within_group: bool = False,
    left_out: int = 0,
    seed: int = 0,
) -> RetrievalReport:
    """Search every question in every mode and score the ranks of its gold passages.

    The rank of a gold passage is the first at which one hit, or hits that are neighbours in a document, contain
    ``share`` of its words in order; a gold passage split over two passages needs both. For nDCG, the relevance of a hit
    is the maximum over the gold passages that it matches (:func:`judge`).

    Args:
        collection: Collection to search.
        questions: Pairs of question and gold passage; pairs with the same question and group form one question.
        ks: Depths of recall@k, at least one; the largest is also the depth of the mean reciprocal rank and of nDCG.
        modes: Search modes to compare.
        share: Required share of the gold passage's words, above 0 and at most 1.
        within_group: Search each question only in the report named by its group.
        left_out: Number of rows without a relevant passage, for the report.
        seed: Seed of the bootstrap.

    Raises:
        InputError: There are no questions, ``ks``, ``modes`` or ``share`` are invalid, there is a single group, or the
            collection contains none of the gold passages.
    """
    ks = _check(questions, ks, modes, share)
    golds = [GoldText.from_text(question.passage) for question in questions]
    located = locate(golds, collection.texts())
    if not any(located):
        raise InputError(
            f"The collection {collection.name!r} has none of the {len(questions)} gold passages: "
            "add the documents they were taken from, or use another collection."
        )
    questions_by_text = _PairsByQuestion.collect(collection, questions, golds, within_group)
    rankings = [_ModeRanking.search(collection, questions_by_text, max(ks), mode, share) for mode in modes]
    best = max(rankings, key=lambda ranking: float(ranking.ndcg.mean()))
    return RetrievalReport(
        collection=collection.name,
        encoder=collection.settings.encoder,
        passages=len(collection),
        n=len(questions_by_text.pair_indices),
        golds=len(questions),
        groups=questions_by_text.number_of_groups,
        within_group=within_group,
        left_out=left_out,
        not_in_collection=tuple(
            question.id for question, is_located in zip(questions, located, strict=True) if not is_located
        ),
        depth=max(ks),
        share=share,
        modes=tuple(_mode_scores(ranking, questions_by_text, ks, seed) for ranking in rankings),
        best=best.mode,
        differences=_differences(rankings, best, questions_by_text, max(ks), seed),
    )


@dataclass(frozen=True, slots=True)
class _PairsByQuestion:
    """Pairs grouped by question, with the relevant passages of the collection."""

    texts: tuple[str, ...]
    """Text of each question."""
    groups: tuple[str, ...]
    """Group of each question."""
    pair_indices: tuple[tuple[int, ...], ...]
    """Indices of the pairs of each question."""
    golds: Sequence[GoldText]
    judged: tuple[Mapping[str, float], ...]
    """Relevance by passage id, for each question."""
    within_group: bool

    @classmethod
    def collect(
        cls, collection: Collection, pairs: Sequence[LabelledQuestion], golds: Sequence[GoldText], within_group: bool
    ) -> "_PairsByQuestion":
        pair_indices: dict[tuple[str, str], list[int]] = {}
        for number, pair in enumerate(pairs):
            pair_indices.setdefault((pair.question, pair.group), []).append(number)
        if len({group for _, group in pair_indices}) == 1 and pairs[0].group:
            raise InputError(f"All questions belong to one group, {pairs[0].group!r}: evaluate them without groups.")
        if within_group and not all(group for _, group in pair_indices):
            raise InputError("Searching within groups needs a group for every question: name the column of groups.")
        reports: dict[str, str | None] = {}

        def passages() -> Iterator[Passage]:
            for passage in collection.each_passage():
                if within_group:
                    reports[passage.id] = passage.report
                yield passage

        by_pair = judge(golds, [pair.relevance for pair in pairs], passages())
        judged = []
        for (_, group), numbers in pair_indices.items():
            grades: dict[str, float] = {}
            for item, grade in (pair for number in numbers for pair in by_pair[number].items()):
                if not within_group or reports[item] == group:
                    grades[item] = max(grade, grades.get(item, 0.0))
            judged.append(grades)
        texts, groups = zip(*pair_indices, strict=True)
        return cls(texts, groups, tuple(map(tuple, pair_indices.values())), golds, tuple(judged), within_group)

    @property
    def number_of_groups(self) -> int | None:
        return len(set(self.groups)) if any(self.groups) else None

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum of values and number of questions, shape [groups, 2]; without groups, of each question."""
        group_indices = np.arange(len(values))
        if self.number_of_groups:
            group_indices = np.unique(self.groups, return_inverse=True)[1]
        return np.stack([np.bincount(group_indices, values), np.bincount(group_indices)], axis=1)

    def estimate(self, values: NDArray[np.float64], seed: int) -> Estimate:
        """Return the mean over questions with its interval over groups."""
        value, sums = float(values.mean()), self.sums(values)
        interval = bootstrap_interval(sums, lambda rows: float(rows[:, 0].sum() / rows[:, 1].sum()), seed=seed)
        return Estimate(value, share_interval(interval, value, len(sums)), len(values))

    def blocks(self) -> Iterator[tuple[list[int], str | None]]:
        """Yield indices of questions to search together, with the report to search in."""
        if self.within_group:
            for group in dict.fromkeys(self.groups):
                yield [number for number, other in enumerate(self.groups) if other == group], group
            return
        numbers = list(range(len(self.texts)))
        for start in range(0, len(numbers), _QUESTION_BLOCK):
            yield numbers[start : start + _QUESTION_BLOCK], None


@dataclass(frozen=True, slots=True)
class _ModeRanking:
    """Ranks and nDCG of one search mode."""

    mode: SearchMode
    ranks: tuple[int | None, ...]
    """Rank of each pair's gold passage."""
    ndcg: NDArray[np.float64]
    """nDCG of each question."""

    @classmethod
    def search(
        cls, collection: Collection, questions: _PairsByQuestion, depth: int, mode: SearchMode, share: float
    ) -> "_ModeRanking":
        ranks: list[int | None] = [None] * len(questions.golds)
        gains = np.zeros(len(questions.texts))
        for numbers, report in questions.blocks():
            texts = [questions.texts[number] for number in numbers]
            result = collection.search_many(texts, k=depth, mode=mode, report=report)
            for number, hits in zip(numbers, result, strict=True):
                judged = questions.judged[number]
                gains[number] = ndcg([judged.get(hit.passage.id, 0.0) for hit in hits], judged.values(), depth)
                for pair_index in questions.pair_indices[number]:
                    ranks[pair_index] = questions.golds[pair_index].rank_in(hits, share)
        return cls(mode, tuple(ranks), gains)

    def by_question(
        self, questions: _PairsByQuestion, statistic: Callable[[list[int | None]], float]
    ) -> NDArray[np.float64]:
        return np.array(
            [
                statistic([self.ranks[pair_index] for pair_index in pair_indices])
                for pair_indices in questions.pair_indices
            ]
        )

    def recall(self, questions: _PairsByQuestion, k: int) -> NDArray[np.float64]:
        """Return the share of each question's gold passages among the first k hits."""
        return self.by_question(questions, lambda ranks: float(np.mean([_is_within(rank, k) for rank in ranks])))


def _is_within(rank: int | None, k: int) -> bool:
    return rank is not None and rank <= k


def _mode_scores(ranking: _ModeRanking, questions: _PairsByQuestion, ks: Sequence[int], seed: int) -> ModeScores:
    reciprocal = ranking.by_question(
        questions, lambda ranks: max(0.0 if rank is None else 1.0 / rank for rank in ranks)
    )
    is_binary = questions.number_of_groups is None and len(ranking.ranks) == len(questions.texts)
    recalls = []
    for k in ks:
        values, result = ranking.recall(questions, k), sum(_is_within(rank, k) for rank in ranking.ranks)
        interval = wilson_interval(result, len(values)) if is_binary else questions.estimate(values, seed).interval
        recalls.append(RecallAt(k, result, len(values), float(values.mean()), interval))
    return ModeScores(
        ranking.mode,
        tuple(recalls),
        questions.estimate(reciprocal, seed),
        questions.estimate(ranking.ndcg, seed),
        ranking.ranks,
    )


def _differences(
    rankings: Sequence[_ModeRanking], best: _ModeRanking, questions: _PairsByQuestion, k: int, seed: int
) -> tuple[ModeDifference, ...]:
    other_rankings = [ranking for ranking in rankings if ranking is not best]
    tested = []
    figures: list[Callable[[_ModeRanking], NDArray[np.float64]]] = [
        lambda ranking: ranking.ndcg,
        lambda ranking: ranking.recall(questions, k),
    ]
    for values in figures:
        sums = [questions.sums(values(ranking) - values(best)).T for ranking in other_rankings]
        pairs = [(0 * total, total / size) for total, size in sums]
        tests = paired_differences(pairs, weights=[size for _, size in sums], seed=seed)
        gaps = [replace(test.difference, n=len(questions.texts)) for test in tests]
        tested.append(list(zip(gaps, holm([test.p_value for test in tests]), strict=True)))
    return tuple(
        ModeDifference(ranking.mode, *on_ndcg, *on_recall)
        for ranking, on_ndcg, on_recall in zip(other_rankings, *tested, strict=True)
    )


def _check(
    questions: Sequence[LabelledQuestion], ks: Sequence[int], modes: Sequence[str], share: float
) -> tuple[int, ...]:
    if not questions:
        raise InputError("There are no questions to evaluate retrieval with.")
    if not ks or min(ks) < 1 or max(ks) > MAX_K:
        raise InputError(f"Recall@k needs at least one k from 1 to {MAX_K}, not {', '.join(map(str, ks)) or 'none'}.")
    if not modes:
        raise InputError("Name at least one search mode to evaluate.")
    for mode in modes:
        check_mode(mode)
    if not 0 < share <= 1:
        raise InputError(f"The share of a gold passage that must be found is above 0 and at most 1, not {share}.")
    return tuple(sorted(set(ks)))
