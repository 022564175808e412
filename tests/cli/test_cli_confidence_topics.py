"""``climassay confidence topics`` and ``report`` from files to files."""

import json
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest

from api_server import ApiServer
from climassay.confidence.topics import Grouping
from climassay.confidence.topics.modelling import compute_centres
from climassay.records import Records
from climassay.records.queries import run_details
from climassay.reporting.html import report_from_data
from climassay.workspace import Workspace
from command_line import done, json_of, refused
from planted_statements import WORDS, NoisyTopicEncoder, planted, statement, write_statements
from scripted_model import ScriptedModel

pytestmark = pytest.mark.model
SUBJECTS = list(WORDS)


@pytest.fixture(autouse=True)
def _hdbscan():
    if find_spec("hdbscan") is None:
        pytest.skip("needs the extra topics")


def planted_groups(texts, vectors, *_):
    """The groups that were planted, the last three as one, in place of clusters whose search takes half a minute."""
    groups = np.array([min(next(i for i, one in enumerate(SUBJECTS) if one in text), 3) for text in texts])
    words = tuple((subject, "respond") for subject in SUBJECTS[:4])
    centres = compute_centres(vectors, groups)
    return Grouping(groups, np.zeros(len(texts), dtype=bool), words, (1, 1, 1, 3), centres)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CLIMASSAY_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.setattr("climassay.models.encoders.load_encoder", lambda *_: NoisyTopicEncoder())
    write_statements([*planted(), statement(99, "ocean", id="untagged", tag=None)], tmp_path / "s.jsonl")
    return tmp_path


@pytest.fixture
def run(climassay):
    return lambda *arguments: climassay("confidence", *arguments)


@pytest.mark.parametrize("grouping", [pytest.param("planted", marks=pytest.mark.core), "found"])
def test_topics_then_a_report(place, run, grouping, monkeypatch):
    if grouping == "planted":
        monkeypatch.setattr("climassay.confidence.topics.modelling.group_statements", planted_groups)
        monkeypatch.setattr("climassay.confidence.topics.modelling.project_vectors", lambda vectors, *_: vectors[:, :2])
    statements, topics, names = place / "s.jsonl", place / "t.json", place / "names.toml"
    found = json_of(run("topics", statements, "-o", topics, "--topics", 4, "--names", names, "--json"))
    assert len(found["topics"]) == 4
    assert {topic["named_by"] for topic in found["topics"]} == {"words"}
    assert sum(sum(topic["reports"].values()) for topic in found["topics"]) == 180

    names.write_text(names.read_text().replace(f'0 = "{found["topics"][0]["name"]}"', '0 = "My topic"', 1))
    out = done(run("topics", statements, "-o", topics, "--topics", 4, "--names", names, "--seed", 1))
    assert "My topic" in out
    assert "by hand" in out

    html, tables = place / "r.html", place / "tables"
    data = json_of(run("report", statements, topics, "-o", html, "--tables", tables, "--json"))
    assert data["columns"] == ["WG1", "WG2"]
    assert "My topic" in html.read_text()
    assert (tables / "scores.csv").read_text().startswith("topic,working group,score,low,high")
    with Records(Workspace.open().records_url) as store:
        details = run_details(store.database, data["run"])
    [kept] = details.results["report"]
    assert report_from_data(kept).to_html() == html.read_text()


def test_a_model_names_topics_through_the_records(place, run, monkeypatch):
    def name(prompt, _):
        words = prompt.split("These statements")[1].split("Words that")[0]
        topic = max(("albedo", "cloud", "aerosol", "ocean", "carbon", "glacier"), key=words.count)
        return json.dumps({"name": f"{topic} observations"})

    model = ScriptedModel(write=name)
    monkeypatch.setattr("climassay.models.provider.load_model", lambda *_, **__: model)
    for _ in range(2):
        out = done(run("topics", place / "s.jsonl", "-o", place / "t.json", "-m", "openai:test", "--json"))
    assert {topic["named_by"] for topic in json.loads(out)["topics"]} == {"model"}
    assert "Ocean observations" in out
    assert len(model.texts) == 6, "the second run is served from the records"


def test_groups_are_compared_as_asked(place, run):
    run("topics", place / "s.jsonl", "-o", place / "t.json")
    out = done(run("report", place / "s.jsonl", place / "t.json", "--by", "report"))
    assert "Score by topic and report" in out
    assert "AR6 WG2" in out


class HalfRight:
    """A tagger that calls every statement high, and is known to call half of all low statements so."""

    levels = ("low", "medium", "high", "very high")
    sources = ("text",)
    residuals = None
    confusion = np.array([[50, 0, 50, 0], [0, 100, 0, 0], [0, 0, 100, 0], [0, 0, 0, 100]])
    mixes: ClassVar[list] = []

    def for_mix(self, mix):
        self.mixes.append(mix)
        return self

    def predict_proba(self, items, *, on_progress):
        on_progress(len(items))
        return np.array([[0.1, 0.1, 0.7, 0.1]] * len(items))


def test_untagged_statements_are_tagged_with_the_taggers_known_errors(place, run, monkeypatch):
    monkeypatch.setattr("climassay.confidence.tagging.tagger.load_tagger", lambda _: HalfRight())
    file = place / "s.jsonl"
    more = [statement(n, "ocean", id=f"u{n}", tag=None, working_group="WG1") for n in range(200, 240)]
    write_statements([*planted(), *more], file)
    run("topics", file, "-o", place / "t.json", "--assign-untagged")
    out = done(run("report", file, place / "t.json", "--tagger", "bundled", "--json"))
    overall = json.loads(out)["untagged"][0]
    assert overall["shares"]["n"] == 40
    assert overall["shares"]["score_low"] < overall["shares"]["score"] <= 1.0
    assert HalfRight.mixes == [(1.0, 1.0, 1.0, 1.0)]
    known = place / "known.jsonl"
    rows = [
        {"id": one.id, "tag": "high", "probabilities": {"low": 0.1, "medium": 0.1, "high": 0.7, "very high": 0.1}}
        for one in planted()
    ]
    known.write_text("".join(json.dumps(row) + "\n" for row in rows))
    both = json_of(
        run(
            "report",
            file,
            place / "t.json",
            "--tagger",
            "bundled",
            "--predictions",
            known,
            "--sample",
            30,
            "--json",
        )
    )
    assert (both["untagged"][0]["shares"]["n"], both["untagged"][0]["untagged"]) == (30, 40)
    always_high = both["tagger"][0]
    high = sum(one.tag == "high" for one in planted() if one.tag in HalfRight.levels)
    assert always_high["accuracy"]["value"] * always_high["accuracy"]["n"] == high


def test_topics_that_no_model_named_say_why(place, run):
    file = place / "s.jsonl"
    write_statements(planted(), file)
    with ApiServer() as server:
        server.error = lambda _request: (400, {"error": {"message": "no room"}})
        asked = ("--model", "openai:test", "--base-url", server.url, "--topics", 4)
        code, _, err = run("topics", file, "-o", place / "t.json", *asked)
    assert code == 0, "the topics are found without the model"
    assert "The model proposed no name for 4 of 4 topics" in err
    assert "openai:test: all 4 calls failed: The server answered 400: no room." in err


def test_bad_input_ends_with_a_sentence(place, run):
    few = place / "few.jsonl"
    write_statements(planted(2), few)
    (place / "bad.toml").write_text("[names")
    for arguments, words in (
        (("topics", place / "nowhere.jsonl"), "cannot be read"),
        (("topics", few), "at least 20 tagged statements"),
        (("topics", few, "--names", place / "bad.toml"), "not valid TOML"),
        (("report", few, few), "not a file of topics"),
    ):
        assert words in refused(run(*arguments), alone=False)
