"""One training: steps, evaluations, checkpoints, and the best of it all left in a folder.

Learning rates, the order of the data and the dropout of a step are functions of the seed and the step's number, so that
no generator's state has to be kept in a checkpoint: weights, the optimiser's two moments and the number of the step are
enough. They lie in one safetensors file, which cannot hold code.
"""

import json
import math
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor

from climassay.errors import InputError, ModelError
from climassay.models.bundled import file_digest
from climassay.models.local.loading import LoadedModel, PromptFormat
from climassay.tuning.base import TuningBase
from climassay.tuning.config import ALL_LINEAR, TuningConfig
from climassay.tuning.data import TuningData
from climassay.tuning.result import (
    DataSummary,
    Evaluation,
    StepLoss,
    TuningResult,
    fingerprint_of,
    replace_file,
    save_tensors,
    write_result,
)
from climassay.tuning.sequences import SequenceLoss, TokenisedData, passes, plan_steps, tokenise


def learning_rate(config: TuningConfig, step: int, steps: int) -> float:
    """Learning rate of a step.

    Linear warm-up over the first ``round(warmup x steps)`` steps, the last of which has the full rate; then cosine or
    linear decay that would reach 0 at the step after the last.
    """
    rising = round(config.warmup * steps)
    if step < rising:
        return config.learning_rate * (step + 1) / rising
    share = (step - rising) / max(1, steps - rising)
    if config.schedule == "cosine":
        return config.learning_rate * (1 + math.cos(math.pi * share)) / 2
    return config.learning_rate * (1 - share if config.schedule == "linear" else 1.0)


class Interruption:
    """Whether somebody wants the training to end."""

    def __init__(self) -> None:
        self.wanted = False
        self.at_once = False
        """Wanted again: the step under way may be half taken, and must not be saved."""

    def check(self) -> None:
        """End here, if that is wanted.

        Raises:
            KeyboardInterrupt: It is.
        """
        if self.wanted:
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Note the first Ctrl-C instead of stopping in the middle of a step; a second one stops at once.

    Only the main thread receives signals: in any other one nothing is changed.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def note(_number: int, _frame: FrameType | None) -> None:
        if interruption.wanted:
            interruption.at_once = True
            raise KeyboardInterrupt
        interruption.wanted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)


CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"


@dataclass(frozen=True, slots=True)
class Adapted:
    """A model with trainable factors in it."""

    model: Any
    """The transformers model, adapters inside."""
    peft: Any
    """PEFT's view of it."""
    parameters: dict[str, Tensor]
    """What is trained, by name, float32."""

    def state(self) -> dict[str, Tensor]:
        """The adapter's weights under PEFT's names, each in the shape that PEFT gives it."""
        from peft import get_peft_model_state_dict

        return dict(get_peft_model_state_dict(self.peft))


@contextmanager
def adapted(loaded: LoadedModel, config: TuningConfig) -> Iterator[Adapted]:
    """A model with a fresh adapter, which as yet changes nothing; the model is as before when the block is left.

    Raises:
        InputError: The model has no layers of the names given.
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
    try:
        with _names_that_change():
            peft_model = get_peft_model(loaded.model, settings)
    except ValueError as error:
        raise InputError(
            f"The model has no linear layers named {', '.join(config.targets)}: name layers of it, or {ALL_LINEAR}."
        ) from error
    model = peft_model.get_base_model()
    parameters = {name: weight for name, weight in peft_model.named_parameters() if weight.requires_grad}
    try:
        _keep_activations(model, not config.gradient_checkpointing)
        yield Adapted(model.train(), peft_model, parameters)
    finally:
        _keep_activations(model, True)
        peft_model.unload().eval().requires_grad_(False)


def _keep_activations(model: Any, kept: bool) -> None:
    with _names_that_change():
        if not kept:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        elif model.is_gradient_checkpointing:
            model.gradient_checkpointing_disable()


@contextmanager
def _names_that_change() -> Iterator[None]:
    """Transformers warns of names of its own that will change; those until now work in every version supported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def save_adapter_config(peft_model: Any, base: str, folder: Path) -> None:
    """Write PEFT's configuration of an adapter, the same bytes for the same adapter on any machine."""
    settings = peft_model.peft_config["default"].to_dict()
    settings |= {"base_model_name_or_path": base, "inference_mode": True}
    # Sets would come out in another order in every process, and with them another fingerprint.
    plain = {name: sorted(value) if isinstance(value, set | list) else value for name, value in settings.items()}
    plain["target_modules"] = sorted(settings["target_modules"])
    text = json.dumps(plain, indent=2, sort_keys=True, default=str) + "\n"
    replace_file(folder / CONFIG_FILE, lambda file: file.write_text(text, encoding="utf-8"))


def save_adapter(adapter: Adapted, file: Path) -> None:
    """Write an adapter's weights in PEFT's format; the file appears whole or not at all."""
    save_tensors(file, adapter.state(), {"format": "pt"})


CHECKPOINT_FILE = "checkpoint.safetensors"
_STATE = "climassay"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


@dataclass(slots=True)
class Progress:
    """Where a training is."""

    fingerprint: str
    """Fingerprint of the training; a checkpoint of another training is refused."""
    step: int = 0
    """Steps taken."""
    losses: list[StepLoss] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    best_step: int | None = None
    """Step with the lowest validation loss of an adapter that has learned something; None before the first."""
    without_gain: int = 0
    """Evaluations since then."""
    stopped_early: bool = False
    seconds: float = 0.0
    threads: int = 1
    """Number of torch threads. Another number sums in another order and changes the last digits of the result."""

    @property
    def lowest(self) -> float:
        """Validation loss of the best step."""
        return min((one.loss for one in self.evaluations if one.step == self.best_step), default=float("inf"))


def best_file(folder: Path, step: int) -> Path:
    """Where the adapter of the best step waits until the training is finished."""
    return folder / f"best-{step}.safetensors"


def save_checkpoint(
    folder: Path, progress: Progress, parameters: dict[str, Tensor], optimiser: torch.optim.Optimizer
) -> None:
    """Write a checkpoint of parameters of any shape; the one before stays until this one is whole.

    Raises:
        InputError: It cannot be written.
    """
    tensors = {f"weight/{name}": weight for name, weight in parameters.items()}
    for name, weight in parameters.items():
        tensors |= {f"{part}/{name}": optimiser.state[weight][part] for part in _MOMENTS if optimiser.state[weight]}
    save_tensors(folder / CHECKPOINT_FILE, tensors, {_STATE: json.dumps(asdict(progress))})
    kept = None if progress.best_step is None else best_file(folder, progress.best_step)
    for file in folder.glob("best-*.safetensors"):
        if file != kept:
            file.unlink()


def read_progress(folder: Path) -> Progress | None:
    """Where an unfinished training in a folder is, without its weights; None where there is none.

    Raises:
        InputError: The checkpoint is damaged.
    """
    from safetensors import SafetensorError, safe_open

    file = folder / CHECKPOINT_FILE
    if not file.is_file():
        return None
    try:
        with safe_open(file, framework="pt") as opened:
            return TypeAdapter(Progress).validate_json(opened.metadata()[_STATE])
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"The checkpoint {file} is damaged: remove it to train from the start.") from error


def restore(folder: Path, parameters: dict[str, Tensor], optimiser: torch.optim.Optimizer) -> None:
    """Put weights and moments, of the shapes that they had then, back as they were when the checkpoint was written.

    Raises:
        InputError: The checkpoint does not fit the model.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = folder / CHECKPOINT_FILE
    try:
        tensors = load_file(file)
        for name, weight in parameters.items():
            with torch.no_grad():
                weight.copy_(tensors[f"weight/{name}"])
            if f"step/{name}" in tensors:
                # The number of steps stays on the CPU, where AdamW makes it.
                optimiser.state[weight] = {
                    part: tensors[f"{part}/{name}"].to("cpu" if part == "step" else weight.device) for part in _MOMENTS
                }
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise InputError(f"The checkpoint {file} is damaged: remove it to train from the start.") from error


def remove_checkpoint(folder: Path) -> None:
    """Remove what only an unfinished training needs."""
    (folder / CHECKPOINT_FILE).unlink(missing_ok=True)
    for file in folder.glob("best-*.safetensors"):
        file.unlink()


class DivergedError(ModelError):
    """A loss or its gradient is not a finite number any more."""


@dataclass(frozen=True, slots=True)
class TuningProgress:
    """What a training tells while it runs, after every step and every evaluation."""

    step: int
    """Steps taken."""
    steps: int
    loss: float | None
    """Training loss of the last step; None before the first."""
    validation_loss: float
    """The newest."""
    tokens: int
    """Tokens of the last step, prompts included."""


ProgressCallback = Callable[[TuningProgress], None]


class Run:
    """One training."""

    def __init__(
        self,
        base: TuningBase,
        data: tuple[TuningData, TuningData],
        config: TuningConfig,
        folder: Path,
        fingerprint: str,
        interruption: Interruption,
    ) -> None:
        """Tokenise the data, plan the steps and find out how far an earlier process came."""
        self.base, self.config, self.folder, self.interruption = base, config, folder, interruption
        self.progress = read_progress(folder) or Progress(fingerprint)
        self.checkpoint_seconds = math.inf
        self.on_progress: ProgressCallback | None = None
        loaded = base.load()
        self.data = data
        self.tokenised = tuple(_tokenised(part, loaded, config) for part in data)
        lengths = [len(sequence.tokens) for sequence in self.tokenised[0].sequences]
        self.plan = plan_steps(
            lengths, epochs=config.epochs, step_size=config.batch_size * config.accumulation, seed=config.seed
        )
        self.evaluated_after = self.plan.evaluated_after(config.evaluations)
        if base.device == "cpu":
            if self.progress.evaluations:
                torch.set_num_threads(self.progress.threads)
            self.progress.threads = torch.get_num_threads()
        self._saved = self._resumed = time.perf_counter()

    def finish(self, preset: str | None, warnings: tuple[str, ...]) -> TuningResult:
        """Run to the end and leave the adapter and its description in the folder.

        Raises:
            ModelError: The memory does not hold a batch.
            InputError: The checkpoint is damaged, or a file cannot be written.
        """
        with adapted(self.base.load(), self.config) as adapter:
            self.adapter: Adapted = adapter
            self.loss = SequenceLoss(self.base, adapter.model, self.tokenised[0].sequences)
            self.validation = SequenceLoss(self.base, adapter.model, self.tokenised[1].sequences)
            config = self.config
            self.optimiser = torch.optim.AdamW(
                adapter.parameters.values(), lr=config.learning_rate, weight_decay=config.weight_decay
            )
            if self.progress.step:
                restore(self.folder, adapter.parameters, self.optimiser)
            self._saved = self._resumed = time.perf_counter()
            try:
                self._take_steps()
            except KeyboardInterrupt:
                if self.progress.evaluations and not self.interruption.at_once:
                    self._save()
                raise
            except torch.OutOfMemoryError as error:
                raise ModelError(
                    f"The memory of {self.base.device} is not enough for a batch of "
                    f"{self.config.batch_size} sequences: "
                    "lower the batch size, raise the accumulation by the same factor, or use gradient checkpointing."
                ) from error
            return self._leave(preset, warnings)

    def _take_steps(self) -> None:
        """Alternate steps and evaluations until the end; what is due follows from the progress alone."""
        progress, total = self.progress, self.plan.steps
        while True:
            evaluated = bool(progress.evaluations) and progress.evaluations[-1].step == progress.step
            if progress.step in self.evaluated_after and not evaluated:
                self._evaluate()
            if progress.step == total or progress.stopped_early:
                return
            self._step()
            if time.perf_counter() - self._saved >= self.checkpoint_seconds:
                self._save()

    def _step(self) -> None:
        progress, config = self.progress, self.config
        indices = self.plan.step(progress.step)
        learned, nats = self.loss.learned(indices), torch.zeros((), device=self.base.device)
        # The dropout of a step depends on nothing that was before it, so that it can be drawn again.
        torch.manual_seed(int(fingerprint_of(config.seed, progress.step)[:15], 16))
        self.optimiser.zero_grad(set_to_none=True)
        for part in passes(indices, self.loss.lengths, config.batch_size):
            self.interruption.check()
            partial = self.loss.nats(part)
            (partial / learned).backward()  # type: ignore[no-untyped-call]
            nats += partial.detach()
        loss = float(nats) / learned
        longest = config.max_gradient_norm or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(self.adapter.parameters.values(), longest))
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise DivergedError(
                f"The training diverged: at step {progress.step + 1} of {self.plan.steps} the loss or its "
                f"gradient is not a finite number; use a lower learning rate than {config.learning_rate:g} "
                "or a longer warm-up."
            )
        rate = learning_rate(config, progress.step, self.plan.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        progress.step += 1
        progress.losses.append(StepLoss(progress.step, loss, rate))
        self._tell(sum(self.loss.lengths[index] for index in indices))

    def _evaluate(self) -> None:
        progress = self.progress
        loss = self.validation.mean(self.config.batch_size, on_pass=self.interruption.check)
        if not math.isfinite(loss):
            raise DivergedError(
                f"The training diverged: the validation loss after step {progress.step} is not a finite number; use a "
                f"lower learning rate than {self.config.learning_rate:g}."
            )
        lowest, patience = progress.lowest, self.config.patience
        progress.evaluations.append(Evaluation(progress.step, loss))
        # The best adapter so far is kept; an untrained one, at step 0, is none.
        if progress.step and loss < lowest:
            progress.best_step, progress.without_gain = progress.step, 0
            save_adapter(self.adapter, best_file(self.folder, progress.step))
        elif progress.step:
            progress.without_gain += 1
            progress.stopped_early = patience is not None and progress.without_gain >= patience
        self._tell(0)
        self._save()

    def _save(self) -> None:
        now = time.perf_counter()
        self.progress.seconds += now - self._resumed
        save_checkpoint(self.folder, self.progress, self.adapter.parameters, self.optimiser)
        self._saved = self._resumed = now

    def _tell(self, tokens: int) -> None:
        if self.on_progress is None:
            return
        last = self.progress.losses[-1].loss if self.progress.losses else None
        newest = self.progress.evaluations[-1].loss
        self.on_progress(TuningProgress(self.progress.step, self.plan.steps, last, newest, tokens))

    def _leave(self, preset: str | None, warnings: tuple[str, ...]) -> TuningResult:
        """Put the best adapter in its place; repeated whole when it was interrupted."""
        progress, base = self.progress, self.base
        assert progress.best_step is not None
        weights = self.folder / WEIGHTS_FILE
        best = best_file(self.folder, progress.best_step)
        replace_file(weights, lambda file: file.write_bytes(best.read_bytes()))
        save_adapter_config(self.adapter.peft, base.label, self.folder)
        train_data, validation_data = (
            replace(
                DataSummary.of(data),
                sequences=len(tokenised.sequences),
                tokens=tokenised.tokens,
                learned=tokenised.learned,
                cut=tokenised.cut,
            )
            for data, tokenised in zip(self.data, self.tokenised, strict=True)
        )
        result = TuningResult(
            folder=self.folder,
            fingerprint=progress.fingerprint,
            base=base.name,
            base_fingerprint=base.fingerprint,
            dtype=base.dtype,
            device=base.device,
            threads=progress.threads,
            config=self.config,
            preset=preset,
            train=train_data,
            validation=validation_data,
            steps=self.plan.steps,
            losses=tuple(progress.losses),
            evaluations=tuple(progress.evaluations),
            best_step=progress.best_step,
            stopped_early=progress.stopped_early,
            seconds=progress.seconds,
            weights_sha256=file_digest(weights),
            versions={name: version(name) for name in ("climassay", "torch", "transformers", "peft")},
        )
        told = [
            f"{data.cut} of {data.size} {role} prompts were longer than {self.config.max_length} tokens and lost their "
            "beginning."
            for role, data in (("training", train_data), ("validation", validation_data))
            if data.cut
        ]
        if result.best.loss >= result.before.loss:
            told.append(
                "Training did not lower the validation loss: the adapter is worse there than the model as it was."
            )
        result = replace(result, warnings=(*warnings, *told))
        write_result(result)
        remove_checkpoint(self.folder)
        return result


def _tokenised(data: TuningData, loaded: LoadedModel, config: TuningConfig) -> TokenisedData:
    context = int(getattr(loaded.model.config.get_text_config(), "max_position_embeddings", None) or 2**31)
    if config.max_length > context:
        raise InputError(
            f"The model takes {context} tokens: lower the maximum length from {config.max_length} to that."
        )
    # An answer ends where the model's generation settings or its tokenizer say.
    stated = getattr(loaded.model.generation_config, "eos_token_id", None)
    ends = [*(stated if isinstance(stated, list) else [stated]), loaded.tokenizer.eos_token_id]
    known_ends = frozenset(int(end) for end in ends if end is not None)
    tokenised = tokenise(data, PromptFormat(loaded.tokenizer), known_ends, config.max_length)
    if not tokenised.sequences:
        raise InputError(f"{data.name} has too little text to learn from.")
    return tokenised
