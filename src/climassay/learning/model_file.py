"""Save trained models as .safetensors files, with all values other than arrays as JSON in the header.

Pickle is not used, so that opening a file from elsewhere cannot execute code. Every file names its training data, and
the encoder or language model that computes its features.
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
    """Training data, feature models and scores of a trained model."""

    data: str = ""
    data_sha256: str = ""
    licence: str = ""
    """Licence of the training data and of the trained model, in words."""
    items: int = 0
    groups: int = 0
    """Number of groups of items (claims, passages, sections) that were kept together in cross-validation."""
    encoder: str = ""
    """Name of the encoder whose embeddings are features; empty if there is none."""
    encoder_fingerprint: str = ""
    model: str = ""
    """Name of the language model whose hidden states are features; empty if there is none."""
    fingerprint: str = ""
    """Fingerprint of the language model."""
    dtype: str = ""
    """Number format of the language model."""
    layers: tuple[int, ...] = ()
    """Layers whose hidden states are features, numbered as in
    :meth:`~climassay.models.contract.OpenWeights.harvest`."""
    template: str = ""
    """Name of the prompt template that contains the items; empty if there is none."""
    template_sha256: str = ""
    regularisation: float | None = None
    """Value of C in the fit; None without regularisation."""
    seed: int = 0
    measured: dict[str, float] = field(default_factory=dict)
    """Scores on held-out items, by name."""
    trained_on: tuple[str, ...] = ()
    """Ids of the training items, to exclude them from tests; the ids of texts are computed by
    :func:`~climassay.claim_identity.words_id`."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Further settings, which depend on the kind of model, as JSON-serialisable values."""

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> "Provenance":
        """Restore a provenance from the values of :meth:`to_dict`.

        Raises:
            ValueError: A value has the wrong type.
        """
        return TypeAdapter(cls).validate_python(metadata)

    def with_feature_models(self, encoder: Encoder | None = None, model: OpenWeights | None = None) -> Self:
        """Return a copy that names the given encoder and language model as the source of features."""
        return replace(
            self,
            encoder=encoder.name if encoder else "",
            encoder_fingerprint=encoder.fingerprint if encoder else "",
            model=model.name if model else "",
            fingerprint=model.fingerprint if model else "",
            dtype=model.dtype if model else "",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable values."""
        return asdict(self)

    def summary(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable values, with the number of training items instead of their ids."""
        return {**self.to_dict(), "trained_on": len(self.trained_on)}

    def was_trained_on(self, text: str) -> bool:
        """Return whether a text with the same words was among the training items."""
        return words_id(text) in self.trained_on

    def check(self, display_name: str, *, encoder: Encoder | None = None, model: Generator | None = None) -> None:
        """Check that an encoder or language model is the one that computed the training features.

        Args:
            display_name: Name of the trained model in the error message, for example ``probe``.
            encoder: Encoder to check; None for no check.
            model: Language model to check; None for no check.

        Raises:
            InputError: The encoder or language model is another one.
        """
        for role, name, expected_fingerprint, feature_model in (
            ("encoder", self.encoder, self.encoder_fingerprint, encoder),
            ("model", self.model, self.fingerprint, model),
        ):
            if feature_model is not None and expected_fingerprint and feature_model.fingerprint != expected_fingerprint:
                raise InputError(
                    f"This {display_name} was trained on the {role} {name} ({expected_fingerprint[:12]}) and cannot "
                    f"read {feature_model.name} ({feature_model.fingerprint[:12]}): the weights or the number format "
                    "(--dtype) differ; use it, or"
                    f" train {'an' if display_name[0] in 'aeiou' else 'a'} {display_name} on this one."
                )


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """File format of one kind of trained model."""

    name: str
    """Name of the format in the file's header, for example ``climassay-probe``."""
    version: int
    """Version of the format; files of other versions are refused."""
    display_name: str
    """Name of the model in messages, for example ``probe``."""
    trained_by: str
    """Command that trains such a model, for example ``climassay generate validate train``."""

    def save(self, path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, Any]) -> None:
        """Write a model to a file, replacing an existing file atomically.

        ``metadata`` has all JSON-serialisable values of the model, in addition to its arrays.

        Raises:
            InputError: The file cannot be written.
            MissingExtraError: safetensors is not installed.
        """
        header = {"format": self.name, "version": self.version, **metadata}
        tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        write_file(
            path, safetensors_library().numpy.save(tensors, {key: json.dumps(value) for key, value in header.items()})
        )

    def load(self, path: Path, build: Callable[[dict[str, Any], dict[str, Array]], T]) -> T:
        """Load a model from a file.

        Args:
            path: File of the model.
            build: Function that creates the model from the metadata and arrays of :meth:`save`. If it raises a
                KeyError, TypeError or ValueError, the file counts as damaged.

        Raises:
            InputError: The file is missing, damaged, of another kind, or of another version.
            MissingExtraError: safetensors is not installed.
        """
        if not path.is_file():
            raise InputError(
                f"There is no {self.display_name} {path}: train one with {self.trained_by}, or check the path."
            )
        library = safetensors_library()
        try:
            with library.safe_open(path, framework="numpy") as file:
                header = file.metadata() or {}
                if header.get("format") != json.dumps(self.name):
                    raise InputError(f"{path} is a safetensors file but no {self.display_name} of climassay.")
                metadata = {key: parse_json(value) for key, value in header.items()}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if metadata["version"] != self.version:
                raise InputError(
                    f"The {self.display_name} {path} has format version {metadata['version']}, but this version of "
                    f"climassay reads version {self.version}: train it again, or update climassay."
                )
            return build(metadata, arrays)
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
                f"The {self.display_name} {path} is damaged ({describe_first_problem(error)}); train it again."
            ) from error


def safetensors_library() -> Any:
    """Import and return the package safetensors, including its functions for numpy.

    Raises:
        MissingExtraError: safetensors is not installed.
    """
    try:
        import safetensors
        import safetensors.numpy
    except ModuleNotFoundError as error:
        raise MissingExtraError("Files of arrays need safetensors: pip install 'climassay[local]'.") from error
    return safetensors


class SavedModel:
    """Base class of trained models that are saved to one file of arrays and JSON-serialisable values (metadata).

    A subclass defines the file format (``FORMAT``), and implements :meth:`contents` and :meth:`build`.
    """

    __slots__ = ()
    FORMAT: ClassVar[ModelFormat]

    def contents(self) -> tuple[Mapping[str, Array], Mapping[str, Any]]:
        """Return everything to save: arrays and metadata (JSON-serialisable values), both by name."""
        raise NotImplementedError

    @classmethod
    def build(cls, metadata: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """Restore a model from the metadata and arrays of :meth:`contents`.

        Raises:
            KeyError, TypeError, ValueError: A value is missing or invalid, because the file is damaged.
        """
        raise NotImplementedError

    def save(self, path: Path) -> None:
        """Write the model to a file, replacing an existing file atomically.

        Raises:
            InputError: The file cannot be written.
            MissingExtraError: safetensors is not installed.
        """
        self.FORMAT.save(path, *self.contents())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load a model from a file.

        Raises:
            InputError: The file is missing, damaged, of another kind, or of another version.
            MissingExtraError: safetensors is not installed.
        """
        return cls.FORMAT.load(path, cls.build)


def check_model_path(path: Path) -> None:
    """Check, before training, that a model file can be written to a path.

    Raises:
        InputError: The path is a folder, or its parent folder does not exist.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the model a file's name, for example {path}/model.safetensors.")
    if not path.parent.is_dir():
        raise InputError(f"The folder of {path} does not exist: make it first, or choose another place.")


def check_array(name: str, array: Array, shape: tuple[int | None, ...]) -> Array:
    """Check that an array consists of finite 64-bit floats and has the given shape, and return it.

    ``name`` names the array in error messages; None in ``shape`` stands for any length.

    Raises:
        ValueError: The array has another shape or type, or is not finite.
    """
    has_shape = array.ndim == len(shape) and all(
        required_length in (None, length) for required_length, length in zip(shape, array.shape, strict=True)
    )
    if not has_shape or array.dtype != np.float64:
        raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return array
