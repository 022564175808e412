"""Answers that must satisfy a JSON schema: what is asked of the server, and the check of what came back.

A schema of this project serves two masters. A local model decodes under it as it is, bounds included. A server gets
the subset that every provider's strict mode takes: each node typed, each object closed with all its properties
required, no bounds. A bound is said in words instead, and an answer that exceeds it is kept: a long text is worth more
than none.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

_UPPER_BOUNDS = ("maxLength", "maxItems", "maximum", "exclusiveMaximum", "maxProperties")
"""What an answer may exceed and is kept all the same."""
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (type(None), "null"),
    (list, "array"),
    (dict, "object"),
)
"""Python's types by their names in JSON schemas; a truth value is a number in Python, so it comes first."""
_PROBLEMS = 5
"""Faults of one answer that are named; the others show once these are gone."""
_ROOT = "answer"
"""Field of the object that is made of a schema of something else."""
_BRACKETS = 64
"""Places in an answer at which its JSON is looked for."""
_DECODER = json.JSONDecoder()


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
    kind = schema.get("type") or _implied_type(schema, values)
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


def satisfying_json(text: str, schema: Mapping[str, Any]) -> str:
    """The JSON of an answer, without what a model may write around it.

    Args:
        text: The answer; its JSON may appear in a code block or between sentences.
        schema: What it must satisfy. Texts, lists and numbers may exceed their upper bounds, and objects may have
            further fields.

    Returns:
        The JSON as the model wrote it, without the object around it that strict servers need (:func:`response_format`).

    Raises:
        NoJsonError: There is no complete JSON; the message is one sentence.
        ValueError: The JSON does not satisfy the schema; the message names every field and what is wrong with it.
    """
    import jsonschema

    kind = schema.get("type") or _implied_type(schema, None)
    candidate, value = _outermost_json(text, kind)
    if kind != "object" and isinstance(value, dict) and value.keys() == {_ROOT}:
        value = value[_ROOT]
        candidate = json.dumps(value, ensure_ascii=False)
    checked = _without_upper_bounds(schema)
    validator = jsonschema.validators.validator_for(checked)(checked)
    problems = list(dict.fromkeys(_in_words(error) for error in validator.iter_errors(value)))
    if problems:
        raise ValueError(" ".join(problems[:_PROBLEMS]))
    return candidate


class NoJsonError(ValueError):
    """An answer without JSON, as prose is or an answer that was cut off."""


def _rooted(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if (schema.get("type") or _implied_type(schema, None)) == "object":
        return schema
    return {"type": "object", "properties": {_ROOT: schema}, "required": [_ROOT]}


def _implied_type(schema: Mapping[str, Any], values: Sequence[Any] | None) -> Any:
    """The type of a node that does not say it: that of its values, or of what it says about its parts."""
    if values is not None:
        kinds = dict.fromkeys(next(name for kind, name in _TYPES if isinstance(value, kind)) for value in values)
        return next(iter(kinds)) if len(kinds) == 1 else list(kinds)
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    return None if schema.keys() & {"$ref", "anyOf", "oneOf"} else "string"


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


def _without_upper_bounds(schema: Any) -> Any:
    """The schema with its structure only, for the check of an answer."""
    if isinstance(schema, Mapping):
        named = {"properties", "$defs", "definitions"}
        return {
            name: {key: _without_upper_bounds(each) for key, each in part.items()}
            if name in named
            else part
            if name in ("enum", "const")
            else _without_upper_bounds(part)
            for name, part in schema.items()
            if name not in _UPPER_BOUNDS and not (name == "additionalProperties" and part is False)
        }
    if isinstance(schema, list | tuple):
        return [_without_upper_bounds(part) for part in schema]
    return schema


def _in_words(error: Any) -> str:
    """One fault of an answer, with the field's name."""
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
    field = f'The field "{place}"' if place else "The answer"
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        names = ", ".join(f'"{name}"' for name in missing)
        return f"{field} lacks {names}." if place else f"The answer lacks the field {names}."
    if error.validator == "enum":
        options = ", ".join(json.dumps(option, ensure_ascii=False) for option in error.validator_value)
        return f"{field} is {_shown(error.instance)}, but must be one of {options}."
    if error.validator == "type":
        kind = error.validator_value
        wanted = kind if isinstance(kind, str) else " or ".join(kind)
        return f"{field} is {_shown(error.instance)}, but must be of the type {wanted}."
    if error.validator == "minLength":
        return f"{field} is too short: at least {error.validator_value} characters are needed."
    if error.validator == "minItems":
        return f"{field} has {len(error.instance)} items, but needs at least {error.validator_value}."
    return f"{field} does not satisfy {error.validator}: {_shown(error.validator_value)}."


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _outermost_json(text: str, kind: Any) -> tuple[str, Any]:
    """The first complete JSON value of that type inside of a text, as it appears there and as it is read.

    Raises:
        NoJsonError: There is none.
    """
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
    wanted, brackets = (dict, r"\{") if kind == "object" else ((dict, list), r"[\[{]")
    for bracket in islice(re.finditer(brackets, text), _BRACKETS):
        with suppress(ValueError, RecursionError):
            value, end = _DECODER.raw_decode(text, bracket.start())
            if isinstance(value, wanted):
                return text[bracket.start() : end], value
    raise NoJsonError("It is not complete JSON.")
