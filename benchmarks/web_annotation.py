"""Fifty annotators who label at once against a real server, which is killed and started again in the middle.

Claim: every label that was acknowledged is stored exactly once, on SQLite and on PostgreSQL (where it is installed).
Measured beside it: how long a label takes until it is acknowledged, and how long the server takes for the same crowd
when it does nothing, that is, sends a small static file. Annotators are simulated by one process on the same machine
(``tests/labelling_crowd.py``): each loads the next item, sends its form, and sends it again with the same key where no
answer came. Once nobody thinks, so that the server is saturated; once every annotator looks at an item for some
seconds. Times are of the first half, before the kill; what is stored is compared after both halves.

Run: python benchmarks/web_annotation.py [--seconds 60] [--annotators 50] [--think 5] [--json]
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from labelling_crowd import Crowd, Place, ServerProcess, Told, differences, prepare
from postgres_server import running_postgres

OVERLAP = 2
LABELS_A_SECOND = 100
"""More than any machine at hand makes; so many drafts are prepared."""
EMPTY_SECONDS = 10.0


def milliseconds(times: Sequence[float], share: float) -> float:
    """A quantile of times in seconds, in milliseconds."""
    return 1000 * statistics.quantiles(times, n=1000)[round(1000 * share) - 1]


def figures(told: Told, empty: Told) -> dict[str, Any]:
    """What an undisturbed crowd measured; ratios are to the empty endpoint under the same crowd."""
    p95, empty_p95 = milliseconds(told.label_times, 0.95), milliseconds(empty.empty_times, 0.95)
    return {
        "labels_a_second": len(told.acknowledged) / told.seconds,
        "label_p50_ms": milliseconds(told.label_times, 0.5),
        "label_p95_ms": p95,
        "page_p50_ms": milliseconds(told.page_times, 0.5),
        "page_p95_ms": milliseconds(told.page_times, 0.95),
        "empty_p50_ms": milliseconds(empty.empty_times, 0.5),
        "empty_p95_ms": empty_p95,
        "ratio_p95": p95 / empty_p95,
    }


def measured(place: Place, given: argparse.Namespace, think: float) -> dict[str, Any]:
    """One part on one database: half of the time in peace, half with the server killed in its middle."""
    load = [os.getloadavg()[0]]
    with ServerProcess(place) as server:
        # The first page of a server waits for its imports.
        first_of_all = Crowd(server, dict(list(place.sessions.items())[:1]), labels_each=1).work()
        begun = server.cpu_seconds()
        empty = Crowd(server, place.sessions, think=think).ask_for_nothing(EMPTY_SECONDS)
        between = server.cpu_seconds()
        peaceful = Crowd(server, place.sessions, seconds=given.seconds / 2, think=think).work()
        ended = server.cpu_seconds()
        soon = (max(1, len(peaceful.acknowledged) // 2),)
        disturbed = Crowd(server, place.sessions, seconds=given.seconds / 2, think=think, kill_after=soon).work()
    load.append(os.getloadavg()[0])
    told = Told(
        sent=first_of_all.sent | peaceful.sent | disturbed.sent,
        acknowledged=first_of_all.acknowledged + peaceful.acknowledged + disturbed.acknowledged,
    )
    return figures(peaceful, empty) | {
        "empty_cpu_ms": 1000 * (between - begun) / len(empty.empty_times),
        "label_and_page_cpu_ms": 1000 * (ended - between) / len(peaceful.acknowledged),
        "labels": len(told.acknowledged),
        "kills": disturbed.kills,
        "requests_cut": disturbed.cut,
        "wrong": {name: len(found) for name, found in differences(place, told).items()},
        "load": load,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--think", type=float, default=5.0, help="mean seconds that a thoughtful annotator looks")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        databases: dict[str, Any] = {"SQLite": None}
        try:
            databases["PostgreSQL"] = stack.enter_context(running_postgres())
        except LookupError as error:
            print(f"Without PostgreSQL: {error}.", file=sys.stderr)
        for name, server in databases.items():
            for think in (0.0, given.think):
                part = f"{name}, {f'thinking {think:g} s' if think else 'without thinking'}"
                url = None
                if server is not None:
                    server.execute(f"CREATE DATABASE crowd_{len(result)}")
                    url = server.url(f"crowd_{len(result)}")
                drafts = round(LABELS_A_SECOND * given.seconds / OVERLAP)
                workspace = folder / str(len(result))
                place = prepare(
                    workspace, annotators=given.annotators, drafts=drafts, overlap=OVERLAP, database_url=url
                )
                result[part] = measured(place, given, think)
                if not given.json:
                    print(f"{part}: {json.dumps(result[part], indent=2)}", flush=True)
    if given.json:
        print(json.dumps(result, indent=2))
    return int(any(count for part in result.values() for count in part["wrong"].values()))


if __name__ == "__main__":
    sys.exit(main())
