"""One server at a time on a records database."""

import threading

import pytest

from climassay.errors import InputError
from climassay.records import database as server_lock
from climassay.records.database import ServerLock
from patience import PATIENCE, reached


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
    first.take()
    first.take()  # which it has already
    first.announce("http://127.0.0.1:8123")
    with pytest.raises(InputError, match=r"is served at http://127\.0\.0\.1:8123 already: .* or stop it first\.$"):
        lock().take(said.append)
    assert said == ["http://127.0.0.1:8123"]
    first.close()
    lock().take()


def test_a_restart_that_overlaps_waits_for_the_first_to_end(lock):
    first, second, waiting = lock(), lock(), threading.Event()
    first.take()
    restarting = threading.Thread(target=second.take, args=(lambda _: waiting.set(),))
    restarting.start()
    reached(waiting)
    first.close()
    restarting.join(PATIENCE)
    assert not restarting.is_alive()
    second.announce("http://127.0.0.1:8124")
