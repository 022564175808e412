"""Twenty clients who look through the pages of a real server, with a second of thinking: how long each page takes.

Claim: search and agreement take at most three times the mean page, and 95% of all pages come within a second.

The workspace has the primer's books as four collections, one of 12,000 passages of their sentences (as large as the
Sixth Assessment Report; its vectors are random numbers), a dataset of 400 drafts with the labels of eight annotators,
two experiments and a fact-check. Every search is for other words, in all collections. Beside each page stands its ratio
to the mean page; once without thinking, to see where the server is saturated. Clients are threads of this process, on
the same machine, and take compressed pages as browsers do. Beside them, others (``--checkers``) check texts without a
pause, every second one of repeated tokens. The memory of the server is that after each page was read twice and some
texts were checked, and after each crowd.

Run: python benchmarks/web_load.py [--clients 20] [--checkers 4] [--seconds 60] [--think 1] [--passages 12000] [--json]
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
from urllib.parse import quote, urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "corpus"))


from random_passages import RandomEncoder

from climassay import primer
from climassay.corpus import Block, Collection, Document, open_or_create, read
from climassay.corpus.sentences import split_sentences
from climassay.generation.annotation import AnnotationStore, Label
from climassay.models.contract import Encoder
from climassay.records import Records
from climassay.web.access import SESSION_COOKIE
from climassay.web.accounts import AccountStore
from climassay.web.checks.pages import MAX_TEXT_LENGTH
from climassay.workspace import Workspace
from faults.outside_text import TOKENS, repeated
from labelling_crowd import DATASET, Place, ServerProcess, prepare
from stored_runs import store_experiment, store_factchecks
from web_routes import CSRF

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


class Drawn(RandomEncoder):
    """Random vectors under the name of an encoder, which then encodes what is searched for."""

    def __init__(self, encoder: Encoder) -> None:
        self.name, self.fingerprint, self.width = encoder.name, encoder.fingerprint, encoder.width


def report(number: int, sentences: list[str]) -> Document:
    """A document of a hundred passages, each of ten sentences."""
    chance = random.Random(number)
    blocks = tuple(
        Block(" ".join(chance.sample(sentences, 10)), chapter=f"Section {part}", page=part) for part in range(1, 101)
    )
    return Document(f"report-{number}", f"Report {number}", f"report-{number}.pdf", blocks)


def filled(folder: Path, passages: int) -> tuple[Place, str, dict[str, str]]:
    """A workspace with something on every page, the session of an administrator, and what addresses name."""
    made = prepare(folder, annotators=ANNOTATORS, drafts=DRAFTS, overlap=OVERLAP)
    chance = random.Random(0)
    workspace, sentences = Workspace.open(folder), []
    for name in primer.book_names():
        book = open_or_create(workspace, name)
        documents = read(primer.book_path(name)).documents
        book.add(documents)
        sentences += [one for document in documents for block in document.blocks for one in split_sentences(block.text)]
    large = Collection.create(workspace, "reports", Drawn(book.encoder))
    large.add(report(number, sentences) for number in range(passages // 100))
    with Records(made.url) as records:
        store = AnnotationStore(records)
        for number, item in enumerate(list(store.items(DATASET))):
            for annotator in sorted(made.sessions)[number % 2 :: 2]:
                right = chance.random() < 0.7
                reasons = () if right else ("wrong answer",)
                key = f"{item.draft.id} {annotator}"
                store.label(DATASET, Label(item.draft.id, annotator, accepted=right, reasons=reasons, key=key))
        known = {
            "run": store_experiment(records, asked=("What about mcq?",)),
            "other": store_experiment(records),
            "claims": store_factchecks(records),
            "document": "report-0",
            "passage": large.passages_at("report-0", range(1))[0].id,
        }
        accounts = AccountStore(records.database)
        accounts.add("chief", "admin")
        session = accounts.begin_session("chief", days=1)
    return made, session, known


def pages(known: dict[str, str], chance: random.Random) -> dict[str, str]:
    """Addresses by name; searches are for other words each time."""
    words = quote(f"{chance.choice(TOPICS)} {chance.choice(VERBS)} {chance.choice(TOPICS)} {chance.randrange(10**6)}")
    run, claims = f"/results/{known['run']}", f"/results/{known['claims']}"
    return {
        "start": "/",
        "account": "/account",
        "users": "/users",
        "API": "/api/openapi.json",
        "check": "/check",
        "checks": "/checks",
        "check a text": "/check-text",
        "ask": "/ask",
        "confidence": "/confidence",
        "queues": "/annotate",
        "queue": f"/annotate/{DATASET}",
        "history": f"/annotate/{DATASET}/history",
        "conflicts": f"/annotate/{DATASET}/conflicts",
        "agreement": f"/annotate/{DATASET}/agreement",
        "library": "/library",
        "collection": "/library/reports",
        "document": f"/library/reports/documents/{known['document']}",
        "passage": f"/library/reports/passages/{known['passage']}",
        "search": f"/library/search?q={words}",
        "runs": "/results",
        "run": run,
        "tables": f"{run}?show=tables",
        "figures": f"{run}?show=figures",
        "questions": f"{run}/questions",
        "comparison": f"/results/compare?runs={known['run']}&runs={known['other']}",
        "claims": f"{claims}/claims",
        "claim": f"{claims}/claims/1",
        "usage": "/usage",
    }


class Checker(threading.Thread):
    """Checks one text after the other, in turns an ordinary one and one of repeated tokens."""

    def __init__(self, url: str, session: str, number: int, until: float, text: str) -> None:
        super().__init__()
        self._at, self._until, self._text, self._chance = urlsplit(url), until, text, random.Random(number)
        self._headers = {"Cookie": f"{SESSION_COOKIE}={session}", "Content-Type": "application/x-www-form-urlencoded"}
        self.times: list[float] = []
        self.errors: list[str] = []

    def run(self) -> None:
        """Check until the time is up."""
        connection = http.client.HTTPConnection(self._at.hostname or "", self._at.port, timeout=120)
        connection.request("GET", "/", headers=self._headers)
        token = CSRF.search(connection.getresponse().read().decode()).group(1)
        while time.perf_counter() < self._until:
            start = self._chance.randrange(len(self._text) - MAX_TEXT_LENGTH)
            ordinary = self._text[start : start + MAX_TEXT_LENGTH]
            text = repeated(self._chance.choice(TOKENS), MAX_TEXT_LENGTH - 2) if len(self.times) % 2 else ordinary
            address = self._chance.choice(["/check-text", "/confidence"])
            before = time.perf_counter()
            body = urlencode({"csrf": token, "text": text, "collection": "reports"})
            connection.request("POST", address, body, self._headers)
            answer = connection.getresponse()
            answer.read()
            self.times.append(1000 * (time.perf_counter() - before))
            # A text of spaces alone is refused.
            if answer.status != 200 and text.strip(" \n\u00a0ab"):
                self.errors.append(f"{address}: {answer.status} {text[:20]!r}")


class Client(threading.Thread):
    """Looks at one page after the other."""

    def __init__(self, url: str, session: str, known: dict[str, str], number: int, until: float, think: float) -> None:
        super().__init__()
        self._at = urlsplit(url)
        self._session, self._known, self._until, self._think = session, known, until, think
        self._chance = random.Random(number)
        self.times: dict[str, list[float]] = defaultdict(list)
        self.errors: list[str] = []

    def run(self) -> None:
        """Look until the time is up."""
        connection = http.client.HTTPConnection(self._at.hostname or "", self._at.port, timeout=60)
        headers = {"Cookie": f"{SESSION_COOKIE}={self._session}", "Accept-Encoding": "gzip"}
        time.sleep(self._chance.random() * self._think)
        while time.perf_counter() < self._until:
            name, address = self._chance.choice(list(pages(self._known, self._chance).items()))
            before = time.perf_counter()
            connection.request("GET", address, headers=headers)
            answer = connection.getresponse()
            answer.read()
            self.times[name].append(time.perf_counter() - before)
            if answer.status != 200:
                self.errors.append(f"{address}: {answer.status}")
            time.sleep(self._think * self._chance.uniform(0.5, 1.5))


def crowd(
    url: str,
    made: Place,
    session: str,
    known: dict[str, str],
    clients: int,
    checkers: int,
    seconds: float,
    think: float,
) -> dict[str, object]:
    """What they measured, in milliseconds."""
    until = time.perf_counter() + seconds
    several = [Client(url, session, known, number, until, think) for number in range(clients)]
    [book] = read(primer.book_path(primer.book_names()[0])).documents
    text = " ".join(block.text for block in book.blocks)
    sessions = [made.sessions[name] for name in sorted(made.sessions)[:checkers]]
    others = [Checker(url, session, number, until, text) for number, session in enumerate(sessions)]
    for client in (*several, *others):
        client.start()
    for client in (*several, *others):
        client.join()
    checks = [milliseconds for checker in others for milliseconds in checker.times]
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
        "texts": len(checks),
        "text_errors": [error for checker in others for error in checker.errors],
        "text_p50_ms": round(statistics.median(checks)) if checks else None,
        "text_max_ms": round(max(checks)) if checks else None,
        "by_page": {
            name: {
                "n": len(some),
                "p50_ms": round(statistics.median(some)),
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
    parser.add_argument("--checkers", type=int, default=0, help="at most eight")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--think", type=float, default=1)
    parser.add_argument("--passages", type=int, default=12_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        place, session, known = filled(Path(name) / "workspace", given.passages)
        with ServerProcess(place) as server:
            # The first page of each kind waits for imports and for the encoder.
            first = {}
            addresses = pages(known, random.Random(0)).items()
            for kind, address in (*addresses, *addresses):
                before = time.perf_counter()
                at = urlsplit(server.url)
                connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)
                connection.request("GET", address, headers={"Cookie": f"{SESSION_COOKIE}={session}"})
                connection.getresponse().read()
                first.setdefault(kind, round(1000 * (time.perf_counter() - before)))
            if given.checkers:
                crowd(server.url, place, session, known, 1, given.checkers, 20, given.think)
            memory = [server.memory()]
            found = []
            for think in (given.think, 0):
                found.append(
                    crowd(server.url, place, session, known, given.clients, given.checkers, given.seconds, think)
                )
                memory.append(server.memory())
    result = {"clients": given.clients, "checkers": given.checkers, "load_before": load, "memory_mb": memory}
    result |= {"first_ms": first, "crowds": found}
    if given.json:
        print(json.dumps(result, indent=2))
        return
    sys.stdout.write(f"load before {load}, memory of the server at the start and after each crowd, MB: {memory}\n")
    for one in found:
        by_page = one.pop("by_page")
        sys.stdout.write(", ".join(f"{key} {value}" for key, value in one.items()) + "\n")
        for kind, figures in by_page.items():
            sys.stdout.write(f"  {kind:14}" + "".join(f"{key} {value:<8}" for key, value in figures.items()) + "\n")


if __name__ == "__main__":
    main()
