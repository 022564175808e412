"""Every long command that can be run small is killed at random moments of its time and run again (``make faults``).

The moments are drawn by a seed as shares of the time that the uninterrupted command took, from before its first record
to its last file. For a command that asks the API server, every other moment is a number of answers that are stored by
then, from the third to the last but one: the first may take three requests, which show what the server can do. What
is left must be what the uninterrupted command left; no stored answer may be asked for again.
"""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from faults import inputs
from faults.commands import COMMANDS
from faults.killing import SilencedServer, kill_between_answers
from faults.left_behind import left_by, stored_answers
from killed_process import START, assert_same

FULL = os.environ.get("CLIMASSAY_FAULTS") == "full"
KILLS = int(os.environ.get("CLIMASSAY_KILLS", "2"))


@pytest.fixture(scope="module")
def server():
    with SilencedServer(latency=0.05) as running:
        yield running


@pytest.fixture(scope="module")
def given(tmp_path_factory, server):
    """Inputs, a small model, a workspace to begin with, and the encoder's graph."""
    from climassay import load_encoder
    from climate_tasks import write_tasks
    from debate_workspaces import make_model

    folder = tmp_path_factory.mktemp("given")
    inputs.write_inputs(folder, server.url)
    make_model(folder / "model")
    (folder / "harness").mkdir()
    write_tasks(folder / "harness")
    shutil.copy(Path(__file__).parents[1] / "inspect_tasks.py", folder)
    load_encoder("local:minilm").encode(["The graph is made before anything is killed."])
    inputs.make_workspace(folder / "w")
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
        own = inputs.environment(life, self.encoders)
        return subprocess.Popen([*START, *filled], env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, life):
        """Run to the end: what is left, how many requests were sent, seconds."""
        self.server.asked.clear()
        begun = time.monotonic()
        process = self.start(life)
        out, err = process.communicate()
        assert process.returncode == 0, err
        return left_by(life, out), len(self.server.asked), time.monotonic() - begun

    def kill_at(self, life, seconds):
        """Run for so many seconds: whether it was still running then."""
        process = self.start(life)
        try:
            _, err = process.communicate(timeout=seconds)
            assert process.returncode == 0, err
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        return process.returncode == -9

    def killed_by_time(self, name, seconds, share):
        """A life that ended after a share of these seconds, or of fewer where the machine has become faster."""
        life = self.begin(name)
        while not self.kill_at(life, share * seconds):
            shutil.rmtree(life)
            life, share = self.begin(name), share * 0.8
        return life, f"{share:.2f} of {seconds:.1f} s"

    def killed_by_answers(self, name, answers):
        """A life that ended when so many answers were stored."""
        life = self.begin(name)
        self.server.grant(answers)
        kill_between_answers(self.start(life), self.server, life / "w")
        return life, f"answer {answers}"


@pytest.mark.skipif(not FULL, reason="minutes of work: make faults")
@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_command_killed_at_any_moment_ends_as_if_it_had_not_been(name, given, server, tmp_path):
    lives = Lives(COMMANDS[name], given, server, tmp_path)
    if before := COMMANDS[name].filled_before(given=given, model=f"local:{given / 'model'}"):
        made = lives.start(lives.begin("before"), before)
        _, err = made.communicate()
        assert made.returncode == 0, err
    whole = lives.begin("whole")
    expected, needed, seconds = lives.finish(whole)
    assert COMMANDS[name].asks == (needed > 0)
    draw = random.Random(name)
    for number in range(KILLS):
        # One anywhere, the next where more than the loading of libraries is interrupted: between answers, or late.
        by_answers = number % 2 == 1 and needed > 3
        if by_answers:
            life, moment = lives.killed_by_answers(f"{number}", draw.randint(3, needed - 1))
        else:
            life, moment = lives.killed_by_time(f"{number}", seconds, draw.uniform(0.5 * (number % 2), 1))
        # Answers of a local model are stored as well, but are no requests to the server.
        kept = stored_answers(life / "w") if COMMANDS[name].asks else 0
        assert not by_answers or 0 < kept < needed
        found, asked, _ = lives.finish(life)
        print(f"{name}: killed at {moment}, {kept} of {needed} answers kept, {asked} asked")
        assert asked == needed - kept
        try:
            assert_same(found, expected, f"{name}, killed at {moment}")
        except AssertionError:
            # Killed when all was done, it is as an uninterrupted one that is run again, and may say so.
            again, asked, _ = lives.finish(whole)
            assert asked == 0
            assert_same(found, again, f"{name}, killed at {moment}")


def test_the_documentation_says_how_many_commands_are_killed_here():
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    said = page.partition("## Which commands are killed")[2].partition("\n## ")[0].replace("\n", " ")
    assert f"kills {len(COMMANDS)} long commands" in said
    assert f"{len(COMMANDS)} long commands and of the server" in page.partition("\n## ")[0]
    assert "all of them but `serve`" in said
