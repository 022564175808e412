"""Putting a published folder on the Hugging Face hub."""

import re
from pathlib import Path

from climassay.errors import InputError, MissingExtraError
from climassay.generation.publishing.dataset import read_manifest
from climassay.questions.hub import connection_errors

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
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"{folder} is no dataset that climassay published: publish it first.")
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
