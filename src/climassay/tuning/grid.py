"""A small grid of settings, each trained and judged by its validation loss; the best adapter is kept."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from climassay.errors import InputError, ModelError
from climassay.models.model_files import file_digest
from climassay.tuning.adapter import CONFIG_FILE, WEIGHTS_FILE
from climassay.tuning.base import TuningBase
from climassay.tuning.checkpoints import read_progress, remove_checkpoint
from climassay.tuning.config import TuningConfig
from climassay.tuning.data import TuningData, check_data
from climassay.tuning.files import folder_lock, replace_file
from climassay.tuning.result import Trial, TuningResult, read_result, write_result
from climassay.tuning.run import DivergedError, ProgressCallback
from climassay.tuning.training import CHECKPOINT_SECONDS, train, training_fingerprint

DEFAULT_GRID: Mapping[str, tuple[Any, ...]] = MappingProxyType({"rank": (8, 32), "learning_rate": (3e-4, 1e-3)})
_TRIALS = "trials"


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """Where a search is, told before each trial."""

    trial: int
    """From 1."""
    trials: int
    config: TuningConfig


def grid_configs(config: TuningConfig, grid: Mapping[str, Sequence[Any]]) -> tuple[TuningConfig, ...]:
    """Every combination of a grid's values, put into the settings, in the grid's order.

    Args:
        config: What all have in common.
        grid: Values by setting, for example ``{"rank": (8, 16), "learning_rate": (1e-4, 3e-4)}``.

    Raises:
        InputError: The grid is empty, or a value cannot be.
    """
    known = {entry.name for entry in fields(config)} - {"dtype", "seed"}
    unknown = sorted(set(grid) - known)
    if unknown:
        raise InputError(f"{unknown[0]!r} cannot be searched over: take some of {', '.join(sorted(known))}.")
    if not grid or not all(grid.values()):
        raise InputError("The search has nothing to choose from: give some values for at least one setting.")
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
    """Train with every setting of a grid and keep the adapter with the lowest validation loss.

    A search that was interrupted goes on where it was, in the middle of a trial; the same search again is returned at
    once. Its table is :attr:`TuningResult.trials`.

    Args:
        model: Name of a local model, or one that several trainings share.
        train_data: What is learned.
        validation_data: What decides.
        config: What the grid leaves open.
        folder: Where the best adapter goes.
        grid: Values by setting.
        device: Where to compute, for a model given by name.
        preset: Name of the preset behind ``config``.
        warnings: As for :func:`train`.
        replace_other: Remove what something else left in the folder.
        checkpoint_seconds: As for :func:`train`.
        on_trial: Called before every trial.
        on_progress: Called after every step and evaluation of a trial.

    Raises:
        InputError: As for :func:`train`, or the grid makes no sense.
        ModelError: The model cannot be loaded, or every trial diverged.
    """
    check_data(train_data, validation_data)
    configs = grid_configs(config, grid)
    base = model if isinstance(model, TuningBase) else TuningBase(model, device=device, dtype=config.dtype)
    place = Path(folder).expanduser().absolute()
    prints = [training_fingerprint(base, train_data, validation_data, one) for one in configs]
    with folder_lock(place):
        done = _finished(place, prints, replace_other)
        if done is not None:
            return done
        trials: dict[TuningConfig, TuningResult | None] = {}
        for number, (one, fingerprint) in enumerate(zip(configs, prints, strict=True), start=1):
            if on_trial is not None:
                on_trial(SearchProgress(number, len(configs), one))
            try:
                trials[one] = train(
                    base,
                    train_data,
                    validation_data,
                    one,
                    place / _TRIALS / fingerprint[:16],
                    preset=preset,
                    warnings=warnings,
                    checkpoint_seconds=checkpoint_seconds,
                    on_progress=on_progress,
                )
            except DivergedError:
                trials[one] = None
        return _keep_best(place, trials)


def _finished(folder: Path, prints: Sequence[str], replace_other: bool) -> TuningResult | None:
    """What this very search left before; None where there is work to do."""
    try:
        result = read_result(folder)
    except InputError:
        if not replace_other:
            raise
        result = None
    if result is None:
        if not replace_other and read_progress(folder) is not None:
            raise InputError(f"{folder} holds an unfinished training: finish that one, or choose another name.")
        remove_checkpoint(folder)
        return None
    same = result.fingerprint in prints and len(result.trials) == len(prints)
    weights = folder / WEIGHTS_FILE
    if same and weights.is_file() and file_digest(weights) == result.weights_sha256:
        return result
    if not same and not replace_other:
        raise InputError(
            f"{folder} holds an adapter of another training or search: choose another name, or have it replaced."
        )
    return None


def _keep_best(folder: Path, results: Mapping[TuningConfig, TuningResult | None]) -> TuningResult:
    """Move the best trial up, with the table of all; the first of equals."""
    ordered = sorted((one for one in results.values() if one is not None), key=lambda result: result.best.loss)
    if not ordered:
        raise ModelError(f"All {len(results)} trainings of the search diverged: search among lower learning rates.")
    best = ordered[0]
    for name in (WEIGHTS_FILE, CONFIG_FILE):
        replace_file(folder / name, partial(shutil.copyfile, best.folder / name))
    trials = [Trial(one.config, one.best.loss, one.best.step, one.seconds) for one in ordered]
    trials += [Trial(config, None, 0, 0.0) for config, result in results.items() if result is None]
    kept = replace(best, folder=folder, trials=tuple(trials))
    write_result(kept)
    shutil.rmtree(folder / _TRIALS)
    return kept
