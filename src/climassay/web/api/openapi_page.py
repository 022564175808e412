"""The OpenAPI document, and the page that shows it to people.

The document is made from the routes, with what these do not say themselves: who may call, and how.
"""

import inspect
import json
import pprint
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from markupsafe import Markup, escape
from starlette.responses import JSONResponse, Response

from climassay import __version__
from climassay.web.access import CSRF_HEADER, SAFE_METHODS, SESSION_COOKIE
from climassay.web.api.base import ASKERS, READERS, ROLE_OF, WHY
from climassay.web.api.operations import OPERATIONS
from climassay.web.app_state import App, AppState
from climassay.web.pages import page

router = APIRouter(prefix="/api", include_in_schema=False)
TAGS = {
    "people": "Oneself, and for admins the accounts of everybody.",
    "library": "Collections of documents: read, search, add.",
    "checks": "Claims, debated by advocates with one authority each; verdicts, reviews, ClaimReview.",
    "annotation": "What experts say about generated questions.",
    "results": "Runs, tables, single answers, comparisons, usage.",
    "datasets": "Generated questions, and what became of them.",
    "jobs": "Long work: how far it is, and what it reported.",
}
ABOUT = """\
The data of the web application for programs. All answers are JSON; all times are ISO 8601 in UTC.

**Who asks.** Send `Authorization: Bearer TOKEN`; tokens are made on the page `/account`, and a token may do what its
user may do. A browser that is signed in may use its session instead: it reads freely, and sends the header
`X-CSRF-Token` with everything else. What is for *readers* or *askers* needs no account where the server is set up so
(`climassay serve --public read`, or `check`).

**Failures** are answered as `{"error": "One sentence."}`, with the fields that do not fit in `details` (status 422).

**Lists** take `limit` and `after`, and answer `items` and `next`: ask again with `after` = `next` until that is null.
Entries keep their order, and none is seen twice when others come or go meanwhile.

**Sending twice.** A label carries a `key` made by its sender: what is sent again with the same key is stored once, and
is answered alike. So a program that got no answer sends the same again.

**Live.** A job is followed by `GET /api/v1/jobs/{job}/events`. Browsers take the same as server-sent events from
`/jobs/{job}/events`, resumable by `Last-Event-ID`; they end with the event `end`.
"""
_DONE = {
    "200": "What was asked for, or what was stored.",
    "201": "It is made.",
    "202": "It is taken; the work goes on after the answer.",
    "204": "It is done.",
}
_FORM = "Body_add_documents"
_NAME = re.compile(r"Listed_(\w+?)(?:Data)?_$")
_MARKS = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*")
_SIGNED_IN: list[dict[str, list[str]]] = [{"token": []}, {"session": []}]
_SIGNED_IN_TO_CHANGE: list[dict[str, list[str]]] = [{"token": []}, {"session": [], "csrf": []}]
_FOR = {
    "annotator": "For everybody with an account.",
    "adjudicator": "For adjudicators and admins.",
    "admin": "For admins.",
    READERS: "For readers: whoever is signed in, and anybody where the server is open to read.",
    ASKERS: "For askers: whoever is signed in, and anybody where the server is open to check claims.",
}


@router.get("/openapi.json")
def show_document(app: App) -> Response:
    """OpenAPI 3.1; open to everybody, for it holds no data."""
    return JSONResponse(_document(app))


@router.get("/docs")
def show_reference(request: Request, app: App) -> Response:
    """The same for people: every operation with its fields and examples."""
    made = app.shared("api:reference", lambda: _reference(_document(app)))
    return page(request, "api/reference.html.j2", api=made, failures=sorted(WHY.items()))


def _document(app: AppState) -> dict[str, Any]:
    """The document of a server, made once."""
    return app.shared("api:document", lambda: api_document(OPERATIONS, app.settings.root))


def api_document(operations: APIRouter, address: str) -> dict[str, Any]:
    """The document of these routes, for a server that people reach at an address."""
    made = get_openapi(
        title="climassay",
        version=__version__,
        description=ABOUT,
        routes=operations.routes,
        tags=[{"name": name, "description": words} for name, words in TAGS.items()],
        servers=[{"url": address}],
    )
    made["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "A token made on the page /account."},
        "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE, "description": "Cookie of a browser."},
        "csrf": {
            "type": "apiKey",
            "in": "header",
            "name": CSRF_HEADER,
            "description": 'Beside a session: the content of `<meta name="csrf">` on any page.',
        },
    }
    made["components"]["schemas"].pop("HTTPValidationError", None)
    made["components"]["schemas"].pop("ValidationError", None)
    for route in iter_route_contexts(operations.routes):
        if route.endpoint is None or route.path_format is None:
            continue
        wanted = inspect.signature(route.endpoint).parameters["user"].annotation
        role = next(role for kind, role in ROLE_OF if kind == wanted)
        for method in route.methods or ():
            operation = made["paths"][route.path_format][method.lower()]
            known = _SIGNED_IN if method in SAFE_METHODS else _SIGNED_IN_TO_CHANGE
            operation["operationId"] = route.endpoint.__name__
            operation["description"] = f"{operation.get('description', '')}\n\n{_FOR[role]}".strip()
            operation["security"] = [*known, {}] if role in (READERS, ASKERS) else known
            operation["x-role"] = role
            answers = operation["responses"]
            if "requestBody" in operation:
                answers["413"] = {**answers["400"], "description": WHY[413]}
            for status in answers.keys() & _DONE.keys():
                if answers[status]["description"] == "Successful Response":
                    answers[status]["description"] = _DONE[status]
    return _renamed(made)


def _renamed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with names of models as people say them: ``User`` and ``UserList``."""
    text = json.dumps(document)
    schemas = document["components"]["schemas"]
    [form] = [name for name in schemas if name.startswith(_FORM)]
    names = {name: _NAME.sub(r"\1List", name).removesuffix("Data") for name in schemas}
    names[form] = "Upload"
    if len(set(names.values())) < len(names):
        raise ValueError(f"Two models of the API have one name: {sorted(names.values())}.")
    for name, plain in names.items():
        text = text.replace(f'"#/components/schemas/{name}"', f'"#/components/schemas/{plain}"')
    made: dict[str, Any] = json.loads(text)
    renamed = {names[name]: {**schema, "title": names[name]} for name, schema in made["components"]["schemas"].items()}
    renamed["Upload"]["description"] = "Files, and what is known of them."
    renamed["JsonValue"]["description"] = "Any JSON."
    for name in names.keys() - {form}:
        renamed[names[name]].setdefault("description", "A part of a list, in an order that stays.")
    made["components"]["schemas"] = renamed
    return made


Schema = Mapping[str, Any]
_PLAIN: Mapping[str, Any] = {"string": "text", "integer": 1, "number": 0.5, "boolean": True, "null": None}
_DEEP = 8


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
        text = pprint.pformat(body, width=72, sort_dicts=False).replace("\n", "\n         ")
        more = f",\n    json={text}"
    elif files:
        more = f',\n    files=[("{files[0]}", open("carbon-cycle.pdf", "rb"))]'
    call = f'"{method}",\n    "{address}",\n    headers={{"Authorization": f"Bearer {{token}}"}}{more},\n'
    return f"import httpx\n\nanswer = httpx.request(\n    {call})\nanswer.raise_for_status()"


def _reference(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of a document."""
    components, root = document["components"]["schemas"], document["servers"][0]["url"]
    operations = [
        (entry["tags"][0], _operation(root, path, method.upper(), entry, components))
        for path, methods in document["paths"].items()
        for method, entry in methods.items()
    ]
    return {
        "about": _prose(document["info"]["description"]),
        "areas": [
            {
                "name": tag["name"],
                "about": tag["description"],
                "operations": [one for name, one in operations if name == tag["name"]],
            }
            for tag in document["tags"]
        ],
        "models": [
            {"name": name, "about": _prose(schema.get("description", "")), "fields": _fields(schema)}
            for name, schema in sorted(components.items())
            if "properties" in schema
        ],
    }


def _prose(text: str, paragraph: str = "<p>{}</p>") -> Markup:
    """A text with the few marks that descriptions use; empty lines part its paragraphs."""
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return Markup("").join(Markup(paragraph).format(_marked(part)) for part in parts if part)


def _marked(text: str) -> Markup:
    def tagged(match: re.Match[str]) -> str:
        tag = ("code", "strong", "em")[(match.lastindex or 1) - 1]
        return f"<{tag}>{match[match.lastindex or 1]}</{tag}>"

    return Markup(_MARKS.sub(tagged, str(escape(text))))


def _operation(
    root: str, path: str, method: str, entry: Mapping[str, Any], components: Mapping[str, Schema]
) -> dict[str, Any]:
    parameters = entry.get("parameters", [])
    media, schema = _content(entry.get("requestBody", {}))
    body = resolved(schema, components)
    files = tuple(name for name, part in body.get("properties", {}).items() if _is_file(part))
    sent = None if not schema or files else example_of(schema, components)
    address, query = f"{root}{path}", {}
    for one in parameters:
        if one["in"] == "path":
            example = quote(str(example_of(one["schema"], components)), safe="")
            address = address.replace(f"{{{one['name']}}}", example)
        elif one.get("required"):
            query[one["name"]] = example_of(one["schema"], components)
    if query:
        address += f"?{urlencode(query, doseq=True)}"
    good = min(status for status in entry["responses"] if status.startswith("2"))
    answer_media, answer = _content(entry["responses"][good])
    return {
        "anchor": entry["operationId"],
        "method": method,
        "path": path,
        "about": _prose(entry["description"]),
        "parameters": [
            _field(one["name"], {**one["schema"], "description": one.get("description", "")}, bool(one.get("required")))
            | {"where": one["in"]}
            for one in parameters
        ],
        "body": _fields(body),
        "body_media": media,
        "good": {
            "status": good,
            "media": answer_media,
            "model": _model_name(answer),
            "example": json.dumps(example_of(answer, components), ensure_ascii=False, indent=2) if answer else "",
        },
        "failures": sorted(status for status in entry["responses"] if status != good),
        "curl": curl_example(method, address, sent, files),
        "python": python_example(method, address, sent, files),
    }


def _content(holder: Mapping[str, Any]) -> tuple[str, Schema]:
    for media, content in holder.get("content", {}).items():
        return str(media), content.get("schema", {})
    return "", {}


def _fields(schema: Schema) -> list[dict[str, Any]]:
    required = schema.get("required", ())
    return [_field(name, part, name in required) for name, part in schema.get("properties", {}).items()]


def _field(name: str, schema: Schema, required: bool) -> dict[str, Any]:
    """A parameter, or a field of what is sent or answered; ``model`` is the one that it, or each of its entries, is."""
    return {
        "name": name,
        "kind": _kind(schema),
        "model": _model_name(schema),
        "required": required,
        "about": _prose(schema.get("description", ""), "{} "),
        "limits": _limits(schema, required),
    }


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
