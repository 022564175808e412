"""Every long command that can be run small is killed at random moments of its time and run again (``make faults``).

The moments are drawn by a seed as shares of the time that the uninterrupted command took, from before its first record
to its last file. What is left must be what the uninterrupted command left; no stored answer may be asked for again.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from api_server import ApiServer, Behaviour
from faults import long_commands
from faults.commands import KILLED
from faults.long_commands import COMMANDS, left_by

FULL = os.environ.get("CLIMASSAY_FAULTS") == "full"
KILLS = int(os.environ.get("CLIMASSAY_KILLS", "2"))
START = [sys.executable, "-c", "from climassay.cli.main import main; main()"]


@pytest.fixture(scope="module")
def server():
    with ApiServer(Behaviour(latency=0.05)) as running:
        yield running


@pytest.fixture(scope="module")
def given(tmp_path_factory, server):
    """Inputs, a small model, a workspace to begin with, and the encoder's graph."""
    from climassay.models.encoder import load_encoder
    from debate_workspaces import make_model

    folder = tmp_path_factory.mktemp("given")
    long_commands.write_inputs(folder, server.url)
    make_model(folder / "model")
    load_encoder("local:minilm").encode(["The graph is made before anything is killed."])
    long_commands.make_workspace(folder / "w")
    return folder


class Lives:
    """The same command again and again, each life in a folder of its own."""

    def __init__(self, command, given, server, folder):
        from climassay.workspace import cache_folder

        self.command, self.given, self.server, self.folder = command, given, server, folder
        self.encoders = cache_folder() / "encoders"

    def begin(self, name):
        life = self.folder / name
        (life / "out").mkdir(parents=True)
        shutil.copytree(self.given / "w", life / "w")
        return life

    def start(self, life, arguments=None):
        places = {"given": self.given, "out": life / "out", "w": life / "w", "url": self.server.url}
        filled = arguments or self.command.filled(model=f"local:{self.given / 'model'}", **places)
        own = long_commands.environment(life, self.encoders)
        return subprocess.Popen([*START, *filled], env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, life):
        """Run to the end: what is left, how many requests were sent, seconds."""
        self.server.asked.clear()
        begun = time.monotonic()
        process = self.start(life)
        out, err = process.communicate()
        assert process.returncode == 0, err
        return left_by(life, out), len(self.server.asked), time.monotonic() - begun

    def kill(self, life, seconds):
        """Run for so many seconds: whether it was still running then."""
        process = self.start(life)
        try:
            _, err = process.communicate(timeout=seconds)
            assert process.returncode == 0, err
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        return process.returncode == -9


@pytest.mark.skipif(not FULL, reason="minutes of work: make faults")
@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_command_killed_at_any_moment_ends_as_if_it_had_not_been(name, given, server, tmp_path):
    lives = Lives(COMMANDS[name], given, server, tmp_path)
    if before := COMMANDS[name].filled_before(given=given, model=f"local:{given / 'model'}"):
        made = lives.start(lives.begin("before"), before)
        _, err = made.communicate()
        assert made.returncode == 0, err
    expected, needed, seconds = lives.finish(lives.begin("whole"))
    assert COMMANDS[name].asks == (needed > 0)
    draw = random.Random(name)
    for number in range(KILLS):
        # One anywhere, one in the half in which more than the loading of libraries is interrupted.
        share = draw.uniform(0, 1) if number % 2 == 0 else draw.uniform(0.5, 1)
        life = lives.begin(f"{number}")
        while not lives.kill(life, share * seconds):
            # The machine was faster than the first time.
            shutil.rmtree(life)
            life, share = lives.begin(f"{number}"), share * 0.8
        kept = long_commands.stored_answers(life / "w")
        found, asked, _ = lives.finish(life)
        print(f"{name}: {seconds:.1f} s, killed at {share:.2f}, {kept} of {needed} answers kept, {asked} asked")
        assert asked == needed - kept
        assert_same(found, expected, f"{name}, killed at {share:.2f} of {seconds:.1f} s")


def assert_same(found, expected, path):
    """What is left is the same. Batches, and with them the last digits of numbers, depend on where a run was cut."""
    if isinstance(expected, dict):
        assert isinstance(found, dict), path
        assert found.keys() == expected.keys(), path
        for name in expected:
            assert_same(found[name], expected[name], f"{path}: {name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{path}: {number}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-3), path
    else:
        assert found == expected, path


def test_the_documentation_says_which_long_commands_are_not_killed_here():
    assert set(COMMANDS) <= set(KILLED)
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    said = page.partition("## Which commands are killed")[2].partition("\n## ")[0].replace("\n", " ")
    assert f"kills {len(COMMANDS)} long commands" in said
    by_parts = said.partition("by their parts only:")[2].partition("On small inputs")[0]
    # "tune finetune" is named as what shares its training.
    assert set(re.findall(r"`([^`]+)`", by_parts)) == (set(KILLED) - set(COMMANDS)) | {"tune finetune"}
