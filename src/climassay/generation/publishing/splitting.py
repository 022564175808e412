"""Splits in which no passage, and no question, appears on two sides."""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

from climassay.errors import InputError
from climassay.generation.publishing.entries import Placement, normalised

Split = Literal["train", "dev", "test"]
Stratum = tuple[str, str, str]
"""Kind, level and book."""
SPLITS: tuple[Split, ...] = get_args(Split)
SHARES = (0.8, 0.1, 0.1)
_OVERLAP_WORDS = 8
"""Words in a row that two passages of a document share where they overlap; passages are cut at sentences."""


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """How questions are divided."""

    parts: tuple[float, float, float] = SHARES
    """Train, dev and test: shares that sum to 1, or numbers of questions with at most one -1 for all the others."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the parts.

        Raises:
            InputError: They are neither.
        """
        known = [part for part in self.parts if part != -1]
        whole = all(float(part).is_integer() for part in known)
        shares = not self.counts and math.isclose(sum(self.parts), 1.0, abs_tol=1e-9)
        if len(self.parts) != len(SPLITS) or any(part < 0 or not math.isfinite(part) for part in known):
            raise InputError(f"Splits are three numbers for train, dev and test, not {self._words}.")
        if not shares and not (self.counts and whole and len(known) >= len(SPLITS) - 1):
            raise InputError(
                f"The splits {self._words} are neither shares that sum to 1, as 0.8,0.1,0.1, nor numbers of questions "
                "with at most one -1 for the rest, as -1,100,100."
            )

    @property
    def counts(self) -> bool:
        """Whether the parts are numbers of questions."""
        return any(part == -1 or part > 1 for part in self.parts)

    @property
    def _words(self) -> str:
        return ",".join(f"{part:g}" for part in self.parts)


def split_placements(items: Sequence[Placement], plan: SplitPlan) -> list[Split]:
    """The split of each question.

    Questions whose main passages are the same, or overlap in one document, stay together, and so do questions of the
    same words. Each kind, level and book is divided as asked, as well as these groups allow.

    With *shares* questions are taken in their order, each new group going where its stratum lacks most at that moment.
    So whatever is appended later changes nothing before it, but where a new passage ties two groups together: then the
    later group follows the earlier one. With *numbers* all groups are known first, the largest are placed first, and
    sizes come out as asked where groups allow; a larger dataset may then be divided otherwise.

    Raises:
        InputError: More questions are asked for than there are.
    """
    return _by_numbers(items, plan) if plan.counts else _by_shares(items, plan)


def groups_of(items: Sequence[Placement]) -> list[int]:
    """The group of each question: the smallest place of a question that it must stay together with."""
    ties = _Ties()
    for item in items:
        ties.add(item)
    return [ties.root(place) for place in range(len(items))]


@dataclass(slots=True)
class _Ties:
    """Groups of questions that must stay together, one question after the other (union-find)."""

    parent: list[int] = field(default_factory=list)
    first: dict[Hashable, int] = field(default_factory=dict)
    """Where each mark was seen first."""

    def root(self, place: int) -> int:
        """The first question of a question's group."""
        while self.parent[place] != place:
            self.parent[place] = self.parent[self.parent[place]]
            place = self.parent[place]
        return place

    def add(self, item: Placement) -> list[int]:
        """Take the next question in.

        Returns:
            First questions of the groups that it belongs to, which are one group from now on, earliest first.
        """
        place = len(self.parent)
        self.parent.append(place)
        seen = {self.root(self.first.setdefault(mark, place)) for mark in _marks(item)} - {place}
        joined = sorted(seen)
        for root in [*joined[1:], place]:
            self.parent[root] = joined[0] if joined else place
        return joined


def _marks(item: Placement) -> Iterable[Hashable]:
    """What two questions of one group have in common, any of it."""
    if item.question:
        yield "question", normalised(item.question)
    if item.passage_id:
        yield "id", item.passage_id
    words = normalised(item.passage).split()
    if words:
        yield "passage", " ".join(words)
    for start in range(len(words) - _OVERLAP_WORDS + 1):
        # A digest keeps the table small: books have millions of such rows.
        row = " ".join(words[start : start + _OVERLAP_WORDS])
        yield item.document_id, hashlib.blake2b(row.encode(), digest_size=8).digest()


def _by_shares(items: Sequence[Placement], plan: SplitPlan) -> list[Split]:
    ties = _Ties()
    has: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0] * len(SPLITS))
    """Questions that each split has so far: in all, of each kind and level, and of each stratum."""

    def keys(item: Placement) -> tuple[tuple[str, ...], ...]:
        return (), (item.kind, item.level or ""), _stratum(item)

    def count(item: Placement, split: int, number: int = 1) -> None:
        for key in keys(item):
            has[key][split] += number

    def lack(item: Placement, split: int) -> float:
        lacks = 0.0
        for key in keys(item):
            lacks += plan.parts[split] * (sum(has[key]) + 1) - has[key][split]
        # Where a stratum begins is drawn: else the first questions of every stratum would all be for training.
        return lacks + _drawn(plan.seed, *_stratum(item), SPLITS[split])

    chosen: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    open_splits = [split for split, share in enumerate(plan.parts) if share > 0]
    for place, item in enumerate(items):
        joined = ties.add(item)
        root = joined[0] if joined else place
        if not joined:
            chosen[place], members[place] = max(open_splits, key=partial(lack, item)), []
        for other in joined[1:]:
            for member in members[other]:
                count(items[member], chosen[other], -1)
                count(items[member], chosen[root])
            members[root] += members.pop(other)
        members[root].append(place)
        count(item, chosen[root])
    return [SPLITS[chosen[ties.root(place)]] for place in range(len(items))]


def _stratum(item: Placement) -> Stratum:
    return item.kind, item.level or "", item.book


def _drawn(seed: int, *parts: str) -> float:
    """A number from 0 to 1 that the seed and the parts decide, on every machine alike."""
    digest = hashlib.sha256("\n".join((str(seed), *parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _by_numbers(items: Sequence[Placement], plan: SplitPlan) -> list[Split]:
    total = len(items)
    asked = sum(part for part in plan.parts if part != -1)
    if asked > total or (asked < total and -1 not in plan.parts):
        raise InputError(
            f"The splits ask for {asked:g} questions, but there are {total}: let one split be -1 to take the rest."
        )
    sizes = {
        name: size
        for name, part in zip(SPLITS, plan.parts, strict=True)
        if (size := part if part != -1 else total - asked) > 0
    }
    every = Counter(map(_stratum, items))
    # Questions that each split still lacks, in all and of each stratum.
    room = dict(sizes)
    lacks = {name: {one: count * size / total for one, count in every.items()} for name, size in sizes.items()}

    def wants(group: Counter[Stratum], name: Split) -> tuple[bool, float, float]:
        """How much a split lacks questions like these for its size; splits without room come last."""
        missing = sum(number * lacks[name][stratum] for stratum, number in group.items())
        return room[name] >= group.total(), missing / sizes[name], room[name] / sizes[name]

    groups = groups_of(items)
    members: dict[int, list[Placement]] = defaultdict(list)
    for group, item in zip(groups, items, strict=True):
        members[group].append(item)
    order = {group: _drawn(plan.seed, own[0].passage, own[0].question) for group, own in members.items()}
    chosen: dict[int, Split] = {}
    for group in sorted(members, key=lambda one: (-len(members[one]), order[one])):
        own = Counter(map(_stratum, members[group]))
        best = chosen[group] = max(sizes, key=partial(wants, own))
        room[best] -= own.total()
        for stratum, number in own.items():
            lacks[best][stratum] -= number
    return [chosen[group] for group in groups]
