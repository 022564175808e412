"""The command line as a process of its own, killed as soon as something has happened, and what is left compared."""

import subprocess
import sys
import time
from collections.abc import Callable, Collection
from typing import Any

import pytest

START = (sys.executable, "-c", "from climassay.cli.main import main; main()")
"""Runs ``climassay`` with the arguments that follow."""
PATIENCE = 300.0
"""Seconds until something that should have happened has failed to."""
LOOK_EVERY = 0.005
"""Seconds between two looks: well below the time in which a killed command does one thing."""


def kill_when(happened: Callable[[], object], process: "subprocess.Popen[str]") -> str:
    """Kill a process as soon as something is true, and give what it wrote to stdout.

    The process has pipes for stdout and stderr, as text. One that ends before it is killed fails the test.
    """
    ends = time.monotonic() + PATIENCE
    while not happened() and process.poll() is None and time.monotonic() < ends:
        try:
            process.wait(timeout=LOOK_EVERY)
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    out, err = process.communicate()
    assert process.returncode == -9, err
    return out


def assert_same(found: Any, expected: Any, path: str = "", *, costs: Collection[str] = ()) -> None:
    """What is left is the same, but for the values of these keys.

    Batches, and with them the last digits of numbers, depend on where a run was cut.
    """
    if isinstance(expected, dict):
        assert isinstance(found, dict), path
        assert found.keys() == expected.keys(), path
        for name in expected.keys() - costs:
            assert_same(found[name], expected[name], f"{path}: {name}", costs=costs)
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{path}: {number}", costs=costs)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-3), path
    else:
        assert found == expected, path
