"""From messages to the text and the tokens that a local model receives."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from climassay.errors import ModelError
from climassay.models.contract import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PLAIN_STOPS = ("\nuser:\n", "\nsystem:\n", "\nassistant:\n")
"""Where the answer of a model without chat template ends, should it go on to write the next turn."""
_ROLE_LINE = r"(?<![^\n])(?:system|user|assistant):(?![^\n])"
"""A line that opens a turn in the plain format."""
_MARKUP = r"<+[^<>\s]+>+|\[/?[A-Z_]+\]"
"""How the marks of chat templates look, for example ``<|im_start|>``, ``</s>``, ``<<SYS>>`` and ``[INST]``."""


class PromptFormat:
    """A tokenizer with its chat template, or with a plain format where it has none.

    The plain format puts each turn under its role, so that an answer begins on a line of its own and no tokenizer
    needs a leading space::

        user:
        Is it warming?

        assistant:

    Words of a message, and of the start of an answer, are only words: a control token that is spelled out in them
    (``<|im_end|>`` in a claim, a passage, or what a model wrote before) would otherwise end the turn and open another
    one. It gets a space behind its first character, ``< |im_end|>``, and is read as the characters that it consists of.
    This is done to the text, before the template, so that the rendered prompt is what the model receives and what the
    records know; a space cannot be removed again by a tokenizer that ignores invisible characters.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self.tokenizer = tokenizer
        self.has_template = bool(tokenizer.chat_template)

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts at which an answer ends beside the model's end token."""
        return () if self.has_template else PLAIN_STOPS

    @property
    def opening_token(self) -> int | None:
        """What a text without anything before it is conditioned on; None where the tokenizer has no such token."""
        tokens = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        return next((int(token) for token in tokens if token is not None), None)

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as text.

        Raises:
            ModelError: The model's chat template does not accept these messages.
        """
        chat = [{"role": message.role, "content": self._as_words(message.content)} for message in messages]
        begun = self._as_words(assistant_prefix)
        if not self.has_template:
            turns = "".join(f"{turn['role']}:\n{turn['content']}\n\n" for turn in chat)
            return f"{turns}assistant:\n{begun}"
        return self._apply_template(chat) + begun

    def encode(self, text: str) -> list[int]:
        """Token ids of a rendered prompt; a template has written its special tokens as text already."""
        return list(self.tokenizer.encode(text, add_special_tokens=not self.has_template))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of many rendered prompts."""
        encoded = self.tokenizer(list(texts), add_special_tokens=not self.has_template, return_attention_mask=False)
        return [list(tokens) for tokens in encoded["input_ids"]]

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of generated tokens, without special tokens."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _as_words(self, text: str) -> str:
        """Break up every control token in a text."""
        if self._control is None:
            return text
        broken, count = self._control.subn(_broken, text)
        while count:  # what is left of one may, with the space, be another
            broken, count = self._control.subn(_broken, broken)
        return broken

    @cached_property
    def _control(self) -> re.Pattern[str] | None:
        """Finds what must not be spelled out in a message: control tokens, and the marks between turns.

        Added tokens that are neither special nor look like marks, such as runs of spaces or words of a field, are left
        alone. Templates may have marks that are not tokens of their own (``[INST]``): they are read off a rendered
        chat.
        """
        turns = [{"role": role, "content": "x"} for role in ("system", "user", "assistant", "user")]
        try:
            specimen = self._apply_template(turns) if self.has_template else ""
        except ModelError:
            specimen = ""
        added = self.tokenizer.added_tokens_decoder.values()
        marks = {token.content for token in added if token.special or re.fullmatch(_MARKUP, token.content)}
        marks |= set(self.tokenizer.all_special_tokens) | set(re.findall(_MARKUP, specimen))
        # The longest first: of two that begin alike the tokenizer takes the longer one, too.
        patterns = [
            re.escape(mark) for mark in sorted(marks, key=lambda mark: (-len(mark), mark)) if not mark.isspace()
        ]
        if not self.has_template:
            patterns.append(_ROLE_LINE)
        return re.compile("|".join(patterns)) if patterns else None

    def _apply_template(self, chat: list[dict[str, str]]) -> str:
        """Some templates know no system role: then the system message goes in front of the first user message."""
        try:
            return self._template_text(chat)
        except ModelError:
            roles = [turn["role"] for turn in chat[:2]]
            if roles != ["system", "user"]:
                raise
            merged = {"role": "user", "content": f"{chat[0]['content']}\n\n{chat[1]['content']}"}
            return self._template_text([merged, *chat[2:]])

    def _template_text(self, chat: list[dict[str, str]]) -> str:
        from jinja2.exceptions import TemplateError

        # Models that think aloud by default are asked not to: an answer, or an option to weigh, comes at once.
        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        try:
            return str(self.tokenizer.apply_chat_template(chat, **options))
        except TemplateError as error:
            raise ModelError(f"The model's chat template does not accept these messages: {error}.") from error


def _broken(match: re.Match[str]) -> str:
    """A mark with a space in it; nothing but a space where it has only one character."""
    mark = match[0]
    if len(mark) == 1:
        return " "
    return f"{mark[:-1]} :" if mark.endswith(":") else f"{mark[0]} {mark[1:]}"
