"""One training: steps, evaluations, checkpoints, and the best of it all left in a folder."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from climassay.errors import InputError, ModelError
from climassay.models.local.loading import Loaded
from climassay.models.local.prompts import PromptFormat
from climassay.models.model_files import file_digest
from climassay.tuning.adapter import WEIGHTS_FILE, Adapted, adapted, save_adapter, save_adapter_config
from climassay.tuning.base import TuningBase
from climassay.tuning.batches import passes, plan_steps
from climassay.tuning.checkpoints import (
    Progress,
    best_file,
    read_progress,
    remove_checkpoint,
    restore,
    save_checkpoint,
)
from climassay.tuning.config import TuningConfig
from climassay.tuning.data import TuningData
from climassay.tuning.files import replace_file
from climassay.tuning.interruption import Interruption
from climassay.tuning.loss import SequenceLoss
from climassay.tuning.result import (
    DataSummary,
    Evaluation,
    StepLoss,
    TuningResult,
    fingerprint_of,
    write_result,
)
from climassay.tuning.schedule import learning_rate
from climassay.tuning.sequences import TokenisedData, tokenise


class DivergedError(ModelError):
    """A loss or its gradient is no finite number any more."""


@dataclass(frozen=True, slots=True)
class TuningProgress:
    """What a training tells while it runs, after every step and every evaluation."""

    step: int
    """Steps taken."""
    steps: int
    loss: float | None
    """Of the last step; None before the first."""
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
        """Tokenise the data, plan the steps and find out how far an earlier process came.

        Args:
            base: The model.
            data: For training and for validation.
            config: The settings.
            folder: Where all goes.
            fingerprint: Of the training.
            interruption: Asked between passes.
        """
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
        self._settle_threads()
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
                    f"The memory of {self.base.device} does not hold a batch of {self.config.batch_size} sequences: "
                    "lower the batch size, raise the accumulation by as much, or use gradient checkpointing."
                ) from error
            return self._leave(preset, warnings)

    def _take_steps(self) -> None:
        """Alternate steps and evaluations until the end; what is due is told by the progress alone."""
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
                f"The training diverged: at step {progress.step + 1} of {self.plan.steps} the loss or its gradient is "
                f"no finite number; use a lower learning rate than {config.learning_rate:g} or a longer warm-up."
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
                f"The training diverged: the validation loss after step {progress.step} is no finite number; use a "
                f"lower learning rate than {self.config.learning_rate:g}."
            )
        lowest = progress.lowest
        progress.evaluations.append(Evaluation(progress.step, loss))
        if progress.step:
            self._judge(loss, lowest)
        self._tell(0)
        self._save()

    def _judge(self, loss: float, lowest: float) -> None:
        """Keep the adapter if it is the best so far; an untrained one, at step 0, is none."""
        progress, patience = self.progress, self.config.patience
        if loss < lowest:
            progress.best_step, progress.without_gain = progress.step, 0
            save_adapter(self.adapter, best_file(self.folder, progress.step))
            return
        progress.without_gain += 1
        progress.stopped_early = patience is not None and progress.without_gain >= patience

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
            _summary(data, tokenised) for data, tokenised in zip(self.data, self.tokenised, strict=True)
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
            versions=_versions(),
        )
        result = replace(result, warnings=(*warnings, *_own_warnings(result)))
        write_result(result)
        remove_checkpoint(self.folder)
        return result

    def _settle_threads(self) -> None:
        if self.base.device != "cpu":
            return
        if self.progress.evaluations:
            torch.set_num_threads(self.progress.threads)
        self.progress.threads = torch.get_num_threads()


def _tokenised(data: TuningData, loaded: Loaded, config: TuningConfig) -> TokenisedData:
    context = int(getattr(loaded.model.config.get_text_config(), "max_position_embeddings", None) or 2**31)
    if config.max_length > context:
        raise InputError(f"The model takes {context} tokens: lower the max length of {config.max_length} to that.")
    prompts = PromptFormat(loaded.tokenizer)
    tokenised = tokenise(data, prompts, _ends(loaded), config.max_length)
    if not tokenised.sequences:
        raise InputError(f"{data.name} has too little text to learn from.")
    return tokenised


def _ends(loaded: Loaded) -> frozenset[int]:
    """Tokens at which an answer ends, by the model's generation settings and by its tokenizer."""
    stated = getattr(loaded.model.generation_config, "eos_token_id", None)
    ends = [*(stated if isinstance(stated, list) else [stated]), loaded.tokenizer.eos_token_id]
    return frozenset(int(end) for end in ends if end is not None)


def _summary(data: TuningData, tokenised: TokenisedData) -> DataSummary:
    return replace(
        DataSummary.of(data),
        sequences=len(tokenised.sequences),
        tokens=tokenised.tokens,
        learned=tokenised.learned,
        cut=tokenised.cut,
    )


def _own_warnings(result: TuningResult) -> Iterator[str]:
    for role, data in (("training", result.train), ("validation", result.validation)):
        if data.cut:
            yield (
                f"{data.cut} of {data.size} {role} prompts were longer than {result.config.max_length} tokens and lost "
                "their beginning."
            )
    if result.best.loss >= result.before.loss:
        yield "Training did not lower the validation loss: the adapter is worse there than the model as it was."


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("climassay", "torch", "transformers", "peft")}
