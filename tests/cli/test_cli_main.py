"""What all commands share: names, options, output and exit codes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from climassay import __version__
from climassay.cli.main import app
from climassay.cli.options import shown_progress, stderr_console, stdout_console
from climassay.workspace import Workspace
from command_line import refused, run_command
from faults.commands import walk


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['climassay', '--help']\n"
        "from climassay.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'lancedb', 'openai', 'numpy', 'sqlalchemy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    for command in ("ask", "corpus", "models", "records", "evaluate", "judge", "demo", "prompts"):
        assert command in result.stdout


def test_the_help_of_no_group_imports_numpy_or_a_network():
    code = (
        "import sys\n"
        "from importlib import import_module\n"
        "from climassay.cli.main import HEADINGS\n"
        "for commands in HEADINGS.values():\n"
        "    for place, _ in commands.values():\n        import_module('climassay.cli.' + place.partition(':')[0])\n"
        "heavy = {'torch', 'transformers', 'lancedb', 'openai', 'numpy', 'pyarrow', 'sqlalchemy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def groups(command, path=()):
    if isinstance(command, TyperGroup):
        yield path
        for name, part in command.commands.items():
            yield from groups(part, (*path, name))


@pytest.mark.parametrize("path", list(groups(get_command(app))), ids=" ".join)
def test_help_cuts_no_line_and_shows_every_command_once(path):
    text = CliRunner().invoke(app, [*path, "--help"]).output
    assert not re.search(r"\.\.\.$", text.partition("\n\n")[2], re.MULTILINE)
    group = get_command(app)
    for name in path:
        group = group.commands[name]
    listed = re.findall(r"^  ([a-z][a-z-]*)  ", text, re.MULTILINE)
    assert sorted(listed) == sorted(name for name, command in group.commands.items() if not command.hidden)


def test_the_first_help_has_a_line_for_each_command_and_usage_shows_arguments_in_capitals():
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    helps = text.partition("First steps")[2]
    assert re.findall(r"^ {4,}\S.*", helps, re.MULTILINE) == []
    for path, command in walk():
        for argument in (one for one in command.params if one.param_type_name == "argument"):
            assert re.fullmatch(r"[A-Z_]+(\|[A-Z_]+|\|-|\|)*", argument.metavar), path


def test_a_process_prints_the_version_and_ends_with_the_exit_code_of_an_error():
    def run(*arguments):
        command = [sys.executable, "-m", "climassay.cli.main", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr.count("\n")

    assert run("--version") == (0, f"climassay {__version__}\n", 0)
    assert run("prompts", "show", "nothing") == (2, "", 1)


def test_shell_completion_knows_the_commands():
    command = Path(sys.executable).with_name("climassay")
    asked = {"_CLIMASSAY_COMPLETE": "complete_bash", "COMP_WORDS": "climassay cor", "COMP_CWORD": "1"}
    result = subprocess.run([command], capture_output=True, text=True, check=False, env=os.environ | asked)
    assert result.stdout.split() == ["corpus"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["evaluate", "mcq", "missing.csv"], "no file at"),
        (["evaluate", "mcq", "primer", "--setting", "magic"], "no setting"),
        (["ask", "Why?", "--collection", "nowhere"], "no collection"),
        (["ask", " ", "--collection", "nowhere"], "collection"),
        (["prompts", "show", "nothing"], "no prompt"),
    ],
)
def test_bad_input_gives_one_sentence_and_exit_code_2(tmp_path, monkeypatch, climassay, arguments, word):
    monkeypatch.chdir(tmp_path)
    assert word in refused(climassay(*arguments))


def test_an_interrupt_says_how_to_go_on(monkeypatch, capsys):
    import typer

    from climassay.cli import main

    def interrupted():
        raise KeyboardInterrupt

    app = typer.Typer()
    app.command()(interrupted)
    monkeypatch.setattr(main, "app", app)
    code, out, err = run_command(monkeypatch, capsys)
    assert code == 130
    assert out == ""
    assert err.count("run the same command again") == 1


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


NAME = "local:models/[red]new[/blue]:smile:"


@pytest.mark.parametrize("console", [stdout_console, stderr_console])
def test_brackets_are_printed(console, capsys):
    console().print(f"{NAME} is there")
    said = capsys.readouterr()
    assert f"{NAME} is there" in (said.out or said.err)


def test_brackets_are_no_markup_of_what_is_waited_for(capsys):
    with shown_progress(False).waiting(f"Loading {NAME} ..."), shown_progress(False).task(f"Asking {NAME}", total=2):
        pass
    assert f"Asking {NAME}" in capsys.readouterr().err


@pytest.mark.parametrize(("count", "shown"), [(0, False), (3, True)])
def test_work_of_unknown_length_leaves_no_open_bar(capsys, count, shown):
    with shown_progress(False).task("Keeping the answers") as task:
        task.advance(count)
    err = capsys.readouterr().err
    assert ("Keeping the answers" in err) == shown
    assert ("3/3" in err) == shown
    assert "/?" not in err


def test_the_quiet_wait_in_silence(capsys):
    with shown_progress(True).waiting("Loading ..."):
        pass
    assert capsys.readouterr().err == ""
