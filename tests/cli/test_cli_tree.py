"""The tree of commands: names that commands had before, options with one name, results saved by the file's ending."""

import json

import pytest

from climassay.workspace import Workspace

OLD = {
    ("factcheck-run", "--help"): "factcheck run",
    ("factcheck-evidence", "--help"): "factcheck evidence",
    ("factcheck-head", "train", "--help"): "factcheck train",
    ("verdicts", "score", "--help"): "factcheck score",
    ("checks", "list", "--help"): "factcheck kept list",
    ("publish", "--help"): "generate publish",
    ("validator", "apply", "--help"): "generate validate apply",
    ("masker", "train", "--help"): "generate mask train",
    ("factcheck", "The sea rises.", "--help"): "check",
    ("factcheck", "check", "--help"): "check",
    ("factcheck", "-c", "ipcc", "--help"): "check",
    ("metrics", "train-entailment", "--help"): "metrics entailment train",
    ("metrics", "validate-entailment", "--help"): "metrics entailment evaluate",
    ("generate", "mask", "measure", "--help"): "generate mask evaluate",
    ("confidence", "tag", "statement", "--help"): "confidence tag apply",
}


@pytest.mark.parametrize(("words", "now"), OLD.items(), ids=lambda value: " ".join(value)[:30])
def test_an_old_name_answers_and_says_the_new_one(climassay, words, now):
    code, out, err = climassay(*words)
    assert code == 0
    assert f"climassay {now}" in out.splitlines()[0]
    assert now.split()[0] in err
    assert err.count("\n") == 1


def test_a_result_is_saved_in_several_forms_by_one_option(tmp_path, climassay):
    Workspace.open(tmp_path)
    files = [tmp_path / f"prompts.{ending}" for ending in ("csv", "json", "md", "html")]
    chosen = [part for file in files for part in ("-o", file)]
    code, out, err = climassay("prompts list", *chosen, "--json")
    assert (code, err) == (0, "")
    assert json.loads(files[1].read_text(encoding="utf-8")) == json.loads(out)
    assert all(file.stat().st_size for file in files)
    code, out, err = climassay("prompts list", "-o", tmp_path / "prompts.odt")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_the_old_options_for_files_still_save(tmp_path, climassay):
    page, rows = tmp_path / "p.html", tmp_path / "p.csv"
    assert climassay("prompts list", "--html", page, "--csv", rows)[0] == 0
    assert page.is_file()
    assert rows.is_file()
