"""From messages to the text and the tokens that a local model receives."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from climassay.errors import ModelError
from climassay.models.contract import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PLAIN_STOPS = ("\nuser:\n", "\nsystem:\n", "\nassistant:\n")
"""Where the answer of a model without chat template ends, should it go on to write the next turn."""


class PromptFormat:
    """A tokenizer with its chat template, or with a plain format where it has none.

    The plain format puts each turn under its role, so that an answer begins on a line of its own and no tokenizer
    needs a leading space::

        user:
        Is it warming?

        assistant:
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self.tokenizer = tokenizer
        self.has_template = bool(tokenizer.chat_template)

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts at which an answer ends beside the model's end token."""
        return () if self.has_template else PLAIN_STOPS

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as text.

        Raises:
            ModelError: The model's chat template does not accept these messages.
        """
        if not self.has_template:
            turns = "".join(f"{message.role}:\n{message.content}\n\n" for message in messages)
            return f"{turns}assistant:\n{assistant_prefix}"
        chat = [{"role": message.role, "content": message.content} for message in messages]
        return self._apply_template(chat) + assistant_prefix

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
