"""Answers that must satisfy a JSON schema: what is asked of the server, and the check of what came back."""

import json
import re
from collections.abc import Mapping
from typing import Any


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The ``response_format`` parameter that makes a server decode under the schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}


def schema_instruction(schema: Mapping[str, Any], problem: str | None) -> str:
    """What is added to the prompt where a server cannot decode under a schema.

    Args:
        schema: The schema.
        problem: What was wrong with the last answer, if there was one.
    """
    text = f"Answer with one JSON object and nothing else. It must satisfy this JSON schema: {json.dumps(schema)}"
    return text if problem is None else f"{text}\n\nYour last answer could not be used: {problem} Answer again."


def satisfying_json(text: str, schema: Mapping[str, Any]) -> str:
    """The JSON of an answer, without what a model may write around it.

    Args:
        text: The answer; its JSON may stand in a code block or between sentences.
        schema: What it must satisfy.

    Returns:
        The JSON as the model wrote it.

    Raises:
        ValueError: There is no JSON that satisfies the schema; the message is one sentence.
    """
    candidate = _outermost_json(text)
    try:
        value = json.loads(candidate)
    except (ValueError, RecursionError):
        raise ValueError("It is not complete JSON.") from None
    import jsonschema

    validator = jsonschema.validators.validator_for(schema)(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    if error is not None:
        raise ValueError(f"At {error.json_path} {' '.join(error.message.split())[:200]}.")
    return candidate


def _outermost_json(text: str) -> str:
    """The JSON inside of a text: all of it, a code block, or from the first bracket to the last."""
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL).strip()
    block = re.search(r"```(?:json)?\s*\n(.*?)```", text, re.DOTALL)
    if block:
        return block[1].strip()
    if text[:1] in "{[":
        return text
    start = min((text.find(bracket) for bracket in "{[" if bracket in text), default=-1)
    end = max(text.rfind("}"), text.rfind("]"))
    return text[start : end + 1] if 0 <= start < end else text
