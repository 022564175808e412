"""Tokenisation of examples and texts, the order in which sequences are trained on, and their loss."""

import hashlib
import inspect
import random
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from climassay.errors import InputError, ModelError
from climassay.models.local.prefix_tree import common_length
from climassay.models.local.prompt_format import PromptFormat
from climassay.tuning.base import TuningBase
from climassay.tuning.data import ChatData, TextData, TuningData

_ANSWER_PLACEHOLDER = "climassay"
"""Placeholder for an answer, used to find the text that a chat template writes after it."""
_MIN_BLOCK_TOKENS = 2


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """Token sequence for training, one row of a batch."""

    tokens: tuple[int, ...]
    start: int
    """Index of the first token that counts in the loss, at least 1."""

    @property
    def n_target_tokens(self) -> int:
        """Number of tokens that count in the loss."""
        return len(self.tokens) - self.start


@dataclass(frozen=True, slots=True)
class TokenisedData:
    """Token sequences of a data set, and the number of truncated prompts."""

    sequences: tuple[TokenSequence, ...]
    cut: int = 0
    """Number of examples whose prompt was truncated on the left."""
    cut_tokens: int = 0
    """Number of tokens removed by truncating prompts."""

    @property
    def tokens(self) -> int:
        """Total number of tokens."""
        return sum(len(sequence.tokens) for sequence in self.sequences)

    @property
    def n_target_tokens(self) -> int:
        """Number of tokens that count in the loss."""
        return sum(sequence.n_target_tokens for sequence in self.sequences)

    @property
    def longest(self) -> int:
        """Number of tokens of the longest sequence."""
        return max(len(sequence.tokens) for sequence in self.sequences)

    @property
    def sha256(self) -> str:
        """SHA-256 of the tokens and start positions of all sequences."""
        digest = hashlib.sha256()
        for sequence in self.sequences:
            digest.update(array("q", (len(sequence.tokens), sequence.start, *sequence.tokens)).tobytes())
        return digest.hexdigest()


def tokenise(
    data: TuningData, prompt_format: PromptFormat, end_token_ids: frozenset[int], max_length: int
) -> TokenisedData:
    """Tokenise data into sequences of at most ``max_length`` tokens.

    A chat example becomes one sequence: the prompt as in an evaluation, the answer, and the end of the turn. Only the
    answer and the end count in the loss. Prompt and answer are tokenised together, as in option scoring; a token that
    contains parts of both counts in the loss. A prompt that is too long is truncated on the left.

    Texts are concatenated, each followed by the end token, and split into blocks. The last block may be shorter. All
    tokens of a block except the first count in the loss.

    Args:
        data: Examples or documents.
        prompt_format: Prompt format of the model.
        end_token_ids: Tokens that end an answer.
        max_length: Maximum number of tokens in a sequence.

    Raises:
        InputError: An answer alone is longer than ``max_length``.
        ModelError: The chat template does not accept an example, or the tokenizer has no end token.
    """
    if not isinstance(data, TextData):
        return _tokenise_examples(data, prompt_format, end_token_ids, max_length)
    end, stream = _end_token(prompt_format), list[int]()
    for document in data.documents:
        # Without a warning that a book is longer than the model's window: it is split into blocks.
        tokens = list(prompt_format.tokenizer.encode(document.text, verbose=False))
        stream += tokens if tokens and tokens[-1] == end else [*tokens, end]
    blocks = [tuple(stream[start : start + max_length]) for start in range(0, len(stream), max_length)]
    return TokenisedData(tuple(TokenSequence(block, 1) for block in blocks if len(block) >= _MIN_BLOCK_TOKENS))


def end_of_turn(prompt_format: PromptFormat, end_token_ids: frozenset[int]) -> tuple[int, ...]:
    """Return the tokens that the chat template writes after an answer, up to the first token in ``end_token_ids``.

    If there is no template, or it writes none of these tokens after an answer, the tokenizer's end token is returned.

    Raises:
        ModelError: The tokenizer has no end token.
    """
    from jinja2.exceptions import TemplateError

    suffix = ""
    if prompt_format.has_template:
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _ANSWER_PLACEHOLDER}]
        with suppress(TemplateError):
            text = str(prompt_format.tokenizer.apply_chat_template(turns, tokenize=False))
            suffix = text.rpartition(_ANSWER_PLACEHOLDER)[2]
    tokens = list(prompt_format.tokenizer.encode(suffix, add_special_tokens=False)) if suffix else []
    for index, token in enumerate(tokens):
        if token in end_token_ids:
            return tuple(tokens[: index + 1])
    return (_end_token(prompt_format),)


def _end_token(prompt_format: PromptFormat) -> int:
    end = prompt_format.tokenizer.eos_token_id
    if end is None:
        raise ModelError("The model's tokenizer has no end token, so it cannot learn where an answer ends.")
    return int(end)


def _tokenise_examples(
    data: ChatData, prompt_format: PromptFormat, end_token_ids: frozenset[int], max_length: int
) -> TokenisedData:
    prompt_texts = [prompt_format.render(example.messages, example.assistant_prefix) for example in data.examples]
    # Answers are rendered as part of the prefix, so that control tokens in them are escaped as in all prompts.
    full_texts = [
        prompt_format.render(example.messages, example.assistant_prefix + example.answer) for example in data.examples
    ]
    end = end_of_turn(prompt_format, end_token_ids)
    sequences, excess_counts = [], []
    pairs = zip(prompt_format.encode_all(prompt_texts), prompt_format.encode_all(full_texts), strict=True)
    for example_number, (prompt_tokens, full_tokens) in enumerate(pairs, start=1):
        start, tokens = max(1, common_length(prompt_tokens, full_tokens)), (*full_tokens, *end)
        n_excess = max(0, len(tokens) - max_length)
        if n_excess >= start:
            raise InputError(
                f"The answer of example {example_number} of {data.name} has {len(tokens) - start} tokens with its end, "
                f"which leaves no room for a prompt in {max_length}: raise the maximum length."
            )
        excess_counts.append(n_excess)
        sequences.append(TokenSequence(tokens[n_excess:], start - n_excess))
    return TokenisedData(tuple(sequences), sum(n_excess > 0 for n_excess in excess_counts), sum(excess_counts))


_POOL_STEPS = 32
"""Number of steps whose sequences are sorted by length together. The number is high enough to avoid most padding, and
low enough that lengths stay mixed over an epoch."""


def epoch_order(lengths: Sequence[int], step_size: int, *, seed: int, epoch: int) -> list[int]:
    """Return the order in which an epoch visits the sequences, as a permutation of their indices.

    The sequences are shuffled and divided into pools of several steps. Each pool is sorted by length and divided into
    steps of similar lengths; then the steps of all pools are shuffled. An incomplete step comes last.
    """
    generator, indices = random.Random(f"{seed}/{epoch}"), list(range(len(lengths)))
    generator.shuffle(indices)
    n_remaining = len(indices) % step_size
    incomplete_step, steps = indices[len(indices) - n_remaining :], list[list[int]]()
    for start in range(0, len(indices) - n_remaining, step_size * _POOL_STEPS):
        end = min(start + step_size * _POOL_STEPS, len(indices) - n_remaining)
        pool = sorted(indices[start:end], key=lambda index: lengths[index])
        steps += [pool[step_start : step_start + step_size] for step_start in range(0, len(pool), step_size)]
    generator.shuffle(steps)
    return [index for step in (*steps, incomplete_step) for index in step]


def iterate_batches(indices: Sequence[int], lengths: Sequence[int], batch_size: int) -> Iterator[tuple[int, ...]]:
    """Yield the indices of the sequences in each forward pass: at most ``batch_size`` sequences of similar lengths."""
    sorted_indices = sorted(indices, key=lambda index: (lengths[index], index))
    for start in range(0, len(sorted_indices), batch_size):
        yield tuple(sorted_indices[start : start + batch_size])


IGNORED = -100
"""Label of positions that do not count in the loss (torch's ``ignore_index``)."""


class SequenceLoss:
    """Losses of sequences, computed one forward pass at a time.

    Rows are padded on the right. In a causal model no token attends to the padding after it, so no attention mask is
    needed, and the fastest attention kernel can be used. Logits are computed only from the first position that counts
    in the loss of any row. For short answers to long questions, this saves most of the time and memory.
    """

    def __init__(self, base: TuningBase, model: Any, sequences: Sequence[TokenSequence]) -> None:
        self._base = base
        self._model = model
        self._supports_logits_to_keep = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.sequences = sequences
        self.lengths = [len(sequence.tokens) for sequence in sequences]

    def summed_loss(self, indices: Sequence[int]) -> Tensor:
        """Return the summed loss of the sequences with the given indices, in nats: a float32 tensor of shape []."""
        sequences = [self.sequences[index] for index in indices]
        start = min(sequence.start for sequence in sequences)
        tokens, labels = (tensor.to(self._base.device, non_blocking=True) for tensor in _make_batch(sequences, start))
        options: dict[str, Any] = {"logits_to_keep": labels.shape[1]} if self._supports_logits_to_keep else {}
        with self._base.autocast():
            logits = self._model(input_ids=tokens, use_cache=False, **options).logits
        logits = logits[:, -labels.shape[1] :].float()
        return torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=IGNORED, reduction="sum"
        )

    def labels(self, indices: Sequence[int]) -> Tensor:
        """Return the labels of the sequences with the given indices, shape [sequences, positions].

        They are tokens, or :data:`IGNORED` at positions that do not count in the loss.
        """
        sequences = [self.sequences[index] for index in indices]
        return _make_batch(sequences, min(sequence.start for sequence in sequences))[1]

    def count_target_tokens(self, indices: Sequence[int]) -> int:
        """Return the number of tokens of some sequences that count in the loss."""
        return sum(self.sequences[index].n_target_tokens for index in indices)

    def mean_loss(self, batch_size: int) -> float:
        """Return the mean loss of all sequences without dropout, in nats per token.

        A forward pass has at most ``batch_size`` sequences.
        """
        all_indices, total = range(len(self.sequences)), 0.0
        is_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                for indices in iterate_batches(all_indices, self.lengths, batch_size):
                    total += float(self.summed_loss(indices))
        finally:
            self._model.train(is_training)
        return total / self.count_target_tokens(all_indices)


def _make_batch(sequences: Sequence[TokenSequence], start: int) -> tuple[Tensor, Tensor]:
    """Return padded input tokens [rows, max_length - 1] and labels [rows, max_length - start].

    The labels are the tokens from index ``start`` on, each predicted from the input before it.
    """
    max_length = max(len(sequence.tokens) for sequence in sequences)
    tokens = torch.zeros(len(sequences), max_length - 1, dtype=torch.long)
    labels = torch.full((len(sequences), max_length - start), IGNORED, dtype=torch.long)
    for row_index, sequence in enumerate(sequences):
        row_tokens = torch.tensor(sequence.tokens, dtype=torch.long)
        tokens[row_index, : len(row_tokens) - 1] = row_tokens[:-1]
        labels[row_index, sequence.start - start : len(row_tokens) - start] = row_tokens[sequence.start :]
    return tokens, labels
