"""Question sets on the Hugging Face hub: ``hub:OWNER/NAME``, or ``hub:OWNER/NAME/FILE*`` for some of its files."""

from pathlib import Path

from climassay.errors import InputError, MissingExtraError

HUB = "hub:"
_TABLES = ("*.csv", "*.tsv", "*.jsonl", "*.json", "*.parquet", "*.csv.gz", "*.jsonl.gz")


def fetch_questions(name: str) -> list[Path]:
    """Download the tables of a dataset, or find them among those downloaded before; nothing of it is ever run.

    Args:
        name: ``hub:OWNER/NAME`` for all tables, with ``/PATTERN`` behind it for those whose path fits.

    Returns:
        Files, by path.

    Raises:
        InputError: The name is none, there is no such dataset or no such table in it, or the hub cannot be reached.
        MissingExtraError: The package for the hub is not installed.
    """
    owner, _, rest = name.removeprefix(HUB).partition("/")
    dataset, _, pattern = rest.partition("/")
    if not owner or not dataset:
        raise InputError(f"A dataset of the hub is named hub:OWNER/NAME, as hub:UCSD-GENIE/ClimaQA, not {name}.")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise MissingExtraError(
            "Datasets of the hub need the package huggingface_hub: install it with `pip install 'climassay[local]'`."
        ) from error
    wanted = [pattern] if pattern else list(_TABLES)
    failures: tuple[type[Exception], ...] = (*connection_errors(), LocalEntryNotFoundError, ValueError)
    try:
        folder = snapshot_download(f"{owner}/{dataset}", repo_type="dataset", allow_patterns=wanted)
    except RepositoryNotFoundError as error:
        raise InputError(f"The hub has no public dataset {owner}/{dataset}: check the name, or log in.") from error
    except failures as error:
        raise InputError(f"The hub could not be reached to look for the dataset {owner}/{dataset}.") from error
    files = sorted({file for one in wanted for file in Path(folder).rglob(one) if file.is_file()})
    if not files:
        raise InputError(f"The dataset {owner}/{dataset} has no table of the kinds {', '.join(wanted)}.")
    return files


def connection_errors() -> tuple[type[Exception], ...]:
    """What the hub's package raises when the hub refuses or cannot be reached; the package must be installed."""
    from huggingface_hub.errors import HfHubHTTPError

    # The package has changed its HTTP client twice; the base of its own error is the client's, whichever that is. Not
    # every client's errors are of the system's (OSError), which stand for a lost connection or a full disk as well.
    bases = (base for base in HfHubHTTPError.__mro__ if issubclass(base, Exception) and base is not Exception)
    return tuple(dict.fromkeys((*bases, OSError)))
