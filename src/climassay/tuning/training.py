"""Train an adapter, go on with an interrupted training, or find that there is nothing left to do."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import torch

from climassay.errors import InputError
from climassay.models.model_files import file_digest
from climassay.tuning.adapter import WEIGHTS_FILE
from climassay.tuning.base import TuningBase
from climassay.tuning.checkpoints import read_progress, remove_checkpoint
from climassay.tuning.config import TuningConfig
from climassay.tuning.data import TuningData, check_data
from climassay.tuning.files import folder_lock
from climassay.tuning.interruption import interruptible
from climassay.tuning.result import RESULT_FILE, TuningResult, fingerprint_of, read_result
from climassay.tuning.run import ProgressCallback, Run

CHECKPOINT_SECONDS = 60.0


def train(
    model: str | TuningBase,
    train_data: TuningData,
    validation_data: TuningData,
    config: TuningConfig,
    folder: str | Path,
    *,
    device: str | None = None,
    preset: str | None = None,
    warnings: Sequence[str] = (),
    replace_other: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    on_progress: ProgressCallback | None = None,
) -> TuningResult:
    """Train a LoRA adapter, or go on with a training that was interrupted, or find that it is done.

    AdamW on the mean loss of each step's learned tokens. The validation loss is computed before the first step and as
    often as the settings say; the adapter of the evaluation with the lowest loss is kept. A process killed anywhere
    and started again gives the same adapter bit for bit on a CPU with the same number of threads; on a GPU as far as
    its kernels add up in the same order.

    Args:
        model: Name of a local model, or one that several trainings share.
        train_data: What is learned.
        validation_data: What decides when to stop and what to keep; of the same kind.
        config: The settings.
        folder: Where the adapter goes: a PEFT folder, with ``climassay.json``.
        device: Where to compute, for a model given by name.
        preset: Name of the preset behind the settings, for the record.
        warnings: What a reader of the result must know about the data, for example a leakage.
        replace_other: Remove what another training left in the folder.
        checkpoint_seconds: Between two checkpoints; one more is written after every evaluation and on Ctrl-C.
        on_progress: Called after every step and evaluation.

    Raises:
        InputError: The data cannot be learned from, the folder holds another training, or a setting does not fit.
        ModelError: The model cannot be loaded, or the loss is no number any more.
        KeyboardInterrupt: Ctrl-C; a checkpoint was written.
    """
    check_data(train_data, validation_data)
    base = model if isinstance(model, TuningBase) else TuningBase(model, device=device, dtype=config.dtype)
    if config.dtype not in (None, base.dtype):
        raise InputError(f"The settings want {config.dtype}, but the model is in {base.dtype}: give both the same.")
    config = replace(config, dtype=base.dtype)
    fingerprint = training_fingerprint(base, train_data, validation_data, config)
    place = Path(folder).expanduser().absolute()
    with folder_lock(place):
        done = _what_is_there(place, fingerprint, replace_other)
        if done is not None:
            return done
        with _random_numbers_kept(base), interruptible() as interruption:
            run = Run(base, (train_data, validation_data), config, place, fingerprint, interruption)
            run.checkpoint_seconds, run.on_progress = checkpoint_seconds, on_progress
            return run.finish(preset, tuple(warnings))


def training_fingerprint(
    base: TuningBase, train_data: TuningData, validation_data: TuningData, config: TuningConfig
) -> str:
    """SHA-256 over all that decides what an adapter becomes."""
    settings = asdict(replace(config, dtype=base.dtype))
    del settings["gradient_checkpointing"]
    return fingerprint_of(base.fingerprint, train_data.sha256, validation_data.sha256, settings)


def _what_is_there(folder: Path, fingerprint: str, replace_other: bool) -> TuningResult | None:
    """The finished adapter of this very training; None where there is work to do."""
    if replace_other:
        there = _fingerprint_there(folder)
        if there not in (None, fingerprint):
            for name in (RESULT_FILE, WEIGHTS_FILE):
                (folder / name).unlink(missing_ok=True)
            remove_checkpoint(folder)
    result = read_result(folder)
    if result is None:
        unfinished = read_progress(folder)
        if unfinished is not None and unfinished.fingerprint != fingerprint:
            raise InputError(
                f"{folder} holds an unfinished training with other data or settings: finish that one, choose another "
                "name, or have it replaced."
            )
        return None
    if result.fingerprint != fingerprint:
        raise InputError(
            f"{folder} holds an adapter trained from other data or with other settings: choose another name, or have "
            "it replaced."
        )
    weights = folder / WEIGHTS_FILE
    intact = weights.is_file() and file_digest(weights) == result.weights_sha256
    return result if intact else None


def _fingerprint_there(folder: Path) -> str | None:
    """Of what lies in a folder, finished or not; empty for what cannot be read."""
    try:
        found = read_result(folder) or read_progress(folder)
    except InputError:
        return ""
    return None if found is None else found.fingerprint


@contextmanager
def _random_numbers_kept(base: TuningBase) -> Iterator[None]:
    """The caller's random numbers go on afterwards as if there had been no training."""
    device = torch.device(base.device)
    devices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield
