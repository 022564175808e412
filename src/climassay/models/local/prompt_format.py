"""Prompts of local models as text and tokens, and other properties that are known without loading weights."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import ModelError
from climassay.models.contract import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PLAIN_STOPS = ("\nuser:\n", "\nsystem:\n", "\nassistant:\n")
"""Texts that end the answer of a model without chat template. Such a model may go on to write the next turn."""
_ROLE_LINE = r"(?<![^\n])(?:system|user|assistant):(?![^\n])"
"""Line that begins a turn in the plain format."""
_MARKUP = r"<+[^<>\s]+>+|\[/?[A-Z_]+\]"
"""Pattern of the markers of chat templates, for example ``<|im_start|>``, ``</s>``, ``<<SYS>>`` and ``[INST]``."""


class PromptFormat:
    """Tokenizer with its chat template, or with a plain format if it has none.

    The plain format writes each turn below its role, so that an answer begins on a new line and needs no leading
    space::

        user:
        Is it warming?

        assistant:

    Control tokens such as ``<|im_end|>`` in a claim, a passage or an earlier answer would end the turn. Therefore a
    space is inserted after their first character, ``< |im_end|>``, and they are tokenised as text. The space is
    inserted before the template is applied, so that the recorded prompt equals the model's input. Unlike an invisible
    character, a space is not ignored by any tokenizer.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self.tokenizer = tokenizer
        self.has_template = bool(tokenizer.chat_template)

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts that end an answer, in addition to the model's end token."""
        return () if self.has_template else PLAIN_STOPS

    @property
    def opening_token(self) -> int | None:
        """Token before a text without context: bos or, if there is no bos, eos; None if there is neither."""
        tokens = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        return next((int(token) for token in tokens if token is not None), None)

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """Return the prompt as text.

        Raises:
            ModelError: The model's chat template does not accept these messages.
        """
        chat = [
            {"role": message.role, "content": self._break_up_control_tokens(message.content)} for message in messages
        ]
        prefix = self._break_up_control_tokens(assistant_prefix)
        if not self.has_template:
            turns = "".join(f"{turn['role']}:\n{turn['content']}\n\n" for turn in chat)
            return f"{turns}assistant:\n{prefix}"
        return self._apply_template(chat) + prefix

    def encode(self, text: str) -> list[int]:
        """Tokenise a rendered prompt; templates have already written special tokens as text."""
        return list(self.tokenizer.encode(text, add_special_tokens=not self.has_template))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise many rendered prompts."""
        encoding = self.tokenizer(
            list(texts), add_special_tokens=not self.has_template, return_attention_mask=False, verbose=False
        )
        return [list(tokens) for tokens in encoding["input_ids"]]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of generated tokens, without special tokens."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _break_up_control_tokens(self, text: str) -> str:
        """Insert a space into each control token in a text, including those that the insertion creates."""
        if self._control_pattern is None:
            return text
        result, n_inserted = self._control_pattern.subn(_insert_space, text)
        while n_inserted:  # an insertion may create another control token
            result, n_inserted = self._control_pattern.subn(_insert_space, result)
        return result

    @cached_property
    def _control_pattern(self) -> re.Pattern[str] | None:
        """Pattern of texts that messages must not contain: control tokens and markers between turns.

        Added tokens that are neither special nor look like markers, such as several spaces, are allowed. Markers of
        templates that are not single tokens (``[INST]``) are extracted from a rendered chat.
        """
        turns = [{"role": role, "content": "x"} for role in ("system", "user", "assistant", "user")]
        try:
            chat_text = self._apply_template(turns) if self.has_template else ""
        except ModelError:
            chat_text = ""
        added_tokens = self.tokenizer.added_tokens_decoder.values()
        markers = {token.content for token in added_tokens if token.special or re.fullmatch(_MARKUP, token.content)}
        markers |= set(self.tokenizer.all_special_tokens) | set(re.findall(_MARKUP, chat_text))
        # Longest first, as the tokenizer prefers the longer of two markers with the same beginning.
        patterns = [
            re.escape(marker)
            for marker in sorted(markers, key=lambda marker: (-len(marker), marker))
            if not marker.isspace()
        ]
        if not self.has_template:
            patterns.append(_ROLE_LINE)
        return re.compile("|".join(patterns)) if patterns else None

    def _apply_template(self, chat: list[dict[str, str]]) -> str:
        """Apply the template; if it has no system role, prepend the system message to the first user message."""
        try:
            return self._render_template(chat)
        except ModelError:
            roles = [turn["role"] for turn in chat[:2]]
            if roles != ["system", "user"]:
                raise
            merged_turn = {"role": "user", "content": f"{chat[0]['content']}\n\n{chat[1]['content']}"}
            return self._render_template([merged_turn, *chat[2:]])

    def _render_template(self, chat: list[dict[str, str]]) -> str:
        from jinja2.exceptions import TemplateError

        # Reasoning is disabled, so that the answer or option follows the prompt immediately.
        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        try:
            return str(self.tokenizer.apply_chat_template(chat, **options))
        except TemplateError as error:
            raise ModelError(f"The model's chat template does not accept these messages: {error}.") from error


def _insert_space(match: re.Match[str]) -> str:
    """Insert a space into a marker; a marker of a single character is replaced by a space."""
    marker = match[0]
    if len(marker) == 1:
        return " "
    return f"{marker[:-1]} :" if marker.endswith(":") else f"{marker[0]} {marker[1:]}"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Properties of a local model that are known without loading its weights."""

    fingerprint: str
    prompts: PromptFormat
    """Tokenizer and chat template, for rendering prompts and counting tokens."""
    window: int
    layers: int
    dtype: str
    device: str
    token_budget: int
    parameters: int
    licence: str | None
    folder: Path


class DescribedModel:
    """Operations of a local model that need no weights."""

    def __init__(self, name: str, info: ModelInfo) -> None:
        self.name, self.info, self.fingerprint = name, info, info.fingerprint
        self.window, self.layers, self.parameters = info.window, info.layers, info.parameters
        self.dtype, self.device, self.token_budget = info.dtype, info.device, info.token_budget
        self.licence, self.folder = info.licence, info.folder
        self.prompts = info.prompts

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """Return the prompt as the model receives it.

        Raises:
            ModelError: The model's chat template does not accept these messages.
        """
        return self.prompts.render(messages, assistant_prefix)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without the chat template."""
        return [len(tokens) for tokens in self.prompts.encode_all(texts)]
