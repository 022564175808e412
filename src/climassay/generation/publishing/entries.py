"""What a dataset is made of: questions with their drafts, their splits, their rows in tables, and the canary."""

import hashlib
import json
import math
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

from climassay.errors import InputError
from climassay.generation.draft import Draft, SourcePassage
from climassay.questions import KINDS, TYPES, Kind, Level, Question, QuestionSet, option_letter
from climassay.questions.types import LETTERS

_DASHES = "-" * 20
_TEXT = ("id", "kind", "level", "question")
_SOURCE = ("passage", "document", "section", "citation", "url", "licence", "model")


@dataclass(frozen=True, slots=True)
class Entry:
    """A question that is published."""

    question: Question
    draft: Draft | None = None
    """What it comes from; None for questions that were not generated here."""

    @property
    def book(self) -> str:
        """Title of the document that it rests on."""
        return self.placement.book

    @property
    def passages(self) -> tuple[SourcePassage, ...]:
        """All that it was written from."""
        return () if self.draft is None else self.draft.passages

    @property
    def placement(self) -> "Placement":
        """What decides its split."""
        if self.draft is not None:
            return placement_of(self.draft)
        one = self.question
        book = one.document or ""
        return Placement(one.kind, one.level, book, book, "", one.context or "", one.question)


@dataclass(frozen=True, slots=True)
class Placement:
    """What decides the split of a question."""

    kind: Kind
    level: Level | None
    book: str
    """Title of the main passage's document; empty where there is none, as all that follows."""
    document_id: str
    passage_id: str
    passage: str
    """Text of the main passage; for questions from elsewhere the whole context."""
    question: str


def placement_of(draft: Draft) -> Placement:
    """The placement of a draft, whatever was decided about it."""
    main = draft.main
    return Placement(
        draft.kind, draft.level, main.document, main.document_id, main.id, main.text, draft.wording.question
    )


def entries_of(source: Sequence[Draft] | QuestionSet, kinds: Sequence[Kind] = KINDS) -> list[Entry]:
    """The questions of these kinds that are published, in the source's order: of drafts those that stand accepted.

    Raises:
        InputError: Two drafts have the same id, one has no passage, or an accepted one makes no question.
    """
    if isinstance(source, QuestionSet):
        return [Entry(question) for question in source.questions if question.kind in kinds]
    seen: set[str] = set()
    for draft in source:  # which may come from anybody's file
        if draft.id in seen:
            raise InputError(f"Two drafts have the id {draft.id}: give every draft its own.")
        seen.add(draft.id)
        if not draft.passages:
            raise InputError(
                f"The draft {draft.id} has no passage: every draft needs the one that it was written from."
            )
        wording = draft.wording
        marked = wording.correct is not None and 0 <= wording.correct < len(wording.options)
        if wording.options and not draft.type.options:
            raise InputError(
                f"The draft {draft.id} is there to be rated, or to get a rubric: export it with climassay "
                "annotate export."
            )
        if draft.type.options and draft.usable and not marked:
            raise InputError(f"The draft {draft.id} marks none of its {len(wording.options)} options as correct.")
    return [
        Entry(draft.as_question(), draft)
        for draft in source
        if draft.kind in kinds and draft.usable and not _waits(draft)
    ]


def waiting(source: Sequence[Draft] | QuestionSet) -> int:
    """Accepted cloze statements whose term nobody has chosen yet; they cannot be published."""
    return 0 if isinstance(source, QuestionSet) else sum(draft.usable and _waits(draft) for draft in source)


def _waits(draft: Draft) -> bool:
    return draft.type.gap and not draft.wording.answer


def content_sha256(entries: Sequence[Entry]) -> str:
    """SHA-256 over the words of the questions, in any order."""
    parts = sorted(
        json.dumps([one.question.kind, one.question.question, one.question.answer, one.question.options])
        for one in entries
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def normalised(text: str) -> str:
    """Without differences of case and spacing."""
    return " ".join(text.split()).casefold()


def columns(kind: Kind, canary: bool) -> dict[str, str]:
    """Columns of the tables of a kind, each ``string`` or ``strings``; the same in every split, empty ones included."""
    options = {"options": "strings", "correct": "string"} if TYPES[kind].options else {}
    types = dict.fromkeys(_TEXT, "string") | options | dict.fromkeys(("answer", *_SOURCE), "string")
    return types | ({"canary": "string"} if canary else {})


def question_row(entry: Entry, canary: str | None) -> dict[str, Any]:
    """A question in climassay's format, with where it comes from; ``correct`` is the letter of the correct option."""
    question = entry.question
    row: dict[str, Any] = {name: getattr(question, name) for name in _TEXT}
    if question.type.options:
        assert question.correct is not None
        row |= {"options": list(question.options), "correct": option_letter(question.correct)}
    row |= {"answer": question.answer, "passage": question.context, "document": question.document}
    row |= {"section": question.section} | dict.fromkeys(("citation", "url", "licence", "model"))
    if entry.draft is not None:
        main = entry.draft.main
        row |= {"citation": main.citation, "url": main.url, "licence": main.licence, "model": entry.draft.origin.model}
    return row | ({"canary": canary} if canary else {})


def climaqa_columns(kind: Kind) -> tuple[str, ...]:
    """Columns of ClimaQA's table of a kind, in their order."""
    options = ("Options",) if kind == "mcq" else ()
    labels = () if kind == "cloze" else ("Complexity", "Validation")
    return ("Question", *options, "Answer", "Context", *labels)


def climaqa_row(entry: Entry) -> dict[str, str]:
    """A question in ClimaQA's columns: options as ``a) ...`` joined by a line of 20 dashes.

    ``Validation`` is ``VALID`` where an expert or the validator accepted the question, else empty.
    """
    question, draft = entry.question, entry.draft
    answer = question.answer
    row = {"Question": question.question, "Context": question.context or ""}
    if question.kind == "mcq":
        assert question.correct is not None
        lettered = [f"{option_letter(place)}) {text}" for place, text in enumerate(question.options)]
        row["Options"] = f"\n{_DASHES}\n".join(lettered)
        answer = option_letter(question.correct)
        if any(option.strip().casefold() in LETTERS for option in question.options):
            answer = lettered[question.correct]  # a letter alone could also be an option's text
    row["Answer"] = answer
    if question.kind != "cloze":
        valid = draft and any(one.step in ("expert", "validate") and one.accepted for one in draft.decisions)
        row |= {"Complexity": (question.level or "").upper(), "Validation": "VALID" if valid else ""}
    return {name: row[name] for name in climaqa_columns(question.kind)}


def as_json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def as_table(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], note: str | None) -> bytes:
    """Rows as a Parquet file with the columns named in ``types``, each ``string`` or ``strings``.

    A ``note`` is kept in the file's metadata, beside the table.
    """
    import pyarrow
    import pyarrow.parquet

    text = pyarrow.string()
    fields = [(name, text if kind == "string" else pyarrow.list_(text)) for name, kind in types.items()]
    schema = pyarrow.schema(fields, metadata={"canary": note} if note else None)
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=schema), sink)
    return bytes(sink.getvalue().to_pybytes())


_NAMESPACE = uuid.UUID("5d0a1f6e-3f0b-5c57-9a43-7f5bb0a2c6d1")
_SENTENCE = "This text belongs to a benchmark and must not be in training data. Canary: climassay-canary-{guid}"
_FOUND = re.compile(r"climassay-canary-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)


def canary_guid(name: str, content: str) -> str:
    """The GUID of a dataset: always the same for the same name and content."""
    return str(uuid.uuid5(_NAMESPACE, f"{name}\n{content}"))


def canary_sentence(guid: str) -> str:
    """The sentence that carries a GUID."""
    return _SENTENCE.format(guid=guid)


def canaries(text: str) -> tuple[str, ...]:
    """GUIDs of all canaries of a text, each once, in the order they appear."""
    return tuple(dict.fromkeys(result.lower() for result in _FOUND.findall(text)))


def contains_canary(text: str) -> bool:
    """Whether a text holds a canary of any dataset that climassay published."""
    return _FOUND.search(text) is not None


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
