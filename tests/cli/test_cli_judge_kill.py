"""``climassay judge benchmark`` as a process that is killed: the same command goes on, and says what it would have."""

import json
import os
import sqlite3
import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest

from command_line import done, run_command
from killed_process import START, assert_same, kill_when
from tiny_models import save_tiny

pytestmark = pytest.mark.process

GROUPS, ITEMS = 5, 8
REQUESTS = GROUPS * ITEMS * (ITEMS - 1)
"""Of either method: all ordered pairs. More than one shard of activations."""
COSTS = {"run", "passes", "tokens_computed", "computed", "stored"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    model = folder / "model"
    model.mkdir()
    save_tiny(model, context=1024)
    rows = [
        {"group": f"g{group}", "text": f"{'a' * (item % 5)}{item} of {group}", "score": item % 3}
        for group in range(GROUPS)
        for item in range(ITEMS)
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def command(folder: Path, workspace: Path) -> list[str]:
    return [
        "judge", "benchmark", str(folder / "items.jsonl"), "--group", "group", "--quality", "is long",
        "--label", "score", "--method", "ppairs", "--method", "pairs", "--layer", "1", "--regularisation", "1",
        "--train-items", "16", "--model", f"local:{folder / 'model'}", "--workspace", str(workspace), "--json",
    ]  # fmt: skip


def shards(cache: Path) -> list[Path]:
    return sorted(cache.glob("activations/*/[!.]*.safetensors"))


def rows(workspace: Path, table: str) -> int:
    file = workspace / "records.sqlite"
    if not file.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as records:
            return int(records.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except sqlite3.OperationalError:  # the tables are being made
        return 0


def start_and_kill(when, folder: Path, cache: Path, workspace: Path) -> None:
    """Start the command and kill it as soon as something has happened."""
    environment = os.environ | {"CLIMASSAY_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*START, *command(folder, workspace)], env=environment, stdout=PIPE, stderr=PIPE, text=True
    ) as process:
        assert kill_when(when, process) == ""


def test_a_killed_benchmark_goes_on_where_it_stopped(folder, tmp_path, monkeypatch, capsys):
    def run(cache, workspace):
        monkeypatch.setenv("CLIMASSAY_CACHE", str(cache))
        out = done(run_command(monkeypatch, capsys, *command(folder, workspace)))
        return json.loads(out)

    straight = run(tmp_path / "straight", tmp_path / "straight-workspace")
    assert (straight["computed"], straight["stored"]) == (2 * REQUESTS, 0)

    cache, workspace = tmp_path / "cache", tmp_path / "workspace"
    start_and_kill(lambda: shards(cache), folder, cache, workspace)
    kept = {path: path.read_bytes() for path in shards(cache)}
    assert rows(workspace, "answers") == 0
    start_and_kill(lambda: rows(workspace, "answers"), folder, cache, workspace)
    answered = rows(workspace, "answers")
    assert 0 < answered < REQUESTS
    assert {path: path.read_bytes() for path in kept} == kept

    found = run(cache, workspace)
    probe, pairs = found["results"]
    assert (probe["computed"], probe["stored"]) == (0, REQUESTS)
    assert (pairs["computed"], pairs["stored"]) == (REQUESTS - answered, answered)
    assert_same(found, straight, costs=COSTS)
    assert rows(workspace, "runs") == 3
