"""Tables of datasets of the Hugging Face hub, named ``hub:OWNER/NAME``, ``.../SUBSET``, ``.../SUBSET/SPLIT`` or a path.

A dataset's card (``README.md``) may list subsets, each with its files by split::

    configs:
    - config_name: Gold
      data_files:
      - split: mcq
        path: "climaqa_gold/mcq/mcq_benchmark.csv"

A subset is never mixed with another one: the name must choose, unless the card has a default.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from climassay.errors import InputError, MissingExtraError

HUB = "hub:"
TABLE_PATTERNS = ("*.csv", "*.tsv", "*.jsonl", "*.json", "*.parquet", "*.csv.gz", "*.jsonl.gz")
_CARD = "README.md"


def fetch_questions(name: str) -> list[Path]:
    """Download the tables of a dataset, unless they are cached, and return their paths.

    Code in the dataset is never executed.

    Args:
        name: ``hub:OWNER/NAME``, optionally followed by ``/SUBSET``, ``/SUBSET/SPLIT`` or a pattern of paths. Without a
            subset, the card's default subset is used, or all tables if the card lists no subset.

    Raises:
        InputError: The name is invalid or must name a subset, the dataset or table does not exist, or the hub cannot be
            reached.
        MissingExtraError: huggingface_hub is not installed.
    """
    owner, _, path = name.removeprefix(HUB).partition("/")
    dataset, _, selection = path.partition("/")
    if not owner or not dataset:
        raise InputError(f"A dataset of the hub is named hub:OWNER/NAME, as hub:UCSD-GENIE/ClimaQA/Gold, not {name}.")
    patterns = _select_patterns(_download(owner, dataset, [_CARD]) / _CARD, f"{HUB}{owner}/{dataset}", selection)
    folder = _download(owner, dataset, patterns)
    files = sorted({file for pattern in patterns for file in folder.rglob(pattern) if file.is_file()})
    if not files:
        raise InputError(f"The dataset {owner}/{dataset} has no table of the kinds {', '.join(patterns)}.")
    return files


def _download(owner: str, dataset: str, patterns: list[str]) -> Path:
    """Download the files of a dataset that match the patterns, and return their folder."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise MissingExtraError(
            "Datasets of the hub need the package huggingface_hub: install it with `pip install 'climassay[local]'`."
        ) from error
    failures: tuple[type[Exception], ...] = (*connection_errors(), LocalEntryNotFoundError, ValueError)
    try:
        return Path(snapshot_download(f"{owner}/{dataset}", repo_type="dataset", allow_patterns=patterns))
    except RepositoryNotFoundError as error:
        raise InputError(f"The hub has no public dataset {owner}/{dataset}: check the name, or log in.") from error
    except failures as error:
        raise InputError(
            f"The hub could not be reached to look for the dataset {owner}/{dataset}: connect to it, or name files "
            "of your own instead."
        ) from error


def _select_patterns(card: Path, dataset: str, selection: str) -> list[str]:
    """Return the patterns of the paths of the selected tables.

    Args:
        card: Card of the dataset; the file may be missing.
        dataset: Name of the dataset, for messages.
        selection: ``SUBSET``, ``SUBSET/SPLIT``, a pattern of paths, or an empty text.

    Raises:
        InputError: The selection is empty although the card lists several subsets and no default, or the subset has no
            such split.
    """
    subsets = _load_subsets(card)
    subset, _, split = selection.partition("/")
    if not selection:
        if len(subsets) > 1 and "default" not in subsets:
            raise InputError(
                f"{dataset} has the subsets {', '.join(subsets)}, which are not mixed: name one of them, as "
                f"{dataset}/{next(iter(subsets))}."
            )
        subset = "default" if "default" in subsets else next(iter(subsets), "")
    if subset not in subsets:
        return [selection] if selection else list(TABLE_PATTERNS)
    if split and split not in subsets[subset]:
        raise InputError(f"{dataset}/{subset} has no split {split!r}: it has {', '.join(subsets[subset])}.")
    patterns = [pattern for name, paths in subsets[subset].items() if split in ("", name) for pattern in paths]
    return patterns or list(TABLE_PATTERNS)


def _load_subsets(card: Path) -> dict[str, dict[str, list[str]]]:
    """Return the subsets listed in a dataset card: for each subset, the file patterns by split.

    The default subset is also listed under the name ``default``.
    """
    if not card.is_file():
        return {}
    from huggingface_hub import metadata_load
    from yaml import YAMLError

    try:
        metadata = metadata_load(card)
    except (ValueError, YAMLError):
        return {}
    configs = metadata.get("configs") if isinstance(metadata, dict) else None
    subsets: dict[str, dict[str, list[str]]] = {}
    for config in configs if isinstance(configs, list) else ():
        if not isinstance(config, dict) or "config_name" not in config:
            continue
        splits: dict[str, list[str]] = {}
        for split, pattern in _split_patterns(config):
            splits.setdefault(split, []).append(pattern)
        subsets[str(config["config_name"])] = splits
        if config.get("default") is True:
            subsets["default"] = splits
    return subsets


def _split_patterns(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (split, pattern) for all files of a subset, from its entry in the card.

    ``data_files`` can be a path, a list, or paths by split; without it, ``data_dir`` names the folder. Paths that lead
    out of the dataset are skipped.
    """
    files = config.get("data_files")
    if files is None and (folder := config.get("data_dir")):
        files = [f"{folder}/{pattern}" for pattern in TABLE_PATTERNS]
    if isinstance(files, dict):
        files = [{"split": split, "path": path} for split, path in files.items()]
    for entry in [files] if isinstance(files, str) else files or ():
        paths = entry.get("path", ()) if isinstance(entry, dict) else entry
        split = str(entry.get("split", "train")) if isinstance(entry, dict) else "train"
        for path in [paths] if isinstance(paths, str) else paths:
            pattern = str(path).removeprefix("./").lstrip("/")
            if ".." not in pattern.split("/") and "://" not in pattern:
                yield split, pattern


def connection_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that huggingface_hub raises if the hub refuses a request or cannot be reached."""
    from huggingface_hub.errors import HfHubHTTPError

    # The package has changed its HTTP client twice: the bases of its error include the error of the current client.
    # OSError covers lost connections.
    error_classes = (
        error_class
        for error_class in HfHubHTTPError.__mro__
        if issubclass(error_class, Exception) and error_class is not Exception
    )
    return tuple(dict.fromkeys((*error_classes, OSError)))
