"""A canary for the API key: it is sent to the server, and is found nowhere else."""

import io
import json
import logging
import os
import subprocess
import sys
import traceback

import pytest

from api_server import ApiServer, Behaviour
from climassay.errors import ModelError
from climassay.models.contract import GenerationRequest, Message, OptionRequest
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.connection import RetryPolicy
from climassay.records import RecordedModel, Records
from climassay.redaction import TrustedUrl

CANARY = "sk-canary-6d3f0c27b1"


def chat(text):
    return (Message("user", text),)


@pytest.fixture
def everything_logged():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "CLIMASSAY_API_KEY"])
def test_the_key_reaches_the_server_and_nothing_else(tmp_path, monkeypatch, everything_logged, variable):
    for name in ("OPENAI_API_KEY", "CLIMASSAY_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, CANARY + "\n")
    texts = ["fine", "[[400 refused]]", "[[500]]", "[[drop]]", "[[malformed]]"]
    url = f"sqlite:///{tmp_path}/records.sqlite"
    with ApiServer(Behaviour(echo_authorization=True)) as server, Records(url) as store:
        model = OpenAIModel("test", base_url=TrustedUrl(server.url), policy=RetryPolicy(base=0.0, max_attempts=2))
        with store.run("canary", {}) as run:
            recorded = RecordedModel(model, store, run)
            answers = recorded.generate([GenerationRequest(chat(text)) for text in texts])
            answers += recorded.option_logprobs([OptionRequest(chat(text), ("a", "b")) for text in texts])
            run.save_results("answers", [{"answer": repr(answer)} for answer in answers])
        shown = [repr(model), str(model), repr(recorded), repr(answers), repr(store), model.fingerprint, model.name]
        model.close()
        assert server.asked[0].headers["authorization"] == f"Bearer {CANARY}"
    assert "repeats the API key" in answers[0].error, "the server did echo it"
    assert "***" in answers[1].error
    assert CANARY not in " ".join(shown)
    assert CANARY not in everything_logged.getvalue()
    assert "Building HTTP request" in everything_logged.getvalue(), "the log did hear of the requests"
    for file in tmp_path.iterdir():
        assert CANARY.encode() not in file.read_bytes(), file.name


@pytest.mark.parametrize(
    ("keys", "sent"),
    [({}, None), ({"OPENAI_API_KEY": "sk-general", "CLIMASSAY_API_KEY": "sk-special"}, "Bearer sk-special")],
)
def test_without_a_key_none_is_sent_and_the_one_for_climassay_wins_over_the_general_one(monkeypatch, keys, sent):
    for name in ("OPENAI_API_KEY", "CLIMASSAY_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    with ApiServer() as server:
        model = OpenAIModel("test", base_url=TrustedUrl(server.url))
        model.generate([GenerationRequest(chat("hello"))])
        model.close()
        assert server.asked[0].headers.get("authorization") == sent


def test_a_wrong_key_is_not_repeated_in_the_error(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with ApiServer(Behaviour(echo_authorization=True)) as server:
        model = OpenAIModel("test", base_url=TrustedUrl(server.url))
        with pytest.raises(ModelError) as caught:
            model.generate([GenerationRequest(chat("[[401 bad key]]"))])
        model.close()
    assert "bad key" in str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("key", ["sk-\u2026", "sk-one\nsk-two"])
def test_a_key_that_cannot_be_a_header_is_refused_without_showing_it(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelError) as caught:
        OpenAIModel("test", base_url=TrustedUrl("http://localhost/v1"))
    assert "sk-" not in str(caught.value)


@pytest.mark.process
def test_the_command_line_shows_no_key(tmp_path):
    environment = os.environ | {"OPENAI_API_KEY": CANARY, "CLIMASSAY_API_KEY": ""}
    with ApiServer(Behaviour(echo_authorization=True)) as server:
        command = [sys.executable, "-m", "climassay.cli.main", "evaluate", "mcq", "primer", "--limit", "4", "--json"]
        command += ["--model", "openai:test", "--base-url", server.url, "--workspace", str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
        assert server.asked[0].headers["authorization"] == f"Bearer {CANARY}"
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert CANARY not in done.stdout + done.stderr
    assert all(CANARY.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
