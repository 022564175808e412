"""Publishing a dataset as a folder of tables, drafts and a card; reading it back, and putting it on a hub."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from climassay import __version__
from climassay.errors import InputError, MissingExtraError
from climassay.generation.draft import Draft, draft_row, read_drafts
from climassay.generation.publishing.card import CardFacts, dataset_card, filled_splits
from climassay.generation.publishing.entries import (
    SHARES,
    SPLITS,
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


@dataclass(frozen=True, slots=True)
class PreparedDataset:
    """A dataset that is ready to be written."""

    facts: CardFacts
    content_sha256: str
    kinds: tuple[Kind, ...]

    def questions(self, split: Split | None = None) -> tuple[Question, ...]:
        """Published questions, those of one split where it is named."""
        pairs = zip(self.facts.entries, self.facts.splits, strict=True)
        return tuple(entry.question for entry, own in pairs if split in (None, own))


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
    facts = CardFacts(
        name=name,
        entries=entries,
        splits=splits,
        drafts=drafts,
        plan=plan,
        licence=licence,
        canary=_guid(canary, name, content, folder),
        waiting=waiting(source),
    )
    return PreparedDataset(facts, content, facts.kinds)


def _guid(wanted: bool | str, name: str, content: str, folder: Path) -> str | None:
    if wanted is False:
        return None
    if isinstance(wanted, str):
        found = canaries(canary_sentence(wanted))
        if found != (wanted.lower(),):
            raise InputError(f"The canary {wanted!r} is not a GUID: write one as 123e4567-e89b-12d3-a456-426614174000.")
        return found[0]
    before = read_manifest(folder)
    kept = before.get("canary") if before is not None and before["name"] == name else None
    return str(kept) if kept else canary_guid(name, content)


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
    check_free(folder, prepared.facts.name, force=force)
    before = read_manifest(folder)
    facts = replace(prepared.facts, more=more, configs=configs)
    files = _files(facts, prepared.content_sha256)
    write_file(folder / UNFINISHED, facts.name.encode())
    written, unchanged = write_files(folder, files)
    removed = remove_files(folder, set(before["files"] if before else ()) - set(files))
    remove_files(folder, (UNFINISHED,))
    sources = {passage.document: passage.licence for entry in facts.entries for passage in entry.passages}
    return PublishedDataset(
        folder=folder,
        name=facts.name,
        content_sha256=prepared.content_sha256,
        canary=facts.canary,
        counts=_counts(facts),
        rejected=sum(not draft.usable for draft in facts.drafts),
        waiting=facts.waiting,
        unlicensed=tuple(sorted(title for title, licence in sources.items() if licence is None)),
        written=written,
        unchanged=unchanged,
        removed=removed,
    )


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """What the folder says of the dataset that it holds; None where it holds none."""
    try:
        found = parse_json(read_text(folder / MANIFEST))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        return None
    parts = {"name": str, "files": list, "sha256": dict, "questions": dict}
    return found if all(isinstance(found.get(name), kind) for name, kind in parts.items()) else None


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
            f"{folder} holds another dataset ({before['name']}): name another folder, or replace it with --force."
        )
    with suppress(OSError, ValueError):
        if before is None and read_text(folder / UNFINISHED) == name:
            return
    if before is None and any(folder.iterdir()) and not (folder / _BENCHMARK).is_file():
        raise InputError(f"{folder} holds other files: name an empty folder, or use --force to write into it.")


def _counts(facts: CardFacts) -> dict[Kind, dict[Split, int]]:
    placed = [(entry.question.kind, split) for entry, split in zip(facts.entries, facts.splits, strict=True)]
    filled = filled_splits(facts.entries, facts.splits)
    return {kind: {split: placed.count((kind, split)) for split in own} for kind, own in filled.items()}


def _files(facts: CardFacts, content: str) -> dict[str, bytes]:
    """Content of every file by its path; the manifest comes last, so that it tells of a folder that is whole."""
    files = {"README.md": dataset_card(facts).encode()}
    canary = canary_sentence(facts.canary) if facts.canary else None
    for kind, own in filled_splits(facts.entries, facts.splits).items():
        for split in own:
            members = [
                entry
                for entry, placed in zip(facts.entries, facts.splits, strict=True)
                if entry.question.kind == kind and placed == split
            ]
            rows = [question_row(entry, canary) for entry in members]
            files[f"data/{kind}/{split}.parquet"] = as_table(rows, columns(kind, canary is not None), canary)
            files[f"jsonl/{kind}/{split}.jsonl"] = as_json_lines(rows).encode()
            if TYPES[kind].climaqa:
                theirs = [climaqa_row(entry) for entry in members]
                texts = dict.fromkeys(climaqa_columns(kind), "string")
                files[f"climaqa/{kind}/{split}.parquet"] = as_table(theirs, texts, canary)
                files[f"climaqa/{kind}/{split}.jsonl"] = as_json_lines(theirs).encode()
    if facts.drafts:
        files[DRAFTS] = as_json_lines(draft_row(draft) for draft in facts.drafts).encode()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "name": facts.name,
        "content_sha256": content,
        "canary": facts.canary,
        "canary_sentence": canary,
        "questions": _counts(facts),
        "splits": {"parts": list(facts.plan.parts), "seed": facts.plan.seed},
        "licence": facts.licence,
        "climassay": __version__,
        "sha256": {path: hashlib.sha256(data).hexdigest() for path, data in files.items()},
        "files": sorted([*files, MANIFEST]),
    }
    files[MANIFEST] = (json.dumps(manifest, ensure_ascii=False, indent=2) + "\n").encode()
    return files


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
        found = hashlib.sha256(read_whole(file, MOST_BYTES)).hexdigest()
    except OSError as error:
        raise InputError(f"The drafts {file} cannot be read: {error.strerror}.") from None
    if found != digest:
        raise InputError(f"{file} is not what was published: it has changed since, or was cut off.")
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
    found = read_manifest(folder)
    if found is None:
        raise InputError(f"{folder} is not a dataset that climassay published: it has no {MANIFEST}.")
    return found


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
        raise InputError("The hub wants a token: set HF_TOKEN, or log in with `hf auth login`.") from None
    except connection_errors() as error:
        raise InputError(f"The hub could not be reached to upload {repository} ({type(error).__name__}).") from None
    return str(made)
