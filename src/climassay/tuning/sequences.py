"""Examples and texts as token sequences: how they are tokenised, in which order they are learned, and their loss."""

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

_ANSWER = "climassay"
"""Stands for an answer where only what a template writes after it is looked for."""
_SHORTEST_BLOCK = 2


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """A token sequence, one row of a batch."""

    tokens: tuple[int, ...]
    start: int
    """Position of the first learned token, at least 1."""

    @property
    def learned(self) -> int:
        """Number of tokens that count in the loss."""
        return len(self.tokens) - self.start


@dataclass(frozen=True, slots=True)
class TokenisedData:
    """Token sequences of a data set, and the number of truncated prompts."""

    sequences: tuple[TokenSequence, ...]
    cut: int = 0
    """Number of examples whose prompt lost its beginning."""
    cut_tokens: int = 0
    """Number of tokens removed from prompts."""

    @property
    def tokens(self) -> int:
        """Number of tokens."""
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
        """SHA-256 of tokens and start positions, which changes if data are tokenised differently."""
        digest = hashlib.sha256()
        for sequence in self.sequences:
            digest.update(array("q", (len(sequence.tokens), sequence.start, *sequence.tokens)).tobytes())
        return digest.hexdigest()


def tokenise(data: TuningData, prompts: PromptFormat, ends: frozenset[int], max_length: int) -> TokenisedData:
    """Tokenise data into sequences of at most ``max_length`` tokens.

    Examples: the prompt as in evaluation, the answer, and the end of the turn; answer and end are learned. Prompt and
    answer are tokenised together, as in option scoring; a token across their border is learned. A prompt that is too
    long loses its beginning.

    Texts are concatenated, each followed by the end token, and split into blocks; every token but the first of a block
    is learned. The last block may be shorter; nothing is padded.

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
    return TokenisedData(tuple(TokenSequence(block, 1) for block in blocks if len(block) >= _SHORTEST_BLOCK))


def end_of_turn(prompts: PromptFormat, ends: frozenset[int]) -> tuple[int, ...]:
    """Return the tokens that the template writes after an answer, up to the one that stops generation.

    Without a template, or without such a token, it is the end token of the tokenizer.

    Raises:
        ModelError: There is no end token either.
    """
    from jinja2.exceptions import TemplateError

    suffix = ""
    if prompts.has_template:
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _ANSWER}]
        with suppress(TemplateError):
            text = str(prompts.tokenizer.apply_chat_template(turns, tokenize=False))
            suffix = text.rpartition(_ANSWER)[2]
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
    prompts_text = [prompts.render(example.messages, example.assistant_prefix) for example in data.examples]
    # Rendered as a longer start of the answer: control tokens in it are broken up as everywhere.
    full_texts = [
        prompts.render(example.messages, example.assistant_prefix + example.answer) for example in data.examples
    ]
    end = end_of_turn(prompts, ends)
    sequences, cut = [], []
    pairs = zip(prompts.encode_all(prompts_text), prompts.encode_all(full_texts), strict=True)
    for number, (prompt, full) in enumerate(pairs, start=1):
        start, tokens = max(1, common_length(prompt, full)), (*full, *end)
        surplus = max(0, len(tokens) - max_length)
        if surplus >= start:
            raise InputError(
                f"The answer of example {number} of {data.name} has {len(tokens) - start} tokens with its end, which "
                f"leaves no room for a prompt in {max_length}: raise the maximum length."
            )
        cut.append(surplus)
        sequences.append(TokenSequence(tokens[surplus:], start - surplus))
    return TokenisedData(tuple(sequences), sum(surplus > 0 for surplus in cut), sum(cut))


_POOL = 32
"""Batches' worth of sequences among which like lengths are looked for: enough that hardly anything is padded, few
enough that an epoch does not run from short to long."""


def epoch_order(lengths: Sequence[int], step_size: int, *, seed: int, epoch: int) -> list[int]:
    """Return the order in which an epoch sees the sequences, each once.

    They are shuffled; within pools of some steps they are sorted by length and cut into steps of like lengths, and the
    steps are shuffled. The step that is smaller than the others, if any, comes last.
    """
    generator, order = random.Random(f"{seed}/{epoch}"), list(range(len(lengths)))
    generator.shuffle(order)
    n_remaining = len(order) % step_size
    last, steps = order[len(order) - n_remaining :], list[list[int]]()
    for start in range(0, len(order) - n_remaining, step_size * _POOL):
        end = min(start + step_size * _POOL, len(order) - n_remaining)
        pool = sorted(order[start:end], key=lambda index: lengths[index])
        steps += [pool[first : first + step_size] for first in range(0, len(pool), step_size)]
    generator.shuffle(steps)
    return [index for step in (*steps, last) for index in step]


def passes(indices: Sequence[int], lengths: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Split a step, or a validation set, into forward passes of at most ``size`` sequences of like lengths."""
    ordered = sorted(indices, key=lambda index: (lengths[index], index))
    for start in range(0, len(ordered), size):
        yield tuple(ordered[start : start + size])


IGNORED = -100
"""Label of a place that does not count, as torch has it."""


class SequenceLoss:
    """Computes losses of sequences, a forward pass at a time.

    Rows are padded on the right, which in a causal model nothing before the padding can see: there is no mask to
    build, and attention takes its fastest way. Logits are computed from the first place that any row learns on, which
    for the short answer to a long question is a small part of the work and of the memory.
    """

    def __init__(self, base: TuningBase, model: Any, sequences: Sequence[TokenSequence]) -> None:
        """Store the model and the sequences."""
        self._base = base
        self._model = model
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.sequences = sequences
        self.lengths = [len(sequence.tokens) for sequence in sequences]

    def nats(self, indices: Sequence[int]) -> Tensor:
        """Return the summed cross-entropy of the learned tokens of sequences, a float32 scalar, shape [], in nats."""
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

    def labels(self, indices: Sequence[int]) -> Tensor:
        """Return labels of sequences, shape [sequences, positions]; :data:`IGNORED` if a token does not count."""
        rows = [self.sequences[index] for index in indices]
        return _batch(rows, min(row.start for row in rows))[1]

    def learned(self, indices: Sequence[int]) -> int:
        """Return the number of tokens that count in the loss of sequences."""
        return sum(self.sequences[index].learned for index in indices)

    def mean(self, size: int, *, on_pass: Callable[[], None] | None = None) -> float:
        """Return the mean loss of all sequences without dropout, in nats a token."""
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


def _batch(rows: Sequence[TokenSequence], first: int) -> tuple[Tensor, Tensor]:
    """Return inputs [rows, longest - 1], and the next tokens as labels of the last ``longest - first`` positions."""
    longest = max(len(row.tokens) for row in rows)
    tokens = torch.zeros(len(rows), longest - 1, dtype=torch.long)
    labels = torch.full((len(rows), longest - first), IGNORED, dtype=torch.long)
    for row_index, row in enumerate(rows):
        row_tokens = torch.tensor(row.tokens, dtype=torch.long)
        tokens[row_index, : len(row_tokens) - 1] = row_tokens[:-1]
        labels[row_index, row.start - first : len(row_tokens) - first] = row_tokens[row.start :]
    return tokens, labels
