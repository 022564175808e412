"""Many annotators who label at once against a real ``climassay serve`` in its own process, which may be killed.

An annotator does what a browser does: loads the next item, sends its form with the key that it carries, and sends the
same form again when no answer came. What the server has acknowledged is written down here, and compared with the
database in the end.
"""

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from annotated_dataset import OPTIONS, PASSAGES, fill
from climassay.generation import Draft, Origin, Wording
from climassay.records import Records
from climassay.web.access import SESSION_COOKIE
from climassay.web.accounts import AccountStore
from climassay.workspace import DATABASE_VARIABLE, Workspace
from killed_process import START
from patience import PATIENCE

DATASET = "crowd"
FORM = re.compile(r'action="(/annotate/[^"]+)"[^>]* data-label\b')
FIELD = re.compile(r'name="(csrf|key)" value="([^"]+)"')
EMPTY = "/static/icon.svg"
"""Asked for comparison: the smallest file of the application, without a database."""
MOST_TRIES = 20
"""Of one request, before the crowd gives up on the server."""


@dataclass(frozen=True)
class Place:
    """A workspace with drafts to label, and people who may."""

    workspace: Path
    database_url: str | None
    sessions: dict[str, str]

    @property
    def url(self) -> str:
        return self.database_url or Workspace(self.workspace).records_url


def prepare(folder: Path, *, annotators: int, drafts: int, overlap: int, database_url: str | None = None) -> Place:
    """Make accounts that are signed in, and a queue of drafts."""
    place = Workspace.open(folder)
    names = [f"annotator-{number:02}" for number in range(annotators)]
    with Records(database_url or place.records_url) as records:
        origin = Origin("local:writer", "f" * 64, (("generate", "a" * 64),), 7)
        made = [
            Draft(
                f"d{number:05}",
                "mcq",
                "base",
                Wording(f"At which temperature does droplet {number} freeze by itself?", OPTIONS[1], OPTIONS, 1),
                PASSAGES,
                origin,
            )
            for number in range(drafts)
        ]
        fill(_Open(records), made, dataset=DATASET, overlap=overlap)
        accounts = AccountStore(records.database)
        for name in names:
            accounts.add(name)
        sessions = {name: accounts.begin_session(name, days=1) for name in names}
    return Place(folder, database_url, sessions)


@dataclass(frozen=True)
class _Open:
    records: Records


class ServerProcess:
    """``climassay serve`` as a process of its own, on one port also after it was killed."""

    def __init__(self, place: Place, *options: str) -> None:
        self._place = place
        self._options = options
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "ServerProcess":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it; when this returns, its port is open, and requests wait until it answers."""
        command = ["serve", "--port", str(self._port), "--workspace", str(self._place.workspace), "--json"]
        command += self._options
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment.pop(DATABASE_VARIABLE, None)
        if self._place.database_url:
            environment[DATABASE_VARIABLE] = self._place.database_url
        self._process = subprocess.Popen([*START, *command], stdout=subprocess.PIPE, text=True, env=environment)
        # The greeting is one JSON document of several lines; its end is a brace alone.
        assert self._process.stdout is not None
        said = ""
        for line in self._process.stdout:
            said += line
            if line.rstrip() == "}":
                break
        self._port = int(json.loads(said)["address"].rsplit(":", 1)[1])

    def memory(self) -> float:
        """Resident memory of the server, without its helpers, in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return round(int(status.split("VmRSS:")[1].split()[0]) / 1024)

    def cpu_seconds(self) -> float:
        """What it has computed so far; unlike the time on the clock, other work on the machine hardly changes it."""
        import psutil

        assert self._process is not None
        used = psutil.Process(self._process.pid).cpu_times()
        return float(used.user + used.system)

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process = None


@dataclass(frozen=True)
class Sent:
    annotator: str
    draft: str
    key: str
    accepted: bool


@dataclass
class Told:
    """What the crowd did and saw; times in seconds."""

    sent: dict[str, Sent] = field(default_factory=dict)
    acknowledged: list[str] = field(default_factory=list)
    """Keys, in order."""
    label_times: list[float] = field(default_factory=list)
    page_times: list[float] = field(default_factory=list)
    empty_times: list[float] = field(default_factory=list)
    cut: int = 0
    """Requests that got no answer."""
    kills: int = 0
    seconds: float = 0.0


class Crowd:
    """Annotators at work.

    Args:
        server: That answers them.
        sessions: Cookie of each annotator.
        labels_each: After so many acknowledged labels an annotator goes home; None: when the time is over.
        seconds: Nobody begins a label after so long.
        think: Mean of the seconds that an annotator looks at an item, exponentially distributed; 0: not at all.
        kill_after: Acknowledged labels after which the server is killed and started again, each once.
    """

    def __init__(
        self,
        server: ServerProcess,
        sessions: dict[str, str],
        *,
        labels_each: int | None = None,
        seconds: float = 3600.0,
        think: float = 0.0,
        kill_after: tuple[int, ...] = (),
    ) -> None:
        self._server, self._sessions = server, sessions
        self._labels_each, self._seconds, self._think = labels_each, seconds, think
        self._kills = sorted(kill_after)
        self.told = Told()

    def work(self) -> Told:
        """Let them all label, and come back when they are done."""
        asyncio.run(self._work())
        return self.told

    def ask_for_nothing(self, seconds: float) -> Told:
        """Let them all ask for the empty endpoint, as quickly and with as many at once as they label."""
        asyncio.run(self._ask_for_nothing(seconds))
        return self.told

    def kill_server(self, meanwhile: Callable[[], object]) -> None:
        """From another thread, while they work: kill the server, do something, and start it again."""
        killing = self._kill_and_start(meanwhile)
        asyncio.run_coroutine_threadsafe(killing, self._loop).result()

    def go_home(self) -> None:
        """From another thread: let everybody finish the label at hand and begin no other."""
        self._ends = 0.0

    async def _work(self) -> None:
        import aiohttp

        self._loop = asyncio.get_running_loop()
        self._up, self._death = asyncio.Event(), asyncio.Lock()
        self._up.set()
        begun = time.perf_counter()
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(PATIENCE)
        ) as session:
            self._session, self._ends = session, begun + self._seconds
            await asyncio.gather(*(self._annotate(name) for name in self._sessions))
        self.told.seconds = time.perf_counter() - begun

    async def _ask_for_nothing(self, seconds: float) -> None:
        import aiohttp

        ends = time.perf_counter() + seconds

        async def ask(name: str) -> None:
            chance = random.Random(name)
            while time.perf_counter() < ends:
                await self._look(chance)
                before = time.perf_counter()
                async with session.get(self._server.url + EMPTY, headers=self._headers(name)) as answer:
                    await answer.read()
                    assert answer.status == 200
                self.told.empty_times.append(time.perf_counter() - before)

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*map(ask, self._sessions))

    async def _annotate(self, name: str) -> None:
        chance, done = random.Random(name), 0
        while time.perf_counter() < self._ends and (self._labels_each is None or done < self._labels_each):
            shown = await self._ask(name, "GET", f"/annotate/{DATASET}", times=self.told.page_times)
            form = FORM.search(shown)
            if form is None:
                return
            fields = dict(FIELD.findall(shown[form.end() :])[:2])
            accepted = chance.random() < 0.7
            data = {**fields, "verdict": "valid" if accepted else "invalid", "seconds": "3.5"}
            if not accepted:
                data["reason"] = "wrong answer"
            draft = form[1].rsplit("/", 1)[1]
            self.told.sent[fields["key"]] = Sent(name, draft, fields["key"], accepted)
            await self._look(chance)
            await self._ask(name, "POST", form[1], data, times=self.told.label_times)
            self.told.acknowledged.append(fields["key"])
            done += 1
            await self._kill_when_due()

    async def _look(self, chance: random.Random) -> None:
        if self._think:
            await asyncio.sleep(chance.expovariate(1 / self._think))

    async def _ask(
        self, name: str, method: str, path: str, data: dict[str, str] | None = None, *, times: list[float]
    ) -> str:
        """Ask until there is an answer; only what was answered at once is timed."""
        import aiohttp

        for tries in range(MOST_TRIES):
            await self._up.wait()
            before = time.perf_counter()
            try:
                async with self._session.request(
                    method, self._server.url + path, data=data, headers=self._headers(name), allow_redirects=False
                ) as answer:
                    text = await answer.text()
            except (aiohttp.ClientError, ConnectionError, TimeoutError):
                self.told.cut += 1
                continue
            if tries == 0:
                times.append(time.perf_counter() - before)
            expected = 200 if method == "GET" else 303
            assert answer.status == expected, f"{method} {path} answers {answer.status}: {text[:2000]}"
            return text
        raise AssertionError(f"{method} {path} got no answer in {MOST_TRIES} tries.")

    def _headers(self, name: str) -> dict[str, str]:
        return {"Cookie": f"{SESSION_COOKIE}={self._sessions[name]}"}

    async def _kill_when_due(self) -> None:
        async with self._death:
            if not self._kills or len(self.told.acknowledged) < self._kills[0]:
                return
            self._kills.pop(0)
            await self._kill_and_start(lambda: None)

    async def _kill_and_start(self, meanwhile: Callable[[], object]) -> None:
        self._up.clear()
        await asyncio.to_thread(self._server.kill)
        self.told.kills += 1
        try:
            await asyncio.to_thread(meanwhile)
        finally:
            await asyncio.to_thread(self._server.start)
            self._up.set()


def differences(place: Place, told: Told) -> dict[str, list[str]]:
    """Where the database and the crowd disagree; all empty where every acknowledged label is stored exactly once."""
    import sqlalchemy as sa

    from climassay.generation.annotation.tables import annotations

    columns = (annotations.c.key, annotations.c.annotator, annotations.c.draft, annotations.c.accepted)
    with Records(place.url) as records, records.database.read() as connection:
        rows = connection.execute(sa.select(*columns).where(annotations.c.dataset == DATASET)).all()
    stored = {row.key: Sent(row.annotator, row.draft, row.key, row.accepted) for row in rows}
    by_person = Counter((row.annotator, row.draft) for row in rows)
    return {
        "acknowledged but lost": [key for key in told.acknowledged if key not in stored],
        "stored as something else": [key for key, sent in told.sent.items() if stored.get(key, sent) != sent],
        "stored more than once": [f"{name}, {draft}" for (name, draft), count in by_person.items() if count > 1],
        "stored but never sent": [key for key in stored if key not in told.sent],
        "acknowledged twice": [key for key, count in Counter(told.acknowledged).items() if count > 1],
    }
