"""The README of a dataset: a card that hubs understand, with all that a user must know."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from climassay import __version__
from climassay.generation.draft import Draft, Step
from climassay.generation.publishing.entries import SPLITS, Entry, Split, SplitPlan, canary_sentence
from climassay.questions import KINDS, TYPES, Kind
from climassay.reporting import counted
from climassay.statistics import cohen_kappa, krippendorff_alpha

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a card tells."""

    name: str
    entries: Sequence[Entry]
    splits: Sequence[Split]
    """The split of each entry."""
    drafts: Sequence[Draft]
    """All drafts, the rejected ones included; none where the questions were not generated here."""
    plan: SplitPlan
    licence: str | None
    """Licence of the questions."""
    canary: str | None
    """GUID."""
    waiting: int
    """Accepted cloze statements without a term."""
    more: str = ""
    """Further sections."""
    configs: Sequence[Mapping[str, Any]] = ()
    """Further configurations for ``datasets``."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds that there are."""
        there = {entry.question.kind for entry in self.entries}
        return tuple(kind for kind in KINDS if kind in there)


def dataset_card(facts: CardFacts) -> str:
    """Text of the README."""
    parts = [
        _head(facts),
        f"# {facts.name}\n\n{_opening(facts)}",
        _counts(facts),
        _loading(facts),
        _provenance(facts),
        _sources(facts),
        _removed(facts.drafts),
        _agreement(facts.drafts),
        _splits(facts),
        _limits(facts),
        _citation(facts),
        facts.more,
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def _head(facts: CardFacts) -> str:
    import yaml

    configs: list[dict[str, Any]] = [
        {"config_name": kind, "data_files": [{"split": split, "path": f"data/{kind}/{split}.parquet"} for split in own]}
        for kind, own in filled_splits(facts.entries, facts.splits).items()
    ]
    configs[0]["default"] = True
    head: dict[str, Any] = {
        "pretty_name": facts.name,
        "language": ["en"],
        "tags": ["climate", "benchmark"],
        "task_categories": [TYPES[kind].category for kind in facts.kinds],
        "size_categories": [next((word for most, word in _SIZES if len(facts.entries) < most), "n>1M")],
    }
    if facts.licence:
        head["license"] = facts.licence
    head["configs"] = [*configs, *(dict(config) for config in facts.configs)]
    return f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=120)}---\n"


def filled_splits(entries: Sequence[Entry], splits: Sequence[Split]) -> dict[Kind, list[Split]]:
    """Splits that have questions of each kind; only they are offered, since an empty split cannot be loaded."""
    there = {(entry.question.kind, split) for entry, split in zip(entries, splits, strict=True)}
    kinds = [kind for kind in KINDS if any((kind, split) in there for split in SPLITS)]
    return {kind: [split for split in SPLITS if (kind, split) in there] for kind in kinds}


def _opening(facts: CardFacts) -> str:
    kinds = Counter(entry.question.kind for entry in facts.entries)
    words = ", ".join(f"{kinds[kind]} {kind}" for kind in facts.kinds)
    text = f"{counted(len(facts.entries), 'question')} ({words}), published with climassay {__version__}.\n"
    if facts.waiting:
        left = counted(facts.waiting, "accepted cloze statement")
        text += f"\nLeft out, because nobody has chosen the term to mask yet: {left}.\n"
    if facts.canary:
        text += f"\n{canary_sentence(facts.canary)}\n"
    return text


def _counts(facts: CardFacts) -> str:
    strata: dict[tuple[str, str | None, str], Counter[Split]] = defaultdict(Counter)
    for entry, split in zip(facts.entries, facts.splits, strict=True):
        strata[(entry.question.kind, entry.question.level, entry.book)][split] += 1
    rows = [
        [kind, level or "-", book or "-", *(str(strata[kind, level, book][split]) for split in SPLITS)]
        for kind, level, book in sorted(strata, key=lambda one: (KINDS.index(one[0]), one[1] or "", one[2]))
    ]
    totals = Counter(facts.splits)
    rows.append(["all", "", "", *(str(totals[split]) for split in SPLITS)])
    return "## Questions\n\n" + _table(["kind", "level", "book", *SPLITS], rows)


def _loading(facts: CardFacts) -> str:
    kind = facts.kinds[0]
    drafts = (
        "- `drafts.jsonl`: every question that was generated, the rejected ones too, with its passages, model,\n"
        "  prompts, seed and all that was decided about it. It carries no canary.\n"
        if facts.drafts
        else ""
    )
    return f"""\
## Files

```python
from datasets import load_dataset

load_dataset("PATH_OR_NAME", "{kind}")
```

- `data/KIND/SPLIT.parquet`, and the same as JSON Lines in `jsonl/`: the questions with options, answer, passage, source
  and licence.
- `climaqa/KIND/SPLIT.parquet` and `.jsonl`: the same in the columns of the published ClimaQA data set.
{drafts}- `dataset.json`: what this folder holds, with hashes.

`climassay evaluate mcq data/mcq/test.parquet` puts the questions to a model.
"""


def _provenance(facts: CardFacts) -> str:
    """Models and prompts that wrote the questions, those of most questions first."""
    seeds: dict[tuple[str, str, str, tuple[tuple[str, str], ...]], list[int]] = defaultdict(list)
    edited = 0
    for entry in facts.entries:
        if (draft := entry.draft) is not None:
            origin = draft.origin
            seeds[(origin.model, origin.fingerprint, origin.dtype, origin.prompts)].append(origin.seed)
            edited += any(one.step == "expert" and one.replaced is not None for one in draft.decisions)
    if not seeds:
        return "## How they were written\n\nThe questions were given; how they were written is not recorded here.\n"
    rows = []
    for one in sorted(seeds, key=lambda one: (-len(seeds[one]), one)):
        model, fingerprint, dtype, prompts = one
        named = ", ".join(f"{name} `{digest[:12]}`" for name, digest in prompts)
        rows.append([model, fingerprint[:12], dtype or "-", named, str(len(seeds[one])), str(len(set(seeds[one])))])
    table = _table(["model", "fingerprint", "number format", "prompts (SHA-256)", "questions", "seeds"], rows, words=4)
    note = (
        f"\nExperts changed the words or chose the term of {edited} of them; `drafts.jsonl` keeps the words before.\n"
        if edited
        else ""
    )
    return f"## How they were written\n\n{table}{note}"


def _sources(facts: CardFacts) -> str:
    """Documents that questions rest on, those of most questions first."""
    main: Counter[str] = Counter()
    retrieved: Counter[str] = Counter()
    about: dict[str, tuple[str | None, str | None]] = {}
    for entry in facts.entries:
        main[entry.book or _UNKNOWN] += 1
        about.setdefault(entry.book or _UNKNOWN, (None, None))
        retrieved.update({passage.document for passage in entry.passages[1:]})
        for passage in entry.passages:
            licence, url = about.get(passage.document, (None, None))
            about[passage.document] = (licence or passage.licence, url or passage.url)
    rows = []
    for title in sorted(about, key=lambda title: (-main[title], -retrieved[title], title)):
        licence, url = about[title]
        shown = f"[{title}]({url})" if url else title
        rows.append([shown, licence or _UNKNOWN, str(main[title]), str(retrieved[title])])
    unknown = sum(licence is None for licence, _ in about.values())
    note = (
        f"\nThe licence of {unknown} of {len(about)} sources is not known. The tables quote passages of every source:"
        " make sure that you may pass them on.\n"
        if unknown
        else ""
    )
    own = facts.licence or f"{_UNKNOWN}; name one before you pass the dataset on"
    table = _table(["source", "licence", "main", "retrieved"], rows, words=2)
    return f"## Sources and licences\n\n{table}{note}\nLicence of the questions: {own}.\n"


def _removed(drafts: Sequence[Draft]) -> str:
    """What removed drafts, the commonest first within each step; failures to write count as the step ``write``."""
    if not drafts:
        return ""
    first: Counter[tuple[str, str]] = Counter()
    every: Counter[tuple[str, str]] = Counter()
    for draft in drafts:
        if draft.error is not None:
            first[("write", "failed")] += 1
            every[("write", "failed")] += 1
            continue
        every.update({(one.step, one.reason or one.by) for one in draft.decisions if one.accepted is False})
        if (stands := draft.rejection) is not None:
            first[(stands.step, stands.reason or stands.by)] += 1
    steps = get_args(Step)
    ranked = sorted(every, key=lambda one: (steps.index(one[0]), -every[one], one[1]))
    out = first.total()
    text = f"## What was removed\n\nOf {len(drafts)} drafts {out} were rejected or failed ({out / len(drafts):.0%}).\n"
    rows = [[*one, str(first[one]), str(every[one])] for one in ranked]
    return text + ("\n" + _table(["step", "reason", "removed by it", "said of"], rows, words=2) if rows else "")


def _agreement(drafts: Sequence[Draft]) -> str:
    """Agreement of the annotators with each other, and of each validator with the experts' last word."""
    experts: list[dict[str, bool]] = []
    """Each annotator's last verdict on each draft, the latest last."""
    for draft in drafts:
        said: dict[str, bool] = {}
        for one in draft.decisions:
            if one.step == "expert" and one.accepted is not None:
                said.pop(one.by, None)
                said[one.by] = one.accepted
        experts.append(said)
    rows = []

    def compare(between: str, first: Sequence[bool], second: Sequence[bool]) -> None:
        same = sum(one == other for one, other in zip(first, second, strict=True)) / len(first)
        kappa = cohen_kappa(first, second)
        rows.append([between, str(len(first)), f"{same:.0%}", "Cohen's kappa", f"{kappa:.2f}"])

    names = sorted({name for said in experts for name in said})
    shared = [said for said in experts if len(said) > 1]
    if shared and len(names) == 2:
        compare(f"{names[0]} and {names[1]}", *([said[name] for said in shared] for name in names))
    elif shared:
        same = sum(len(set(said.values())) == 1 for said in shared) / len(shared)
        alpha = krippendorff_alpha([[said.get(name) for said in shared] for name in names])
        label = f"{len(names)} annotators"
        rows.append([label, str(len(shared)), f"{same:.0%}", "Krippendorff's alpha", f"{alpha:.2f}"])
    for name in sorted({one.by for draft in drafts for one in draft.decisions if one.step == "validate"}):
        judged = []
        for draft, said in zip(drafts, experts, strict=True):
            verdicts = [one.accepted for one in draft.decisions if one.step == "validate" and one.by == name]
            if said and verdicts and verdicts[-1] is not None:
                judged.append((list(said.values())[-1], verdicts[-1]))
        if judged:
            compare(f"{name} and the experts", *zip(*judged, strict=True))
    if not rows:
        return ""
    return "## Agreement\n\n" + _table(["between", "questions", "same verdict", "coefficient", "value"], rows)


def _splits(facts: CardFacts) -> str:
    parts = ", ".join(f"{part:g}" for part in facts.plan.parts)
    return f"""\
## Splits

Train, dev and test ({parts}; seed {facts.plan.seed}) share no main passage, no overlapping passages of one document and
no question. A further passage that was retrieved for a question of one split may be another question's main passage.
"""


def _limits(facts: CardFacts) -> str:
    checked = any(one.step == "expert" for draft in facts.drafts for one in draft.decisions)
    said = (
        "Experts judged some of the questions; `drafts.jsonl` says which."
        if checked
        else "No expert judged these questions." if facts.drafts else "Who judged these questions is not recorded here."
    )  # fmt: skip
    return f"""\
## Limits

{said}

A question is true to its passage at best: where the source is wrong or has been overtaken, so is the answer. Scores say
how well a model answers questions from these sources, not whether it can be trusted on climate in general. BLEU and
BERTScore favour the model that wrote the questions. Keep the test split out of training, and its canary in place.
"""


def _citation(facts: CardFacts) -> str:
    return f"""\
## Citation

Cite this dataset by its name ({facts.name}) and the address you have it from, the sources above, and the method: Liu et
al., *ClimaQA: An Automated Evaluation Framework for Climate Question Answering Models*, ICLR 2025.
"""


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], words: int | None = None) -> str:
    """A Markdown table; columns behind the first ``words`` are numbers (by default those that are in every row)."""
    numbers = [
        column >= words if words is not None else all(row[column].rstrip("%").isdigit() for row in rows)
        for column in range(len(headings))
    ]
    lines = [headings, ["--:" if number else "---" for number in numbers], *rows]
    cells = ([" ".join(cell.replace("|", "\\|").split()) for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)
