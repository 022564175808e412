"""What a training leaves beside its adapter: where it came from, and how it went."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.given_files import parse_json, read_text
from climassay.tuning.config import TuningConfig
from climassay.tuning.data import TextData, TuningData
from climassay.tuning.files import replace_file

RESULT_FILE = "climassay.json"
FORMAT = 1
"""Of the file; one of another format is refused."""


@dataclass(frozen=True, slots=True)
class StepLoss:
    """One step of the optimiser."""

    step: int
    """From 1."""
    loss: float
    """Mean over the step's learned tokens before the step was taken, in nats."""
    learning_rate: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The validation data under the adapter as it was after so many steps."""

    step: int
    """0 is the model as it was."""
    loss: float
    """Nats a token."""

    @property
    def perplexity(self) -> float:
        """exp(loss), infinite where that is beyond floating point."""
        return math.exp(self.loss) if self.loss < 700 else math.inf


@dataclass(frozen=True, slots=True)
class DataSummary:
    """The data of a training, without the data."""

    name: str
    kind: str
    """``examples`` or ``documents``."""
    size: int
    """Number of them."""
    sha256: str
    sources: tuple[str, ...] = ()
    """Titles of documents."""
    sequences: int = 0
    tokens: int = 0
    learned: int = 0
    """Tokens that count in the loss."""
    cut: int = 0
    """Examples whose prompt was too long and lost its beginning."""

    @classmethod
    def of(cls, data: TuningData) -> "DataSummary":
        """What can be said before it is tokenised."""
        if isinstance(data, TextData):
            titles = tuple(document.title for document in data.documents)
            return cls(data.name, "documents", data.size, data.sha256, titles)
        return cls(data.name, "examples", data.size, data.sha256)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "DataSummary":
        """Read what ``dataclasses.asdict`` and JSON made of it."""
        return cls(**{**data, "sources": tuple(data["sources"])})


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting of a search."""

    config: TuningConfig
    loss: float | None
    """The lowest validation loss, nats a token; None where the training diverged."""
    step: int
    """At which it was; 0 where the training diverged."""
    seconds: float


@dataclass(frozen=True, slots=True)
class TuningResult:
    """An adapter and all that is to be known about it."""

    folder: Path
    fingerprint: str
    """SHA-256 over the base model's fingerprint, the data and the settings: the same means nothing is left to do."""
    base: str
    """Name of the model."""
    base_fingerprint: str
    dtype: str
    """Of the frozen weights in training."""
    device: str
    threads: int
    config: TuningConfig
    preset: str | None
    train: DataSummary
    validation: DataSummary
    steps: int
    """Steps planned."""
    losses: tuple[StepLoss, ...]
    """Of every step that was taken."""
    evaluations: tuple[Evaluation, ...]
    """The first one is of the model as it was."""
    best_step: int
    """Steps after which the adapter kept was as it is."""
    stopped_early: bool
    seconds: float
    """Spent on steps and evaluations, interruptions not counted."""
    weights_sha256: str
    """Of ``adapter_model.safetensors``."""
    versions: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    """All settings of the search that chose this one, best first; empty where there was none."""

    @property
    def model(self) -> str:
        """How the model with the adapter is named where models are loaded."""
        return f"{self.base}+adapter={self.folder}"

    @property
    def name(self) -> str:
        """Name of the adapter."""
        return self.folder.name

    @property
    def before(self) -> Evaluation:
        """Of the model without the adapter."""
        return self.evaluations[0]

    @property
    def best(self) -> Evaluation:
        """Of the adapter kept."""
        return next(one for one in self.evaluations if one.step == self.best_step)


def fingerprint_of(*parts: object) -> str:
    """SHA-256 over what can be written as JSON."""
    return hashlib.sha256(json.dumps([FORMAT, *parts], sort_keys=True).encode()).hexdigest()


def write_result(result: TuningResult) -> None:
    """Write ``climassay.json`` into the adapter's folder, last of all: it says that the training is finished.

    Raises:
        InputError: It cannot be written.
    """
    data = asdict(result)
    del data["folder"]
    text = json.dumps({"format": FORMAT, **data}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    replace_file(result.folder / RESULT_FILE, lambda file: file.write_text(text, encoding="utf-8"))


def read_result(folder: Path) -> TuningResult | None:
    """What is known of an adapter; None where there is no finished one.

    Raises:
        InputError: The file is damaged, or of another version.
    """
    file = folder / RESULT_FILE
    if not file.is_file():
        return None
    try:
        data = parse_json(read_text(file))
        if data.pop("format") != FORMAT:
            raise ValueError("another format")
        return _from_data(folder, data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file} was not written by this version of climassay or is damaged: train into another folder."
        ) from error


def _from_data(folder: Path, data: dict[str, Any]) -> TuningResult:
    return TuningResult(
        **{
            **data,
            "folder": folder,
            "config": TuningConfig.from_data(data["config"]),
            "train": DataSummary.from_data(data["train"]),
            "validation": DataSummary.from_data(data["validation"]),
            "losses": tuple(StepLoss(**one) for one in data["losses"]),
            "evaluations": tuple(Evaluation(**one) for one in data["evaluations"]),
            "trials": tuple(
                Trial(**{**one, "config": TuningConfig.from_data(one["config"])}) for one in data["trials"]
            ),
            "warnings": tuple(data["warnings"]),
        }
    )


def list_adapters(folder: Path) -> list[TuningResult]:
    """All finished adapters in the folders of a folder, by name; what is none of ours is left out."""
    found = []
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            result = read_result(place)
        except InputError:
            continue
        if result is not None:
            found.append(result)
    return found
