"""Trained models as files: one .safetensors file, arrays as they are and everything else as JSON in its header.

No pickle, so that a file of somebody else's can be opened without running it. Every file says what it was learned from
and whose vectors or hidden states it reads.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from climassay.claim_identity import words_id
from climassay.errors import InputError, MissingExtraError
from climassay.io import first_problem, parse_json, write_file
from climassay.models.contract import Encoder, Generator, OpenWeights

T = TypeVar("T")
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a trained model was learned from, whose output it reads, and how good it is."""

    data: str = ""
    data_sha256: str = ""
    licence: str = ""
    """Licence of the training data and of what was learned from it, in words."""
    items: int = 0
    groups: int = 0
    """What was never split between folds: claims, passages, sections."""
    encoder: str = ""
    """Name of the encoder whose vectors it reads; empty where it reads none."""
    encoder_fingerprint: str = ""
    model: str = ""
    """Name of the language model whose hidden states it reads; empty where it reads none."""
    fingerprint: str = ""
    """Fingerprint of that model."""
    dtype: str = ""
    layers: tuple[int, ...] = ()
    """Layers whose states are read, as :meth:`~climassay.models.contract.OpenWeights.harvest` numbers them."""
    template: str = ""
    """Name of the prompt in which items are read."""
    template_sha256: str = ""
    regularisation: float | None = None
    """C of the fit; None where there is none."""
    seed: int = 0
    measured: dict[str, float] = field(default_factory=dict)
    """Figures on held-out items, by name."""
    trained_on: tuple[str, ...] = ()
    """Ids of the training items (of texts: :func:`~climassay.claim_identity.words_id`), so that nobody tests on
    them."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What only this kind of model has, as JSON values."""

    @classmethod
    def read(cls, facts: Mapping[str, Any], **renamed: str) -> "Provenance":
        """From the JSON of a file.

        Args:
            facts: What appears in the header. Names that are not fields become settings.
            renamed: Name that an earlier version gave to a field, by the field's name now.

        Raises:
            TypeError, ValueError: A value is of another kind.
        """
        today = {old: new for new, old in renamed.items()}
        given = {today.get(name, name): value for name, value in facts.items()}
        known = {one.name for one in fields(cls)}
        settings = {name: given.pop(name) for name in list(given) if name not in known}
        given["settings"] = {**given.get("settings", {}), **settings}
        for name in ("layers", "trained_on"):
            given[name] = tuple(given.get(name, ()))
        given["measured"] = {str(name): float(value) for name, value in dict(given.get("measured", {})).items()}
        return cls(**given)

    def reading(self, encoder: Encoder | None = None, model: OpenWeights | None = None) -> Self:
        """The same, with the encoder and the model whose output is read, where there are any."""
        return replace(
            self,
            encoder=encoder.name if encoder else "",
            encoder_fingerprint=encoder.fingerprint if encoder else "",
            model=model.name if model else "",
            fingerprint=model.fingerprint if model else "",
            dtype=model.dtype if model else "",
        )

    def facts(self) -> dict[str, Any]:
        """What JSON can write; :meth:`read` gives the same again."""
        return asdict(self)

    def knows(self, text: str) -> bool:
        """Whether a text of these words was among the training items."""
        return words_id(text) in self.trained_on

    def check(self, thing: str, *, encoder: Encoder | None = None, model: Generator | None = None) -> None:
        """Make sure that an encoder or a model at hand is the one whose output a thing (in words) was learned from.

        Raises:
            InputError: It is another one.
        """
        for kind, name, wanted, given in (
            ("encoder", self.encoder, self.encoder_fingerprint, encoder),
            ("model", self.model, self.fingerprint, model),
        ):
            if given is not None and wanted and given.fingerprint != wanted:
                raise InputError(
                    f"This {thing} was trained on the {kind} {name} ({wanted[:12]}) and cannot read {given.name}"
                    f" ({given.fingerprint[:12]}): the weights or the number format (--dtype) differ; use that one, or"
                    f" train {'an' if thing[0] in 'aeiou' else 'a'} {thing} on this one."
                )


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """A kind of file."""

    name: str
    """Stands in the header, for example ``climassay-probe``."""
    version: int
    """Newer ones are refused."""
    thing: str
    """What such a file holds, in words: ``probe``."""
    trained_by: str
    """What makes one, for example ``climassay generate validate train``."""

    def save(self, path: Path, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Write arrays of any shape and facts that JSON can write; an existing file is replaced at once.

        Raises:
            InputError: The file cannot be written.
            MissingExtraError: safetensors is not installed.
        """
        header = {"format": self.name, "version": self.version, **facts}
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        write_file(
            path, safetensors_library().numpy.save(whole, {key: json.dumps(value) for key, value in header.items()})
        )

    def load(self, path: Path, build: Callable[[dict[str, Any], dict[str, Array]], T]) -> T:
        """Read a file exactly as it was saved.

        ``build`` makes the thing of the facts and the arrays, in the shapes they were saved in; a KeyError, TypeError
        or ValueError of it says that the file is damaged.

        Raises:
            InputError: The file is missing, damaged, of another kind, or written by a newer climassay.
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
            if not isinstance(facts["version"], int) or facts["version"] > self.version:
                raise InputError(
                    f"The {self.thing} {path} has format version {facts['version']}, newer than this version of "
                    "climassay reads; update climassay."
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
            raise InputError(f"The {self.thing} {path} is damaged ({first_problem(error)}); train it again.") from error


def safetensors_library() -> Any:
    """The package, with its functions for numpy.

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
    """Something learned that is kept in one file, with its arrays as they are and everything else as JSON.

    A class says in which format, what is written (:meth:`contents`), and how it is made of that again (:meth:`build`).
    """

    __slots__ = ()
    FORMAT: ClassVar[ModelFormat]

    def contents(self) -> tuple[Mapping[str, Array], Mapping[str, Any]]:
        """Arrays of any shape by name, and facts that JSON can write."""
        raise NotImplementedError

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """The thing that :meth:`contents` were written of, also by an earlier climassay.

        Raises:
            KeyError, TypeError, ValueError: The file is damaged.
        """
        raise NotImplementedError

    def save(self, path: Path) -> None:
        """Write it as one file; an existing one is replaced at once, never left half written.

        Raises:
            InputError: The file cannot be written.
            MissingExtraError: safetensors is not installed.
        """
        self.FORMAT.save(path, *self.contents())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read it exactly as it was saved.

        Raises:
            InputError: The file is missing, damaged, of another kind, or written by a newer climassay.
            MissingExtraError: safetensors is not installed.
        """
        return cls.FORMAT.load(path, cls.build)


def checked_array(name: str, array: Array, shape: tuple[int | None, ...]) -> Array:
    """An array of 64-bit floats that are all finite, of this shape (None: any length).

    Raises:
        ValueError: It is another one.
    """
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or array.dtype != np.float64:
        raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return array
