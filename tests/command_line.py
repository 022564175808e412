"""Running the ``climassay`` command inside the test process. A pytest plugin."""

import json

import pytest


def run_command(monkeypatch, capsys, *arguments):
    """Exit code, stdout and stderr of ``climassay ARGUMENTS...``."""
    from climassay.cli.main import main

    monkeypatch.setattr("sys.argv", ["climassay", *map(str, arguments)])
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.fixture
def climassay(monkeypatch, capsys):
    """Runs a command, whose name is one text: ``climassay("records show", run, "--json")``."""
    return lambda name, *arguments: run_command(monkeypatch, capsys, *str(name).split(), *arguments)


def done(told):
    """What a command prints that ends well."""
    code, out, err = told
    assert code == 0, err
    return out


def json_of(told):
    """What a command prints as JSON that ends well."""
    return json.loads(done(told))


def refused(told, *, alone=True):
    """What a command says that refuses its input: exit code 2, nothing on stdout, one sentence, alone or at last."""
    code, out, err = told
    assert (code, out) == (2, ""), err
    said = err.splitlines()
    assert said[-1].startswith("climassay: "), err
    assert not any(line.startswith(("climassay: ", "Traceback")) for line in said[:-1]), err
    assert len(said) == 1 or not alone, err
    return err
