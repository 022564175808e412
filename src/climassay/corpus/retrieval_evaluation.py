"""Evaluate search on questions with gold passages: recall, mean reciprocal rank and nDCG of each search mode."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.collection import Collection
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.search import MAX_K, SEARCH_MODES, SearchMode, check_mode
from climassay.errors import InputError
from climassay.io import listed_names, parse_rows, read_bytes
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

MIN_GOLD_SHARE = 0.8
"""Default share of the gold text's words that hits must contain, in order, to count as a match."""
MIN_SHARED_SHARE = 0.5
"""Share of the words of the shorter of gold text and passage that both must have for the passage to be relevant."""
LOCATION_RUN = 8
"""Number of consecutive words by which a gold text is located in a collection."""
MIN_RUN = 3
"""Minimum number of consecutive matching words; shorter matches are ignored as chance."""

_WORD = re.compile(r"\w+")


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text, casefolded and normalised (NFKC: ``CO₂`` equals ``CO2``), without punctuation."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


@dataclass(frozen=True, slots=True)
class GoldText:
    """Words of a text that search should find."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "GoldText":
        """Build a gold text from verbatim text."""
        return cls(words_of(text))

    def covered(self, words: Sequence[str]) -> frozenset[int]:
        """Return the indices of the gold text's words that another text contains in the same order.

        Only runs of at least :data:`MIN_RUN` words count, or of all words if the gold text has fewer.
        """
        shared = sum((Counter(self.words) & Counter(words)).values())
        if shared < min(MIN_RUN, len(self.words)):
            return frozenset()
        matcher = SequenceMatcher(None, words, self.words, autojunk=False)
        min_run = min(MIN_RUN, len(self.words))
        blocks = (block for block in matcher.get_matching_blocks() if block.size >= min_run)
        return frozenset(position for block in blocks for position in range(block.b, block.b + block.size))

    def rank_in(self, hits: Iterable[Hit], share: float = MIN_GOLD_SHARE) -> int | None:
        """Return the rank of the hit that completes the gold text; None if no hit does.

        Args:
            hits: Hits, best first.
            share: Share of the gold text's words that one hit, or neighbouring passages of a document, must contain.
        """
        needed = share * len(self.words)
        covered_by_passage: dict[tuple[str, int], frozenset[int]] = {}
        for hit in hits:
            passage = hit.passage
            covered = self.covered(words_of(passage.text))
            covered_by_passage[passage.document_id, passage.position] = covered
            before = covered_by_passage.get((passage.document_id, passage.position - 1), frozenset())
            after = covered_by_passage.get((passage.document_id, passage.position + 1), frozenset())
            if covered and len(before | covered | after) >= needed:
                return hit.rank
        return None


def locate(golds: Sequence[GoldText], texts: Iterable[Sequence[str]]) -> list[bool]:
    """Return whether each gold text, or a run of eight of its words, occurs in any of the texts.

    ``texts`` comes in batches, which are read once.
    """
    runs = []
    """The first, middle and last run of each, as words between spaces."""
    for words in (gold.words for gold in golds):
        starts = sorted({0, max(0, (len(words) - LOCATION_RUN) // 2), max(0, len(words) - LOCATION_RUN)})
        runs.append([f" {' '.join(words[start : start + LOCATION_RUN])} " for start in starts])
    located = [False] * len(golds)
    for batch in texts:
        if all(located):
            break
        joined = " \0 ".join(" " + " ".join(words_of(text)) + " " for text in batch)
        for number, candidates in enumerate(runs):
            located[number] = located[number] or any(run in joined for run in candidates)
    return located


def judge(
    golds: Sequence[GoldText], relevances: Sequence[float], passages: Iterable[Passage]
) -> list[dict[str, float]]:
    """Return the relevant passages of each gold text: relevance by passage id.

    A passage is relevant if it shares with the gold text, in order, at least :data:`MIN_SHARED_SHARE` of the words of
    the shorter of the two. Thus both halves of a split gold text are relevant, and so is each passage that quotes a
    sentence.
    """
    gold_indices: dict[tuple[str, ...], list[int]] = {}
    for number, gold in enumerate(golds):
        for run in _word_runs(gold.words):
            gold_indices.setdefault(run, []).append(number)
    judged: list[dict[str, float]] = [{} for _ in golds]
    for passage in passages:
        words = words_of(passage.text)
        if len(words) < MIN_PASSAGE_WORDS:
            continue
        shared: Counter[int] = Counter()
        for run in set(_word_runs(words)):
            shared.update(gold_indices.get(run, ()))
        for number, runs in shared.items():
            needed = MIN_SHARED_SHARE * min(len(words), len(golds[number].words))
            # Of a run of n words n - 2 are the beginning of a run of three, so of all of them a third at least.
            if runs >= needed / MIN_RUN and len(golds[number].covered(words)) >= needed:
                judged[number][passage.id] = relevances[number]
    return judged


def _word_runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + MIN_RUN]) for start in range(len(words) - MIN_RUN + 1))


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


QUESTION_FIELDS = ("question", "Question", "query")
PASSAGE_FIELDS = ("passage", "context", "Context", "text")
MIN_PASSAGE_WORDS = 5
"""Minimum number of words of a gold passage; shorter ones occur in too many passages to be identified."""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """Question with a verbatim passage that answers it or is relevant to it.

    Several with the same question and group form one question with several relevant passages.
    """

    question: str
    passage: str
    id: str = ""
    document: str | None = None
    """Location of the passage according to the file; not used by the search."""
    relevance: float = 1.0
    """Relevance grade of the passage, above 0."""
    group: str = ""
    """Group of dependent questions, for example a report; empty for none."""

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise InputError(f"The question {self.id or 'without id'} is empty.")
        if len(words_of(self.passage)) < MIN_PASSAGE_WORDS:
            raise InputError(
                f"The gold passage of question {self.id or self.question!r} has fewer than {MIN_PASSAGE_WORDS} words, "
                "too few to be recognised."
            )


@dataclass(frozen=True, slots=True)
class QuestionColumns:
    """Column names of a table of questions; None uses common names for question and passage."""

    question: str | None = None
    passage: str | None = None
    relevance: str | None = None
    """Relevance grades; rows whose grade is missing or not above 0 are skipped and counted."""
    group: str | None = None


def read_labelled(path: str | Path) -> list[LabelledQuestion]:
    """Read question-passage pairs; see :func:`read_judged`."""
    return read_judged(path)[0]


def read_judged(path: str | Path, columns: QuestionColumns = QuestionColumns()) -> tuple[list[LabelledQuestion], int]:
    """Read questions with gold passages, optionally with relevance grades and groups.

    Args:
        path: JSONL, a JSON array, or CSV with a header, optionally gzipped; a row has a question (``question``,
            ``Question`` or ``query``), its gold passage (``passage``, ``context``, ``Context`` or ``text``), and may
            have ``id`` and ``document``.
        columns: Column names, if they differ from these, and the columns of grades and groups.

    Returns:
        The pairs, and the number of skipped rows. Rows are skipped only if a column of grades is named: for a grade
        that is missing or not above 0, or for a passage that is too short.

    Raises:
        InputError: The file cannot be read, or a row lacks a value; the message names the row.
    """
    file = Path(path)
    questions = []
    left_out = 0
    question_names = (columns.question,) if columns.question else QUESTION_FIELDS
    passage_names = (columns.passage,) if columns.passage else PASSAGE_FIELDS
    for number, row in enumerate(parse_rows(file, read_bytes(file)), start=1):
        for field in fields(columns):
            name = getattr(columns, field.name)
            if name is not None and name not in row:
                raise InputError(f"{file.name}, row {number} has no column {name!r}: it has {listed_names(row)}.")
        question, passage = _first(row, question_names), _first(row, passage_names)
        relevance = 1.0
        if columns.relevance:
            relevance = _relevance(row[columns.relevance], f"{file.name}, row {number}")
            if relevance == 0 or len(words_of(passage)) < MIN_PASSAGE_WORDS:
                left_out += 1
                continue
        if not question or not passage:
            missing_names = passage_names if question else question_names
            raise InputError(
                f"{file.name}, row {number} has no {' or '.join(missing_names)}: every row needs a question and its "
                "passage."
            )
        name = str(row.get("id") or f"q{number:04d}")
        group = _first(row, (columns.group,)) if columns.group else ""
        if columns.group and not group:
            raise InputError(f"{file.name}, row {number} is empty in column {columns.group!r}.")
        document = _first(row, ("document",)) or None
        questions.append(LabelledQuestion(question, passage, name, document, relevance, group))
    if not questions:
        missing_rows = "no row with a relevant passage" if left_out else "no rows"
        raise InputError(f"{file.name} has {missing_rows}: retrieval is evaluated on question-passage pairs.")
    return questions, left_out


def _relevance(value: Any, location: str) -> float:
    """Parse a relevance grade; return 0 if it is missing or negative."""
    text = str("" if value is None else value).strip()
    if text in ("", "None"):
        return 0.0
    try:
        grade = float(text)
    except ValueError:
        grade = float("nan")
    if not np.isfinite(grade):
        raise InputError(f"{location} has the relevance {text!r}, which is not a number.")
    return max(grade, 0.0)


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((str(row[name]).strip() for name in names if row.get(name)), "")


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
    golds = [GoldText.of(question.passage) for question in questions]
    located = locate(golds, collection.texts())
    if not any(located):
        raise InputError(
            f"The collection {collection.name!r} has none of the {len(questions)} gold passages: "
            "add the documents they were taken from, or use another collection."
        )
    questions_by_text = _Questions.of(collection, questions, golds, within_group)
    rankings = [_Ranking.of(collection, questions_by_text, max(ks), mode, share) for mode in modes]
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
class _Questions:
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
    def of(
        cls, collection: Collection, pairs: Sequence[LabelledQuestion], golds: Sequence[GoldText], within_group: bool
    ) -> "_Questions":
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
class _Ranking:
    """Ranks and nDCG of one search mode."""

    mode: SearchMode
    ranks: tuple[int | None, ...]
    """Rank of each pair's gold passage."""
    ndcg: NDArray[np.float64]
    """nDCG of each question."""

    @classmethod
    def of(
        cls, collection: Collection, questions: _Questions, depth: int, mode: SearchMode, share: float
    ) -> "_Ranking":
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

    def by_question(self, questions: _Questions, statistic: Callable[[list[int | None]], float]) -> NDArray[np.float64]:
        return np.array(
            [
                statistic([self.ranks[pair_index] for pair_index in pair_indices])
                for pair_indices in questions.pair_indices
            ]
        )

    def recall(self, questions: _Questions, k: int) -> NDArray[np.float64]:
        """Return the share of each question's gold passages among the first k hits."""
        return self.by_question(questions, lambda ranks: float(np.mean([_is_within(rank, k) for rank in ranks])))


def _is_within(rank: int | None, k: int) -> bool:
    return rank is not None and rank <= k


def _mode_scores(ranking: _Ranking, questions: _Questions, ks: Sequence[int], seed: int) -> ModeScores:
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
    rankings: Sequence[_Ranking], best: _Ranking, questions: _Questions, k: int, seed: int
) -> tuple[ModeDifference, ...]:
    other_rankings = [ranking for ranking in rankings if ranking is not best]
    tested = []
    figures: list[Callable[[_Ranking], NDArray[np.float64]]] = [
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
