"""Divide sentences with several confidence levels into the part that each level qualifies, with a language model.

A part is used only if it consists of words of the sentence in their order, so that the model cannot add words or
numbers. Otherwise the sentence is counted as undivided, and each of its levels keeps the complete sentence as text.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from climassay.models.contract import Completion, GenerationRequest, Generator, Sampling, object_schema
from climassay.prompts import Prompt, load_prompt
from climassay.reporting import counted

_MAX_CHARACTERS, _MAX_PARTS = 1_500, 20
_SCHEMA = object_schema(
    {"parts": {"type": "array", "maxItems": _MAX_PARTS, "items": {"type": "string", "maxLength": _MAX_CHARACTERS}}}
)
_NEGATION = re.compile(r"(?:not|no|never|nor|neither|without|hardly|\w+n[’']t)", re.IGNORECASE)
_AROUND_WORD = "()[]{},;:.!?*_\"'“”‘’"


class SentenceDivider:
    """Language model that divides sentences with several confidence levels into the parts that each level qualifies.

    Args:
        model: Model that answers under a JSON schema; use a recorded one to store its answers.
        prompt: Template with ``sentence`` and ``levels``; the built-in ``divide`` by default.
    """

    def __init__(self, model: Generator, prompt: Prompt | None = None) -> None:
        self.name = model.name
        self.sentences = 0
        """Number of requests."""
        self.misquoted = 0
        """Number of sentences left undivided because a part is not made of the sentence's words in their order."""
        self.unreadable = 0
        """Number of sentences left undivided because the answer is missing or has the wrong number of parts."""
        self.error = ""
        """Error message of the latest unreadable answer."""
        self._model = model
        self._prompt = prompt or load_prompt("divide")

    @property
    def summary(self) -> str:
        """Text that states the number of divided sentences, and of undivided sentences by reason."""
        n_divided = self.sentences - self.misquoted - self.unreadable
        text = f"{self.name} divided {n_divided:,} of {counted(self.sentences, 'sentence')} with several levels."
        if self.misquoted:
            text += f" {self.misquoted:,} are undivided: its parts are not words of the sentence."
        if self.unreadable:
            text += f" {self.unreadable:,} are undivided: no usable answer ({self.error})."
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON-serialisable values."""
        counts = {"sentences": self.sentences, "misquoted": self.misquoted, "unreadable": self.unreadable}
        return {"model": self.name, **counts}

    def divide(self, sentences: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, ...] | None]:
        """Ask the model which words of a sentence each of its levels qualifies.

        Args:
            sentences: Pairs of a sentence and its levels in order, in the sentence's words ("high confidence").

        Returns:
            Parts of each sentence in the order of its levels, or None if it remains undivided.
        """
        requests = []
        for sentence, levels in sentences:
            rendered_prompt = self._prompt.render(sentence=sentence, levels=list(levels))
            prefix = rendered_prompt.assistant_prefix
            requests.append(
                GenerationRequest(rendered_prompt.messages, Sampling(max_tokens=None), _SCHEMA, assistant_prefix=prefix)
            )
        answers = self._model.generate(requests) if requests else []
        self.sentences += len(requests)
        return [
            self._check_parts(answer, sentence, len(levels))
            for answer, (sentence, levels) in zip(answers, sentences, strict=True)
        ]

    def _check_parts(self, answer: Completion, sentence: str, n_levels: int) -> tuple[str, ...] | None:
        parts = _parse_parts(answer)
        if parts is None or len(parts) != n_levels:
            self.unreadable += 1
            mismatch = "" if parts is None else f"{counted(len(parts), 'part')} for {n_levels} levels"
            self.error = answer.error or mismatch or "the reply is not a list of parts"
            return None
        if not all(are_words_of(part, sentence) for part in parts):
            self.misquoted += 1
            return None
        return parts


def are_words_of(part: str, sentence: str) -> bool:
    """Return whether a part consists of words of a sentence in their order, without omitting a negation.

    Case and punctuation around words are ignored; numbers and signs are not.

    Example:
        >>> are_words_of("Seas fall in the north", "Seas rise (high confidence), but fall in the north.")
        True
        >>> are_words_of("Seas fall", "Seas do not fall (high confidence).")
        False
    """
    words, tokens = (
        [token.strip(_AROUND_WORD).lower() or token for token in text.split()] for text in (part, sentence)
    )
    position = 0
    for index, word in enumerate(words):
        if word not in tokens[position:]:
            return False
        index_in_tokens = tokens.index(word, position)
        # Of what comes before the first word, only a negation directly before it belongs to it.
        omitted_tokens = (
            tokens[position:index_in_tokens] if index else tokens[max(index_in_tokens - 1, 0) : index_in_tokens]
        )
        if any(_NEGATION.fullmatch(token) for token in omitted_tokens):
            return False
        position = index_in_tokens + 1
    return bool(words)


def _parse_parts(answer: Completion) -> tuple[str, ...] | None:
    if answer.error is not None:
        return None
    try:
        parts = json.loads(answer.text)["parts"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return tuple(parts) if isinstance(parts, list) and all(isinstance(part, str) for part in parts) else None
