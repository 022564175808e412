"""The OpenAPI document, and the page that shows it to people.

The document is made from the routes, with what these do not say themselves: who may call, and how.
"""

import inspect
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from fastapi.params import Depends
from fastapi.routing import iter_route_contexts
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.responses import JSONResponse, Response

from climassay import __version__
from climassay.web.access import CSRF_HEADER, SAFE_METHODS, SESSION_COOKIE
from climassay.web.api import annotation, checks, library, results, server
from climassay.web.api.base import READERS, ROLE_OF, WHY
from climassay.web.app_state import App, AppState
from climassay.web.pages import page

OPERATIONS = APIRouter()
"""All operations of the API, which the document describes."""
for part in (server, library, checks, annotation, results):
    OPERATIONS.include_router(part.router)
OPERATIONS.include_router(results.datasets)
OPERATIONS.include_router(server.jobs_router)
router = APIRouter()
router.include_router(OPERATIONS)
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
`X-CSRF-Token` with everything else. What is for *readers* needs no account where the server is set up so
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
_LIST = re.compile(r"Listed[_\[](\w+?)[_\]](?=\W)")
_FORM = re.compile(r"Body_add_documents\w*")
_REFERENCE = re.compile(r"#/components/schemas/(\w+)")
_SIGNED_IN: list[dict[str, list[str]]] = [{"token": []}, {"session": []}]
_SIGNED_IN_TO_CHANGE: list[dict[str, list[str]]] = [{"token": []}, {"session": [], "csrf": []}]
_FOR = {
    "annotator": "For everybody with an account.",
    "adjudicator": "For adjudicators and admins.",
    "admin": "For admins.",
    READERS: "For readers: whoever is signed in, and anybody where the server is open to read.",
}


@router.get("/api/openapi.json", include_in_schema=False)
def show_document(app: App) -> Response:
    """OpenAPI 3.1; open to everybody, for it holds no data."""
    return JSONResponse(_document(app))


@router.get("/api/docs", include_in_schema=False)
def show_reference(request: Request, app: App) -> Response:
    """The same for people: every operation with its fields and examples, without a script."""
    document = _document(app)
    components = document["components"]["schemas"]
    return page(
        request,
        "api/reference.html.j2",
        document=document,
        failures=sorted(WHY.items()),
        words=_rendered,
        limits=limits_of,
        kind=type_of,
        model_of=model_of,
        content_of=content_of,
        resolved=lambda schema: _resolved(schema, components),
        curl=lambda path, method: curl(document, path, method),
        example=lambda schema: pretty(example_of(schema, components)) if schema else "",
    )


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
        role = _role_of(route.endpoint)
        for method in route.methods or ():
            operation = made["paths"][route.path_format][method.lower()]
            known = _SIGNED_IN if method in SAFE_METHODS else _SIGNED_IN_TO_CHANGE
            operation["operationId"] = route.endpoint.__name__
            operation["description"] = f"{operation.get('description', '')}\n\n{_FOR[role]}".strip()
            operation["security"] = [*known, {}] if role == READERS else known
            operation["x-role"] = role
            answers = operation["responses"]
            if "requestBody" in operation:
                answers["413"] = {**answers["400"], "description": WHY[413]}
            for status in answers.keys() & _DONE.keys():
                if answers[status]["description"] == "Successful Response":
                    answers[status]["description"] = _DONE[status]
    # What is sent as a form and lists have names made by FastAPI and pydantic.
    text = _LIST.sub(r"\1List", _FORM.sub("Upload", json.dumps(made)))
    named: dict[str, Any] = json.loads(text)
    schemas = named["components"]["schemas"]
    schemas["Upload"] |= {"title": "Upload", "description": "Files, and what is known of them."}
    schemas["JsonValue"]["description"] = "Any JSON."
    return named


def _role_of(function: Any) -> str:
    """For whom an operation is, by the type of its user or of that of what it depends on; empty where none is named."""
    for one in inspect.signature(function).parameters.values():
        result = next((role for kind, role in ROLE_OF if kind == one.annotation), "")
        depends = [part.dependency for part in get_args(one.annotation)[1:] if isinstance(part, Depends)]
        if result or (result := "".join(map(_role_of, depends))):
            return result
    return ""


Schema = Mapping[str, Any]
_PLAIN: Mapping[str, Any] = {"string": "text", "integer": 1, "number": 0.5, "boolean": True, "object": {}, "array": []}
_LIMITS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "maxLength": "maximum length",
    "maxItems": "maximum entries",
    "default": "default",
}
_MARKDOWN = MarkdownIt("commonmark", {"html": False})


@cache
def _rendered(text: str, block: bool = True) -> Markup:
    """Markdown as HTML."""
    return Markup(_MARKDOWN.render(text) if block else _MARKDOWN.renderInline(text))


def example_of(schema: Schema, components: Mapping[str, Schema]) -> Any:
    """A value that fits a schema: its own example where it has one, else made of those of its parts."""
    schema = _resolved(schema, components)
    for name in ("examples", "enum", "anyOf"):
        if schema.get(name):
            return example_of(schema[name][0], components) if name == "anyOf" else schema[name][0]
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    if "properties" in schema:
        return {name: example_of(part, components) for name, part in schema["properties"].items()}
    if "items" in schema:
        return [example_of(schema["items"], components)]
    return _PLAIN.get(schema.get("type", "string"))


def _resolved(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    return components[model_of(schema)] if "$ref" in schema else schema


def content_of(holder: Mapping[str, Any]) -> tuple[str, Schema]:
    """Media type and schema of a body or an answer; empty where there is none."""
    return next(((media, one.get("schema", {})) for media, one in holder.get("content", {}).items()), ("", {}))


def curl(document: Mapping[str, Any], path: str, method: str) -> str:
    """A command that asks for an operation, with examples of everything that it needs."""
    operation, components = document["paths"][path][method], document["components"]["schemas"]
    needed = [one for one in operation.get("parameters", ()) if one["required"]]
    examples = {one["name"]: example_of(one["schema"], components) for one in needed}
    address = document["servers"][0]["url"] + path.format_map(
        {one: quote(str(examples[one]), safe="") for one in examples}
    )
    if asked := {one["name"]: examples[one["name"]] for one in needed if one["in"] == "query"}:
        address += f"?{urlencode(asked, doseq=True)}"
    lines = [f"curl -X {method.upper()} '{address}'", '-H "Authorization: Bearer $TOKEN"']
    media, schema = content_of(operation.get("requestBody", {}))
    if media == "multipart/form-data":
        lines.append("-F 'files=@carbon-cycle.pdf'")
    elif media:
        sent = pretty(example_of(schema, components)).replace("'", "'\\''").replace("\n", "\n  ")
        lines += [f"-H 'Content-Type: {media}'", f"-d '{sent}'"]
    return " \\\n  ".join(lines)


def pretty(value: Any) -> str:
    """JSON for people."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def limits_of(schema: Schema) -> str:
    """The limits of a value and what it is by default, in words."""
    parts = [schema, *schema.get("anyOf", ())]
    results = [(word, part.get(name)) for part in parts for name, word in _LIMITS.items()]
    return ", ".join(
        f"{word} {json.dumps(value, ensure_ascii=False)}" for word, value in results if value not in (None, "", [])
    )


def type_of(schema: Schema) -> str:
    """The type of a value in the words of JSON Schema."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_of(one) for one in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " or ".join(json.dumps(one, ensure_ascii=False) for one in schema.get("enum") or [schema["const"]])
    if schema.get("type") == "array":
        return f"list of {type_of(schema['items'])}" if "items" in schema else "list"
    return (model_of(schema) if "$ref" in schema else "") or schema.get("format") or schema.get("type") or "any value"


def model_of(schema: Schema) -> str:
    """Name of the model that a value, or each of its entries, is; empty where there is none."""
    match = _REFERENCE.search(json.dumps(schema))
    return match[1] if match else ""
