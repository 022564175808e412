"""Where climassay keeps what it makes, and who may read it: the workspace (a project's data) and the cache."""

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
    """A folder with one records database and any number of passage collections.

    The database may lie elsewhere: ``$CLIMASSAY_DATABASE_URL`` names one for every command, for example PostgreSQL.

    Attributes:
        root: The folder; created on first use.
    """

    root: Path

    @classmethod
    def open(cls, root: str | Path | None = None) -> "Workspace":
        """Open (and create) a workspace.

        Args:
            root: Folder; by default ``$CLIMASSAY_WORKSPACE``, else ``.climassay`` in the current folder.

        Raises:
            InputError: The folder cannot be made or is a file.
        """
        path = Path(root or os.environ.get(WORKSPACE_VARIABLE) or ".climassay").expanduser().absolute()
        try:
            # Questions, labels, password hashes and unpublished documents are not for everybody on a shared machine.
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(path)
        except OSError as error:
            raise InputError(
                f"The workspace {path} cannot be created ({error.strerror}): choose another folder."
            ) from error
        return cls(path)

    @property
    def records_url(self) -> str:
        """SQLAlchemy URL of the records database: ``$CLIMASSAY_DATABASE_URL``, else a SQLite file of the workspace.

        The URL may hold a password; what is shown of it is ``Records.database.shown_url``.
        """
        return os.environ.get(DATABASE_VARIABLE) or f"sqlite:///{self._records_file}"

    @property
    def has_records(self) -> bool:
        """Whether there may be records to read; asking makes no database."""
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
        """Where collections are: the object store of ``$CLIMASSAY_COLLECTIONS``, else the folder :attr:`collections`.

        Raises:
            InputError: The variable holds no address.
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
        """Folder of the trained adapters, a folder each."""
        return self.root / "adapters"


_PARTS = ("records.sqlite*", "collections", "adapters", "uploads", "activations", "validators")
"""What a workspace holds, as patterns of names."""


def _make_private(root: Path) -> None:
    """Take from everybody else what they may do with a workspace that was made without us, and with what is in it.

    Where the folder holds more than a workspace, as a project's own does, only the workspace's parts are made private.
    """
    if os.name != "posix":
        return
    parts = {part for name in _PARTS for part in root.glob(name)}
    own = not any(child not in parts for child in root.iterdir())
    ours = [root] if own else parts if (root / "records.sqlite").exists() else []
    for part in ours:
        if not _is_private(part):
            for folder, _, files in os.walk(part):
                for path in [Path(folder), *(Path(folder) / name for name in files)]:
                    _close(path)
            _close(part)


def _is_private(path: Path) -> bool:
    result = path.lstat()
    # What belongs to others is theirs to open and close; a link is as open as what it leads to.
    return not result.st_mode & 0o077 or result.st_uid != os.geteuid() or stat.S_ISLNK(result.st_mode)


def _close(path: Path) -> None:
    # Files come and go beside us: of SQLite's journals, and of other commands.
    with contextlib.suppress(OSError):
        if not _is_private(path):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)


_usual_mask: int | None = None


def restrict_to_user() -> None:
    """Have what this process writes from now on readable by its user alone: databases, collections, uploads.

    Files that :mod:`climassay.io` puts into folders open to others get the usual permissions.
    """
    global _usual_mask
    if os.name == "posix" and _usual_mask is None:
        _usual_mask = os.umask(0o077)


def mask_at(folder: Path) -> int | None:
    """What the user's own mask leaves out of a file in a folder that others may enter; None elsewhere."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return _usual_mask if there.stat().st_mode & 0o077 else None


def cache_folder() -> Path:
    """Folder for what can be made again: ``$CLIMASSAY_CACHE``, else the user's cache folder of the system.

    Raises:
        InputError: Everybody on the machine may write there.
    """
    from platformdirs import user_cache_path

    given = os.environ.get(CACHE_VARIABLE)
    path = Path(given).expanduser() if given else user_cache_path("climassay", appauthor=False)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and path.stat().st_mode & stat.S_IWOTH:
        raise InputError(
            f"The cache {path} can be written by everybody on this machine, who could put other models there: "
            f"remove that permission (chmod o-w), or set {CACHE_VARIABLE} to a folder of your own."
        )
    return path
