"""Runs: their status, configuration and results."""

import subprocess
import sys
import time

import numpy as np
import pytest

import climassay
from climassay.errors import InputError, RecordsError
from climassay.records import Records
from climassay.records.queries import list_runs, run_details


@pytest.fixture
def store(tmp_path):
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as opened:
        yield opened


def only_run(store):
    (run,) = list_runs(store.database)
    return run


def test_a_run_is_running_and_then_done(store):
    with store.run("evaluate mcq", {"file": "q.csv", "k": 3}, {"orders": 7}) as run:
        assert only_run(store).status == "running"
        assert only_run(store).ended_at is None
    details = run_details(store.database, run.id)
    assert details.summary.status == "done"
    assert details.summary.command == "evaluate mcq"
    assert details.summary.version == climassay.__version__
    assert details.summary.started_at <= details.summary.ended_at
    assert (details.config, details.seeds, details.error) == ({"file": "q.csv", "k": 3}, {"orders": 7}, None)


def test_an_error_makes_it_failed_with_the_reason(store):
    with pytest.raises(InputError), store.run("test", {}) as run:
        raise InputError("The file is empty.")
    assert run_details(store.database, run.id).error == "The file is empty."
    assert only_run(store).status == "failed"


def test_ctrl_c_makes_it_interrupted(store):
    with pytest.raises(KeyboardInterrupt), store.run("test", {}):
        raise KeyboardInterrupt
    assert only_run(store).status == "interrupted"


@pytest.mark.core
@pytest.mark.process
def test_a_killed_run_is_interrupted_once_it_has_been_silent(store, tmp_path, monkeypatch):
    program = (
        "import os, signal, sys\n"
        "from climassay.records import Records\n"
        "with Records(sys.argv[1]).run('killed', {}): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, f"sqlite:///{tmp_path}/records.sqlite"], check=False)
    assert only_run(store).status == "running", "it may still be alive"
    later = time.time() + 100
    monkeypatch.setattr("time.time", lambda: later)
    assert only_run(store).status == "interrupted"
    with store.run("next", {}):
        killed, following = list_runs(store.database)
    assert (killed.status, following.status) == ("interrupted", "running")
    assert killed.ended_at is not None
    assert killed.ended_at < following.started_at


def test_a_silent_run_gives_signs_of_life(store, monkeypatch):
    monkeypatch.setattr("climassay.records.store.HEARTBEAT_SECONDS", 0.01)
    seen = set()
    with store.run("slow", {}), store.database.read() as connection:
        connection.rollback()
        while len(seen) < 3:
            seen.add(connection.exec_driver_sql("SELECT seen_at FROM runs").scalar())
            connection.rollback()
    assert only_run(store).status == "done"


def test_results_are_kept_by_table_in_their_order(store):
    rows = [{"level": "base", "n": np.int64(3), "accuracy": np.float32(0.5)}, {"level": "all", "none": None}]
    with store.run("test", {"path": __import__("pathlib").Path("a/b")}) as run:
        run.save_results("scores", [{"old": 1}] * 5)
        run.save_results("scores", rows)
        run.save_results("empty", [])
    kept = run_details(store.database, run.id)
    assert kept.results == {"scores": [{"level": "base", "n": 3, "accuracy": 0.5}, {"level": "all", "none": None}]}
    assert kept.config == {"path": "a/b"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64("nan"), object()])
def test_results_that_are_no_results_are_refused(store, value):
    with store.run("test", {}) as run:
        with pytest.raises(RecordsError, match="The row 1 of scores cannot be stored as JSON"):
            run.save_results("scores", [{"fine": 1}, {"accuracy": value}])
        assert run_details(store.database, run.id).results == {}


def test_nothing_about_the_machine_is_kept(store, tmp_path):
    import getpass
    import socket

    with store.run("test", {}):
        pass
    store.close()
    content = (tmp_path / "records.sqlite").read_bytes()
    assert socket.gethostname().encode() not in content
    assert str(tmp_path).encode() not in content
    assert getpass.getuser() == "r" or f"/{getpass.getuser()}/".encode() not in content
