"""Commands that are killed and run again: they end as if they had never been killed, and ask nothing twice.

Kills that are tested elsewhere (docs/reliability.md names them) are not tested again.
``make faults`` kills more commands, at more points.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import done, run_command
from faults import inputs, samples
from faults.commands import COMMANDS, SHORT, walk
from faults.killing import SilencedServer, kill_between_answers
from faults.left_behind import left_by
from killed_process import START

FULL = os.environ.get("CLIMASSAY_FAULTS") == "full"
HERE = Path(__file__).parent
NAMES = ("evaluate run", "factcheck evidence", "generate screen", "judge rank")
KILLED_HERE = NAMES if FULL else NAMES[:1]
POINTS = (3, 5, 9) if FULL else (None,)
"""Answers after which the command is killed; None: drawn by the seed. The first may take three requests."""


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", KILLED_HERE)
def test_a_killed_command_ends_as_if_it_had_never_been_killed(name, point, tmp_path, monkeypatch, capsys):
    with SilencedServer(latency=0.02) as server:
        inputs.write_inputs(tmp_path, server.url)

        def arguments(life):
            return COMMANDS[name].filled(given=tmp_path, out=life / "out", w=life / "w", url=server.url)

        def run(life):
            """What is left, and what was asked for it."""
            server.asked.clear()
            (life / "out").mkdir(parents=True, exist_ok=True)
            out = done(run_command(monkeypatch, capsys, *arguments(life)))
            # One prompt may be asked for twice: for likely letters, and then for a written answer.
            return left_by(life, out), [(request.prompt, "logprobs" in request.body) for request in server.asked]

        expected, asked = run(tmp_path / "straight")
        needed = len(asked)
        assert len(set(asked)) == needed

        killed = tmp_path / "killed"
        (killed / "out").mkdir(parents=True)
        server.grant(point or random.Random(name).randint(3, 6))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen([*START, *arguments(killed)], **pipes, text=True) as process:
            kept = kill_between_answers(process, server, killed / "w")
        assert 0 < kept < needed

        found, asked = run(killed)
        assert found == expected
        assert len(asked) == len(set(asked)) == needed - kept
        assert run(killed) == (expected, [])


def test_a_killed_writer_leaves_no_half_file(tmp_path):
    command = [sys.executable, str(HERE / "killed_writers.py"), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) >= 9
    for name, fate in found.items():
        assert fate == {"ended": -9, "kept": True, "written": True}, name


def test_what_a_killed_writer_left_goes_with_a_later_writing(tmp_path):
    from climassay.io import STALE_SECONDS, write_file

    names = (".table[1].csv.123.new", ".table[1].csv.456.new", ".other.csv.123.new", ".table1.csv.123.new")
    for name in names:
        (tmp_path / name).write_bytes(b"half")
    for name in names[:1] + names[2:]:
        long_ago = (tmp_path / name).stat().st_mtime - 2 * STALE_SECONDS
        os.utime(tmp_path / name, (long_ago, long_ago))
    write_file(tmp_path / "table[1].csv", b"whole")
    # A fresh one may be another process's that is writing now.
    assert {path.name for path in tmp_path.iterdir()} == {"table[1].csv", *names[1:]}


def test_a_killed_publication_is_finished_by_the_next(tmp_path, monkeypatch, climassay):
    row = samples.QUESTIONS[0]
    rows = [row | {"id": f"q{n}", "question": f"What scatters light number {n}?"} for n in range(30)]
    (tmp_path / "questions.jsonl").write_bytes(samples.jsonl(rows))
    options = ("--data-only", "--name", "x", "--json", "-w", tmp_path / "w")
    command = ("generate", "publish", tmp_path / "questions.jsonl", *options)
    code, _, err = climassay(*command, "--output", tmp_path / "whole")
    assert code == 0, err
    expected = {path.relative_to(tmp_path / "whole"): path.read_bytes() for path in files_of(tmp_path / "whole")}
    for written in range(1, len(expected)):
        folder = tmp_path / f"killed{written}"
        die_after(monkeypatch, written)
        with pytest.raises(Killed):
            climassay(*command, "--output", folder)
        monkeypatch.undo()
        assert 0 < len(list(files_of(folder))) <= len(expected)
        done(climassay(*command, "--output", folder))
        found = {path.relative_to(folder): path.read_bytes() for path in files_of(folder)}
        assert found.keys() == expected.keys()


class Killed(BaseException):
    """What nothing in the program can catch and clean up after."""


def die_after(monkeypatch, written):
    import climassay.io.writing as room

    whole, count = room.write_file, []

    def write(place, data):
        if len(count) == written:
            raise Killed
        count.append(place)
        whole(place, data)

    monkeypatch.setattr(room, "write_file", write)


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_every_command_is_known_as_long_or_short():
    """``serve`` has no end: test_killed_server.py kills it."""
    commands = {name for name, _ in walk()} - {"serve"}
    unknown = commands - set(COMMANDS) - SHORT
    assert not unknown, f"enter {', '.join(sorted(unknown))} in tests/faults/commands.py, as long or short"
    assert SHORT.isdisjoint(COMMANDS)
    assert set(COMMANDS) | SHORT <= commands
