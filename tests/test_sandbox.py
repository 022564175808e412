"""Work in a process of its own: its limits, its questions, and what its end is called."""

import os
import threading

import pytest

import runaway
from climassay.errors import InputError
from climassay.io.sandbox import Sandbox, SandboxError

pytestmark = pytest.mark.process
MEMORY = 1 << 30


@pytest.fixture
def sandbox(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([runaway.FOLDER, os.environ.get("PYTHONPATH", "")]))
    with Sandbox(MEMORY) as made:
        yield made


def ended(sandbox, function, argument=None, timeout=60.0, **limits):
    """The reason for which a call does not finish; the process is gone."""
    with pytest.raises(SandboxError) as raised:
        sandbox.call(function, argument, timeout=timeout, **limits)
    assert not sandbox.is_alive
    assert str(raised.value)
    return raised.value.reason


def test_calls_follow_each_other_in_one_process(sandbox):
    first, process = sandbox.call(runaway.double, 21, timeout=60)
    second, same_process = sandbox.call(runaway.double, "é\udcff", timeout=60)
    assert (first, second) == (42, "é\udcffé\udcff")
    assert process == same_process != os.getpid()


def test_questions_are_answered_in_order(sandbox):
    asked = []

    def answer(question, argument):
        asked.append((question, argument))
        return argument.upper()

    assert sandbox.call(runaway.relay, ["a", "b\n"], timeout=60, answer=answer) == ["A", "B\n"]
    assert asked == [("upper", "a"), ("upper", "b\n")]


def test_an_error_of_the_answer_ends_the_process(sandbox):
    def answer(question, argument):
        raise KeyError(argument)

    with pytest.raises(KeyError):
        sandbox.call(runaway.relay, ["a"], timeout=60, answer=answer)
    assert not sandbox.is_alive


def test_a_known_error_comes_across_and_the_process_goes_on(sandbox):
    with pytest.raises(InputError, match="this is refused"):
        sandbox.call(runaway.refuse, "this", timeout=60)
    assert sandbox.call(runaway.double, 1, timeout=60)[0] == 2


def test_an_expression_without_end_is_ended_by_its_processor_time(sandbox):
    assert ended(sandbox, runaway.burn, max_processor_seconds=0) == "processor"


def test_silence_ends_at_the_deadline(sandbox):
    assert ended(sandbox, runaway.sleep, 1000, timeout=0.5) == "time"


def test_memory_is_bounded(sandbox):
    assert ended(sandbox, runaway.grow) == "memory"


def test_a_crash_is_told(sandbox):
    assert ended(sandbox, runaway.crash) == "crash"


def test_a_call_can_be_stopped(sandbox):
    stopped = threading.Event()
    threading.Timer(0.3, stopped.set).start()
    assert ended(sandbox, runaway.burn, is_stopped=stopped.is_set) == "stopped"


def test_no_key_is_in_its_environment(sandbox, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret-of-the-server")
    monkeypatch.setenv("HARMLESS", "yes")
    with Sandbox(MEMORY) as other:
        assert other.call(runaway.environment, "HARMLESS", timeout=60) == "yes"
        assert other.call(runaway.environment, "SOME_API_KEY", timeout=60) is None
