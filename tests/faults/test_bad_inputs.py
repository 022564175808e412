"""Every command with inputs that are missing, folders, pipes, binary, empty or huge: exit 2 and one sentence."""

import json
import os
import re
import signal
from pathlib import Path
from urllib.parse import unquote

import pytest

from climassay.corpus.collection_storage import CollectionSettings, CollectionStore
from climassay.generation import write_drafts
from climassay.workspace import Workspace
from command_line import run_command
from faults import samples
from faults.commands import BAD, READS, WITHOUT_FILES, WITHOUT_JSON, arguments, walk
from generated_drafts import draft
from web_routes import Site

SECONDS = 60
"""No command needs as long to refuse an input, on however busy a machine."""


class TooLong(Exception):
    """A command did not end."""


@pytest.fixture(autouse=True)
def bounded():
    """A command that waits for ever fails its test instead of stopping all of them."""

    def end(*_):
        raise TooLong(f"not refused within {SECONDS} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def missing(path: Path) -> None:
    """Nothing is there."""


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    """Nobody ever writes to it."""
    os.mkfifo(path)


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 20)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def huge(path: Path) -> None:
    """Four terabytes on paper."""
    with path.open("wb") as file:
        file.truncate(4 << 40)


FAULTS = (missing, folder, pipe, binary, empty, huge)
AT_ONCE = len(FAULTS) if os.environ.get("CLIMASSAY_FAULTS") == "full" else 1
"""Faults that a form of a command meets in one run of the tests: in the ordinary run each form meets its own."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Good files for all other arguments, and a workspace with an empty collection."""
    place = tmp_path_factory.mktemp("good")
    files = {
        "questions.jsonl": samples.jsonl(samples.QUESTIONS),
        "claims.jsonl": samples.jsonl(samples.CLAIMS),
        "items.jsonl": samples.jsonl(samples.ITEMS),
        "cloze.jsonl": samples.jsonl(samples.QUESTIONS[2:] * 6),
        "statements.jsonl": samples.statements(),
        "document.md": samples.markdown(),
    }
    for name, content in files.items():
        (place / name).write_bytes(content)
    write_drafts(place / "drafts.jsonl", [draft(number, "freeform") for number in range(3)])
    workspace = Workspace.open(place / "workspace")
    settings = CollectionSettings("local:minilm", "f" * 64, 8, 400, 40)
    CollectionStore.at(workspace).create("books", settings)
    return place


def filled(arguments, place, bad):
    known = {
        "{out}": str(bad.parent / "out"), "{folder}": str(bad.parent), "{document}": str(place / "document.md"),
        **{f"{{{name}}}": str(place / f"{name}.jsonl")
           for name in ("questions", "claims", "items", "cloze", "statements", "drafts")},
        BAD: str(bad),
    }  # fmt: skip
    for name, value in known.items():
        arguments = [argument.replace(name, value) for argument in arguments]
    return arguments


CASES = [(name, number) for name, forms in READS.items() for number in range(len(forms))]


@pytest.mark.parametrize(("name", "number"), CASES, ids=[f"{name}-{number}" for name, number in CASES])
def test_a_bad_input_is_refused_in_one_sentence(name, number, place, tmp_path, monkeypatch, capsys):
    takes_json = name not in WITHOUT_JSON
    start = CASES.index((name, number))
    for fault in [FAULTS[(start + step) % len(FAULTS)] for step in range(AT_ONCE)]:
        bad = tmp_path / fault.__name__ / f"bad{'.jsonl' if name != 'corpus add' else '.txt'}"
        bad.parent.mkdir()
        fault(bad)
        given = filled(READS[name][number], place, bad)
        options = ["--json"] if takes_json else []
        if "workspace" in {option.name.strip("-") for option in arguments(dict(walk())[name])}:
            options += ["--workspace", str(place / "workspace")]
        code, out, err = run_command(monkeypatch, capsys, *name.split(), *given, *options)
        said = [line for line in err.splitlines() if line.startswith("climassay: ")]
        assert "Traceback" not in err, f"{fault.__name__}: {err[-1500:]}"
        assert (code, len(said)) == (2, 1), f"{fault.__name__}: exit {code}, {out[-500:]} {err[-1500:]}"
        assert said[0].endswith((".", "?")), f"{fault.__name__}: {said[0]}"
        if takes_json and out:
            json.loads(out)


@pytest.mark.core
def test_every_command_is_known_to_these_tests():
    commands = {name for name, _ in walk()}
    unknown = commands - set(READS) - set(WITHOUT_FILES)
    assert not unknown, f"say in tests/faults/commands.py which file is read by {', '.join(sorted(unknown))}"
    assert set(READS).isdisjoint(WITHOUT_FILES)
    assert set(READS) <= commands


def test_a_name_that_is_no_text_can_be_told(tmp_path, climassay):
    """Names of files are bytes: one that is not UTF-8 is refused, and printed, like any other."""
    name = os.fsdecode(bytes(tmp_path) + b"/caf\xe9.csv")
    Path(name).write_bytes(b"")
    code, out, err = climassay("metrics score", name, "--json")
    assert (code, out) == (2, "")
    assert "has no rows" in err


def test_a_document_whose_name_is_no_text_is_added_and_its_file_can_be_had(tmp_path):
    from climassay.api import documents

    path = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.md"))
    path.write_text("# Ice\n\nIce melts in the sea every summer.\n")
    documents.add_documents("ice", [path], workspace=tmp_path / "w")
    site = Site(tmp_path / "w")
    client = site.visitor("annotator")
    [document] = set(re.findall(r'/library/ice/documents/([^"/#?]+)', client.get("/library/ice").text))
    answer = client.get(f"/library/ice/documents/{document}/original")
    assert answer.content == path.read_bytes()
    assert unquote(answer.headers["content-disposition"]).endswith("caf\ufffd.md")
    site.close()
