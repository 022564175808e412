"""``climassay records`` as it is typed."""

import json

import pytest

from climassay.models import Completion, GenerationRequest, Message, Usage
from climassay.records import RecordedModel, Records
from command_line import done, json_of, refused


class Model:
    name, fingerprint = "openai:[test]", "ab" * 32

    def render(self, messages, assistant_prefix=""):
        return messages[-1].content

    def generate(self, requests, *, on_result=None):
        for index, request in enumerate(requests):
            text = request.messages[-1].content
            failed = Completion.failed("The server answered 400: no.", Usage(requests=1))
            on_result(index, failed if text == "fail" else Completion("[bold]fine[/bold]", "stop", Usage(10, 2, 1)))

    def close(self):
        """Nothing to give back."""


@pytest.fixture
def climassay(tmp_path, monkeypatch, climassay):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("CLIMASSAY_RECORDS", raising=False)

    return lambda *arguments: climassay("records", *arguments, "--workspace", str(tmp_path))


@pytest.fixture
def run_id(tmp_path):
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as store, store.run("evaluate mcq", {"file": "q.csv"}) as run:
        requests = [GenerationRequest((Message("user", text),)) for text in ("what?", "fail")]
        RecordedModel(Model(), store, run).generate(requests)
        run.save_results("scores", [{"level": f"level {n}", "accuracy": n / 30} for n in range(30)])
    return run.id


def test_runs(climassay, run_id, tmp_path):
    out = done(climassay("runs"))
    line = next(line for line in out.splitlines() if run_id in line)
    assert line.split()[:4] == [run_id, "evaluate", "mcq", "done"]
    assert line.split()[-4:] == ["2", "1", "0", "unknown"]
    (run,) = json_of(climassay("runs", "--json"))
    assert (run["id"], run["sent"], run["failed"], run["cost"]) == (run_id, 2, 1, None)
    own = Model()
    own.name, own.fingerprint = "local:own", "cd" * 32
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as store, store.run("ask", {}) as run:
        RecordedModel(own, store, run).generate([GenerationRequest((Message("user", "what?"),))])
    line = next(line for line in done(climassay("runs")).splitlines() if run.id in line)
    assert "none (local model)" in line


def test_usage(climassay, run_id):
    out = done(climassay("usage", "--run", run_id))
    assert out.splitlines()[3].split() == ["openai:[test]", "ab" * 6, "2", "1", "2", "10", "2", "0", "unknown"]
    assert "openai:[test]: 1 of 2 calls failed: The server answered 400: no." in climassay("usage")[2]
    (usage,) = json_of(climassay("usage", "--json"))
    assert (usage["prompt_tokens"], usage["failed"], usage["unpriced"]) == (10, 1, 1)


def test_show_a_run(climassay, run_id):
    out = done(climassay("show", run_id))
    assert f"run {run_id}: evaluate mcq, done" in out
    assert "configuration:\n  file: q.csv\nseeds:" in out
    assert "level 19" in out
    assert "level 20" not in out
    assert "10 more rows" in out
    details = json_of(climassay("show", run_id, "--json"))
    assert len(details["results"]["scores"]) == 30
    assert "openai:[test]: 1 of 2 calls failed: The server answered 400: no." in out
    assert [one["reasons"] for one in details["calls"]] == [{"The server answered 400: no.": 1}]


def test_a_configuration_is_laid_out_in_lines(climassay, tmp_path):
    config = {"models": [{"name": "a", "dtype": None}, {"name": "b"}], "tasks": ["mcq", "cloze"], "no_cache": False}
    with (
        Records(f"sqlite:///{tmp_path}/records.sqlite") as store,
        store.run("evaluate run", config, {"plan": 3}) as run,
    ):
        pass
    out = done(climassay("show", run.id))
    lines = [
        "models 1:",
        "  name:  a",
        "  dtype: none",
        "models 2:",
        "  name: b",
        "tasks:    mcq, cloze",
        "no_cache: false",
    ]
    assert "\n".join(["configuration:", *(f"  {line}" for line in lines), "seeds:", "  plan: 3"]) in out
    assert json_of(climassay("show", run.id, "--json"))["config"] == config


def test_show_a_request(climassay, run_id, tmp_path):
    climassay("export", str(tmp_path / "all.jsonl"))
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    fine, failed = rows
    out = done(climassay("show", fine["key"][:10]))
    assert "prompt:\nwhat?" in out
    assert "[bold]fine[/bold]" in out
    assert "failed: The server answered 400: no." in climassay("show", failed["key"])[1]
    (answer,) = json_of(climassay("show", failed["key"], "--json"))
    assert answer["error"] == "The server answered 400: no."


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_export(climassay, run_id, tmp_path, ending):
    file = tmp_path / f"out.{ending}"
    code, out, err = climassay("export", str(file), "--run", run_id)
    assert (code, out) == (0, "")
    assert "2 answers written" in " ".join(err.split())
    assert file.stat().st_size > 100
    assert json_of(climassay("export", str(file), "--json")) == {"file": str(file), "answers": 2}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("show", "r12345678"), "There is no run r12345678"),
        (("show", "zz"), "neither a run"),
        (("usage", "--run", "nope"), "There is no run nope"),
        (("export", "out.doc"), "does not end in"),
        (("export", "out.csv", "--run", "nope"), "There is no run nope"),
        (("runs", "--records", "mysql://host/x"), "not in mysql"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_two(climassay, run_id, arguments, sentence):
    assert sentence in refused(climassay(*arguments), alone=False).splitlines()[-1]
