"""Evaluate search on questions with gold passages: recall, mean reciprocal rank and nDCG of each search mode."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.collection import Collection
from climassay.corpus.documents import Passage
from climassay.corpus.gold_texts import (
    MIN_GOLD_SHARE,
    GoldText,
    LabelledQuestion,
    find_relevant_passages,
    locate_gold_texts,
)
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

    The gain of a hit is its relevance, without exponentiation, divided by log2(1 + rank).

    Args:
        gains: Relevance of each hit, best first; 0 if not relevant.
        ideal: Relevance of all relevant passages, in any order.
        k: Number of ranks to evaluate.

    Returns:
        nDCG; 0 if no passage is relevant.

    References:
        Järvelin, K. and Kekäläinen, J. (2002), ACM Trans. Inf. Syst. 20, 422-446.
    """
    ideal_dcg = _compute_dcg(sorted(ideal, reverse=True)[:k])
    return _compute_dcg(gains[:k]) / ideal_dcg if ideal_dcg else 0.0


def _compute_dcg(gains: Sequence[float]) -> float:
    return float(sum(gain / np.log2(1 + rank) for rank, gain in enumerate(gains, start=1)))


DEFAULT_KS = (1, 3, 5, 10)
_QUESTIONS_PER_SEARCH = 256
"""Number of questions per search call; it limits the number of hits in memory."""


@dataclass(frozen=True, slots=True)
class RecallAt:
    """Recall at k: the fraction of a question's gold passages among the first k hits, averaged over questions."""

    k: int
    found: int
    """Number of gold passages, over all questions, among the first k hits."""
    n: int
    """Number of questions."""
    recall: float
    interval: Interval
    """95% interval: Wilson interval if every question has one gold passage and no group, otherwise bootstrap."""


@dataclass(frozen=True, slots=True)
class ModeScores:
    """Scores of one search mode."""

    mode: SearchMode
    recall: tuple[RecallAt, ...]
    mrr: Estimate
    """Mean reciprocal rank of the first gold passage (0 if it is not among the first ``depth`` hits), with a bootstrap
    interval over questions or groups.
    """
    ndcg: Estimate
    """Mean nDCG of the first ``depth`` hits, with a bootstrap interval over questions or groups; see :func:`ndcg`."""
    ranks: tuple[int | None, ...]
    """Rank of each gold passage, in input order."""


@dataclass(frozen=True, slots=True)
class ModeDifference:
    """Difference between a search mode and the mode with the highest nDCG (the best mode), on the same questions."""

    mode: SearchMode
    ndcg: Estimate
    """nDCG of the mode minus nDCG of the best mode."""
    ndcg_p: float
    """p-value of a sign-flip test over questions, or over groups if there are any; Holm-corrected over the modes."""
    recall: Estimate
    """Recall at ``depth`` of the mode minus recall of the best mode."""
    recall_p: float
    """p-value of the difference in recall, computed like ``ndcg_p``."""


@dataclass(frozen=True, slots=True)
class RetrievalReport(Result):
    """Recall, mean reciprocal rank and nDCG of the search modes on the same questions."""

    collection: str
    encoder: str
    passages: int
    n: int
    """Number of questions."""
    golds: int
    """Total number of gold passages."""
    groups: int | None
    """Number of groups over which intervals are computed; None if there are no groups."""
    within_group: bool
    """Whether each question was searched only in the report that its group names."""
    n_omitted_rows: int
    """Number of rows that were omitted because they have no relevant passage."""
    not_in_collection: tuple[str, ...]
    """Ids of question-passage pairs whose gold passage is not in the collection; they count as not found."""
    depth: int
    """Number of hits evaluated per question."""
    share: float
    """Minimum fraction of the gold passage's words that hits must contain."""
    modes: tuple[ModeScores, ...]
    best: SearchMode
    """Mode with the highest nDCG."""
    differences: tuple[ModeDifference, ...]
    """Difference of each other mode from the best mode."""

    def tables(self) -> tuple[Table, ...]:
        """Return one table with a column per mode: recall at each depth, mean reciprocal rank and nDCG."""
        recalls_by_depth = zip(*(scores.recall for scores in self.modes), strict=True)
        rows = [[f"recall@{recalls[0].k}", *map(_format_estimate, recalls)] for recalls in recalls_by_depth]
        rows.append([f"MRR@{self.depth}", *(_format_estimate(scores.mrr) for scores in self.modes)])
        rows.append([f"nDCG@{self.depth}", *(_format_estimate(scores.ndcg) for scores in self.modes)])
        difference_by_mode = {difference.mode: difference for difference in self.differences}
        if difference_by_mode:
            differences = [difference_by_mode.get(scores.mode) for scores in self.modes]
            for name, field in (("nDCG", "ndcg"), (f"recall@{self.depth}", "recall")):
                cells = [
                    "best"
                    if difference is None
                    else f"{_format_estimate(getattr(difference, field), '+')} "
                    f"p = {getattr(difference, f'{field}_p'):.2g}"
                    for difference in differences
                ]
                rows.append([f"{name} less {self.best}'s", *cells])
        n_missing = len(self.not_in_collection)
        other_method = "bootstrap" if self.groups is None else f"bootstrap over {self.groups} groups"
        recall_method = "Wilson" if self.groups is None and self.golds == self.n else other_method
        scope = ", each asked within its own report" if self.within_group else ""
        note = (
            f"n = {self.n} questions with {self.golds} gold passages over {self.passages:,} passages{scope}; 95% "
            f"intervals (recall: {recall_method}, others: {other_method}; differences: sign flips). nDCG takes "
            "grades as they are; p-values of differences: sign flips, Holm. Found means that hits hold "
            f"{self.share:.0%} of the gold passage's words in order."
        )
        if n_missing:
            note += f" {n_missing} gold passages are not in the collection and count as not found."
        if self.n_omitted_rows:
            note += f" {counted(self.n_omitted_rows, 'row')} of the files without a relevant passage left out."
        headings = ["", *(scores.mode for scores in self.modes)]
        return (Table.of(f"Retrieval from {self.collection}", headings, rows, note=note),)


def _format_estimate(estimate: Estimate | RecallAt, sign: str = "") -> str:
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
    n_omitted_rows: int = 0,
    seed: int = 0,
) -> RetrievalReport:
    """Search every question in every mode and score the ranks of its gold passages.

    The rank of a gold passage is the rank of the first hit that contains at least the fraction ``share`` of its words
    in order, alone or together with neighbouring passages among the hits ranked above. A gold passage that is divided
    between two stored passages is thus found at the rank of the second. For nDCG, the relevance of a hit is the maximum
    over the gold passages that it matches (:func:`find_relevant_passages`).

    Args:
        collection: Collection to search.
        questions: Question-passage pairs; pairs with the same question and group form one question.
        ks: Values of k for recall@k, at least one. The largest is also the depth of the mean reciprocal rank and of
            nDCG.
        modes: Search modes to compare.
        share: Minimum fraction of the gold passage's words that hits must contain, above 0 and at most 1.
        within_group: Search each question only in the report that its group names.
        n_omitted_rows: Number of rows omitted from the file because they have no relevant passage, for the report.
        seed: Seed of the bootstrap.

    Raises:
        InputError: There are no questions, or only one group; ``ks``, ``modes`` or ``share`` is invalid; or the
            collection contains none of the gold passages.
    """
    ks = _check_arguments(questions, ks, modes, share)
    golds = [GoldText.from_text(question.passage) for question in questions]
    location_flags = locate_gold_texts(golds, collection.texts())
    if not any(location_flags):
        raise InputError(
            f"The collection {collection.name!r} has none of the {len(questions)} gold passages: "
            "add the documents they were taken from, or use another collection."
        )
    pairs = _PairsByQuestion.collect(collection, questions, golds, within_group)
    rankings = [_ModeRanking.search(collection, pairs, max(ks), mode, share) for mode in modes]
    best_ranking = max(rankings, key=lambda ranking: float(ranking.ndcg.mean()))
    return RetrievalReport(
        collection=collection.name,
        encoder=collection.settings.encoder,
        passages=len(collection),
        n=len(pairs.pair_indices),
        golds=len(questions),
        groups=pairs.n_groups,
        within_group=within_group,
        n_omitted_rows=n_omitted_rows,
        not_in_collection=tuple(
            question.id for question, is_located in zip(questions, location_flags, strict=True) if not is_located
        ),
        depth=max(ks),
        share=share,
        modes=tuple(_score_mode(ranking, pairs, ks, seed) for ranking in rankings),
        best=best_ranking.mode,
        differences=_compare_with_best(rankings, best_ranking, pairs, max(ks), seed),
    )


@dataclass(frozen=True, slots=True)
class _PairsByQuestion:
    """Question-passage pairs grouped by question, with the relevant passages of the collection."""

    texts: tuple[str, ...]
    """Text of each question."""
    groups: tuple[str, ...]
    """Group of each question."""
    pair_indices: tuple[tuple[int, ...], ...]
    """Indices of the pairs of each question."""
    golds: Sequence[GoldText]
    relevances: tuple[Mapping[str, float], ...]
    """For each question, the relevance of its relevant passages by passage id."""
    within_group: bool

    @classmethod
    def collect(
        cls, collection: Collection, pairs: Sequence[LabelledQuestion], golds: Sequence[GoldText], within_group: bool
    ) -> "_PairsByQuestion":
        pair_indices: dict[tuple[str, str], list[int]] = {}
        for index, pair in enumerate(pairs):
            pair_indices.setdefault((pair.question, pair.group), []).append(index)
        if len({group for _, group in pair_indices}) == 1 and pairs[0].group:
            raise InputError(f"All questions belong to one group, {pairs[0].group!r}: evaluate them without groups.")
        if within_group and not all(group for _, group in pair_indices):
            raise InputError("Searching within groups needs a group for every question: name the column of groups.")
        reports: dict[str, str | None] = {}

        def passages() -> Iterator[Passage]:
            for passage in collection.iterate_passages():
                if within_group:
                    reports[passage.id] = passage.report
                yield passage

        grades_by_pair = find_relevant_passages(golds, [pair.relevance for pair in pairs], passages())
        relevances = []
        for (_, group), indices in pair_indices.items():
            grades: dict[str, float] = {}
            for passage_id, grade in (pair for index in indices for pair in grades_by_pair[index].items()):
                if not within_group or reports[passage_id] == group:
                    grades[passage_id] = max(grade, grades.get(passage_id, 0.0))
            relevances.append(grades)
        texts, groups = zip(*pair_indices, strict=True)
        return cls(texts, groups, tuple(map(tuple, pair_indices.values())), golds, tuple(relevances), within_group)

    @property
    def n_groups(self) -> int | None:
        return len(set(self.groups)) if any(self.groups) else None

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of values and the number of questions for each group, shape [groups, 2].

        If there are no groups, each question counts as a group.
        """
        group_indices = np.arange(len(values))
        if self.n_groups:
            group_indices = np.unique(self.groups, return_inverse=True)[1]
        return np.stack([np.bincount(group_indices, values), np.bincount(group_indices)], axis=1)

    def estimate(self, values: NDArray[np.float64], seed: int) -> Estimate:
        """Return the mean over questions with a bootstrap interval over groups."""
        value, sums = float(values.mean()), self.sums(values)
        interval = bootstrap_interval(sums, lambda rows: float(rows[:, 0].sum() / rows[:, 1].sum()), seed=seed)
        return Estimate(value, share_interval(interval, value, len(sums)), len(values))

    def blocks(self) -> Iterator[tuple[list[int], str | None]]:
        """Yield batches of question indices, each with the report to search (None for all reports)."""
        if self.within_group:
            for group in dict.fromkeys(self.groups):
                yield [index for index, question_group in enumerate(self.groups) if question_group == group], group
            return
        indices = list(range(len(self.texts)))
        for start in range(0, len(indices), _QUESTIONS_PER_SEARCH):
            yield indices[start : start + _QUESTIONS_PER_SEARCH], None


@dataclass(frozen=True, slots=True)
class _ModeRanking:
    """Ranks and nDCG of one search mode."""

    mode: SearchMode
    ranks: tuple[int | None, ...]
    """Rank of the gold passage of each pair; None if it was not found."""
    ndcg: NDArray[np.float64]
    """nDCG of each question."""

    @classmethod
    def search(
        cls, collection: Collection, questions: _PairsByQuestion, depth: int, mode: SearchMode, share: float
    ) -> "_ModeRanking":
        ranks: list[int | None] = [None] * len(questions.golds)
        gains = np.zeros(len(questions.texts))
        for indices, report in questions.blocks():
            texts = [questions.texts[index] for index in indices]
            hits_by_question = collection.search_many(texts, k=depth, mode=mode, report=report)
            for index, hits in zip(indices, hits_by_question, strict=True):
                relevances = questions.relevances[index]
                gains[index] = ndcg([relevances.get(hit.passage.id, 0.0) for hit in hits], relevances.values(), depth)
                for pair_index in questions.pair_indices[index]:
                    ranks[pair_index] = questions.golds[pair_index].find_rank(hits, share)
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
        """Return the fraction of each question's gold passages among the first k hits, shape [questions]."""
        return self.by_question(questions, lambda ranks: float(np.mean([_is_within(rank, k) for rank in ranks])))


def _is_within(rank: int | None, k: int) -> bool:
    return rank is not None and rank <= k


def _score_mode(ranking: _ModeRanking, questions: _PairsByQuestion, ks: Sequence[int], seed: int) -> ModeScores:
    reciprocal_ranks = ranking.by_question(
        questions, lambda ranks: max(0.0 if rank is None else 1.0 / rank for rank in ranks)
    )
    is_binary = questions.n_groups is None and len(ranking.ranks) == len(questions.texts)
    recalls = []
    for k in ks:
        values, n_found = ranking.recall(questions, k), sum(_is_within(rank, k) for rank in ranking.ranks)
        interval = wilson_interval(n_found, len(values)) if is_binary else questions.estimate(values, seed).interval
        recalls.append(RecallAt(k, n_found, len(values), float(values.mean()), interval))
    return ModeScores(
        ranking.mode,
        tuple(recalls),
        questions.estimate(reciprocal_ranks, seed),
        questions.estimate(ranking.ndcg, seed),
        ranking.ranks,
    )


def _compare_with_best(
    rankings: Sequence[_ModeRanking], best_ranking: _ModeRanking, questions: _PairsByQuestion, k: int, seed: int
) -> tuple[ModeDifference, ...]:
    other_rankings = [ranking for ranking in rankings if ranking is not best_ranking]
    results = []
    metrics: list[Callable[[_ModeRanking], NDArray[np.float64]]] = [
        lambda ranking: ranking.ndcg,
        lambda ranking: ranking.recall(questions, k),
    ]
    for metric in metrics:
        sums = [questions.sums(metric(ranking) - metric(best_ranking)).T for ranking in other_rankings]
        pairs = [(0 * total_difference, total_difference / n_questions) for total_difference, n_questions in sums]
        tests = paired_differences(pairs, weights=[n_questions for _, n_questions in sums], seed=seed)
        differences = [replace(test.difference, n=len(questions.texts)) for test in tests]
        results.append(list(zip(differences, holm([test.p_value for test in tests]), strict=True)))
    return tuple(
        ModeDifference(ranking.mode, *ndcg_result, *recall_result)
        for ranking, ndcg_result, recall_result in zip(other_rankings, *results, strict=True)
    )


def _check_arguments(
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
