"""Statements that are true or false, by command: generated, screened, annotated, published, evaluated."""

import json
import re

import pytest

from api_server import ApiServer, Reply, schema_of
from climassay.corpus import Block, Document, open_or_create
from climassay.generation import DatasetStore, Wording
from climassay.generation.annotation import AnnotationStore, Label
from climassay.questions import read_questions
from climassay.records import Records
from climassay.workspace import Workspace
from command_line import done, run_command

PASSAGES = {
    "Droplets": "Pure cloud droplets freeze by themselves only near minus 38 degrees Celsius, because an ice embryo of "
    "critical size hardly ever forms at higher temperatures. Above it, freezing relies on ice-nucleating particles.",
    "Albedo": "A cloud of many small droplets scatters more sunlight than one with the same water in few large drops, "
    "so that adding aerosol particles to a clean marine cloud raises its albedo.",
    "Sea level": "Melting sea ice hardly changes the level of the ocean, because floating ice displaces its own weight "
    "of water. Ice that lies on land raises the sea level when it melts and its water flows into the ocean.",
    "Sulfate": "Sulfate particles that a volcanic eruption leaves in the stratosphere reflect sunlight and cool the "
    "surface for one or two years, until the particles have settled out of the stratosphere.",
}
PAIRS = {
    "Droplets": (
        "Pure cloud droplets freeze by themselves only near minus 38 degrees Celsius.",
        "Pure cloud droplets freeze by themselves already near minus 2 degrees Celsius.",
    ),
    "Albedo": (
        "Adding aerosol particles to a clean marine cloud raises its albedo.",
        "Adding aerosol particles to a clean marine cloud lowers its albedo.",
    ),
    "Sea level": (
        "Ice that lies on land raises the sea level when it melts into the ocean.",
        "Ice that floats on the ocean raises the sea level most when it melts.",
    ),
    "Sulfate": (
        "Sulfate particles of a volcanic eruption in the stratosphere cool the surface.",
        "Sulfate particles of a volcanic eruption in the stratosphere warm the surface.",
    ),
}
TRUE = {true for true, _ in PAIRS.values()}
RECIPE = """
name = "verdicts"
collections = ["books"]
batch = 4
[writer]
model = "openai:writer"
base_url = "{url}"
[counts]
true_false = 4
[contexts]
max_passages = 0
"""
EXPERIMENT = """
benchmarks = ["{file}"]
tasks = ["true_false"]
scoring = "letter"
[[model]]
name = "openai:writer"
base_url = "{url}"
"""


def answer(request):
    """Writes the pairs, examines what was made of them, and answers it; it takes every statement for true."""
    schema = schema_of(request.body)
    if schema is None:
        return Reply(" True.")
    names = schema["properties"]
    if "true_statement" in names:
        [title] = [title for title, text in PASSAGES.items() if text in request.content]
        true, false = PAIRS[title]
        return Reply(json.dumps({"declined": "", "true_statement": true, "false_statement": false}))
    [said] = [text for pair in PAIRS.values() for text in pair if f"True or false? {text}" in request.content]
    letters = {text: letter for letter, text in re.findall(r"^([a-d])\) (.+)$", request.content, flags=re.MULTILINE)}
    verdict = {"missing": "", "reasoning": "The passage says so.", "also_right": [], "flaw": "none"}
    return Reply(json.dumps({**verdict, "answer": letters["True" if said in TRUE else "False"]}))


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def run(*words):
        out = done(run_command(
            monkeypatch, capsys, *map(str, words), "-w", str(tmp_path / "work"), "--json"
        ))  # fmt: skip
        return json.loads(out)

    return run


def test_a_type_goes_the_whole_way_by_command(command, tmp_path):
    workspace = Workspace.open(tmp_path / "work")
    documents = [
        Document(f"d{number}", title, f"{title}.md", (Block(text, headings=(title,)),))
        for number, (title, text) in enumerate(PASSAGES.items())
    ]
    open_or_create(workspace, "books").add(documents)
    recipe, experiment = tmp_path / "recipe.toml", tmp_path / "experiment.toml"
    with ApiServer(rule=answer) as server:
        recipe.write_text(RECIPE.format(url=server.url), encoding="utf-8")
        [estimate] = command("generate", "run", recipe, "--dry-run")
        assert (estimate["stream"], estimate["requested"]) == ("true_false/base", 4)
        told = command("generate", "run", recipe)
        assert told["complete"], told
        with Records(workspace.records_url) as records:
            drafts = list(DatasetStore(records).drafts("verdicts"))
            # The code deals which of the two statements is asked: as many true ones as false ones.
            assert sorted(draft.wording.answer for draft in drafts) == ["False", "False", "True", "True"]
            assert all((draft.wording.question in TRUE) == (draft.wording.correct == 0) for draft in drafts)
            assert all({"screen", "consistency"} <= {one.step for one in draft.decisions} for draft in drafts)
            assert command("annotate", "open", "verdicts")["items"] == 4
            labels = AnnotationStore(records)
            first, second, *_ = drafts
            edited = Wording("The ocean is salty.", "", first.wording.options, 0)
            labels.label("verdicts", Label(first.id, "ann", accepted=True, wording=edited, key="1"))
            labels.label("verdicts", Label(second.id, "ann", accepted=False, reasons=["wrong answer"], key="2"))
        command("generate", "publish", "verdicts", "-o", tmp_path / "out", "--splits", "0,0,-1")
        file = tmp_path / "out" / "jsonl" / "true_false" / "test.jsonl"
        questions = read_questions(file).questions
        assert {one.kind for one in questions} == {"true_false"}
        assert {"The ocean is salty."} < {one.question for one in questions}
        assert not list((tmp_path / "out" / "climaqa").glob("*"))
        experiment.write_text(EXPERIMENT.format(file=file, url=server.url), encoding="utf-8")
        scored = command("evaluate", "run", experiment)
    [score] = [one for one in scored["scores"] if one["level"] == "overall"]
    true = sum(one.correct == 0 for one in questions)
    assert (score["metric"], score["estimate"]["value"], score["estimate"]["n"]) == ("accuracy", true / 3, 3)
