"""What commands print is what is there: brackets in names and documents are not markup."""

import pytest

from climassay.cli.options import shown_progress, stderr_console, stdout_console

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


def test_the_quiet_wait_in_silence(capsys):
    with shown_progress(True).waiting("Loading ..."):
        pass
    assert capsys.readouterr().err == ""
