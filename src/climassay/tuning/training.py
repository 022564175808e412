"""Train an adapter, resume an interrupted training or return a finished one; search a grid of settings."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from climassay.errors import InputError, ModelError
from climassay.models.bundled import file_digest
from climassay.tuning.base import TuningBase
from climassay.tuning.config import TuningConfig
from climassay.tuning.data import TuningData, check_data
from climassay.tuning.result import (
    RESULT_FILE,
    Trial,
    TuningResult,
    compute_fingerprint,
    lock_folder,
    read_result,
    replace_file,
    write_result,
)
from climassay.tuning.run import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    DivergedError,
    ProgressCallback,
    TrainingRun,
    interruptible,
    preserve_random_state,
    read_unfinished,
    remove_checkpoints,
)

CHECKPOINT_SECONDS = 60.0
DEFAULT_GRID: Mapping[str, tuple[Any, ...]] = MappingProxyType({"rank": (8, 32), "learning_rate": (3e-4, 1e-3)})
_TRIALS = "trials"


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
    """Train a LoRA adapter, resume an interrupted training, or return the result of a finished one.

    transformers' Trainer minimises the mean loss per token with AdamW. The validation loss is computed before the first
    step and then as often as the settings say; the adapter with the lowest validation loss is saved. On a CPU with the
    same number of threads, a resumed training gives exactly the same adapter as an uninterrupted one. On a GPU this
    requires deterministic kernels.

    Args:
        model: Name of a local model, or a model that several trainings share.
        train_data: Training data.
        validation_data: Data of the same kind, whose loss decides when to stop and which adapter is saved.
        config: Settings of the training.
        folder: Folder for the adapter in PEFT's format and for its result, ``climassay.json``.
        device: Device for a model that is loaded by name; see :class:`TuningBase`.
        preset: Name of the preset from which the settings come, to be recorded.
        warnings: Warnings about the data, for example of leakage, to be recorded for readers of the result.
        replace_other: Whether to delete the files of another training in the folder, which are an error otherwise.
        checkpoint_seconds: Seconds between two checkpoints. A checkpoint is also written after every evaluation and on
            Ctrl-C.
        on_progress: Called after every step and evaluation.

    Raises:
        InputError: The data are unsuitable, the folder holds another training, or a setting is unsuitable.
        ModelError: The model cannot be loaded, or the loss is no longer finite.
        KeyboardInterrupt: Ctrl-C was pressed; a checkpoint was written.
    """
    check_data(train_data, validation_data)
    tuning_base = model if isinstance(model, TuningBase) else TuningBase(model, device=device, dtype=config.dtype)
    if config.dtype not in (None, tuning_base.dtype):
        raise InputError(
            f"The settings ask for {config.dtype}, but the model is in {tuning_base.dtype}: give both the same."
        )
    config = replace(config, dtype=tuning_base.dtype)
    fingerprint = training_fingerprint(tuning_base, train_data, validation_data, config)
    path = Path(folder).expanduser().absolute()
    with lock_folder(path):
        finished_result = _load_finished_training(path, fingerprint, replace_other)
        if finished_result is not None:
            return finished_result
        with preserve_random_state(tuning_base.device), interruptible() as interruption:
            training_run = TrainingRun(
                tuning_base, (train_data, validation_data), config, path, fingerprint, interruption
            )
            training_run.checkpoint_seconds, training_run.on_progress = checkpoint_seconds, on_progress
            return training_run.finish(preset, tuple(warnings))


def training_fingerprint(
    base: TuningBase, train_data: TuningData, validation_data: TuningData, config: TuningConfig
) -> str:
    """Return the SHA-256 of the model, the data and the settings, which determine the adapter."""
    settings = asdict(replace(config, dtype=base.dtype))
    del settings["gradient_checkpointing"]
    return compute_fingerprint(base.fingerprint, train_data.sha256, validation_data.sha256, settings)


def _load_finished_training(folder: Path, fingerprint: str, replace_other: bool) -> TuningResult | None:
    """Return the result of the training with this fingerprint if it is finished; None if it must be run or resumed.

    With ``replace_other``, the files of another training in the folder are deleted first.
    """
    if replace_other:
        existing_fingerprint: str | None = ""  # also of files that cannot be read
        with suppress(InputError):
            result, unfinished_training = read_result(folder), read_unfinished(folder)
            existing_fingerprint = (
                result.fingerprint if result else unfinished_training["fingerprint"] if unfinished_training else None
            )
        if existing_fingerprint not in (None, fingerprint):
            for name in (RESULT_FILE, WEIGHTS_FILE):
                (folder / name).unlink(missing_ok=True)
            remove_checkpoints(folder)
    result = read_result(folder)
    if result is None:
        unfinished_training = read_unfinished(folder)
        if unfinished_training is not None and unfinished_training["fingerprint"] != fingerprint:
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
    is_intact = weights.is_file() and file_digest(weights) == result.weights_sha256
    return result if is_intact else None


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """Progress of a search, reported before each trial."""

    trial: int
    """Number of the trial, starting at 1."""
    trials: int
    """Number of trials of the search."""
    config: TuningConfig


def grid_configs(config: TuningConfig, grid: Mapping[str, Sequence[Any]]) -> tuple[TuningConfig, ...]:
    """Return the distinct configurations for all combinations of the grid's values, in the grid's order.

    Args:
        config: Settings that the grid does not set.
        grid: Values to try by name of a setting, for example ``{"rank": (8, 16), "learning_rate": (1e-4, 3e-4)}``.

    Raises:
        InputError: The grid is empty, names a setting that cannot be searched, or has an invalid value.
    """
    searchable_names = {entry.name for entry in fields(config)} - {"dtype", "seed"}
    unknown_names = sorted(set(grid) - searchable_names)
    if unknown_names:
        raise InputError(
            f"{unknown_names[0]!r} cannot be searched over: use some of {', '.join(sorted(searchable_names))}."
        )
    if not grid or not all(grid.values()):
        raise InputError("The search has nothing to choose from: give several values for at least one setting.")
    configs = (replace(config, **dict(zip(grid, values, strict=True))) for values in product(*grid.values()))
    return tuple(dict.fromkeys(configs))


def search(
    model: str | TuningBase,
    train_data: TuningData,
    validation_data: TuningData,
    config: TuningConfig,
    folder: str | Path,
    grid: Mapping[str, Sequence[Any]] = DEFAULT_GRID,
    *,
    device: str | None = None,
    preset: str | None = None,
    warnings: Sequence[str] = (),
    replace_other: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    on_trial: Callable[[SearchProgress], None] | None = None,
    on_progress: ProgressCallback | None = None,
) -> TuningResult:
    """Train with every combination of a grid's values and save the adapter with the lowest validation loss.

    An interrupted search is resumed, even within a trial; the result of a finished search is returned without training.
    :attr:`TuningResult.trials` lists all trials. The arguments are those of :func:`train` and of :func:`grid_configs`;
    ``on_trial`` is called before every trial.

    Raises:
        InputError: See :func:`train`; or the grid is empty or has an invalid value.
        ModelError: The model cannot be loaded, or every trial diverged.
    """
    check_data(train_data, validation_data)
    configs = grid_configs(config, grid)
    tuning_base = model if isinstance(model, TuningBase) else TuningBase(model, device=device, dtype=config.dtype)
    path = Path(folder).expanduser().absolute()
    fingerprints = [
        training_fingerprint(tuning_base, train_data, validation_data, trial_config) for trial_config in configs
    ]
    with lock_folder(path):
        finished_result = _load_finished_search(path, fingerprints, replace_other)
        if finished_result is not None:
            return finished_result
        trials: dict[TuningConfig, TuningResult | None] = {}
        for trial_number, (trial_config, fingerprint) in enumerate(zip(configs, fingerprints, strict=True), start=1):
            if on_trial is not None:
                on_trial(SearchProgress(trial_number, len(configs), trial_config))
            try:
                trials[trial_config] = train(
                    tuning_base,
                    train_data,
                    validation_data,
                    trial_config,
                    path / _TRIALS / fingerprint[:16],
                    preset=preset,
                    warnings=warnings,
                    checkpoint_seconds=checkpoint_seconds,
                    on_progress=on_progress,
                )
            except DivergedError:
                trials[trial_config] = None
        sorted_results = sorted(
            (result for result in trials.values() if result is not None), key=lambda result: result.best.loss
        )
        if not sorted_results:
            raise ModelError(f"All {len(trials)} trainings of the search diverged: search among lower learning rates.")
        best_result = sorted_results[0]  # the first of equals
        for name in (WEIGHTS_FILE, CONFIG_FILE):
            replace_file(path / name, partial(shutil.copyfile, best_result.folder / name))
        all_trials = [
            Trial(result.config, result.best.loss, result.best.step, result.seconds) for result in sorted_results
        ]
        all_trials += [Trial(trial_config, None, 0, 0.0) for trial_config, result in trials.items() if result is None]
        result = replace(best_result, folder=path, trials=tuple(all_trials))
        write_result(result)
        shutil.rmtree(path / _TRIALS)
        return result


def _load_finished_search(folder: Path, fingerprints: Sequence[str], replace_other: bool) -> TuningResult | None:
    """Return the result of the search with these fingerprints if it is finished; None if it must be run or resumed."""
    try:
        result = read_result(folder)
    except InputError:
        if not replace_other:
            raise
        result = None
    if result is None:
        if not replace_other and read_unfinished(folder) is not None:
            raise InputError(f"{folder} holds an unfinished training: finish that one, or choose another name.")
        remove_checkpoints(folder)
        return None
    is_same_search = result.fingerprint in fingerprints and len(result.trials) == len(fingerprints)
    weights = folder / WEIGHTS_FILE
    if is_same_search and weights.is_file() and file_digest(weights) == result.weights_sha256:
        return result
    if not is_same_search and not replace_other:
        raise InputError(
            f"{folder} holds an adapter of another training or search: choose another name, or have it replaced."
        )
    return None
