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
"""Kind, level and book of questions that are divided proportionally."""
SPLITS: tuple[Split, ...] = get_args(Split)
SHARES = (0.8, 0.1, 0.1)
_MIN_OVERLAP_WORDS = 8
"""Passages of one document overlap if they share at least this number of consecutive words."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Properties that determine the split of a question."""

    kind: Kind
    level: Level | None
    book: str
    """Title of the main passage's document; empty if unknown. The same holds for the following fields."""
    document_id: str
    passage_id: str
    passage: str
    """Text of the main passage, or the whole context of a question from elsewhere."""
    question: str


def normalise_text(text: str) -> str:
    """Return a text in lower case with single spaces."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Sizes and seed of the splits."""

    parts: tuple[float, float, float] = SHARES
    """Sizes of train, dev and test: proportions that sum to 1, or numbers of questions.

    One of the numbers may be -1, for all remaining questions.
    """
    seed: int = 0

    def __post_init__(self) -> None:
        """Validate the sizes.

        Raises:
            InputError: The sizes are neither proportions nor numbers of questions.
        """
        fixed_sizes = [size for size in self.parts if size != -1]
        are_integers = all(float(size).is_integer() for size in fixed_sizes)
        are_shares = not self.uses_counts and math.isclose(sum(self.parts), 1.0, abs_tol=1e-9)
        if len(self.parts) != len(SPLITS) or any(size < 0 or not math.isfinite(size) for size in fixed_sizes):
            raise InputError(f"Splits are three numbers for train, dev and test, not {self._parts_text}.")
        if not are_shares and not (self.uses_counts and are_integers and len(fixed_sizes) >= len(SPLITS) - 1):
            raise InputError(
                f"The splits {self._parts_text} are neither shares that sum to 1, as 0.8,0.1,0.1, nor numbers of "
                "questions with at most one -1 for the remaining ones, as -1,100,100."
            )

    @property
    def uses_counts(self) -> bool:
        """Whether the sizes are numbers of questions rather than proportions."""
        return any(size == -1 or size > 1 for size in self.parts)

    @property
    def _parts_text(self) -> str:
        return ",".join(f"{size:g}" for size in self.parts)


def split_placements(items: Sequence[Placement], plan: SplitPlan) -> list[Split]:
    """Return the split of each question.

    Questions form a group and get the same split if they have the same words, the same main passage, or overlapping
    main passages of one document. Within this constraint, each stratum (kind, level and book) is divided as planned.

    If the plan has proportions, questions are assigned in order, and each new group goes to the split in which its
    stratum is most under-represented. Later questions do not change earlier assignments, except that a new passage may
    join two groups: the later group then moves to the split of the earlier one.

    If the plan has numbers, the largest groups are assigned first, so added questions may change every assignment.

    Raises:
        InputError: The plan needs more questions than there are.
    """
    return _split_by_counts(items, plan) if plan.uses_counts else _split_by_shares(items, plan)


def group_questions(items: Sequence[Placement]) -> list[int]:
    """Return the group of each question; a group is identified by the smallest index of its questions."""
    groups = _QuestionGroups()
    for item in items:
        groups.add(item)
    return [groups.root(index) for index in range(len(items))]


@dataclass(slots=True)
class _QuestionGroups:
    """Groups of questions that must be in the same split, as a union-find structure."""

    parents: list[int] = field(default_factory=list)
    index_by_key: dict[Hashable, int] = field(default_factory=dict)
    """Index of the first question with each grouping key, such as its text or the id of its passage."""

    def root(self, index: int) -> int:
        """Return the index of the first question in the group of question ``index``."""
        while self.parents[index] != index:
            self.parents[index] = self.parents[self.parents[index]]
            index = self.parents[index]
        return index

    def add(self, item: Placement) -> list[int]:
        """Add the next question, and join all groups with which it shares a grouping key.

        Returns:
            Indices of the first questions of the joined groups, in ascending order.
        """
        index = len(self.parents)
        self.parents.append(index)
        keys = _grouping_keys(item)
        roots = sorted({self.root(self.index_by_key.setdefault(key, index)) for key in keys} - {index})
        for root in [*roots[1:], index]:
            self.parents[root] = roots[0] if roots else index
        return roots


def _grouping_keys(item: Placement) -> Iterable[Hashable]:
    if item.question:
        yield "question", normalise_text(item.question)
    if item.passage_id:
        yield "id", item.passage_id
    words = normalise_text(item.passage).split()
    if words:
        yield "passage", " ".join(words)
    for start in range(len(words) - _MIN_OVERLAP_WORDS + 1):
        # Digests save memory: books have millions of such runs.
        word_sequence = " ".join(words[start : start + _MIN_OVERLAP_WORDS])
        yield item.document_id, hashlib.blake2b(word_sequence.encode(), digest_size=8).digest()


def _split_by_shares(items: Sequence[Placement], plan: SplitPlan) -> list[Split]:
    groups = _QuestionGroups()
    sizes: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0] * len(SPLITS))
    """Current number of questions in each split: in total, by kind and level, and by stratum."""

    def list_keys(item: Placement) -> tuple[tuple[str, ...], ...]:
        return (), (item.kind, item.level or ""), _stratum(item)

    def update_sizes(item: Placement, split: int, difference: int) -> None:
        for key in list_keys(item):
            sizes[key][split] += difference

    def deficit(item: Placement, split: int) -> float:
        total = 0.0
        for key in list_keys(item):
            total += plan.parts[split] * (sum(sizes[key]) + 1) - sizes[key][split]
        # A random offset per stratum: otherwise the first questions of every stratum would be for training.
        return total + _random_number(plan.seed, *_stratum(item), SPLITS[split])

    split_by_root: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    nonempty_splits = [split for split, proportion in enumerate(plan.parts) if proportion > 0]
    for index, item in enumerate(items):
        roots = groups.add(item)
        root = roots[0] if roots else index
        if not roots:
            split_by_root[index], members[index] = max(nonempty_splits, key=partial(deficit, item)), []
        for later_root in roots[1:]:
            for member in members[later_root]:
                update_sizes(items[member], split_by_root[later_root], -1)
                update_sizes(items[member], split_by_root[root], 1)
            members[root] += members.pop(later_root)
        members[root].append(index)
        update_sizes(item, split_by_root[root], 1)
    return [SPLITS[split_by_root[groups.root(index)]] for index in range(len(items))]


def _stratum(item: Placement) -> Stratum:
    return item.kind, item.level or "", item.book


def _random_number(seed: int, *parts: str) -> float:
    """Return a pseudo-random number in [0, 1) that depends only on the arguments and is the same on every machine."""
    digest = hashlib.sha256("\n".join((str(seed), *parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _split_by_counts(items: Sequence[Placement], plan: SplitPlan) -> list[Split]:
    n_items = len(items)
    n_required = sum(part for part in plan.parts if part != -1)
    if n_required > n_items or (n_required < n_items and -1 not in plan.parts):
        raise InputError(
            f"The splits need {n_required:g} questions, but there are {n_items}: let one split be -1 to take the "
            "others."
        )
    sizes = {
        name: size
        for name, part in zip(SPLITS, plan.parts, strict=True)
        if (size := part if part != -1 else n_items - n_required) > 0
    }
    stratum_sizes = Counter(map(_stratum, items))
    # Number of questions that each split still lacks, in total and of each stratum.
    total_deficits = dict(sizes)
    deficits = {
        name: {stratum: count * size / n_items for stratum, count in stratum_sizes.items()}
        for name, size in sizes.items()
    }

    def rank_split(strata: Counter[Stratum], name: Split) -> tuple[bool, float, float]:
        """Return the sort key of a split, by which the best split for a group with these strata is chosen."""
        deficit = sum(n_questions * deficits[name][stratum] for stratum, n_questions in strata.items())
        return total_deficits[name] >= strata.total(), deficit / sizes[name], total_deficits[name] / sizes[name]

    groups = group_questions(items)
    members: dict[int, list[Placement]] = defaultdict(list)
    for group, item in zip(groups, items, strict=True):
        members[group].append(item)
    random_ranks = {
        group: _random_number(plan.seed, questions[0].passage, questions[0].question)
        for group, questions in members.items()
    }
    split_by_group: dict[int, Split] = {}
    for group in sorted(members, key=lambda group: (-len(members[group]), random_ranks[group])):
        strata = Counter(map(_stratum, members[group]))
        split = split_by_group[group] = max(sizes, key=partial(rank_split, strata))
        total_deficits[split] -= strata.total()
        for stratum, n_questions in strata.items():
            deficits[split][stratum] -= n_questions
    return [split_by_group[group] for group in groups]
