"""What a training leaves beside its adapter: where it came from and how it went.

Files appear whole or not at all, whatever kills the process; weights are not pickles; a lock gives a folder to one.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from climassay.errors import InputError
from climassay.io import atomic_path, parse_json, read_text
from climassay.reporting.results import Result
from climassay.reporting.tables import Table, counted
from climassay.tuning.config import TuningConfig
from climassay.tuning.data import TextData, TuningData

if TYPE_CHECKING:
    pass

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
    with atomic_path(file) as part:
        write(part)
        with part.open("rb") as written:
            os.fsync(written.fileno())


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


RESULT_FILE = "climassay.json"
FORMAT = 1
"""Format of the file; one of another format is refused."""


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

    @property
    def counted(self) -> str:
        """Number and kind, for example ``1 document``."""
        return counted(self.size, self.kind.removesuffix("s"))

    @classmethod
    def of(cls, data: TuningData) -> "DataSummary":
        """What can be said before it is tokenised."""
        if isinstance(data, TextData):
            titles = tuple(document.title for document in data.documents)
            return cls(data.name, "documents", data.size, data.sha256, titles)
        return cls(data.name, "examples", data.size, data.sha256)


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
class TuningResult(Result):
    """An adapter and all that is to be known about it."""

    folder: Path
    fingerprint: str
    """SHA-256 over the base model's fingerprint, the data and the settings: the same means nothing is left to do."""
    base: str
    """Name of the model."""
    base_fingerprint: str
    dtype: str
    """Number format of the frozen weights in training."""
    device: str
    threads: int
    config: TuningConfig
    preset: str | None
    train: DataSummary
    validation: DataSummary
    steps: int
    """Steps planned."""
    losses: tuple[StepLoss, ...]
    """Loss of every step that was taken."""
    evaluations: tuple[Evaluation, ...]
    """The first one is of the model as it was."""
    best_step: int
    """Steps after which the adapter kept was as it is."""
    stopped_early: bool
    seconds: float
    """Spent on steps and evaluations, interruptions not counted."""
    weights_sha256: str
    """SHA-256 of ``adapter_model.safetensors``."""
    versions: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    """All settings of the search that chose this one, best first; empty where there was none."""

    def to_dict(self) -> dict[str, Any]:
        """Everything, with the name by which the adapter is used, losses and perplexities."""
        data = {"name": self.name, "model": self.model, **asdict(self)}
        evaluations = [{**asdict(one), "perplexity": one.perplexity} for one in self.evaluations]
        return {**data, "evaluations": evaluations, "loss_before": self.before.loss, "loss": self.best.loss}

    def tables(self) -> list[Table]:
        """The validation loss in the course of the training, and the trials of a search."""
        rows = [
            (f"{one.step}", f"{one.loss:.4f}", f"{one.perplexity:.2f}", "kept" if one.step == self.best_step else "")
            for one in self.evaluations
        ]
        course = Table.of(
            f"{self.name}: {self.base} on {self.train.counted} of {self.train.name}",
            ("step", "validation loss", "perplexity", ""),
            rows,
            left=0,
            note=f"Nats a token of {self.validation.counted} ({self.validation.name}, "
            f"{self.validation.learned} tokens). Settings: {self._settings()}.",
            strong=[place for place, one in enumerate(self.evaluations) if one.step == self.best_step],
        )
        return [course, *([self._trials()] if self.trials else [])]

    def notes(self) -> Iterator[str]:
        """Warnings, and how to use the adapter."""
        yield from (f"Warning: {warning}" for warning in self.warnings)
        early = ", stopped early" if self.stopped_early else ""
        yield f"{len(self.losses)} of {self.steps} steps in {self.seconds:.0f} s{early}. Use it as\n{self.model}"

    def _trials(self) -> Table:
        first = self.trials[0].config
        names = ("rank", "alpha", "epochs", "learning_rate", "dropout", "weight_decay", "warmup", "schedule")
        varied = [
            name for name in names if any(getattr(one.config, name) != getattr(first, name) for one in self.trials)
        ]
        rows = [
            (
                *(f"{getattr(trial.config, name)}" for name in varied),
                "diverged" if trial.loss is None else f"{trial.loss:.4f}",
                f"{trial.step}",
            )
            for trial in self.trials
        ]
        headings = (*(name.replace("_", " ") for name in varied), "validation loss", "at step")
        return Table.of("Trials, best first", headings, rows, left=0, strong=[0])

    def _settings(self) -> str:
        shown = {**asdict(self.config), "targets": "+".join(self.config.targets)}
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items() if value is not None)

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
        """Evaluation of the model without the adapter."""
        return self.evaluations[0]

    @property
    def best(self) -> Evaluation:
        """Evaluation of the adapter that was kept."""
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
        written = data.pop("format")
        if isinstance(written, int) and written > FORMAT:
            raise InputError(f"{file} was written by a newer climassay (format {written}): update climassay.")
        if written != FORMAT:
            raise ValueError("another format")
        return TypeAdapter(TuningResult).validate_python({**data, "folder": folder})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file} was not written by this version of climassay or is damaged: train into another folder."
        ) from error


def list_adapters(folder: Path) -> list[TuningResult]:
    """All finished adapters in the folders of a folder, by name; what is not one of ours is left out."""
    results = []
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            result = read_result(place)
        except InputError:
            continue
        if result is not None:
            results.append(result)
    return results
