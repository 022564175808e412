"""The bundled encoder reading premise and statement together, with low-rank changes to its weights and a linear head.

A bi-encoder makes one vector per text, in which a "not" is hardly seen. Here both texts go through the model as one, so
that every word of the statement can look at every word of the premise (a cross-encoder). Only the low-rank changes
and the head are trained; they are a few hundred kilobytes.

References:
    Hu et al. (2022), LoRA: Low-Rank Adaptation of Large Language Models, ICLR, section 4.1.
    Devlin et al. (2019), BERT, NAACL, section 3 (two texts in one input).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import MissingExtraError, ModelError
from climassay.metrics.entailment import RELATIONS

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float64]
Arrays = dict[str, NDArray[np.float32]]

MAX_TOKENS = 192
"""Of premise and statement together; a longer premise is cut at its end."""
TARGETS = ("query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense")
"""Linear layers of each block that get low-rank changes."""
_BATCH_TOKENS = 2048


@dataclass(frozen=True, slots=True)
class CrossEncoderConfig:
    """How a cross-encoder is trained."""

    rank: int = 8
    """Of the changes to each weight matrix."""
    alpha: float = 16.0
    """The changes are scaled by ``alpha / rank``."""
    epochs: int = 3
    learning_rate: float = 1e-3
    """At its highest, after a linear warm-up over a tenth of the steps; from there linearly to 0."""
    batch: int = 32
    """Pairs a step."""
    weight_decay: float = 0.01
    dropout: float = 0.1
    classes: int = len(RELATIONS)
    """What the head tells apart; by default the relations of entailment."""
    bfloat16: bool = True
    """Frozen weights and activations in 16 bits: three times as fast on processors that know them."""


class CrossEncoder:
    """Gives logits of the three relations; trained by :func:`train`, or rebuilt from its arrays."""

    def __init__(self, network: Any, tokenizer: Any) -> None:
        self._network = network
        self._tokenizer = tokenizer

    def logits(
        self, pairs: Sequence[tuple[str, str]], *, on_progress: Callable[[int], None] | None = None
    ) -> FloatArray:
        """Logits of the classes for pairs of (premise, statement), [pairs, classes].

        A pair's logits do not depend on what it is computed with beyond rounding.
        """
        import torch

        found = np.zeros((len(pairs), self._network.head.out_features))
        if not pairs:
            return found
        tokens = tokenised(self._tokenizer, pairs)
        self._network.eval()
        with torch.inference_mode():
            for places in _by_length(tokens):
                found[places] = self._network(**_padded([tokens[place] for place in places])).double().numpy()
                if on_progress is not None:
                    on_progress(len(places))
        return found

    def arrays(self) -> Arrays:
        """What was trained, by name; :func:`rebuild` takes it."""
        return {
            name: value.detach().float().numpy().copy()
            for name, value in self._network.named_parameters()
            if value.requires_grad
        }


Tokens = tuple[list[int], list[int]]
"""Ids of a pair's tokens, and 0 or 1 for the text each belongs to."""


def tokenised(tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> list[Tokens]:
    """Pairs as tokens; the premise is cut where both are longer than :data:`MAX_TOKENS`, then the statement."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS, strategy="longest_first")
    return [(row.ids, row.type_ids) for row in tokenizer.encode_batch(list(pairs))]


def rebuild(folder: Path, arrays: Mapping[str, NDArray[np.float32]], config: CrossEncoderConfig) -> CrossEncoder:
    """The cross-encoder whose trained arrays these are, in float32 with the changes merged into the weights.

    Raises:
        ModelError: The arrays do not fit the encoder.
    """
    import torch

    network, tokenizer = _network(folder, config, bfloat16=False)
    wanted = {name: value for name, value in network.named_parameters() if value.requires_grad}
    if wanted.keys() != arrays.keys():
        raise ModelError("The head's arrays are not those of this encoder: train it again.")
    with torch.no_grad():
        for name, parameter in wanted.items():
            if tuple(arrays[name].shape) != tuple(parameter.shape):
                raise ModelError(f"The head's array {name} does not fit this encoder: train it again.")
            parameter.copy_(torch.from_numpy(np.array(arrays[name], dtype=np.float32)))
    network.merge()
    return CrossEncoder(network, tokenizer)


def train(
    folder: Path,
    pairs: Sequence[tuple[str, str]],
    relations: Sequence[int],
    config: CrossEncoderConfig,
    *,
    seed: int = 0,
    on_step: Callable[[int], None] | None = None,
) -> CrossEncoder:
    """Train low-rank changes and a head on labelled pairs.

    Args:
        folder: Of the encoder: config.json, model.safetensors and tokenizer.json of a BERT.
        pairs: Premise and statement.
        relations: Places of the right class, by default in :data:`~climassay.metrics.entailment.RELATIONS`.
        config: How.
        seed: Of the initial weights, dropout and the order of pairs; equal seeds give equal weights on one machine.
        on_step: Called with the number of pairs trained on since the last call.

    Raises:
        ModelError: The loss is not a number any more.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network, tokenizer = _network(folder, config, bfloat16=config.bfloat16)
        tokens = tokenised(tokenizer, pairs)
        trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
        optimiser = torch.optim.AdamW(trained, lr=config.learning_rate, weight_decay=config.weight_decay)
        steps = config.epochs * math.ceil(len(pairs) / config.batch)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, steps))
        network.train()
        for places in _shuffled(tokens, config, seed):
            targets = torch.tensor([relations[place] for place in places])
            loss = torch.nn.functional.cross_entropy(network(**_padded([tokens[p] for p in places])), targets)
            if not bool(torch.isfinite(loss)):
                raise ModelError("The training diverged: take a lower learning rate.")
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimiser.step()
            schedule.step()
            if on_step is not None:
                on_step(len(places))
    return CrossEncoder(network, tokenizer)


def _rate(step: int, steps: int) -> float:
    warm = max(1, steps // 10)
    return (step + 1) / warm if step < warm else max(0.0, (steps - step) / max(1, steps - warm))


def _shuffled(tokens: Sequence[Tokens], config: CrossEncoderConfig, seed: int) -> Iterator[list[int]]:
    """Batches of pairs of like length, in random order, for all epochs."""
    generator = np.random.default_rng(seed)
    for _ in range(config.epochs):
        lengths = np.array([len(ids) for ids, _ in tokens]) + generator.uniform(0, 12, len(tokens))
        order = np.argsort(lengths)
        batches = [order[start : start + config.batch].tolist() for start in range(0, len(order), config.batch)]
        for place in generator.permutation(len(batches)):
            yield batches[place]


def _by_length(tokens: Sequence[Tokens]) -> Iterator[list[int]]:
    """Places of pairs of like length, as many as :data:`_BATCH_TOKENS` allow."""
    batch: list[int] = []
    for place in sorted(range(len(tokens)), key=lambda place: len(tokens[place][0])):
        if batch and len(tokens[place][0]) * (len(batch) + 1) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _padded(rows: Sequence[Tokens]) -> "dict[str, torch.Tensor]":
    import torch

    # Few different shapes: kernels and their memory are kept for every shape that was seen.
    longest = -(-max(len(ids) for ids, _ in rows) // 16) * 16
    ids, kinds, mask = (torch.zeros(len(rows), longest, dtype=torch.long) for _ in range(3))
    for place, (row, kind) in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        kinds[place, : len(row)] = torch.tensor(kind)
        mask[place, : len(row)] = 1
    return {"ids": ids, "kinds": kinds, "mask": mask}


def _network(folder: Path, config: CrossEncoderConfig, *, bfloat16: bool) -> tuple[Any, Any]:
    try:
        import torch
        from cross_encoder_network import Network
        from tokenizers import Tokenizer
        from transformers import BertModel
        from transformers.utils import logging
    except ImportError as error:
        raise MissingExtraError("This entailment scorer needs torch: pip install 'climassay[local]'.") from error
    logging.disable_progress_bar()
    dtype = torch.bfloat16 if bfloat16 else torch.float32
    body = BertModel.from_pretrained(
        folder,
        dtype=dtype,
        add_pooling_layer=False,
        local_files_only=True,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
    )
    network = Network(body, TARGETS, rank=config.rank, scale=config.alpha / config.rank, relations=config.classes)
    return network, Tokenizer.from_file(str(folder / "tokenizer.json"))
