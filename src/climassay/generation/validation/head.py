"""A trained head as a file: one .safetensors file with the weights, and everything else as JSON in its header."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from climassay.errors import InputError
from climassay.generation.draft import Subject
from climassay.generation.validation.calibrator import Calibrator, FloatArray
from climassay.generation.validation.head_fitting import Linear
from climassay.generation.validation.threshold import Threshold
from climassay.learning.model_file import ModelFormat, checked_array
from climassay.statistics import Estimate, Interval

FORMAT = ModelFormat("climassay-validator", 1, "validator", "climassay validator train")
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
    facts = {
        "bias": head.linear.bias,
        "calibrator": asdict(head.calibrator),
        "threshold": None if head.threshold is None else asdict(head.threshold),
        "source": asdict(head.source),
    }
    FORMAT.save(path, {"weights": head.linear.weights}, facts)


def load_head(path: Path) -> ValidatorHead:
    """Read a head exactly as it was saved.

    Raises:
        InputError: The file is missing, damaged, no validator, or written by a newer climassay.
        MissingExtraError: safetensors is not installed.
    """
    return FORMAT.load(path, _build)


def _build(facts: dict[str, Any], arrays: dict[str, FloatArray]) -> ValidatorHead:
    weights = checked_array("weights", arrays["weights"], (None,))
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
