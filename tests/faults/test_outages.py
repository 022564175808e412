"""``climassay serve`` while its disk is full, and while PostgreSQL is stopped: it reads what can be read, says why the
rest has to wait, and goes on by itself afterwards.
"""

import re
import shutil
import time
from contextlib import contextmanager

import pytest
import requests

from climassay.primer import book_path
from climassay.records import Records
from climassay.records.database import find_damage
from climassay.web.access import SESSION_COOKIE
from climassay.web.accounts import AccountStore
from debate_workspaces import CLAIM
from faults import inputs
from faults.killing import SilencedServer
from faults.test_full_disk import a_disk
from faults.test_killed_server import DEBATE
from labelling_crowd import Place, ServerProcess
from patience import PATIENCE, until

BOOK = book_path("aerosols_clouds")
LOOK_EVERY = 0.2
"""Seconds between two requests to a server that is to recover."""


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    inputs.make_workspace(folder / "w")
    (folder / "sides.toml").write_text(DEBATE)
    return folder


class Visits:
    """Requests of an admin to a server."""

    def __init__(self, url, token, session):
        self.url, self.session = url, session
        self._headers = {"Authorization": f"Bearer {token}"}

    def page(self, path):
        return requests.get(self.url + path, cookies={SESSION_COOKIE: self.session}, timeout=PATIENCE)

    def upload(self):
        """Send a book as a form."""
        [token] = re.findall(r'<meta name="csrf" content="([0-9a-f]+)">', self.page("/").text)
        with BOOK.open("rb") as file:
            return requests.post(
                f"{self.url}/library/upload",
                headers={"x-csrf-token": token},
                cookies={SESSION_COOKIE: self.session},
                data={"new_collection": "sent"},
                files={"files": (BOOK.name, file)},
                allow_redirects=False,
                timeout=PATIENCE,
            )

    def check(self, claim=CLAIM):
        address, body = f"{self.url}/api/v1/checks", {"claim": claim}
        return requests.post(address, json=body, headers=self._headers, timeout=PATIENCE)

    def state(self, check):
        answer = requests.get(f"{self.url}/api/v1/checks/{check}", headers=self._headers, timeout=PATIENCE)
        return answer.json()["state"] if answer.ok else None


@contextmanager
def served(place, given, api):
    with Records(place.url) as records:
        accounts = AccountStore(records.database)
        accounts.add("chief", "admin")
        token, session = accounts.make_token("chief", "orders"), accounts.begin_session("chief", days=1)
    with ServerProcess(place, "--debate", str(given / "sides.toml"), "--base-url", api.url) as server:
        yield Visits(server.url, token, session)


def eventually(happened):
    return until(happened, lambda: time.sleep(LOOK_EVERY))


def assert_asks_for_patience(answer, words):
    assert answer.status_code == 503
    assert words in answer.text
    assert "Traceback" not in answer.text
    assert "sqlite:" not in answer.text
    assert "postgresql" not in answer.text
    assert int(answer.headers["Retry-After"]) > 0


@pytest.fixture
def api(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with SilencedServer(latency=0.5) as running:
        yield running


def test_a_server_whose_disk_was_full_goes_on_when_there_is_room(given, api, tmp_path):
    with a_disk(tmp_path / "w", megabytes=24) as disk:
        if not disk.mounted:
            pytest.skip("no file system of a few megabytes can be mounted here")
        shutil.copytree(given / "w", disk.folder, dirs_exist_ok=True)
        with served(Place(disk.folder, None, {}), given, api) as visits:
            check = visits.check().json()["id"]
            until(lambda: api.asked)
            with disk.full():
                eventually(lambda: "disk is full" in visits.page(f"/checks/{check}").text)
                assert visits.state(check) == "waiting"
                assert {visits.page(path).status_code for path in ("/", "/library", "/results", "/check")} == {200}
                assert_asks_for_patience(visits.check("Snow melts earlier than it did."), "disk is full")
                assert_asks_for_patience(visits.upload(), "disk is full")
            eventually(lambda: visits.state(check) == "done")
            assert "disk is full" not in visits.page(f"/checks/{check}").text
            assert visits.check("Snow melts earlier than it did.").status_code == 202
            sent = visits.upload()
            assert sent.status_code == 303
            eventually(lambda: ">done<" in visits.page(sent.headers["location"]).text)
        assert find_damage(disk.folder / "records.sqlite") is None


def test_a_server_whose_postgresql_is_stopped_goes_on_when_it_is_started(
    given, api, tmp_path, postgres_server, postgres_url
):
    shutil.copytree(given / "w", tmp_path / "w")
    with served(Place(tmp_path / "w", postgres_url, {}), given, api) as visits:
        check = visits.check().json()["id"]
        eventually(lambda: api.asked)
        postgres_server.control("-m", "fast", "stop")
        try:
            answers = [visits.page("/library"), visits.page(f"/checks/{check}"), visits.check("Snow melts.")]
            assert visits.page("/static/icon.svg").status_code == 200
        finally:
            postgres_server.control("start")
        for answer in answers:
            assert_asks_for_patience(answer, "no connection to its database")
        eventually(lambda: visits.state(check) == "done")
        assert visits.page("/library").status_code == 200
        assert visits.check("Snow melts.").status_code == 202
