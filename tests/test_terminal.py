"""What models, documents and servers write is shown on a terminal, and does not command it."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

import climassay
from climassay.cli.output import emit, print_json, print_note
from climassay.progress import Bars
from climassay.reporting.results import AssembledResult
from climassay.terminal import TerminalConsole, visible, visible_json

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b]52;c;cm0gLXJm\x07\u009b31m\x7f\u202ekcab\u2066 \ud83d \x00\r"
"""Title, clear screen, clipboard, a colour by one character of C1, letters backwards, half a character."""
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def test_control_characters_become_escapes_and_nothing_else_changes():
    assert visible("a\tb\nc – °C 中文 👩‍🔬\u200f") == "a\tb\nc – °C 中文 👩‍🔬\u200f"
    assert visible("\x1b[2J") == r"\x1b[2J"
    assert visible("\u202e\ud83d") == r"\u202e\ud83d"
    assert visible(visible(HOSTILE)) == visible(HOSTILE)


def test_json_keeps_its_values():
    text = json.dumps({"answer": HOSTILE}, ensure_ascii=False)
    assert not OBEYED.search(visible_json(text))
    assert json.loads(visible_json(text)) == {"answer": HOSTILE}


def test_results_notes_and_json_obey_nothing(capsys):
    emit(AssembledResult({"answer": HOSTILE}, printed_lines=(HOSTILE, Text(HOSTILE)), noted=(HOSTILE,)))
    emit(AssembledResult({"answer": HOSTILE}), as_json=True)
    print_json([HOSTILE])
    print_note(HOSTILE)
    out, err = capsys.readouterr()
    assert not OBEYED.search(out + err)
    assert r"\x1b]0;owned" in out
    assert r"\x1b]0;owned" in err


def test_tables_and_titles_obey_nothing():
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    file = io.StringIO()
    TerminalConsole(file=file, width=200, color_system=None).print(table)
    assert not OBEYED.search(file.getvalue())


def test_previews_statuses_and_bars_obey_nothing_but_the_bars():
    file = io.StringIO()
    bars = Bars(TerminalConsole(file=file, force_terminal=True, width=300))
    with bars.preview() as show:
        show(HOSTILE)
    with bars.status(HOSTILE), bars.task(HOSTILE, 2) as task:
        task.advance(1)
    bars.say(HOSTILE)
    shown = file.getvalue()
    assert r"\x1b]0;owned" in shown
    for sequence in ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\x00", "\u202e", "\ud83d"):
        assert sequence not in shown


@pytest.mark.parametrize("arguments", [("records", "show"), ("corpus", "list", "-w"), ("check",), ("no-such-command",)])
def test_errors_obey_nothing(arguments, climassay, tmp_path):
    argument = HOSTILE.replace("\x00", "").replace("\ud83d", "")
    file = tmp_path / "file"
    file.touch()
    code, out, err = climassay(*arguments, f"{file}/{argument}" if "-w" in arguments else argument)
    assert code == 2
    assert not OBEYED.search(out + err)


def test_no_console_is_made_elsewhere():
    """Every console of the package is one that shows control characters as escapes."""
    source = Path(climassay.__file__).parent
    made = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if re.search(r"(?<![\w])Console\(", path.read_text(encoding="utf-8"))
    }
    # Help texts are the package's own; a quiet console prints nothing.
    assert made <= {"terminal.py", "cli/help.py", "progress.py"}
