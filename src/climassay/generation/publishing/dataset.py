"""Publish a dataset as a folder of tables, drafts and a card, read it back, and upload it to a hub."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from climassay import __version__
from climassay.errors import InputError, MissingExtraError
from climassay.generation.draft import Draft, read_drafts
from climassay.generation.publishing.card import PreparedDataset, dataset_card
from climassay.generation.publishing.entries import (
    canary_guid,
    canary_sentence,
    climaqa_columns,
    climaqa_row,
    collect_entries,
    column_types,
    content_sha256,
    count_without_term,
    draft_placement,
    find_canaries,
    question_row,
    to_json_lines,
    to_parquet,
)
from climassay.generation.publishing.splits import SHARES, Split, SplitPlan, split_placements
from climassay.io import MAX_TABLE_BYTES, read_file, read_text, remove_files, write_file, write_files
from climassay.questions import KINDS, TYPES, Kind, QuestionSet, join_questions, read_questions
from climassay.questions.hub import connection_errors
from climassay.reporting import counted

MANIFEST = "dataset.json"
UNFINISHED = ".climassay-unfinished"
"""Name of a file that contains the dataset's name and exists only while the dataset is written.

If writing is interrupted, the file shows that the next call may replace the other files of the folder.
"""
DRAFTS = "drafts.jsonl"
_BENCHMARK = "benchmark.json"
"""Name of the manifest of the benchmark for other evaluation frameworks, which may be in the same folder."""


class Manifest(BaseModel):
    """Description of a published dataset, in the file ``dataset.json``."""

    format: Literal["climassay-dataset"] = "climassay-dataset"
    version: Literal[1] = 1
    name: str
    content_sha256: str
    """SHA-256 of the texts of the questions, independent of their order."""
    canary: str | None
    """GUID of the canary; None without a canary."""
    canary_sentence: str | None
    questions: dict[str, dict[Split, int]]
    """Number of questions by kind and split."""
    splits: SplitPlan
    licence: str | None
    climassay: str = __version__
    """Version of climassay that wrote the dataset."""
    sha256: dict[str, str]
    """SHA-256 of each file except the manifest, by path relative to the folder."""
    files: list[str]
    """Paths of all files, relative to the folder."""


@dataclass(frozen=True, slots=True)
class PublishedDataset:
    """Result of publishing a dataset."""

    folder: Path
    name: str
    content_sha256: str
    """SHA-256 of the texts of the questions, independent of their order."""
    canary: str | None
    """GUID of the canary; None without a canary."""
    counts: Mapping[Kind, Mapping[Split, int]]
    """Number of published questions by kind and split."""
    rejected: int
    """Number of rejected or failed drafts, which are in ``drafts.jsonl`` only."""
    without_term: int
    """Number of accepted cloze statements without a term, which are in ``drafts.jsonl`` only."""
    unlicensed: tuple[str, ...]
    """Titles of sources with an unknown licence."""
    written: tuple[str, ...]
    """New or changed files, relative to the folder."""
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    """Files of the previous dataset that were deleted."""


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
    """Write a dataset to a folder: tables of questions, drafts, a README and a manifest.

    The tables are Parquet and JSON Lines files, both in climassay's columns and in ClimaQA's. Rejected and failed
    drafts, and cloze statements without a term, are written to ``drafts.jsonl`` only. Writing the same dataset again
    changes nothing.

    Args:
        source: Drafts with their decisions, or questions from elsewhere.
        folder: Folder of the dataset, created if missing.
        name: Name of the dataset.
        seed: Seed of the splits.
        splits: Sizes of train, dev and test, as proportions or as numbers of questions; see :class:`SplitPlan`.
        kinds: Kinds of the published questions; drafts of other kinds are in ``drafts.jsonl`` only.
        licence: Licence of the questions, as hubs spell it, for example ``cc-by-4.0``.
        canary: Whether to add a canary to every file whose format allows it; or the GUID of the canary.
        force: Replace another dataset in the folder.

    Raises:
        InputError: There is nothing to publish, the splits are impossible, or the folder has other files.
    """
    plan = SplitPlan(splits, seed)
    prepared_dataset = prepare_dataset(
        source, folder, name=name, plan=plan, kinds=kinds, licence=licence, canary=canary
    )
    return write_dataset(prepared_dataset, folder, force=force)


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
    """Select and split the questions that :func:`publish_dataset` writes; nothing is written yet.

    If the folder already contains a dataset of this name, the GUID of its canary is reused. ``plan`` has the sizes and
    the seed of the splits; the other arguments are those of :func:`publish_dataset`.

    Raises:
        InputError: There is nothing to publish, the splits are impossible, or the canary is not a GUID.
    """
    if not name.strip():
        raise InputError("A dataset needs a name.")
    drafts = () if isinstance(source, QuestionSet) else tuple(source)
    entries = collect_entries(source, kinds)
    if not entries:
        n_terms = count_without_term(drafts)
        note = f", and no term is chosen yet for {counted(n_terms, 'cloze statement')}" if n_terms else ""
        names = " or ".join(kinds)
        reason = f"of {len(drafts)} drafts none of the kind {names} is accepted{note}"
        reason = reason if drafts else f"no question is of the kind {names}"
        raise InputError(f"There is nothing to publish: {reason}.")
    if plan.uses_counts or not drafts:
        splits = split_placements([entry.placement for entry in entries], plan)
    else:
        # All drafts are split, so that a later decision on one draft does not change the split of another.
        draft_splits = split_placements([draft_placement(draft) for draft in drafts], plan)
        splits_by_id = {draft.id: split for draft, split in zip(drafts, draft_splits, strict=True)}
        splits = [splits_by_id[entry.question.id] for entry in entries]
    content = content_sha256(entries)
    guid = None
    if isinstance(canary, str):
        guids = find_canaries(canary_sentence(canary))
        if guids != (canary.lower(),):
            raise InputError(f"The canary {canary!r} is not a GUID: write one as 123e4567-e89b-12d3-a456-426614174000.")
        [guid] = guids
    elif canary:
        old_manifest = read_manifest(folder)
        old_guid = old_manifest.canary if old_manifest is not None and old_manifest.name == name else None
        guid = old_guid or canary_guid(name, content)
    return PreparedDataset(
        name=name,
        entries=entries,
        splits=splits,
        drafts=drafts,
        plan=plan,
        licence=licence,
        canary=guid,
        without_term=count_without_term(source),
        content_sha256=content,
    )


def write_dataset(
    prepared: PreparedDataset,
    folder: Path,
    *,
    force: bool = False,
    extra: str = "",
    configs: Sequence[Mapping[str, Any]] = (),
) -> PublishedDataset:
    """Write a prepared dataset, and delete those files of an earlier dataset in the folder that it does not replace.

    Args:
        prepared: Result of :func:`prepare_dataset`.
        folder: Folder of the dataset, created if missing.
        force: Replace another dataset in the folder.
        extra: Additional sections of the README, in Markdown.
        configs: Additional configurations for the package ``datasets``.

    Raises:
        InputError: The folder has other files, or a file cannot be written.
    """
    check_target_folder(folder, prepared.name, force=force)
    old_manifest = read_manifest(folder)
    # The manifest is written last, so that a folder with a manifest is complete.
    files = {"README.md": dataset_card(prepared, extra, configs).encode()}
    canary = canary_sentence(prepared.canary) if prepared.canary else None
    for kind, counts in prepared.counts.items():
        for split in counts:
            entries = prepared.select_entries(kind, split)
            rows = [question_row(entry, canary) for entry in entries]
            files[f"data/{kind}/{split}.parquet"] = to_parquet(rows, column_types(kind, canary is not None), canary)
            files[f"jsonl/{kind}/{split}.jsonl"] = to_json_lines(rows).encode()
            if TYPES[kind].in_climaqa:
                climaqa_rows = [climaqa_row(entry) for entry in entries]
                types = dict.fromkeys(climaqa_columns(kind), "string")
                files[f"climaqa/{kind}/{split}.parquet"] = to_parquet(climaqa_rows, types, canary)
                files[f"climaqa/{kind}/{split}.jsonl"] = to_json_lines(climaqa_rows).encode()
    if prepared.drafts:
        files[DRAFTS] = to_json_lines(asdict(draft) for draft in prepared.drafts).encode()
    manifest = Manifest(
        name=prepared.name,
        content_sha256=prepared.content_sha256,
        canary=prepared.canary,
        canary_sentence=canary,
        questions=dict(prepared.counts),
        splits=prepared.plan,
        licence=prepared.licence,
        sha256={path: hashlib.sha256(data).hexdigest() for path, data in files.items()},
        files=sorted([*files, MANIFEST]),
    )
    files[MANIFEST] = (manifest.model_dump_json(indent=2) + "\n").encode()
    write_file(folder / UNFINISHED, prepared.name.encode())
    written_paths, unchanged_paths = write_files(folder, files)
    removed_paths = remove_files(folder, set(old_manifest.files if old_manifest else ()) - set(files))
    remove_files(folder, (UNFINISHED,))
    sources = {passage.document: passage.licence for entry in prepared.entries for passage in entry.passages}
    return PublishedDataset(
        folder=folder,
        name=prepared.name,
        content_sha256=prepared.content_sha256,
        canary=prepared.canary,
        counts=prepared.counts,
        rejected=sum(not draft.usable for draft in prepared.drafts),
        without_term=prepared.without_term,
        unlicensed=tuple(sorted(title for title, licence in sources.items() if licence is None)),
        written=written_paths,
        unchanged=unchanged_paths,
        removed=removed_paths,
    )


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of the dataset in a folder; None if it is missing or invalid."""
    try:
        return Manifest.model_validate_json(read_text(folder / MANIFEST))
    except (OSError, ValueError):
        return None


def check_target_folder(folder: Path, name: str, *, force: bool = False) -> None:
    """Check that a dataset of this name can be written to a folder without replacing anything else.

    Raises:
        InputError: ``folder`` is a file; or it has another dataset or other files, and ``force`` is False.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder for the dataset.")
    if force or not folder.is_dir():
        return
    old_manifest = read_manifest(folder)
    if old_manifest is not None and old_manifest.name != name:
        raise InputError(
            f"{folder} has another dataset ({old_manifest.name}): name another folder, or replace it with --replace."
        )
    with suppress(OSError, ValueError):
        if old_manifest is None and read_text(folder / UNFINISHED) == name:
            return
    if old_manifest is None and any(folder.iterdir()) and not (folder / _BENCHMARK).is_file():
        raise InputError(f"{folder} has other files: name an empty folder, or use --replace to write into it.")


def read_dataset(folder: Path) -> list[Draft]:
    """Read all drafts of a published dataset, including rejected ones.

    Raises:
        InputError: The folder has no dataset, the dataset has no drafts, or its drafts were changed after publication.
    """
    manifest = _require_manifest(folder)
    digest = manifest.sha256.get(DRAFTS)
    if digest is None:
        raise InputError(f"The dataset {folder} was published from questions and has no drafts: read its tables.")
    file = folder / DRAFTS
    try:
        actual_digest = hashlib.sha256(read_file(file, MAX_TABLE_BYTES)).hexdigest()
    except OSError as error:
        raise InputError(f"The drafts {file} cannot be read: {error.strerror}.") from None
    if actual_digest != digest:
        raise InputError(f"{file} was changed since it was published, or is incomplete.")
    return list(read_drafts(file))


def read_dataset_questions(folder: Path, split: Split | None = None) -> QuestionSet:
    """Read the questions of a published dataset, or only those of one split.

    Raises:
        InputError: The folder has no dataset, or the dataset has no question in the split.
    """
    manifest = _require_manifest(folder)
    files = [
        folder / f"data/{kind}/{kind_split}.parquet"
        for kind, counts in manifest.questions.items()
        for kind_split in counts
        if split in (None, kind_split)
    ]
    if not files:
        raise InputError(f"The dataset {folder} has no question in the split {split}.")
    return join_questions(manifest.name, [read_questions(file) for file in files])


def _require_manifest(folder: Path) -> Manifest:
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"{folder} is not a dataset that climassay published: it has no {MANIFEST}.")
    return manifest


_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def check_repository(repository: str) -> None:
    """Check that the name of a repository on the Hugging Face Hub has the form ``OWNER/NAME``.

    Raises:
        InputError: The name has another form.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise InputError(f"A dataset of the hub is named OWNER/NAME, not {repository!r}.")


def push_dataset(folder: Path, repository: str, *, private: bool = False) -> str:
    """Upload a published dataset to the Hugging Face Hub; the repository is created if missing.

    The token comes from ``hf auth login`` or ``HF_TOKEN``; it is never stored.

    Args:
        folder: Folder that :func:`publish_dataset` wrote.
        repository: ``OWNER/NAME``.
        private: Whether to create a missing repository as private; an existing repository keeps its visibility.

    Returns:
        URL of the dataset's page.

    Raises:
        InputError: The folder has no dataset, the name is invalid, or the hub refuses or cannot be reached.
        MissingExtraError: The package for the hub is not installed.
    """
    check_repository(repository)
    manifest = _require_manifest(folder)
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError
    except ImportError as error:
        raise MissingExtraError(
            "The hub needs the package huggingface_hub: install it with `pip install 'climassay[local]'`."
        ) from error
    hub = HfApi()
    try:
        url = hub.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        hub.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=str(folder),
            commit_message=f"{manifest.name}, {manifest.content_sha256[:12]}",
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
    return str(url)
