"""Whole commands with --ray on a cluster of two nodes: they leave what they leave without it, also when killed.

A command that runs to its end works in one worker that all of these tests share, since a worker takes seconds to start;
a command that is killed is a process of its own and joins the cluster by itself.
"""

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from api_server import ApiServer
from climassay.distributed import ClusterOptions, open_pool
from command_line import done, run_command
from faults.commands import DEBATE
from faults.inputs import EXPERIMENT, environment
from faults.left_behind import left_by, stored_answers
from killed_process import START, kill_when

pytestmark = pytest.mark.cluster

if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed (the extra ray brings it)", allow_module_level=True)


def stored_passages(life: Path) -> int:
    from climassay.corpus import Collection
    from climassay.workspace import Workspace

    # A table is made with one version and gets another with each chunk.
    if len(list((life / "w" / "collections").glob("ice.lance/_versions/*"))) < 2:
        return 0
    return len(Collection.open(Workspace.open(life / "w"), "ice"))


def stored_activations(life: Path) -> int:
    from safetensors import safe_open

    found = 0
    for file in (life / "cache" / "activations").glob("*/[!.]*.safetensors"):
        with safe_open(file, "numpy") as shard:
            found += shard.get_slice("keys").get_shape()[0]
    return found


def answers(life: Path) -> int:
    return stored_answers(life / "w")


@dataclass(frozen=True)
class Work:
    """A command that can be spread."""

    arguments: str
    kept: Callable[[Path], int]
    """How much of what it asks, embeds or harvests is kept below the folder of a life."""


COMMANDS = {
    "corpus add": Work("corpus add ice {given}/notes.txt --passage-size 100 --passage-overlap 0", stored_passages),
    "generate run": Work("generate run {given}/recipe.toml", answers),
    "evaluate run": Work("evaluate run {given}/experiment.toml", answers),
    "judge train": Work(
        "judge train {given}/items.jsonl -o {out}/probe.safetensors --group group --quality 'is long' --label score "
        "--layer 1 --regularisation 1 --model {model}",
        stored_activations,
    ),
    "factcheck run": Work(
        f"factcheck run {{given}}/claims.csv {DEBATE} --transcripts {{out}}/debates.jsonl --model {{model}}", answers
    ),
}
RECIPE = """
name = "drawn"
collections = ["book"]
batch = 1
[writer]
model = "{model}"
max_tokens = 120
[counts]
freeform = 1
cloze = 3
base = 1
[contexts]
max_passages = 0
[stop]
drafts = 2
"""
TRIAL = "Can it encode?"
"""What every new collection has its encoder try, whatever is added to it."""
KILLED = ("corpus add", "judge train")
"""Those whose driver is killed in every run of the tests; that of the others by ``make test-slow``."""
PASSAGES, QUESTIONS, GROUPS, ITEMS = 1100, 160, 5, 10


def write_inputs(given: Path, model: str) -> None:
    said = "In year {} glacier {} lost {} metres of ice, and its tongue ended in a lake."
    lines = "\n\n".join(said.format(n, n % 37, n % 11) for n in range(PASSAGES))
    (given / "notes.txt").write_text(lines, encoding="utf-8")
    asked = [
        {
            "id": f"q{n}",
            "kind": "mcq",
            "question": f"Which reason explains observation {n} of the ice? {'So it went on. ' * 4}",
            "options": [f"Reason {n}{letter}" for letter in "abcd"],
            "answer": "abcd"[n % 4],
        }
        for n in range(QUESTIONS)
    ]
    (given / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    (given / "experiment.toml").write_text(EXPERIMENT.format(given=given, model=model), encoding="utf-8")
    (given / "recipe.toml").write_text(RECIPE.format(model=model), encoding="utf-8")
    items = [
        {"group": f"g{group}", "id": f"{group}-{item}", "text": f"{'a' * item} of {group}", "score": item % 3}
        for group in range(GROUPS)
        for item in range(ITEMS)
    ]
    (given / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items), encoding="utf-8")
    (given / "claims.csv").write_text("claim\nIce melts in summer.\nThe Sun drives all warming.\n", encoding="utf-8")


class SharedPool:
    """A pool that is handed to every command instead of one of its own, and what the workers were asked through it."""

    def __init__(self, pool, address):
        self.pool, self.address, self.asked = pool, address, 0
        run = pool.run

        pool.run = lambda spec, jobs: run(spec, map(self._noted, jobs))

    def _noted(self, job):
        self.asked += sum(one != TRIAL for one in job.items)
        return job

    @contextmanager
    def open(self, options, *, batch_sizes=None):
        assert options == ClusterOptions(self.address, 1)
        self.asked = 0
        yield self.pool


@pytest.fixture(scope="module")
def pool(address):
    with open_pool(ClusterOptions(address, 1)) as opened:
        yield SharedPool(opened, address)


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Inputs, a small model, a workspace to begin with, and the encoder's graph."""
    import debate_workspaces
    from climassay import load_encoder

    folder = tmp_path_factory.mktemp("given")
    write_inputs(folder, debate_workspaces.make_model(folder / "model"))
    debate_workspaces.make_workspace(folder / "w")
    load_encoder("local:minilm").encode(["The graph is made before anything is killed."])
    return folder


@pytest.fixture(scope="module")
def alone():
    """What each command left without --ray, and how much it had to ask."""
    return {}


class Lives:
    """One command in folders of its own."""

    def __init__(self, name, given, address, folder, monkeypatch, capsys):
        from climassay.workspace import cache_folder

        self.work, self._given, self._address, self._folder = COMMANDS[name], given, address, folder
        self._encoders = cache_folder() / "encoders"
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def begin(self, name):
        life = self._folder / name
        (life / "out").mkdir(parents=True)
        shutil.copytree(self._given / "w", life / "w")
        return life

    def arguments(self, life, spread):
        places = {"given": self._given, "out": life / "out", "model": f"local:{self._given / 'model'}"}
        ray = ["--ray", self._address, "--ray-workers", "1"] if spread else []
        filled = [part.format(**places) for part in shlex.split(self.work.arguments)]
        return [*filled, *ray, "--workspace", str(life / "w"), "--json"]

    def run(self, life, *, spread):
        """Run to the end in this process: what is left."""
        for name, value in environment(life, self._encoders).items():
            self._monkeypatch.setenv(name, value)
        out = done(run_command(self._monkeypatch, self._capsys, *self.arguments(life, spread)))
        left = left_by(life, out)
        if self.work.kept is stored_passages:
            del left["printed"]  # which documents this call added, and which were there
        return left

    def kill(self, life):
        """Run as a process, which is killed as soon as something is kept: how much that is."""
        own = environment(life, self._encoders)
        command = [*START, *self.arguments(life, True)]
        with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            kill_when(lambda: self.work.kept(life), process)
        return self.work.kept(life)


@pytest.fixture
def lives(name, given, pool, alone, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("climassay.distributed.open_pool", pool.open)
    found = Lives(name, given, pool.address, tmp_path, monkeypatch, capsys)
    if name not in alone:
        life = found.begin("alone")
        alone[name] = found.run(life, spread=False), found.work.kept(life)
    return found


def leaves(value, path=""):
    """Everything that is not a container, by its path, also within rows of records, which are JSON."""
    if isinstance(value, str) and value.startswith(("[", "{")):
        with suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, dict):
        return {where: one for name, part in value.items() for where, one in leaves(part, f"{path}/{name}").items()}
    if isinstance(value, list):
        return {where: one for n, part in enumerate(value) for where, one in leaves(part, f"{path}/{n}").items()}
    return {path: value}


def assert_same(found, expected):
    """All is the same but for digits of numbers, which depend on what is computed side by side.

    Hidden states are kept in half precision: what differs by rounding may differ there by a thousandth.
    """
    one, other = leaves(found), leaves(expected)
    numbers = {path for path, value in other.items() if isinstance(value, float)}
    assert {path: one[path] for path in one.keys() - numbers} == {path: other[path] for path in other.keys() - numbers}
    assert {path: one[path] for path in numbers} == pytest.approx(
        {path: other[path] for path in numbers}, rel=1e-2, abs=1e-3, nan_ok=True
    )


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_command_leaves_the_same_and_asks_nothing_again(name, lives, pool, alone):
    expected, needed = alone[name]
    life = lives.begin("spread")
    assert_same(lives.run(life, spread=True), expected)
    assert pool.asked == lives.work.kept(life) == needed > 0
    assert_same(lives.run(life, spread=True), expected)
    assert pool.asked == 0


@pytest.mark.parametrize(
    "name", [*KILLED, *(pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS if name not in KILLED)]
)
def test_a_command_whose_driver_is_killed_asks_only_what_is_missing(name, lives, pool, alone):
    expected, needed = alone[name]
    life = lives.begin("killed")
    before = lives.kill(life)
    assert 0 < before < needed
    assert_same(lives.run(life, spread=True), expected)
    assert pool.asked == needed - before


KEY, ADDRESS_PASSWORD = "sk-canary-6d3f0c27b1", "canary-of-the-address"


def files_below(folder):
    return {str(file): file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()}


def holding(canary, texts):
    return [
        name for name, text in texts.items() if canary in (text if isinstance(text, str) else text.decode("latin-1"))
    ]


def test_a_cluster_keeps_no_key_and_no_password(cluster, pool, tmp_path):
    from ray._private.state import state

    with ApiServer() as server:
        url = server.url.replace("http://", f"http://user:{ADDRESS_PASSWORD}@")
        asked = ["evaluate", "mcq", "primer", "--limit", "2", "--model", "openai:test", "--base-url", url]
        where = ["--ray", pool.address, "--ray-workers", "1", "--workspace", str(tmp_path / "w")]
        own = os.environ | {"OPENAI_API_KEY": KEY, "HARMLESS": "seen"}
        done = subprocess.run([*START, *asked, *where], env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert {request.headers["authorization"] for request in server.asked} == {f"Bearer {KEY}"}
    found = files_below(cluster.head_node.get_session_dir_path()) | files_below(tmp_path)
    known = state._connect_and_get_accessor()
    tables = {"job": known.get_job_table(), "actor": known.get_actor_table(None, None), "task": known.get_task_events()}
    found |= {f"{kind} {number}": row for kind, rows in tables.items() for number, row in enumerate(rows)}
    found |= {"stdout": done.stdout, "stderr": done.stderr}
    assert holding(KEY, found) == holding(ADDRESS_PASSWORD, found) == []
    # The search would notice: the job is kept with its command line, and the logs are there.
    assert [name[:4] for name in holding("http://***@127.0.0.1", found)] == ["job "]
    assert any("gcs_server" in name and text for name, text in found.items())
