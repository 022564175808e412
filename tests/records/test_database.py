"""Opening databases that are fine, broken, foreign, newer or busy, on SQLite and PostgreSQL."""

import sqlite3
import threading

import pytest

from climassay.errors import InputError, RecordsError
from climassay.records import RecordedModel, Records
from climassay.records import database as server_lock
from climassay.records.database import Database, ServerLock
from climassay.records.queries import list_runs, run_details, usage_by_model
from climassay.records.recorded_answers import find_answers, iterate_answers
from climassay.records.tables import SCHEMA_VERSION
from climassay.records.transfer import export_answers
from patience import PATIENCE, reached
from writing_process import Shout, ask, write_at_once


def url_of(path):
    return f"sqlite:///{path}"


def fill(url, count=50):
    with Records(url) as store, store.run("fill", {"note": "x" * 5000}) as run:
        recorded = RecordedModel(Shout(), store, run)
        recorded.generate(ask(*(f"{n} " + "long " * 200 for n in range(count))))


def test_a_new_file_uses_the_write_ahead_log_and_every_commit_reaches_the_disk(tmp_path):
    with Records(url_of(tmp_path / "r.sqlite")) as store, store.database.read() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2}


@pytest.mark.parametrize("damage", ["not a database", "cut", "overwritten"])
def test_a_damaged_file_is_one_sentence_and_stays_as_it_is(tmp_path, damage):
    path = tmp_path / "r.sqlite"
    fill(url_of(path))
    content = path.read_bytes()
    damaged = {
        "not a database": b"These are the notes of my last field campaign. " * 100,
        "cut": content[: len(content) // 2],
        "overwritten": content[:4096] + b"\xff" * (len(content) - 4096),
    }[damage]
    path.write_bytes(damaged)
    with pytest.raises(
        RecordsError, match=r"r\.sqlite is corrupt \(.+\): restore .* climassay records restore FILE.*\.$"
    ):
        Records(url_of(path))
    assert path.read_bytes() == damaged


def test_damage_that_is_met_later_is_the_same_sentence(tmp_path):
    path = tmp_path / "r.sqlite"
    fill(url_of(path), 500)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : -4096] = b"\x07" * (len(content) - 4096 - len(content) // 2)
    path.write_bytes(content)
    with pytest.raises(RecordsError, match="is corrupt"), Records(url_of(path)) as store:
        list(iterate_answers(store.database))


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE birds (name TEXT)"],
        ["CREATE TABLE meta (name TEXT, value TEXT)"],
        ["CREATE TABLE meta (name TEXT, value TEXT)", "INSERT INTO meta VALUES ('schema_version', 'first')"],
    ],
)
def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path, statements):
    path = tmp_path / "r.sqlite"
    with sqlite3.connect(path) as other:
        for statement in statements:
            other.execute(statement)
    other.close()
    before = path.read_bytes()
    with pytest.raises(RecordsError, match="not one of climassay's records"):
        Records(url_of(path))
    assert path.read_bytes()[100:] == before[100:], "only the header may say that there is a write-ahead log"


def test_a_folder_in_the_place_of_the_file_is_one_sentence(tmp_path):
    with pytest.raises(RecordsError, match="cannot be opened"):
        Records(url_of(tmp_path))


def test_a_password_is_not_shown():
    with pytest.raises(RecordsError) as caught:
        Records("postgresql://user:open-sesame@127.0.0.1:1/none")
    assert "open-sesame" not in str(caught.value)
    assert "user:***@127.0.0.1:1/none" in str(caught.value)


def test_a_transaction_that_loses_is_done_again(tmp_path, monkeypatch):
    monkeypatch.setattr("climassay.records.database.BUSY_SECONDS", 0)
    path = tmp_path / "r.sqlite"
    database = Database(url_of(path))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    attempts = []

    def release_in_the_third(*_):
        attempts.append(1)
        if len(attempts) == 2:
            other.execute("COMMIT")

    from sqlalchemy import event

    event.listen(database._engine, "handle_error", release_in_the_third)
    assert database.write(lambda connection: "done") == "done"
    assert len(attempts) == 2
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RecordsError, match="stayed locked by another process"):
        database.write(lambda connection: "never")
    other.close()
    database.close()


@pytest.mark.process
def test_processes_that_make_the_database_at_once_make_one(tmp_path):
    url = url_of(tmp_path / "r.sqlite")
    write_at_once(url, [0] * 8, 0)
    with Records(url) as store:
        assert len(list_runs(store.database)) == 8


@pytest.mark.process
def test_two_processes_that_write_the_same_at_once_lose_nothing(tmp_path):
    url = url_of(tmp_path / "r.sqlite")
    write_at_once(url, [0, 50], 20)
    with Records(url) as store:
        answers = [answer for bundle in iterate_answers(store.database) for answer in bundle]
    assert {answer.prompt for answer in answers} == {f"text {n}" for n in range(260)}
    assert len(answers) == 2 * 20 * 20
    assert all(answer.text == answer.prompt.upper() for answer in answers)


@pytest.fixture
def lock(database_url):
    """Makes locks, which are let go at the end."""
    made = []

    def another():
        made.append(ServerLock(database_url))
        return made[-1]

    yield another
    for one in made:
        one.close()


def test_the_second_server_is_refused_with_the_address_of_the_first(lock, monkeypatch):
    monkeypatch.setattr(server_lock, "WAIT_SECONDS", 0.0)
    first, said = lock(), []
    first.acquire()
    first.acquire()  # which it has already
    first.announce("http://127.0.0.1:8123")
    with pytest.raises(
        InputError, match=r"is already served at http://127\.0\.0\.1:8123: .* or stop that server first\.$"
    ):
        lock().acquire(said.append)
    assert said == ["http://127.0.0.1:8123"]
    first.close()
    lock().acquire()


def test_a_restart_that_overlaps_waits_for_the_first_to_end(lock):
    first, second, waiting = lock(), lock(), threading.Event()
    first.acquire()
    restarting = threading.Thread(target=second.acquire, args=(lambda _: waiting.set(),))
    restarting.start()
    reached(waiting)
    first.close()
    restarting.join(PATIENCE)
    assert not restarting.is_alive()
    second.announce("http://127.0.0.1:8124")


def test_processes_that_make_the_tables_and_write_the_same_at_once_lose_nothing(postgres_url):
    write_at_once(postgres_url, [0, 0, 50], 10)
    with Records(postgres_url) as store:
        answers = [answer for bundle in iterate_answers(store.database) for answer in bundle]
    assert {answer.prompt for answer in answers} == {f"text {n}" for n in range(160)}
    assert len(answers) == 3 * 10 * 20


def test_answers_are_asked_once_failures_again_and_all_is_counted(postgres_url, tmp_path):
    model = Shout()
    texts = ["one\x00", "two \ud83d", "fail", "three 'quoted' % :x"]
    for expected in (4, 1):
        before = model.asked
        with Records(postgres_url) as store, store.run("postgres", {"n": 1}, {"seed": 2}) as run:
            recorded = RecordedModel(model, store, run)
            answers = recorded.generate(ask(*texts))
            run.save_results("scores", [{"accuracy": 0.5}])
        assert model.asked - before == expected
        assert [answer.text for answer in answers] == ["ONE\ufffd", "TWO \ufffd", "", "THREE 'QUOTED' % :X"]
    with Records(postgres_url) as store:
        summary = next(one for one in list_runs(store.database) if one.id == run.id)
        assert (summary.sent, summary.failed, summary.served, summary.status) == (1, 1, 3, "done")
        details = run_details(store.database, run.id)
        assert (details.config, details.seeds, details.results) == (
            {"n": 1},
            {"seed": 2},
            {"scores": [{"accuracy": 0.5}]},
        )
        assert [(use.answers, use.failed, use.cost) for use in usage_by_model(store.database, run.id)] == [(1, 1, None)]
        assert [(one.failed, one.served, sum(one.reasons.values())) for one in details.calls] == [(1, 3, 1)]
        assert export_answers(store.database, tmp_path / "run.parquet", run.id) == 4
        found = next(a for bundle in iterate_answers(store.database, run.id) for a in bundle if a.error is None)
        assert find_answers(store.database, found.key[:9])[0].text == found.text


def test_tables_are_in_a_schema_of_their_own(postgres_url):
    with Records(postgres_url) as store, store.database.read() as connection:
        names = (
            connection.exec_driver_sql("SELECT schemaname FROM pg_tables WHERE tablename = 'answers'").scalars().all()
        )
    assert names == ["climassay"]


def test_a_newer_schema_is_refused(postgres_url):
    with Records(postgres_url) as store:
        statement = "UPDATE climassay.meta SET value = '{}' WHERE name = 'schema_version'"
        store.database.write(lambda connection: connection.exec_driver_sql(statement.format(99)))
        with pytest.raises(RecordsError, match="has schema version 99"):
            Records(postgres_url)
        store.database.write(lambda connection: connection.exec_driver_sql(statement.format(SCHEMA_VERSION)))


def test_a_server_that_is_not_there_is_one_sentence(postgres_url):
    with pytest.raises(RecordsError, match="does not work") as caught:
        Records(postgres_url.replace("host=", "host=/nowhere"))
    assert "\n" not in str(caught.value)
