"""The whole pipeline, from a book to accepted questions, with outputs that were written by hand and served by an API.

Shows that the machinery makes good data when the generator is good: everything but the writing is real.
"""

import json
import re
from pathlib import Path

import pytest

from api_server import ApiServer, Reply, Request, schema_of
from climassay.corpus import Block, Document, open_or_create
from climassay.generation import DatasetStore, read_dataset
from climassay.primer import book_path
from climassay.records import Records
from climassay.workspace import Workspace
from command_line import done, refused, run_command

WRITTEN = json.loads((Path(__file__).parent / "hand_written_outputs.json").read_text(encoding="utf-8"))
SECTIONS = WRITTEN["sections"]
RECIPE = """
name = "good"
collections = ["books"]
batch = 4

[writer]
model = "openai:hand-written"
base_url = "{url}"
price_in = 1.0
price_out = 2.0

[counts]
mcq = 4
freeform = 4
cloze = 4
base = 1
reasoning = 1

[contexts]
max_passages = 0

[stop]
drafts = 8
"""


def section_texts() -> dict[str, str]:
    """The sections of the primer's book that outputs were written for."""
    book = book_path("aerosols_clouds").read_text(encoding="utf-8")
    parts = re.split(r"^#+ (.+)$", book, flags=re.MULTILINE)
    return {
        heading: text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True) if heading in SECTIONS
    }


class Writer:
    """Answers from the hand-written outputs."""

    def __init__(self) -> None:
        self.texts = section_texts()
        self.asked = 0
        self.spoiled: set[str] = set()
        """Sections about which the multiple-choice questions are answered wrong afterwards."""

    def __call__(self, request: Request) -> Reply:
        self.asked += 1
        schema = schema_of(request.body)
        if schema is not None and "missing" in schema["properties"]:
            return self._verdict(request, schema)
        [section] = [name for name, text in self.texts.items() if text[:200] in request.content]
        names = schema["properties"]
        kind = "mcq" if "distractors" in names else "cloze" if "statement" in names else "freeform"
        base = SECTIONS[section][kind]
        evolving = kind != "cloze" and base["question"] in request.content
        answer = SECTIONS[section][f"{kind}/reasoning"] if evolving else base
        return Reply(json.dumps({name: answer.get(name, "") for name in names}, ensure_ascii=False))

    def _verdict(self, request: Request, schema) -> Reply:
        """What an examiner says of a question: nothing against it, but another letter where a section is spoiled."""
        [section] = [name for name, text in self.texts.items() if text[:200] in request.content]
        verdict = {"missing": "", "reasoning": "The passage says so.", "answer": "right", "flaw": "none"}
        verdict |= {"also_right": [], "is_term": True}
        if "none" in schema["properties"]["answer"]["enum"]:
            verdict["answer"] = self._letter(request, section)
        return Reply(json.dumps({name: verdict[name] for name in schema["properties"]}))

    def _letter(self, request: Request, section: str) -> str:
        options = dict(re.findall(r"^([a-d])\) (.+)$", request.content, flags=re.MULTILINE))
        known = {SECTIONS[section][kind]["answer"] for kind in ("mcq", "mcq/reasoning")}
        right = next(letter for letter, text in options.items() if text in known)
        if section in self.spoiled:
            right = next(letter for letter in options if letter != right)
        return right


@pytest.fixture
def books(tmp_path) -> Workspace:
    workspace = Workspace.open(tmp_path / "work")
    documents = [
        Document(
            f"part{number}",
            title,
            f"part{number}.md",
            (Block(text.replace("\n\n", " "), headings=(title,)),),
            licence="Apache-2.0",
        )
        for number, (title, text) in enumerate(section_texts().items())
    ]
    open_or_create(workspace, "books").add(documents)
    return workspace


@pytest.fixture
def recipe(tmp_path):
    def write(url: str) -> Path:
        file = tmp_path / "recipe.toml"
        file.write_text(RECIPE.format(url=url), encoding="utf-8")
        return file

    return write


def generate(monkeypatch, capsys, workspace, *arguments):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    out = done(run_command(monkeypatch, capsys, "generate", *map(str, arguments), "-w", str(workspace.root), "--json"))
    return json.loads(out)


def test_good_outputs_become_a_complete_benchmark(monkeypatch, capsys, books, recipe, tmp_path):
    writer = Writer()
    with ApiServer(rule=writer) as server:
        told = generate(monkeypatch, capsys, books, "run", recipe(server.url), "-o", tmp_path / "report.html")
    assert told["complete"], told
    with Records(books.records_url) as records:
        drafts = list(DatasetStore(records).drafts("good"))
    assert len(drafts) == 12
    for draft in drafts:
        assert draft.usable, (draft.wording, draft.rejection)
        question = draft.as_question()
        assert question.document in SECTIONS
        assert draft.origin.model == "openai:hand-written"
        assert (draft.origin.evolved_from is not None) == (draft.level == "reasoning")
        if draft.kind == "mcq":
            output = SECTIONS[question.document]["mcq" if draft.level == "base" else "mcq/reasoning"]
            assert question.options[question.correct] == output["answer"]
            assert {"screen", "consistency"} <= {decision.step for decision in draft.decisions}
        if draft.kind == "cloze":
            assert question.question.count("<MASK>") == 1
            assert question.answer in SECTIONS[question.document]["cloze"]["statement"]
    assert "Carbonyl sulfide" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert told["usage"]["cost"] == pytest.approx(
        told["usage"]["prompt_tokens"] * 1e-6 + told["usage"]["completion_tokens"] * 2e-6
    )


def test_questions_that_the_writer_cannot_answer_are_marked_and_given_up_in_the_end(monkeypatch, capsys, books, recipe):
    writer = Writer()
    writer.spoiled = set(SECTIONS) - {"Water uptake"}
    with ApiServer(rule=writer) as server:
        told = generate(monkeypatch, capsys, books, "run", recipe(server.url))
        drafts = generate(monkeypatch, capsys, books, "stats", "good")
    reasons = {(entry["step"], entry["reason"]): entry["by_kind"] for entry in drafts["rejected"]}
    assert reasons[("consistency", "self-inconsistency")]["mcq"] >= 3
    assert not told["complete"]
    ended = {stream["stream"]: stream["ended"] for stream in told["streams"]}
    assert "the maximum of the recipe" in ended["mcq/base"]
    assert ended["cloze/base"] is None
    assert drafts["accepted"] == sum(stream["accepted"] for stream in told["streams"])


def test_the_estimate_asks_nothing_and_comes_near(monkeypatch, capsys, books, recipe):
    writer = Writer()
    with ApiServer(rule=writer) as server:
        file = recipe(server.url)
        estimate = generate(monkeypatch, capsys, books, "run", file, "--dry-run")
        assert writer.asked == 0
        told = generate(monkeypatch, capsys, books, "run", file)
    # Half of the drafts are reckoned to be rejected, and here none is; the server counts words and not tokens.
    assert sum(one["requests"] for one in estimate) == 2 * told["usage"]["requests"]
    assert [one["stream"] for one in estimate] == [one["stream"] for one in told["streams"]]


def test_the_dataset_is_listed_exported_and_published(climassay, monkeypatch, capsys, books, recipe, tmp_path):
    with ApiServer(rule=Writer()) as server:
        generate(monkeypatch, capsys, books, "run", recipe(server.url))
    [listed] = generate(monkeypatch, capsys, books, "list")
    assert listed["states"] == {"accepted": 12}
    written = generate(monkeypatch, capsys, books, "export", "good", "-o", tmp_path / "drafts.jsonl", "--accepted")
    assert written["drafts"] == len((tmp_path / "drafts.jsonl").read_text(encoding="utf-8").splitlines()) == 12
    options = ("-o", tmp_path / "out", "--data-only", "-w", books.root, "--json")
    done(climassay("generate publish good", *options))
    assert [draft.usable for draft in read_dataset(tmp_path / "out")] == [True] * 12
    assert "bad" in refused(climassay("generate publish bad", *options))
