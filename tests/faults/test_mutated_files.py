"""Damaged files of every kind, to every reader: read, or refused in one sentence, in bounded time and memory.

``make faults`` gives each reader 500 files, the ordinary run a few; the damage is the same in every run.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.mutations import mutated
from faults.readers import readers

FULL = os.environ.get("CLIMASSAY_FAULTS") == "full"
FILES = 500 if FULL else 5
MEGABYTES = 3000
"""Address space that the reading process may take beyond what its libraries have taken."""
PROCESS = Path(__file__).with_name("reading_process.py")


class ReadingProcess:
    """Reads files in a process of its own; where one kills it, the next one is read by a new process."""

    def __init__(self) -> None:
        self._process = self._started()

    def _started(self) -> "subprocess.Popen[str]":
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(PROCESS), str(MEGABYTES)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, text=True, env=environment, **pipes)

    def read(self, reader: str, path: Path) -> dict[str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"reader": reader, "path": str(path)}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        died = self._process.wait()
        self._process = self._started()
        return {"outcome": "hang" if died == -14 else f"died of signal {-died}"}

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def process():
    process = ReadingProcess()
    yield process
    process.close()


@pytest.mark.parametrize("name", list(readers()))
def test_a_damaged_file_is_read_or_refused_in_one_sentence(name, process, tmp_path):
    reader = readers()[name]
    sample = reader.sample()
    path = tmp_path / reader.file
    path.write_bytes(sample)
    assert process.read(name, path)["outcome"] == "read", "the file is to be readable before it is damaged"
    outcomes = []
    for seed in range(FILES):
        path.write_bytes(mutated(sample, reader.kind, seed))
        answer = process.read(name, path)
        assert answer["outcome"] in ("read", "refused"), f"seed {seed}: {answer}"
        outcomes.append(answer["outcome"])
    assert len(outcomes) == FILES


def test_the_damage_is_the_same_in_every_run_and_does_damage():
    for reader in list(readers().values())[:20]:
        sample = reader.sample()
        made = [mutated(sample, reader.kind, seed) for seed in range(8)]
        assert made == [mutated(sample, reader.kind, seed) for seed in range(8)]
        assert sum(one != sample for one in made) >= 5
