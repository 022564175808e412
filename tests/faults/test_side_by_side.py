"""Commands of different kinds work on one workspace at the same time, and backups are made: ten minutes in full."""

import json
import os
import sqlite3
import subprocess
import threading
import time
from contextlib import closing

import pytest

from climassay.records.database import find_damage
from faults import inputs, samples
from faults.killing import SilencedServer
from faults.left_behind import passages_of, stored_answers
from killed_process import START

SECONDS = 600 if os.environ.get("CLIMASSAY_FAULTS") == "full" else 1
"""After this time no new command begins."""
PAUSE = 5.0
"""Seconds between two backups."""


@pytest.fixture
def server():
    with SilencedServer(latency=0.05) as running:
        yield running


class Work:
    """Commands that run one after the other on a workspace until the time is over, each kind in its own thread."""

    def __init__(self, folder, url):
        from climassay.workspace import cache_folder

        self.folder, self.url, self.end = folder, url, time.monotonic() + SECONDS
        self.environment = inputs.environment(folder, cache_folder() / "encoders")
        self.results = {"corpus add": [], "evaluate mcq": [], "records backup": []}
        self.failures = []

    def run(self, *arguments):
        command = [*START, *arguments, "-w", str(self.folder / "w"), "--json"]
        process = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if process.returncode:
            self.failures.append(f"{arguments}: {process.stderr}")
            return {}
        return json.loads(process.stdout)

    def repeat(self, name, step, pause=0.0):
        while not self.failures and (not self.results[name] or time.monotonic() < self.end):
            self.results[name].append(step(len(self.results[name])))
            time.sleep(pause)

    def add(self, number):
        file = self.folder / f"document{number}.md"
        text = "\n\n".join(f"Glacier {number} lost {part} metres of ice." for part in range(40))
        file.write_text(f"# Glaciers {number}\n\n{text}\n", encoding="utf-8")
        return self.run("corpus", "add", "grown", str(file))

    def ask(self, number):
        file = self.folder / f"questions{number}.jsonl"
        row = samples.QUESTIONS[0]
        rows = [row | {"id": f"q{n}", "question": f"What scatters light {n} in year {number}?"} for n in range(12)]
        file.write_bytes(samples.jsonl(rows))
        return self.run("evaluate", "mcq", str(file), "--model", "openai:test", "--base-url", self.url)

    def back_up(self, number):
        file = self.folder / f"backup{number}.sqlite"
        self.run("records", "backup", str(file))
        if (damage := find_damage(file)) is not None:
            self.failures.append(f"backup {number}: {damage}")
        file.unlink(missing_ok=True)


def test_commands_that_work_at_the_same_time_lose_nothing(server, tmp_path):
    inputs.make_workspace(tmp_path / "w")
    work = Work(tmp_path, server.url)
    steps = {"corpus add": (work.add, 0), "evaluate mcq": (work.ask, 0), "records backup": (work.back_up, PAUSE)}
    threads = [threading.Thread(target=work.repeat, args=(name, *step)) for name, step in steps.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert work.failures == []
    n_added, n_asked, n_backups = map(len, work.results.values())
    print(f"{n_added} additions, {n_asked} evaluations, {n_backups} backups")
    passages = passages_of(tmp_path / "w")["grown"]
    assert {passage.partition("Glacier ")[2].split()[0] for passage in passages} == set(map(str, range(n_added)))
    assert sum(passage.count("metres of ice") for passage in passages) == 40 * n_added
    assert stored_answers(tmp_path / "w") == len(server.asked)
    with closing(sqlite3.connect(tmp_path / "w" / "records.sqlite")) as records:
        assert records.execute("SELECT count(*) FROM in_flight").fetchone() == (0,)
        [(statuses, n_runs)] = records.execute("SELECT group_concat(DISTINCT status), count(*) FROM runs").fetchall()
    assert (statuses, n_runs) == ("done", n_asked)
    assert find_damage(tmp_path / "w" / "records.sqlite") is None
