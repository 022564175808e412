"""The list of 10,000 past checks: how long a page, each filter, a search for similar claims and an export take.

Each check has a debate of about 60 kB and, for every second one, two reviews; claims are numbered sentences. Run:

    python benchmarks/past_checks.py [--checks 10000] [--json]
"""

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from climassay.factcheck import DebateSettings, advocates_from_names, find_past_checks, make_claim
from climassay.factcheck.check_store import CheckStore, check_collections, check_reviews, checks
from climassay.factcheck.configuration import settings_tables
from climassay.factcheck.transcript import as_data
from climassay.models.encoders import BUNDLED_ENCODER, load_encoder
from climassay.records import Records, tables
from climassay.web.access import SESSION_COOKIE
from climassay.web.accounts import AccountStore
from climassay.workspace import Workspace
from factcheck_transcripts import full_transcript, source
from labelling_crowd import Place, ServerProcess

PASSAGE = (
    "Since 1901 the global mean sea level has risen by about twenty centimetres, and faster in every decade. " * 30
)
SUBJECTS = ("Glaciers", "Coral reefs", "The Sun", "Clouds", "Sea ice", "Volcanoes", "Cattle", "Forests", "The oceans")
ADDRESSES = (
    "/checks",
    "/checks?page=150",
    "/checks?q=glaciers",
    "/checks?q=nothing+has+this",
    "/checks?verdict=incorrect",
    "/checks?review=disagreed",
    "/checks?topic=1",
    "/checks?collection=abstracts",
    "/checks?source=columnist",
    "/checks?since=2024-03-01&until=2024-03-31",
    "/checks?reviewer=ann",
    "/checks?q=sun&verdict=incorrect&review=disagreed&topic=1.6&collection=ipcc&since=2024-01-01&reviewer=bob",
    "/api/v1/checks?verdict=incorrect&limit=200",
)


def fill(records: Records, many: int) -> None:
    """Checks over two years, with debates, reviews, and their runs."""
    CheckStore(records)
    settings = DebateSettings(advocates_from_names(["ipcc", "abstracts"]))
    written, begun = json.dumps(settings_tables(settings)), 1_700_000_000.0
    debate = full_transcript()
    debate = replace(debate, sources=tuple(source(one.number, text=PASSAGE) for one in debate.sources))
    while len(json.dumps(as_data(debate))) < 60_000:
        debate = replace(debate, sources=(*debate.sources, source(len(debate.sources) + 1, text=PASSAGE)))
    labels = ("incorrect", "correct", "misleading")

    def claim(number: int) -> str:
        return f"{SUBJECTS[number % len(SUBJECTS)]} changed {number % 977} times as much in {1900 + number % 120}."

    for first in range(0, many, 500):
        part = range(first, min(first + 500, many))
        rows, runs, results, reviews, read = [], [], [], [], []
        for number in part:
            name, run, made = f"c{number:012x}", f"r{number:012x}", make_claim(claim(number))
            label = labels[number % 3]
            data = json.dumps(as_data(replace(debate, claim=made, verdict=replace(debate.verdict, label=label))))
            at = begun + 6000.0 * number
            rows.append({
                "id": name, "claim_id": made.id, "claim": made.text, "source": "A columnist" if number % 5 else "",
                "date": "", "by": None, "asked_at": at, "ended_at": at + 60, "state": "done", "setup": "two",
                "settings": written, "job": None, "run": run, "outcome": "verdict", "label": label, "error": None,
                "transcript": data, "model": settings.model, "advocates": 2,
                "topic": ("1.6", "2.1", "5.2")[number % 9 // 3] if label == "incorrect" else None,
                "seconds": 40.0 + number % 40,
            })  # fmt: skip
            runs.append({
                "id": run, "command": "check", "config": "{}", "seeds": "{}", "version": "0", "started_at": at,
                "seen_at": at, "ended_at": at + 60, "status": "done",
            })  # fmt: skip
            results.append({"run": run, "name": "transcript", "position": 0, "row": data})
            read += [{"check": name, "collection": one} for one in ("ipcc", "abstracts")]
            for by, opinion in (("ann", "agree"), ("bob", ("agree", "disagree", "undecided")[number % 3])):
                if number % 2:
                    reviews.append({"check": name, "by": by, "opinion": opinion, "comment": "So.", "made_at": at})

        def work(connection, rows=rows, runs=runs, results=results, read=read, reviews=reviews):
            for table, some in (
                (checks, rows), (check_collections, read), (check_reviews, reviews), (tables.runs, runs),
                (tables.results, results),
            ):  # fmt: skip
                connection.execute(table.insert(), some)

        records.database.write(work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checks", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        workspace = Workspace.open(Path(name) / "workspace")
        with Records(workspace.records_url) as records:
            fill(records, given.checks)
            accounts = AccountStore(records.database)
            for person in ("ann", "bob"):
                accounts.add(person)
            session = accounts.begin_session("ann", days=1)
            encoder = load_encoder(BUNDLED_ENCODER)
            similar = []
            for claim in ("Sea ice changed 5 times as much in 1950.", "Cattle changed a lot in 1999."):
                before = time.perf_counter()
                find_past_checks(records, claim, encoder, limit=5)
                similar.append(round(1000 * (time.perf_counter() - before)))
        with ServerProcess(Place(workspace.root, None, {})) as server:
            connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=600)

            def get(address: str) -> tuple[float, float, int]:
                before, cpu = time.perf_counter(), server.cpu_seconds()
                connection.request("GET", address, headers={"Cookie": f"{SESSION_COOKIE}={session}"})
                answer = connection.getresponse()
                size = len(answer.read())
                assert answer.status == 200, (address, answer.status)
                return 1000 * (time.perf_counter() - before), 1000 * (server.cpu_seconds() - cpu), size

            get("/checks")
            pages = {}
            for address in ADDRESSES:
                times = [get(address) for _ in range(7)]
                pages[address] = {
                    "ms": round(statistics.median(one[0] for one in times)),
                    "cpu_ms": round(statistics.median(one[1] for one in times)),
                }
            files = {}
            for form in ("csv", "xlsx", "jsonl"):
                took, cpu, size = get(f"/checks.{form}")
                files[form] = {"s": round(took / 1000, 1), "cpu_s": round(cpu / 1000, 1), "MB": round(size / 1e6, 1)}
    found = {"checks": given.checks, "pages": pages, "similar_ms": similar, "files": files}
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for address, one in pages.items():
        print(f"{one['ms']:6} ms {one['cpu_ms']:6} ms of CPU  {address}")
    print(f"similar claims: {similar[0]} ms at first, then {similar[1]} ms")
    for form, one in files.items():
        print(f"{form}: {one['MB']} MB in {one['s']} s, {one['cpu_s']} s of CPU")


if __name__ == "__main__":
    main()
