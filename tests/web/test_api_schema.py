"""Whatever the document allows, and much that it does not, is answered as the document says, and never by a mistake."""

import pytest

pytest.importorskip("schemathesis")

import requests
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from api_parts import COLLECTION, DATASET, bearer, document, furnish, settings_of
from climassay.web import AppState, ServerSettings, create_app
from climassay.workspace import Workspace
from web_parts import ORIGIN

pytestmark = pytest.mark.faults

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SEED = 20260531
EXAMPLES = 8
"""Drawn requests an operation, beside those that go through the bounds of its fields one by one."""


def _config(examples):
    generation = GenerationConfig(max_examples=examples, deterministic=True)
    return SchemathesisConfig(seed=SEED, projects=ProjectsConfig(default=ProjectConfig(generation=generation)))


schema = schemathesis.openapi.from_dict(document(), config=_config(EXAMPLES))
long_schema = schemathesis.openapi.from_dict(document(), config=_config(300))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A client of an application over a filled workspace, whose jobs wait; and names of what lies there."""
    folder = tmp_path_factory.mktemp("api")
    place = AppState(Workspace.open(folder / "workspace"), ServerSettings(**settings_of(folder)))
    content = furnish(place)
    place.jobs.start = lambda _place: None
    with TestClient(
        create_app(place), base_url=ORIGIN, raise_server_exceptions=False, follow_redirects=False
    ) as client:
        client.headers.update(bearer(place, "admin"))
        asked = {"question": "Why?", "collections": [COLLECTION], "before": ""}
        question = place.jobs.submit("ask", "Question: Why?", asked, "admin")
        yield client, {"dataset": DATASET, "check": content.check, "run": content.run, "question": question}
    place.close()


@schema.parametrize()
def test_every_operation_answers_as_its_document_says(case, server):
    client, known = server
    take_known(case, known)
    case.validate_response(sent(case, client), checks=CHECKS)


@pytest.mark.slow
@long_schema.parametrize()
def test_every_operation_answers_as_its_document_says_at_length(case, server):
    client, known = server
    case.validate_response(sent(case, client), checks=CHECKS)
    if case.path_parameters:
        take_known(case, known)
        case.validate_response(sent(case, client), checks=CHECKS)


def take_known(case, known):
    """Have a request be about what is there, or nearly all of them would be about nothing."""
    if case.path_parameters:
        case.path_parameters = {name: known.get(name, value) for name, value in case.path_parameters.items()}


def sent(case, client):
    """The answer to a request, which the library for which it was drawn puts into bytes."""
    made = requests.Request(**case.as_transport_kwargs(base_url=ORIGIN)).prepare()
    headers = {name: value for name, value in made.headers.items() if name.lower() != "content-length"}
    return client.request(made.method, made.url, content=made.body, headers=headers)
