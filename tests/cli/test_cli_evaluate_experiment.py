"""The commands that read an experiment: table, report, plan, contamination, compare."""

import csv
import io
import json

import pytest

from climassay import load_encoder
from climassay.corpus import Block, Collection, Document
from climassay.evaluation import Cell, CellRecord, Experiment, Outcome
from climassay.evaluation.results import COMMANDS, save_experiment
from climassay.primer import book_path
from climassay.questions import Question
from climassay.records import Records
from climassay.workspace import Workspace
from command_line import done, json_of, refused
from experiments import experiment, questions_of
from scripted_model import ScriptedModel

SKILLS = {(f"m{n}", "default"): 0.3 + 0.15 * n for n in range(4)}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A workspace with two experiments."""
    root = tmp_path_factory.mktemp("workspace")
    runs = []
    with Records(Workspace.open(root).records_url) as store:
        for seed in (0, 1):
            with store.run(COMMANDS[0], {}) as run:
                save_experiment(run, experiment(SKILLS, questions=questions_of(24, 12, 12), seed=seed))
                runs.append(run.id)
        with store.run("ask", {}) as other:
            pass
    return root, *runs, other.id


@pytest.fixture
def command(place, climassay):
    """Run a command in the workspace."""
    return lambda *arguments: climassay("evaluate", *arguments, "-w", place[0])


def test_tables_are_shown(place, command):
    out = done(command("table", place[1]))
    for words in (
        "Multiple choice and cloze, primer",
        "Freeform answers",
        "best constant answer",
        "p (Holm)",
        "m3 - m0",
    ):
        assert words.split()[0] in out


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("markdown", "| m0 | default |"),
        ("latex", r"\toprule"),
        ("html", "<caption><span>Freeform answers, primer</span>"),
    ],
)
def test_tables_are_written_in_every_form(place, command, tmp_path, form, word):
    target = tmp_path / "deep" / "tables"
    code, out, _ = command("table", place[1], "--format", form, "--output", target)
    assert (code, out) == (0, "")
    assert word in target.read_text(encoding="utf-8")
    assert word in command("table", place[1], "--format", form)[1]


def test_csv_is_one_table(place, command):
    out = done(command("table", place[1], "--format", "csv", "--published", "gpt-4o"))
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["origin"] for row in rows} == {"ours", "published"}
    shaped = list(csv.DictReader(io.StringIO(command("table", place[1], "-f", "csv", "-t", "mcq-cloze")[1])))
    assert [row["model"] for row in shaped] == ["m0", "m1", "m2", "m3", "best constant answer"]
    assert "one table" in refused(command("table", place[1], "-f", "csv", "-t", "counts", "-t", "models"))


def test_the_json_document_has_every_number(place, command):
    data = json_of(command("table", place[1], "--json", "--metric", "accuracy"))
    assert {test["metric"] for test in data["tests"]} == {"accuracy"}
    assert {score["metric"] for score in data["scores"]} >= {"accuracy", "bleu_char", "phrase_similarity"}
    assert set(data["scores"][0]["estimate"]) == {"value", "interval", "n", "level"}


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["table", "r99999999"], "no run r99999999"),
        (["table", "{mcq}"], "not by climassay evaluate run"),
        (["table", "{run}", "-t", "totals"], "no table 'totals': it has mcq-cloze"),
        (["table", "{run}", "--metric", "rouge"], "no metric 'rouge'"),
        (
            ["report", "{run}", "-o", "page.html", "--against", "nowhere"],
            "neither a file or folder nor a collection",
        ),
        (["plan", "--metric", "bleu", "--discordance", "0.2"], "--discordance says nothing about bleu"),
        (["plan", "--run", "{run}", "--accuracy", "0.5"], "leave it out"),
        (["compare", "published:gold", "{run}"], "no metric with scores of the same"),
        (["compare", "{run}:other", "{run}"], "no answers on 'other'"),
    ],
    ids=lambda value: "-".join(value)[:40] if isinstance(value, list) else None,
)
def test_bad_input_is_one_sentence(place, command, monkeypatch, tmp_path, arguments, word):
    monkeypatch.chdir(tmp_path)
    assert word in refused(command(*(part.format(run=place[1], mcq=place[3]) for part in arguments)))


def test_the_report_is_one_file(place, command, tmp_path):
    page = tmp_path / "report.html"
    code, _, err = command("report", place[1], "-o", page, "--against", book_path("physical_climate"))
    assert code == 0
    assert str(page) in err.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    assert "Questions that share words with" in text
    assert "What about mcq number 3?" in text
    data = json_of(command("report", place[1], "-o", page, "--json"))
    assert data["html"] == str(page)


def test_plans(place, command):
    out = done(command("plan", "--points", "5", "--discordance", "0.1", "--json"))
    [row] = json.loads(out)["rows"]
    assert (row["difference"], row["interval"], row["exact"]) == (0.05, 246, True)
    estimated = json_of(command("plan", "-d", "20", "--run", place[1], "--metric", "factual_accuracy", "--json"))
    assert place[1] in estimated["assumptions"]["origin"]
    corrected = json_of(command("plan", "-d", "5", "--discordance", "0.1", "--tests", "5", "--json"))
    assert corrected["alpha"] == pytest.approx(0.01)
    assert corrected["rows"][0]["paired"] > row["paired"]
    assert "Power 80%" in command("plan", "-d", "10", "--metric", "bert_score", "--deviation", "0.05")[1]


def copied_question(tmp_path):
    """A question file whose one answer stands word for word in a text, and that text."""
    sentence = "Sea salt particles grow by taking up water when the air is moist enough for them."
    questions, text = tmp_path / "asked.jsonl", tmp_path / "text.txt"
    row = {"id": "q1", "kind": "freeform", "question": "How do they grow?", "answer": sentence, "level": "base"}
    questions.write_text(json.dumps(row) + "\n", encoding="utf-8")
    text.write_text(f"An introduction.\n\n{sentence} And an end.\n", encoding="utf-8")
    return questions, text


def test_contamination_of_files_folders_and_question_files(command, tmp_path):
    questions, text = copied_question(tmp_path)
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "one.md").write_text(text.read_text(encoding="utf-8"), encoding="utf-8")
    for against in (text, folder, questions):
        [report] = json_of(command("contamination", questions, "--against", against, "--json"))
        assert report["contaminated"] == ["q1"]
        assert report["worst"][0]["run"]["words"] == 16
    out = done(command("contamination", questions, "--against", text, "--against", folder))
    assert out.count("Questions that share words with") == 2


def test_contamination_of_a_collection(place, command, tmp_path):
    questions, text = copied_question(tmp_path)
    blocks = (Block(text.read_text(encoding="utf-8")),)
    collection = Collection.create(Workspace.open(place[0]), "books", load_encoder())
    collection.add([Document("d1", "A book", "text.txt", blocks)])
    [report] = json_of(command("contamination", questions, "--against", "books", "--json"))
    assert report["contaminated"] == ["q1"]


def test_benchmarks_are_compared(place, command):
    data = json_of(
        command("compare", place[1], f"{place[2]}:primer", "--generator", "m1", "--json", "--resamples", "50")
    )
    assert data["agreement"][0]["models"] == ["m0", "m1", "m2", "m3"]
    assert data["agreement"][0]["over_questions"] is not None
    assert {entry["metrics"][0]["generator"] for entry in data["favour"]} == {"m1"}


def test_answers_are_given_out_blind_and_their_ratings_judge_the_judge(tmp_path, monkeypatch, climassay):
    cell = Cell("b", "secret-model", "default", "longform")
    question = Question("q", "longform", "Why does it rain?", "")
    with Records(Workspace.open(tmp_path).records_url) as store, store.run(COMMANDS[0], {}) as run:
        record = CellRecord(cell, "local:x", "", {}, "longform", "", 1, 0)
        answers = (Outcome(cell, "q", None, "Vapour condenses.", {}),)
        save_experiment(run, Experiment(run.id, "n", {}, (record,), answers, {"b": (question,)}))
    rated = tmp_path / "rated.csv"
    done(climassay("evaluate blind", run.id, "-o", rated, "-w", tmp_path))
    [row] = csv.DictReader(rated.read_text("utf-8").splitlines())
    assert (row["answer"], row["accuracy"]) == ("Vapour condenses.", "")
    assert "secret-model" not in rated.read_text("utf-8")
    with rated.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, row)
        writer.writeheader()
        writer.writerow({**row, "accuracy": 4})
    said = {"quotation": "", "reason": "", "issues": [], "rating": "4"}
    model = ScriptedModel(write=lambda _, schema: json.dumps(dict.fromkeys(schema["required"], said)))
    monkeypatch.setattr("climassay.session.Session.model", lambda *_, **__: model)
    data = json_of(climassay("evaluate judge-check", rated, "-w", tmp_path, "--json"))
    assert (data["verdict"], data["answers"]) == ("not decided", 1)
    assert data["ratings"][0]["judge"] == 4
    for _ in range(2):
        told = json_of(climassay("evaluate blind", run.id, "--dataset", "rated", "-w", tmp_path, "--json"))
        assert (told["items"], told["settings"]["overlap"]) == (1, 2)
    assert "Nobody has rated" in refused(climassay("evaluate judge-check", "--dataset", "rated", "-w", tmp_path))
    assert "--dataset" in refused(climassay("evaluate judge-check", "-w", tmp_path))
    err = refused(climassay("evaluate blind", run.id, "--dataset", "pairs", "--pairs", "2", "-w", tmp_path))
    assert "no two answers" in err
    err = refused(climassay("evaluate judge-check", rated, "--label", "none", "-w", tmp_path))
    assert "lacks the column 'none'" in err
