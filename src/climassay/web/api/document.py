"""The OpenAPI document: made from the routes, with what these do not say themselves: who may call, and how."""

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts

from climassay import __version__
from climassay.web.access import CSRF_HEADER, SAFE_METHODS, SESSION_COOKIE
from climassay.web.api.routing import ASKERS, READERS, ROLE_OF, WHY

TAGS = {
    "people": "Oneself, and for admins the accounts of everybody.",
    "library": "Collections of documents: read, search, add.",
    "checks": "Claims, debated by advocates with one authority each; verdicts, reviews, ClaimReview.",
    "annotation": "What experts say about generated questions.",
    "results": "Runs, tables, single answers, comparisons, usage.",
    "datasets": "Generated questions, and what became of them.",
    "jobs": "Long work: how far it is, and what it told.",
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
_PLAIN = "Successful Response"
_DONE = {
    "200": "What was asked for, or what was stored.",
    "201": "It is made.",
    "202": "It is taken; the work goes on after the answer.",
    "204": "It is done.",
}
_FORM = "Body_add_documents"
_NAME = re.compile(r"Listed_(\w+?)(?:Data)?_$")
_SIGNED_IN: list[dict[str, list[str]]] = [{"token": []}, {"session": []}]
_SIGNED_IN_TO_CHANGE: list[dict[str, list[str]]] = [{"token": []}, {"session": [], "csrf": []}]
_FOR = {
    "annotator": "For everybody with an account.",
    "adjudicator": "For adjudicators and admins.",
    "admin": "For admins.",
    READERS: "For readers: whoever is signed in, and anybody where the server is open to read.",
    ASKERS: "For askers: whoever is signed in, and anybody where the server is open to check claims.",
}


def api_document(operations: APIRouter, address: str) -> dict[str, Any]:
    """The document.

    Args:
        operations: The routes that it describes.
        address: Where people reach the server.
    """
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
        "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE, "description": "Of a browser."},
        "csrf": {
            "type": "apiKey",
            "in": "header",
            "name": CSRF_HEADER,
            "description": 'Beside a session: the content of `<meta name="csrf">` on any page.',
        },
    }
    made["components"]["schemas"].pop("HTTPValidationError", None)
    made["components"]["schemas"].pop("ValidationError", None)
    for path, method, role, name in _operations(operations):
        _complete(made["paths"][path][method.lower()], method, role, name)
    return _renamed(made)


def _complete(operation: dict[str, Any], method: str, role: str, name: str) -> None:
    """Add to an operation its name, for whom it is, and what its answers mean."""
    known = _SIGNED_IN if method in SAFE_METHODS else _SIGNED_IN_TO_CHANGE
    operation["operationId"] = name
    operation["description"] = f"{operation.get('description', '')}\n\n{_FOR[role]}".strip()
    operation["security"] = [*known, {}] if role in (READERS, ASKERS) else known
    operation["x-role"] = role
    answers = operation["responses"]
    if "requestBody" in operation:
        answers["413"] = {**answers["400"], "description": WHY[413]}
    for status in answers.keys() & _DONE.keys():
        if answers[status]["description"] == _PLAIN:
            answers[status]["description"] = _DONE[status]


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


def _operations(operations: APIRouter) -> Iterator[tuple[str, str, str, str]]:
    """Path, method, for whom it is, and name of every operation."""
    for route in iter_route_contexts(operations.routes):
        endpoint, path = route.endpoint, route.path_format
        if endpoint is None or path is None:
            continue
        for method in route.methods or ():
            yield path, method, _role(endpoint), endpoint.__name__


def _role(endpoint: Any) -> str:
    """For whom an operation is, from the type of its parameter ``user``."""
    wanted = inspect.signature(endpoint).parameters["user"].annotation
    return next(role for kind, role in ROLE_OF if kind == wanted)
