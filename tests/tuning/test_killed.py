"""A training that is killed and started again leaves what an uninterrupted one leaves, bit for bit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from climassay.tuning import train
from tuning_parts import parity, save_shaken, small

pytestmark = pytest.mark.process

DRIVER = Path(__file__).parent / "training_driver.py"
FILES = ("adapter_model.safetensors", "adapter_config.json")


def start(model: Path, folder: Path) -> subprocess.Popen:
    paths = os.pathsep.join([str(DRIVER.parents[1]), *sys.path])
    environment = os.environ | {"CLIMASSAY_THREADS": "1", "PYTHONPATH": paths}
    command = [sys.executable, str(DRIVER), str(model), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_sigkill_in_the_middle_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIMASSAY_THREADS", "1")
    model = save_shaken(tmp_path / "model")
    whole = train(str(model), parity(0, 32), parity(32, 40), small(epochs=2), tmp_path / "whole")

    with start(model, tmp_path / "killed") as process:
        for line in process.stdout:
            if line.strip() == "7":  # of 16 steps, between two evaluations
                process.kill()
                break
    assert process.returncode == -9
    assert not (tmp_path / "killed" / FILES[0]).exists()
    assert list((tmp_path / "killed" / "checkpoints").glob("checkpoint-*"))

    steps: list[int] = []
    again = train(
        str(model),
        parity(0, 32),
        parity(32, 40),
        small(epochs=2),
        tmp_path / "killed",
        on_progress=lambda progress: steps.append(progress.step),
    )
    assert steps[0] >= 7  # it went on, and did not begin again
    for name in FILES:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert (again.losses, again.evaluations, again.best_step) == (whole.losses, whole.evaluations, whole.best_step)
    left = {file.name for file in (tmp_path / "killed").iterdir()}
    assert left == {*FILES, "climassay.json", ".lock"}
