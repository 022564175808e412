"""One training with transformers' Trainer and PEFT; the adapter of the best evaluation is saved in a folder.

The Trainer's checkpoints hold the adapter, the optimiser, the schedule and the state of the random numbers, so that a
killed training resumes from the last checkpoint and gives the result of an uninterrupted one.
"""

import errno
import json
import math
import os
import random
import re
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from climassay.errors import InputError, ModelError
from climassay.io.writing import make_write_error
from climassay.models.bundled import file_digest
from climassay.models.local.loading import LoadedModel
from climassay.models.local.prompt_format import PromptFormat
from climassay.tuning.base import TuningBase
from climassay.tuning.config import ALL_LINEAR, TuningConfig
from climassay.tuning.data import TuningData
from climassay.tuning.result import DataSummary, StepLoss, TuningResult, ValidationLoss, replace_file, write_result
from climassay.tuning.sequences import SequenceLoss, TokenisedData, epoch_order, tokenise

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
_STATE_FILE = "trainer_state.json"
_TRAINING_FILE = "training.json"
_CHECKPOINTS = "checkpoints"
_SCHEDULES = {"cosine": "cosine", "linear": "linear", "constant": "constant_with_warmup"}
_WRITE_ERROR = re.compile("inline_container|iostream|No space left")
"""Pattern of the messages of PyTorch and safetensors about a file that cannot be written."""


class DivergedError(ModelError):
    """Error for a training that diverged: its loss or gradient is not finite."""


@dataclass(frozen=True, slots=True)
class TuningProgress:
    """Progress of a training after a step or an evaluation."""

    step: int
    """Number of completed steps."""
    steps: int
    """Number of planned steps."""
    loss: float | None
    """Training loss of the last step; None before the first."""
    validation_loss: float
    """Most recent validation loss."""
    tokens: int
    """Number of tokens in the last step, including prompts; 0 after an evaluation."""


ProgressCallback = Callable[[TuningProgress], None]


class Interruption:
    """Flag; ``requested`` becomes True when Ctrl-C is pressed."""

    def __init__(self) -> None:
        self.requested = False


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Yield a flag that the first Ctrl-C sets, so that the current step can be finished.

    A second Ctrl-C raises KeyboardInterrupt. Only the main thread receives signals; in other threads the flag is never
    set.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def handle_signal(_number: int, _frame: FrameType | None) -> None:
        if interruption.requested:
            raise KeyboardInterrupt
        interruption.requested = True

    previous_handler = signal.signal(signal.SIGINT, handle_signal)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, previous_handler)


@contextmanager
def preserve_random_state(device: str) -> Iterator[None]:
    """Restore the random states of Python, numpy and torch after the block; the Trainer seeds all of them."""
    torch_device = torch.device(device)
    devices = [torch_device.index or 0] if torch_device.type == "cuda" else []
    python_state, numpy_state = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


@contextmanager
def attach_adapter(loaded_model: LoadedModel, config: TuningConfig) -> Iterator[Any]:
    """Yield PEFT's wrapper of a model with a new adapter, and detach the adapter after the block.

    Raises:
        InputError: The model has no layers with the names in ``config.targets``.
    """
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=ALL_LINEAR if config.targets == (ALL_LINEAR,) else list(config.targets),
        task_type="CAUSAL_LM",
    )
    torch.manual_seed(config.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # names of transformers that will change
        try:
            peft_model = get_peft_model(loaded_model.model, settings)
        except ValueError as error:
            raise InputError(
                f"The model has no linear layers named {', '.join(config.targets)}: name layers of it, or {ALL_LINEAR}."
            ) from error
        try:
            if config.gradient_checkpointing:
                loaded_model.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            yield peft_model.train()
        finally:
            if config.gradient_checkpointing:
                loaded_model.model.gradient_checkpointing_disable()
            peft_model.unload().eval().requires_grad_(False)


def save_adapter_config(peft_model: Any, base: str, folder: Path) -> None:
    """Write PEFT's configuration of an adapter in a form that is identical on every machine."""
    settings = peft_model.peft_config["default"].to_dict()
    settings |= {"base_model_name_or_path": base, "inference_mode": True}
    # The order of sets, and with it the fingerprint, would differ between processes.
    sorted_settings = {
        name: sorted(value) if isinstance(value, set | list) else value for name, value in settings.items()
    }
    sorted_settings["target_modules"] = sorted(settings["target_modules"])
    text = json.dumps(sorted_settings, indent=2, sort_keys=True, default=str) + "\n"
    replace_file(folder / CONFIG_FILE, lambda file: file.write_text(text, encoding="utf-8"))


def read_unfinished(folder: Path) -> dict[str, Any] | None:
    """Return the fingerprint, threads and seconds of the unfinished training in a folder; None if there is none.

    Raises:
        InputError: The file of the unfinished training is damaged.
    """
    file = folder / _CHECKPOINTS / _TRAINING_FILE
    if not file.is_file():
        return None
    try:
        metadata = json.loads(file.read_text(encoding="utf-8"))
        return {name: metadata[name] for name in ("fingerprint", "threads", "seconds")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is damaged: remove {file.parent} to train from the start.") from error


def remove_checkpoints(folder: Path) -> None:
    """Delete the checkpoints of an unfinished training."""
    shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)


def _find_last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint, or None if there is none.

    Incomplete checkpoints, which lack the Trainer's state, are deleted.
    """
    complete_checkpoints = [path.parent for path in folder.glob(f"checkpoint-*/{_STATE_FILE}")]
    for path in folder.glob("checkpoint-*"):
        if path not in complete_checkpoints:
            shutil.rmtree(path, ignore_errors=True)
    return max(complete_checkpoints, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


class _EpochSampler(Sampler[int]):
    """Sampler that visits each sequence once per epoch, in an order that depends only on the seed and the epoch."""

    def __init__(self, lengths: list[int], step_size: int, seed: int) -> None:
        self._lengths, self._step_size, self._seed, self._epoch = lengths, step_size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; the data loader calls this before each epoch."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter(epoch_order(self._lengths, self._step_size, seed=self._seed, epoch=self._epoch))

    def __len__(self) -> int:
        return len(self._lengths)


class _AdapterTrainer(Trainer):  # type: ignore[misc]
    """Trainer whose training and validation losses are means over tokens rather than over sequences."""

    control: Any

    def __init__(self, loss: SequenceLoss, validation: SequenceLoss, config: TuningConfig, **options: Any) -> None:
        train_dataset, eval_dataset = (
            list(range(len(sequence_loss.sequences))) for sequence_loss in (loss, validation)
        )
        super().__init__(train_dataset=train_dataset, eval_dataset=eval_dataset, data_collator=self._collate, **options)
        self._loss, self._validation, self._config = loss, validation, config
        self.model_accepts_loss_kwargs = True  # the loss is divided by the learned tokens of the whole step
        self.step_tokens = 0

    def _collate(self, indices: list[int]) -> dict[str, Tensor]:
        labels = self._loss.labels(indices)
        return {"indices": torch.tensor(indices), "labels": labels, "shift_labels": labels}

    def _get_train_sampler(self, _dataset: Any = None) -> Sampler[int]:
        step_size = self._config.batch_size * self._config.accumulation
        return _EpochSampler(self._loss.lengths, step_size, self._config.seed)

    def compute_loss(self, _model: Any, inputs: Mapping[str, Tensor], *, num_items_in_batch: Tensor) -> Tensor:
        """Return the summed loss of a forward pass, divided by the number of tokens that count in the whole step."""
        indices = inputs["indices"].tolist()
        self.step_tokens += sum(self._loss.lengths[index] for index in indices)
        return self._loss.summed_loss(indices) / num_items_in_batch

    def evaluate(self, *_arguments: Any, **_options: Any) -> dict[str, float]:
        """Compute, log and return the mean validation loss, in nats per token."""
        metrics = {"eval_loss": self._validation.mean_loss(self._config.batch_size)}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


class _ScheduleCallback(TrainerCallback):  # type: ignore[misc]
    """Trainer callback that decides when to evaluate, save and stop, and reports progress."""

    def __init__(self, run: "TrainingRun") -> None:
        self._run = run
        self._saved_at = self._resumed_at = time.perf_counter()
        self._validation_loss = math.nan

    def on_step_end(self, _arguments: Any, state: Any, control: Any, **_options: Any) -> None:
        """Request an evaluation at planned steps, and a checkpoint at these steps, after the interval, or on Ctrl-C."""
        control.should_log = True
        control.should_evaluate = state.global_step in self._run.evaluation_steps
        is_due = time.perf_counter() - self._saved_at >= self._run.checkpoint_seconds
        control.should_save = control.should_evaluate or is_due or self._run.interruption.requested

    def on_evaluate(self, _arguments: Any, state: Any, control: Any, **_options: Any) -> None:
        """Stop the training if the last ``patience`` evaluations have not lowered the validation loss."""
        control.should_training_stop |= self._run.is_out_of_patience(state.log_history)

    def on_log(self, _arguments: Any, state: Any, _control: Any, logs: dict[str, float], **_options: Any) -> None:
        """Report progress.

        Raises:
            DivergedError: A loss or gradient norm is not finite.
        """
        config, step = self._run.config, state.global_step
        numbers = [logs[name] for name in ("loss", "grad_norm", "eval_loss") if name in logs]
        if not all(map(math.isfinite, numbers)):
            raise DivergedError(
                f"The training diverged: at step {step} of {self._run.steps} the loss or its gradient is not a finite "
                f"number; use a lower learning rate than {config.learning_rate:g} or a longer warm-up."
            )
        self._validation_loss = logs.get("eval_loss", self._validation_loss)
        losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
        if numbers and self._run.on_progress is not None:
            tokens, self._run.trainer.step_tokens = self._run.trainer.step_tokens, 0
            loss = losses[-1] if losses else None
            self._run.on_progress(TuningProgress(step, self._run.steps, loss, self._validation_loss, tokens))

    def on_save(self, _arguments: Any, _state: Any, _control: Any, **_options: Any) -> None:
        """Store the training time so far.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        now = time.perf_counter()
        self._run.write_training(self._run.seconds + now - self._resumed_at)
        self._saved_at = now
        if self._run.interruption.requested:
            raise KeyboardInterrupt


class TrainingRun:
    """Training of one adapter. The training of an interrupted process is resumed if there is one."""

    trainer: _AdapterTrainer

    def __init__(
        self,
        base: TuningBase,
        data: tuple[TuningData, TuningData],
        config: TuningConfig,
        folder: Path,
        fingerprint: str,
        interruption: Interruption,
    ) -> None:
        """Load the model, tokenise training and validation data, and load the state of an interrupted training."""
        self.base, self.config, self.folder, self.interruption = base, config, folder, interruption
        self.fingerprint = fingerprint
        self.checkpoint_seconds = math.inf
        self.on_progress: ProgressCallback | None = None
        loaded_model = base.load()
        self.data = data
        self.tokenised = tuple(_tokenise_data(part, loaded_model, config) for part in data)
        n_sequences = len(self.tokenised[0].sequences)
        steps_per_epoch = math.ceil(n_sequences / (config.batch_size * config.accumulation))
        self.steps = steps_per_epoch * config.epochs
        self.evaluation_steps = {
            epoch * steps_per_epoch + round(steps_per_epoch * part / config.evaluations)
            for epoch in range(config.epochs)
            for part in range(1, config.evaluations + 1)
        } - {0}
        unfinished_training = read_unfinished(folder) or {}
        self.seconds: float = unfinished_training.get("seconds", 0.0)
        if base.device == "cpu" and "threads" in unfinished_training:
            # Another number of threads sums in another order and changes the last digits of the result.
            torch.set_num_threads(unfinished_training["threads"])
        self.threads = torch.get_num_threads()

    def finish(self, preset: str | None, warnings: tuple[str, ...]) -> TuningResult:
        """Train to the end, write the adapter and its result to the folder, and return the result.

        Raises:
            ModelError: A batch does not fit into memory.
            InputError: The checkpoint is damaged, or a file cannot be written.
        """
        checkpoints = self.folder / _CHECKPOINTS
        checkpoints.mkdir(parents=True, exist_ok=True)
        self.write_training(self.seconds)
        with attach_adapter(self.base.load(), self.config) as peft_model:
            model = peft_model.get_base_model()
            losses = [SequenceLoss(self.base, model, part.sequences) for part in self.tokenised]
            self.trainer = _AdapterTrainer(
                losses[0], losses[1], self.config, model=peft_model, args=self._make_arguments(checkpoints)
            )
            self.trainer.add_callback(_ScheduleCallback(self))
            self.trainer.remove_callback(PrinterCallback)
            state = self._train(checkpoints)
            return self._save_adapter(state, peft_model, preset, warnings)

    def _make_arguments(self, checkpoints: Path) -> TrainingArguments:
        config, unreachable_step = self.config, self.steps + 1
        arguments = TrainingArguments(
            output_dir=str(checkpoints),
            num_train_epochs=config.epochs,
            per_device_train_batch_size=config.batch_size,
            gradient_accumulation_steps=config.accumulation,
            learning_rate=config.learning_rate,
            lr_scheduler_type=_SCHEDULES[config.schedule],
            warmup_steps=round(config.warmup * self.steps),
            weight_decay=config.weight_decay,
            max_grad_norm=config.max_gradient_norm,
            optim="adamw_torch",
            seed=config.seed,
            use_cpu=self.base.device == "cpu",
            eval_strategy="steps",
            eval_steps=unreachable_step,  # _ScheduleCallback decides when to evaluate and save
            save_strategy="steps",
            save_steps=unreachable_step,
            metric_for_best_model="loss",
            greater_is_better=False,
            save_total_limit=2,  # the best and the last
            logging_nan_inf_filter=False,
            disable_tqdm=True,
            report_to=[],
            remove_unused_columns=False,
            dataloader_pin_memory=False,
        )
        arguments._n_gpu = min(arguments.n_gpu, 1)  # the batch size is that of one device
        return arguments

    def _train(self, checkpoints: Path) -> dict[str, Any]:
        """Train to the end, from the last checkpoint if there is one, and return the Trainer's last saved state."""
        checkpoint = _find_last_checkpoint(checkpoints)
        state = None if checkpoint is None else _read_state(checkpoint)
        self.trainer.args.eval_on_start = checkpoint is None
        if state is None or not self._is_finished(state):
            try:
                self.trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
            except torch.OutOfMemoryError as error:
                raise ModelError(
                    f"The memory of {self.base.device} is not enough for a batch of "
                    f"{self.config.batch_size} sequences: "
                    "lower the batch size, raise the accumulation by the same factor, or use gradient checkpointing."
                ) from error
            except OSError as error:
                raise make_write_error(checkpoints, error) from error
            except RuntimeError as error:
                if not _WRITE_ERROR.search(str(error)):
                    raise
                raise make_write_error(checkpoints, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) from error
            checkpoint = _find_last_checkpoint(checkpoints)
            assert checkpoint is not None
            state = _read_state(checkpoint)
        return state

    def _is_finished(self, state: Mapping[str, Any]) -> bool:
        return state["global_step"] >= self.steps or self.is_out_of_patience(state["log_history"])

    def is_out_of_patience(self, history: list[dict[str, Any]]) -> bool:
        """Return whether none of the last ``patience`` evaluations had a lower loss than all earlier evaluations."""
        losses = [entry["eval_loss"] for entry in history if "eval_loss" in entry and entry["step"]]
        patience = self.config.patience
        return patience is not None and len(losses) > patience and min(losses[-patience:]) >= min(losses[:-patience])

    def write_training(self, seconds: float) -> None:
        """Write this training's fingerprint, number of threads and seconds so far to the checkpoints' folder."""
        metadata = {"fingerprint": self.fingerprint, "threads": self.threads, "seconds": seconds}
        file = self.folder / _CHECKPOINTS / _TRAINING_FILE
        replace_file(file, lambda temporary_file: temporary_file.write_text(json.dumps(metadata), encoding="utf-8"))

    def _save_adapter(
        self, state: Mapping[str, Any], peft_model: Any, preset: str | None, warnings: tuple[str, ...]
    ) -> TuningResult:
        """Copy the best checkpoint's adapter to the folder, write the result, and delete the checkpoints.

        After an interruption, the method can be called again.
        """
        base, history = self.base, state["log_history"]
        weights = self.folder / WEIGHTS_FILE
        best_weights = self.folder / _CHECKPOINTS / f"checkpoint-{state['best_global_step']}" / WEIGHTS_FILE
        replace_file(weights, lambda file: file.write_bytes(best_weights.read_bytes()))
        save_adapter_config(peft_model, base.label, self.folder)
        train_data, validation_data = (
            replace(
                DataSummary.of(data),
                sequences=len(tokenised_data.sequences),
                tokens=tokenised_data.tokens,
                learned=tokenised_data.n_target_tokens,
                cut=tokenised_data.cut,
            )
            for data, tokenised_data in zip(self.data, self.tokenised, strict=True)
        )
        unfinished_training = read_unfinished(self.folder) or {}
        result = TuningResult(
            folder=self.folder,
            fingerprint=self.fingerprint,
            base=base.name,
            base_fingerprint=base.fingerprint,
            dtype=base.dtype,
            device=base.device,
            threads=self.threads,
            config=self.config,
            preset=preset,
            train=train_data,
            validation=validation_data,
            steps=self.steps,
            losses=tuple(
                StepLoss(entry["step"], entry["loss"], entry["learning_rate"]) for entry in history if "loss" in entry
            ),
            evaluations=tuple(
                ValidationLoss(entry["step"], entry["eval_loss"]) for entry in history if "eval_loss" in entry
            ),
            best_step=state["best_global_step"],
            stopped_early=state["global_step"] < self.steps,
            seconds=unfinished_training.get("seconds", self.seconds),
            weights_sha256=file_digest(weights),
            versions={name: version(name) for name in ("climassay", "torch", "transformers", "peft")},
        )
        notes = [
            f"{data.cut} of {data.size} {role} prompts were longer than {self.config.max_length} tokens and lost their "
            "beginning."
            for role, data in (("training", train_data), ("validation", validation_data))
            if data.cut
        ]
        if result.best.loss >= result.before.loss:
            notes.append(
                "Training did not lower the validation loss: the adapter is worse there than the model as it was."
            )
        result = replace(result, warnings=(*warnings, *notes))
        write_result(result)
        remove_checkpoints(self.folder)
        return result


def _read_state(checkpoint: Path) -> dict[str, Any]:
    file = checkpoint / _STATE_FILE
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        return {name: state[name] for name in ("global_step", "log_history", "best_global_step")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"The checkpoint {checkpoint} is damaged: remove it to go on from the one before.") from error


def _tokenise_data(data: TuningData, loaded_model: LoadedModel, config: TuningConfig) -> TokenisedData:
    window = int(getattr(loaded_model.model.config.get_text_config(), "max_position_embeddings", None) or 2**31)
    if config.max_length > window:
        raise InputError(f"The model takes {window} tokens: lower the maximum length from {config.max_length} to that.")
    # The generation settings and the tokenizer name the tokens that end an answer.
    eos_ids = getattr(loaded_model.model.generation_config, "eos_token_id", None)
    end_tokens = [*(eos_ids if isinstance(eos_ids, list) else [eos_ids]), loaded_model.tokenizer.eos_token_id]
    end_token_ids = frozenset(int(token) for token in end_tokens if token is not None)
    tokenised_data = tokenise(data, PromptFormat(loaded_model.tokenizer), end_token_ids, config.max_length)
    if not tokenised_data.sequences:
        raise InputError(f"{data.name} has too little text to learn from.")
    return tokenised_data
