"""Card of a published dataset: a README that describes its contents, provenance, licences and agreement."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, get_args

from climassay import __version__
from climassay.generation.draft import Draft, DraftStep
from climassay.generation.publishing.entries import DatasetEntry, canary_sentence
from climassay.generation.publishing.splits import SPLITS, Split, SplitPlan
from climassay.questions import KINDS, TYPES, Kind, Question
from climassay.reporting import counted
from climassay.statistics import cohen_kappa, krippendorff_alpha

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PreparedDataset:
    """Dataset with its splits, ready to be written."""

    name: str
    entries: Sequence[DatasetEntry]
    splits: Sequence[Split]
    """Split of each entry, in the order of ``entries``."""
    drafts: Sequence[Draft]
    """All drafts, including rejected ones; empty if the questions do not come from drafts."""
    plan: SplitPlan
    licence: str | None
    """Licence of the questions."""
    canary: str | None
    """GUID of the canary; None without a canary."""
    without_term: int
    """Number of accepted cloze statements that are not published because they have no term."""
    content_sha256: str

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of the published questions, in the order of :data:`~climassay.questions.KINDS`."""
        kinds = {entry.question.kind for entry in self.entries}
        return tuple(kind for kind in KINDS if kind in kinds)

    @property
    def counts(self) -> dict[Kind, dict[Split, int]]:
        """Number of questions by kind and split, without empty splits, because these cannot be loaded."""
        counts = Counter(zip((entry.question.kind for entry in self.entries), self.splits, strict=True))
        return {kind: {split: counts[kind, split] for split in SPLITS if counts[kind, split]} for kind in self.kinds}

    def select_entries(self, kind: Kind, split: Split) -> list[DatasetEntry]:
        """Return the entries of one kind and split."""
        pairs = zip(self.entries, self.splits, strict=True)
        return [entry for entry, entry_split in pairs if entry_split == split and entry.question.kind == kind]

    def questions(self, split: Split | None = None) -> tuple[Question, ...]:
        """Return all published questions, or only those of one split."""
        pairs = zip(self.entries, self.splits, strict=True)
        return tuple(entry.question for entry, entry_split in pairs if split in (None, entry_split))


def dataset_card(data: PreparedDataset, extra: str = "", configs: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the text of a dataset's README, in Markdown with a YAML header for the Hugging Face Hub.

    ``extra`` are additional sections; ``configs`` are additional configurations for the package ``datasets``.
    """
    import yaml
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    kind_configs: list[dict[str, Any]] = [
        {
            "config_name": kind,
            "data_files": [{"split": split, "path": f"data/{kind}/{split}.parquet"} for split in splits],
        }
        for kind, splits in data.counts.items()
    ]
    kind_configs[0]["default"] = True
    header: dict[str, Any] = {
        "pretty_name": data.name,
        "language": ["en"],
        "tags": ["climate", "benchmark"],
        "task_categories": [TYPES[kind].category for kind in data.kinds],
        "size_categories": [next((name for limit, name in _SIZES if len(data.entries) < limit), "n>1M")],
    }
    if data.licence:
        header["license"] = data.licence
    header["configs"] = [*kind_configs, *(dict(config) for config in configs)]
    strata: dict[tuple[str, str | None, str], Counter[Split]] = defaultdict(Counter)
    for entry, split in zip(data.entries, data.splits, strict=True):
        strata[(entry.question.kind, entry.question.level, entry.book)][split] += 1
    rows = [
        [kind, level or "-", book or "-", *(str(strata[kind, level, book][split]) for split in SPLITS)]
        for kind, level, book in sorted(strata, key=lambda key: (KINDS.index(key[0]), key[1] or "", key[2]))
    ]
    totals = Counter(data.splits)
    rows.append(["all", "", "", *(str(totals[split]) for split in SPLITS)])
    template = resources.files(__package__).joinpath("card.md.j2").read_text(encoding="utf-8")
    # Markdown needs no escaping.
    environment = ImmutableSandboxedEnvironment(
        autoescape=False, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(template).render(
        data=data,
        head=yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=120),
        questions=counted(len(data.entries), "question"),
        kinds=", ".join(f"{sum(counts.values())} {kind}" for kind, counts in data.counts.items()),
        version=__version__,
        without_term=counted(data.without_term, "accepted cloze statement"),
        canary=data.canary and canary_sentence(data.canary),
        counts=_markdown_table(["kind", "level", "book", *SPLITS], rows),
        sections=(
            _provenance_section(data),
            _sources_section(data),
            _rejections_section(data.drafts),
            _agreement_section(data.drafts),
        ),
        parts=", ".join(f"{size:g}" for size in data.plan.parts),
        judged=any(decision.step == "expert" for draft in data.drafts for decision in draft.decisions),
        extra=extra.rstrip("\n"),
    )


def _provenance_section(data: PreparedDataset) -> str:
    seeds: dict[tuple[str, str, str, tuple[tuple[str, str], ...]], list[int]] = defaultdict(list)
    n_edited = 0
    for entry in data.entries:
        if (draft := entry.draft) is not None:
            origin = draft.origin
            seeds[(origin.model, origin.fingerprint, origin.dtype, origin.prompts)].append(origin.seed)
            expert_decisions = (decision for decision in draft.decisions if decision.step == "expert")
            n_edited += any(decision.replaced is not None for decision in expert_decisions)
    if not seeds:
        return "## How they were written\n\nHow the questions were written is not recorded here.\n"
    rows = []
    for key, key_seeds in sorted(seeds.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        model, fingerprint, dtype, prompts = key
        names = ", ".join(f"{name} `{digest[:12]}`" for name, digest in prompts)
        rows.append([model, fingerprint[:12], dtype or "-", names, str(len(key_seeds)), str(len(set(key_seeds)))])
    table = _markdown_table(
        ["model", "fingerprint", "number format", "prompts (SHA-256)", "questions", "seeds"], rows, n_words=4
    )
    note = (
        f"\nExperts changed the words or chose the term of {n_edited} of them; `drafts.jsonl` has the original words.\n"
        if n_edited
        else ""
    )
    return f"## How they were written\n\n{table}{note}"


def _sources_section(data: PreparedDataset) -> str:
    main_counts: Counter[str] = Counter()
    retrieved_counts: Counter[str] = Counter()
    licences: dict[str, tuple[str | None, str | None]] = {}
    """Licence and URL by title."""
    for entry in data.entries:
        main_counts[entry.book or _UNKNOWN] += 1
        licences.setdefault(entry.book or _UNKNOWN, (None, None))
        retrieved_counts.update({passage.document for passage in entry.passages[1:]})
        for passage in entry.passages:
            licence, url = licences.get(passage.document, (None, None))
            licences[passage.document] = (licence or passage.licence, url or passage.url)
    rows = []
    for title in sorted(licences, key=lambda title: (-main_counts[title], -retrieved_counts[title], title)):
        licence, url = licences[title]
        link = f"[{title}]({url})" if url else title
        rows.append([link, licence or _UNKNOWN, str(main_counts[title]), str(retrieved_counts[title])])
    n_unknown = sum(licence is None for licence, _ in licences.values())
    note = (
        f"\nThe licence of {n_unknown} of {len(licences)} sources is not known. The tables quote passages of every"
        " source: make sure that you may pass them on.\n"
        if n_unknown
        else ""
    )
    licence_text = data.licence or f"{_UNKNOWN}; name one before you pass the dataset on"
    table = _markdown_table(["source", "licence", "main", "retrieved"], rows, n_words=2)
    return f"## Sources and licences\n\n{table}{note}\nLicence of the questions: {licence_text}.\n"


def _rejections_section(drafts: Sequence[Draft]) -> str:
    """Return a section on the reasons for rejection by step; failed calls are counted under the step ``write``."""
    if not drafts:
        return ""
    first_counts: Counter[tuple[str, str]] = Counter()
    all_counts: Counter[tuple[str, str]] = Counter()
    for draft in drafts:
        if draft.error is not None:
            first_counts[("write", "failed")] += 1
            all_counts[("write", "failed")] += 1
            continue
        rejections = (decision for decision in draft.decisions if decision.accepted is False)
        all_counts.update({(decision.step, decision.reason or decision.by) for decision in rejections})
        if (rejection := draft.rejection) is not None:
            first_counts[(rejection.step, rejection.reason or rejection.by)] += 1
    steps = get_args(DraftStep)
    reasons = sorted(all_counts, key=lambda reason: (steps.index(reason[0]), -all_counts[reason], reason[1]))
    n_removed = first_counts.total()
    percentage = f"{n_removed / len(drafts):.0%}"
    text = f"## What was removed\n\nOf {len(drafts)} drafts {n_removed} were rejected or failed ({percentage}).\n"
    rows = [[*reason, str(first_counts[reason]), str(all_counts[reason])] for reason in reasons]
    return text + (
        "\n" + _markdown_table(["step", "reason", "first reason", "any reason"], rows, n_words=2) if rows else ""
    )


def _agreement_section(drafts: Sequence[Draft]) -> str:
    """Return a section on the annotators' agreement, and on each validator's agreement with the experts."""
    verdicts_by_draft: list[dict[str, bool]] = []
    """For each draft: the last verdict by annotator, the latest one last."""
    for draft in drafts:
        verdicts: dict[str, bool] = {}
        for decision in draft.decisions:
            if decision.step == "expert" and decision.accepted is not None:
                verdicts.pop(decision.by, None)
                verdicts[decision.by] = decision.accepted
        verdicts_by_draft.append(verdicts)
    rows = []

    def add_row(raters: str, first_verdicts: Sequence[bool], second_verdicts: Sequence[bool]) -> None:
        raw_agreement = sum(
            first_verdict == second_verdict
            for first_verdict, second_verdict in zip(first_verdicts, second_verdicts, strict=True)
        ) / len(first_verdicts)
        kappa = cohen_kappa(first_verdicts, second_verdicts)
        rows.append([raters, str(len(first_verdicts)), f"{raw_agreement:.0%}", "Cohen's kappa", f"{kappa:.2f}"])

    names = sorted({name for verdicts in verdicts_by_draft for name in verdicts})
    shared_verdicts = [verdicts for verdicts in verdicts_by_draft if len(verdicts) > 1]
    if shared_verdicts and len(names) == 2:
        add_row(f"{names[0]} and {names[1]}", *([verdicts[name] for verdicts in shared_verdicts] for name in names))
    elif shared_verdicts:
        n_items = len(shared_verdicts)
        raw_agreement = sum(len(set(verdicts.values())) == 1 for verdicts in shared_verdicts) / n_items
        alpha = krippendorff_alpha([[verdicts.get(name) for verdicts in shared_verdicts] for name in names])
        label = f"{len(names)} annotators"
        rows.append([label, str(n_items), f"{raw_agreement:.0%}", "Krippendorff's alpha", f"{alpha:.2f}"])
    validations = [[decision for decision in draft.decisions if decision.step == "validate"] for draft in drafts]
    for name in sorted({decision.by for decisions in validations for decision in decisions}):
        verdict_pairs = []
        for decisions, verdicts in zip(validations, verdicts_by_draft, strict=True):
            results = [decision.accepted for decision in decisions if decision.by == name]
            if verdicts and results and results[-1] is not None:
                verdict_pairs.append((list(verdicts.values())[-1], results[-1]))
        if verdict_pairs:
            add_row(f"{name} and the experts", *zip(*verdict_pairs, strict=True))
    if not rows:
        return ""
    return "## Agreement\n\n" + _markdown_table(["between", "questions", "same verdict", "coefficient", "value"], rows)


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]], n_words: int | None = None) -> str:
    """Return a Markdown table; all columns after the first ``n_words`` are aligned right.

    By default, the columns whose cells are all numbers are aligned right.
    """
    is_right_aligned = [
        column >= n_words if n_words is not None else all(row[column].rstrip("%").isdigit() for row in rows)
        for column in range(len(headings))
    ]
    all_rows = [headings, ["--:" if align_right else "---" for align_right in is_right_aligned], *rows]
    cells = ([" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in all_rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)
