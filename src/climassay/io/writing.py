"""Write files atomically: readers see the old or the new file, never a part of it, even if the disk is full."""

import contextlib
import errno
import glob
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from climassay.errors import InputError
from climassay.workspace import find_umask

STALE_SECONDS = 3600
"""Maximum age of a temporary file, in seconds. Older files were probably left by killed processes and are deleted."""
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_file(path: Path, data: bytes | str) -> None:
    """Write a file atomically, creating missing folders.

    Symbolic links are followed. A device or pipe such as ``/dev/stdout`` is written to directly.

    Args:
        path: File to write or replace.
        data: Content; text is encoded as UTF-8. Surrogate escapes, as in file names that are not UTF-8, are written as
            their original bytes.

    Raises:
        InputError: The file cannot be written.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(data)
            return
    except OSError as error:
        raise make_write_error(path, error) from error
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path; its file replaces ``path`` at the end of the block, or is deleted if the block fails.

    Raises:
        InputError: The file cannot be written.
    """
    try:
        target = Path(os.path.realpath(path))
        mask = find_umask(target.parent)
        missing_folders = [folder for folder in (target.parent, *target.parent.parents) if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        if mask is not None:
            for folder in missing_folders:
                folder.chmod(0o777 & ~mask)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
        _delete_stale_files(target)
        try:
            yield temporary
            replace_file(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise make_write_error(path, error) from error


def replace_file(temporary: Path, path: Path) -> None:
    """Move a complete file to its final path.

    The file gets the permissions of the file that it replaces or, if there is none, those of new files in the folder.
    """
    mask = find_umask(path.parent)
    if mask is not None:
        temporary.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~mask)
    temporary.replace(path)


def _delete_stale_files(target: Path) -> None:
    """Delete temporary files of killed processes. Recent ones are kept, since they may belong to other machines."""
    oldest = time.time() - STALE_SECONDS
    for temporary in target.parent.glob(f".{glob.escape(target.name)}.*.new"):
        with contextlib.suppress(OSError):
            if temporary.stat().st_mtime < oldest:
                temporary.unlink()


def make_write_error(path: Path, error: OSError) -> InputError:
    """Return an error for a file that cannot be written."""
    fault = f"{path} cannot be written ({error.strerror or error})"
    if error.errno in _DISK_FULL:
        return InputError(f"{fault}: free some space and run the command again, or choose another place.")
    return InputError(f"{fault}: choose another place.")


def write_files(folder: Path, files: Mapping[str, bytes]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write several files to a folder in the given order, skipping those that are unchanged.

    Args:
        folder: Folder, created if missing.
        files: Content by path relative to the folder. If a file marks the folder as complete, it must come last.

    Returns:
        Paths of the written files, and of the unchanged files.

    Raises:
        InputError: A file cannot be written.
    """
    written_names: list[str] = []
    unchanged_names: list[str] = []
    for name, data in files.items():
        path = folder / name
        try:
            is_unchanged = path.is_file() and path.read_bytes() == data
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}): choose another folder.") from error
        if not is_unchanged:
            write_file(path, data)
        (unchanged_names if is_unchanged else written_names).append(name)
    return tuple(written_names), tuple(unchanged_names)


def remove_files(folder: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Delete files in a folder and subfolders that become empty; nothing outside the folder is deleted.

    Args:
        folder: Folder, which is itself never deleted.
        names: Paths relative to the folder; missing files are skipped.

    Returns:
        Paths of the deleted files.
    """
    root = folder.resolve()
    removed_names = []
    for name in sorted(names):
        path = folder / name
        if root not in path.resolve().parents or not path.is_file():
            continue
        path.unlink()
        removed_names.append(name)
        parent = path.parent.resolve()
        while root in parent.parents and not any(parent.iterdir()):
            parent.rmdir()
            parent = parent.parent
    return tuple(removed_names)
