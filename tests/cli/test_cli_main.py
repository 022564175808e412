"""What all commands share: names, options, output and exit codes."""

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from cyclopts import CycloptsError, Token

from climassay import __version__
from climassay.cli.main import app
from climassay.cli.output import progress_bars, stderr_console, stdout_console
from climassay.errors import ClimassayError
from climassay.workspace import Workspace
from command_line import done, refused
from faults.commands import arguments, walk


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
        "from climassay.cli.main import COMMANDS\n"
        "for commands in COMMANDS.values():\n"
        "    for place, _ in commands.values():\n        import_module('climassay.cli.' + place.partition(':')[0])\n"
        "heavy = {'torch', 'transformers', 'lancedb', 'openai', 'numpy', 'pyarrow', 'sqlalchemy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def groups(command, path=()):
    subcommands = {name: part for name, part in command.resolved_commands().items() if not name.startswith("-")}
    if subcommands:
        yield path, sorted(subcommands)
    for name, part in subcommands.items():
        yield from groups(part, (*path, name))


@pytest.mark.parametrize(("path", "names"), list(groups(app)), ids=str)
def test_help_lists_every_command_once(climassay, path, names):
    text = done(climassay(" ".join(path), "--help"))
    listed = re.findall(r"^  ([a-z][a-z-]*) ", text.partition("Arguments:")[0], re.MULTILINE)
    assert sorted(listed) == names


def test_every_option_has_a_description():
    missing = {
        f"{name} {option.name}" for name, app in walk() for option in arguments(app) if not option.parameter.help
    }
    assert missing == set()


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["corpsu"], "corpus"),
        (["corpus", "lst"], "list"),
        (["corpus", "list", "--worspace", "x"], "--workspace"),
        (["corpus", "add", "books"], "FILES"),
        (["check", "a claim", "--rounds", "few"], "--rounds"),
        (["evaluate", "mcq", "primer", "--passages", "0"], "-"),
    ],
)
def test_words_that_are_no_command_or_option_are_refused_with_a_suggestion(climassay, words, suggestion):
    assert suggestion in refused(climassay(words[0], *words[1:]))


def test_a_process_prints_the_version_and_ends_with_the_exit_code_of_an_error():
    def run(*arguments):
        command = [sys.executable, "-m", "climassay.cli.main", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr.count("\n")

    assert run("--version") == (0, f"climassay {__version__}\n", 0)
    assert run("prompts", "show", "nothing") == (2, "", 1)


def test_shell_completion_knows_the_commands():
    assert "corpus" in app.generate_completion(shell="bash")


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


def test_an_interrupt_says_how_to_go_on(monkeypatch, climassay):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("climassay.doctor.examine", interrupted)
    code, out, err = climassay("doctor")
    assert (code, out) == (130, "")
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
    with progress_bars().status(f"Loading {NAME} ..."), progress_bars().task(f"Asking {NAME}", total=2):
        pass
    assert f"Asking {NAME}" in capsys.readouterr().err


@pytest.mark.parametrize(("count", "shown"), [(0, False), (3, True)])
def test_work_of_unknown_length_leaves_no_open_bar(capsys, count, shown):
    with progress_bars().task("Keeping the answers") as task:
        task.advance(count)
    err = capsys.readouterr().err
    assert ("Keeping the answers" in err) == shown
    assert ("3/3" in err) == shown
    assert "/?" not in err


def test_the_quiet_wait_in_silence(capsys):
    with progress_bars().status("Loading ..."):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("option", ["--split", "--rounds", "--timeout", "--mediator"])
def test_none_is_no_value_of_an_option(climassay, option):
    assert option in refused(climassay("check", "The Sun warms the Earth.", "--plain", option, "none"))


@pytest.mark.parametrize("option", ["--entailment=none", "--no-screen=none", "--no-cache=null", "--split=none"])
def test_none_is_no_value_of_a_switch(climassay, option):
    assert option.partition("=")[0] in refused(climassay("check", "The Sun warms the Earth.", "--plain", option))


def test_none_is_refused_by_every_switch():
    switches = [
        f"{name} {option.name}=none"
        for name, command in walk()
        for option in command.assemble_argument_collection(default_parameter=app.default_parameter)
        if not option.children and {bool, type(None)} <= {option.hint, *get_args(option.hint)}
    ]
    assert switches
    for switch in switches:
        with pytest.raises(CycloptsError, match='"none" into bool'):
            app.parse_args(switch)


def test_none_is_refused_by_every_number_and_every_choice_without_it():
    accepted = []
    for name, command in walk():
        for option in command.assemble_argument_collection(default_parameter=app.default_parameter):
            members = {member for part in (option.hint, *get_args(option.hint)) for member in (part, *get_args(part))}
            if option.children or members & {str, Path, bool, "none"}:
                continue
            option.append(Token(keyword=option.name, value="none"))
            with contextlib.suppress(CycloptsError, ClimassayError):
                accepted.append(f"{name} {option.name}: {option.convert()}")
    assert not accepted
