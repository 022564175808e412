"""Small trained things as files: one .safetensors file, arrays as they are and everything else as JSON in its header.

No pickle, so that a file of somebody else's can be opened without running it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, MissingExtraError
from climassay.folder_files import write_file
from climassay.given_files import parse_json

T = TypeVar("T")
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class TrainedFormat:
    """A kind of file."""

    name: str
    """Stands in the header, for example ``climassay-probe``."""
    version: int
    """Newer ones are refused."""
    thing: str
    """What such a file holds, in words: ``probe``."""
    trained_by: str
    """What makes one, for example ``climassay validator train``."""

    def save(self, path: Path, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Write a file; an existing one is replaced at once, never left half written.

        Args:
            path: The file, by custom named ``.safetensors``.
            arrays: Numpy arrays of any shape.
            facts: What JSON can write; floats come back as the same numbers.

        Raises:
            InputError: The file cannot be written.
            MissingExtraError: safetensors is not installed.
        """
        _, to_bytes = self._safetensors()
        header = {"format": self.name, "version": self.version, **facts}
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        write_file(path, to_bytes(whole, {key: json.dumps(value) for key, value in header.items()}))

    def load(self, path: Path, build: Callable[[dict[str, Any], dict[str, Array]], T]) -> T:
        """Read a file exactly as it was saved.

        Args:
            path: The file.
            build: Makes the thing of the facts and the arrays, which have the shapes they were saved in; a KeyError,
                TypeError or ValueError of it says that the file is damaged.

        Raises:
            InputError: The file is missing, damaged, of another kind, or written by a newer climassay.
            MissingExtraError: safetensors is not installed.
        """
        if not path.is_file():
            raise InputError(f"There is no {self.thing} {path}: train one with {self.trained_by}, or check the path.")
        safe_open, _ = self._safetensors()
        from safetensors import SafetensorError

        try:
            with safe_open(path, framework="numpy") as file:
                header = file.metadata() or {}
                if header.get("format") != json.dumps(self.name):
                    raise InputError(f"{path} is a safetensors file but no {self.thing} of climassay.")
                facts = {key: parse_json(value) for key, value in header.items()}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if not isinstance(facts["version"], int) or facts["version"] > self.version:
                raise InputError(
                    f"The {self.thing} {path} has format version {facts['version']}, newer than this climassay reads; "
                    "update climassay."
                )
            return build(facts, arrays)
        except (
            SafetensorError,
            AttributeError,
            OSError,
            KeyError,
            IndexError,
            OverflowError,
            TypeError,
            ValueError,
        ) as error:
            raise InputError(f"The {self.thing} {path} is damaged ({error}); train it again.") from error

    def _safetensors(self) -> tuple[Any, Any]:
        try:
            from safetensors import safe_open
            from safetensors.numpy import save
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"A file of a {self.thing} needs safetensors: pip install 'climassay[local]'."
            ) from error
        return cast(Any, safe_open), cast(Any, save)


def checked_array(name: str, array: Array, shape: tuple[int | None, ...]) -> Array:
    """An array of 64-bit floats that are all finite.

    Args:
        name: For the error.
        array: What was read.
        shape: What it must be; None where any length will do.

    Raises:
        ValueError: It is another one.
    """
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or array.dtype != np.float64:
        raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return array
