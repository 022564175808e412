"""``climassay generate screen`` and ``generate checks``."""

import json

import pytest

from climassay.generation import read_drafts, write_drafts
from climassay.generation.screening import check_names
from command_line import done, refused
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
    assert "stopped by any" in out
    assert f"{marked} written." in err
    assert [draft.rejection.reason for draft in read_drafts(marked) if draft.rejection] == ["gathering option"]


def test_checks_are_switched_by_name(drafts, climassay):
    given = ("generate", "screen", drafts, "--json")
    _, out, _ = climassay(*given, "--without", "gathering option")
    assert json.loads(out)["stopped"] == 0
    _, out, _ = climassay(*given, "--only", "gathering option")
    found = json.loads(out)
    assert (found["drafts"], found["stopped"]) == (4, 1)
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

    model = ScriptedModel(lambda prompt, options: options[1])
    model.parameters = 135_000_000  # a small model: strong ones verify instead
    monkeypatch.setattr("climassay.models.provider.load_model", lambda *_, **__: model)
    given = ("generate", "screen", drafts, "--consistency", "local:scripted", "-w", tmp_path / "ws", "--json")
    for _ in range(2):
        out = done(climassay(*given))
        counts = {one["reason"]: one["found"] for one in json.loads(out)["checks"] if one["kind"] is None}
        assert counts == {"gathering option": 1, "self-inconsistency": 1}
    assert len(model.options) == 4


def test_the_checks_are_listed(climassay):
    out = done(climassay("generate checks"))
    assert all(name in out for name in check_names())
    _, out, _ = climassay("generate checks", "--json")
    assert [one["name"] for one in json.loads(out)] == list(check_names())
