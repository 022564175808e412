"""Examples that follow from a schema: a value that fits, and the request as curl and as Python send it."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

Schema = Mapping[str, Any]
_PLAIN: Mapping[str, Any] = {"string": "text", "integer": 1, "number": 0.5, "boolean": True, "null": None}
_DEEP = 8
_SHORT = 60


def resolved(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    """A schema itself, where only its name is given."""
    if "$ref" in schema:
        return resolved(components[schema["$ref"].rsplit("/", 1)[-1]], components)
    return schema


def example_of(schema: Schema, components: Mapping[str, Schema], depth: int = 0) -> Any:
    """A value that fits a schema: its own example where it has one, else made of those of its parts."""
    found = resolved(schema, components)
    for name in ("examples", "enum"):
        if found.get(name):
            return found[name][0]
    for name in ("const", "default"):
        if name in found:
            return found[name]
    for name in ("anyOf", "oneOf", "allOf"):
        if name in found:
            return example_of(found[name][0], components, depth)
    if found.get("type") == "object" or "properties" in found:
        parts = found.get("properties", {}) if depth < _DEEP else {}
        return {name: example_of(part, components, depth + 1) for name, part in parts.items()}
    if found.get("type") == "array":
        return [example_of(found["items"], components, depth + 1)] if "items" in found and depth < _DEEP else []
    return _PLAIN.get(str(found.get("type")), "text")


def curl_example(method: str, address: str, body: Any = None, files: tuple[str, ...] = ()) -> str:
    """A request as a shell command."""
    lines = [f"curl '{address}'"] if method == "GET" else [f"curl -X {method} '{address}'"]
    lines.append('-H "Authorization: Bearer $TOKEN"')
    lines += [f"-F '{name}=@carbon-cycle.pdf'" for name in files]
    if body is not None:
        text = json.dumps(body, ensure_ascii=False, indent=2).replace("'", "'\\''").replace("\n", "\n  ")
        lines += ["-H 'Content-Type: application/json'", f"-d '{text}'"]
    return " \\\n  ".join(lines)


def python_example(method: str, address: str, body: Any = None, files: tuple[str, ...] = ()) -> str:
    """A request as a few lines of Python with httpx."""
    more = ""
    if body is not None:
        more = f",\n    json={_python(body)}"
    elif files:
        more = f',\n    files=[("{files[0]}", open("carbon-cycle.pdf", "rb"))]'
    call = f'"{method}",\n    "{address}",\n    headers={{"Authorization": f"Bearer {{token}}"}}{more},\n'
    return f"import httpx\n\nanswer = httpx.request(\n    {call})\nanswer.raise_for_status()"


def address_of(root: str, path: str, values: Mapping[str, Any], query: Mapping[str, Any]) -> str:
    """An address with its parameters filled in."""
    filled = path
    for name, value in values.items():
        filled = filled.replace(f"{{{name}}}", quote(str(value), safe=""))
    return f"{root}{filled}" + (f"?{urlencode(query, doseq=True)}" if query else "")


def _python(value: Any, indent: str = "    ") -> str:
    """A value as Python writes it: short ones on one line, others an entry a line."""
    if isinstance(value, Mapping):
        entries, ends = [f"{_text(name)}: {_python(one, indent + '    ')}" for name, one in value.items()], "{}"
    elif isinstance(value, list):
        entries, ends = [_python(one, indent + "    ") for one in value], "[]"
    else:
        return _text(value) if isinstance(value, str) else repr(value)
    line = ends[0] + ", ".join(entries) + ends[1]
    if len(line) <= _SHORT and "\n" not in line:
        return line
    return ends[0] + "".join(f"\n{indent}    {entry}," for entry in entries) + f"\n{indent}{ends[1]}"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
