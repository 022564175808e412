"""What is to be told of a dataset: counts, what each check removed, agreement, licences, models."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft
from climassay.generation.publishing.entries import Entry
from climassay.generation.publishing.splitting import Split
from climassay.statistics import cohen_kappa, krippendorff_alpha


@dataclass(frozen=True, slots=True)
class Removal:
    """What one check, model or person rejected."""

    step: str
    reason: str
    first: int
    """Drafts for which this was the decision that stood against them."""
    any: int
    """Drafts that it was said of at all."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two or more judges of validity agree."""

    between: str
    n: int
    """Drafts that two judges or more decided about."""
    agreement: float
    """Share of these drafts on which all of them say the same."""
    coefficient: str
    """``Cohen's kappa`` or ``Krippendorff's alpha``."""
    value: float


@dataclass(frozen=True, slots=True)
class Source:
    """A document that published questions rest on."""

    title: str
    licence: str | None
    """None where it is not known."""
    url: str | None
    main: int
    """Questions whose main passage it gave."""
    retrieved: int
    """Questions that it gave a further passage to."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """One way in which published questions were written."""

    model: str
    fingerprint: str
    dtype: str
    """Number format that a local model computed in; empty where it is not known."""
    prompts: tuple[tuple[str, str], ...]
    questions: int
    seeds: int
    """Different seeds of the requests; each question's is in its draft."""


def count_strata(
    entries: Sequence[Entry], splits: Sequence[Split]
) -> dict[tuple[str, str | None, str], Counter[Split]]:
    """Questions of each kind, level and book, by split."""
    counts: dict[tuple[str, str | None, str], Counter[Split]] = defaultdict(Counter)
    for entry, split in zip(entries, splits, strict=True):
        counts[(entry.question.kind, entry.question.level, entry.book)][split] += 1
    return dict(counts)


def removals(drafts: Sequence[Draft]) -> list[Removal]:
    """What removed drafts, the commonest first within each step; failures to write count as the step ``write``."""
    first: Counter[tuple[str, str]] = Counter()
    every: Counter[tuple[str, str]] = Counter()
    for draft in drafts:
        if draft.error is not None:
            first[("write", "failed")] += 1
            every[("write", "failed")] += 1
            continue
        said = {_named(decision) for decision in draft.decisions if decision.accepted is False}
        every.update(said)
        if draft.rejection is not None:
            first[_named(draft.rejection)] += 1
    order = ("write", "evolve", "screen", "consistency", "expert", "validate", "mask", "deduplicate")
    ranked = sorted(every, key=lambda one: (order.index(one[0]), -every[one], one[1]))
    return [Removal(*one, first[one], every[one]) for one in ranked]


def _named(decision: Decision) -> tuple[str, str]:
    return decision.step, decision.reason or decision.by


def agreements(drafts: Sequence[Draft]) -> list[Agreement]:
    """Agreement of the annotators with each other, and of each validator with the experts' last word."""
    experts = [_experts(draft) for draft in drafts]
    found = []
    names = sorted({name for said in experts for name in said})
    if len(names) > 1:
        found += _among(names, experts)
    validators = sorted({one.by for draft in drafts for one in draft.decisions if one.step == "validate"})
    for name in validators:
        pairs = [(said, _validated(draft, name)) for draft, said in zip(drafts, experts, strict=True) if said]
        judged = [(list(said.values())[-1], verdict) for said, verdict in pairs if verdict is not None]
        if judged:
            first, second = zip(*judged, strict=True)
            found.append(_pair(f"{name} and the experts", first, second))
    return found


def _experts(draft: Draft) -> dict[str, bool]:
    """Each annotator's last verdict, the latest last."""
    said: dict[str, bool] = {}
    for one in draft.decisions:
        if one.step == "expert" and one.accepted is not None:
            said.pop(one.by, None)
            said[one.by] = one.accepted
    return said


def _validated(draft: Draft, name: str) -> bool | None:
    verdicts = [one.accepted for one in draft.decisions if one.step == "validate" and one.by == name]
    return verdicts[-1] if verdicts else None


def _among(names: Sequence[str], experts: Sequence[Mapping[str, bool]]) -> list[Agreement]:
    shared = [said for said in experts if len(said) > 1]
    if not shared:
        return []
    if len(names) == 2:
        first, second = ([said[name] for said in shared] for name in names)
        return [_pair(f"{names[0]} and {names[1]}", first, second)]
    same = sum(len(set(said.values())) == 1 for said in shared) / len(shared)
    try:
        alpha = krippendorff_alpha([[said.get(name) for said in shared] for name in names])
    except InputError:  # pragma: no cover - shared drafts have two verdicts each
        return []
    return [Agreement(f"{len(names)} annotators", len(shared), same, "Krippendorff's alpha", alpha)]


def _pair(between: str, first: Sequence[bool], second: Sequence[bool]) -> Agreement:
    same = sum(one == other for one, other in zip(first, second, strict=True)) / len(first)
    return Agreement(between, len(first), same, "Cohen's kappa", cohen_kappa(first, second))


def sources(entries: Sequence[Entry]) -> list[Source]:
    """Documents that questions rest on, those of most questions first."""
    main: Counter[str] = Counter()
    retrieved: Counter[str] = Counter()
    about: dict[str, tuple[str | None, str | None]] = {}
    for entry in entries:
        main[entry.book or "unknown"] += 1
        about.setdefault(entry.book or "unknown", (None, None))
        retrieved.update({passage.document for passage in entry.passages[1:]})
        for passage in entry.passages:
            licence, url = about.get(passage.document, (None, None))
            about[passage.document] = (licence or passage.licence, url or passage.url)
    ranked = sorted(about, key=lambda title: (-main[title], -retrieved[title], title))
    return [Source(title, *about[title], main[title], retrieved[title]) for title in ranked]


def provenances(entries: Sequence[Entry]) -> list[Provenance]:
    """Models and prompts that wrote the questions, those of most questions first."""
    seeds: dict[tuple[str, str, str, tuple[tuple[str, str], ...]], list[int]] = defaultdict(list)
    for entry in entries:
        if entry.draft is not None:
            origin = entry.draft.origin
            seeds[(origin.model, origin.fingerprint, origin.dtype, origin.prompts)].append(origin.seed)
    ranked = sorted(seeds, key=lambda one: (-len(seeds[one]), one))
    return [Provenance(*one, len(seeds[one]), len(set(seeds[one]))) for one in ranked]
