"""Tokenisation of examples and texts, the order in which sequences are trained on, and their loss."""

import hashlib
import inspect
import random
from array import array
from collections.abc import Callable, Iterator, Sequence
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
    """Token sequence, one row of a batch."""

    tokens: tuple[int, ...]
    start: int
    """Position of the first learned token, at least 1."""

    @property
    def learned(self) -> int:
        """Number of tokens that count in the loss."""
        return len(self.tokens) - self.start


@dataclass(frozen=True, slots=True)
class TokenisedData:
    """Token sequences of a data set, and counts of truncated prompts."""

    sequences: tuple[TokenSequence, ...]
    cut: int = 0
    """Number of examples whose prompt was truncated on the left."""
    cut_tokens: int = 0
    """Number of tokens removed from truncated prompts."""

    @property
    def tokens(self) -> int:
        """Number of tokens of all sequences."""
        return sum(len(sequence.tokens) for sequence in self.sequences)

    @property
    def learned(self) -> int:
        """Number of tokens that count in the loss."""
        return sum(sequence.learned for sequence in self.sequences)

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


def tokenise(data: TuningData, prompts: PromptFormat, ends: frozenset[int], max_length: int) -> TokenisedData:
    """Tokenise data into sequences of at most ``max_length`` tokens.

    An example becomes one sequence: the prompt as in an evaluation, the answer, and the end of the turn. Answer and end
    are learned. Prompt and answer are tokenised together, as in option scoring; a token that spans their border is
    learned. A prompt that is too long is truncated on the left.

    Texts are concatenated, each followed by the end token, and split into blocks; every token but the first of a block
    is learned. The last block may be shorter.

    Raises:
        InputError: An answer alone is longer than ``max_length``.
        ModelError: The template does not accept an example, or the tokenizer has no end token.
    """
    if not isinstance(data, TextData):
        return _tokenise_examples(data, prompts, ends, max_length)
    end, stream = _end_token(prompts), list[int]()
    for document in data.documents:
        # Not verbose: a book is longer than the model's window, and is cut into blocks.
        tokens = list(prompts.tokenizer.encode(document.text, verbose=False))
        stream += tokens if tokens and tokens[-1] == end else [*tokens, end]
    blocks = [tuple(stream[start : start + max_length]) for start in range(0, len(stream), max_length)]
    return TokenisedData(tuple(TokenSequence(block, 1) for block in blocks if len(block) >= _MIN_BLOCK_TOKENS))


def end_of_turn(prompts: PromptFormat, ends: frozenset[int]) -> tuple[int, ...]:
    """Return the tokens that the chat template writes after an answer, up to the first one in ``ends``.

    Without a template, or without such a token, the tokenizer's end token is returned.

    Raises:
        ModelError: The tokenizer has no end token either.
    """
    from jinja2.exceptions import TemplateError

    suffix = ""
    if prompts.has_template:
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _ANSWER_PLACEHOLDER}]
        with suppress(TemplateError):
            text = str(prompts.tokenizer.apply_chat_template(turns, tokenize=False))
            suffix = text.rpartition(_ANSWER_PLACEHOLDER)[2]
    tokens = list(prompts.tokenizer.encode(suffix, add_special_tokens=False)) if suffix else []
    for index, token in enumerate(tokens):
        if token in ends:
            return tuple(tokens[: index + 1])
    return (_end_token(prompts),)


def _end_token(prompts: PromptFormat) -> int:
    end = prompts.tokenizer.eos_token_id
    if end is None:
        raise ModelError("The model's tokenizer has no end token, so it cannot learn where an answer ends.")
    return int(end)


def _tokenise_examples(data: ChatData, prompts: PromptFormat, ends: frozenset[int], max_length: int) -> TokenisedData:
    prompt_texts = [prompts.render(example.messages, example.assistant_prefix) for example in data.examples]
    # Rendered as a longer prefix of the answer, so that control tokens in it are escaped as in all prompts.
    full_texts = [
        prompts.render(example.messages, example.assistant_prefix + example.answer) for example in data.examples
    ]
    end = end_of_turn(prompts, ends)
    sequences, surpluses = [], []
    pairs = zip(prompts.encode_all(prompt_texts), prompts.encode_all(full_texts), strict=True)
    for number, (prompt, full) in enumerate(pairs, start=1):
        start, tokens = max(1, common_length(prompt, full)), (*full, *end)
        surplus = max(0, len(tokens) - max_length)
        if surplus >= start:
            raise InputError(
                f"The answer of example {number} of {data.name} has {len(tokens) - start} tokens with its end, which "
                f"leaves no room for a prompt in {max_length}: raise the maximum length."
            )
        surpluses.append(surplus)
        sequences.append(TokenSequence(tokens[surplus:], start - surplus))
    return TokenisedData(tuple(sequences), sum(surplus > 0 for surplus in surpluses), sum(surpluses))


_POOL_STEPS = 32
"""Number of steps' worth of sequences that are sorted by length together: enough to avoid most padding, and few enough
that lengths stay mixed over an epoch."""


def epoch_order(lengths: Sequence[int], step_size: int, *, seed: int, epoch: int) -> list[int]:
    """Return the indices of all sequences, each once, in the order of an epoch.

    The sequences are shuffled and divided into pools of several steps. Each pool is sorted by length and cut into steps
    of similar lengths, and the steps of all pools are shuffled. An incomplete step, if any, comes last.
    """
    generator, order = random.Random(f"{seed}/{epoch}"), list(range(len(lengths)))
    generator.shuffle(order)
    n_remaining = len(order) % step_size
    last, steps = order[len(order) - n_remaining :], list[list[int]]()
    for start in range(0, len(order) - n_remaining, step_size * _POOL_STEPS):
        end = min(start + step_size * _POOL_STEPS, len(order) - n_remaining)
        pool = sorted(order[start:end], key=lambda index: lengths[index])
        steps += [pool[first : first + step_size] for first in range(0, len(pool), step_size)]
    generator.shuffle(steps)
    return [index for step in (*steps, last) for index in step]


def passes(indices: Sequence[int], lengths: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Yield the indices of each forward pass: at most ``size`` sequences of similar lengths."""
    ordered = sorted(indices, key=lambda index: (lengths[index], index))
    for start in range(0, len(ordered), size):
        yield tuple(ordered[start : start + size])


IGNORED = -100
"""Label of a position that does not count in the loss, torch's ``ignore_index``."""


class SequenceLoss:
    """Losses of sequences, computed one forward pass at a time.

    Rows are padded on the right. In a causal model no earlier token attends to the padding, so that no attention mask
    is needed and the fastest attention kernel is used. Logits are computed from the first position that any row learns
    on, which saves most of the work and memory for short answers to long questions.
    """

    def __init__(self, base: TuningBase, model: Any, sequences: Sequence[TokenSequence]) -> None:
        """Store the model and the sequences."""
        self._base = base
        self._model = model
        self._supports_logits_to_keep = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.sequences = sequences
        self.lengths = [len(sequence.tokens) for sequence in sequences]

    def nats(self, indices: Sequence[int]) -> Tensor:
        """Return the summed cross-entropy in nats of the learned tokens of sequences, a float32 tensor of shape []."""
        rows = [self.sequences[index] for index in indices]
        first = min(row.start for row in rows)
        tokens, labels = (part.to(self._base.device, non_blocking=True) for part in _make_batch(rows, first))
        options: dict[str, Any] = {"logits_to_keep": labels.shape[1]} if self._supports_logits_to_keep else {}
        with self._base.autocast():
            logits = self._model(input_ids=tokens, use_cache=False, **options).logits
        logits = logits[:, -labels.shape[1] :].float()
        return torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=IGNORED, reduction="sum"
        )

    def labels(self, indices: Sequence[int]) -> Tensor:
        """Return the labels of sequences, [sequences, positions]; :data:`IGNORED` if a token is not learned."""
        rows = [self.sequences[index] for index in indices]
        return _make_batch(rows, min(row.start for row in rows))[1]

    def learned(self, indices: Sequence[int]) -> int:
        """Return the number of tokens that count in the loss of sequences."""
        return sum(self.sequences[index].learned for index in indices)

    def mean(self, size: int, *, on_pass: Callable[[], None] | None = None) -> float:
        """Return the mean loss of all sequences without dropout, in nats per token."""
        all_indices, total = range(len(self.sequences)), 0.0
        training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                for part in passes(all_indices, self.lengths, size):
                    if on_pass is not None:
                        on_pass()
                    total += float(self.nats(part))
        finally:
            self._model.train(training)
        return total / self.learned(all_indices)


def _make_batch(rows: Sequence[TokenSequence], first: int) -> tuple[Tensor, Tensor]:
    """Return inputs [rows, longest - 1] and labels [rows, longest - first], the next tokens from ``first`` on."""
    longest = max(len(row.tokens) for row in rows)
    tokens = torch.zeros(len(rows), longest - 1, dtype=torch.long)
    labels = torch.full((len(rows), longest - first), IGNORED, dtype=torch.long)
    for row_index, row in enumerate(rows):
        row_tokens = torch.tensor(row.tokens, dtype=torch.long)
        tokens[row_index, : len(row_tokens) - 1] = row_tokens[:-1]
        labels[row_index, row.start - first : len(row_tokens) - first] = row_tokens[row.start :]
    return tokens, labels
