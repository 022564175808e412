"""The commands of ``climassay generate``: checks, screening, validators, publication; and files that a user edits."""

import json
from pathlib import Path

import pytest

from climassay.errors import ModelError
from climassay.evaluation import load_plan
from climassay.generation import (
    Decision,
    Draft,
    Origin,
    SourcePassage,
    Wording,
    load_recipe,
    read_dataset,
    read_drafts,
    write_drafts,
)
from climassay.generation.screening import check_names
from climassay.prompts import load_prompt, prompt_names
from climassay.questions import read_questions
from command_line import done, json_of, refused, run_command
from generated_drafts import draft, rejected
from screened_drafts import OPTIONS, cloze, freeform, mcq


@pytest.fixture
def drafts(tmp_path):
    file = tmp_path / "drafts.jsonl"
    write_drafts(file, [mcq(), mcq(options=(*OPTIONS[:3], "All of the above"), id="x"), freeform(), cloze()])
    return file


def test_drafts_are_marked_and_counted(drafts, tmp_path, climassay):
    marked = tmp_path / "marked" / "drafts.jsonl"
    code, out, err = climassay("generate screen", drafts, "-o", marked)
    assert code == 0
    assert "gathering option" in out
    assert "any fault" in out
    assert f"{marked} written." in err
    assert [draft.rejection.reason for draft in read_drafts(marked) if draft.rejection] == ["gathering option"]


def test_checks_are_switched_by_name(drafts, climassay):
    given = ("generate", "screen", drafts, "--json")
    _, out, _ = climassay(*given, "--without", "gathering option")
    assert json.loads(out)["rejected"] == 0
    _, out, _ = climassay(*given, "--only", "gathering option")
    found = json.loads(out)
    assert (found["drafts"], found["rejected"]) == (4, 1)
    assert {one["reason"] for one in found["checks"]} == {"gathering option"}
    assert "no check called 'nothing'" in refused(climassay(*given, "--only", "nothing"))


def test_question_files_and_the_primer_are_read_too(tmp_path, climassay):
    file = tmp_path / "questions.jsonl"
    row = {
        "kind": "freeform",
        "question": "What does Figure 2 show?",
        "answer": "Ice.",
        "passage": "Ice floats on water.",
    }
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    out = done(climassay("generate screen", file, "--json"))
    assert "figure reference" in {one["reason"] for one in json.loads(out)["checks"]}
    out = done(climassay("generate screen primer", "--json"))
    assert json.loads(out)["drafts"] == 120


@pytest.mark.parametrize("content", [None, "no,question\n1,2\n", ""], ids=["missing", "other table", "empty"])
def test_what_is_no_file_of_questions_is_refused_in_a_sentence(content, tmp_path, climassay):
    file = tmp_path / "file.csv"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    refused(climassay("generate screen", file))


def test_self_consistency_asks_the_model_once_and_keeps_its_answers(drafts, tmp_path, monkeypatch, climassay):
    from scripted_model import ScriptedModel

    def verify(_prompt, schema):
        answers = schema["properties"]["answer"]["enum"]
        found = {"missing": "", "reasoning": "So it is.", "answer": answers[-1], "also_right": [], "flaw": "none"}
        return json.dumps({name: found[name] for name in schema["properties"]})

    model = ScriptedModel(write=verify)
    monkeypatch.setattr("climassay.models.provider.load_model", lambda *_, **__: model)
    given = ("generate", "screen", drafts, "--consistency", "local:scripted", "-w", tmp_path / "ws", "--json")
    for _ in range(2):
        out = done(climassay(*given))
        counts = {one["reason"]: one["total"] for one in json.loads(out)["checks"] if one["kind"] is None}
        assert counts == {"gathering option": 1, "self-inconsistency": 1, "beside the question": 1}
    assert len(model.texts) == 2


def test_the_checks_are_listed(climassay):
    out = done(climassay("generate checks"))
    assert all(name in out for name in check_names())
    _, out, _ = climassay("generate checks", "--json")
    assert [one["name"] for one in json.loads(out)] == list(check_names())


@pytest.fixture
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))


def labelled_drafts(count, *, labelled):
    for number in range(count):
        valid = number % 3 != 0
        answer = f"Warm water number {number} rises." if valid else "Bananas are sold on Mondays."
        text = f"Warm water number {number} rises, and cold water number {number} sinks in its place."
        decision = Decision("expert", "anna", valid, "" if valid else "wrong answer")
        yield Draft(
            f"q{number}",
            "freeform",
            "base",
            Wording(f"What does warm water number {number} do?", answer),
            (SourcePassage(f"p{number}", text, "d", "A book"),),
            Origin("local:test", "f" * 64, (), 0),
            (decision,) if labelled else (),
        )


@pytest.fixture
def labels(tmp_path):
    file = tmp_path / "labels.jsonl"
    write_drafts(file, labelled_drafts(36, labelled=True))
    return file


@pytest.mark.usefixtures("_own_cache")
def test_train_show_and_apply(tmp_path, climassay, labels):
    file, html = tmp_path / "validator", tmp_path / "report.html"
    data = json_of(
        climassay("generate validate train", labels, "-o", file, "--precision", 0.9, "--html", html, "--json")
    )
    assert data["evaluation"]["auroc"]["value"] > 0.9
    assert data["source"]["items"] == 36
    assert data["threshold"]["precision"]["value"] >= 0.9
    page = html.read_text(encoding="utf-8")
    assert "Do the probabilities mean what they say?" in page
    assert "Why questions were rejected" in page

    shown = json_of(climassay("generate validate show", file, "--json"))
    assert (shown["kind"], shown["trained_on"], shown["threshold"]) == ("features", 36, data["threshold"])

    given, decided = tmp_path / "new.jsonl", tmp_path / "decided.jsonl"
    write_drafts(given, labelled_drafts(6, labelled=False))
    out = done(climassay("generate validate apply", file, given, "-o", decided))
    assert "Decisions of validator" in out
    accepted = [draft.decisions[-1].accepted for draft in read_drafts(decided)]
    assert accepted == [False, True, True, False, True, True]

    err = refused(climassay("generate validate evaluate", file, labels))
    assert "was trained on all questions" in " ".join(err.split())
    others = tmp_path / "others.jsonl"
    write_drafts(others, labelled_drafts(48, labelled=True))
    one_sided = tmp_path / "valid.jsonl"
    write_drafts(one_sided, [draft for draft in labelled_drafts(48, labelled=True) if draft.decisions[-1].accepted])
    err = refused(climassay("generate validate evaluate", file, one_sided))
    assert "a validator is measured on both kinds" in " ".join(err.split())
    measured = json_of(climassay("generate validate evaluate", file, others, "--json"))
    assert (measured["trained_on"], measured["evaluation"]["n"]) == (36, 12)
    some = json_of(climassay("generate validate evaluate", file, others, "--include-trained", "--limit", 30, "--json"))
    assert (some["trained_on"], some["evaluation"]["n"]) == (0, 30)
    assert measured["evaluation"]["auroc"]["value"] > 0.9


@pytest.mark.usefixtures("_own_cache")
@pytest.mark.usefixtures("_own_cache")
@pytest.mark.parametrize("field", [None, "botany"])
def test_the_science_reaches_what_is_trained_on(tmp_path, monkeypatch, climassay, field, labels):
    uploads = []

    def refused(model, training, state, **options):
        uploads.append(training.decode())
        raise ModelError("The server takes no files.")

    monkeypatch.setattr("climassay.generation.validation.training.fine_tune", refused)
    options = () if field is None else ("--field", field)
    arguments = ("-o", tmp_path / "state.json", "--method", "api", "-m", "openai:small", *options)
    code, _, err = climassay("generate validate train", labels, *arguments)
    assert code == ModelError.exit_code
    assert "takes no files" in err
    [lines] = [upload.splitlines() for upload in uploads]
    assert all(f"an examination in {field or 'climate science'}." in line for line in lines)


@pytest.mark.usefixtures("_own_cache")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "missing.jsonl", "-o", "x"), "There is no file"),
        (("train", "LABELS", "-o", "x", "--method", "api"), "write openai:NAME"),
        (("train", "LABELS", "-o", "nowhere/x"), "The folder of nowhere/x does not exist"),
    ],
    ids=["no labels", "api", "folder"],
)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, climassay, labels, arguments, words):
    monkeypatch.chdir(tmp_path)
    given = [labels if argument == "LABELS" else argument for argument in arguments]
    assert words in refused(climassay("generate validate", *given))


def write_silver(folder: Path) -> Path:
    made = [draft(number, kind) for number, kind in enumerate(["mcq", "freeform", "cloze"] * 10)]
    file = folder / "silver.jsonl"
    write_drafts(file, [*made, rejected(draft(90))])
    return file


def test_drafts_become_a_dataset_with_tasks_on_its_test_split(climassay, tmp_path):
    out = tmp_path / "out"
    told = json_of(climassay("generate publish", write_silver(tmp_path), "-o", out, "--json"))
    assert told["name"] == told["dataset"]["name"] == "silver"
    assert told["parts"] == ["inspect", "lm-eval"]
    counts = told["dataset"]["counts"]
    assert sum(sum(own.values()) for own in counts.values()) == 30
    assert told["dataset"]["rejected"] == 1
    assert told["counts"] == {kind: own["test"] for kind, own in counts.items() if own.get("test")}
    asked = {question.id for question in read_questions(out / "data/questions.jsonl").questions}
    test = {
        question.id
        for kind in told["counts"]
        for question in read_questions(out / f"data/{kind}/test.parquet").questions
    }
    assert asked == test


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_steps_in_any_order_give_the_same_folder(climassay, tmp_path):
    file = write_silver(tmp_path)
    for name, runs in {
        "at once": [[]],
        "later": [["--data-only"], ["--lm-eval"], ["--inspect"]],
        "again": [[], []],
    }.items():
        for options in runs:
            done(climassay("generate publish", file, "-o", tmp_path / name, *options))
    assert contents(tmp_path / "later") == contents(tmp_path / "at once") == contents(tmp_path / "again")


def test_a_published_folder_is_published_again(climassay, tmp_path):
    climassay("generate publish", write_silver(tmp_path), "-o", tmp_path / "one", "--data-only")
    done(climassay("generate publish", tmp_path / "one", "-o", tmp_path / "two", "--data-only", "--name", "silver"))
    assert read_dataset(tmp_path / "one") == read_dataset(tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    climassay("generate publish primer", "-o", tmp_path / "three", "--data-only")
    text = done(climassay("generate publish", tmp_path / "three", "-o", tmp_path / "four", "--data-only", "--json"))
    assert sum(json.loads(text)["dataset"]["counts"]["mcq"].values()) == 60


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--splits", "0.8,0.1"], "three numbers"),
        (["--splits", "2,2,2"], "let one split be -1"),
        (["--data-only", "--inspect"], "one or the other"),
        (["--push", "nowhere"], "OWNER/NAME"),
        (["--name", "With Spaces"], "lower-case"),
    ],
    ids=["two", "sizes", "both", "push", "name"],
)
def test_what_cannot_be_done_is_said_before_anything_is_written(climassay, tmp_path, options, word):
    file = write_silver(tmp_path)
    err = refused(climassay("generate publish", file, "-o", tmp_path / "out", *options))
    assert word in err
    assert not (tmp_path / "out").exists()


def test_tasks_are_not_left_behind_by_other_data(climassay, tmp_path):
    file, out = write_silver(tmp_path), tmp_path / "out"
    climassay("generate publish", file, "-o", out)
    assert "leave behind" in refused(climassay("generate publish", file, "-o", out, "--data-only"))


def test_rows_that_cannot_be_used_are_told(climassay, tmp_path):
    file = tmp_path / "some.csv"
    file.write_text("Question,Answer\nWhat warms?,Carbon dioxide.\nWhat cools?,\n")
    code, text, err = climassay("generate publish", file, "-o", tmp_path / "out", "--data-only")
    assert code == 0
    assert "1 row left out, the first: row 2" in err
    assert "without the line of column names" in err
    assert "1 freeform" in text
    assert "No freeform question is in the test split" in err
    _, text, err = climassay("generate publish", file, "-o", tmp_path / "all", "--data-only", "--splits", "0,0,1")
    assert "(1 test)" in text
    assert "test split" not in err


def test_push(monkeypatch, climassay, tmp_path):
    HfApi = pytest.importorskip("huggingface_hub").HfApi
    sent = []
    monkeypatch.setattr(HfApi, "create_repo", lambda self, name, **rest: f"https://hub/{name}")
    monkeypatch.setattr(HfApi, "upload_folder", lambda self, **rest: sent.append(sorted(contents(tmp_path / "out"))))
    text = done(
        climassay("generate publish", write_silver(tmp_path), "-o", tmp_path / "out", "--push", "me/silver", "--json")
    )
    assert json.loads(text)["pushed"] == "https://hub/me/silver"
    assert {"README.md", "drafts.jsonl", "eval.yaml"} <= set(sent[0])


@pytest.mark.parametrize(("command", "read"), [("evaluate", load_plan), ("generate", load_recipe)])
def test_init_writes_a_file_that_can_be_read_and_never_overwrites(monkeypatch, capsys, tmp_path, command, read):
    file = tmp_path / "new" / "file.toml"
    assert run_command(monkeypatch, capsys, command, "init", file)[0] == 0
    assert read(file)
    file.write_text("mine", encoding="utf-8")
    err = refused(run_command(monkeypatch, capsys, command, "init", file))
    assert "exists already" in err
    assert file.read_text(encoding="utf-8") == "mine"


def test_prompts_are_listed_shown_and_written_where_none_are(climassay, tmp_path):
    listed = json_of(climassay("prompts list", "--json"))
    assert [one["name"] for one in listed] == list(prompt_names())
    name = listed[0]["name"]
    assert climassay("prompts show", name)[1] == load_prompt(name).source

    out = done(climassay("prompts export", tmp_path / "prompts", "--json"))
    files = [path for path in (tmp_path / "prompts").rglob("*") if path.is_file()]
    assert len(json.loads(out)["written"]) == len(listed) == len(files)
    files[0].write_text("mine", encoding="utf-8")
    assert json_of(climassay("prompts export", tmp_path / "prompts", "--json")) == {"written": []}
    assert files[0].read_text(encoding="utf-8") == "mine"
