"""The OpenAPI document in the order and the words of a page."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from climassay.web.api.examples import Schema, address_of, curl_example, example_of, python_example, resolved

_METHODS = ("get", "post", "put", "patch", "delete")
_CODE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*")


@dataclass(frozen=True, slots=True)
class Words:
    """A stretch of text and how it stands."""

    text: str
    style: str
    """``code``, ``strong``, ``em``, or empty."""


Paragraph = tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of what is sent or answered."""

    name: str
    kind: str
    """In words: *text*, *whole number*, *list of …*, or the name of a model."""
    model: str
    """The model that it, or each of its entries, is; empty for plain values."""
    required: bool
    about: tuple[Paragraph, ...]
    limits: str
    """What values are taken."""
    where: str = ""
    """Of a parameter: path or query."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation may answer."""

    status: str
    about: tuple[Paragraph, ...]
    media: str
    model: str
    example: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    anchor: str
    method: str
    path: str
    about: tuple[Paragraph, ...]
    role: str
    parameters: tuple[Field, ...]
    body: tuple[Field, ...]
    body_media: str
    body_model: str
    good: Answer
    failures: tuple[Answer, ...]
    curl: str
    python: str


@dataclass(frozen=True, slots=True)
class Area:
    """Operations of one kind."""

    name: str
    about: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """What several operations take or answer."""

    name: str
    about: tuple[Paragraph, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Explained:
    """The whole document."""

    about: tuple[Paragraph, ...]
    server: str
    areas: tuple[Area, ...]
    models: tuple[Model, ...]


def explained(document: Mapping[str, Any]) -> Explained:
    """What a page shows of a document."""
    components = document["components"]["schemas"]
    root = document["servers"][0]["url"]
    operations = [
        (entry["tags"][0], _operation(root, path, method, entry, components))
        for path, methods in document["paths"].items()
        for method, entry in methods.items()
        if method in _METHODS
    ]
    areas = tuple(
        Area(tag["name"], tag["description"], tuple(one for name, one in operations if name == tag["name"]))
        for tag in document["tags"]
    )
    models = tuple(
        Model(name, paragraphs(schema.get("description", "")), tuple(_fields(schema, components)))
        for name, schema in sorted(components.items())
        if "properties" in schema
    )
    return Explained(paragraphs(document["info"]["description"]), root, areas, models)


def paragraphs(text: str) -> tuple[Paragraph, ...]:
    """A text with the few marks that descriptions use, cut where lines are empty."""
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return tuple(_words(part) for part in parts if part)


def _words(text: str) -> Paragraph:
    found, done = [], 0
    for match in _CODE.finditer(text):
        if match.start() > done:
            found.append(Words(text[done : match.start()], ""))
        style = ("code", "strong", "em")[(match.lastindex or 1) - 1]
        found.append(Words(match.group(match.lastindex or 1), style))
        done = match.end()
    if done < len(text):
        found.append(Words(text[done:], ""))
    return tuple(found)


def _operation(
    root: str, path: str, method: str, entry: Mapping[str, Any], components: Mapping[str, Schema]
) -> Operation:
    given = entry.get("parameters", [])
    parameters = tuple(_parameter(one, components) for one in given)
    media, schema = _content(entry.get("requestBody", {}))
    body = resolved(schema, components)
    files = tuple(name for name, part in body.get("properties", {}).items() if _is_file(part))
    sent = None if not schema or files else example_of(schema, components)
    address = address_of(root, path, *_filled(given, components))
    good, failures = _answers(entry["responses"], components)
    return Operation(
        anchor=entry["operationId"],
        method=method.upper(),
        path=path,
        about=paragraphs(entry["description"]),
        role=entry["x-role"],
        parameters=parameters,
        body=tuple(_fields(body, components)),
        body_media=media,
        body_model=_model_name(schema),
        good=good,
        failures=failures,
        curl=curl_example(method.upper(), address, sent, files),
        python=python_example(method.upper(), address, sent, files),
    )


def _filled(
    parameters: Sequence[Mapping[str, Any]], components: Mapping[str, Schema]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Example values of what stands in the path, and of those parts of the query that are needed."""
    path = {one["name"]: example_of(one["schema"], components) for one in parameters if one["in"] == "path"}
    query = {
        one["name"]: example_of(one["schema"], components)
        for one in parameters
        if one["in"] == "query" and one.get("required")
    }
    return path, query


def _answers(
    responses: Mapping[str, Mapping[str, Any]], components: Mapping[str, Schema]
) -> tuple[Answer, tuple[Answer, ...]]:
    every = [_answer(status, one, components) for status, one in sorted(responses.items())]
    good = next(one for one in every if one.status.startswith("2"))
    return good, tuple(one for one in every if one is not good)


def _answer(status: str, response: Mapping[str, Any], components: Mapping[str, Schema]) -> Answer:
    media, schema = _content(response)
    example = json.dumps(example_of(schema, components), ensure_ascii=False, indent=2) if schema else ""
    return Answer(status, paragraphs(response["description"]), media, _model_name(schema), example)


def _content(holder: Mapping[str, Any]) -> tuple[str, Schema]:
    for media, content in holder.get("content", {}).items():
        return str(media), content.get("schema", {})
    return "", {}


def _parameter(given: Mapping[str, Any], components: Mapping[str, Schema]) -> Field:
    return _field(
        given["name"],
        {**given["schema"], "description": given.get("description", "")},
        bool(given.get("required")),
        components,
        where=given["in"],
    )


def _fields(schema: Schema, components: Mapping[str, Schema]) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        yield _field(name, part, name in required, components)


def _field(name: str, schema: Schema, required: bool, components: Mapping[str, Schema], where: str = "") -> Field:
    return Field(
        name=name,
        kind=_kind(schema),
        model=_model_name(schema),
        required=required,
        about=paragraphs(schema.get("description", "")),
        limits=_limits(schema, required),
        where=where,
    )


def _kind(schema: Schema) -> str:
    if "$ref" in schema:
        return _short(schema["$ref"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(one) for one in schema["anyOf"]))
    if "const" in schema:
        return json.dumps(schema["const"])
    if _is_file(schema):
        return "files" if schema.get("type") == "array" else "file"
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if schema.get("format") == "date-time":
        return "moment"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"names with {_kind(schema['additionalProperties'])}"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    return {**words, "object": "object", "null": "null"}.get(str(schema.get("type")), "any value")


def _is_file(schema: Schema) -> bool:
    inner = schema.get("items", schema)
    return inner.get("format") == "binary" or "contentMediaType" in inner


def _model_name(schema: Schema) -> str:
    if "$ref" in schema:
        return _short(schema["$ref"])
    for part in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        if _model_name(part):
            return _model_name(part)
    return ""


def _short(reference: str) -> str:
    return reference.rsplit("/", 1)[-1]


def _limits(schema: Schema, required: bool) -> str:
    """Bounds, choices and default, of a value or of what it may be beside null."""
    found = []
    for part in (schema, *schema.get("anyOf", ())):
        low, high = part.get("minimum"), part.get("maximum")
        if low is not None and high is not None:
            found.append(f"{_number(low)} to {_number(high)}")
        if part.get("maxLength") is not None:
            found.append(f"at most {part['maxLength']:,} characters")
        if part.get("maxItems") is not None:
            found.append(f"at most {part['maxItems']:,}")
        if "enum" in part:
            found.append("one of " + ", ".join(json.dumps(one, ensure_ascii=False) for one in part["enum"]))
    if "default" in schema and not required and schema["default"] not in (None, "", []):
        found.append(f"by default {json.dumps(schema['default'])}")
    return "; ".join(dict.fromkeys(found))


def _number(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else f"{value:g}"
