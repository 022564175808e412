"""Adding survives being killed, and several processes may add at once: with real processes and a real SIGKILL."""

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from climassay.corpus import Collection
from climassay.errors import InputError

sys.path.insert(0, str(Path(__file__).parent))
from adding_driver import CHUNK, NAME, PARAGRAPHS, document
from random_passages import RandomEncoder, random_document, random_words

pytestmark = pytest.mark.process

DRIVER = Path(__file__).with_name("adding_driver.py")
DOCUMENTS = 6
KILLS = 5 if os.environ.get("CLIMASSAY_FAULTS") == "full" else 2


def start(folder: Path, log: Path, *arguments: float) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, str(DRIVER), str(folder), str(log), *map(str, arguments)])


def embedded(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def stored(folder: Path) -> dict[str, str]:
    """Text by passage id of what the collection holds."""
    try:
        table = Collection.open(folder, NAME)._table
    except InputError:
        return {}
    rows = table.search().select(["id", "text"]).limit(None).to_arrow().to_pylist()
    assert len(rows) == len({row["id"] for row in rows}), "a passage is there twice"
    return {row["id"]: row["text"].replace("\n", " ") for row in rows}


def test_adding_goes_on_where_it_was_killed(tmp_path):
    chance = random.Random(20240608)
    folder, kills, before = tmp_path / "collections", 0, {}
    expected = DOCUMENTS * PARAGRAPHS
    while kills < KILLS and len(before) < expected:
        log = tmp_path / f"log{kills}"
        moment = chance.randint(1, 3 * CHUNK), chance.choice((0, 2, 5, 10, 20))
        assert start(folder, log, 0, DOCUMENTS, *moment).wait() == -signal.SIGKILL
        kills += 1
        again = set(embedded(log)) & set(before.values())
        assert not again, "a passage that was stored was embedded again"
        now = stored(folder)
        assert now.items() >= before.items(), "a passage that was stored is gone"
        before = now
        complete = [item for item in Collection.open(folder, NAME).documents() if item.complete] if now else []
        assert all(item.passages == PARAGRAPHS for item in complete)
    log = tmp_path / "last"
    assert start(folder, log, 0, DOCUMENTS).wait() == 0
    assert set(embedded(log)).isdisjoint(before.values())
    assert len(embedded(log)) == expected - len(before)
    collection = Collection.open(folder, NAME)
    assert [(item.passages, item.complete) for item in collection.documents()] == [(PARAGRAPHS, True)] * DOCUMENTS
    assert len(stored(folder)) == expected

    undisturbed = Collection.create(tmp_path / "other", NAME, collection.encoder, passage_size=160, passage_overlap=0)
    undisturbed.add(document(number) for number in range(DOCUMENTS))
    for mode in ("dense", "bm25", "hybrid"):
        query = "Which part of station 3 is on glaciers at level 87?"
        assert collection.search(query, mode=mode) == undisturbed.search(query, mode=mode)


def test_a_half_added_document_is_told_and_completed(tmp_path):
    log = tmp_path / "log"
    # Killed before the second chunk is stored: the first one is.
    assert start(tmp_path, log, 0, 1, 2 * CHUNK, 0).wait() == -signal.SIGKILL
    collection = Collection.open(tmp_path, NAME)
    (half,) = collection.documents()
    assert half.passages < half.expected == PARAGRAPHS
    assert not half.complete
    assert collection.summary().incomplete == 1
    report = collection.add([document(0)])
    assert [item.id for item in report.added] == ["doc0000"]
    assert report.passages == PARAGRAPHS - half.passages
    assert collection.summary().incomplete == 0


def test_three_processes_add_overlapping_documents_at_once(tmp_path):
    folder = tmp_path / "collections"
    ranges = [(0, 4), (1, 6), (0, 6)]
    started = [start(folder, tmp_path / f"log{n}", first, last) for n, (first, last) in enumerate(ranges)]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert len(stored(folder)) == DOCUMENTS * PARAGRAPHS
    collection = Collection.open(folder, NAME)
    assert all(item.complete for item in collection.documents())
    found = collection.search("glaciers", k=1000, mode="bm25")
    assert len(found) == DOCUMENTS * PARAGRAPHS
    assert collection.add(document(number) for number in range(DOCUMENTS)).passages == 0


def test_small_additions_and_compactions_that_are_killed_are_finished_by_the_next(tmp_path):
    chance = random.Random(25)
    folder = tmp_path / "collections"
    begun = Collection.create(folder, "c", RandomEncoder())
    documents = [random_document(number, 100, words=30) for number in range(5)]
    begun.add(documents)
    driver, added = DRIVER.with_name("compacting_driver.py"), 1000
    for _ in range(2 * KILLS):
        process = subprocess.Popen(
            [sys.executable, str(driver), str(folder), str(added)], stdout=subprocess.PIPE, text=True
        )
        last = ""
        for _ in range(chance.randint(1, 4)):
            last = process.stdout.readline()
        threading.Timer(chance.random() / 5, process.kill).start()
        last = [last, *process.stdout][-1]
        assert process.wait() == -signal.SIGKILL
        what, number = last.split()
        there = {item.id for item in Collection.open(folder, "c", RandomEncoder()).documents()}
        done = range(1000, int(number) + (what == "compact"))
        assert there >= {item.id for item in documents} | {f"d{one}" for one in done}
        added = int(number)
    collection = Collection.open(folder, "c", RandomEncoder())
    collection.add([random_document(number, 1, words=30) for number in range(1000, added + 1)])
    collection.compact()
    assert len(collection._table.list_versions()) == 1
    undisturbed = Collection.create(tmp_path / "other", "c", RandomEncoder())
    undisturbed.add([*documents, *(random_document(number, 1, words=30) for number in range(1000, added + 1))])
    undisturbed.compact()
    for mode in ("dense", "bm25", "hybrid"):
        query = random_words(25, 6)
        assert collection.search(query, mode=mode) == undisturbed.search(query, mode=mode)
    sizes = [sum(path.stat().st_size for path in one.rglob("*")) for one in (folder / "c.lance", tmp_path / "other")]
    assert sizes[0] <= 1.1 * sizes[1]
