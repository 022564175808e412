"""A harvest killed at any moment loses one piece of work at most, and processes may harvest side by side."""

import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import counting_model
from climassay.learning import ActivationStore, harvest
from climassay.learning.harvest import ActivationSetting
from counting_model import CountingModel, ask, expected_states, texts_of

pytestmark = pytest.mark.process

COUNT, SHARD = 120, 6


def start(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, str(counting_model.__file__), str(folder), str(COUNT), str(SHARD)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def allow(process: "subprocess.Popen[str]", results: int) -> None:
    """Let it go on past so many results; it waits for a line after each."""
    assert process.stdin is not None
    process.stdin.write("\n" * results)
    process.stdin.flush()


def stored(folder: Path) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a shard is there whole or not at all
        return len(ActivationStore(folder).section(ActivationSetting("7" * 64, "float32", (-1,), 384)))


def check_complete(folder: Path) -> None:
    found = harvest(CountingModel(), ask(*texts_of(COUNT)), store=ActivationStore(folder), shard=SHARD)
    assert (found.stored, found.computed) == (COUNT, 0)
    np.testing.assert_array_equal(found.states, expected_states(texts_of(COUNT)))


def test_a_killed_harvest_loses_one_piece_at_most(tmp_path: Path) -> None:
    draw = random.Random(3)
    before = 0
    for _ in range(5):
        with start(tmp_path) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == f"{before}\n"
            seen, free = draw.randint(2, 14), draw.randint(0, 6)
            allow(process, 1 + seen + free)
            for _ in range(seen):
                assert process.stdout.readline() == "1\n"
            # It now computes up to ``free`` results more, or writes a shard, or waits: the kill falls anywhere.
            process.kill()
        assert process.returncode == -9
        after = stored(tmp_path)
        # The result seen last may complete a piece that is not written yet: one piece is lost beside it at most.
        assert before + seen - SHARD <= after <= before + seen + free + 1
        assert after >= before
        before = after
    assert 0 < before < COUNT
    with start(tmp_path) as process:
        allow(process, COUNT + 1)
        out, _ = process.communicate()
    assert out.splitlines()[-1] == f"found {before} {COUNT - before}"
    check_complete(tmp_path)


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_that_harvest_the_same_at_once_agree(tmp_path: Path, processes: int) -> None:
    running = [start(tmp_path) for _ in range(processes)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"  # none of them has found anything: all compute everything
    for process in running:
        allow(process, COUNT + 1)
    for process in running:
        out, _ = process.communicate()
        assert out.splitlines()[-1] == f"found 0 {COUNT}"
    assert stored(tmp_path) == COUNT
    assert len(list(tmp_path.rglob("*.safetensors"))) == processes * COUNT // SHARD
    assert list(tmp_path.rglob("*.part")) == []
    check_complete(tmp_path)
