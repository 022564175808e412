"""Train, dev and test splits without a common passage or question."""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

from climassay.errors import InputError
from climassay.questions import Kind, Level

Split = Literal["train", "dev", "test"]
Stratum = tuple[str, str, str]
"""Kind, level and book."""
SPLITS: tuple[Split, ...] = get_args(Split)
SHARES = (0.8, 0.1, 0.1)
_MIN_OVERLAP_WORDS = 8
"""Minimum number of consecutive words that overlapping passages of a document share."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Properties that decide the split of a question."""

    kind: Kind
    level: Level | None
    book: str
    """Title of the main passage's document; this and all further fields are empty if unknown."""
    document_id: str
    passage_id: str
    passage: str
    """Text of the main passage, or the whole context of a question from elsewhere."""
    question: str


def normalised(text: str) -> str:
    """Return a text in lower case with single spaces."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Sizes and seed of the splits."""

    parts: tuple[float, float, float] = SHARES
    """Sizes of train, dev and test: shares that sum to 1, or numbers of questions, one of which may be -1."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Validate the parts.

        Raises:
            InputError: The parts are neither shares nor numbers.
        """
        fixed = [part for part in self.parts if part != -1]
        are_integers = all(float(part).is_integer() for part in fixed)
        are_shares = not self.counts and math.isclose(sum(self.parts), 1.0, abs_tol=1e-9)
        if len(self.parts) != len(SPLITS) or any(part < 0 or not math.isfinite(part) for part in fixed):
            raise InputError(f"Splits are three numbers for train, dev and test, not {self._parts_text}.")
        if not are_shares and not (self.counts and are_integers and len(fixed) >= len(SPLITS) - 1):
            raise InputError(
                f"The splits {self._parts_text} are neither shares that sum to 1, as 0.8,0.1,0.1, nor numbers of "
                "questions with at most one -1 for the remaining ones, as -1,100,100."
            )

    @property
    def counts(self) -> bool:
        """Whether the parts are numbers of questions rather than shares."""
        return any(part == -1 or part > 1 for part in self.parts)

    @property
    def _parts_text(self) -> str:
        return ",".join(f"{part:g}" for part in self.parts)


def split_placements(items: Sequence[Placement], plan: SplitPlan) -> list[Split]:
    """Return the split of each question.

    Questions with the same words, the same main passage, or overlapping main passages of one document form a group and
    get the same split. Within this limit each kind, level and book is divided as planned.

    With *shares* questions are assigned in their order, each new group to the split that its stratum lacks most. Later
    questions then change no earlier assignment, unless a new passage joins two groups: the later group then follows
    the earlier one. With *numbers* the largest groups are assigned first; a larger dataset may be divided differently.

    Raises:
        InputError: The plan needs more questions than there are.
    """
    return _split_by_numbers(items, plan) if plan.counts else _split_by_shares(items, plan)


def groups_of(items: Sequence[Placement]) -> list[int]:
    """Return the group of each question: the smallest index in its group."""
    groups = _QuestionGroups()
    for item in items:
        groups.add(item)
    return [groups.root(index) for index in range(len(items))]


@dataclass(slots=True)
class _QuestionGroups:
    """Groups of questions that get the same split, built one question at a time (union-find)."""

    parents: list[int] = field(default_factory=list)
    first_index: dict[Hashable, int] = field(default_factory=dict)
    """Index of the first question with each feature."""

    def root(self, index: int) -> int:
        """Return the index of the first question in a question's group."""
        while self.parents[index] != index:
            self.parents[index] = self.parents[self.parents[index]]
            index = self.parents[index]
        return index

    def add(self, item: Placement) -> list[int]:
        """Add the next question and join the groups that it shares a feature with.

        Returns:
            First questions of the joined groups, earliest first.
        """
        index = len(self.parents)
        self.parents.append(index)
        features = _group_features(item)
        joined = sorted({self.root(self.first_index.setdefault(feature, index)) for feature in features} - {index})
        for root in [*joined[1:], index]:
            self.parents[root] = joined[0] if joined else index
        return joined


def _group_features(item: Placement) -> Iterable[Hashable]:
    """Yield features of a question; two questions with a common feature belong to one group."""
    if item.question:
        yield "question", normalised(item.question)
    if item.passage_id:
        yield "id", item.passage_id
    words = normalised(item.passage).split()
    if words:
        yield "passage", " ".join(words)
    for start in range(len(words) - _MIN_OVERLAP_WORDS + 1):
        # Digests save memory: books have millions of such runs.
        run = " ".join(words[start : start + _MIN_OVERLAP_WORDS])
        yield item.document_id, hashlib.blake2b(run.encode(), digest_size=8).digest()


def _split_by_shares(items: Sequence[Placement], plan: SplitPlan) -> list[Split]:
    groups = _QuestionGroups()
    sizes: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0] * len(SPLITS))
    """Current number of questions by split: in total, of each kind and level, and of each stratum."""

    def keys(item: Placement) -> tuple[tuple[str, ...], ...]:
        return (), (item.kind, item.level or ""), _stratum(item)

    def count(item: Placement, split: int, number: int = 1) -> None:
        for key in keys(item):
            sizes[key][split] += number

    def deficit(item: Placement, split: int) -> float:
        total = 0.0
        for key in keys(item):
            total += plan.parts[split] * (sum(sizes[key]) + 1) - sizes[key][split]
        # A random offset per stratum: otherwise the first questions of every stratum would be for training.
        return total + _random_number(plan.seed, *_stratum(item), SPLITS[split])

    chosen: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    open_splits = [split for split, share in enumerate(plan.parts) if share > 0]
    for index, item in enumerate(items):
        joined = groups.add(item)
        root = joined[0] if joined else index
        if not joined:
            chosen[index], members[index] = max(open_splits, key=partial(deficit, item)), []
        for later in joined[1:]:
            for member in members[later]:
                count(items[member], chosen[later], -1)
                count(items[member], chosen[root])
            members[root] += members.pop(later)
        members[root].append(index)
        count(item, chosen[root])
    return [SPLITS[chosen[groups.root(index)]] for index in range(len(items))]


def _stratum(item: Placement) -> Stratum:
    return item.kind, item.level or "", item.book


def _random_number(seed: int, *parts: str) -> float:
    """Return a number in [0, 1) that depends on the seed and the parts alone, on any machine."""
    digest = hashlib.sha256("\n".join((str(seed), *parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _split_by_numbers(items: Sequence[Placement], plan: SplitPlan) -> list[Split]:
    total = len(items)
    planned = sum(part for part in plan.parts if part != -1)
    if planned > total or (planned < total and -1 not in plan.parts):
        raise InputError(
            f"The splits need {planned:g} questions, but there are {total}: let one split be -1 to take the others."
        )
    sizes = {
        name: size
        for name, part in zip(SPLITS, plan.parts, strict=True)
        if (size := part if part != -1 else total - planned) > 0
    }
    totals = Counter(map(_stratum, items))
    # Number of questions that each split still lacks, in total and of each stratum.
    free = dict(sizes)
    deficits = {
        name: {stratum: count * size / total for stratum, count in totals.items()} for name, size in sizes.items()
    }

    def preference(strata: Counter[Stratum], name: Split) -> tuple[bool, float, float]:
        """Return the sort key of a split for a group: room for it, relative lack of its strata, and relative room."""
        missing = sum(number * deficits[name][stratum] for stratum, number in strata.items())
        return free[name] >= strata.total(), missing / sizes[name], free[name] / sizes[name]

    groups = groups_of(items)
    members: dict[int, list[Placement]] = defaultdict(list)
    for group, item in zip(groups, items, strict=True):
        members[group].append(item)
    order = {
        group: _random_number(plan.seed, questions[0].passage, questions[0].question)
        for group, questions in members.items()
    }
    chosen: dict[int, Split] = {}
    for group in sorted(members, key=lambda group: (-len(members[group]), order[group])):
        strata = Counter(map(_stratum, members[group]))
        best = chosen[group] = max(sizes, key=partial(preference, strata))
        free[best] -= strata.total()
        for stratum, number in strata.items():
            deficits[best][stratum] -= number
    return [chosen[group] for group in groups]
