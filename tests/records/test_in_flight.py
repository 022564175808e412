"""Two runs that want the same answers: each request is asked once, and nobody waits for the dead."""

import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from api_server import ApiServer, Behaviour
from climassay.models import Completion
from climassay.models.openai.client import OpenAIModel
from climassay.records import RecordedModel, Records, answer_writer, recorded, tables
from patience import PATIENCE, reached, until
from writing_process import Shout, ask

WANTED = [f"text {number}" for number in range(30)]


class Held(Shout):
    """Answers the first of its requests, and then waits until it may go on."""

    def __init__(self):
        super().__init__()
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def generate(self, requests, *, on_result=None):
        def told(index, answer):
            on_result(index, answer)
            if index == 0:
                self.begun.set()
                reached(self.may_go_on)

        super().generate(requests, on_result=told)


@pytest.fixture
def url(database_url):
    return database_url


def answers(url, model, texts, command="second"):
    """What a run of its own gets, and its tally."""
    with Records(url) as store, store.run(command, {}) as run:
        wrapped = RecordedModel(model, store, run)
        return [one.text for one in wrapped.generate(ask(*texts))], wrapped.tally


class Beside:
    """A run in another thread that holds what it asks: ``with Beside(url, texts) as first``."""

    def __init__(self, url, texts, model=None):
        self.url, self.texts, self.model, self.result = url, texts, model or Held(), None
        self.thread = threading.Thread(target=self._work)

    def _work(self):
        self.result = answers(self.url, self.model, self.texts, "first")

    def __enter__(self):
        self.thread.start()
        reached(self.model.begun)
        return self

    def __exit__(self, *_):
        self.model.may_go_on.set()
        self.thread.join(PATIENCE)


def letting_go(monkeypatch, model):
    """Lets a held model go on when somebody begins to wait."""
    seen = answer_writer.InFlight.find_marks_of_others

    def looked(self):
        held = seen(self)
        model.may_go_on.set()
        return held

    monkeypatch.setattr(answer_writer.InFlight, "find_marks_of_others", looked)


def test_what_another_run_is_asking_is_waited_for(url, monkeypatch):
    model, wanted = Shout(), [*WANTED, "text of mine"]
    with Beside(url, WANTED) as first:
        letting_go(monkeypatch, first.model)
        got, tally = answers(url, model, wanted)
    assert got == [text.upper() for text in wanted]
    assert (model.asked, tally.sent, tally.hits) == (1, 1, len(WANTED))
    assert first.result[1].sent == len(WANTED)
    assert not marks(url)


def test_what_failed_for_the_other_is_asked(url, monkeypatch):
    class Unlucky(Held):
        def generate(self, requests, *, on_result=None):
            def told(index, answer):
                on_result(index, Completion.failed("No luck.") if index == 1 else answer)

            super().generate(requests, on_result=told)

    model = Shout()
    with Beside(url, WANTED, Unlucky()) as first:
        letting_go(monkeypatch, first.model)
        got, tally = answers(url, model, WANTED)
    assert got == [text.upper() for text in WANTED]
    assert (model.asked, tally.hits) == (1, len(WANTED) - 1)


def marks(url):
    with Records(url) as store, store.database.read() as connection:
        return connection.execute(sa.select(tables.in_flight.c.request)).scalars().all()


def test_the_dead_are_not_waited_for(url, monkeypatch):
    """A run that was killed gives no more signs of life; here its lease has ended before anybody looks."""
    monkeypatch.setattr(answer_writer, "LEASE_SECONDS", -PATIENCE)
    model = Shout()
    with Beside(url, WANTED) as first:
        got, tally = answers(url, model, WANTED)
        assert got == [text.upper() for text in WANTED]
    assert tally.sent >= len(WANTED) - 1  # the other's first answer may be stored by then
    assert first.result[1].sent == len(WANTED)


def test_nobody_waits_for_ever(url, monkeypatch):
    monkeypatch.setattr(recorded, "MAX_WAIT_SECONDS", 0.0)
    model = Shout()
    with Beside(url, WANTED):
        got, _ = answers(url, model, WANTED)
    assert got == [text.upper() for text in WANTED]
    assert model.asked >= len(WANTED) - 1


def test_who_fails_lets_the_others_ask(url):
    class Broken(Shout):
        def generate(self, requests, *, on_result=None):
            raise ValueError("broken")

    with Records(url) as store, store.run("one", {}) as run:
        with pytest.raises(ValueError, match="broken"):
            RecordedModel(Broken(), store, run).generate(ask(*WANTED))
        assert not marks(url)
        model = Shout()
        assert answers(url, model, WANTED)[1].sent == len(WANTED)


def test_an_answer_that_came_between_looking_and_marking_is_taken(url, monkeypatch):
    looked = Records.look_up
    model = Shout()

    def late(self, keys, name=None):
        found = looked(self, keys, name)
        monkeypatch.setattr(Records, "look_up", looked)
        answers(url, Shout(), WANTED, "meanwhile")
        return found

    monkeypatch.setattr(Records, "look_up", late)
    assert answers(url, model, WANTED)[1].hits == len(WANTED)
    assert model.asked == 0


PROCESS = """
import sys
from climassay.models.openai.client import OpenAIModel
from climassay.records import RecordedModel, Records
from writing_process import ask
server, database = sys.argv[1:]
model = OpenAIModel("test", base_url=server, concurrency=8)
with Records(database) as store, store.run("twice", {}) as run:
    print("ready", flush=True)
    sys.stdin.readline()
    wrapped = RecordedModel(model, store, run)
    answers = wrapped.generate(ask(*(f"text {number}" for number in range(200))))
    print(len([answer for answer in answers if answer.error is None]), wrapped.tally.sent)
model.close()
"""


@pytest.fixture
def start(url, monkeypatch):
    begun = []

    def started(server):
        command = [sys.executable, "-c", PROCESS, server.url, url]
        begun.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert begun[-1].stdout.readline() == "ready\n"
        return begun[-1]

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    yield started
    for process in begun:
        process.kill()
        process.communicate()


def go(process):
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.mark.process
def test_the_same_command_started_twice_asks_each_request_once(start):
    with ApiServer(Behaviour(latency=0.02)) as server:
        both = [start(server), start(server)]
        for process in both:
            go(process)
        said = [tuple(map(int, process.communicate(timeout=PATIENCE)[0].split())) for process in both]
        assert len(server.asked) == 200
    assert [answered for answered, _ in said] == [200, 200]
    assert sum(asked for _, asked in said) == 200


@pytest.mark.process
def test_what_a_killed_command_was_asking_is_asked_by_the_one_that_waits(start, url):
    with ApiServer(Behaviour(latency=0.05)) as server:
        first, second = start(server), start(server)
        go(first)
        until(lambda: len(server.asked) >= 40)
        go(second)
        first.kill()
        answered, asked = map(int, second.communicate(timeout=PATIENCE)[0].split())
    with Records(url) as store, store.database.read() as connection:
        by_run = sa.select(sa.func.count()).select_from(tables.answers).group_by(tables.answers.c.run)
        stored = list(connection.execute(by_run).scalars())
    assert answered == sum(stored) == 200, "what the first has stored is not asked again"
    assert asked in stored


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell which processes live")
def test_a_killed_process_is_known_to_be_dead_although_its_lease_goes_on(start, url, monkeypatch):
    monkeypatch.setattr(answer_writer, "LEASE_SECONDS", 1e6)
    monkeypatch.setattr(recorded, "MAX_WAIT_SECONDS", 1e6)
    with ApiServer(Behaviour(latency=0.05)) as server:
        killed = start(server)
        go(killed)
        until(lambda: marks(url))
        killed.kill()
        killed.wait(PATIENCE)
        asked_before = len(server.asked)
        with closing(OpenAIModel("test", base_url=server.url, concurrency=8)) as model:
            got, _ = answers(url, model, [f"text {number}" for number in range(200)])
        assert len(got) == 200
        assert len(server.asked) > asked_before


def test_processes_of_other_machines_are_not_called_dead():
    boot, space, pid, started = answer_writer.process_identity(os.getpid()).split()
    assert answer_writer.has_died(f"{boot} {space} {pid} {int(started) - 1}")
    assert not answer_writer.has_died(f"{boot[::-1]} {space} {pid} {int(started) - 1}")
    assert not answer_writer.has_died("")
