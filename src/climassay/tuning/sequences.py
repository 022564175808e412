"""From examples and texts to token sequences, with the place from which each is learned."""

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from climassay.errors import InputError, ModelError
from climassay.models.contract import Message
from climassay.models.local.prompts import PromptFormat
from climassay.tuning.data import ChatData, ChatExample, TextData, TextDocument, TuningData

_ANSWER = "climassay"
"""Stands for an answer where only what a template writes after it is looked for."""
_SHORTEST_BLOCK = 2


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """One row of a batch."""

    tokens: tuple[int, ...]
    start: int
    """Position of the first token that is learned, at least 1: every learned token has one before it."""

    @property
    def learned(self) -> int:
        """Tokens that count in the loss."""
        return len(self.tokens) - self.start


@dataclass(frozen=True, slots=True)
class TokenisedData:
    """All sequences of a data set and what was done to make them fit."""

    sequences: tuple[TokenSequence, ...]
    cut: int = 0
    """Examples whose prompt lost its beginning."""
    cut_tokens: int = 0
    """Tokens lost so."""

    @property
    def tokens(self) -> int:
        """All tokens."""
        return sum(len(sequence.tokens) for sequence in self.sequences)

    @property
    def learned(self) -> int:
        """Tokens that count in the loss."""
        return sum(sequence.learned for sequence in self.sequences)

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return max(len(sequence.tokens) for sequence in self.sequences)

    @property
    def sha256(self) -> str:
        """Over tokens and places, so that a change of how data are tokenised never goes unnoticed."""
        digest = hashlib.sha256()
        for sequence in self.sequences:
            digest.update(array("q", (len(sequence.tokens), sequence.start, *sequence.tokens)).tobytes())
        return digest.hexdigest()


def tokenise(data: TuningData, prompts: PromptFormat, ends: frozenset[int], max_length: int) -> TokenisedData:
    """Turn data into sequences of at most ``max_length`` tokens.

    Examples: the prompt exactly as the model receives it at evaluation, the answer, and what ends a turn; the answer
    and the end are learned. Prompt and answer are tokenised together, as when options are weighed; where a tokenizer
    merges across their border, the merged token is learned. A prompt that is too long loses its beginning.

    Texts: one text after the other, each ended by the end token, cut into blocks; every token but a block's first is
    learned. The last block is as long as what is left: nothing is padded.

    Args:
        data: Examples or texts.
        prompts: The model's tokenizer and template.
        ends: Tokens at which the model's turn ends.
        max_length: Tokens.

    Raises:
        InputError: An answer alone is longer than ``max_length``.
        ModelError: The template does not accept an example, or the tokenizer has no end token.
    """
    if isinstance(data, TextData):
        return _tokenise_texts(data.documents, prompts, max_length)
    return _tokenise_examples(data, prompts, ends, max_length)


def end_of_turn(prompts: PromptFormat, ends: frozenset[int]) -> tuple[int, ...]:
    """Tokens that the template writes after an answer, up to the one at which generation stops.

    Falls back on the tokenizer's end token where there is no template, or one that writes nothing of the kind.

    Raises:
        ModelError: There is no end token either.
    """
    written = _after_answer(prompts) if prompts.has_template else ""
    tokens = list(prompts.tokenizer.encode(written, add_special_tokens=False)) if written else []
    for place, token in enumerate(tokens):
        if token in ends:
            return tuple(tokens[: place + 1])
    return (_end_token(prompts),)


def _after_answer(prompts: PromptFormat) -> str:
    from jinja2.exceptions import TemplateError

    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _ANSWER}]
    try:
        text = str(prompts.tokenizer.apply_chat_template(turns, tokenize=False))
    except TemplateError:
        return ""
    return text.rpartition(_ANSWER)[2]


def _end_token(prompts: PromptFormat) -> int:
    end = prompts.tokenizer.eos_token_id
    if end is None:
        raise ModelError("The model's tokenizer has no end token, so that nothing can tell it where an answer ends.")
    return int(end)


def _tokenise_examples(data: ChatData, prompts: PromptFormat, ends: frozenset[int], max_length: int) -> TokenisedData:
    given = [prompts.render(example.messages, example.assistant_prefix) for example in data.examples]
    whole = [prompts.render(*_answered(example)) for example in data.examples]
    end = end_of_turn(prompts, ends)
    sequences, cut = [], []
    pairs = zip(prompts.encode_all(given), prompts.encode_all(whole), strict=True)
    for number, (prompt, full) in enumerate(pairs, start=1):
        start, tokens = _common(prompt, full), (*full, *end)
        surplus = max(0, len(tokens) - max_length)
        if surplus >= start:
            raise InputError(
                f"The answer of example {number} of {data.name} has {len(tokens) - start} tokens with its end, which "
                f"leaves no room for a prompt in {max_length}: raise the max length."
            )
        cut.append(surplus)
        sequences.append(TokenSequence(tokens[surplus:], start - surplus))
    return TokenisedData(tuple(sequences), sum(surplus > 0 for surplus in cut), sum(cut))


def _answered(example: ChatExample) -> tuple[tuple[Message, ...], str]:
    # Rendered as a longer start of the answer: control tokens in it are broken up as everywhere.
    return example.messages, example.assistant_prefix + example.answer


def _common(prompt: Sequence[int], full: Sequence[int]) -> int:
    """Tokens that both begin with, at least 1."""
    same = 0
    for left, right in zip(prompt, full, strict=False):
        if left != right:
            break
        same += 1
    return max(1, same)


def _tokenise_texts(documents: Iterable[TextDocument], prompts: PromptFormat, max_length: int) -> TokenisedData:
    end, stream = _end_token(prompts), list[int]()
    for document in documents:
        # Not verbose: a book is longer than the model's window, and is cut into blocks.
        tokens = list(prompts.tokenizer.encode(document.text, verbose=False))
        stream += tokens if tokens and tokens[-1] == end else [*tokens, end]
    blocks = [tuple(stream[place : place + max_length]) for place in range(0, len(stream), max_length)]
    return TokenisedData(tuple(TokenSequence(block, 1) for block in blocks if len(block) >= _SHORTEST_BLOCK))
