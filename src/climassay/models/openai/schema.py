"""Answers that must satisfy a JSON schema: what is asked of the server; ``json_answers`` checks what comes back.

A schema of this project serves two masters. A local model decodes under it as it is, bounds included. A server gets
the subset that every provider's strict mode takes: each node typed, each object closed with all its properties
required, no bounds. A bound is said in words instead, and an answer that exceeds it is kept: a long text is worth more
than none.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from climassay.models.json_answers import ROOT, implied_type


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The ``response_format`` parameter that makes a server decode under the schema.

    Strict servers take objects only, so a schema of anything else becomes that of an object with one field.
    """
    sent = {"name": "answer", "strict": True, "schema": strict_schema(_rooted(schema))}
    return {"type": "json_schema", "json_schema": sent}


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as every server with structured output takes it.

    Args:
        schema: Objects, arrays, texts, numbers, truth values, enumerations, ``anyOf``, ``$ref`` and ``$defs``; other
            keywords are left out of what is sent, and the check of the answer sees to them.

    Returns:
        The same with a type at every node (that of an enumeration comes from its values), every object closed and all
        of its properties required, and bounds as words in the descriptions.

    Example:
        ``{"enum": ["yes", "no"]}`` becomes ``{"type": "string", "enum": ["yes", "no"]}``.
    """
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    sent: dict[str, Any] = {}
    kind = schema.get("type") or implied_type(schema, values)
    if kind is not None:
        sent["type"] = kind
    if values is not None:
        sent["enum"] = list(values)
    bounds = ", ".join(
        (
            *_range(schema, "minLength", "maxLength", "character"),
            *_range(schema, "minItems", "maxItems", "item"),
            *_range(schema, "minimum", "maximum", ""),
        )
    )
    words = [schema.get("description", ""), bounds and f"{bounds[0].upper()}{bounds[1:]}."]
    if any(words):
        sent["description"] = " ".join(word for word in words if word)
    if "$ref" in schema:
        sent["$ref"] = schema["$ref"]
    for name in ("anyOf", "oneOf"):
        if name in schema:
            sent["anyOf"] = [strict_schema(way) for way in schema[name]]
    for name in ("$defs", "definitions"):
        if name in schema:
            sent[name] = {key: strict_schema(part) for key, part in schema[name].items()}
    if "items" in schema:
        sent["items"] = strict_schema(schema["items"])
    if kind == "object":
        properties = schema.get("properties", {})
        sent["properties"] = {name: strict_schema(part) for name, part in properties.items()}
        sent |= {"required": list(properties), "additionalProperties": False}
    return sent


def schema_instruction(schema: Mapping[str, Any], problem: str | None) -> str:
    """Addition to a prompt where a server does not decode under a schema, with the problem of its last answer."""
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
    least, most = schema.get(low), schema.get(high)
    if unit and least in (0, 1) and most is None:
        least = None
    if least is not None and least == most:
        yield f"exactly {least}{_units(least, unit)}"
        return
    if least is not None and not (unit and least <= 1):
        yield f"at least {least}{_units(least, unit)}"
    if most is not None:
        yield f"at most {most}{_units(most, unit)}"


def _units(count: float, unit: str) -> str:
    return f" {unit}{'' if count == 1 else 's'}" if unit else ""
