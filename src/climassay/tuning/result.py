"""Result of a training, stored in the adapter's folder: its provenance and its losses.

Files are written atomically, weights are not pickled, and a lock keeps two processes from training into one folder.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from climassay.errors import InputError
from climassay.io import atomic_path, parse_json, read_text
from climassay.reporting.results import Result
from climassay.reporting.tables import Table, counted
from climassay.tuning.config import TuningConfig
from climassay.tuning.data import TextData, TuningData

try:
    import fcntl
except ImportError:  # Windows: two trainings into one folder are the user's to avoid.
    fcntl = None  # type: ignore[assignment]

_LOCK = ".lock"


def replace_file(file: Path, write: Callable[[Path], object]) -> None:
    """Write a file atomically and durably.

    ``write`` writes to a temporary path. The temporary file is synced to disk and then renamed to ``file``.

    Raises:
        InputError: The file cannot be written.
    """
    with atomic_path(file) as part:
        write(part)
        with part.open("rb") as stream:
            os.fsync(stream.fileno())


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder for this process within the block; if the process is killed, the system releases the lock.

    Raises:
        InputError: Another process holds the lock, or the folder cannot be created.
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
"""Version of the format of result files; files of other versions are rejected."""


@dataclass(frozen=True, slots=True)
class StepLoss:
    """Loss and learning rate of one step of the optimiser."""

    step: int
    """Number of the step, starting at 1."""
    loss: float
    """Mean loss of the step's tokens before the update, in nats per token that counts in the loss."""
    learning_rate: float


@dataclass(frozen=True, slots=True)
class ValidationLoss:
    """Validation loss after a number of steps."""

    step: int
    """Number of completed steps; 0 for the model before training."""
    loss: float
    """Mean loss in nats per token."""

    @property
    def perplexity(self) -> float:
        """Perplexity, exp(loss); infinite if it exceeds the range of floating-point numbers."""
        return math.exp(self.loss) if self.loss < 700 else math.inf


@dataclass(frozen=True, slots=True)
class DataSummary:
    """Summary of training or validation data."""

    name: str
    kind: str
    """``examples`` or ``documents``."""
    size: int
    """Number of examples or documents."""
    sha256: str
    sources: tuple[str, ...] = ()
    """Titles of the documents; empty for examples."""
    sequences: int = 0
    tokens: int = 0
    learned: int = 0
    """Number of tokens that count in the loss."""
    cut: int = 0
    """Number of examples whose prompt was truncated on the left because it was too long."""

    @property
    def counted(self) -> str:
        """Size and kind as text, for example ``1 document``."""
        return counted(self.size, self.kind.removesuffix("s"))

    @classmethod
    def of(cls, data: TuningData) -> "DataSummary":
        """Create the summary of data that have not been tokenised."""
        if isinstance(data, TextData):
            titles = tuple(document.title for document in data.documents)
            return cls(data.name, "documents", data.size, data.sha256, titles)
        return cls(data.name, "examples", data.size, data.sha256)


@dataclass(frozen=True, slots=True)
class Trial:
    """Trial of a search: one combination of settings and its loss."""

    config: TuningConfig
    loss: float | None
    """Lowest validation loss in nats per token; None if the training diverged."""
    step: int
    """Number of completed steps at the lowest validation loss; 0 if the training diverged."""
    seconds: float


@dataclass(frozen=True, slots=True)
class TuningResult(Result):
    """Trained adapter with its provenance and its losses."""

    folder: Path
    fingerprint: str
    """SHA-256 of model, data and settings; equal trainings have equal fingerprints."""
    base: str
    """Name of the base model."""
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
    """Number of planned steps."""
    losses: tuple[StepLoss, ...]
    """Training loss of every step."""
    evaluations: tuple[ValidationLoss, ...]
    """Validation losses. The first is the loss of the model before training."""
    best_step: int
    """Number of completed steps when the validation loss was lowest; the adapter of that step was saved."""
    stopped_early: bool
    seconds: float
    """Seconds spent on training and evaluation; pauses between interruption and resumption do not count."""
    weights_sha256: str
    """SHA-256 of ``adapter_model.safetensors``."""
    versions: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    """Trials of the search that selected this adapter, best first; empty without a search."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, the name of the adapted model, and the losses as JSON-serialisable values."""
        data = {"name": self.name, "model": self.model, **asdict(self)}
        evaluations = [{**asdict(evaluation), "perplexity": evaluation.perplexity} for evaluation in self.evaluations]
        return {**data, "evaluations": evaluations, "loss_before": self.before.loss, "loss": self.best.loss}

    def tables(self) -> list[Table]:
        """Return a table of the validation losses and, after a search, a table of the search's trials."""
        rows = [
            (
                f"{evaluation.step}",
                f"{evaluation.loss:.4f}",
                f"{evaluation.perplexity:.2f}",
                "kept" if evaluation.step == self.best_step else "",
            )
            for evaluation in self.evaluations
        ]
        losses_table = Table.of(
            f"{self.name}: {self.base} on {self.train.counted} of {self.train.name}",
            ("step", "validation loss", "perplexity", ""),
            rows,
            left_columns=0,
            note=f"Nats a token of {self.validation.counted} ({self.validation.name}, "
            f"{self.validation.learned} tokens). Settings: {self._describe_settings()}.",
            strong=[index for index, evaluation in enumerate(self.evaluations) if evaluation.step == self.best_step],
        )
        return [losses_table, *([self._make_trials_table()] if self.trials else [])]

    def notes(self) -> Iterator[str]:
        """Yield the warnings, the number of steps, and the name under which the adapter can be used."""
        yield from (f"Warning: {warning}" for warning in self.warnings)
        suffix = ", stopped early" if self.stopped_early else ""
        yield f"{len(self.losses)} of {self.steps} steps in {self.seconds:.0f} s{suffix}. Use it as\n{self.model}"

    def _make_trials_table(self) -> Table:
        names = ("rank", "alpha", "epochs", "learning_rate", "dropout", "weight_decay", "warmup", "schedule")
        searched_names = [name for name in names if len({getattr(trial.config, name) for trial in self.trials}) > 1]
        rows = [
            (
                *(f"{getattr(trial.config, name)}" for name in searched_names),
                "diverged" if trial.loss is None else f"{trial.loss:.4f}",
                f"{trial.step}",
            )
            for trial in self.trials
        ]
        headings = (*(name.replace("_", " ") for name in searched_names), "validation loss", "at step")
        return Table.of("Trials, best first", headings, rows, left_columns=0, strong=[0])

    def _describe_settings(self) -> str:
        settings = {**asdict(self.config), "targets": "+".join(self.config.targets)}
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items() if value is not None)

    @property
    def model(self) -> str:
        """Name of the base model with the adapter, for use in ``--model`` and similar options."""
        return f"{self.base}+adapter={self.folder}"

    @property
    def name(self) -> str:
        """Name of the adapter's folder."""
        return self.folder.name

    @property
    def before(self) -> ValidationLoss:
        """Validation loss of the model without the adapter."""
        return self.evaluations[0]

    @property
    def best(self) -> ValidationLoss:
        """Validation loss of the saved adapter."""
        return next(evaluation for evaluation in self.evaluations if evaluation.step == self.best_step)


def compute_fingerprint(*parts: object) -> str:
    """Return the SHA-256 of JSON-serialisable values and of the format version."""
    return hashlib.sha256(json.dumps([FORMAT, *parts], sort_keys=True).encode()).hexdigest()


def write_result(result: TuningResult) -> None:
    """Write ``climassay.json`` to the adapter's folder, which marks the training as finished.

    Raises:
        InputError: The file cannot be written.
    """
    data = asdict(result)
    del data["folder"]
    text = json.dumps({"format": FORMAT, **data}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    replace_file(result.folder / RESULT_FILE, lambda file: file.write_text(text, encoding="utf-8"))


def read_result(folder: Path) -> TuningResult | None:
    """Load the result of a finished training; None if the folder has none.

    Raises:
        InputError: The file is damaged, or has another version of the format.
    """
    file = folder / RESULT_FILE
    if not file.is_file():
        return None
    try:
        data = parse_json(read_text(file))
        file_format = data.pop("format")
        if file_format != FORMAT:
            raise ValueError("another format")
        return TypeAdapter(TuningResult).validate_python({**data, "folder": folder})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file} was not written by this version of climassay or is damaged: train into another folder."
        ) from error


def list_adapters(folder: Path) -> list[TuningResult]:
    """Return the results of all finished trainings in subfolders, sorted by name; unreadable results are skipped."""
    results = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            result = read_result(path)
        except InputError:
            continue
        if result is not None:
            results.append(result)
    return results
