"""The document of the API, its page for people, and the client of docs/api.md."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from api_parts import API, bearer, document, furnish, operations, settings_of
from browser import serving
from climassay.web import AppState, ServerSettings
from climassay.workspace import Workspace
from patience import PATIENCE

GUIDE = Path(__file__).parents[2] / "docs" / "api.md"
REFERENCES = re.compile(r'"\$ref": "#/components/schemas/([^"]+)"')


@pytest.fixture
def anybody(client_of):
    return client_of()


def test_the_document_is_open_to_everybody_and_describes_the_operations_only(anybody):
    made = anybody.get("/api/openapi.json").json()
    assert made["openapi"].startswith("3.1")
    assert made["servers"] == [{"url": "http://127.0.0.1:8000"}]
    assert set(made["components"]["securitySchemes"]) == {"token", "session", "csrf"}
    assert all(path.startswith(f"{API}/") for path in made["paths"])


def test_every_reference_leads_somewhere_and_every_model_is_used():
    made = document()
    used = set(REFERENCES.findall(json.dumps(made)))
    assert used == set(made["components"]["schemas"])


def test_examples_fit_their_own_schemas():
    from jsonschema import Draft202012Validator

    from climassay.web.api.openapi_page import example_of

    made = document()
    components = made["components"]["schemas"]
    for name, schema in components.items():
        whole = {**schema, "components": made["components"]}
        problems = list(Draft202012Validator(whole).iter_errors(example_of(schema, components)))
        assert not problems, f"{name}: {problems[0].message}"


def test_the_reference_shows_every_operation_with_examples_and_anchors(anybody):
    answer = anybody.get("/api/docs")
    assert answer.status_code == 200
    for _, path, operation in operations():
        assert f'id="{operation["operationId"]}"' in answer.text
        assert f'href="#{operation["operationId"]}"' in answer.text
        assert re.search(rf"</span> <code>{re.escape(path)}</code>", answer.text), path
    ids = re.findall(r'\sid="([^"]+)"', answer.text)
    assert len(set(ids)) == len(ids)
    assert set(re.findall(r'href="#([^"]+)"', answer.text)) <= set(ids)
    assert answer.text.count("curl ") >= len(operations())


def test_failures_are_one_sentence_in_json(client_of, place):
    client = client_of()
    client.headers.update(bearer(place, "admin"))
    wanted = {
        ("GET", "/none"): 404,
        ("DELETE", "/me"): 405,
        ("GET", "/runs?limit=0"): 422,
        ("GET", "/runs?after=rffffffff"): 400,
        ("GET", "/runs/r"): 404,
    }
    for (method, path), status in wanted.items():
        answer = client.request(method, API + path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
        assert answer.json()["error"].endswith(".")
    broken = client.post(f"{API}/users", content=b'{"name": ', headers={"Content-Type": "application/json"})
    assert (broken.status_code, broken.json()["error"].startswith("The body is not JSON: ")) == (422, True)
    large = client.post(f"{API}/users", content=b" " * (2**20 + 1), headers={"Content-Type": "application/json"})
    assert (large.status_code, large.json()["error"]) == (413, "Too large: the limit here is 1 MB.")


@pytest.mark.process
def test_the_client_of_the_guide_works_as_it_stands_there(tmp_path):
    [program] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "client.py").write_text(program, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as sock:
        settings = ServerSettings(port=sock.getsockname()[1], **settings_of(tmp_path))
        place = AppState(Workspace.open(tmp_path / "workspace"), settings)
        furnish(place)
        with serving(place, sock) as server:
            [token] = bearer(place, "annotator").values()
            known = {"CLIMASSAY_SERVER": server.url, "CLIMASSAY_TOKEN": token.removeprefix("Bearer ")}
            done = subprocess.run(
                [sys.executable, str(tmp_path / "client.py")],
                env={**os.environ, **known},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
    assert done.stderr == ""
    assert re.fullmatch(rf"incorrect: The Sun.* {re.escape(server.url)}/checks/c[0-9a-f]{{12}}\n", done.stdout)
