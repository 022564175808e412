"""Runs and what is asked of the records: status, results, usage, look-up and export, counted by hand."""

import csv
import json
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

import climassay
from climassay.errors import InputError, RecordsError
from climassay.models import Completion, GenerationRequest, Message, OptionRequest, OptionScores, Usage
from climassay.records import RecordedModel, Records, tables
from climassay.records.answer_writer import OWNER
from climassay.records.queries import calls_by_model, list_runs, run_details, seconds_per_answer, usage_by_model
from climassay.records.recorded_answers import find_answers, iterate_answers
from climassay.records.transfer import export_answers


class Priced:
    """Answers whose usage follows from the prompt: ``cost tokens``; the word ``fail`` fails."""

    def __init__(self, name):
        self.name = name
        self.fingerprint = name.ljust(64, "0")

    def render(self, messages, assistant_prefix=""):
        return messages[-1].content + assistant_prefix

    def generate(self, requests, *, on_result=None):
        for index, request in enumerate(requests):
            words = request.messages[-1].content.split()
            if words[0] == "fail":
                on_result(index, Completion.failed("No luck.", Usage(requests=3)))
            else:
                cost = None if words[0] == "free" else float(words[0])
                on_result(index, Completion('an "answer",\nof two lines', "stop", Usage(int(words[1]), 2, 1, cost)))

    def option_logprobs(self, requests, *, on_result=None):
        for index, _ in enumerate(requests):
            on_result(index, OptionScores((-0.5, -1.25), "exact", Usage(7, 0, 1)))

    def close(self):
        """Nothing to give back."""


class Failing(Priced):
    """Every request fails for the reason that it states."""

    def generate(self, requests, *, on_result=None):
        for index, request in enumerate(requests):
            on_result(index, Completion.failed(request.messages[-1].content, Usage(requests=1)))


def ask(*texts):
    return [GenerationRequest((Message("user", text),)) for text in texts]


@pytest.fixture
def store(tmp_path):
    """Two runs: the first asks four, of which one fails; the second is served two and asks three."""
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as opened:
        with opened.run("first", {}) as run:
            RecordedModel(Priced("openai:a"), opened, run).generate(ask("0.5 10", "0.25 20", "fail"))
            RecordedModel(Priced("openai:b"), opened, run).generate(ask("free 5"))
        with opened.run("second", {}) as run:
            RecordedModel(Priced("openai:a"), opened, run).generate(ask("0.5 10", "0.25 20", "fail", "free 1"))
            options = OptionRequest((Message("user", "which?"),), ("yes", "no"))
            RecordedModel(Priced("openai:b"), opened, run).option_logprobs([options])
        yield opened


def test_usage_adds_up_by_model_and_an_unknown_price_is_unknown(store):
    a, b = usage_by_model(store.database)
    assert (a.model, a.answers, a.failed, a.attempts) == ("openai:a", 5, 2, 9)
    assert (a.prompt_tokens, a.completion_tokens, a.cost, a.unpriced) == (31, 6, 0.75, 1)
    assert (b.model, b.answers, b.failed, b.prompt_tokens, b.cost, b.unpriced) == ("openai:b", 2, 0, 12, None, 2)


def test_an_unknown_price_of_a_local_model_is_none(store):
    a, b = usage_by_model(store.database)
    shown = [
        one.formatted_cost for one in (a, b, replace(b, model="local:smollm2", unpriced=0), replace(a, unpriced=0))
    ]
    assert shown == ["$0.7500 + 1 unpriced", "unknown", "none (local model)", "$0.7500"]


def test_seconds_per_answer_are_those_of_the_latest_runs_and_leave_failures_out(store):
    def dated(connection):
        first, second = connection.execute(sa.select(tables.runs.c.id).order_by(tables.runs.c.started_at)).scalars()
        for run, start in ((first, 1000.0), (second, 2000.0)):
            connection.execute(sa.update(tables.runs).where(tables.runs.c.id == run).values(started_at=start))
            answered = sa.update(tables.answers).where(tables.answers.c.run == run)
            connection.execute(answered.values(answered_at=start + 10))

    store.database.write(dated)
    # openai:a gave two answers in the first run and one in the second, each run taking ten seconds.
    assert seconds_per_answer(store.database, "openai:a") == pytest.approx(20 / 3)
    assert seconds_per_answer(store.database, "openai:a", n_runs=1) == pytest.approx(10)
    assert seconds_per_answer(store.database, "openai:unheard-of") is None


def test_a_request_is_found_by_the_start_of_its_key_with_all_its_answers(store):
    failed = next(a for bundle in iterate_answers(store.database) for a in bundle if a.error)
    for digits in (4, 5, 63, 64):
        first, second = find_answers(store.database, failed.key[:digits].upper())
        assert (first.key, second.key, first.prompt) == (failed.key, failed.key, "fail")
    assert first.run != second.run


@pytest.mark.parametrize(
    ("prefix", "sentence"), [("abc", "neither"), ("xyzw", "neither"), ("a" * 65, "neither"), ("0" * 40, "0 requests")]
)
def test_a_prefix_that_finds_nothing_says_so(store, prefix, sentence):
    with pytest.raises(RecordsError, match=sentence):
        find_answers(store.database, prefix)


def test_jsonl_has_every_answer_in_full(store, tmp_path):
    told = []
    assert export_answers(store.database, tmp_path / "all.jsonl", on_progress=told.append) == 7 == sum(told)
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["prompt"] for row in rows][:4] == ["0.5 10", "0.25 20", "fail", "free 5"]
    assert rows[0]["text"] == 'an "answer",\nof two lines'
    assert rows[0]["settings"]["sampling"]["max_tokens"] == 256
    assert (rows[2]["outcome"], rows[2]["error"], rows[2]["text"]) == ("error", "No luck.", None)
    assert (rows[-1]["kind"], rows[-1]["logprobs"], rows[-1]["outcome"]) == ("options", [-0.5, -1.25], "exact")
    assert rows[-1]["settings"] == {"options": ["yes", "no"]}


def test_csv_and_parquet_hold_the_same(store, tmp_path):
    for ending in ("csv", "parquet"):
        assert export_answers(store.database, tmp_path / f"all.{ending}") == 7
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        from_csv = list(csv.DictReader(file))
    from_parquet = pq.read_table(tmp_path / "all.parquet").to_pylist()
    assert [row["key"] for row in from_csv] == [row["key"] for row in from_parquet]
    assert from_csv[0]["text"] == from_parquet[0]["text"] == 'an "answer",\nof two lines'
    assert (from_csv[0]["cost"], from_parquet[0]["cost"], from_csv[3]["cost"], from_parquet[3]["cost"]) == (
        "0.5",
        0.5,
        "",
        None,
    )
    assert json.loads(from_csv[-1]["logprobs"]) == from_parquet[-1]["logprobs"] == [-0.5, -1.25]
    assert json.loads(from_parquet[-1]["settings"]) == {"options": ["yes", "no"]}


def test_a_file_is_written_whole_or_not_at_all(store, tmp_path, monkeypatch):
    target = tmp_path / "out.jsonl"
    target.write_text("what was there")

    def broken(*_):
        yield next(iterate_answers(store.database))
        raise RecordsError("The database is gone.")

    monkeypatch.setattr("climassay.records.transfer.iterate_answers", broken)
    with pytest.raises(RecordsError, match="is gone"):
        export_answers(store.database, target)
    assert target.read_text() == "what was there"
    assert not list(tmp_path.glob(".*.new"))


@pytest.mark.parametrize("name", ["out.xlsx", "out", "no/folder/out.csv"])
def test_a_file_that_cannot_be_written_is_one_sentence(store, tmp_path, name):
    with pytest.raises(InputError, match=r"choose"):
        export_answers(store.database, tmp_path / name)


def test_usage_of_one_run_is_what_it_asked(store):
    _, second = list_runs(store.database)
    a, b = usage_by_model(store.database, second.id)
    assert (a.answers, a.failed, a.attempts, a.cost, a.unpriced) == (2, 1, 4, None, 1)
    assert (b.answers, b.prompt_tokens) == (1, 7)
    with pytest.raises(RecordsError, match="There is no run r00000000"):
        usage_by_model(store.database, "r00000000")


@pytest.fixture
def runs(tmp_path):
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as opened:
        yield opened


def only_run(runs):
    (run,) = list_runs(runs.database)
    return run


def test_a_run_is_running_and_then_done(runs):
    with runs.run("evaluate mcq", {"file": "q.csv", "k": 3}, {"orders": 7}) as run:
        assert only_run(runs).status == "running"
        assert only_run(runs).ended_at is None
    details = run_details(runs.database, run.id)
    assert details.summary.status == "done"
    assert details.summary.command == "evaluate mcq"
    assert details.summary.version == climassay.__version__
    assert details.summary.started_at <= details.summary.ended_at
    assert (details.config, details.seeds, details.error) == ({"file": "q.csv", "k": 3}, {"orders": 7}, None)


def test_an_error_makes_it_failed_with_the_reason(runs):
    with pytest.raises(InputError), runs.run("test", {}) as run:
        raise InputError("The file is empty.")
    assert run_details(runs.database, run.id).error == "The file is empty."
    assert only_run(runs).status == "failed"


def test_ctrl_c_makes_it_interrupted(runs):
    with pytest.raises(KeyboardInterrupt), runs.run("test", {}):
        raise KeyboardInterrupt
    assert only_run(runs).status == "interrupted"


_OWNED = tables.meta.c.name.startswith(OWNER)


@pytest.mark.core
@pytest.mark.process
def test_a_killed_run_is_interrupted_at_once_here_and_elsewhere_when_it_has_been_silent(runs, tmp_path, monkeypatch):
    program = (
        "import os, signal, sys\n"
        "from climassay.records import Records\n"
        "with Records(sys.argv[1]).run('killed', {}): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, f"sqlite:///{tmp_path}/records.sqlite"], check=False)
    assert only_run(runs).status == "interrupted"
    owner = {"value": "another machine 1 1"}
    runs.database.write(lambda connection: connection.execute(tables.meta.update().where(_OWNED).values(owner)))
    assert only_run(runs).status == "running", "it may still be alive"
    later = time.time() + 100
    monkeypatch.setattr("time.time", lambda: later)
    assert only_run(runs).status == "interrupted"
    with runs.run("next", {}):
        killed, following = list_runs(runs.database)
    assert (killed.status, following.status) == ("interrupted", "running")
    assert killed.ended_at is not None
    assert killed.ended_at < following.started_at


def test_a_silent_run_gives_signs_of_life(runs, monkeypatch):
    monkeypatch.setattr("climassay.records.answer_writer.HEARTBEAT_SECONDS", 0.01)
    seen = set()
    with runs.run("slow", {}), runs.database.read() as connection:
        connection.rollback()
        while len(seen) < 3:
            seen.add(connection.exec_driver_sql("SELECT seen_at FROM runs").scalar())
            connection.rollback()
    assert only_run(runs).status == "done"


def test_results_are_kept_by_table_in_their_order(runs):
    rows = [{"level": "base", "n": np.int64(3), "accuracy": np.float32(0.5)}, {"level": "all", "none": None}]
    with runs.run("test", {"path": __import__("pathlib").Path("a/b")}) as run:
        run.save_results("scores", [{"old": 1}] * 5)
        run.save_results("scores", rows)
        run.save_results("empty", [])
    kept = run_details(runs.database, run.id)
    assert kept.results == {"scores": [{"level": "base", "n": 3, "accuracy": 0.5}, {"level": "all", "none": None}]}
    assert kept.config == {"path": "a/b"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64("nan"), object()])
def test_results_that_are_no_results_are_refused(runs, value):
    with runs.run("test", {}) as run:
        with pytest.raises(RecordsError, match="The row 1 of scores cannot be stored as JSON"):
            run.save_results("scores", [{"fine": 1}, {"accuracy": value}])
        assert run_details(runs.database, run.id).results == {}


def test_nothing_about_the_machine_is_kept(runs, tmp_path):
    import getpass
    import socket

    with runs.run("test", {}):
        pass
    runs.close()
    content = (tmp_path / "records.sqlite").read_bytes()
    assert socket.gethostname().encode() not in content
    assert str(tmp_path).encode() not in content
    assert getpass.getuser() == "r" or f"/{getpass.getuser()}/".encode() not in content


def test_failures_are_told_by_their_reasons_the_commonest_first(store):
    busy = "The server answered 503: Busy."
    reasons = [f"No answer after {n} attempts; the last one: The server answered 500: request q{n}." for n in (5, 12)]
    with store.run("third", {}) as run:
        RecordedModel(Failing("openai:c"), store, run).generate(ask(busy, *reasons))
    (calls,) = calls_by_model(store.database, [run.id])
    assert (calls.sent, calls.failed, calls.served) == (3, 3, 0)
    assert list(calls.reasons.items()) == [("The server answered 500: request q5.", 2), (busy, 1)]
    assert next(calls.sentences()) == "openai:c: all 3 calls failed:"
    earlier = {one.model: one for one in calls_by_model(store.database)}
    assert (earlier["openai:a"].sent, earlier["openai:a"].failed, earlier["openai:a"].served) == (5, 2, 2)
    assert list(earlier["openai:a"].sentences()) == ["openai:a: 2 of 5 calls failed: No luck."]
    assert not list(earlier["openai:b"].sentences())
