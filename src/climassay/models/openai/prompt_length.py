"""Detect truncated prompts by the number of prompt tokens that a server reports.

Servers with a small default window (Ollama: 2,048 or 4,096 tokens, whatever the model supports) truncate prompts and
answer with status 200.
"""

import re
from collections.abc import Mapping, Sequence

from climassay.models.openai.replies import Reply

MIN_ESTIMATED_TOKENS = 2000
"""Minimum estimated number of tokens of a prompt to be checked; the smallest default window of a server is 2,048
tokens."""
MAX_REPORTED_SHARE = 0.75
"""A prompt counts as truncated if the ratio of reported to estimated tokens is at most this value. The estimate is low:
English text has 1.2 to 1.5 tokens per word, or 0.9 for vocabularies with multi-word tokens."""
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Pattern of letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_UNSPACED_PER_TOKEN = 4
_ALPHANUMERIC = re.compile(r"[^\W_]")


def estimate_min_tokens(text: str) -> int:
    """Estimate the minimum number of tokens of a text in any vocabulary.

    Every word with a letter or digit counts as one token; letters of scripts without spaces as a quarter each.
    """
    words = sum(_ALPHANUMERIC.search(word) is not None for word in text.split())
    return words + len(_UNSPACED.findall(text)) // _UNSPACED_PER_TOKEN


def is_prompt_truncated(messages: Sequence[Mapping[str, str]], prompt_tokens: int) -> bool:
    """Return whether a server has read far fewer tokens than the messages must have.

    Args:
        messages: Messages as sent.
        prompt_tokens: Prompt tokens reported by the server, including cached ones; 0, which gives False, if unknown.
    """
    if not prompt_tokens or sum(len(message["content"]) for message in messages) < MIN_ESTIMATED_TOKENS:
        return False
    n_estimated = sum(estimate_min_tokens(message["content"]) for message in messages)
    return n_estimated >= MIN_ESTIMATED_TOKENS and prompt_tokens < MAX_REPORTED_SHARE * n_estimated


def truncation_error(messages: Sequence[Mapping[str, str]], reply: Reply) -> str:
    """Return the error message, with advice, for a prompt that the server has truncated."""
    n_characters = sum(len(message["content"]) for message in messages)
    return (
        f"The server read only {reply.n_prompt_tokens_read:,} tokens of a prompt of {n_characters:,} characters: it "
        "shortens prompts without an error. Raise its context window (for Ollama OLLAMA_CONTEXT_LENGTH), or give the "
        "model fewer or shorter passages."
    )
