"""Commands that are killed and run again: they end as if they had never been killed, and ask nothing twice.

Kills that are tested elsewhere are not tested again; ``faults.commands.KILLED`` says where each long command's are.
``make faults`` kills more commands, at more points.
"""

import json
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from api_server import ApiServer, Behaviour
from command_line import run_command
from faults import samples
from faults.commands import KILLED, SHORT, walk
from faults.long_commands import EXPERIMENT
from published_sample import write_sample

FULL = os.environ.get("CLIMASSAY_FAULTS") == "full"
HERE = Path(__file__).parent


def questions(count):
    row = samples.QUESTIONS[0]
    return samples.jsonl([row | {"id": f"q{n}", "question": f"What scatters light number {n}?"} for n in range(count)])


def write_inputs(folder, url):
    (folder / "questions.jsonl").write_bytes(questions(12))
    (folder / "experiment.toml").write_text(EXPERIMENT.format(given=folder, url=url), encoding="utf-8")
    claims = [{"claim": f"Claim number {n} is true.", "evidence": ["Yes.", "No."]} for n in range(12)]
    (folder / "claims.jsonl").write_bytes(samples.jsonl(claims))
    (folder / "items.jsonl").write_bytes(samples.jsonl(samples.ITEMS))
    write_sample(folder)


SERVER = ("--base-url", "{url}", "--concurrency", "1")
COMMANDS = {
    "evaluate run": ("evaluate", "run", "{folder}/experiment.toml"),
    "factcheck-evidence": ("factcheck-evidence", "{folder}/claims.jsonl", "--model", "openai:test", *SERVER),
    "generate screen": ("generate", "screen", "{folder}/sample.jsonl", "--consistency", "openai:test", *SERVER),
    "judge rank": ("judge", "rank", "{folder}/items.jsonl", "--model", "openai:test", *SERVER, "--quality", "is long"),
}
POINTS = (2, 5, 9) if FULL else (None,)
"""Answers after which the command is killed; None: drawn by the seed."""
KILLED_HERE = list(COMMANDS) if FULL else ["evaluate run"]


def stored(workspace):
    """Answers that the records hold."""
    file = workspace / "records.sqlite"
    if not file.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as records:
            return records.execute("SELECT count(DISTINCT request) FROM answers WHERE error IS NULL").fetchone()[0]
    except sqlite3.OperationalError:  # the tables are being made
        return 0


def without_costs(value):
    """A result without what says when and at what cost it was found."""
    if isinstance(value, dict):
        told = {"run", "tally", "seconds", "usage", "asked", "stored", "computed", "served", "from_records", "cost"}
        return {name: without_costs(part) for name, part in value.items() if name not in told}
    return [without_costs(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", KILLED_HERE)
def test_a_killed_command_ends_as_if_it_had_never_been_killed(name, point, tmp_path, monkeypatch, capsys):
    point = point or random.Random(name).randint(2, 6)
    with ApiServer(Behaviour(latency=0.1)) as server:
        write_inputs(tmp_path, server.url)
        command = [part.format(folder=tmp_path, url=server.url) for part in COMMANDS[name]]

        def run(workspace):
            code, out, err = run_command(monkeypatch, capsys, *command, "--json", "-w", workspace)
            assert code == 0, err
            return without_costs(json.loads(out))

        expected = run(tmp_path / "straight")
        needed = len({request.prompt for request in server.asked})
        assert needed > point
        server.asked.clear()

        workspace = tmp_path / "killed"
        start = "import sys; from climassay.cli.main import main; main()"
        arguments = [sys.executable, "-c", start, *command, "--json", "-w", str(workspace)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            # An answer that has come may not be stored yet: a kill before the first one is stored shows nothing.
            while (len(server.asked) <= point or not stored(workspace)) and process.poll() is None:
                try:
                    process.wait(timeout=0.005)
                except subprocess.TimeoutExpired:
                    continue
            process.kill()
            _, err = process.communicate()
        assert process.returncode == -9, err.decode()
        kept = stored(workspace)
        assert 0 < kept < needed
        server.asked.clear()

        assert run(workspace) == expected
        asked = [request.prompt for request in server.asked]
        assert len(asked) == len(set(asked)) == needed - kept
        server.asked.clear()
        assert run(workspace) == expected
        assert not server.asked


def test_a_killed_writer_leaves_no_half_file(tmp_path):
    command = [sys.executable, str(HERE / "killed_writers.py"), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) >= 10
    for name, fate in found.items():
        assert fate == {"ended": -9, "kept": True, "written": True}, name


def test_what_a_killed_writer_left_goes_with_a_later_writing(tmp_path):
    from climassay.folder_files import STALE_SECONDS, write_file

    names = (".table[1].csv.123.new", ".table[1].csv.456.new", ".other.csv.123.new", ".table1.csv.123.new")
    for name in names:
        (tmp_path / name).write_bytes(b"half")
    for name in names[:1] + names[2:]:
        long_ago = (tmp_path / name).stat().st_mtime - 2 * STALE_SECONDS
        os.utime(tmp_path / name, (long_ago, long_ago))
    write_file(tmp_path / "table[1].csv", b"whole")
    # A fresh one may be another process's that is writing now.
    assert {path.name for path in tmp_path.iterdir()} == {"table[1].csv", *names[1:]}


def test_a_killed_publication_is_finished_by_the_next(tmp_path, monkeypatch, capsys):
    (tmp_path / "questions.jsonl").write_bytes(questions(30))
    command = ("publish", tmp_path / "questions.jsonl", "--data-only", "--name", "x", "--json", "-w", tmp_path / "w")
    code, _, err = run_command(monkeypatch, capsys, *command, "--output", tmp_path / "whole")
    assert code == 0, err
    expected = {path.relative_to(tmp_path / "whole"): path.read_bytes() for path in files_of(tmp_path / "whole")}
    for written in range(1, len(expected)):
        folder = tmp_path / f"killed{written}"
        die_after(monkeypatch, written)
        with pytest.raises(Killed):
            run_command(monkeypatch, capsys, *command, "--output", folder)
        monkeypatch.undo()
        assert 0 < len(list(files_of(folder))) <= len(expected)
        code, _, err = run_command(monkeypatch, capsys, *command, "--output", folder)
        assert code == 0, err
        found = {path.relative_to(folder): path.read_bytes() for path in files_of(folder)}
        assert found.keys() == expected.keys()


class Killed(BaseException):
    """What nothing in the program can catch and clean up after."""


def die_after(monkeypatch, written):
    import climassay.folder_files as room

    whole, count = room.write_file, []

    def write(place, data):
        if len(count) == written:
            raise Killed
        count.append(place)
        whole(place, data)

    monkeypatch.setattr(room, "write_file", write)


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_every_long_command_is_killed_somewhere():
    commands = {name for name, _ in walk()}
    unknown = commands - set(KILLED) - set(SHORT)
    assert not unknown, f"say in tests/faults/commands.py which test kills {', '.join(sorted(unknown))}"
    assert set(KILLED).isdisjoint(SHORT)
    assert set(KILLED) | set(SHORT) <= commands
    for place in KILLED.values():
        file, _, test = place.partition("::")
        text = (HERE.parents[1] / file).read_text(encoding="utf-8")
        assert f"def {test}(" in text if test else "SIGKILL" in text or ".kill()" in text, place
