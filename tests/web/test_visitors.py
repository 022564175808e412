"""Visitors without an account: they ask nothing, and are served a few at a time; what event streams cost."""

import asyncio
from collections import Counter

import pytest

from check_parts import Gate, ask, furnish, scripted, write_settings
from climassay.web.checks.store import get_check_store
from climassay.web.limits import (
    MAX_RENDERED_PAGES,
    MAX_RENDERED_PAGES_PER_VISITOR,
    MAX_REQUESTS_PER_VISITOR,
    visitor_address,
)
from climassay.web.middleware import VisitorSlots
from html_pages import Page
from web_parts import application_over, post

API = "/api/v1"


@pytest.fixture
def place_settings(tmp_path):
    return {"public": "read", "debates": (write_settings(tmp_path),)}


@pytest.fixture
def held(place):
    """A server whose first debate does not end, so that all others wait."""
    gate = Gate()
    furnish(place, scripted(gate))
    with application_over(place) as client_of:
        yield client_of, gate
        gate.open.set()


FORMS = {
    "/check": {"claim": "A claim about ice."},
    "/ask": {"question": "Why is ice white?"},
    "/check-text": {"text": "Ice is white.", "collection": "physical"},
    "/confidence": {"text": "Ice is white (high confidence)."},
}


@pytest.mark.parametrize("path", FORMS)
def test_without_an_account_a_form_is_a_link_to_sign_in_that_returns_there(held, place, path):
    client_of, _ = held
    place.accounts.add("ada")
    place.accounts.set_password("ada", "a long password")
    stranger, wanted = client_of(), f"{path}?claim=Ice%20%26%20snow&question=Why%3F"
    page = stranger.get(wanted)
    assert page.status_code == 200
    assert not Page(page.text).every("form", action=path)
    forms = Page(client_of("annotator").get(path).text).every("form", method="post")
    assert any(form["action"].partition("#")[0] == path for form in forms)
    [link] = [one["href"] for one in Page(page.text).every("a") if one["href"].startswith("/sign-in?next=")]
    following = Page(stranger.get(link).text).every("input", name="next")[0]["value"]
    sent = {"name": "ada", "password": "a long password", "next": following}
    assert post(stranger, "/sign-in", sent).headers["location"] == wanted


def test_without_an_account_nothing_is_asked_checked_or_uploaded(held, place):
    client_of, _ = held
    stranger = client_of()
    broken = ask(client_of("annotator"), "A claim whose check breaks.")
    place.jobs.stop(get_check_store(place).get(broken).about.job)
    get_check_store(place).fail(broken, "The model went away.")
    before = [job.id for job in place.jobs.list()]
    paths = {**FORMS, "/check-text/report": FORMS["/check-text"], "/confidence/statement": {"statement": "Ice melts."},
             f"/checks/{broken}/again": {}, "/library/upload": {}}  # fmt: skip
    for path, sent in paths.items():
        answer = post(stranger, path, sent)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in"), path
    assert stranger.post(f"{API}/checks", json={"claim": "By a program."}).status_code == 401
    assert f"/checks/{broken}/again" not in stranger.get(f"/checks/{broken}").text
    assert [job.id for job in place.jobs.list()] == before
    assert get_check_store(place).list().total == 1
    assert get_check_store(place).get(broken).about.state == "failed"
    assert post(client_of("annotator"), f"/checks/{broken}/again").status_code == 303


def test_going_on_with_a_check_counts_for_who_goes_on(held, place, monkeypatch):
    client_of, _ = held
    monkeypatch.setattr("climassay.web.checks.store.MAX_WAITING_PER_USER", 1)
    broken = ask(client_of("annotator"), "A claim whose check breaks.")
    place.jobs.stop(get_check_store(place).get(broken).about.job)
    get_check_store(place).fail(broken, "The model went away.")
    busy = client_of("adjudicator")
    ask(busy, "A claim about ice.")
    assert post(busy, f"/checks/{broken}/again").status_code == 429
    assert get_check_store(place).get(broken).about.state == "failed"
    assert post(client_of("annotator"), f"/checks/{broken}/again").status_code == 303


def test_what_its_owner_stopped_a_stranger_does_not_begin_again(held, place):
    client_of, _ = held
    owner, stranger = client_of("adjudicator"), client_of("annotator")
    check = ask(owner, "A claim that its owner stops.")
    assert post(owner, f"/checks/{check}/stop").status_code == 303
    assert post(stranger, f"/checks/{check}/again").status_code == 403
    assert f"/checks/{check}/again" not in stranger.get(f"/checks/{check}").text
    assert get_check_store(place).get(check).about.state == "stopped"
    assert post(owner, f"/checks/{check}/again").status_code == 303
    assert get_check_store(place).get(check).about.state == "waiting"


def scope_of(address, path="/results", cookie=b""):
    headers = [(b"cookie", cookie)] if cookie else []
    return {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers,
            "client": (address, 1), "state": {}}  # fmt: skip


class Slow:
    """An application whose answers wait until they may go."""

    def __init__(self):
        self.inside, self.most, self.go = Counter(), Counter(), asyncio.Event()

    async def __call__(self, scope, receive, send):
        who = scope["client"][0]
        for name in (who, "all"):
            self.inside[name] += 1
            self.most[name] = max(self.most[name], self.inside[name])
        await self.go.wait()
        self.inside.subtract([who, "all"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def settled():
    """What can go on without anything from outside has gone on: threads that look up visitors included."""
    for _ in range(200):
        await asyncio.sleep(0.001)


async def asked(app, scope):
    said = []

    async def send(message):
        said.append(message.get("status"))

    await app(scope, None, send)
    return said[0]


def test_visitors_are_served_a_few_at_a_time_and_people_with_an_account_at_once(place):
    place.accounts.add("ada")
    cookie = f"climassay_session={place.accounts.begin_session('ada', 1)}".encode()

    async def work():
        slow = Slow()
        app = VisitorSlots(slow, place)
        crowd = [
            asyncio.create_task(asked(app, scope_of(f"203.0.113.{number}"))) for number in range(8) for _ in range(4)
        ]
        greedy = [
            asyncio.create_task(asked(app, scope_of("198.51.100.7"))) for _ in range(MAX_REQUESTS_PER_VISITOR + 5)
        ]
        await until_async(lambda: slow.inside["all"] >= MAX_RENDERED_PAGES and sum(one.done() for one in greedy) >= 5)
        known = [asyncio.create_task(asked(app, scope_of("192.0.2.1", cookie=cookie))) for _ in range(10)]
        await until_async(lambda: slow.inside["192.0.2.1"] == 10)
        slow.go.set()
        return slow.most, [await one for one in (*crowd, *known)], [await one for one in greedy]

    most, said, greedy = asyncio.run(work())
    assert set(said) == {200}
    assert sorted(greedy) == [200] * MAX_REQUESTS_PER_VISITOR + [503] * 5
    assert most["all"] <= MAX_RENDERED_PAGES + 10
    assert all(most[f"203.0.113.{number}"] <= MAX_RENDERED_PAGES_PER_VISITOR for number in range(8))


async def until_async(true):
    while not true():
        await asyncio.sleep(0.005)


def test_a_turn_is_given_back_however_an_answer_ends(place):
    async def broken(scope, receive, send):
        raise ZeroDivisionError

    async def work():
        app = VisitorSlots(broken, place)
        for _ in range(3 * MAX_RENDERED_PAGES):
            with pytest.raises(ZeroDivisionError):
                await asked(app, scope_of("203.0.113.5"))

    asyncio.run(work())
    assert not place.visitors._requests
    assert not place.visitors._visitor_slots


@pytest.mark.parametrize(
    ("host", "address"),
    [("203.0.113.5", "203.0.113.5"), ("::ffff:203.0.113.5", "203.0.113.5"), ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
     ("testclient", "testclient")],
)  # fmt: skip
def test_visitors_are_told_apart_by_address_or_network(host, address):
    from starlette.requests import HTTPConnection

    assert visitor_address(HTTPConnection(scope_of(host))) == address


async def followed(streams, job, into):
    async for line in streams.follow(job, 0):
        into.append(line)


def test_five_hundred_listeners_cost_no_query_while_nothing_happens_and_one_look_for_all_when_it_does(
    place, monkeypatch
):
    """Counted, not timed: the database is asked once for all of them, and not at all in between."""
    jobs = place.jobs
    jobs.register("told", lambda *_: None, "corpus")
    job = jobs.submit("told", "Work", {})
    jobs._claim_next("corpus")
    from climassay.web.jobs import JobReport

    report = JobReport(jobs, job)
    monkeypatch.setattr("climassay.web.jobs.POLL_INTERVAL", 3600.0)
    queries = []
    monkeypatch.setattr(place.database, "read", lambda read=place.database.read: queries.append(1) or read())

    async def work():
        lines = [[] for _ in range(500)]
        tasks = [asyncio.create_task(followed(place.streams, job, one)) for one in lines]
        await until_async(lambda: all(lines))
        await until_async(lambda: not place.streams._changed)
        await settled()
        before = len(queries)
        await settled()
        idle = len(queries) - before
        for number in range(3):
            await asyncio.to_thread(report.event, "number", {"n": number})
        await until_async(lambda: all(sum("event: number" in line for line in one) == 3 for one in lines))
        told = len(queries) - before
        await asyncio.to_thread(jobs.stop, job)
        await asyncio.gather(*tasks)
        return lines, idle, told

    lines, idle, told = asyncio.run(work())
    assert idle == 0
    assert told < 30
    for one in lines:
        assert [line.split("\n")[0] for line in one if line.startswith("id:")] == ["id: 1", "id: 2", "id: 3"]
        assert '"stopped"' in one[-1]
    assert not place.streams._followed_jobs


def test_a_listener_that_comes_late_hears_everything_once(place, monkeypatch):
    monkeypatch.setattr("climassay.web.jobs.MAX_EVENTS_IN_MEMORY", 2)
    jobs = place.jobs
    jobs.register("told", lambda *_: None, "corpus")
    job = jobs.submit("told", "Work", {})
    jobs._claim_next("corpus")
    from climassay.web.jobs import JobReport

    report = JobReport(jobs, job)

    def tell(numbers):
        for number in numbers:
            report.event("number", {"n": number})

    async def work():
        tell(range(5))
        early, late = [], []
        tasks = [asyncio.create_task(followed(place.streams, job, early))]
        await until_async(lambda: sum("id:" in line for line in early) == 5)
        await asyncio.to_thread(tell, range(5, 12))
        tasks.append(asyncio.create_task(followed(place.streams, job, late)))
        await until_async(lambda: sum("id:" in line for line in late) == 12)
        await asyncio.to_thread(jobs.stop, job)
        await asyncio.gather(*tasks)
        return early, late

    for lines in asyncio.run(work()):
        numbers = [line.split("\n")[0] for line in lines if line.startswith("id:")]
        assert numbers == [f"id: {number}" for number in range(1, 13)]
