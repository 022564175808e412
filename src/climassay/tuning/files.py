"""Files that appear whole or not at all, whatever kills the process; weights without pickles; a lock on a folder."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.errors import InputError
from climassay.io import cannot_write

if TYPE_CHECKING:
    from torch import Tensor

try:
    import fcntl
except ImportError:  # Windows: two trainings into one folder are the user's to avoid.
    fcntl = None  # type: ignore[assignment]

_LOCK = ".lock"


def replace_file(file: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place, down to the disk, and rename it.

    Raises:
        InputError: It cannot be written.
    """
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(file)
    except OSError as error:
        raise cannot_write(file, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def save_tensors(file: Path, tensors: Mapping[str, "Tensor"], metadata: Mapping[str, str]) -> None:
    """Write tensors, of any shape and by name, as safetensors.

    Raises:
        InputError: The file cannot be written.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    plain = {name: tensor.detach().to("cpu").contiguous() for name, tensor in tensors.items()}
    try:
        replace_file(file, lambda place: save_file(plain, place, metadata=dict(metadata)))
    except SafetensorError as error:
        raise InputError(f"{file} cannot be written ({error}): make room, or choose another place.") from error


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keep a folder to oneself; the system gives it back when the process dies, however it dies.

    Raises:
        InputError: Another process has it, or the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {folder} cannot be made ({error.strerror}): choose another place.") from error
    with (folder / _LOCK).open("a") as file:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(
                f"Another process is training into {folder}: wait for it, or choose another name."
            ) from error
        yield
