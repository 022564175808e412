"""What is sent to a chat-completions server."""

from collections.abc import Sequence
from typing import Any

from climassay.models.contract import Message, Sampling

DEFAULT_MAX_TOKENS = 256


def effective_messages(messages: Sequence[Message], assistant_prefix: str, addition: str = "") -> list[dict[str, str]]:
    """The messages as they are sent.

    Args:
        messages: The chat.
        assistant_prefix: Start of the answer, which becomes an instruction.
        addition: A further instruction.

    Returns:
        The chat with the instructions at the end of its last user message, or as one where the last is not the user's.
    """
    sent = [{"role": message.role, "content": message.content} for message in messages]
    instructions = [addition] if addition else []
    if assistant_prefix:
        start = f'Your answer already begins with "{assistant_prefix.strip()}"; write only what follows it.'
        instructions.append(start)
    if not instructions:
        return sent
    if sent and sent[-1]["role"] == "user":
        sent[-1]["content"] = "\n\n".join([sent[-1]["content"], *instructions])
    else:
        sent.append({"role": "user", "content": "\n\n".join(instructions)})
    return sent


def sampling_parameters(sampling: Sampling, has_schema: bool) -> dict[str, Any]:
    """The parameters that decide how tokens are drawn; what equals every server's default is left out.

    Without a token limit of the caller, a schema's own bounds are the limit.
    """
    parameters: dict[str, Any] = {"temperature": sampling.temperature, "seed": sampling.seed}
    if sampling.max_tokens is not None or not has_schema:
        parameters["max_tokens"] = sampling.max_tokens or DEFAULT_MAX_TOKENS
    if sampling.top_p != 1.0:
        parameters["top_p"] = sampling.top_p
    if sampling.stop:
        parameters["stop"] = list(sampling.stop)
    return parameters


def without_prefix(text: str, assistant_prefix: str) -> str:
    """The answer without the prefix, should the model have repeated it."""
    prefix = assistant_prefix.strip()
    start = text.lstrip()
    return start[len(prefix) :].lstrip(" ") if prefix and start.startswith(prefix) else text
