import json
from pathlib import Path

import pytest

from climassay.generation import write_drafts
from climassay.generation.publishing import read_dataset
from climassay.questions import read_questions
from command_line import done, json_of, refused
from generated_drafts import draft, rejected


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
    assert "1 freeform" in text


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
