"""Folders of files that are made as a whole: written without a half file, and tidied when they are made again."""

import contextlib
import errno
import glob
import os
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from climassay.errors import InputError

STALE_SECONDS = 3600
"""Age at which a half-written file is taken for one of a killed process: nobody writes bytes he has for so long."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_file(place: Path, data: bytes) -> None:
    """Write a file at once: a reader sees all of it or what was there before, also when the disk is full.

    A link is followed, and what is no file (``/dev/stdout``, a pipe) is written to as it is.

    Args:
        place: Its folder is made where it is missing.
        data: All of its bytes.

    Raises:
        InputError: It cannot be written there.
    """
    try:
        if place.exists() and not (place.is_file() or place.is_dir()):
            place.write_bytes(data)
            return
        target = Path(os.path.realpath(place))
        _make_folder(target.parent)
        beside = target.with_name(f".{target.name}.{os.getpid()}.new")
        _sweep(target)
        try:
            beside.write_bytes(data)
            put(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise cannot_write(place, error) from error


_usual_mask: int | None = None


def keep_to_oneself() -> None:
    """Have what this process writes from now on readable by its user alone: databases, collections, uploads.

    Files that :func:`write_file` and :func:`put` bring into folders that others may enter are as they usually are.
    """
    global _usual_mask
    if os.name == "posix" and _usual_mask is None:
        _usual_mask = os.umask(0o077)


def put(part: Path, place: Path) -> None:
    """Put a file that is whole in its place; who may read it is as it was there, or as is usual in that folder."""
    mask = _mask_at(place.parent)
    if mask is not None:
        part.chmod(stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o666 & ~mask)
    part.replace(place)


def _mask_at(folder: Path) -> int | None:
    """What the user's own mask leaves out of a file in a folder that others may enter; None elsewhere."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return _usual_mask if there.stat().st_mode & 0o077 else None


def _make_folder(folder: Path) -> None:
    mask = _mask_at(folder)
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    if mask is not None:
        for one in made:
            one.chmod(0o777 & ~mask)


def _sweep(target: Path) -> None:
    """Remove what killed processes left of this file. Others may be writing it now, perhaps on another machine."""
    stale = time.time() - STALE_SECONDS
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.new"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < stale:
                left.unlink()


def cannot_write(place: Path, error: OSError) -> InputError:
    """What to tell the user whose file could not be written."""
    said = f"{place} cannot be written ({error.strerror or error})"
    if error.errno in _FULL:
        return InputError(f"{said}: make room and run the command again, or choose another place.")
    return InputError(f"{said}: choose another place.")


def write_files(folder: Path, files: Mapping[str, bytes]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write the files of a folder in their order; those that are there with the same bytes are left alone.

    Args:
        folder: Made where it is missing.
        files: Bytes by path, relative to the folder. What tells that the folder is whole comes last.

    Returns:
        Paths of files that were written, and of those that were the same already.

    Raises:
        InputError: A file cannot be written.
    """
    written, unchanged = [], []
    for path, data in files.items():
        place = folder / path
        if _holds(place, data):
            unchanged.append(path)
        else:
            write_file(place, data)
            written.append(path)
    return tuple(written), tuple(unchanged)


def remove_files(folder: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Remove files of a folder, and folders in it that are empty then; nothing outside of it, whatever a path says.

    Args:
        folder: Stays, even when it is empty.
        paths: Relative to the folder; those that are not there are passed over.

    Returns:
        Paths of the files that were removed.
    """
    root = folder.resolve()
    removed = []
    for path in sorted(paths):
        place = folder / path
        if root not in place.resolve().parents or not place.is_file():
            continue
        place.unlink()
        removed.append(path)
        holder = place.parent.resolve()
        while root in holder.parents and not any(holder.iterdir()):
            holder.rmdir()
            holder = holder.parent
    return tuple(removed)


def _holds(place: Path, data: bytes) -> bool:
    try:
        return place.is_file() and place.read_bytes() == data
    except OSError as error:
        raise InputError(f"{place} cannot be read ({error.strerror}): choose another folder.") from error
