"""The promise of the records, tested for real: a process is killed again and again, and nothing is asked twice.

The server is a process of its own that logs every request when it arrives, with the name of the client process that
sent it. After each kill, what the database holds is compared with what later processes ask.
"""

import contextlib
import csv
import json
import os
import random
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from climassay.records import Records
from climassay.records.recorded_answers import iterate_answers

pytestmark = pytest.mark.process

SERVER = Path(__file__).parents[1] / "api_server.py"
KILLS = 20 if os.environ.get("CLIMASSAY_FAULTS") == "full" else 6
SEED = 20240607

Asked = tuple[str, str]
"""Kind of request and its messages, as JSON."""


@dataclass
class Server:
    url: str
    log: Path

    def entries(self, event: str) -> dict[str, list[Asked]]:
        """What was asked or served, by the client that asked, in the order of arrival."""
        found: dict[str, list[Asked]] = defaultdict(list)
        for line in self.log.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            # A chat that the assistant has begun finds out whether the server goes on with it; its answer is not kept.
            if entry["event"] == event and entry["messages"][-1]["role"] != "assistant":
                asked = entry["kind"], json.dumps(entry["messages"], ensure_ascii=False)
                found[entry["client"]].append(asked)
        return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    log = tmp_path / "served.jsonl"
    command = [sys.executable, str(SERVER), "--latency", "0.04", "--log", str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Server(process.stdout.readline().strip(), log)
        process.kill()


@dataclass
class Life:
    """One process, killed or not."""

    name: str
    killed: bool
    stored: set[Asked] = field(default_factory=set)
    """What the database held when it was dead."""


class Subject:
    """A command that asks a server and keeps records in a folder."""

    def __init__(self, server: Server, arguments: Callable[[Path], list[str]]) -> None:
        self._server = server
        self._arguments = arguments

    def start(self, folder: Path, name: str) -> "subprocess.Popen[str]":
        # The openai client sends this variable as a header, which is how the server's log tells the processes apart.
        environment = os.environ | {"OPENAI_ORG_ID": name, "OPENAI_API_KEY": ""}
        arguments = self._arguments(folder)
        return subprocess.Popen(
            arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def run(self, folder: Path, name: str) -> str:
        out, err = self.start(folder, name).communicate()
        assert out, err
        return out

    def kill_at(self, folder: Path, name: str, requests: int, delay: float) -> bool:
        """Start, wait until so many of its requests have arrived, wait a moment more, kill."""
        process = self.start(folder, name)
        with self._server.log.open(encoding="utf-8") as log:
            arrived, pause = 0, threading.Event()
            while arrived < requests and process.poll() is None:
                arrived += sum(f'"client": "{name}"' in line and '"event": "asked"' in line for line in log.readlines())
                pause.wait(0.01)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=delay)
        process.kill()
        process.communicate()
        return process.returncode == -9


def stored(folder: Path) -> set[Asked]:
    """What the records in a folder hold answers to."""
    path = folder / "records.sqlite"
    if not path.exists():
        return set()
    with Records(f"sqlite:///{path}") as store:
        return {
            (answer.kind, json.dumps(without_beginning(json.loads(answer.prompt)), ensure_ascii=False))
            for bundle in iterate_answers(store.database)
            for answer in bundle
            if answer.error is None
        }


def without_beginning(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """The chat without the beginning of the answer, which this server does not go on with."""
    return messages[:-1] if messages[-1]["role"] == "assistant" else messages


def killed_lives(subject: Subject, folder: Path, needed: int) -> list[Life]:
    """Run and kill until there have been enough kills, then let it finish."""
    draw = random.Random(SEED)
    lives: list[Life] = []
    while sum(life.killed for life in lives) < KILLS:
        number = len(lives)
        most = max(1, needed // KILLS)
        early = draw.random() < 0.2
        requests, delay = (0, draw.uniform(0, 1.0)) if early else (draw.randint(1, most), draw.uniform(0, 0.08))
        name = f"life-{number}"
        lives.append(Life(name, subject.kill_at(folder, name, requests, delay)))
        lives[-1].stored = stored(folder)
        assert len(lives) <= 2 * KILLS, "the work is done before there have been enough kills"
    return lives


def check_promise(subject: Subject, server: Server, tmp_path: Path, results: Callable[[str], object]) -> None:
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    undisturbed.mkdir()
    disturbed.mkdir()
    expected = results(subject.run(undisturbed, "undisturbed"))
    needed = set(server.entries("asked")["undisturbed"])
    assert set(server.entries("served")["undisturbed"]) == needed == stored(undisturbed)

    lives = killed_lives(subject, disturbed, len(needed))
    final = results(subject.run(disturbed, "last"))
    lives.append(Life("last", killed=False, stored=stored(disturbed)))

    asked, served = server.entries("asked"), server.entries("served")
    assert set().union(*(served[life.name] for life in lives)) == needed
    assert set().union(*(asked[life.name] for life in lives)) == needed
    for place, life in enumerate(lives[:-1]):
        later = lives[place + 1 :]
        assert life.stored <= later[0].stored, "a stored answer was lost"
        again = life.stored & {request for one in later for request in asked[one.name]}
        assert not again, f"asked again although stored when {life.name} died"
    assert lives[-1].stored == needed
    assert final == expected
    # The test would prove nothing if every kill came before the first answer or after the last one.
    partial = [life for life in lives if life.killed and 0 < len(life.stored) < len(needed)]
    assert len(partial) >= KILLS // 2
    assert all(len(asked[life.name]) == len(set(asked[life.name])) for life in lives), "asked twice by one process"


def write_questions(path: Path, count: int) -> None:
    draw = random.Random(SEED)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Question", "Options", "Answer", "Context", "Complexity", "Validation"])
        for number in range(count):
            options = "\n".join(f"{letter}) Reason {number}{letter}" for letter in "abcd")
            level = draw.choice(["BASE", "REASONING", "HYPOTHETICAL"])
            writer.writerow(
                [f"Which reason explains number {number}?", options, draw.choice("abcd"), "", level, "VALID"]
            )


def test_an_evaluation_killed_at_random_moments_asks_only_what_is_missing(server: Server, tmp_path: Path) -> None:
    questions = tmp_path / "questions.csv"
    write_questions(questions, 50)

    def arguments(folder: Path) -> list[str]:
        command = [sys.executable, "-m", "climassay.cli.main", "evaluate", "mcq", str(questions)]
        model = ["--model", "openai:test", "--base-url", server.url, "--concurrency", "4"]
        return [
            *command, *model, "--scoring", "likelihood", "--scoring", "letter", "--workspace", str(folder), "--json",
        ]  # fmt: skip

    def results(out: str) -> object:
        """Everything but the run's name and what was asked now and what came from the records."""
        return {name: value for name, value in json.loads(out).items() if name not in {"run", "tally"}}

    check_promise(Subject(server, arguments), server, tmp_path, results)
