import json

import pytest

from annotated_drafts import DATASET, EDITED, VALID, WRONG, begin
from climassay.generation import Wording
from climassay.generation.annotation import AnnotationStore, Label
from climassay.records import Records
from climassay.workspace import Workspace
from command_line import done, json_of, refused
from generated_drafts import draft, rejected
from stored_runs import store_experiment

DRAFTS = [draft(0), draft(1, "mcq"), draft(2, "cloze"), rejected(draft(3), "context reference")]


@pytest.fixture
def annotate(tmp_path, climassay):
    """Runs ``climassay annotate`` in a workspace with a dataset."""
    with Records(Workspace.open(tmp_path / "w").records_url) as records:
        begin(records, DRAFTS)

    def run(*arguments, expected=0):
        code, out, err = climassay("annotate", *arguments, "-w", tmp_path / "w")
        assert code == expected, err
        return out if expected == 0 else err

    return run


@pytest.fixture
def said(tmp_path):
    """Lets people say something."""

    def say(*labels):
        with Records(Workspace.open(tmp_path / "w").records_url) as records:
            store = AnnotationStore(records)
            for number, (name, who, words) in enumerate(labels):
                store.label(DATASET, Label(name, who, key=f"{who}-{name}-{number}", **words))

    return say


def test_opening_changes_only_what_is_given(annotate):
    first = json.loads(annotate("open", DATASET, "--overlap", 2, "--lease-minutes", 5, "--json"))
    assert (first["items"], first["open"]) == (3, 3)
    second = json.loads(annotate("open", DATASET, "--include-rejected", "--json"))
    assert (second["items"], second["settings"]["overlap"], second["settings"]["lease_seconds"]) == (4, 2, 300)
    assert "4 of 4 items to be labelled, 2 labels each" in annotate("open", DATASET)
    assert "between 1 and 20" in annotate("open", DATASET, "--overlap", 21, expected=2)
    assert "no dataset 'gold'" in annotate("open", "gold", expected=2)


def test_status_and_agreement(annotate, said):
    annotate("open", DATASET, "--overlap", 2)
    empty = json.loads(annotate("agreement", DATASET, "--json"))
    assert (empty["items"], empty["fleiss"]) == (0, None)
    said(("q0000", "ann", WRONG), ("q0000", "bob", WRONG), ("q0001", "ann", VALID), ("q0001", "bob", WRONG))
    data = json.loads(annotate("status", DATASET, "--annotator", "ann", "--json"))
    assert (data["settled"], data["conflicts"], data["mine"], data["left_for_me"]) == (1, 1, 2, 1)
    assert [one["annotator"] for one in data["annotators"]] == ["ann", "bob"]
    text = annotate("status", DATASET)
    assert "conflicts" in text
    assert "wrong answer" not in text
    found = json.loads(annotate("agreement", DATASET, "--json"))
    assert (found["items"], found["raw"]["value"]) == (2, 0.5)
    assert found["pairs"][0]["kappa"]["value"] == 0.0
    assert "Cohen's kappa, ann and bob" in annotate("agreement", DATASET)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "label-studio", "argilla"])
def test_export_and_import(annotate, said, tmp_path, kind):
    term = {"accepted": True, "wording": Wording(DRAFTS[2].wording.question, "planets")}
    said(("q0000", "ann", EDITED), ("q0001", "ann", WRONG), ("q0002", "ann", term))
    users = tmp_path / "users.json"
    users.write_text('{"ann": "6b1b3e0c-5a0e-4d6c-9a44-5f43a2f1f7b1"}', encoding="utf-8")
    place = tmp_path / {"jsonl": "out.jsonl", "csv": "out.csv"}.get(kind, kind)
    options = ["--format", kind, "--users", users, "--json"] if kind == "argilla" else ["--format", kind, "--json"]
    assert json.loads(annotate("export", DATASET, "-o", place, *options))["labels"] == 3
    file = place / "tasks.json" if kind == "label-studio" else place
    again = json.loads(annotate("import", DATASET, file, *options))
    assert (again["stored"], again["known"], again["refused"]) == (0, 3, [])


def test_the_ending_of_a_file_tells_its_format(annotate, said, tmp_path):
    said(("q0000", "ann", VALID))
    assert "Wrote 1 label to" in annotate("export", DATASET, "-o", tmp_path / "out.csv")
    assert "0 labels stored, 1 known before" in annotate("import", DATASET, tmp_path / "out.csv")
    assert "does not show its format" in annotate("export", DATASET, "-o", tmp_path / "out", expected=2)
    assert "no file at" in annotate("import", DATASET, tmp_path / "gone.jsonl", expected=2)


def test_retraining_needs_labels_of_both_kinds(annotate, said):
    said(("q0000", "ann", VALID))
    assert "at least two valid and two invalid" in annotate("retrain", DATASET, expected=2)


def test_retraining_with_the_bundled_encoder(tmp_path, climassay):
    pytest.importorskip("onnxruntime")
    place = Workspace.open(tmp_path / "w")
    answers = ("Bananas are sold on Mondays.", "It grows.", "It grows and falls.")
    with Records(place.records_url) as records:
        begin(records, [draft(n, wording=Wording(f"What happens to particle {n}?", answers[n % 3])) for n in range(20)])
        given = [
            Label(f"q{n:04d}", "ann", bool(n % 3), () if n % 3 else ("wrong answer",), key=str(n)) for n in range(14)
        ]
        AnnotationStore(records).import_labels(DATASET, given)
    found = json_of(climassay("annotate retrain", DATASET, "--folds", 2, "--json", "-w", tmp_path / "w"))
    assert (found["labels"], found["invalid"], found["judged"]) == (14, 5, 6)
    out = done(climassay("generate validate show", found["validator"], "--json"))
    assert json.loads(out)["items"] == 14


def test_rubrics_are_asked_for_and_exported(tmp_path, climassay):
    asked, out, where = tmp_path / "asked.txt", tmp_path / "long.jsonl", ("-w", tmp_path / "rubrics")
    asked.write_text("Why does it rain?\nWhy does it snow?\n", encoding="utf-8")
    for overlap in (2, 1):
        told = json_of(climassay("annotate rubrics", asked, "--dataset", "r", "--overlap", overlap, "--json", *where))
        assert (told["items"], told["settings"]["overlap"]) == (2, overlap)
    assert "No rubric of r is final" in refused(climassay("annotate export r --format rubrics -o", out, *where))
    with Records(Workspace.open(tmp_path / "rubrics").records_url) as records:
        store = AnnotationStore(records)
        wording = Wording("", "- [should] Names vapour (weight 2)")
        store.label("r", Label(next(store.items("r")).draft.id, "ann", accepted=True, wording=wording, key="k"))
    assert json_of(climassay("annotate agreement r --json", *where))["rubrics"] is None
    written = json_of(climassay("annotate export r --format rubrics --json -o", out, *where))
    assert (written["questions"], written["open"], written["conflicts"]) == (1, 1, 0)
    [row] = map(json.loads, out.read_text("utf-8").splitlines())
    assert row["rubric"] == [{"text": "Names vapour", "weight": 2.0, "level": "should", "source": ""}]
    done(climassay("annotate export r --format csv -o", tmp_path / "labels.csv", *where))
    for tool in ("label-studio", "argilla"):
        done(climassay("annotate export r --format", tool, "-o", tmp_path / tool, *where))


def test_rubrics_are_not_exported_from_other_datasets(annotate, tmp_path):
    assert "annotate rubrics" in annotate("export", DATASET, "--format", "rubrics", "-o", tmp_path / "x", expected=2)


def test_own_questions_are_opened_assigned_labelled_and_written_again(annotate, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("id,question,answer\nm1,Why is it warm?,Because of CO2.\nm2,Why is it cold?,It is not.\n")
    arguments = ("questions", file, "--dataset", "mine", "--annotator", "anna", "--json")
    opened = json.loads(annotate(*arguments))
    assert (opened["items"], opened["settings"]["annotators"]) == (2, ["anna"])
    assert "no question of mine yet" in annotate(
        "export", "mine", "-o", tmp_path / "q.jsonl", "--format", "questions", expected=2
    )
    with Records(Workspace.open(tmp_path / "w").records_url) as records:
        store = AnnotationStore(records)
        drafts = {item.draft.main.document_id: item.draft for item in store.items("mine")}
        store.label("mine", Label(drafts["m1"].id, "anna", accepted=True, key="1"))
    written = json.loads(annotate("export", "mine", "-o", tmp_path / "q.jsonl", "--format", "questions", "--json"))
    assert (written["questions"], written["rejected"], written["open"]) == (1, 0, 1)
    [row] = map(json.loads, (tmp_path / "q.jsonl").read_text().splitlines())
    assert (row["id"], row["answer"]) == ("m1", "Because of CO2.")
    again = json.loads(annotate("open", "mine", "--everybody", "--json"))
    assert (again["settings"]["annotators"], again["open"]) == ([], 1)


def test_answers_of_an_experiment_are_opened(annotate, tmp_path):
    with Records(Workspace.open(tmp_path / "w").records_url) as records:
        run = store_experiment(records)
    assert json.loads(annotate("answers", run, "--dataset", "answers", "--overlap", 2, "--json"))["items"] == 27
    assert "no run" in annotate("answers", "rnothere", "--dataset", "other", expected=2)
