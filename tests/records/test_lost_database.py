"""A PostgreSQL server that is restarted while commands and a web server use it."""

import threading

import pytest
import sqlalchemy as sa

from climassay.errors import LostDatabaseError
from climassay.models import GenerationRequest, Message
from climassay.records import RecordedModel, Records, tables
from climassay.records.database import Database
from patience import job_at_its_end, reached
from scripted_model import ScriptedModel


def rows(database):
    return database.scalar(sa.select(sa.func.count()).select_from(tables.meta).where(tables.meta.c.name.like("row %")))


def insert(number):
    return tables.meta.insert().values(name=f"row {number}", value="")


def test_what_is_written_after_a_restart_is_stored_once(postgres_server, postgres_url):
    database = Database(postgres_url)
    for number in range(3):
        database.execute(insert(number))
        postgres_server.restart()
        assert rows(database) == number + 1
    database.close()


def test_a_transaction_whose_connection_is_lost_before_its_commit_is_done_again(postgres_server, postgres_url):
    database, attempts = Database(postgres_url), []

    def work(connection):
        attempts.append(1)
        connection.execute(insert(len(attempts)))
        if len(attempts) == 1:
            postgres_server.restart()
        connection.execute(insert(f"{len(attempts)} again"))

    database.write(work)
    assert (len(attempts), rows(database)) == (2, 2)
    database.close()


def test_a_run_survives_a_restart(postgres_server, postgres_url):
    restarts = []

    def answer(prompt, schema):
        if "question 5" in prompt and not restarts:
            restarts.append(prompt)
            postgres_server.restart()
        return f"answer to {prompt}"

    requests = [GenerationRequest((Message("user", f"question {number}"),)) for number in range(8)]
    with Records(postgres_url) as store:
        with store.run("ask", {}) as run:
            model = RecordedModel(ScriptedModel(write=answer), store, run)
            completions = [model.generate([request])[0] for request in requests]
        assert restarts
        assert all(f"question {number}" in one.text for number, one in enumerate(completions))
        with store.run("ask", {}) as run:
            again = RecordedModel(ScriptedModel(write=answer), store, run)
            assert again.generate(requests) == completions
            assert (again.tally.hits, again.tally.sent) == (8, 0)


def test_a_server_that_stays_away_is_told(postgres_server, postgres_url, monkeypatch):
    monkeypatch.setattr("climassay.records.database.RECONNECT_SECONDS", 0.5)
    database = Database(postgres_url)
    postgres_server.control("-m", "fast", "stop")
    try:
        with pytest.raises(LostDatabaseError, match="The records database"):
            rows(database)
    finally:
        postgres_server.control("start")
    assert rows(database) == 0
    database.close()


def test_jobs_of_a_web_server_go_on_after_a_restart(postgres_server, place_on, postgres_url, monkeypatch):
    monkeypatch.setattr("climassay.web.jobs.HEARTBEAT_SECONDS", 0.05)
    place, begun = place_on(postgres_url), threading.Event()

    def work(place, payload, report):
        if not begun.is_set():
            begun.set()
            postgres_server.restart()
        report.event("done", {"all": True})
        return {"done": True}

    place.jobs.register("patient", work, "corpus")
    place.jobs.start(place)
    job = place.jobs.submit("patient", "x", {})
    reached(begun)
    assert job_at_its_end(place.jobs, job).result == {"done": True}
