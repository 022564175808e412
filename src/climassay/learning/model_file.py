"""Trained models as files: one .safetensors file, arrays as they are and everything else as JSON in its header.

No pickle, so that a file of somebody else's can be opened without running it. Every file says what it was learned from
and whose vectors or hidden states it reads.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from climassay.claim_identity import words_id
from climassay.errors import InputError, MissingExtraError
from climassay.io import describe_first_problem, parse_json, write_file
from climassay.models.contract import Encoder, Generator, OpenWeights

T = TypeVar("T")
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Provenance:
    """A trained model's data, the encoder or model whose output it reads, and its scores."""

    data: str = ""
    data_sha256: str = ""
    licence: str = ""
    """Licence of the training data and of what was learned from it, in words."""
    items: int = 0
    groups: int = 0
    """Number of groups that folds never split: claims, passages, sections."""
    encoder: str = ""
    """Name of the encoder whose vectors it reads; may be empty."""
    encoder_fingerprint: str = ""
    model: str = ""
    """Name of the language model whose hidden states it reads; may be empty."""
    fingerprint: str = ""
    """Fingerprint of that model."""
    dtype: str = ""
    layers: tuple[int, ...] = ()
    """Layers whose states are read, as :meth:`~climassay.models.contract.OpenWeights.harvest` numbers them."""
    template: str = ""
    """Name of the prompt template of the items."""
    template_sha256: str = ""
    regularisation: float | None = None
    """C of the fit; None without regularisation."""
    seed: int = 0
    measured: dict[str, float] = field(default_factory=dict)
    """Scores on held-out items, by name."""
    trained_on: tuple[str, ...] = ()
    """Ids of the training items (of texts: :func:`~climassay.claim_identity.words_id`), to exclude them from tests."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of this kind of model, as JSON values."""

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> "Provenance":
        """Return the provenance of a file's header.

        Raises:
            ValueError: A value is of another type.
        """
        return TypeAdapter(cls).validate_python(facts)

    def reading(self, encoder: Encoder | None = None, model: OpenWeights | None = None) -> Self:
        """Return a copy with the encoder and the model whose output is read."""
        return replace(
            self,
            encoder=encoder.name if encoder else "",
            encoder_fingerprint=encoder.fingerprint if encoder else "",
            model=model.name if model else "",
            fingerprint=model.fingerprint if model else "",
            dtype=model.dtype if model else "",
        )

    def facts(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable values for :meth:`read`."""
        return asdict(self)

    def knows(self, text: str) -> bool:
        """Return whether a text of these words was among the training items."""
        return words_id(text) in self.trained_on

    def check(self, thing: str, *, encoder: Encoder | None = None, model: Generator | None = None) -> None:
        """Validate that the encoder or model is the one whose output the thing was trained on.

        Raises:
            InputError: It is another one.
        """
        for role, name, expected, current in (
            ("encoder", self.encoder, self.encoder_fingerprint, encoder),
            ("model", self.model, self.fingerprint, model),
        ):
            if current is not None and expected and current.fingerprint != expected:
                raise InputError(
                    f"This {thing} was trained on the {role} {name} ({expected[:12]}) and cannot read {current.name}"
                    f" ({current.fingerprint[:12]}): the weights or the number format (--dtype) differ; use it, or"
                    f" train {'an' if thing[0] in 'aeiou' else 'a'} {thing} on this one."
                )


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """File format of a kind of trained model."""

    name: str
    """Format name in the header, for example ``climassay-probe``."""
    version: int
    """Format version; files of other versions are refused."""
    thing: str
    """Name of the model in messages, for example ``probe``."""
    trained_by: str
    """Command that trains one, for example ``climassay generate validate train``."""

    def save(self, path: Path, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Write arrays of any shape and JSON-serialisable facts; an existing file is replaced atomically.

        Raises:
            InputError: The file cannot be written.
            MissingExtraError: safetensors is not installed.
        """
        header = {"format": self.name, "version": self.version, **facts}
        tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        write_file(
            path, safetensors_library().numpy.save(tensors, {key: json.dumps(value) for key, value in header.items()})
        )

    def load(self, path: Path, build: Callable[[dict[str, Any], dict[str, Array]], T]) -> T:
        """Load a file and build its model.

        ``build`` makes the model from the facts and the arrays, in their saved shapes; a KeyError, TypeError or
        ValueError counts as a damaged file.

        Raises:
            InputError: The file is missing, damaged, of another kind, or of another version.
            MissingExtraError: safetensors is not installed.
        """
        if not path.is_file():
            raise InputError(f"There is no {self.thing} {path}: train one with {self.trained_by}, or check the path.")
        library = safetensors_library()
        try:
            with library.safe_open(path, framework="numpy") as file:
                header = file.metadata() or {}
                if header.get("format") != json.dumps(self.name):
                    raise InputError(f"{path} is a safetensors file but no {self.thing} of climassay.")
                facts = {key: parse_json(value) for key, value in header.items()}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if facts["version"] != self.version:
                raise InputError(
                    f"The {self.thing} {path} has format version {facts['version']}, but this version of climassay "
                    f"reads version {self.version}: train it again, or update climassay."
                )
            return build(facts, arrays)
        except (
            library.SafetensorError,
            AttributeError,
            OSError,
            KeyError,
            IndexError,
            OverflowError,
            TypeError,
            ValueError,
        ) as error:
            raise InputError(
                f"The {self.thing} {path} is damaged ({describe_first_problem(error)}); train it again."
            ) from error


def safetensors_library() -> Any:
    """Import and return safetensors, with its functions for numpy.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import safetensors
        import safetensors.numpy
    except ModuleNotFoundError as error:
        raise MissingExtraError("Files of arrays need safetensors: pip install 'climassay[local]'.") from error
    return safetensors


class SavedModel:
    """A trained model in one file, with its arrays and JSON facts.

    A subclass defines its format, its contents (:meth:`contents`), and how they are read (:meth:`build`).
    """

    __slots__ = ()
    FORMAT: ClassVar[ModelFormat]

    def contents(self) -> tuple[Mapping[str, Array], Mapping[str, Any]]:
        """Return arrays of any shape by name, and JSON-serialisable facts."""
        raise NotImplementedError

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """Return the model of facts and arrays.

        Raises:
            KeyError, TypeError, ValueError: The file is damaged.
        """
        raise NotImplementedError

    def save(self, path: Path) -> None:
        """Write the model to one file; an existing file is replaced atomically.

        Raises:
            InputError: The file cannot be written.
            MissingExtraError: safetensors is not installed.
        """
        self.FORMAT.save(path, *self.contents())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load the model of a file.

        Raises:
            InputError: The file is missing, damaged, of another kind, or of another version.
            MissingExtraError: safetensors is not installed.
        """
        return cls.FORMAT.load(path, cls.build)


def checked_array(name: str, array: Array, shape: tuple[int | None, ...]) -> Array:
    """Return an array of finite 64-bit floats after checking its shape (None: any length).

    Raises:
        ValueError: The array has another shape or type, or is not finite.
    """
    fits = array.ndim == len(shape) and all(
        expected in (None, actual) for expected, actual in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != np.float64:
        raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return array
