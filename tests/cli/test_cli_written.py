"""Commands that write what a user then edits: an experiment, a recipe, the prompts."""

import json

import pytest

from climassay.evaluation.experiment_file import load_plan
from climassay.generation.recipe import load_recipe
from climassay.prompts import load_prompt, prompt_names
from command_line import done, json_of, refused, run_command


@pytest.mark.parametrize(("command", "read"), [("evaluate", load_plan), ("generate", load_recipe)])
def test_init_writes_a_file_that_can_be_read_and_never_overwrites(monkeypatch, capsys, tmp_path, command, read):
    file = tmp_path / "new" / "file.toml"
    assert run_command(monkeypatch, capsys, command, "init", file)[0] == 0
    assert read(file)
    file.write_text("mine", encoding="utf-8")
    err = refused(run_command(monkeypatch, capsys, command, "init", file))
    assert "is there already" in err
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
