"""Publishing a dataset as a folder of tables, drafts and a card; reading it back, and putting it on a hub.

The card is a README that hubs understand, with all that a user must know.
"""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from climassay import __version__
from climassay.errors import InputError, MissingExtraError
from climassay.generation.draft import Draft, DraftStep, read_drafts
from climassay.generation.publishing.entries import (
    SHARES,
    SPLITS,
    Entry,
    Split,
    SplitPlan,
    as_json_lines,
    as_table,
    canaries,
    canary_guid,
    canary_sentence,
    climaqa_columns,
    climaqa_row,
    columns,
    content_sha256,
    entries_of,
    placement_of,
    question_row,
    split_placements,
    waiting,
)
from climassay.io import MOST_BYTES, parse_json, read_text, read_whole, remove_files, write_file, write_files
from climassay.questions import KINDS, TYPES, Kind, Question, QuestionSet, join_questions, read_questions
from climassay.questions.formats import connection_errors
from climassay.reporting import counted
from climassay.statistics import cohen_kappa, krippendorff_alpha

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PreparedDataset:
    """A dataset that is ready to be written, and what its card tells."""

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
    content_sha256: str

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds that there are."""
        there = {entry.question.kind for entry in self.entries}
        return tuple(kind for kind in KINDS if kind in there)

    @property
    def counts(self) -> dict[Kind, dict[Split, int]]:
        """Questions by kind and split; empty splits are left out, since they cannot be loaded."""
        counts = Counter(zip((entry.question.kind for entry in self.entries), self.splits, strict=True))
        return {kind: {split: counts[kind, split] for split in SPLITS if counts[kind, split]} for kind in self.kinds}

    def members(self, kind: Kind, split: Split) -> list[Entry]:
        """Entries of a kind that are in a split."""
        pairs = zip(self.entries, self.splits, strict=True)
        return [entry for entry, own in pairs if own == split and entry.question.kind == kind]

    def questions(self, split: Split | None = None) -> tuple[Question, ...]:
        """Published questions, those of one split where it is named."""
        pairs = zip(self.entries, self.splits, strict=True)
        return tuple(entry.question for entry, own in pairs if split in (None, own))


def dataset_card(data: PreparedDataset, more: str = "", configs: Sequence[Mapping[str, Any]] = ()) -> str:
    """Text of the README.

    Args:
        data: What is published.
        more: Further sections.
        configs: Further configurations for ``datasets``.
    """
    import yaml
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    own: list[dict[str, Any]] = [
        {"config_name": kind, "data_files": [{"split": one, "path": f"data/{kind}/{one}.parquet"} for one in splits]}
        for kind, splits in data.counts.items()
    ]
    own[0]["default"] = True
    head: dict[str, Any] = {
        "pretty_name": data.name,
        "language": ["en"],
        "tags": ["climate", "benchmark"],
        "task_categories": [TYPES[kind].category for kind in data.kinds],
        "size_categories": [next((word for most, word in _SIZES if len(data.entries) < most), "n>1M")],
    }
    if data.licence:
        head["license"] = data.licence
    head["configs"] = [*own, *(dict(config) for config in configs)]
    strata: dict[tuple[str, str | None, str], Counter[Split]] = defaultdict(Counter)
    for entry, split in zip(data.entries, data.splits, strict=True):
        strata[(entry.question.kind, entry.question.level, entry.book)][split] += 1
    rows = [
        [kind, level or "-", book or "-", *(str(strata[kind, level, book][split]) for split in SPLITS)]
        for kind, level, book in sorted(strata, key=lambda one: (KINDS.index(one[0]), one[1] or "", one[2]))
    ]
    totals = Counter(data.splits)
    rows.append(["all", "", "", *(str(totals[split]) for split in SPLITS)])
    template = resources.files(__package__).joinpath("card.md.j2").read_text(encoding="utf-8")
    # Markdown, in which nothing is escaped.
    environment = ImmutableSandboxedEnvironment(
        autoescape=False, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(template).render(
        data=data,
        head=yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=120),
        questions=counted(len(data.entries), "question"),
        kinds=", ".join(f"{sum(counts.values())} {kind}" for kind, counts in data.counts.items()),
        version=__version__,
        waiting=counted(data.waiting, "accepted cloze statement"),
        canary=data.canary and canary_sentence(data.canary),
        counts=_table(["kind", "level", "book", *SPLITS], rows),
        sections=(_provenance(data), _sources(data), _removed(data.drafts), _agreement(data.drafts)),
        parts=", ".join(f"{part:g}" for part in data.plan.parts),
        judged=any(one.step == "expert" for draft in data.drafts for one in draft.decisions),
        more=more.rstrip("\n"),
    )


def _provenance(data: PreparedDataset) -> str:
    """Models and prompts that wrote the questions, those of most questions first."""
    seeds: dict[tuple[str, str, str, tuple[tuple[str, str], ...]], list[int]] = defaultdict(list)
    edited = 0
    for entry in data.entries:
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


def _sources(data: PreparedDataset) -> str:
    """Documents that questions rest on, those of most questions first."""
    main: Counter[str] = Counter()
    retrieved: Counter[str] = Counter()
    about: dict[str, tuple[str | None, str | None]] = {}
    for entry in data.entries:
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
    own = data.licence or f"{_UNKNOWN}; name one before you pass the dataset on"
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
    steps = get_args(DraftStep)
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


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], words: int | None = None) -> str:
    """A Markdown table; columns behind the first ``words`` are numbers (by default those that are in every row)."""
    numbers = [
        column >= words if words is not None else all(row[column].rstrip("%").isdigit() for row in rows)
        for column in range(len(headings))
    ]
    lines = [headings, ["--:" if number else "---" for number in numbers], *rows]
    cells = ([" ".join(cell.replace("|", "\\|").split()) for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


FORMAT = "climassay-dataset"
VERSION = 1
MANIFEST = "dataset.json"
UNFINISHED = ".climassay-unfinished"
"""Stands in a folder while a dataset is written into it, and says its name: what a killed process leaves is its own."""
DRAFTS = "drafts.jsonl"
_BENCHMARK = "benchmark.json"
"""Manifest of a benchmark for other frameworks, which may lie in the same folder."""


@dataclass(frozen=True, slots=True)
class PublishedDataset:
    """What was written."""

    folder: Path
    name: str
    content_sha256: str
    """Over the words of the questions."""
    canary: str | None
    """GUID; None where the dataset has none."""
    counts: Mapping[Kind, Mapping[Split, int]]
    """Published questions."""
    rejected: int
    """Drafts that are in ``drafts.jsonl`` only: rejected or failed ones."""
    waiting: int
    """Accepted cloze statements left out because they have no term yet."""
    unlicensed: tuple[str, ...]
    """Titles of sources whose licence is not known."""
    written: tuple[str, ...]
    """Files that are new or other than before, relative to the folder."""
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    """Files of the dataset that was there before."""


def publish_dataset(
    source: Sequence[Draft] | QuestionSet,
    folder: Path,
    *,
    name: str,
    seed: int = 0,
    splits: tuple[float, float, float] = SHARES,
    kinds: Sequence[Kind] = KINDS,
    licence: str | None = None,
    canary: bool | str = True,
    force: bool = False,
) -> PublishedDataset:
    """Write a dataset as a folder: Parquet and JSON Lines in climassay's columns and in ClimaQA's, drafts, and a card.

    Writing the same dataset again changes nothing. Drafts that were rejected, failed or, as cloze statements, have no
    term are kept in ``drafts.jsonl`` and nowhere else.

    Args:
        source: Drafts with all that was decided about them, or questions from elsewhere.
        folder: Made where it is missing.
        name: Name of the dataset.
        seed: Seed of the splits.
        splits: Train, dev and test: shares, or numbers of questions; see :class:`SplitPlan`.
        kinds: Publish questions of these kinds only; drafts of other kinds stay in ``drafts.jsonl``.
        licence: Licence of the questions, as hubs spell it, for example ``cc-by-4.0``.
        canary: Whether every file carries a canary where its format allows one; or the GUID to use.
        force: Write over another dataset in the folder.

    Raises:
        InputError: There is nothing to publish, the splits cannot be made, or the folder holds something else.
    """
    plan = SplitPlan(splits, seed)
    prepared = prepare_dataset(source, folder, name=name, plan=plan, kinds=kinds, licence=licence, canary=canary)
    return write_dataset(prepared, folder, force=force)


def prepare_dataset(
    source: Sequence[Draft] | QuestionSet,
    folder: Path,
    *,
    name: str,
    plan: SplitPlan,
    kinds: Sequence[Kind] = KINDS,
    licence: str | None = None,
    canary: bool | str = True,
) -> PreparedDataset:
    """Everything but the writing; arguments and errors as :func:`publish_dataset`.

    The GUID of a dataset that the folder already holds under this name is kept, so that later versions have the same.
    """
    if not name.strip():
        raise InputError("A dataset needs a name.")
    drafts = () if isinstance(source, QuestionSet) else tuple(source)
    entries = entries_of(source, kinds)
    if not entries:
        terms = waiting(drafts)
        note = f", and no term is chosen yet for {counted(terms, 'cloze statement')}" if terms else ""
        of = " or ".join(kinds)
        raise InputError(
            "There is nothing to publish: "
            + (
                f"of {len(drafts)} drafts none of the kind {of} stands accepted{note}."
                if drafts
                else f"no question is of the kind {of}."
            )
        )
    if plan.counts or not drafts:
        splits = split_placements([entry.placement for entry in entries], plan)
    else:
        # Unpublished drafts are placed too, so that one which an expert accepts or rejects later moves no other.
        placed = split_placements([placement_of(draft) for draft in drafts], plan)
        by_id = {draft.id: split for draft, split in zip(drafts, placed, strict=True)}
        splits = [by_id[entry.question.id] for entry in entries]
    content = content_sha256(entries)
    guid = None
    if isinstance(canary, str):
        result = canaries(canary_sentence(canary))
        if result != (canary.lower(),):
            raise InputError(f"The canary {canary!r} is not a GUID: write one as 123e4567-e89b-12d3-a456-426614174000.")
        [guid] = result
    elif canary:
        before = read_manifest(folder)
        kept = before.get("canary") if before is not None and before["name"] == name else None
        guid = str(kept) if kept else canary_guid(name, content)
    return PreparedDataset(
        name=name,
        entries=entries,
        splits=splits,
        drafts=drafts,
        plan=plan,
        licence=licence,
        canary=guid,
        waiting=waiting(source),
        content_sha256=content,
    )


def write_dataset(
    prepared: PreparedDataset,
    folder: Path,
    *,
    force: bool = False,
    more: str = "",
    configs: Sequence[Mapping[str, Any]] = (),
) -> PublishedDataset:
    """Write a prepared dataset; files of the dataset that was there before and are no part of this one are removed.

    Raises:
        InputError: The folder holds something else, or a file cannot be written.
    """
    check_free(folder, prepared.name, force=force)
    before = read_manifest(folder)
    # The manifest comes last, so that it tells of a folder that is whole.
    files = {"README.md": dataset_card(prepared, more, configs).encode()}
    canary = canary_sentence(prepared.canary) if prepared.canary else None
    for kind, counts in prepared.counts.items():
        for split in counts:
            members = prepared.members(kind, split)
            rows = [question_row(entry, canary) for entry in members]
            files[f"data/{kind}/{split}.parquet"] = as_table(rows, columns(kind, canary is not None), canary)
            files[f"jsonl/{kind}/{split}.jsonl"] = as_json_lines(rows).encode()
            if TYPES[kind].climaqa:
                theirs = [climaqa_row(entry) for entry in members]
                texts = dict.fromkeys(climaqa_columns(kind), "string")
                files[f"climaqa/{kind}/{split}.parquet"] = as_table(theirs, texts, canary)
                files[f"climaqa/{kind}/{split}.jsonl"] = as_json_lines(theirs).encode()
    if prepared.drafts:
        files[DRAFTS] = as_json_lines(asdict(draft) for draft in prepared.drafts).encode()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "name": prepared.name,
        "content_sha256": prepared.content_sha256,
        "canary": prepared.canary,
        "canary_sentence": canary,
        "questions": prepared.counts,
        "splits": {"parts": list(prepared.plan.parts), "seed": prepared.plan.seed},
        "licence": prepared.licence,
        "climassay": __version__,
        "sha256": {path: hashlib.sha256(data).hexdigest() for path, data in files.items()},
        "files": sorted([*files, MANIFEST]),
    }
    files[MANIFEST] = (json.dumps(manifest, ensure_ascii=False, indent=2) + "\n").encode()
    write_file(folder / UNFINISHED, prepared.name.encode())
    written, unchanged = write_files(folder, files)
    removed = remove_files(folder, set(before["files"] if before else ()) - set(files))
    remove_files(folder, (UNFINISHED,))
    sources = {passage.document: passage.licence for entry in prepared.entries for passage in entry.passages}
    return PublishedDataset(
        folder=folder,
        name=prepared.name,
        content_sha256=prepared.content_sha256,
        canary=prepared.canary,
        counts=prepared.counts,
        rejected=sum(not draft.usable for draft in prepared.drafts),
        waiting=prepared.waiting,
        unlicensed=tuple(sorted(title for title, licence in sources.items() if licence is None)),
        written=written,
        unchanged=unchanged,
        removed=removed,
    )


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """What the folder says of the dataset that it holds; None where it holds none."""
    try:
        result = parse_json(read_text(folder / MANIFEST))
    except (OSError, ValueError):
        return None
    if not isinstance(result, dict) or result.get("format") != FORMAT:
        return None
    parts = {"name": str, "files": list, "sha256": dict, "questions": dict}
    return result if all(isinstance(result.get(name), kind) for name, kind in parts.items()) else None


def check_free(folder: Path, name: str, *, force: bool = False) -> None:
    """See that a dataset of this name may be written into a folder.

    Raises:
        InputError: It is a file, or holds another dataset or other files and ``force`` is not given.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder for the dataset.")
    if force or not folder.is_dir():
        return
    before = read_manifest(folder)
    if before is not None and before["name"] != name:
        raise InputError(
            f"{folder} holds another dataset ({before['name']}): name another folder, or replace it with --replace."
        )
    with suppress(OSError, ValueError):
        if before is None and read_text(folder / UNFINISHED) == name:
            return
    if before is None and any(folder.iterdir()) and not (folder / _BENCHMARK).is_file():
        raise InputError(f"{folder} holds other files: name an empty folder, or use --replace to write into it.")


def read_dataset(folder: Path) -> list[Draft]:
    """The drafts of a published dataset, exactly as they were when it was written, the rejected ones included.

    Raises:
        InputError: The folder holds no dataset of drafts, or its drafts are not what was written.
    """
    manifest = _manifest(folder)
    digest = manifest["sha256"].get(DRAFTS)
    if digest is None:
        raise InputError(f"The dataset {folder} was published from questions and has no drafts: read its tables.")
    file = folder / DRAFTS
    try:
        result = hashlib.sha256(read_whole(file, MOST_BYTES)).hexdigest()
    except OSError as error:
        raise InputError(f"The drafts {file} cannot be read: {error.strerror}.") from None
    if result != digest:
        raise InputError(f"{file} is not as it was published: it has changed since then, or is incomplete.")
    return list(read_drafts(file))


def read_dataset_questions(folder: Path, split: Split | None = None) -> QuestionSet:
    """The published questions of a dataset, those of one split where it is named.

    Raises:
        InputError: The folder holds no dataset, or it has no such question.
    """
    manifest = _manifest(folder)
    wanted = SPLITS if split is None else (split,)
    files = [
        folder / f"data/{kind}/{own}.parquet"
        for kind, counts in manifest["questions"].items()
        for own in counts
        if own in wanted
    ]
    if not files:
        raise InputError(f"The dataset {folder} has no question in the split {split}.")
    return join_questions(manifest["name"], [read_questions(file) for file in files])


def _manifest(folder: Path) -> dict[str, Any]:
    result = read_manifest(folder)
    if result is None:
        raise InputError(f"{folder} is not a dataset that climassay published: it has no {MANIFEST}.")
    return result


_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def check_repository(repository: str) -> None:
    """See that a name may be one of the hub.

    Raises:
        InputError: It is not ``OWNER/NAME``.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise InputError(f"A dataset of the hub is named OWNER/NAME, not {repository!r}.")


def push_dataset(folder: Path, repository: str, *, private: bool = False) -> str:
    """Upload a published dataset; the repository is made where it is missing.

    The token is what ``hf auth login`` keeps or ``HF_TOKEN`` holds; it is never written anywhere.

    Args:
        folder: What :func:`~.dataset.publish_dataset` wrote.
        repository: ``OWNER/NAME``.
        private: Whether a new repository is seen by its owner only; one that exists stays as it is.

    Returns:
        The address of the dataset's page.

    Raises:
        InputError: The folder holds no dataset, the name is none, or the hub refuses or cannot be reached.
        MissingExtraError: The package for the hub is not installed.
    """
    check_repository(repository)
    manifest = _manifest(folder)
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError
    except ImportError as error:
        raise MissingExtraError(
            "The hub needs the package huggingface_hub: install it with `pip install 'climassay[local]'`."
        ) from error
    hub = HfApi()
    try:
        made = hub.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        hub.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=str(folder),
            commit_message=f"{manifest['name']}, {manifest['content_sha256'][:12]}",
            ignore_patterns=[".*", "*.part", "*.new"],
        )
    except HfHubHTTPError as error:
        code = error.response.status_code if error.response is not None else None
        reason = "log in with a token that may write (HF_TOKEN or `hf auth login`)" if code in (401, 403) else str(code)
        raise InputError(f"The hub refused the dataset {repository}: {reason}.") from None
    except LocalTokenNotFoundError:
        raise InputError("The hub requires a token: set HF_TOKEN, or log in with `hf auth login`.") from None
    except connection_errors() as error:
        raise InputError(f"The hub could not be reached to upload {repository} ({type(error).__name__}).") from None
    return str(made)
