"""What an assistant gets from ``climassay mcp``, through the client of the protocol's own package."""

import io
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import anyio
import pytest
import requests

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters

from climassay.errors import InputError
from climassay.session import Session
from climassay.web import mcp as module
from climassay.web.mcp import create_server
from command_line import refused
from debate_tables import Script
from library_parts import OCEAN, add_book
from patience import PATIENCE, reached
from scripted_model import ScriptedModel

TOOLS = {"list_collections", "search", "ask", "check", "check_text", "level_of_confidence"}
START = (sys.executable, "-m", "climassay.cli.main")


def calls(server, *requests, on_progress=None):
    """Answers to calls of tools, each a name and arguments, over one connection."""
    answers = []

    async def talk():
        async with Client(server) as client:
            for name, arguments in requests:
                answers.append(await client.call_tool(name, arguments, progress_callback=on_progress))

    anyio.run(talk)
    return answers


def written(prompt, schema):
    """An answer that cites the first passage, whatever is asked."""
    if schema is None:
        return "The ocean takes up heat [1]."
    return json.dumps({"enough_information": True, "sentences": [{"text": "The ocean takes up heat.", "sources": [1]}]})


@pytest.fixture
def server(place):
    add_book(place, "books")
    add_book(place, "private", title="Diary")
    return create_server(place, ScriptedModel(write=written), ["books"])


def test_all_tools_are_said_to_change_nothing_and_have_schemas(server):
    async def tools():
        async with Client(server) as client:
            return (await client.list_tools()).tools

    listed = anyio.run(tools)
    assert {tool.name for tool in listed} == TOOLS
    assert all(tool.annotations.read_only_hint and tool.output_schema and tool.description for tool in listed)


def test_a_search_gives_passages_with_citations(server):
    [found] = calls(server, ("search", {"query": "How much heat does the ocean take up?", "limit": 1}))
    [passage] = found.structured_content["passages"]
    assert passage["text"] == OCEAN
    assert (passage["document"], passage["first_page"], passage["number"]) == ("Seas", 1, 1)
    assert "Seas" in passage["citation"]
    assert "p. 1" in passage["citation"]
    # Clients that read no structured content find the same as text.
    assert json.loads(found.content[0].text) == found.structured_content


def test_only_the_collections_that_were_named_can_be_used(server):
    listed, refusal, outside = calls(
        server,
        ("list_collections", {}),
        ("search", {"query": "ocean", "collections": ["private"]}),
        ("search", {"query": "ocean", "collections": ["../../etc"]}),
    )
    assert [entry["name"] for entry in listed.structured_content["collections"]] == ["books"]
    for answer in (refusal, outside):
        assert answer.is_error
        assert "there are books" in answer.content[0].text


def test_an_answer_comes_with_the_sources_that_it_cites(server):
    progress = []

    async def note(done, total, message):
        progress.append(message)

    [answer] = calls(server, ("ask", {"question": "What takes up heat?"}), on_progress=note)
    content = answer.structured_content
    assert content["enough_information"]
    assert [sentence["citations"] for sentence in content["sentences"]] == [[1]]
    assert [(source["number"], source["text"]) for source in content["sources"]] == [(1, OCEAN)]
    assert progress


def test_a_failed_model_call_is_an_error_and_no_answer(place):
    add_book(place, "books")
    failing = create_server(place, ScriptedModel(write=lambda *_: RuntimeError("the model is out")))
    ask, check = calls(failing, ("ask", {"question": "What warms?"}), ("check", {"claim": "The ocean takes up heat."}))
    for answer in (ask, check):
        assert answer.is_error
        assert "the model is out" in answer.content[0].text


def test_a_claim_gets_a_verdict_with_its_sources_and_warnings(place):
    add_book(place, "books")
    script = Script({"books": ["true"], "mediator": ["true"]})
    script.model.parameters = 135_000_000
    [answer] = calls(create_server(place, script.model), ("check", {"claim": "The ocean takes up heat."}))
    content = answer.structured_content
    assert (content["outcome"], content["verdict"]) == ("verdict", "true")
    assert [opinion["advocate"] for opinion in content["opinions"]] == ["books"]
    assert {number for part in content["explanation"] for number in part["citations"]} <= {
        source["number"] for source in content["sources"]
    }
    assert any("very small language model" in warning for warning in content["warnings"])


def test_a_text_is_never_read_as_the_name_of_a_file(workspace, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("text\nA password\n", encoding="utf-8")
    with Session.opened(workspace) as session:
        checked, levels = calls(
            create_server(session, ScriptedModel()),
            ("check_text", {"text": str(secret)}),
            ("level_of_confidence", {"statement": str(secret)}),
        )
    assert "A password" not in json.dumps([checked.structured_content, levels.structured_content])
    assert [entry["level"] for entry in levels.structured_content["levels"]] == ["very high", "high", "medium", "low"]


def test_a_text_is_marked_sentence_by_sentence(server):
    [checked] = calls(server, ("check_text", {"text": "The ocean takes up heat and carbon. The ocean has 17 lids."}))
    first, second = checked.structured_content["sentences"]
    assert first["evidence"][0]["citation"].startswith("Seas")
    assert second["marked"]
    assert second["problems"]


def test_an_empty_library_says_how_to_make_a_collection(place):
    [answer] = calls(create_server(place, ScriptedModel()), ("search", {"query": "ocean"}))
    assert answer.is_error
    assert "climassay corpus add" in answer.content[0].text


def test_a_collection_that_does_not_exist_is_refused_at_the_start(place):
    with pytest.raises(InputError, match="nothere"):
        create_server(place, ScriptedModel(), ["nothere"])


def test_long_work_reports_progress_again_and_again(place, monkeypatch):
    add_book(place, "books")
    monkeypatch.setattr(module, "PROGRESS_SECONDS", 0.01)
    reports, third = [], threading.Event()

    async def count(done, total, message):
        reports.append(done)
        if len(reports) > 2:
            third.set()

    def wait(prompt, schema):
        reached(third)
        return written(prompt, schema)

    calls(create_server(place, ScriptedModel(write=wait)), ("ask", {"question": "What warms?"}), on_progress=count)
    assert len(reports) > 2
    assert reports == sorted(reports)


def test_the_command_talks_over_stdin_and_stdout(climassay, monkeypatch, tmp_path):
    greeting = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    }
    given, taken = io.TextIOWrapper(io.BytesIO(json.dumps(greeting).encode() + b"\n")), io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr("sys.stdin", given)
    monkeypatch.setattr("sys.stdout", taken)
    climassay("mcp", "-w", tmp_path)
    answer = json.loads(taken.buffer.getvalue())
    assert answer["result"]["serverInfo"]["name"] == "climassay"


def test_json_needs_http(climassay, tmp_path):
    assert "--http" in refused(climassay("mcp", "--json", "-w", tmp_path))


@pytest.fixture
def workspace(tmp_path):
    from climassay.api import documents

    documents.add_documents("primer", "primer:physical_climate", workspace=tmp_path)
    return tmp_path


@contextmanager
def over_http(workspace):
    """Address of a server in a process of its own."""
    command = [*START, "mcp", "--http", "--port", "0", "--json", "-w", str(workspace)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        told = ""
        for line in server.stdout:
            told += line
            if line.startswith("}"):
                break
        yield json.loads(told)["address"]
    finally:
        server.terminate()
        server.wait()


@pytest.mark.process
def test_no_page_in_a_browser_reaches_the_tools(workspace):
    """Neither by a name that leads to this machine only now, nor from its own origin, nor by a plain form."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
    usual = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    pages = ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Content-Type": "text/plain"})
    with over_http(workspace) as address:
        statuses = [
            requests.post(address, data=message, headers=usual | headers, timeout=PATIENCE).status_code
            for headers in ({}, *pages)
        ]
    assert statuses[0] == 200
    assert all(400 <= status < 500 for status in statuses[1:])


@pytest.mark.process
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_assistant_finds_a_passage(workspace, transport):
    query = ("search", {"query": "What is the greenhouse effect?", "limit": 1})
    if transport == "stdio":
        program, *options = START
        options = [*options, "mcp", "-w", str(workspace)]
        [found] = calls(StdioServerParameters(command=program, args=options, env=dict(os.environ)), query)
    else:
        with over_http(workspace) as address:
            [found] = calls(address, query)
    [passage] = found.structured_content["passages"]
    assert passage["document"] == "Principles of Physical Climate"
