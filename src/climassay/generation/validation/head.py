"""A trained head as a file: one .safetensors file with the weights, and everything else as JSON in its header."""

import contextlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from climassay.errors import InputError, MissingExtraError
from climassay.generation.draft import Subject
from climassay.generation.validation.calibrator import Calibrator, FloatArray
from climassay.generation.validation.head_fitting import Linear
from climassay.generation.validation.threshold import Threshold
from climassay.statistics import Estimate, Interval

FORMAT = "climassay-validator"
VERSION = 1
HeadKind = Literal["features", "probe"]


@dataclass(frozen=True, slots=True)
class HeadSource:
    """Where a validator's head comes from."""

    kind: HeadKind
    """What it reads: an encoder's vectors and words, or a model's hidden states."""
    model: str
    """Name of the encoder or of the language model."""
    fingerprint: str
    """Of the same."""
    data: str
    """Name of the training data."""
    data_sha256: str
    labels: int
    invalid: int
    kinds: tuple[str, ...]
    """Kinds of questions among them: it judges no others."""
    regularisation: float
    seed: int
    layers: tuple[int, ...] = ()
    """Whose states are read."""
    dtype: str = ""
    """Number format the model computed in."""
    template_sha256: str = ""
    subject: Subject = field(default_factory=Subject)
    cross_validated: tuple[tuple[str, float], ...] = ()
    """``auroc``, ``auroc_low``, ``auroc_high``, ``constant``, ``brier``, ``brier_constant``."""
    trained_on: tuple[str, ...] = ()
    """Ids of the drafts, so that nobody tests on them by mistake."""


@dataclass(frozen=True, slots=True, eq=False)
class ValidatorHead:
    """A regression, its calibration and its threshold."""

    linear: Linear
    calibrator: Calibrator
    threshold: Threshold | None
    """None where no precision was asked for."""
    source: HeadSource

    def probabilities(self, features: FloatArray) -> FloatArray:
        """P(valid), shape [items].

        Raises:
            InputError: Another number of features than the head reads.
        """
        if features.shape[1] != len(self.linear.weights):
            raise InputError(
                f"This validator reads {len(self.linear.weights)} features, but there are {features.shape[1]}: it was "
                "trained by another version of climassay; train it again."
            )
        return self.calibrator(self.linear.scores(features))

    def with_threshold(self, threshold: Threshold | None) -> "ValidatorHead":
        """The same with another threshold."""
        return replace(self, threshold=threshold)


def calibrator_from(data: dict[str, Any]) -> Calibrator:
    """The calibrator that ``asdict`` and JSON made this of."""
    return Calibrator(**{**data, "scores": tuple(data["scores"]), "probabilities": tuple(data["probabilities"])})


def threshold_from(data: dict[str, Any] | None) -> Threshold | None:
    """The threshold that ``asdict`` and JSON made this of."""

    def estimate(part: dict[str, Any]) -> Estimate:
        return Estimate(**{**part, "interval": Interval(*part["interval"])})

    if data is None:
        return None
    return Threshold(data["value"], data["wanted"], estimate(data["precision"]), estimate(data["yield_"]))


def save_head(head: ValidatorHead, path: Path) -> None:
    """Write a head; an existing file is replaced at once, never left half written.

    Raises:
        InputError: The file cannot be written.
        MissingExtraError: safetensors is not installed.
    """
    _, to_bytes = _safetensors()
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "bias": head.linear.bias,
        "calibrator": asdict(head.calibrator),
        "threshold": None if head.threshold is None else asdict(head.threshold),
        "source": asdict(head.source),
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        arrays = {"weights": np.ascontiguousarray(head.linear.weights)}
        temporary.write_bytes(to_bytes(arrays, {key: json.dumps(value) for key, value in facts.items()}))
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"The validator cannot be written to {path}: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def load_head(path: Path) -> ValidatorHead:
    """Read a head exactly as it was saved.

    Raises:
        InputError: The file is missing, damaged, no validator, or written by a newer climassay.
        MissingExtraError: safetensors is not installed.
    """
    if not path.is_file():
        raise InputError(f"There is no validator {path}: train one with climassay validator train, or check the path.")
    safe_open, _ = _safetensors()
    from safetensors import SafetensorError

    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            if FORMAT not in header.get("format", ""):
                raise InputError(f"{path} is a safetensors file but no validator of climassay.")
            facts = {key: json.loads(value) for key, value in header.items()}
            weights = file.get_tensor("weights")
        if not isinstance(facts["version"], int) or facts["version"] > VERSION:
            raise InputError(f"The validator {path} was written by a newer climassay than this one; update it.")
        return _build(facts, weights)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"The validator {path} is damaged ({error}); train it again.") from error


def _build(facts: dict[str, Any], weights: FloatArray) -> ValidatorHead:
    if weights.ndim != 1 or weights.dtype != np.float64 or not np.isfinite(weights).all():
        raise ValueError(f"its weights have shape {weights.shape} and type {weights.dtype}, or are not finite")
    source = dict(facts["source"])
    for name in ("kinds", "layers", "trained_on"):
        source[name] = tuple(source[name])
    source["subject"] = Subject(**source["subject"])
    source["cross_validated"] = tuple((name, value) for name, value in source["cross_validated"])
    return ValidatorHead(
        Linear(weights, float(facts["bias"])),
        calibrator_from(facts["calibrator"]),
        threshold_from(facts["threshold"]),
        HeadSource(**source),
    )


def _safetensors() -> tuple[Any, Any]:
    try:
        from safetensors import safe_open
        from safetensors.numpy import save
    except ModuleNotFoundError as error:
        raise MissingExtraError("Saved validators need safetensors: pip install 'climassay[local]'.") from error
    return cast(Any, safe_open), cast(Any, save)
