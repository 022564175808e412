"""Pages of a run of 300,000 answers, and a comparison of two runs of 20,000: the first look and the next ones.

The index of the questions and the report are computed when the run is first opened, a comparison likewise; all of them
are stored with the records, and a second server reads them from there.
Servers are asked when they have begun and are at rest.

Beside each page of questions stands the time of the same list made as before, by going through the whole run in memory
(what reading the run costs is told apart). Computing is timed as CPU seconds of the server as well.

Run: python benchmarks/result_pages.py [--answers 300000] [--compared 20000] [--json]
"""

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from climassay.evaluation.report import is_wrong
from climassay.records import Records
from climassay.records.queries import run_details
from climassay.web.access import SESSION_COOKIE
from climassay.web.accounts import AccountStore
from climassay.web.results.stored_run import StoredRun
from climassay.workspace import Workspace
from experiments import experiment, question
from labelling_crowd import Place, ServerProcess
from stored_runs import store_experiment

CELLS = {("small", "default"): 0.4, ("small", "rag"): 0.5, ("large", "default"): 0.7, ("large", "rag"): 0.8}


def stored(records: Records, answers: int, seed: int = 0) -> str:
    """A run with so many answers, as the command leaves it."""
    asked = [
        question("mcq", number, ("base", "reasoning", "hypothetical")[number % 3]) for number in range(answers // 4)
    ]
    given = experiment(CELLS, questions=asked, seed=seed)
    return store_experiment(records, given)


def settle(server: ServerProcess) -> None:
    """Wait until a server that has begun has imported and compiled what it does beside its first answers."""
    used = -1.0
    while server.cpu_seconds() - used > 0.05:
        used = server.cpu_seconds()
        time.sleep(3)


def by_hand(records: Records, run: str) -> dict[str, float]:
    """Seconds to read the whole run, and to filter its questions in memory."""
    before = time.perf_counter()
    whole = StoredRun(run_details(records.database, run))
    whole.questions  # noqa: B018 - reads and sorts everything
    read = time.perf_counter() - before
    before = time.perf_counter()
    found = sum(
        "7" in one.question and any(is_wrong(said) and "option C" in said.answer for said in whole.outcomes[key])
        for key, one in whole.questions.items()
    )
    return {"read_ms": round(1000 * read), "filter_ms": round(1000 * (time.perf_counter() - before)), "found": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=300_000)
    parser.add_argument("--compared", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "workspace"
        place = Workspace.open(folder)
        with Records(place.records_url) as records:
            run = stored(records, given.answers)
            pair = ",".join(stored(records, given.compared, seed) for seed in (1, 2))
            accounts = AccountStore(records.database)
            accounts.add("reader")
            cookie = {"Cookie": f"{SESSION_COOKIE}={accounts.begin_session('reader', days=1)}"}
            before = by_hand(records, run)
        questions = f"/results/{run}/questions"
        addresses = {
            "the run's page": f"/results/{run}",
            "questions": questions,
            "the last page": f"{questions}?page={given.answers // 200}",
            "wrong, by model and level": f"{questions}?model=large&wrong=true&level=reasoning",
            "words": f"{questions}?text=option+C+of+question+7",
            "words that are nowhere": f"{questions}?text=nowhere+at+all",
            "one question": f"{questions}/mcq-77?benchmark=primer",
            "a comparison": f"/results/compare?runs={pair}",
        }
        found = {}
        looks = [addresses, {"the comparison, server started anew": addresses["a comparison"]}]
        for some in looks:
            with ServerProcess(Place(folder, None, {})) as server:
                settle(server)
                at = urlsplit(server.url)
                for kind, address in some.items():
                    times, used = [], []
                    for _ in range(6):
                        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=600)
                        cpu, begun = server.cpu_seconds(), time.perf_counter()
                        connection.request("GET", address, headers=cookie)
                        answer = connection.getresponse()
                        answer.read()
                        times.append(1000 * (time.perf_counter() - begun))
                        used.append(server.cpu_seconds() - cpu)
                        assert answer.status == 200, (address, answer.status)
                    found[kind] = {
                        "first_ms": round(times[0]),
                        "first_cpu_s": round(used[0], 2),
                        "next_ms": round(statistics.median(times[1:])),
                        "next_cpu_s": round(statistics.median(used[1:]), 2),
                    }
    result = {
        "answers": given.answers,
        "compared": given.compared,
        "in_memory": before,
        "pages": found,
    }
    if given.json:
        print(json.dumps(result, indent=2))
        return
    sys.stdout.write(f"{given.answers} answers; whole run in memory: {before}\n")
    for kind, figures in found.items():
        sys.stdout.write(f"  {kind:28}" + "".join(f"{key} {value:<8}" for key, value in figures.items()) + "\n")


if __name__ == "__main__":
    main()
