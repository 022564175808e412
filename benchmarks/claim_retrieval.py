"""Retrieval for claims: what a model's queries and its grading of passages change about the passages shown.

Twenty claims of Climate Feedback are searched in IPCC AR6 (and in three summaries of special reports). For each claim
the first passages of several searches were pooled, shuffled, and labelled by hand without sight of the search that
found them: 2, one could cite it for or against the claim; 1, it is on the claim's subject; 0, neither. Queries and
grades, too, were written by hand, from the prompts ``factcheck_split`` and ``factcheck_grade`` alone: the figures are
about prompts and code with a careful reader behind them, and about no model. Grades exist for the second ten claims
only, which were not looked at while anything was chosen. Only hashes of claims and ids of passages are kept here, since
neither text may be copied.

    python benchmarks/claim_retrieval.py [--data ../shared/data] [--workspace FOLDER] [--json]

The first run makes the collection (a quarter of an hour on one core); it is kept for the next ones in the cache folder.
``--labels FOLDER`` writes ``labels.jsonl``, a table for ``climassay corpus add`` and ``corpus evaluate``, and
makes no collection. ``--pool FILE`` writes the passages to be labelled, ``--prompts FOLDER`` the grading prompts.
"""

import argparse
import csv
import hashlib
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.corpus import open_or_create, read, split_passages
from climassay.factcheck.configuration import AdvocateSettings
from climassay.factcheck.debate.batcher import search_all
from climassay.factcheck.debate.evidence import Grader, RetrievedEvidence, find_evidence
from climassay.factcheck.debate.reading import read_claim
from climassay.factcheck.debate.requests import Request, RequestGenerator, SearchRequest, TextRequest
from climassay.factcheck.debate.setup import Advocate
from climassay.factcheck.transcript import Subclaim
from climassay.grounding import CollectionGroup, open_collections
from climassay.models.contract import Completion
from climassay.prompts import STRONG, load_prompt
from climassay.statistics import bootstrap_interval
from climassay.workspace import Workspace, cache_folder

SEED = 17
CLAIMS = 20
SEEN = 10
"""So many of the claims, the first ones, were looked at while prompts and numbers were chosen."""
PARAGRAPHS = "ipcc_ar6_paragraphs.jsonl.gz"
ANSWERS = Path(__file__).parent / "data" / "claim_retrieval.json"
COLLECTION = "ar6"
POOLED = 6
"""Passages that each search for the claim as it stands gives to the pool."""
CONDITIONS = ("statement", "queries", "queries and grades")


@dataclass(frozen=True)
class Shown:
    """The passages that one claim's advocate gets."""

    claim: int
    condition: str
    passages: tuple[str, ...]
    relevant: tuple[str, ...]
    """Of all that were labelled as such."""

    @property
    def right(self) -> int:
        """Relevant passages among those shown."""
        return len(set(self.passages) & set(self.relevant))


def chosen_claims(data: Path) -> list[str]:
    with (data / "climate_feedback.csv").open(encoding="utf-8", newline="") as file:
        texts = list(dict.fromkeys(row["claim"] for row in csv.DictReader(file)))
    return random.Random(SEED).sample(texts, CLAIMS)


def answered(entries: Sequence[Mapping[str, Any]], claims: Sequence[str]) -> list[dict[str, Any]]:
    """The answers to the splitting prompt, quotations put in from the claims."""
    answers = []
    for entry, claim in zip(entries, claims, strict=True):
        if entry["claim"] != hashlib.sha256(claim.encode()).hexdigest()[:16]:
            sys.exit(f"Claim {entry['number']} is not the one that was answered for.")
        parts = [{**part, "quotation": claim[slice(*part["quotation"])]} for part in entry["parts"]]
        answers.append({"reason": "", "kind": "checkable", "parts": parts})
    return answers


def replayed(answer: Mapping[str, Any], _: Request) -> Completion:
    return Completion(json.dumps(answer), "stop")


def run_steps(steps: RequestGenerator[Any], answer: Callable[[Request], Any]) -> Any:
    given: list[Any] | None = None
    try:
        while True:
            asks = next(steps) if given is None else steps.send(given)
            given = [answer(ask) for ask in asks]
    except StopIteration as end:
        return end.value


class Searches:
    """One advocate with the collection, asked for the passages before it."""

    def __init__(self, group: CollectionGroup) -> None:
        self.group = group
        self.prompt = ""
        """The last grading prompt."""

    def shown(
        self, claim: str, subclaims: Sequence[Subclaim], passages: int, grades: Mapping[str, int] | None, graded: bool
    ) -> RetrievedEvidence:
        """What is shown; grades are by id of the passage, in the order of the prompt."""
        settings = AdvocateSettings("AR6", collections=(COLLECTION,), passages=passages, excerpt_words=0)
        grader = Grader("by hand", load_prompt("factcheck_grade")) if graded else None

        def answer(ask: Request) -> Any:
            if isinstance(ask, SearchRequest):
                return search_all([ask], {COLLECTION: self.group}, lambda _: frozenset())[0]
            assert isinstance(ask, TextRequest)
            self.prompt = "\n\n".join(f"[{one.role}]\n{one.content}" for one in ask.model_request.messages)
            if grades is None:
                return Completion.failed("Nobody has graded them.")
            listed: list[dict[str, Any]] = [
                {"passage": number, "grade": grade} for number, grade in enumerate(grades.values(), start=1)
            ]
            if len(subclaims) > 1:
                listed = [{**one, "statements": []} for one in listed]
            return Completion(json.dumps({"grades": listed}), "stop")

        evidence: RetrievedEvidence = run_steps(
            find_evidence([Advocate(settings, "by hand")], subclaims, claim, grader), answer
        )
        return evidence


def ids(evidence: RetrievedEvidence) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found.passage.id for some in evidence.passages[0] for found in some))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--workspace", type=Path, default=None)
    parser.add_argument("--pool", type=Path)
    parser.add_argument("--prompts", type=Path)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not (options.data / PARAGRAPHS).exists():
        sys.exit(f"There is no {PARAGRAPHS} in {options.data}; name its folder with --data.")
    if options.labels:
        write_labels(options.data, options.labels)
        return
    place = Workspace.open(options.workspace or cache_folder() / "benchmarks" / "claim-retrieval")
    open_or_create(place, COLLECTION, encoder="local:minilm").add(read(options.data / PARAGRAPHS).documents)
    searches = Searches(open_collections(place, [COLLECTION]))
    claims = chosen_claims(options.data)
    entries = json.loads(ANSWERS.read_text(encoding="utf-8"))
    prompt = load_prompt("factcheck_split")
    readings = [
        run_steps(read_claim(claim, "model", "by hand", STRONG, prompt), partial(replayed, given))
        for claim, given in zip(claims, answered(entries, claims), strict=True)
    ]
    if options.pool or options.prompts:
        write_material(searches, claims, [reading.subclaims for reading in readings], options.pool, options.prompts)
        return
    rows = [
        Shown(
            entry["number"], f"{condition}, {passages}", shown, tuple(i for i, v in entry["labels"].items() if v == 2)
        )
        for entry, claim, reading in zip(entries, claims, readings, strict=True)
        for passages in (4, 8)
        for condition, shown in conditions(searches, claim, reading.subclaims, entry.get("grades"), passages).items()
    ]
    report(rows, entries, options.json)


def write_labels(data: Path, folder: Path) -> None:
    """A row for each claim and labelled passage: a table of documents and one of questions at once."""
    passages = {one.id: one.text for found in read(data / PARAGRAPHS).documents for one in split_passages(found)}
    entries = json.loads(ANSWERS.read_text(encoding="utf-8"))
    rows = [
        {"claim": f"claim {entry['number']}", "question": claim, "id": name, "text": passages[name], "label": label}
        for entry, claim in zip(entries, chosen_claims(data), strict=True)
        for name, label in entry["labels"].items()
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "labels.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def conditions(
    searches: Searches, claim: str, subclaims: Sequence[Subclaim], grades: Mapping[str, int] | None, passages: int
) -> dict[str, tuple[str, ...]]:
    bare = [replace(one, queries=()) for one in subclaims]
    found = {
        CONDITIONS[0]: ids(searches.shown(claim, bare, passages, None, False)),
        CONDITIONS[1]: ids(searches.shown(claim, subclaims, passages, None, False)),
    }
    if grades:
        found[CONDITIONS[2]] = ids(searches.shown(claim, subclaims, passages, grades, True))
    return found


def write_material(
    searches: Searches,
    claims: Sequence[str],
    readings: Sequence[Sequence[Subclaim]],
    pool: Path | None,
    prompts: Path | None,
) -> None:
    """The pooled passages of every claim in random order, and the grading prompts."""
    [collection] = searches.group.collections
    order = random.Random(SEED)
    lines = []
    for number, (claim, subclaims) in enumerate(zip(claims, readings, strict=True), start=1):
        candidates = [one.passage.id for one in searches.shown(claim, subclaims, 4, None, True).candidates]
        prompt = searches.prompt
        found = dict.fromkeys(candidates)
        for mode in ("bm25", "dense", "hybrid"):
            found.update(dict.fromkeys(hit.passage.id for hit in collection.search(claim, k=POOLED, mode=mode)))
        for some in conditions(searches, claim, subclaims, None, 8).values():
            found.update(dict.fromkeys(some))
        for some in conditions(searches, claim, subclaims, None, 4).values():
            found.update(dict.fromkeys(some))
        shuffled = order.sample(sorted(found), len(found))
        lines.append(json.dumps({"number": number, "claim": claim, "candidates": candidates, "pool": shuffled}))
        if prompts:
            prompts.mkdir(parents=True, exist_ok=True)
            (prompts / f"{number:02}.txt").write_text(prompt, encoding="utf-8")
    if pool:
        pool.write_text("\n".join(lines), encoding="utf-8")


def report(rows: Sequence[Shown], entries: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    groups: dict[str, Callable[[int], bool]] = {
        "all claims": lambda _: True,
        "unseen claims": lambda number: number > SEEN,
    }
    table = []
    for group, belongs in groups.items():
        for condition in dict.fromkeys(row.condition for row in rows):
            some = [row for row in rows if row.condition == condition and belongs(row.claim) and row.relevant]
            # Columns: relevant passages shown, passages shown, relevant passages labelled.
            counts = np.array([(row.right, len(row.passages), len(row.relevant)) for row in some], dtype=float)
            line: dict[str, Any] = {"group": group, "condition": condition, "n": len(some)}
            for name, statistic in FIGURES.items():
                interval = bootstrap_interval(counts, statistic, seed=SEED)
                line[name] = (statistic(counts), interval.low, interval.high)
            table.append(line)
        table += differences([row for row in rows if belongs(row.claim) and row.relevant], group)
    labelled = {value: sum(list(entry["labels"].values()).count(value) for entry in entries) for value in (2, 1, 0)}
    if as_json:
        print(json.dumps({"labelled": labelled, "rows": table, "shown": [asdict(row) for row in rows]}, indent=1))
        return
    print(
        f"labels: {labelled}; claims without a relevant passage: {sum(2 not in e['labels'].values() for e in entries)}"
    )
    for line in table:
        given = [(name, line[name]) for name in FIGURES if name in line]
        cells = [f"{name} {value:.2f} ({low:.2f} to {high:.2f})" for name, (value, low, high) in given]
        print(f"{line['group']}, {line['condition']} (n = {line['n']}): {'; '.join(cells)}")


def differences(rows: Sequence[Shown], group: str) -> list[dict[str, Any]]:
    """What each condition adds to the one before, on the same claims."""
    lines = []
    for passages in dict.fromkeys(row.condition.rpartition(", ")[2] for row in rows):
        for before, after in pairwise(CONDITIONS):
            pairs = [
                [row for row in rows if row.condition == f"{condition}, {passages}"] for condition in (before, after)
            ]
            both = {row.claim for row in pairs[0]} & {row.claim for row in pairs[1]}
            counts = np.hstack(
                [
                    [(row.right, len(row.passages), len(row.relevant)) for row in some if row.claim in both]
                    for some in pairs
                ]
            ).astype(float)
            line: dict[str, Any] = {"group": group, "condition": f"{after} minus {before}, {passages}", "n": len(both)}
            for name in ("recall", "precision"):
                statistic = partial(difference, FIGURES[name])
                interval = bootstrap_interval(counts, statistic, seed=SEED)
                line[name] = (statistic(counts), interval.low, interval.high)
            lines.append(line)
    return lines


def difference(statistic: Callable[[NDArray[np.float64]], float], counts: NDArray[np.float64]) -> float:
    return statistic(counts[:, 3:]) - statistic(counts[:, :3])


FIGURES: Mapping[str, Callable[[NDArray[np.float64]], float]] = {
    "recall": lambda counts: float((counts[:, 0] / counts[:, 2]).mean()),
    "precision": lambda counts: float(counts[:, 0].sum() / max(counts[:, 1].sum(), 1.0)),
    "claims with a relevant passage": lambda counts: float((counts[:, 0] > 0).mean()),
    "passages shown": lambda counts: float(counts[:, 1].mean()),
}


if __name__ == "__main__":
    main()
