"""Publishing a dataset: its tables, its drafts and its card, as a folder that can be put on a hub."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from climassay import __version__
from climassay.errors import InputError
from climassay.generation.draft import Draft, draft_row
from climassay.generation.publishing.canary import canaries, canary_guid, canary_sentence
from climassay.generation.publishing.card import CardFacts, dataset_card, filled_splits
from climassay.generation.publishing.entries import Entry, content_sha256, entries_of, placement_of, waiting
from climassay.generation.publishing.rows import as_table, climaqa_columns, climaqa_row, columns, question_row
from climassay.generation.publishing.splitting import SHARES, Split, SplitPlan, split_placements
from climassay.io import parse_json, read_text, remove_files, write_file, write_files
from climassay.questions import KINDS, TYPES, Kind, Question, QuestionSet

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
        name: Of the dataset.
        seed: Of the splits.
        splits: Train, dev and test: shares, or numbers of questions; see :class:`SplitPlan`.
        kinds: Publish questions of these kinds only; drafts of other kinds stay in ``drafts.jsonl``.
        licence: Of the questions, as hubs spell it, for example ``cc-by-4.0``.
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
        raise InputError(f"There is nothing to publish: {_why_nothing(drafts, kinds)}")
    content = content_sha256(entries)
    facts = CardFacts(
        name=name,
        entries=entries,
        splits=_splits(entries, drafts, plan),
        drafts=drafts,
        plan=plan,
        licence=licence,
        canary=_guid(canary, name, content, folder),
        waiting=waiting(source),
    )
    return PreparedDataset(facts, content, facts.kinds)


def _splits(entries: Sequence[Entry], drafts: Sequence[Draft], plan: SplitPlan) -> list[Split]:
    """The split of each entry.

    With shares the drafts that are not published are placed too, so that a draft which an expert accepts or rejects
    later moves no other.
    """
    if plan.counts or not drafts:
        return split_placements([entry.placement for entry in entries], plan)
    placed = split_placements([placement_of(draft) for draft in drafts], plan)
    by_id = {draft.id: split for draft, split in zip(drafts, placed, strict=True)}
    return [by_id[entry.question.id] for entry in entries]


def _why_nothing(drafts: Sequence[Draft], kinds: Sequence[Kind]) -> str:
    if not drafts:
        return f"no question is of the kind {' or '.join(kinds)}."
    terms = waiting(drafts)
    note = f", and {terms} cloze statements have no term yet" if terms else ""
    return f"of {len(drafts)} drafts none of the kind {' or '.join(kinds)} stands accepted{note}."


def _guid(wanted: bool | str, name: str, content: str, folder: Path) -> str | None:
    if wanted is False:
        return None
    if isinstance(wanted, str):
        found = canaries(canary_sentence(wanted))
        if found != (wanted.lower(),):
            raise InputError(f"The canary {wanted!r} is no GUID: write one as 123e4567-e89b-12d3-a456-426614174000.")
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

    Args:
        prepared: What to write.
        folder: Where to.
        force: Write over another dataset, or beside other files.
        more: Further sections of the card.
        configs: Further configurations for ``datasets``.

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
    if before is None and _is_unfinished(folder, name):
        return
    if before is None and any(folder.iterdir()) and not (folder / _BENCHMARK).is_file():
        raise InputError(f"{folder} holds other files: name an empty folder, or use --force to write into it.")


def _is_unfinished(folder: Path, name: str) -> bool:
    try:
        return read_text(folder / UNFINISHED) == name
    except (OSError, ValueError):
        return False


def _counts(facts: CardFacts) -> dict[Kind, dict[Split, int]]:
    placed = [(entry.question.kind, split) for entry, split in zip(facts.entries, facts.splits, strict=True)]
    filled = filled_splits(facts.entries, facts.splits)
    return {kind: {split: placed.count((kind, split)) for split in own} for kind, own in filled.items()}


def _files(facts: CardFacts, content: str) -> dict[str, bytes]:
    """Content of every file by its path; the manifest comes last, so that it tells of a folder that is whole."""
    files = {"README.md": dataset_card(facts).encode()}
    for kind, own in filled_splits(facts.entries, facts.splits).items():
        for split in own:
            members = [
                entry
                for entry, placed in zip(facts.entries, facts.splits, strict=True)
                if entry.question.kind == kind and placed == split
            ]
            files |= _tables(kind, split, members, facts.canary)
    if facts.drafts:
        files[DRAFTS] = _lines([draft_row(draft) for draft in facts.drafts])
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "name": facts.name,
        "content_sha256": content,
        "canary": facts.canary,
        "canary_sentence": canary_sentence(facts.canary) if facts.canary else None,
        "questions": _counts(facts),
        "splits": {"parts": list(facts.plan.parts), "seed": facts.plan.seed},
        "licence": facts.licence,
        "climassay": __version__,
        "sha256": {path: hashlib.sha256(data).hexdigest() for path, data in files.items()},
        "files": sorted([*files, MANIFEST]),
    }
    files[MANIFEST] = (json.dumps(manifest, ensure_ascii=False, indent=2) + "\n").encode()
    return files


def _tables(kind: Kind, split: Split, members: Sequence[Entry], guid: str | None) -> dict[str, bytes]:
    canary = canary_sentence(guid) if guid else None
    own = [question_row(entry, canary) for entry in members]
    files = {
        f"data/{kind}/{split}.parquet": as_table(own, columns(kind, canary is not None), canary),
        f"jsonl/{kind}/{split}.jsonl": _lines(own),
    }
    if not TYPES[kind].climaqa:
        return files
    import pyarrow

    theirs = [climaqa_row(entry) for entry in members]
    texts = dict.fromkeys(climaqa_columns(kind), pyarrow.string())
    return files | {
        f"climaqa/{kind}/{split}.parquet": as_table(theirs, texts, canary),
        f"climaqa/{kind}/{split}.jsonl": _lines(theirs),
    }


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()
