"""A disk that fills up under every command that writes: one sentence, and what was there before is as it was.

Where a file system in memory may be mounted, it is one with a few kilobytes left; else no file may grow beyond a few.
``make test-faults`` tries some commands; ``make faults`` every option that names a file to write, and workspaces that
fill up under every long command.
"""

import contextlib
import json
import os
import resource
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from api_server import ApiServer, Behaviour
from command_line import done, run_command
from faults import inputs, samples
from faults.commands import COMMANDS, ELSEWHERE, NAMED, SMALL, WRITES, offered
from faults.left_behind import left_by
from killed_process import assert_same

FULL = os.environ.get("CLIMASSAY_FAULTS") == "full"
LEFT = 2048
"""Bytes that a file may have where nothing can be mounted."""
EARLIER = b"what was written before, when there was room\n"


class Disk:
    """A folder that can be filled."""

    def __init__(self, folder: Path, mounted: bool) -> None:
        self.folder, self.mounted = folder, mounted

    @contextlib.contextmanager
    def full(self, left: int = 0):
        """Nothing more than these bytes, or a few, can be written here."""
        if self.mounted:
            ballast = self.folder / ".ballast"
            with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(b"\0" * 4096):
                    pass
            os.truncate(ballast, ballast.stat().st_size - left)
            yield
            ballast.unlink()
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LEFT + left, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def a_disk(folder: Path, megabytes: int = 2):
    """A folder that can be filled."""
    folder.mkdir(parents=True)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", str(folder)]
    with contextlib.suppress(FileNotFoundError):
        if os.geteuid() == 0 and subprocess.run(mounting, capture_output=True, check=False).returncode == 0:
            try:
                yield Disk(folder, mounted=True)
            finally:
                subprocess.run(["umount", "-l", str(folder)], check=True)
            return
    yield Disk(folder, mounted=False)


@pytest.fixture
def disk(tmp_path):
    with a_disk(tmp_path / "disk") as found:
        yield found


@pytest.fixture(scope="module")
def server():
    with ApiServer(Behaviour()) as running:
        yield running


@pytest.fixture(scope="module")
def given(tmp_path_factory, server):
    """Inputs, a small model and a workspace, on a disk with room."""
    from climassay.confidence.topics import write_topics
    from climate_tasks import write_tasks
    from debate_workspaces import make_model
    from planted_statements import planted, topics_of, write_statements

    folder = tmp_path_factory.mktemp("given")
    inputs.write_inputs(folder, server.url)
    (folder / "answers.jsonl").write_bytes(samples.jsonl(samples.ANSWERS * 40))
    (folder / "verdicts.csv").write_bytes(b"truth,said\n" + b"accurate,inaccurate\ncorrect,correct\n" * 200)
    (folder / "a.docx").write_bytes(samples.docx())
    statements = planted()
    write_statements(statements, folder / "planted.jsonl")
    write_topics(topics_of(statements, [n % 2 for n in range(len(statements))]), folder / "topics.json")
    make_model(folder / "model")
    (folder / "harness").mkdir()
    write_tasks(folder / "harness")
    shutil.copy(Path(__file__).parents[1] / "inspect_tasks.py", folder)
    inputs.make_workspace(folder / "w")
    keep_a_check(folder / "w")
    return folder


def keep_a_check(workspace: Path) -> None:
    from climassay.factcheck import CheckStore, DebateSettings, advocates_from_names
    from climassay.records import Records
    from climassay.workspace import Workspace
    from factcheck_transcripts import full_transcript

    with Records(Workspace.open(workspace).records_url) as records:
        checks = CheckStore(records)
        settings = DebateSettings(advocates_from_names(["ar6"]))
        checks.finish(checks.begin(full_transcript().claim, settings, setup="two"), full_transcript(), run="r1")


@pytest.fixture
def climassay(monkeypatch, climassay):
    """Runs a command in this process, on the API server of the tests."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return lambda *arguments: climassay(*arguments, "--json")


def sentences(err):
    return [line for line in err.splitlines() if line.startswith("climassay: ")]


def test_every_option_that_names_a_file_to_write_is_tried():
    unknown = offered() - set(WRITES) - set(ELSEWHERE)
    assert not unknown, f"enter {', '.join(sorted(unknown))} in tests/faults/commands.py"
    assert set(ELSEWHERE) <= offered()
    assert set(SMALL) <= set(WRITES)


@pytest.mark.parametrize("name", list(WRITES) if FULL else SMALL)
def test_a_full_disk_is_one_sentence_and_leaves_earlier_files_alone(name, disk, given, server, climassay):
    command, target = WRITES[name], WRITES[name].target(disk.folder)
    places = {"given": given, "w": given / "w", "url": server.url, "model": f"local:{given / 'model'}"}
    if command.before:
        out = done(climassay(*command.filled_before(**places)))
        places["run"] = json.loads(out).get("run")
    if command.folder:
        target.mkdir()
    elif not command.new:
        target.write_bytes(EARLIER)
    arguments = command.filled(target=disk.folder / "out", **places)
    with disk.full():
        code, out, err = climassay(*arguments)
        left = sorted(path.name for path in disk.folder.rglob("*") if path.is_file() and path.name != ".ballast")
    assert (code, len(sentences(err))) == (2, 1), f"exit {code}: {err[-1500:]}"
    assert "Traceback" not in err
    assert "free some space" in sentences(err)[0]
    assert out == ""
    if command.folder:
        assert not [one for one in left if one.endswith((".new", ".part", ".tmp"))]
    elif command.new:
        assert left == []
    else:
        assert target.read_bytes() == EARLIER
        assert left == [target.name], "nothing half written stays behind"
    # With room, the same command ends well.
    done(climassay(*arguments, *command.again.split()))
    assert any(target.iterdir()) if command.folder else target.read_bytes() != EARLIER


WORKSPACES = [name for name, command in COMMANDS.items() if "{w}" in command.arguments]


@pytest.mark.skipif(not FULL, reason="minutes of work: make faults")
@pytest.mark.parametrize("name", WORKSPACES)
def test_a_workspace_that_fills_up_under_a_command_is_told_and_the_command_goes_on_with_room(
    name, given, server, climassay, tmp_path
):
    places = {"given": given, "url": server.url, "model": f"local:{given / 'model'}"}
    if before := COMMANDS[name].filled_before(**places):
        assert climassay(*before)[0] == 0

    def run(life):
        code, out, err = climassay(*COMMANDS[name].filled(out=life / "out", w=life / "w", **places))
        return code, out, err

    def begin(life):
        (life / "out").mkdir(parents=True)
        shutil.copytree(given / "w", life / "w", dirs_exist_ok=True)
        return life

    whole = begin(tmp_path / "whole")
    code, out, err = run(whole)
    assert code == 0, err
    expected = left_by(whole, out)
    for left in (0, 200_000):
        with a_disk(tmp_path / f"{left}" / "w", megabytes=24) as disk:
            life = begin(tmp_path / f"{left}")
            with disk.full(left):
                code, out, err = run(life)
            assert "Traceback" not in err
            # A little room is enough for some; one only reads, for which there may be room at once.
            if code != 0 or (left == 0 and name != "generate publish"):
                assert (code, len(sentences(err)), out) == (2, 1, ""), f"exit {code}: {out}{err[-1500:]}"
                assert "free some space" in sentences(err)[0], err
                code, out, err = run(life)
            assert code == 0, err
            assert_same(left_by(life, out), expected, f"{name} with {left} bytes left")


SHORT = {
    "ask": f"ask 'Why does it warm?' -c book --min-cosine -1 {NAMED}",
    "annotate open": "annotate open silver --overlap 2",
    "annotate import": "annotate import silver {given}/annotations.jsonl",
    "corpus remove": "corpus remove book 'Principles of Physical Climate'",
    "users add": "users add anna",
    "users remove": "users remove bob",
}


@pytest.mark.parametrize("name", list(SHORT) if FULL else ["corpus remove", "users add"])
def test_a_short_command_that_writes_to_a_full_workspace_is_one_sentence(name, given, server, climassay, tmp_path):
    with a_disk(tmp_path / "w", megabytes=24) as disk:
        shutil.copytree(given / "w", disk.folder, dirs_exist_ok=True)
        assert climassay("users", "add", "bob", "-w", disk.folder)[0] == 0
        done(climassay("annotate", "export", "silver", "-o", given / "annotations.jsonl", "-w", disk.folder))
        arguments = [part.format(given=given, url=server.url) for part in shlex.split(SHORT[name])]
        with disk.full():
            code, out, err = climassay(*arguments, "-w", disk.folder)
        assert (code, len(sentences(err)), out) == (2, 1, ""), f"exit {code}: {out}{err[-1500:]}"
        assert "Traceback" not in err
        assert "free some space" in sentences(err)[0]
        done(climassay(*arguments, "-w", disk.folder))


def fill(url):
    """Write until there is no more room, and somewhat beyond."""
    from climassay.records import Records

    with Records(url) as store:
        for number in range(200):
            with store.run("evaluate mcq", {"number": number, "text": "x" * 5000}) as run:
                run.save_results("scores", [{"n": number, "text": "y" * 5000}])


def test_records_that_cannot_grow_are_told_and_keep_what_they_have(disk, monkeypatch, capsys):
    from climassay.errors import RecordsError
    from climassay.records import Records
    from climassay.records.queries import list_runs

    url = f"sqlite:///{disk.folder / 'records.sqlite'}"
    with Records(url) as store, store.run("evaluate mcq", {"n": 1}) as run:
        run.save_results("scores", [{"n": 1}])
    with disk.full():
        sentence = r"because the disk is full: free some space|see whether the disk is full|cannot be opened"
        with pytest.raises(RecordsError, match=sentence):
            fill(url)
    with Records(url) as store:
        found = list_runs(store.database)
    assert found[0].command == "evaluate mcq"
    assert found[0].status == "done"
    out = done(run_command(monkeypatch, capsys, "records", "runs", "-w", disk.folder, "--json"))
    assert len(out) > 2


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(disk, monkeypatch):
    import numpy as np

    from climassay.models.bundled import file_digest
    from climassay.models.encoders import cached_vectors

    class Encoder:
        name, fingerprint, width = "local:words", "e" * 64, 4

        def encode(self, texts, *, role="passage", on_progress=None):
            return np.ones((len(texts), 4), dtype=np.float32)

    monkeypatch.setenv("CLIMASSAY_CACHE", str(disk.folder))
    with disk.full():
        vectors = cached_vectors([f"text {number}" * 50 for number in range(100)], Encoder(), folder="vectors")
        assert vectors.shape == (100, 4)
        assert len(file_digest(Path(__file__))) == 64
