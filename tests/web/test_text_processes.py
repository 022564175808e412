"""Texts that would keep a server busy: who waits, who is refused, and what ends a check."""

import os
import socket
import threading
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest

import runaway
from climassay.web import confidence, create_app, text_processes
from climassay.web.access import SESSION_COOKIE
from climassay.web.text_processes import MAX_PROCESSES, MAX_TEXTS_PER_USER, CheckStopped, TooManyTexts
from patience import until
from web_parts import post, serving
from web_routes import csrf_of

pytestmark = pytest.mark.process
TEXT = "Glaciers melt (moderate confidence)."


@pytest.fixture(autouse=True)
def found(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([runaway.FOLDER, os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def no_tagger(place):
    place.shared(confidence.TAGGER_KEY, lambda: "There is no tagger here.")


def user(place, name):
    if name not in [account.name for account in place.accounts.users()]:
        place.accounts.add(name, "annotator")
    return place.accounts.user(name)


@contextmanager
def held(place, *names):
    """Texts of these users whose checks never end; they are stopped at the end."""
    released, ended = threading.Event(), []

    def check(account):
        try:
            place.text_processes.call(account, runaway.burn, TEXT, has_left=released.is_set)
        except CheckStopped:
            ended.append(account.name)

    threads = [threading.Thread(target=check, args=(user(place, name),)) for name in names]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        released.set()
        for thread in threads:
            thread.join()
        assert sorted(ended) == sorted(names)


def call(place, name, function=runaway.double, argument=1, has_left=bool):
    return place.text_processes.call(user(place, name), function, argument, has_left=has_left)


def test_a_text_without_end_leaves_others_their_turn(place):
    with held(place, "ada"):
        until(lambda: place.text_processes._users == {"ada"})
        assert call(place, "bob")[0] == 2
        assert call(place, "cy")[0] == 2


def test_a_person_has_one_process_and_is_told_when_too_many_wait(place):
    texts = place.text_processes
    with held(place, *["ada"] * MAX_TEXTS_PER_USER):
        until(lambda: texts._n_pending_by_user["ada"] == MAX_TEXTS_PER_USER)
        assert len(texts._users) <= 1
        with pytest.raises(TooManyTexts, match="still being checked"):
            call(place, "ada")
        assert call(place, "bob")[0] == 2
    assert call(place, "ada")[0] == 2


def test_who_waits_is_served_when_a_process_is_free_and_may_leave(place):
    names = [f"user{number}" for number in range(MAX_PROCESSES)]
    with held(place, *names):
        until(lambda: place.text_processes._users == set(names))
        with pytest.raises(CheckStopped):
            call(place, "bob", has_left=lambda: True)
    assert call(place, "bob")[0] == 2


def test_a_limit_is_a_sentence_and_the_next_text_is_checked(client_of, no_tagger, monkeypatch):
    monkeypatch.setattr(text_processes, "MAX_PROCESSOR_SECONDS", 0)
    client = client_of("annotator")
    with monkeypatch.context() as patch:
        patch.setattr(confidence, "find_in_draft", runaway.burn)
        answer = post(client, "/confidence", {"text": TEXT})
    assert answer.status_code == 413
    assert "seconds of processor time: shorten it" in answer.text
    assert TEXT in answer.text
    monkeypatch.undo()
    assert "1 finding in 4 words" in post(client, "/confidence", {"text": TEXT}).text


def test_who_comes_after_a_text_that_was_stopped_gets_a_process_that_was_ready(place, monkeypatch):
    started = []

    class Noted(text_processes.Sandbox):
        def __init__(self, *args):
            super().__init__(*args)
            started.append(self._process.pid)

    monkeypatch.setattr(text_processes, "Sandbox", Noted)
    with held(place, "ada"):
        until(lambda: place.text_processes._users == {"ada"} and place.text_processes._idle)
        ready = list(started)
    assert call(place, "ada")[1] in ready
    assert len(started) == len(ready) + 1
    assert [call(place, name)[1] in ready for name in ("ada", "bob")] == [True, True]
    assert len(started) == len(ready) + 1


def test_the_check_of_a_visitor_who_leaves_is_stopped(place, no_tagger, monkeypatch):
    monkeypatch.setattr(confidence, "find_in_draft", runaway.burn)
    account = user(place, "ada")
    with serving(place) as address:
        session = place.accounts.begin_session(account.name, days=1)
        body = urlencode({"text": TEXT}).encode()
        with socket.create_connection(address) as connection:
            connection.sendall(
                f"POST /confidence HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {SESSION_COOKIE}={session}\r\n"
                f"X-CSRF-Token: {token(place, session)}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            until(lambda: place.text_processes._users == {"ada"})
            assert call(place, "bob")[0] == 2
        until(lambda: not place.text_processes._users)
        assert call(place, "ada")[0] == 2


def test_a_server_that_ends_waits_for_no_text(place):
    with held(place, "ada"):
        until(lambda: place.text_processes._users)
        place.text_processes.close()
        until(lambda: not place.text_processes._users)


def token(place, session):
    from starlette.testclient import TestClient

    client = TestClient(create_app(place), base_url="http://127.0.0.1")
    client.cookies.set(SESSION_COOKIE, session)
    return csrf_of(client)
