"""The command line as a process of its own, killed as soon as something has happened, and what is left compared."""

import subprocess
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

import pytest

from patience import LOOK_EVERY, until

START = (sys.executable, "-c", "from climassay.cli.main import main; main()")
"""Runs ``climassay`` with the arguments that follow."""


def kill_when(happened: Callable[[], object], process: "subprocess.Popen[str]") -> str:
    """Kill a process as soon as something is true, and give what it wrote to stdout."""

    def pause() -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=LOOK_EVERY)

    try:
        until(lambda: happened() or process.poll() is not None, pause)
    finally:
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
