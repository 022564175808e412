"""A server is killed while a claim is debated, a validator trained, a book added and questions are labelled.

Started again on its workspace it ends all of this by itself, as docs/reliability.md promises: what is left is what a
server leaves that nobody has killed (``make faults``). The API server answers late, and falls silent before the debate
could end, so that every kill cuts the debate; the moments are drawn by a seed.
"""

import os
import random
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from climassay.primer import book_path
from climassay.records import Records
from climassay.web.access import SESSION_COOKIE
from climassay.web.accounts import AccountStore
from debate_workspaces import CLAIM
from faults import inputs
from faults.killing import SilencedServer
from faults.left_behind import left_by, stored_answers, without_costs
from killed_process import assert_same
from labelling_crowd import Crowd, Place, ServerProcess, Told, differences, prepare
from patience import PATIENCE, until

FULL = os.environ.get("CLIMASSAY_FAULTS") == "full"
KILLS = int(os.environ.get("CLIMASSAY_KILLS", "2"))
BOOK = book_path("aerosols_clouds")
DEBATE = """
model = "openai:test"
rounds = 2
leave_one_out = true
check_claims = false
[[advocate]]
name = "Book"
collections = ["book"]
[[advocate]]
name = "Notes"
collections = ["notes"]
"""
KINDS = ("check", "retrain", "add-documents")
"""Of jobs; the first two are done one after the other, the third beside them."""
UNDER_WAY = ("queued", "running")
POLL = 0.02
"""Seconds between two looks at the records."""


@dataclass(frozen=True)
class Work:
    """A job as it stands in the records."""

    state: str
    done: int
    total: int


@dataclass(frozen=True)
class Left:
    """What a server left that had all of its work to do."""

    found: dict[str, Any]
    """Debate, passages, and the trained validator."""
    asked: list[str]
    """Prompts of the API server; of a killed one after the kill."""
    seconds: float
    """From the first order until all work had ended, without the time in which the server was dead."""


@dataclass(frozen=True)
class Cut:
    """How things stood when the server was killed."""

    answers: int
    labels: int
    work: dict[str, Work]


class Life:
    """A workspace with its server, a crowd that labels, and somebody who orders work."""

    def __init__(self, place: Place, token: str, session: str, debate: Path, api: SilencedServer) -> None:
        self.place, self.api = place, api
        self._session = session
        self._headers = {"Authorization": f"Bearer {token}"}
        self._server = ServerProcess(place, "--debate", str(debate), "--base-url", api.url)
        self._crowd = Crowd(self._server, place.sessions, think=0.05)
        self._labelling: Future[Any]
        self._check = ""
        self.cut: Cut | None = None

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """The answer of the server's API."""
        address = f"{self._server.url}/api/v1{path}"
        answer = requests.request(method, address, headers=self._headers, timeout=PATIENCE, **options)
        assert answer.ok, answer.text
        return answer.json()

    def check(self) -> None:
        """Order the debate of a claim."""
        self._check = self.ask("POST", "/checks", json={"claim": CLAIM})["id"]

    def retrain(self) -> None:
        """Order the training of a validator."""
        self._post("/annotate/silver/retrain")

    def upload(self) -> None:
        """Send a book."""
        with BOOK.open("rb") as file:
            self._post("/library/upload", data={"new_collection": "sent"}, files={"files": (BOOK.name, file)})

    def _post(self, path: str, **options: Any) -> None:
        """Send a form as an admin in a browser."""
        with requests.Session() as browser:
            browser.cookies.set(SESSION_COOKIE, self._session)
            page = browser.get(self._server.url, timeout=PATIENCE).text
            [token] = re.findall(r'<meta name="csrf" content="([0-9a-f]+)">', page)
            url, headers = f"{self._server.url}{path}", {"x-csrf-token": token}
            response = browser.post(url, headers=headers, timeout=PATIENCE, allow_redirects=False, **options)
        assert response.status_code == 303, response.text

    def work(self) -> dict[str, Work]:
        """All jobs by their kind."""
        with closing(sqlite3.connect(f"file:{self.place.workspace / 'records.sqlite'}?mode=ro", uri=True)) as records:
            rows = records.execute("SELECT kind, state, done, total FROM web_jobs")
            return {kind: Work(*row) for kind, *row in rows}

    def until(self, what: Callable[[], object]) -> None:
        """Wait until something is so; nobody stops labelling before."""

        def pause() -> None:
            done, _ = wait([self._labelling], timeout=POLL)
            assert not done, self._labelling.result()

        until(what, pause)

    def kill(self) -> None:
        """Kill the server, look around, and start it again."""
        self._crowd.kill_server(self._look)

    def _look(self) -> None:
        self.cut = Cut(stored_answers(self.place.workspace), len(self._crowd.told.acknowledged), self.work())
        self.api.asked.clear()
        self.api.answers_left = None

    def lived(self, orders: Callable[["Life"], None]) -> Left:
        """Start, have the orders given, wait until all work has ended, and end."""
        self.api.asked.clear()
        with self._server, ThreadPoolExecutor(1) as pool:
            self._labelling = pool.submit(self._crowd.work)
            try:
                self.until(lambda: self._crowd.told.acknowledged)
                begun = time.monotonic()
                orders(self)
                self.until(lambda: not any(one.state in UNDER_WAY for one in self.work().values()))
                seconds = time.monotonic() - begun
                debate = self._debate()
            finally:
                self._crowd.go_home()
        self._assert_sound(self._labelling.result())
        left = left_by(self.place.workspace.parent, "")
        [validator] = [one for name, one in left.items() if "validators" in name]
        found = {"debate": debate, "validator": validator, "passages": left["passages"]}
        return Left(found, [request.prompt for request in self.api.asked], seconds)

    def _debate(self) -> Any:
        about, whole = (self.ask("GET", f"/checks/{self._check}{part}") for part in ("", "/transcript"))
        kept = {part: about[part] for part in ("state", "outcome", "verdict")}
        return kept | without_costs({part: whole[part] for part in ("settings", "transcript")})

    def _assert_sound(self, told: Told) -> None:
        """Every acknowledged label is stored once, no work failed, and the database is in order."""
        assert not any(differences(self.place, told).values()), differences(self.place, told)
        assert self.cut is None or 0 < self.cut.labels < len(told.acknowledged)
        assert {kind: one.state for kind, one in self.work().items()} == dict.fromkeys(KINDS, "done")
        with closing(sqlite3.connect(self.place.workspace / "records.sqlite")) as records:
            assert records.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.fixture(scope="module")
def begin(tmp_path_factory):
    """Begins lives, each in a copy of one workspace."""
    folder = tmp_path_factory.mktemp("server")
    inputs.make_workspace(folder / "w")
    place = prepare(folder / "w", annotators=4, drafts=1500, overlap=4)
    with Records(place.url) as records:
        accounts = AccountStore(records.database)
        accounts.add("chief", "admin")
        token, session = accounts.make_token("chief", "orders"), accounts.begin_session("chief", days=1)
    (folder / "sides.toml").write_text(DEBATE)
    with SilencedServer(latency=0.1) as api, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")

        def begin(name):
            shutil.copytree(folder / "w", folder / name / "w")
            (folder / name / "out").mkdir()
            return Life(replace(place, workspace=folder / name / "w"), token, session, folder / "sides.toml", api)

        yield begin


@pytest.fixture(scope="module")
def whole(begin):
    """What a server left that was not killed."""

    def orders(life):
        life.check()
        life.retrain()
        life.upload()

    left = begin("whole").lived(orders)
    assert left.found["debate"]["outcome"] in ("verdict", "not enough information"), "the claim was not debated"
    return left


def kill_between(draw, needed, life):
    """Kill between two answers of the debate and two passages of the book; the training may have ended by then."""
    answers, share = draw.randint(1, needed - 1), draw.uniform(0.1, 0.5)
    life.api.answers_left = answers
    life.check()
    life.retrain()
    life.until(lambda: stored_answers(life.place.workspace) == answers)
    life.upload()

    def begun():
        book = life.work()["add-documents"]
        return book.state not in UNDER_WAY or (book.total > 1 and book.done > share * book.total)

    life.until(begun)
    life.kill()
    assert life.cut.answers == answers
    assert {life.cut.work[kind].state for kind in ("check", "add-documents")} == {"running"}


def kill_at(draw, needed, seconds, life):
    """Kill at a moment of the time that all of the work takes; the training comes first."""
    life.api.answers_left = needed - 1
    ends = time.monotonic() + draw.uniform(0, 1) * seconds
    life.retrain()
    life.check()
    life.upload()
    life.until(lambda: time.monotonic() > ends)
    life.kill()
    assert life.cut.work["check"].state in UNDER_WAY


@pytest.mark.skipif(not FULL, reason="minutes of work: make faults")
@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_server_ends_all_of_its_work_when_it_is_started_again(number, begin, whole):
    draw, needed = random.Random(number), len(whole.asked)
    assert needed > 2
    orders = partial(kill_between, draw, needed) if number % 2 == 0 else partial(kill_at, draw, needed, whole.seconds)
    life = begin(f"killed{number}")
    left = life.lived(orders)
    print(f"killed at {life.cut}; of {needed} answers {len(left.asked)} were asked for afterwards")
    assert len(left.asked) == len(set(left.asked)) == needed - life.cut.answers
    assert_same(left.found, whole.found, "what the killed server left")
