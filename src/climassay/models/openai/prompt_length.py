"""Telling from the number of tokens that a server reports whether it has read the whole of a prompt.

Servers with a small default window (Ollama: 2,048 or 4,096 tokens, whatever the model can read) leave out what does not
fit and answer the rest under status 200.
"""

import re
from collections.abc import Mapping, Sequence

from climassay.models.openai.replies import Reply

MIN_COUNTED = 2000
"""Estimated tokens below which nothing is concluded: the smallest default window of a server has 2,048 tokens."""
MAX_SHARE_READ = 0.75
"""Share of the estimate below which a prompt was shortened. The estimate is itself low: English text has 1.2 to 1.5
tokens a word, and vocabularies with tokens of several words 0.9."""
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts that write no spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_UNSPACED_PER_TOKEN = 4
_ALPHANUMERIC = re.compile(r"[^\W_]")


def least_tokens(text: str) -> int:
    """Estimate how many tokens a text has at least, in whatever vocabulary.

    Every word between white space that has a letter or a digit is one token, however long; letters of scripts without
    spaces are a quarter of a token each.
    """
    words = sum(_ALPHANUMERIC.search(word) is not None for word in text.split())
    return words + len(_UNSPACED.findall(text)) // _UNSPACED_PER_TOKEN


def is_shortened(messages: Sequence[Mapping[str, str]], read_tokens: int) -> bool:
    """Check whether a server has read far fewer tokens than the messages can have.

    Args:
        messages: The chat as it was sent.
        read_tokens: Tokens of the prompt that the server reports, cached ones included; 0 if it reports none, which
            tells nothing.
    """
    if not read_tokens or sum(len(message["content"]) for message in messages) < MIN_COUNTED:
        return False
    least = sum(least_tokens(message["content"]) for message in messages)
    return least >= MIN_COUNTED and read_tokens < MAX_SHARE_READ * least


def shortened_error(messages: Sequence[Mapping[str, str]], reply: Reply) -> str:
    """Say that a server has shortened a prompt, by how much, and what to do."""
    characters = sum(len(message["content"]) for message in messages)
    return (
        f"The server read only {reply.read_tokens:,} tokens of a prompt of {characters:,} characters: it shortens "
        "prompts without an error. Raise its context window (for Ollama OLLAMA_CONTEXT_LENGTH), or give the model "
        "fewer or shorter passages."
    )
