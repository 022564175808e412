"""What a command left behind, in a form that can be compared: files, results, passages, and what it printed."""

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COSTS = {
    "run", "tally", "tallies", "seconds", "usage", "sent", "n_requested", "stored", "computed", "served",
    "from_records", "cost",
    "judged", "passes", "tokens_computed", "made_at", "created_at", "created", "started_at", "answered_at", "latency",
    "written", "unchanged", "past",
}  # fmt: skip
"""What says when, at what cost, how much of it by this run (``judged`` by a retraining) something was found, and after
which earlier debates (``past``): one that was stored just before a kill is among them."""


def left_by(life: Path, out: str) -> dict[str, Any]:
    """What a command printed and every file it wrote, without costs, times, and the folder it was written in."""
    left = {"printed": _value(out.encode(), life)}
    places = [life / "out", life / "w"]
    for file in sorted(path for place in places for path in place.rglob("*") if path.is_file()):
        name = str(file.relative_to(life))
        if "records.sqlite" in name or ".lance/" in name or file.name.endswith((".lock", ".new")):
            continue
        left[name] = _tensors(file, life) if file.suffix == ".safetensors" else _value(file.read_bytes(), life)
    left["records"] = list(_results(life))
    left["passages"] = passages_of(life / "w")
    return left


RUN = re.compile(r"\br[0-9a-f]{8}\b")
"""Id of a run, which reports name."""


def _value(data: bytes, life: Path) -> Any:
    text = RUN.sub("RUN", data.decode("utf-8", "surrogateescape").replace(str(life), ""))
    try:
        return without_costs(json.loads(text))
    except ValueError:
        pass
    try:
        return [without_costs(json.loads(line)) for line in text.splitlines()]
    except ValueError:
        return text


def without_costs(value: Any) -> Any:
    """A result without what says when and at what cost it was found."""
    if isinstance(value, dict):
        return {name: without_costs(part) for name, part in value.items() if name not in COSTS}
    return [without_costs(part) for part in value] if isinstance(value, list) else value


def _tensors(file: Path, life: Path) -> Any:
    from safetensors import safe_open

    with safe_open(file, "numpy") as held:
        told = {name: _value(text.encode(), life) for name, text in (held.metadata() or {}).items()}
        names = held.keys()  # what is held is not a mapping: it cannot be iterated over itself
        return {"told": told, "rows": {name: held.get_tensor(name).tolist() for name in names}}


def _results(life: Path) -> Iterator[Any]:
    """Results of runs that ended, without the runs that were killed, and drafts of datasets, in their order."""
    file = life / "w" / "records.sqlite"
    if not file.exists():
        return
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as records:
        tables = {name for (name,) in records.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "results" in tables:
            yield sorted({_row(row, life) for row in records.execute(RESULTS)})
        if "drafts" in tables:
            yield [_row(row, life) for row in records.execute("SELECT * FROM drafts ORDER BY 1, 2")]


RESULTS = "SELECT name, position, row FROM results"


def _row(row: tuple[Any, ...], life: Path) -> str:
    return json.dumps([_value(part.encode(), life) if isinstance(part, str) else None for part in row], sort_keys=True)


def passages_of(workspace: Path) -> dict[str, list[str]]:
    """Ids and texts of the passages of each collection, in order."""
    from climassay.corpus import Collection
    from climassay.corpus.collection_storage import CollectionStore
    from climassay.workspace import Workspace

    if not workspace.exists():
        return {}
    place = Workspace.open(workspace)
    names = CollectionStore.at(place).names()
    return {
        name: sorted(one.id + one.text for one in Collection.open(place, name).iterate_passages()) for name in names
    }


def stored_answers(workspace: Path) -> int:
    """Answers of the server that the records hold, with those that only showed what the server can do."""
    file = workspace / "records.sqlite"
    if not file.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as records:
            return records.execute("SELECT coalesce(sum(attempts), 0) FROM answers WHERE error IS NULL").fetchone()[0]
    except sqlite3.OperationalError:  # the tables are being made
        return 0
