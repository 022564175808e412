"""JSON schemas as sent to servers; ``json_answers`` validates the replies.

Local models decode under a schema as it is, including bounds. Servers get the subset that every provider's strict mode
accepts: types at all nodes, closed objects with all properties required, no bounds. Bounds are described in words, and
an answer that exceeds them is accepted. Only after an answer that repeats the items of a list without end does a server
get the maximum number of items too.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from climassay.models.json_answers import ROOT, implied_type


def response_format(schema: Mapping[str, Any], *, limits_items: bool = False) -> dict[str, Any]:
    """Return the ``response_format`` parameter for decoding under a schema.

    Strict servers accept only objects, so other schemas are wrapped in an object with one field.

    Args:
        schema: Schema of the answer.
        limits_items: Whether to keep ``maxItems``, which some servers refuse.
    """
    sent = {"name": "answer", "strict": True, "schema": strict_schema(_rooted(schema), limits_items=limits_items)}
    return {"type": "json_schema", "json_schema": sent}


def strict_schema(schema: Mapping[str, Any], *, limits_items: bool = False) -> dict[str, Any]:
    """Return a schema in the subset that all servers with structured output accept.

    Args:
        schema: Objects, arrays, strings, numbers, booleans, enumerations, ``anyOf``, ``$ref`` and ``$defs``; other
            keywords are only validated in the answer.
        limits_items: Whether to keep ``maxItems``.

    Returns:
        Schema with a type at every node (for enumerations, that of the values), closed objects with all properties
        required, and bounds as words in descriptions.

    Example:
        ``{"enum": ["yes", "no"]}`` becomes ``{"type": "string", "enum": ["yes", "no"]}``.
    """
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    strict: dict[str, Any] = {}

    def part_of(part: Mapping[str, Any]) -> dict[str, Any]:
        return strict_schema(part, limits_items=limits_items)

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
            strict["anyOf"] = [part_of(alternative) for alternative in schema[name]]
    for name in ("$defs", "definitions"):
        if name in schema:
            strict[name] = {key: part_of(part) for key, part in schema[name].items()}
    if "items" in schema:
        strict["items"] = part_of(schema["items"])
        if limits_items and "maxItems" in schema:
            strict["maxItems"] = schema["maxItems"]
    if kind == "object":
        properties = schema.get("properties", {})
        strict["properties"] = {name: part_of(part) for name, part in properties.items()}
        strict |= {"required": list(properties), "additionalProperties": False}
    return strict


def schema_instruction(schema: Mapping[str, Any], problem: str | None) -> str:
    """Return instructions for the prompt to answer under a schema; ``problem`` is the fault of the last answer."""
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
