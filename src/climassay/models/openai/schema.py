"""JSON schemas as sent to servers; ``json_answers`` validates the replies.

Local models decode under a schema as it is, including bounds. Servers get the subset that every provider's strict mode
accepts: types at all nodes, closed objects with all properties required, no bounds. Bounds are described in words, and
an answer that exceeds them is accepted.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from climassay.models.json_answers import ROOT, implied_type


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``response_format`` parameter for decoding under a schema.

    Strict servers accept only objects, so other schemas are wrapped in an object with one field.
    """
    sent = {"name": "answer", "strict": True, "schema": strict_schema(_rooted(schema))}
    return {"type": "json_schema", "json_schema": sent}


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema in the subset that all servers with structured output accept.

    Args:
        schema: Objects, arrays, strings, numbers, booleans, enumerations, ``anyOf``, ``$ref`` and ``$defs``; other
            keywords are only validated in the answer.

    Returns:
        Schema with a type at every node (for enumerations, that of the values), closed objects with all properties
        required, and bounds as words in descriptions.

    Example:
        ``{"enum": ["yes", "no"]}`` becomes ``{"type": "string", "enum": ["yes", "no"]}``.
    """
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    strict: dict[str, Any] = {}
    kind = schema.get("type") or implied_type(schema, values)
    if kind is not None:
        strict["type"] = kind
    if values is not None:
        strict["enum"] = list(values)
    bounds = ", ".join(
        (
            *_range(schema, "minLength", "maxLength", "character"),
            *_range(schema, "minItems", "maxItems", "item"),
            *_range(schema, "minimum", "maximum", ""),
        )
    )
    descriptions = [schema.get("description", ""), bounds and f"{bounds[0].upper()}{bounds[1:]}."]
    if any(descriptions):
        strict["description"] = " ".join(word for word in descriptions if word)
    if "$ref" in schema:
        strict["$ref"] = schema["$ref"]
    for name in ("anyOf", "oneOf"):
        if name in schema:
            strict["anyOf"] = [strict_schema(alternative) for alternative in schema[name]]
    for name in ("$defs", "definitions"):
        if name in schema:
            strict[name] = {key: strict_schema(part) for key, part in schema[name].items()}
    if "items" in schema:
        strict["items"] = strict_schema(schema["items"])
    if kind == "object":
        properties = schema.get("properties", {})
        strict["properties"] = {name: strict_schema(part) for name, part in properties.items()}
        strict |= {"required": list(properties), "additionalProperties": False}
    return strict


def schema_instruction(schema: Mapping[str, Any], problem: str | None) -> str:
    """Return instructions with a schema for the prompt, including the fault of the last answer."""
    shape = json.dumps(strict_schema(_rooted(schema)), ensure_ascii=False)
    text = (
        "Answer with one JSON object and nothing else: no words before or after it and no code block. "
        f"It must satisfy this JSON schema: {shape}"
    )
    return text if problem is None else f"{text}\n\nYour last answer could not be used: {problem} Answer again."


def _rooted(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if (schema.get("type") or implied_type(schema, None)) == "object":
        return schema
    return {"type": "object", "properties": {ROOT: schema}, "required": [ROOT]}


def _range(schema: Mapping[str, Any], low: str, high: str, unit: str) -> Iterator[str]:
    minimum, maximum = schema.get(low), schema.get(high)
    if unit and minimum in (0, 1) and maximum is None:
        minimum = None
    if minimum is not None and minimum == maximum:
        yield f"exactly {minimum}{_units(minimum, unit)}"
        return
    if minimum is not None and not (unit and minimum <= 1):
        yield f"at least {minimum}{_units(minimum, unit)}"
    if maximum is not None:
        yield f"at most {maximum}{_units(maximum, unit)}"


def _units(count: float, unit: str) -> str:
    return f" {unit}{'' if count == 1 else 's'}" if unit else ""
