"""How well search finds what people marked: gold texts, found again in passages that may cut them, and their grades."""

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
from climassay.corpus.search import LARGEST_K, SEARCH_MODES, SearchMode, check_mode
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

REQUIRED_SHARE = 0.8
"""Part of the gold text's words that hits must contain, in order, to count as having found it."""
HELD_SHARE = 0.5
"""Part of the words of a gold text or of a passage, whichever is shorter, that both share where one holds the other."""
LOCATED_RUN = 8
"""Words in a row by which a gold text is located in a collection."""
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
        """Positions of the gold text's words that appear in another text in the same order.

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
        results: dict[tuple[str, int], frozenset[int]] = {}
        for hit in hits:
            passage = hit.passage
            here = self.covered(words_of(passage.text))
            results[passage.document_id, passage.position] = here
            before = results.get((passage.document_id, passage.position - 1), frozenset())
            after = results.get((passage.document_id, passage.position + 1), frozenset())
            if here and len(before | here | after) >= needed:
                return hit.rank
        return None


def locate(golds: Sequence[GoldText], texts: Iterable[Sequence[str]]) -> list[bool]:
    """Whether each gold text stands, at least in a run of eight of its words, in any of many texts.

    Texts come in batches, which are read once; at most one is held.
    """
    runs = []
    """The first, middle and last run of each, as words between spaces."""
    for words in (gold.words for gold in golds):
        starts = sorted({0, max(0, (len(words) - LOCATED_RUN) // 2), max(0, len(words) - LOCATED_RUN)})
        runs.append([f" {' '.join(words[start : start + LOCATED_RUN])} " for start in starts])
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
    """The passages that hold each gold text, or that lie in it, by id with its relevance.

    Both must share, in order, at least :data:`HELD_SHARE` of the words of the shorter one: so both halves of a text
    that was cut are relevant, and a sentence makes every passage relevant that quotes it.
    """
    places: dict[tuple[str, ...], list[int]] = {}
    for number, gold in enumerate(golds):
        for run in _threes(gold.words):
            places.setdefault(run, []).append(number)
    judged: list[dict[str, float]] = [{} for _ in golds]
    for passage in passages:
        words = words_of(passage.text)
        if len(words) < SHORTEST_PASSAGE:
            continue
        shared: Counter[int] = Counter()
        for run in set(_threes(words)):
            shared.update(places.get(run, ()))
        for number, runs in shared.items():
            needed = HELD_SHARE * min(len(words), len(golds[number].words))
            # Of a run of n words n - 2 are the beginning of a run of three, so of all of them a third at least.
            if runs >= needed / SHORTEST_RUN and len(golds[number].covered(words)) >= needed:
                judged[number][passage.id] = relevances[number]
    return judged


def _threes(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + SHORTEST_RUN]) for start in range(len(words) - SHORTEST_RUN + 1))


def ndcg(gains: Sequence[float], ideal: Iterable[float], k: int) -> float:
    """Normalised discounted cumulative gain of a ranking, from 0 to 1.

    The gain of a hit is its relevance itself, divided by log2(1 + rank).

    Args:
        gains: Relevance of the hits, best first; 0 for one that is not relevant.
        ideal: Relevance of all relevant passages, in any order.
        k: Ranks that count.

    Returns:
        0 where nothing is relevant.

    References:
        Järvelin, K. and Kekäläinen, J. (2002), ACM Trans. Inf. Syst. 20, 422-446.
    """
    best = _discounted(sorted(ideal, reverse=True)[:k])
    return _discounted(gains[:k]) / best if best else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return float(sum(gain / np.log2(1 + rank) for rank, gain in enumerate(gains, start=1)))


QUESTION_FIELDS = ("question", "Question", "query")
PASSAGE_FIELDS = ("passage", "context", "Context", "text")
SHORTEST_PASSAGE = 5
"""Words; fewer appear in too many places to say what was found."""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question and a verbatim text that it rests on, or that somebody found relevant to it.

    Several with the same question and group are one question with several relevant texts.
    """

    question: str
    passage: str
    id: str = ""
    document: str | None = None
    """Where the passage stands, as the file gives it; for the reader, not for the search."""
    relevance: float = 1.0
    """Grade of the passage, more than 0."""
    group: str = ""
    """What questions share that are not independent, for example a report; empty for none."""

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise InputError(f"The question {self.id or 'without id'} is empty.")
        if len(words_of(self.passage)) < SHORTEST_PASSAGE:
            raise InputError(
                f"The gold passage of question {self.id or self.question!r} has fewer than {SHORTEST_PASSAGE} words, "
                "too few to be recognised."
            )


@dataclass(frozen=True, slots=True)
class QuestionColumns:
    """Columns of a table of questions: None means the usual names of the first two, and none for the others."""

    question: str | None = None
    passage: str | None = None
    relevance: str | None = None
    """Grades; rows whose grade is missing, 0 or less are left out."""
    group: str | None = None


def read_labelled(path: str | Path) -> list[LabelledQuestion]:
    """Read question-passage pairs; see :func:`read_judged`."""
    return read_judged(path)[0]


def read_judged(path: str | Path, columns: QuestionColumns = QuestionColumns()) -> tuple[list[LabelledQuestion], int]:
    """Read questions with the passages they rest on, or with passages of several grades.

    Args:
        path: JSONL, a JSON array, or CSV with a header, gzip included; a row has a question (``question``,
            ``Question`` or ``query``), the passage it rests on (``passage``, ``context``, ``Context`` or ``text``), and
            may have ``id`` and ``document``.
        columns: Where the table has other names, or grades and groups.

    Returns:
        The pairs, and the number of rows that were left out, which only happens where a column of grades is named: for
        a grade that is missing or not above 0, or for a passage too short to be recognised.

    Raises:
        InputError: The file cannot be read, or a row lacks what it needs; the message names the row.
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
            if relevance == 0 or len(words_of(passage)) < SHORTEST_PASSAGE:
                left_out += 1
                continue
        if not question or not passage:
            lacking = passage_names if question else question_names
            raise InputError(
                f"{file.name}, row {number} has no {' or '.join(lacking)}: every row needs a question and its passage."
            )
        name = str(row.get("id") or f"q{number:04d}")
        group = _first(row, (columns.group,)) if columns.group else ""
        if columns.group and not group:
            raise InputError(f"{file.name}, row {number} is empty in column {columns.group!r}.")
        document = _first(row, ("document",)) or None
        questions.append(LabelledQuestion(question, passage, name, document, relevance, group))
    if not questions:
        lacking_rows = "no row with a relevant passage" if left_out else "no rows"
        raise InputError(f"{file.name} has {lacking_rows}: retrieval is evaluated on question-passage pairs.")
    return questions, left_out


def _relevance(value: Any, place: str) -> float:
    """A grade; 0 for none."""
    text = str("" if value is None else value).strip()
    if text in ("", "None"):
        return 0.0
    try:
        grade = float(text)
    except ValueError:
        grade = float("nan")
    if not np.isfinite(grade):
        raise InputError(f"{place} has the relevance {text!r}, which is not a number.")
    return max(grade, 0.0)


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((str(row[name]).strip() for name in names if row.get(name)), "")


DEFAULT_KS = (1, 3, 5, 10)
_QUESTION_BLOCK = 256
"""Questions searched at once, so that the hits of a large set are not all in memory."""


@dataclass(frozen=True, slots=True)
class RecallAt:
    """Share of a question's gold passages that are found among the first k hits, mean over questions."""

    k: int
    found: int
    """Gold passages found, of all questions."""
    n: int
    """Questions."""
    recall: float
    interval: Interval
    """95%: Wilson where every question has one gold passage and no group, else bootstrap."""


@dataclass(frozen=True, slots=True)
class ModeScores:
    """How one search mode did."""

    mode: SearchMode
    recall: tuple[RecallAt, ...]
    mrr: Estimate
    """Mean reciprocal rank of the first gold passage, 0 for what is not among the first ``depth`` hits; bootstrap
    interval over questions, or over groups of them."""
    ndcg: Estimate
    """Mean nDCG of the first ``depth`` hits over questions, see :func:`ndcg`; interval as above."""
    ranks: tuple[int | None, ...]
    """Rank of each gold passage, in the order of the pairs given."""


@dataclass(frozen=True, slots=True)
class ModeDifference:
    """A search mode beside the one of the highest nDCG, on the same questions."""

    mode: SearchMode
    ndcg: Estimate
    """Its nDCG minus that of the best."""
    ndcg_p: float
    """Sign flips (of groups, where there are any), Holm over the modes."""
    recall: Estimate
    """Its recall at ``depth`` minus that of the best."""
    recall_p: float


@dataclass(frozen=True, slots=True)
class RetrievalReport(Result):
    """Recall, mean reciprocal rank and nDCG of the search modes on the same questions."""

    collection: str
    encoder: str
    passages: int
    n: int
    """Questions; the n of every figure."""
    golds: int
    """Gold passages of all questions."""
    groups: int | None
    """Groups of questions that intervals are drawn over; None where each question stands by itself."""
    within_group: bool
    """Whether each question was asked only among the passages of the report that its group names."""
    left_out: int
    """Rows of the files that hold no relevant passage."""
    not_in_collection: tuple[str, ...]
    """Ids of pairs whose gold passage is not in the collection; they count as not found."""
    depth: int
    """Hits looked at."""
    share: float
    """Part of the gold passage's words that hits must contain."""
    modes: tuple[ModeScores, ...]
    best: SearchMode
    """The mode with the highest nDCG."""
    differences: tuple[ModeDifference, ...]
    """The other modes beside it."""

    def tables(self) -> tuple[Table, ...]:
        """One column per search mode; recall at each depth, mean reciprocal rank and nDCG, with intervals."""
        by_depth = zip(*(scores.recall for scores in self.modes), strict=True)
        rows = [[f"recall@{recalls[0].k}", *map(_share, recalls)] for recalls in by_depth]
        rows.append([f"MRR@{self.depth}", *(_share(scores.mrr) for scores in self.modes)])
        rows.append([f"nDCG@{self.depth}", *(_share(scores.ndcg) for scores in self.modes)])
        by_mode = {one.mode: one for one in self.differences}
        if by_mode:
            compared = [by_mode.get(scores.mode) for scores in self.modes]
            for name, of in (("nDCG", "ndcg"), (f"recall@{self.depth}", "recall")):
                cells = [
                    "best" if one is None else f"{_share(getattr(one, of), '+')} p = {getattr(one, f'{of}_p'):.2g}"
                    for one in compared
                ]
                rows.append([f"{name} less {self.best}'s", *cells])
        missing = len(self.not_in_collection)
        drawn = "bootstrap" if self.groups is None else f"bootstrap over {self.groups} groups"
        recall = "Wilson" if self.groups is None and self.golds == self.n else drawn
        where = ", each asked within its own report" if self.within_group else ""
        note = (
            f"n = {self.n} questions with {self.golds} gold passages over {self.passages:,} passages{where}; 95% "
            f"intervals (recall: {recall}, others: {drawn}; differences: what sign flips do not reject). nDCG takes "
            "grades as they are; p-values of differences: sign flips, Holm. Found means that hits hold "
            f"{self.share:.0%} of the gold passage's words in order."
        )
        if missing:
            note += f" {missing} gold passages are not in the collection and count as not found."
        if self.left_out:
            note += f" {counted(self.left_out, 'row')} of the files without a relevant passage left out."
        headings = ["", *(scores.mode for scores in self.modes)]
        return (Table.of(f"Retrieval from {self.collection}", headings, rows, note=note),)


def _share(of: Estimate | RecallAt, sign: str = "") -> str:
    value = of.recall if isinstance(of, RecallAt) else of.value
    return f"{value:{sign}.3f} [{of.interval.low:{sign}.3f}, {of.interval.high:{sign}.3f}]"


def evaluate_retrieval(
    collection: Collection,
    questions: Sequence[LabelledQuestion],
    *,
    ks: Sequence[int] = DEFAULT_KS,
    modes: Sequence[SearchMode] = SEARCH_MODES,
    share: float = REQUIRED_SHARE,
    within_group: bool = False,
    left_out: int = 0,
    seed: int = 0,
) -> RetrievalReport:
    """Search every question in every mode and see at which ranks what people marked has been found.

    A gold passage counts as found at the first rank at which one hit, or hits that are neighbours in a document,
    contain ``share`` of its words in order: so a passage that was cut in two needs both halves. nDCG looks at the hits
    themselves: each has the greatest relevance of the gold passages that it holds or lies in (:func:`judge`).

    Args:
        collection: Where to search.
        questions: Each with a verbatim text it rests on; pairs of the same question and group are one question.
        ks: Depths of recall@k, at least one; the largest is also the depth of the mean reciprocal rank and of nDCG.
        modes: Search modes to compare.
        share: More than 0, at most 1.
        within_group: Ask each question only among the passages of the report that its group names.
        left_out: Rows that hold no relevant passage, for the report.
        seed: Of the bootstrap.

    Raises:
        InputError: No questions, no sensible ``ks``, modes or share, a single group, an empty collection, or a
            collection that has none of the gold passages.
    """
    ks = _check(questions, ks, modes, share)
    golds = [GoldText.of(question.passage) for question in questions]
    located = locate(golds, collection.texts())
    if not any(located):
        raise InputError(
            f"The collection {collection.name!r} has none of the {len(questions)} gold passages: "
            "add the documents they were taken from, or use another collection."
        )
    gathered = _Questions.of(collection, questions, golds, within_group)
    scored = [_Ranking.of(collection, gathered, max(ks), mode, share) for mode in modes]
    best = max(scored, key=lambda one: float(one.ndcg.mean()))
    return RetrievalReport(
        collection=collection.name,
        encoder=collection.settings.encoder,
        passages=len(collection),
        n=len(gathered.places),
        golds=len(questions),
        groups=gathered.number_of_groups,
        within_group=within_group,
        left_out=left_out,
        not_in_collection=tuple(question.id for question, there in zip(questions, located, strict=True) if not there),
        depth=max(ks),
        share=share,
        modes=tuple(_mode_scores(one, gathered, ks, seed) for one in scored),
        best=best.mode,
        differences=_differences(scored, best, gathered, max(ks), seed),
    )


@dataclass(frozen=True, slots=True)
class _Questions:
    """Pairs gathered by question, with what is relevant in the collection."""

    texts: tuple[str, ...]
    """The questions."""
    groups: tuple[str, ...]
    """One a question."""
    places: tuple[tuple[int, ...], ...]
    """The pairs of each question."""
    golds: Sequence[GoldText]
    judged: tuple[Mapping[str, float], ...]
    """Relevance by passage id, for each question."""
    within_group: bool

    @classmethod
    def of(
        cls, collection: Collection, pairs: Sequence[LabelledQuestion], golds: Sequence[GoldText], within_group: bool
    ) -> "_Questions":
        places: dict[tuple[str, str], list[int]] = {}
        for number, pair in enumerate(pairs):
            places.setdefault((pair.question, pair.group), []).append(number)
        if len({group for _, group in places}) == 1 and pairs[0].group:
            raise InputError(f"All questions belong to one group, {pairs[0].group!r}: evaluate them without groups.")
        if within_group and not all(group for _, group in places):
            raise InputError("Searching within groups needs a group for every question: name the column of groups.")
        reports: dict[str, str | None] = {}

        def passages() -> Iterator[Passage]:
            for passage in collection.each_passage():
                if within_group:
                    reports[passage.id] = passage.report
                yield passage

        by_pair = judge(golds, [pair.relevance for pair in pairs], passages())
        judged = []
        for (_, group), numbers in places.items():
            grades: dict[str, float] = {}
            for item, grade in (pair for number in numbers for pair in by_pair[number].items()):
                if not within_group or reports[item] == group:
                    grades[item] = max(grade, grades.get(item, 0.0))
            judged.append(grades)
        texts, groups = zip(*places, strict=True)
        return cls(texts, groups, tuple(map(tuple, places.values())), golds, tuple(judged), within_group)

    @property
    def number_of_groups(self) -> int | None:
        return len(set(self.groups)) if any(self.groups) else None

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of a value and number of questions of each group, shape [groups, 2]; without groups, each by itself."""
        units = np.arange(len(values))
        if self.number_of_groups:
            units = np.unique(self.groups, return_inverse=True)[1]
        return np.stack([np.bincount(units, values), np.bincount(units)], axis=1)

    def estimate(self, values: NDArray[np.float64], seed: int) -> Estimate:
        """Mean over questions, with its interval over groups."""
        value, sums = float(values.mean()), self.sums(values)
        interval = bootstrap_interval(sums, lambda rows: float(rows[:, 0].sum() / rows[:, 1].sum()), seed=seed)
        return Estimate(value, share_interval(interval, value, len(sums)), len(values))

    def blocks(self) -> Iterator[tuple[list[int], str | None]]:
        """Questions that are searched together, and the report in which they are."""
        if self.within_group:
            for group in dict.fromkeys(self.groups):
                yield [number for number, other in enumerate(self.groups) if other == group], group
            return
        numbers = list(range(len(self.texts)))
        for start in range(0, len(numbers), _QUESTION_BLOCK):
            yield numbers[start : start + _QUESTION_BLOCK], None


@dataclass(frozen=True, slots=True)
class _Ranking:
    """What one mode found."""

    mode: SearchMode
    ranks: tuple[int | None, ...]
    """One a pair."""
    ndcg: NDArray[np.float64]
    """One a question."""

    @classmethod
    def of(cls, collection: Collection, gathered: _Questions, depth: int, mode: SearchMode, share: float) -> "_Ranking":
        ranks: list[int | None] = [None] * len(gathered.golds)
        gains = np.zeros(len(gathered.texts))
        for numbers, report in gathered.blocks():
            texts = [gathered.texts[number] for number in numbers]
            result = collection.search_many(texts, k=depth, mode=mode, report=report)
            for number, hits in zip(numbers, result, strict=True):
                judged = gathered.judged[number]
                gains[number] = ndcg([judged.get(hit.passage.id, 0.0) for hit in hits], judged.values(), depth)
                for place in gathered.places[number]:
                    ranks[place] = gathered.golds[place].rank_in(hits, share)
        return cls(mode, tuple(ranks), gains)

    def by_question(self, gathered: _Questions, figure: Callable[[list[int | None]], float]) -> NDArray[np.float64]:
        return np.array([figure([self.ranks[place] for place in places]) for places in gathered.places])

    def recall(self, gathered: _Questions, k: int) -> NDArray[np.float64]:
        """Share of each question's gold passages that are among the first k hits."""
        return self.by_question(gathered, lambda ranks: float(np.mean([_within(rank, k) for rank in ranks])))


def _within(rank: int | None, k: int) -> bool:
    return rank is not None and rank <= k


def _mode_scores(one: _Ranking, gathered: _Questions, ks: Sequence[int], seed: int) -> ModeScores:
    reciprocal = one.by_question(gathered, lambda ranks: max(0.0 if rank is None else 1.0 / rank for rank in ranks))
    plain = gathered.number_of_groups is None and len(one.ranks) == len(gathered.texts)
    recalls = []
    for k in ks:
        values, result = one.recall(gathered, k), sum(_within(rank, k) for rank in one.ranks)
        interval = wilson_interval(result, len(values)) if plain else gathered.estimate(values, seed).interval
        recalls.append(RecallAt(k, result, len(values), float(values.mean()), interval))
    return ModeScores(
        one.mode, tuple(recalls), gathered.estimate(reciprocal, seed), gathered.estimate(one.ndcg, seed), one.ranks
    )


def _differences(
    scored: Sequence[_Ranking], best: _Ranking, gathered: _Questions, k: int, seed: int
) -> tuple[ModeDifference, ...]:
    others = [one for one in scored if one is not best]
    tested = []
    figures: list[Callable[[_Ranking], NDArray[np.float64]]] = [
        lambda one: one.ndcg,
        lambda one: one.recall(gathered, k),
    ]
    for values in figures:
        sums = [gathered.sums(values(one) - values(best)).T for one in others]
        pairs = [(0 * total, total / size) for total, size in sums]
        tests = paired_differences(pairs, weights=[size for _, size in sums], seed=seed)
        gaps = [replace(test.difference, n=len(gathered.texts)) for test in tests]
        tested.append(list(zip(gaps, holm([test.p_value for test in tests]), strict=True)))
    return tuple(
        ModeDifference(one.mode, *on_ndcg, *on_recall) for one, on_ndcg, on_recall in zip(others, *tested, strict=True)
    )


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
        raise InputError("Name at least one search mode to evaluate.")
    for mode in modes:
        check_mode(mode)
    if not 0 < share <= 1:
        raise InputError(f"The share of a gold passage that must be found is above 0 and at most 1, not {share}.")
    return tuple(sorted(set(ks)))
