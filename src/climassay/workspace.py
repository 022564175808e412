"""Workspace folder with a project's data, cache folder, and their permissions."""

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from climassay.errors import InputError

WORKSPACE_VARIABLE = "CLIMASSAY_WORKSPACE"
CACHE_VARIABLE = "CLIMASSAY_CACHE"
DATABASE_VARIABLE = "CLIMASSAY_DATABASE_URL"
COLLECTIONS_VARIABLE = "CLIMASSAY_COLLECTIONS"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Folder with a records database, collections and adapters.

    ``$CLIMASSAY_DATABASE_URL`` names another database, for example in PostgreSQL.

    Attributes:
        root: Path of the folder.
    """

    root: Path

    @classmethod
    def open(cls, root: str | Path | None = None) -> "Workspace":
        """Open a workspace; the folder is created if necessary, and made private to the user.

        Args:
            root: Folder; by default ``$CLIMASSAY_WORKSPACE``, else ``.climassay`` in the current folder.

        Raises:
            InputError: The folder cannot be created, or the path is a file.
        """
        path = Path(root or os.environ.get(WORKSPACE_VARIABLE) or ".climassay").expanduser().absolute()
        try:
            # A workspace holds password hashes, labels and unpublished documents.
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(path)
        except OSError as error:
            raise InputError(
                f"The workspace {path} cannot be created ({error.strerror}): choose another folder."
            ) from error
        return cls(path)

    @property
    def records_url(self) -> str:
        """SQLAlchemy URL of the records database: ``$CLIMASSAY_DATABASE_URL``, or else a SQLite file in the workspace.

        The URL may contain a password, unlike ``Records.database.redacted_url``.
        """
        return os.environ.get(DATABASE_VARIABLE) or f"sqlite:///{self._records_file}"

    @property
    def has_records(self) -> bool:
        """Whether a records database exists, or is configured by ``$CLIMASSAY_DATABASE_URL``; nothing is created."""
        return bool(os.environ.get(DATABASE_VARIABLE)) or self._records_file.is_file()

    @property
    def _records_file(self) -> Path:
        return self.root / "records.sqlite"

    @property
    def collections(self) -> Path:
        """Folder of the LanceDB collections."""
        return self.root / "collections"

    @property
    def collections_address(self) -> str:
        """Location of the collections: the object store in ``$CLIMASSAY_COLLECTIONS``, or else :attr:`collections`.

        Raises:
            InputError: The variable is not the address of an object store.
        """
        address = os.environ.get(COLLECTIONS_VARIABLE)
        if not address:
            return str(self.collections)
        if "://" not in address:
            raise InputError(
                f"{COLLECTIONS_VARIABLE} is {address!r}, which is not an address of an object store: write "
                "for example s3://bucket/collections, or choose another folder with --workspace."
            )
        return address

    @property
    def adapters(self) -> Path:
        """Folder of the trained adapters, with a subfolder for each adapter."""
        return self.root / "adapters"


_PARTS = ("records.sqlite*", "collections", "adapters", "uploads", "activations", "validators")
"""Glob patterns of the files and folders that belong to a workspace."""


def _make_private(root: Path) -> None:
    """Remove other users' permissions for a workspace.

    If the folder also contains other files, only the files and folders of the workspace are made private.
    """
    if os.name != "posix":
        return
    parts = {part for name in _PARTS for part in root.glob(name)}
    has_only_parts = all(child in parts for child in root.iterdir())
    private_paths = [root] if has_only_parts else parts if (root / "records.sqlite").exists() else []
    for part in private_paths:
        if not _is_private(part):
            for folder, _, files in os.walk(part):
                for path in [Path(folder), *(Path(folder) / name for name in files)]:
                    _make_path_private(path)
            _make_path_private(part)


def _is_private(path: Path) -> bool:
    status = path.lstat()
    # Permissions of links, and of files of other users, cannot be changed.
    return not status.st_mode & 0o077 or status.st_uid != os.geteuid() or stat.S_ISLNK(status.st_mode)


def _make_path_private(path: Path) -> None:
    # SQLite and other processes may delete the file at any time.
    with contextlib.suppress(OSError):
        if not _is_private(path):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)


_original_umask: int | None = None


def restrict_to_user() -> None:
    """Make all files that this process creates from now on private to its user.

    In folders that other users can enter, :mod:`climassay.io` still gives files the usual permissions.
    """
    global _original_umask
    if os.name == "posix" and _original_umask is None:
        _original_umask = os.umask(0o077)


def find_umask(folder: Path) -> int | None:
    """Return the user's original umask if other users can enter a folder; otherwise None."""
    existing_folder = next(path for path in (folder, *folder.parents) if path.exists())
    return _original_umask if existing_folder.stat().st_mode & 0o077 else None


def cache_folder() -> Path:
    """Return the cache folder, creating it if necessary: ``$CLIMASSAY_CACHE``, else the user's cache folder.

    Raises:
        InputError: The folder is writable for all users.
    """
    from platformdirs import user_cache_path

    folder = os.environ.get(CACHE_VARIABLE)
    path = Path(folder).expanduser() if folder else user_cache_path("climassay", appauthor=False)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and path.stat().st_mode & stat.S_IWOTH:
        raise InputError(
            f"The cache {path} can be written by everybody on this machine, who could put other models there: "
            f"remove that permission (chmod o-w), or set {CACHE_VARIABLE} to a folder of your own."
        )
    return path
