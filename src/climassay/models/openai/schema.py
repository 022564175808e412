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
    named_schema = {
        "name": "answer",
        "strict": True,
        "schema": strict_schema(_wrap_in_object(schema), limits_items=limits_items),
    }
    return {"type": "json_schema", "json_schema": named_schema}


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
    result: dict[str, Any] = {}

    def translate_part(part: Mapping[str, Any]) -> dict[str, Any]:
        return strict_schema(part, limits_items=limits_items)

    json_type = schema.get("type") or implied_type(schema, values)
    if json_type is not None:
        result["type"] = json_type
    if values is not None:
        result["enum"] = list(values)
    bounds = ", ".join(
        (
            *_describe_range(schema, "minLength", "maxLength", "character"),
            *_describe_range(schema, "minItems", "maxItems", "item"),
            *_describe_range(schema, "minimum", "maximum", ""),
        )
    )
    descriptions = [schema.get("description", ""), bounds and f"{bounds[0].upper()}{bounds[1:]}."]
    if any(descriptions):
        result["description"] = " ".join(word for word in descriptions if word)
    if "$ref" in schema:
        result["$ref"] = schema["$ref"]
    for name in ("anyOf", "oneOf"):
        if name in schema:
            result["anyOf"] = [translate_part(alternative) for alternative in schema[name]]
    for name in ("$defs", "definitions"):
        if name in schema:
            result[name] = {key: translate_part(part) for key, part in schema[name].items()}
    if "items" in schema:
        result["items"] = translate_part(schema["items"])
        if limits_items and "maxItems" in schema:
            result["maxItems"] = schema["maxItems"]
    if json_type == "object":
        properties = schema.get("properties", {})
        result["properties"] = {name: translate_part(part) for name, part in properties.items()}
        result |= {"required": list(properties), "additionalProperties": False}
    return result


def schema_instruction(schema: Mapping[str, Any], problem: str | None) -> str:
    """Return instructions for the prompt to answer under a schema; ``problem`` is the fault of the previous answer.

    Unlike for strict servers, bounds are not moved into descriptions: small models copy these into their answers.
    """
    schema_text = json.dumps(_wrap_in_object(schema), ensure_ascii=False)
    text = (
        "Answer with one JSON object and nothing else: no words before or after it and no code block. "
        f"It must satisfy this JSON schema: {schema_text}"
    )
    return text if problem is None else f"{text}\n\nYour last answer could not be used: {problem} Answer again."


def _wrap_in_object(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if (schema.get("type") or implied_type(schema, None)) == "object":
        return schema
    return {"type": "object", "properties": {ROOT: schema}, "required": [ROOT]}


def _describe_range(schema: Mapping[str, Any], min_keyword: str, max_keyword: str, unit: str) -> Iterator[str]:
    minimum, maximum = schema.get(min_keyword), schema.get(max_keyword)
    if unit and minimum in (0, 1) and maximum is None:
        minimum = None
    if minimum is not None and minimum == maximum:
        yield f"exactly {minimum}{_plural_unit(minimum, unit)}"
        return
    if minimum is not None and not (unit and minimum <= 1):
        yield f"at least {minimum}{_plural_unit(minimum, unit)}"
    if maximum is not None:
        yield f"at most {maximum}{_plural_unit(maximum, unit)}"


def _plural_unit(count: float, unit: str) -> str:
    return f" {unit}{'' if count == 1 else 's'}" if unit else ""
