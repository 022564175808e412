"""Damage to what climassay keeps: databases and collections are told by name and left alone, caches heal themselves."""

import json
import os
import random
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from climassay import load_encoder
from climassay.corpus import Block, Collection, Document, list_collections
from climassay.errors import ClimassayError, InputError
from climassay.models.bundled import file_digest
from climassay.records import Records
from command_line import refused

FULL = os.environ.get("CLIMASSAY_FAULTS") == "full"


class HashEncoder:
    """Vectors of nothing in particular; named as the bundled one, so that commands would not look for another."""

    name, fingerprint, width = "local:minilm", "e" * 64, 8

    def encode(self, texts, *, role="passage", on_progress=None):
        return np.random.default_rng(len(texts)).normal(size=(len(texts), self.width)).astype(np.float32)


def flip(data, draw):
    changed = bytearray(data or b"\0")
    for _ in range(max(8, len(changed) // 50)):
        changed[draw.randrange(len(changed))] ^= 255
    return bytes(changed)


DAMAGE = {
    "flipped": flip,
    "truncated": lambda data, draw: data[: len(data) // 2],
    "empty": lambda data, draw: b"",
    "random": lambda data, draw: draw.randbytes(len(data)),
    "removed": None,
}


def damage(path, how, seed=0):
    if DAMAGE[how] is None:
        path.unlink()
    else:
        path.write_bytes(DAMAGE[how](path.read_bytes(), random.Random(f"{how}{seed}")))


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("collections")
    collection = Collection.create(folder, "books", HashEncoder(), passage_size=100, passage_overlap=0)
    collection.add(
        [Document(f"d{n}", f"Title {n}", "s", (Block(f"Ice melts in summer {n}, snow falls."),)) for n in range(9)]
    )
    return folder


def collection_uses(folder):
    """What a collection is used for, each from a fresh start."""

    def opened():
        return Collection.open(folder, "books", HashEncoder())

    return {
        "documents": lambda: sorted(one.id for one in opened().documents()),
        "words": lambda: sorted(hit.passage.id for hit in opened().search("ice", k=20, mode="bm25")),
        "meaning": lambda: sorted(hit.passage.id for hit in opened().search("ice", k=20, mode="dense")),
        "passage": lambda: opened().passage("d1-0").text,
        "all": lambda: sorted(one.id for one in opened().iterate_passages()),
        "list": lambda: [one.passages for one in list_collections(folder)],
    }


def outcome(use):
    """What something gives, and what it says where it gives nothing."""
    try:
        return use(), None
    except ClimassayError as error:
        return None, str(error)


@pytest.mark.parametrize("how", list(DAMAGE))
def test_a_damaged_collection_is_told_or_gives_what_it_gave(how, good, tmp_path):
    expected = {name: use() for name, use in collection_uses(good).items()}
    files = sorted(path for path in good.rglob("*") if path.is_file() and ".lock" not in path.name)
    told = 0
    for number, file in enumerate(files):
        if not FULL and number % 2 != len(how) % 2 and "data" not in file.parts:
            continue
        folder = tmp_path / f"{number}"
        shutil.copytree(good, folder)
        damage(folder / file.relative_to(good), how, number)
        for name, use in collection_uses(folder).items():
            found, said = outcome(use)
            if said is None:
                # Content may differ in a byte that nothing checks; never may passages be missing without a word.
                assert len(found) == len(expected[name]), f"{name} with {file.name} {how}"
            else:
                told += 1
                assert "books" in said
                assert "\n" not in said
    assert told, "the damage does none"


def test_a_damaged_collection_is_one_sentence_of_the_command(good, tmp_path, climassay):
    shutil.copytree(good, tmp_path / "collections")
    for file in (tmp_path / "collections" / "books.lance" / "data").iterdir():
        file.write_bytes(b"")
    for arguments in (("show", "books"), ("show", "books", "d1-0")):
        assert "delete books.lance there and add its documents again" in refused(
            climassay("corpus", *arguments, "-w", tmp_path, "--json")
        )


def test_the_list_shows_the_collections_in_order_and_names_the_damaged(good, tmp_path, climassay):
    folder = tmp_path / "collections"
    shutil.copytree(good, folder)
    for name in ("atlas", "worn", "zones"):
        shutil.copytree(folder / "books.lance", folder / f"{name}.lance")
    for name in ("books", "worn"):
        for file in (folder / f"{name}.lance" / "data").iterdir():
            file.unlink()
    code, out, err = climassay("corpus list", "-w", tmp_path, "--json")
    assert code == 2
    assert [(one["name"], one["passages"]) for one in json.loads(out)] == [("atlas", 9), ("zones", 9)]
    assert [f"{name!r}" in line for name, line in zip(("books", "worn"), err.splitlines(), strict=True)] == [True, True]
    code, out, _ = climassay("corpus list", "-w", tmp_path)
    assert code == 2
    assert "atlas" in out
    assert "worn" not in out


def test_newest_manifests_that_are_gone_are_told(tmp_path):
    collection = Collection.create(tmp_path, "books", HashEncoder(), passage_size=100, passage_overlap=0)
    for number in range(3):
        collection.add([Document(f"d{number}", f"Title {number}", "s", (Block(f"Ice melts in summer {number}."),))])
    manifests = sorted((tmp_path / "books.lance" / "_versions").glob("*.manifest"))
    for manifest in manifests[:-1]:  # their numbers fall
        manifest.unlink()
        with pytest.raises(InputError, match=r"'books' .*\(its version \d+ is missing.*delete books\.lance"):
            Collection.open(tmp_path, "books", HashEncoder())


@pytest.fixture
def records(tmp_path):
    """A workspace whose records hold a run, and their file."""
    with Records(f"sqlite:///{tmp_path / 'records.sqlite'}") as store:
        for number in range(40):
            with store.run("evaluate mcq", {"number": number, "text": "x" * 400}) as run:
                run.save_results("scores", [{"accuracy": 0.5, "n": number}])
    return tmp_path / "records.sqlite"


READING = (("records", "runs"), ("records", "usage"), ("generate", "list"))
ADVICE = "climassay records restore FILE"
DAMAGED_FROM = {"pages": 4096, "the schema": 100, "all": 0}
"""Bytes of the file that stay as they are."""


@pytest.mark.parametrize("start", list(DAMAGED_FROM))
@pytest.mark.parametrize("how", ["flipped", "truncated", "random"])
def test_a_damaged_database_is_told_and_never_replaced(how, start, records, tmp_path, climassay):
    with sqlite3.connect(records) as plain:
        plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    plain.close()

    def run(arguments):
        return climassay(*arguments, "-w", tmp_path, "--json")

    before = {arguments: run(arguments) for arguments in READING}
    assert {code for code, _, _ in before.values()} == {0}
    whole, told, kept = records.read_bytes(), 0, DAMAGED_FROM[start]
    for seed in range(20 if FULL else 2):
        draw = random.Random(f"{how}, {start}, {seed}")
        content = whole[:kept] + DAMAGE[how](whole[kept:], draw)
        for beside in ("-wal", "-shm"):
            Path(f"{records}{beside}").unlink(missing_ok=True)
        records.write_bytes(content)
        for arguments in READING:
            code, out, err = run(arguments)
            if code == 0:
                assert out == before[arguments][1], f"seed {seed}: damage is passed over without a word"
                continue
            told += 1
            assert (code, out) == (2, "")
            assert str(records) in err
            assert ADVICE in err
            assert err.count("\n") == 1
        # Nothing of the file is written anew.
        assert records.read_bytes() == content
    assert told >= seed


def test_a_text_that_was_damaged_is_told_without_being_shown(records, tmp_path, climassay):
    with sqlite3.connect(records) as plain:
        plain.execute("UPDATE runs SET config = CAST(x'7b22ff' || config AS TEXT)")
    plain.close()
    err = refused(climassay("records runs", "-w", tmp_path, "--json"))
    assert "is corrupt (a text in it is not UTF-8): restore a backup" in err
    assert "xxx" not in err


def test_a_database_that_is_another_file_is_refused_and_kept(tmp_path, climassay):
    file = tmp_path / "records.sqlite"
    file.write_bytes(b"Dear diary, today I put a text where a database belongs. " * 50)
    before = file.read_bytes()
    for arguments in (("records", "runs"), ("generate", "list"), ("users", "list"), ("factcheck", "checks", "list")):
        err = refused(climassay(*arguments, "-w", tmp_path, "--json"))
        assert "is corrupt" in err
        assert str(file) in err
    assert file.read_bytes() == before


@pytest.mark.parametrize("how", list(DAMAGE))
def test_a_damaged_encoder_graph_is_made_anew(how, tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path))
    import climassay.models.encoders as room

    made = []

    def build(folder, precision):
        made.append(folder)
        return b"a graph, as far as its place is concerned" * 40

    monkeypatch.setattr(room, "build_graph", build)
    graph = load_encoder("local:minilm")._find_graph_file()
    whole = graph.read_bytes()
    damage(graph, how)
    assert load_encoder("local:minilm")._find_graph_file() == graph
    assert graph.read_bytes() == whole
    assert len(made) == 2
    load_encoder("local:minilm")._find_graph_file()
    assert len(made) == 2, "a graph in order is not made again"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"sha256": 3}', b"null", b"\xff" * 50])
def test_a_damaged_digest_is_computed_again(content, tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    # A file that is old enough to be remembered.
    file = Path(__file__)
    digest = file_digest(file)
    (remembered,) = (tmp_path / "cache" / "digests").iterdir()
    remembered.write_bytes(content)
    assert file_digest(file) == digest


def test_a_trained_file_that_is_cut_off_is_named(tmp_path):
    from climassay.judging import load_probe
    from faults import samples

    file = tmp_path / "probe.safetensors"
    whole = samples.probe()
    for length in range(0, len(whole), 97):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"probe\.safetensors"):
            load_probe(file)
