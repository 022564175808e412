import errno
import json
import socket
import threading
from collections import Counter

import pytest
import sqlalchemy as sa

from climassay.errors import FullDatabaseError, InputError, LostDatabaseError, RecordsError
from climassay.web.access import SESSION_COOKIE
from climassay.web.jobs import MAX_RUNNING_PER_USER, JobReport, Stopped, jobs
from patience import PATIENCE, job_at_its_end, reached, until
from web_parts import application_over, post, serving


def counting(place, payload, report):
    for number in range(place.jobs.last_events([report.job]).get(report.job, 0), payload["to"]):
        report.event("number", {"n": number})
        report.progress(number + 1, payload["to"], f"counted {number}")
    return {"page": "/counted"}


@pytest.fixture
def started(place):
    place.jobs.register("count", counting, "corpus")
    place.jobs.start(place)
    return place


def test_a_job_is_done_and_tells_in_order(started):
    job = started.jobs.submit("count", "Count to 5", {"to": 5}, by="ada")
    done = job_at_its_end(started.jobs, job)
    assert (done.state, done.done, done.total, done.by) == ("done", 5, 5, "ada")
    assert done.result == {"page": "/counted"}
    events = started.jobs.events(job)
    assert [event.number for event in events] == [1, 2, 3, 4, 5]
    assert [event.body["n"] for event in events] == [0, 1, 2, 3, 4]
    assert [event.number for event in started.jobs.events(job, after=3)] == [4, 5]


def test_a_failure_is_a_sentence(started):
    def sentence(place, payload, report):
        raise InputError("The file is empty.")

    def bug(place, payload, report):
        raise ZeroDivisionError("secret of the machine")

    started.jobs.register("sentence", sentence, "corpus")
    started.jobs.register("bug", bug, "corpus")
    assert job_at_its_end(started.jobs, started.jobs.submit("sentence", "x", {})).error == "The file is empty."
    failed = job_at_its_end(started.jobs, started.jobs.submit("bug", "x", {}))
    assert failed.state == "failed"
    assert "secret" not in failed.error
    assert job_at_its_end(started.jobs, started.jobs.submit("count", "x", {"to": 1})).state == "done"


def test_jobs_of_a_lane_come_one_after_the_other(started):
    running, most, order = [], [], []

    def alone(place, payload, report):
        running.append(payload["n"])
        most.append(len(running))
        order.append(payload["n"])
        running.remove(payload["n"])

    started.jobs.register("alone", alone, "training")
    jobs = [started.jobs.submit("alone", "x", {"n": n}) for n in range(6)]
    for job in jobs:
        job_at_its_end(started.jobs, job)
    assert max(most) == 1
    assert order == list(range(6))


def test_people_take_turns_whoever_asked_for_more(place):
    order, gate = [], threading.Event()

    def work(place, payload, report):
        reached(gate)
        order.append(payload["name"])

    place.jobs.register("work", work, "training")
    submit = lambda by, n: place.jobs.submit("work", "x", {"name": f"{by}{n}"}, by=by)  # noqa: E731
    made = [submit("ada", n) for n in range(4)]
    place.jobs.start(place)
    until(lambda: place.jobs.get(made[0]).state == "running")
    made += [submit("bob", 0), submit("bob", 1), submit("cy", 0)]
    assert [job.payload["name"] for job in place.jobs.list_queued("training")] == [
        "bob0", "cy0", "ada1", "bob1", "ada2", "ada3",
    ]  # fmt: skip
    turn = place.jobs.find_queue_position(place.jobs.get(made[-1]))
    assert (turn.n_before, turn.seconds) == (1, None)
    assert place.jobs.find_queue_position(place.jobs.get(made[0])) is None
    gate.set()
    for job in made:
        job_at_its_end(place.jobs, job)
    assert order == ["ada0", "bob0", "cy0", "ada1", "bob1", "ada2", "ada3"]
    later = Gate()
    place.jobs.register("work", lambda *_: later(), "training")
    first, second = submit("ada", 4), submit("ada", 5)
    until(lambda: place.jobs.get(first).state == "running")
    # From three jobs of the kind on, there is an estimate.
    assert place.jobs.find_queue_position(place.jobs.get(second)).seconds >= 0
    later.open.set()
    job_at_its_end(place.jobs, second)


class Gate:
    """Holds a job until it is opened."""

    def __init__(self):
        self.open = threading.Event()

    def __call__(self):
        reached(self.open)


@pytest.mark.parametrize(("lane", "other"), [("checks", "checks"), ("checks", "questions")])
def test_a_job_that_hangs_stops_no_other(place, lane, other):
    gate = Gate()
    place.jobs.register("hanging", lambda *_: gate(), lane)
    place.jobs.register("quick", lambda *_: {}, other)
    place.jobs.start(place)
    hanging = place.jobs.submit("hanging", "x", {}, by="ada")
    until(lambda: place.jobs.get(hanging).state == "running")
    assert job_at_its_end(place.jobs, place.jobs.submit("quick", "x", {}, by="ada")).state == "done"
    assert place.jobs.get(hanging).state == "running"
    gate.open.set()
    job_at_its_end(place.jobs, hanging)


def test_hanging_jobs_of_two_people_leave_places_for_others(place):
    gate = Gate()
    place.jobs.register("hanging", lambda *_: gate(), "checks")
    place.jobs.register("quick", lambda *_: {}, "checks")
    hanging = [place.jobs.submit("hanging", "x", {}, by=by) for by in ("ada", "bob") for _ in range(4)]
    place.jobs.start(place)

    def running():
        return [job for job in map(place.jobs.get, hanging) if job.state == "running"]

    until(lambda: len(running()) == 2 * MAX_RUNNING_PER_USER)
    assert job_at_its_end(place.jobs, place.jobs.submit("quick", "x", {}, by="cy")).state == "done"
    own = place.jobs.get(place.jobs.submit("quick", "x", {}, by="ada"))
    assert place.jobs.find_queue_position(own).n_own_running == MAX_RUNNING_PER_USER
    assert Counter(job.by for job in running()) == {"ada": MAX_RUNNING_PER_USER, "bob": MAX_RUNNING_PER_USER}
    gate.open.set()
    for job in (*hanging, own.id):
        assert job_at_its_end(place.jobs, job).state == "done"


def test_a_stopped_job_ends(started):
    begun = threading.Event()

    def endless(place, payload, report):
        while True:
            begun.set()
            report.progress(0, 0, "still at it")

    started.jobs.register("endless", endless, "corpus")
    job = started.jobs.submit("endless", "x", {})
    reached(begun)
    started.jobs.stop(job)
    assert job_at_its_end(started.jobs, job).state == "stopped"
    list_queued = started.jobs.submit("count", "x", {"to": 2})
    assert job_at_its_end(started.jobs, list_queued).state == "done"
    started.jobs.stop(list_queued)
    assert started.jobs.get(list_queued).state == "done"


def test_what_a_kill_has_cut_goes_on_at_the_next_start(place_on, database_url):
    first = place_on(database_url)
    first.jobs.register("count", counting, "corpus")
    job = first.jobs.submit("count", "Count", {"to": 4})
    # The state that a SIGKILL leaves: taken, two events told, nobody there any more.
    assert first.jobs._claim_next("corpus").id == job
    report = JobReport(first.jobs, job)
    for number in range(2):
        report.event("number", {"n": number})
    assert first.jobs.get(job).state == "running"
    second = place_on(database_url)
    second.jobs.register("count", counting, "corpus")
    second.jobs.requeue_foreign_jobs()
    second.jobs.start(second)
    assert job_at_its_end(second.jobs, job).state == "done"
    assert [event.body["n"] for event in second.jobs.events(job)] == [0, 1, 2, 3]


class Patient:
    """Work that waits until it may end; ``report`` is what it was given."""

    def __init__(self, place):
        self.begun, self.may_end, self.report = threading.Event(), threading.Event(), None
        place.jobs.register("patient", self, "corpus")
        place.jobs.start(place)

    def __call__(self, place, payload, report):
        self.report = report
        self.begun.set()
        reached(self.may_end)
        return {"done": True}


def test_a_running_job_is_not_queued_again_while_its_server_lives(place_on, database_url, monkeypatch):
    first, second = place_on(database_url), place_on(database_url)
    monkeypatch.setattr("climassay.web.jobs.HEARTBEAT_SECONDS", 0.02)
    work = Patient(first)
    job = first.jobs.submit("patient", "x", {})
    reached(work.begun)
    seen = seen_at(first, job)
    other = Patient(second)  # which looks after the jobs of others from now on
    until(lambda: seen_at(first, job) > seen)
    assert first.jobs.get(job).state == "running"
    assert not other.begun.is_set()
    work.may_end.set()
    assert job_at_its_end(first.jobs, job).result == {"done": True}
    other.may_end.set()


@pytest.mark.parametrize("error", [RecordsError("away"), LostDatabaseError("away")])
def test_a_job_whose_end_could_not_be_stored_is_done_again(error, place_on, database_url, monkeypatch):
    place = place_on(database_url)
    monkeypatch.setattr("climassay.web.jobs.HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr("climassay.web.jobs.POLL_INTERVAL", 0.05)
    end, failures = place.jobs._end_job, [error, error]

    def fail(*arguments, **values):
        if failures:
            raise failures.pop()
        end(*arguments, **values)

    monkeypatch.setattr(place.jobs, "_end_job", fail)
    place.jobs.register("count", counting, "corpus")
    place.jobs.start(place)
    job = place.jobs.submit("count", "Count", {"to": 3})
    assert job_at_its_end(place.jobs, job).state == "done"
    assert [event.body["n"] for event in place.jobs.events(job)] == [0, 1, 2]
    assert not failures


def test_a_job_that_waits_for_room_says_so_until_it_goes_on(place_on, database_url, monkeypatch):
    place, is_full = place_on(database_url), threading.Event()
    monkeypatch.setattr("climassay.web.jobs.HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr("climassay.web.jobs.POLL_INTERVAL", 0.05)
    end = place.jobs._end_job

    def fail(*arguments, **values):
        if is_full.is_set():
            raise FullDatabaseError("full")
        end(*arguments, **values)

    monkeypatch.setattr(place.jobs, "_end_job", fail)
    place.jobs.register("count", counting, "corpus")
    place.jobs.start(place)
    is_full.set()
    job = place.jobs.submit("count", "Count", {"to": 3})
    until(lambda: "disk is full" in place.jobs.get(job).message)
    is_full.clear()
    assert "disk is full" not in job_at_its_end(place.jobs, job).message


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FullDatabaseError("sqlite:///secret"), "disk is full"),
        (LostDatabaseError("postgresql://secret"), "no connection to its database"),
        (OSError(errno.ENOSPC, "No space left on device", "/secret"), "disk is full"),
    ],
)
def test_an_outage_is_503_with_a_sentence_that_keeps_addresses_private(error, words, place, monkeypatch):
    def fail(*_arguments):
        raise error

    with application_over(place) as client_of:
        client = client_of("admin")
        monkeypatch.setattr(place.accounts, "users", fail)
        answer = client.get("/users")
    assert answer.status_code == 503
    assert words in answer.text
    assert "secret" not in answer.text
    assert int(answer.headers["retry-after"]) > 0


def test_a_job_that_lost_the_database_is_done_again(place_on, database_url):
    place, failures = place_on(database_url), [LostDatabaseError("away")]

    def work(place, payload, report):
        if failures:
            raise failures.pop()
        return {"done": True}

    place.jobs.register("work", work, "corpus")
    place.jobs.start(place)
    assert job_at_its_end(place.jobs, place.jobs.submit("work", "x", {})).state == "done"


def seen_at(place, job):
    with place.database.read() as connection:
        return connection.execute(sa.select(jobs.c.seen_at).where(jobs.c.id == job)).scalar_one()


def test_the_job_of_a_server_that_is_silent_is_done_by_another_and_its_end_counts(place_on, database_url, monkeypatch):
    first, second = place_on(database_url), place_on(database_url)
    work = Patient(first)
    job = first.jobs.submit("patient", "x", {})
    reached(work.begun)
    monkeypatch.setattr("climassay.web.jobs.LEASE_SECONDS", -PATIENCE)  # as if the first were silent
    for step in ("_send_heartbeat", "_queue_again"):
        monkeypatch.setattr(first.jobs, step, lambda *_: None)
    other = Patient(second)
    reached(other.begun)
    assert (work.report.lost, other.report.lost) == (True, False)
    with pytest.raises(Stopped):
        work.report.event("number", {"n": 1})
    work.may_end.set()
    other.may_end.set()
    assert job_at_its_end(second.jobs, job).state == "done"
    assert [event.kind for event in second.jobs.events(job)] == []


def test_a_server_that_ends_queues_its_work_again(place_on):
    first = place_on()
    begun = threading.Event()

    def patient(place, payload, report):
        begun.set()
        while not report.stopped:
            pass
        raise Stopped

    first.jobs.register("patient", patient, "corpus")
    first.jobs.start(first)
    job = first.jobs.submit("patient", "x", {})
    reached(begun)
    first.jobs.close()
    assert place_on().jobs.get(job).state == "queued"


def events_in(text):
    """(event, id, data) of a stream."""
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found


def test_the_stream_tells_all_and_goes_on_from_where_it_broke(place):
    place.jobs.register("count", counting, "corpus")
    with application_over(place) as client_of:
        job = place.jobs.submit("count", "Count", {"to": 3}, by="annotator")
        job_at_its_end(place.jobs, job)
        client = client_of("annotator")
        told = events_in(client.get(f"/jobs/{job}/events").text)
        assert [event for event in told if event[0] == "number"] == [("number", str(n + 1), {"n": n}) for n in range(3)]
        assert told[-1] == ("end", None, {"state": "done", "error": None})
        rest = events_in(client.get(f"/jobs/{job}/events", headers={"Last-Event-ID": "2"}).text)
        assert [data["n"] for kind, _, data in rest if kind == "number"] == [2]
        for nonsense in ("-1", "x", "9" * 30, "²"):
            again = client.get(f"/jobs/{job}/events", headers={"Last-Event-ID": nonsense.encode()})
            assert len([event for event in events_in(again.text) if event[0] == "number"]) == 3


def test_work_of_others_is_not_shown_and_not_stopped(place):
    place.jobs.register("count", counting, "corpus")
    with application_over(place) as client_of:
        place.accounts.add("bob")
        job = place.jobs.submit("count", "Count", {"to": 1}, by="bob")
        job_at_its_end(place.jobs, job)
        path = f"/jobs/{job}/events"
        assert client_of("annotator").get(path).status_code == 403
        assert client_of("adjudicator").get(path).status_code == 200
        assert client_of(None).get(path).status_code == 303
        assert client_of("admin").get("/jobs/j123/events").status_code == 404
        assert post(client_of("adjudicator"), f"/jobs/{job}/stop").status_code == 403


@pytest.mark.process
def test_a_listener_who_does_not_read_or_has_gone_holds_up_nobody(place):
    begin, n_events = threading.Event(), 300

    def tell(_place, _payload, report):
        reached(begin)
        for number in range(n_events):
            report.event("number", {"n": number, "words": "x" * 20_000})

    place.jobs.register("telling", tell, "questions")
    job = place.jobs.submit("telling", "x", {}, by="ada")
    place.accounts.add("ada")
    session = place.accounts.begin_session("ada", days=1)
    request = f"GET /jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {SESSION_COOKIE}={session}\r\n\r\n"
    with serving(place) as address:
        idle, gone, keen = (socket.create_connection(address) for _ in range(3))
        for listener in (idle, gone, keen):
            listener.sendall(request.encode())
            assert b"200 OK" in listener.recv(4096)
        until(lambda: len(place.streams._followed_jobs[job].subscribers) == 3)
        gone.close()
        begin.set()
        heard = b""
        while b"event: end" not in heard[-1000:]:
            heard += keen.recv(1 << 20)
        assert heard.count(b"event: number") == n_events
        for listener in (idle, keen):
            listener.close()
        until(lambda: job not in place.streams._followed_jobs)
