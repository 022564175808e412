"""The loss of sequences under a model: nats of what is learned, computed nowhere else."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from climassay.tuning.base import TuningBase
from climassay.tuning.batches import passes
from climassay.tuning.sequences import TokenSequence

IGNORED = -100
"""Label of a place that does not count, as torch has it."""


class SequenceLoss:
    """Computes losses of sequences, a forward pass at a time.

    Rows are padded on the right, which in a causal model nothing before the padding can see: there is no mask to
    build, and attention takes its fastest way. Logits are computed from the first place that any row learns on, which
    for the short answer to a long question is a small part of the work and of the memory.
    """

    def __init__(self, base: TuningBase, model: Any, sequences: Sequence[TokenSequence]) -> None:
        """Prepare.

        Args:
            base: Device and dtype.
            model: Of transformers, with or without adapters in it.
            sequences: All that losses may be asked of.
        """
        self._base = base
        self._model = model
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.sequences = sequences
        self.lengths = [len(sequence.tokens) for sequence in sequences]

    def nats(self, indices: Sequence[int]) -> Tensor:
        """Summed cross-entropy of the learned tokens of some sequences: one float32 number, shape [], in nats."""
        rows = [self.sequences[index] for index in indices]
        first = min(row.start for row in rows)
        tokens, labels = (part.to(self._base.device, non_blocking=True) for part in _batch(rows, first))
        options: dict[str, Any] = {"logits_to_keep": labels.shape[1]} if self._keeps else {}
        with self._base.autocast():
            logits = self._model(input_ids=tokens, use_cache=False, **options).logits
        logits = logits[:, -labels.shape[1] :].float()
        return torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=IGNORED, reduction="sum"
        )

    def learned(self, indices: Sequence[int]) -> int:
        """Tokens that count in the loss of some sequences."""
        return sum(self.sequences[index].learned for index in indices)

    def mean(self, size: int, *, on_pass: Callable[[], None] | None = None) -> float:
        """Loss of all sequences without dropout, in nats a token.

        Args:
            size: Sequences in one forward pass.
            on_pass: Called before each pass.
        """
        everything, total = range(len(self.sequences)), 0.0
        training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                for part in passes(everything, self.lengths, size):
                    if on_pass is not None:
                        on_pass()
                    total += float(self.nats(part))
        finally:
            self._model.train(training)
        return total / self.learned(everything)


def _batch(rows: Sequence[TokenSequence], first: int) -> tuple[Tensor, Tensor]:
    """Inputs [rows, longest - 1] and, for the last ``longest - first`` of them, the tokens to come as labels."""
    longest = max(len(row.tokens) for row in rows)
    tokens = torch.zeros(len(rows), longest - 1, dtype=torch.long)
    labels = torch.full((len(rows), longest - first), IGNORED, dtype=torch.long)
    for place, row in enumerate(rows):
        whole = torch.tensor(row.tokens, dtype=torch.long)
        tokens[place, : len(whole) - 1] = whole[:-1]
        labels[place, row.start - first : len(whole) - first] = whole[row.start :]
    return tokens, labels
