"""Twenty clients who look through the pages of a real server, with a second of thinking: how long each page takes.

Claim: search and agreement take at most three times the mean page, and 95% of all pages come within a second.

The workspace has the primer's books as four collections, a dataset of 400 drafts with the labels of eight annotators,
an experiment and a fact-check. Every search is for other words. Beside each page stands its ratio to the mean page;
once without thinking, to see where the server is saturated. Clients are threads of this process, on the same machine.

Run: python benchmarks/web_load.py [--clients 20] [--seconds 30] [--think 1] [--json]
"""

import argparse
import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from urllib.parse import quote, urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from climassay import primer
from climassay.corpus import open_or_create, read
from climassay.generation.annotation import AnnotationStore
from climassay.records import Records
from climassay.web.access import SESSION_COOKIE
from climassay.web.accounts import AccountStore
from climassay.workspace import Workspace
from labelling_crowd import DATASET, Place, ServerProcess, prepare
from stored_runs import store_experiment, store_factchecks

ANNOTATORS, DRAFTS, OVERLAP = 8, 400, 4
TOPICS = [
    "sea level",
    "ice sheets",
    "carbon dioxide",
    "aerosols",
    "clouds",
    "ocean heat",
    "methane",
    "feedbacks",
    "radiation",
    "albedo",
]
VERBS = [
    "rises",
    "melts",
    "warms",
    "cools",
    "changes",
    "grows",
    "absorbs",
    "reflects",
    "delays",
    "amplifies",
    "varies",
    "drives",
]


def filled(folder: Path) -> tuple[Place, str, str]:
    """A workspace with something on every page, the session of an administrator, and the id of a run."""
    made = prepare(folder, annotators=ANNOTATORS, drafts=DRAFTS, overlap=OVERLAP)
    chance = random.Random(0)
    for name in primer.book_names():
        open_or_create(Workspace.open(folder), name).add(read(primer.book_path(name)).documents)
    with Records(made.url) as records:
        store = AnnotationStore(records)
        for number, item in enumerate(list(store.items(DATASET))):
            for annotator in sorted(made.sessions)[number % 2 :: 2]:
                right = chance.random() < 0.7
                reasons = () if right else ("wrong answer",)
                key = f"{item.draft.id} {annotator}"
                store.label(DATASET, item.draft.id, annotator, accepted=right, reasons=reasons, key=key)
        run = store_experiment(records)
        store_factchecks(records)
        accounts = AccountStore(records.database)
        accounts.add("chief", "admin")
        session = accounts.begin_session("chief", days=1)
    return made, session, run


def pages(run: str, chance: random.Random) -> dict[str, str]:
    """Addresses by name; searches are for other words each time."""
    words = quote(f"{chance.choice(TOPICS)} {chance.choice(VERBS)} {chance.choice(TOPICS)} {chance.randrange(10**6)}")
    return {
        "start": "/",
        "queue": f"/annotate/{DATASET}",
        "agreement": f"/annotate/{DATASET}/agreement",
        "library": "/library",
        "collection": f"/library/{primer.book_names()[0]}",
        "search": f"/library/search?q={words}",
        "checks": "/checks",
        "results": "/results",
        "run": f"/results/{run}",
        "questions": f"/results/{run}/questions",
    }


class Client(threading.Thread):
    """Looks at one page after the other."""

    def __init__(self, url: str, session: str, run: str, number: int, until: float, think: float) -> None:
        super().__init__()
        self._at = urlsplit(url)
        self._session, self._run, self._until, self._think = session, run, until, think
        self._chance = random.Random(number)
        self.times: dict[str, list[float]] = defaultdict(list)
        self.errors: list[str] = []

    def run(self) -> None:
        """Look until the time is up."""
        connection = http.client.HTTPConnection(self._at.hostname or "", self._at.port, timeout=60)
        time.sleep(self._chance.random() * self._think)
        while time.perf_counter() < self._until:
            name, address = self._chance.choice(list(pages(self._run, self._chance).items()))
            before = time.perf_counter()
            connection.request("GET", address, headers={"Cookie": f"{SESSION_COOKIE}={self._session}"})
            answer = connection.getresponse()
            answer.read()
            self.times[name].append(time.perf_counter() - before)
            if answer.status != 200:
                self.errors.append(f"{address}: {answer.status}")
            time.sleep(self._think * self._chance.uniform(0.5, 1.5))


def crowd(url: str, session: str, run: str, clients: int, seconds: float, think: float) -> dict[str, object]:
    """What they measured, in milliseconds."""
    until = time.perf_counter() + seconds
    several = [Client(url, session, run, number, until, think) for number in range(clients)]
    for client in several:
        client.start()
    for client in several:
        client.join()
    times: dict[str, list[float]] = defaultdict(list)
    for client in several:
        for name, some in client.times.items():
            times[name] += [1000 * one for one in some]
    every = [one for some in times.values() for one in some]
    mean = statistics.fmean(every)
    return {
        "think_seconds": think,
        "pages": len(every),
        "errors": sum(len(client.errors) for client in several),
        "mean_ms": round(mean),
        "p50_ms": round(statistics.median(every)),
        "p95_ms": round(statistics.quantiles(every, n=20)[-1]),
        "by_page": {
            name: {
                "n": len(some),
                "mean_ms": round(statistics.fmean(some)),
                "p95_ms": round(statistics.quantiles(some, n=20)[-1]),
                "ratio": round(statistics.fmean(some) / mean, 2),
            }
            for name, some in sorted(times.items())
            if len(some) > 1
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--think", type=float, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        place, session, run = filled(Path(name) / "workspace")
        with ServerProcess(place) as server:
            # The first page of each kind waits for imports and for the encoder.
            first = dict.fromkeys(pages(run, random.Random(0)), 0.0)
            for kind, address in pages(run, random.Random(0)).items():
                before = time.perf_counter()
                at = urlsplit(server.url)
                connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)
                connection.request("GET", address, headers={"Cookie": f"{SESSION_COOKIE}={session}"})
                connection.getresponse().read()
                first[kind] = round(1000 * (time.perf_counter() - before))
            found = [crowd(server.url, session, run, given.clients, given.seconds, think) for think in (given.think, 0)]
    result = {"clients": given.clients, "load_before": load, "first_ms": first, "crowds": found}
    if given.json:
        print(json.dumps(result, indent=2))
        return
    for one in found:
        by_page = one.pop("by_page")
        sys.stdout.write(", ".join(f"{key} {value}" for key, value in one.items()) + "\n")
        for kind, figures in by_page.items():
            sys.stdout.write(f"  {kind:12}" + "".join(f"{key} {value:<8}" for key, value in figures.items()) + "\n")


if __name__ == "__main__":
    main()
