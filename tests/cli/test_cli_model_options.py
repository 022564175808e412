"""Commands that ask a server's model pass their options on, and keep what it can do in the workspace."""

import json
from contextlib import closing

import pytest

from api_server import ApiServer, Behaviour
from climassay.errors import InputError
from climassay.generation import Draft, Origin, SourcePassage, Wording, write_drafts
from climassay.models import load_model
from climassay.models.openai.capabilities import FILE_NAME
from command_line import done, run_command
from debate_workspaces import CLAIM, QUICK, make_model, make_workspace
from tiny_models import smollm2

STATEMENT = "Warm water rises, and cold water sinks in its place."


def draft(number, kind):
    wording = Wording(STATEMENT) if kind == "cloze" else Wording("What does warm water do?", f"It rises {number} m.")
    passages = (SourcePassage(f"p{number}", STATEMENT, "d", "A book"),)
    return Draft(f"q{number}", kind, "base", wording, passages, Origin("local:test", "f" * 64, (), 0))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    write_drafts(tmp_path / "questions.jsonl", [draft(1, "freeform")])
    write_drafts(tmp_path / "statements.jsonl", [draft(1, "cloze")])
    choice = {"question": "Warm water <MASK>.", "answer": "rises"}
    (tmp_path / "cloze.jsonl").write_text(json.dumps(choice) + "\n", encoding="utf-8")
    labels = ("SUPPORTS", "REFUTES")
    pairs = [
        {"premise": f"[[say {label}]] Someone has looked.", "statement": STATEMENT, "label": label} for label in labels
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("generate", "validate", "apply", "prompted:openai:m", "{}/questions.jsonl"),
        ("generate", "mask", "apply", "prompted:openai:m", "{}/statements.jsonl", "-o", "{}/masked.jsonl"),
        ("generate", "mask", "apply", "prompted", "{}/statements.jsonl", "-o", "{}/masked.jsonl", "-m", "openai:m"),
        ("generate", "mask", "evaluate", "prompted:openai:m", "{}/cloze.jsonl"),
        ("metrics", "entailment", "evaluate", "supports:openai:m", "{}/pairs.jsonl"),
        ("generate", "screen", "{}/questions.jsonl", "--entailment", "prompted:openai:m"),
    ],
    ids=["validator", "masker", "masker with a model", "masker on labels", "entailment", "screen"],
)
def test_options_reach_the_model_and_what_it_can_do_is_kept(files, monkeypatch, capsys, words):
    # Without log-probabilities the answers are generated, so that every option is sent.
    with ApiServer(Behaviour(logprobs="refuse")) as server:
        options = ("--base-url", server.url, "--max-output-tokens", 700, "--reasoning-effort", "low", "--timeout", 60)
        code, _, err = run_command(
            monkeypatch, capsys, *(word.format(files) for word in words), *options, "-w", files / "work"
        )
    assert code == 0, err
    assert server.asked
    generated = [request.body for request in server.asked if "logprobs" not in request.body]
    assert {body["reasoning_effort"] for body in generated} == {"low"}
    assert all(body.get("max_tokens", body.get("max_completion_tokens")) >= 700 for body in generated)
    kept = json.loads((files / "work" / FILE_NAME).read_text(encoding="utf-8"))
    assert server.url in json.dumps(kept)


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "mcq", "{}/questions.jsonl", "-m", "openai:m", "--scoring", "letter"),
        ("check", f"{CLAIM} [[hang x1]]", "-m", "openai:m", "--plain", "--no-screen", *QUICK),
    ],
    ids=["evaluate mcq", "factcheck"],
)
def test_limits_of_the_command_line_reach_every_request(tmp_path, monkeypatch, capsys, words):
    question = {"question": "What does warm water do? [[hang x1]]", "options": list("wxyz"), "answer": "a"}
    (tmp_path / "questions.jsonl").write_text(json.dumps(question) + "\n", encoding="utf-8")
    with ApiServer() as server:
        options = ("--base-url", server.url, "--max-output-tokens", 700, "--reasoning-effort", "low", "--timeout", 1)
        code, out, err = run_command(
            monkeypatch, capsys, *(word.format(tmp_path) for word in words), *options, "--json", "-w", tmp_path / "work"
        )
    assert code == 0, err
    assert json.loads(out)
    assert {request.body["max_tokens"] for request in server.asked} == {700}
    assert {request.body["reasoning_effort"] for request in server.asked} == {"low"}
    asked = [request.attempt for request in server.asked if "[[hang x1]]" in request.content]
    assert asked.count(0) == asked.count(1) > 0, "an attempt that is never answered ends with --timeout"


def test_the_options_of_a_server_go_to_those_of_a_debates_models_that_it_serves(tmp_path, climassay):
    workspace, local = make_workspace(tmp_path / "work"), make_model(tmp_path / "tiny")
    debate = tmp_path / "debate.toml"
    advocates = f'[[advocate]]\nname = "Book"\ncollections = ["book"]\nmodel = "{local}"\n'
    debate.write_text(f'model = "openai:m"\n{advocates}', encoding="utf-8")
    debating = ("check", CLAIM, "--config", debate, "--no-screen", *QUICK, "-w", workspace, "--json")
    with ApiServer() as server:
        options = ("--base-url", server.url, "--reasoning-effort", "low", "--dtype", "float32")
        out = done(climassay(*debating, *options))
        assert json.loads(out)["failures"] == 0
        assert {request.body["reasoning_effort"] for request in server.asked} == {"low"}
        code, _, err = climassay(*debating, "-m", local, "--base-url", server.url)
    assert (code, "--base-url does not go with local: models" in err) == (2, True)


@pytest.mark.model
def test_models_of_the_web_pages_are_loaded_with_the_commands_options(tmp_path, monkeypatch, climassay):
    limits = []

    def look(place):
        for name in ("openai:m", "local:smollm2"):
            with closing(place.settings.load(name, place.workspace)) as model:
                limits.append(model.fingerprint)
        raise InputError("That is enough.")

    monkeypatch.setattr("climassay.web.create_app", look)
    options = ("--base-url", "http://localhost:1/v1", "--max-output-tokens", 700, "--reasoning-effort", "low")
    code, _, err = climassay("serve", "--port", 0, "-w", tmp_path, *options)
    assert (code, "That is enough." in err) == (2, True)
    given = {"base_url": "http://localhost:1/v1", "max_output_tokens": 700, "reasoning_effort": "low"}
    with closing(load_model("openai:m", **given)) as served, closing(smollm2()) as local:
        assert limits[0] == served.fingerprint
        assert limits[1] != local.fingerprint
