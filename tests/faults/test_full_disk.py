"""A disk that fills up under every command that writes: one sentence, and what was there before is as it was.

Where a file system in memory may be mounted, it is one with a few kilobytes left; else no file may grow beyond a few.
"""

import contextlib
import os
import resource
import subprocess
from pathlib import Path

import pytest

from climassay.generation import write_drafts
from command_line import run_command
from faults import samples
from generated_drafts import draft

LEFT = 2048
"""Bytes that are left."""
EARLIER = b"what was written before, when there was room\n"


class Disk:
    """A folder that can be filled."""

    def __init__(self, folder: Path, mounted: bool) -> None:
        self.folder, self._mounted = folder, mounted

    @contextlib.contextmanager
    def full(self):
        """Nothing more than a few bytes can be written here."""
        if self._mounted:
            ballast = self.folder / ".ballast"
            with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(b"\0" * 4096):
                    pass
            yield
            ballast.unlink()
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LEFT, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", str(folder)]
    with contextlib.suppress(FileNotFoundError):
        if os.geteuid() == 0 and subprocess.run(mounting, capture_output=True, check=False).returncode == 0:
            yield Disk(folder, mounted=True)
            subprocess.run(["umount", "-l", str(folder)], check=True)
            return
    yield Disk(folder, mounted=False)


@pytest.fixture
def files(tmp_path):
    """Inputs, on a disk with room."""
    content = {
        "questions.jsonl": samples.jsonl(samples.QUESTIONS * 20),
        "statements.jsonl": samples.statements(),
        "answers.jsonl": samples.jsonl(samples.ANSWERS * 40),
        "document.md": samples.markdown() * 40,
        "verdicts.csv": b"truth,said\n" + b"accurate,inaccurate\ncorrect,correct\n" * 200,
        "cloze.jsonl": samples.jsonl(samples.QUESTIONS[2:] * 6),
    }
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    write_drafts(tmp_path / "drafts.jsonl", [draft(number, "freeform") for number in range(30)])
    return tmp_path


WRITES = {
    "verdicts score csv": ("verdicts", "score", "{verdicts.csv}", "--truth", "truth", "--predicted", "said", "--csv"),
    "verdicts score html": ("verdicts", "score", "{verdicts.csv}", "--truth", "truth", "--predicted", "said", "--html"),
    "metrics score": ("metrics", "score", "{answers.jsonl}", "--metric", "bleu_char", "--output"),
    "generate screen": ("generate", "screen", "{drafts.jsonl}", "--output"),
    "confidence extract": ("confidence", "extract", "{document.md}", "--untagged", "--output"),
    "publish": ("publish", "{questions.jsonl}", "--data-only", "--output"),
    "prompts export": ("prompts", "export"),
    "generate init": ("generate", "init"),
    "evaluate init": ("evaluate", "init"),
}
"""Commands that write a file or folder, which is named last."""
FOLDERS = {"publish", "prompts export"}
NEW = {"generate init", "evaluate init"}
"""Commands that never write over a file."""


@pytest.mark.parametrize("name", list(WRITES))
def test_a_full_disk_is_one_sentence_and_leaves_earlier_files_alone(name, disk, files, monkeypatch, capsys):
    target = disk.folder / "out"
    if name in FOLDERS:
        target.mkdir()
    elif name not in NEW:
        target.write_bytes(EARLIER)
    arguments = [str(files / one[1:-1]) if one.startswith("{") else one for one in WRITES[name]]
    with disk.full():
        code, out, err = run_command(monkeypatch, capsys, *arguments, target, "--json")
        left = sorted(path.name for path in disk.folder.rglob("*") if path.is_file() and path.name != ".ballast")
    said = [line for line in err.splitlines() if line.startswith("climassay: ")]
    assert (code, len(said)) == (2, 1), f"exit {code}: {err[-1500:]}"
    assert "Traceback" not in err
    assert "make room" in said[0], said
    assert out == ""
    if name in FOLDERS:
        assert not [one for one in left if one.endswith((".new", ".part", ".tmp"))]
    elif name in NEW:
        assert left == []
    else:
        assert target.read_bytes() == EARLIER
        assert left == ["out"], "nothing half written stays behind"
    # With room, the same command ends well.
    code, _, err = run_command(monkeypatch, capsys, *arguments, target, "--json", *_force(name))
    assert code == 0, err


def _force(name):
    return ["--force"] if name == "publish" else []


def fill(url):
    """Write until there is no more room, and somewhat beyond."""
    from climassay.records import Records

    with Records(url) as store:
        for number in range(200):
            with store.run("evaluate mcq", {"number": number, "text": "x" * 5000}) as run:
                run.save_results("scores", [{"n": number, "text": "y" * 5000}])


def test_records_that_cannot_grow_are_told_and_keep_what_they_have(disk, files, monkeypatch, capsys):
    from climassay.errors import RecordsError
    from climassay.records import Records
    from climassay.records.queries import list_runs

    url = f"sqlite:///{disk.folder / 'records.sqlite'}"
    with Records(url) as store, store.run("evaluate mcq", {"n": 1}) as run:
        run.save_results("scores", [{"n": 1}])
    with disk.full():
        sentence = r"because the disk is full: make room|see whether the disk is full|cannot be opened"
        with pytest.raises(RecordsError, match=sentence):
            fill(url)
    with Records(url) as store:
        found = list_runs(store.database)
    assert found[0].command == "evaluate mcq"
    assert found[0].status == "done"
    code, out, _ = run_command(monkeypatch, capsys, "records", "runs", "-w", disk.folder, "--json")
    assert code == 0
    assert len(out) > 2


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(disk, monkeypatch):
    import numpy as np

    from climassay.models.file_digest import file_digest
    from climassay.models.kept_vectors import kept_vectors

    class Encoder:
        name, fingerprint, width = "local:words", "e" * 64, 4

        def encode(self, texts, *, role="passage", on_progress=None):
            return np.ones((len(texts), 4), dtype=np.float32)

    monkeypatch.setenv("CLIMASSAY_CACHE", str(disk.folder))
    with disk.full():
        vectors = kept_vectors([f"text {number}" * 50 for number in range(100)], Encoder(), folder="vectors")
        assert vectors.shape == (100, 4)
        assert len(file_digest(Path(__file__))) == 64
