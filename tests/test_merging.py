"""One workspace taken into another: what both had stays, what is new comes in, conflicts are counted and said."""

import json
import shutil

import pytest

from annotated_drafts import DATASET, VALID, WRONG, begin, plain
from climassay.corpus import Collection
from climassay.corpus.documents import Block, Document
from climassay.errors import InputError
from climassay.factcheck import DebateSettings, make_claim
from climassay.factcheck.check_store import CheckStore
from climassay.generation.annotation import AnnotationStore
from climassay.generation.dataset_store import DatasetStore
from climassay.merging import merge_workspace
from climassay.models.contract import Completion, Usage
from climassay.records import RecordedModel, Records
from climassay.records.queries import iterate_answers, list_runs, run_details
from climassay.records.transfer import MergedAnswers, export_answers, import_answers
from climassay.web.accounts import AccountStore
from climassay.workspace import Workspace
from debate_parts import WordEncoder
from factcheck_transcripts import full_transcript
from writing_process import Shout, ask


class Whisper(Shout):
    """The same model, by its fingerprint, on a day on which it says something else."""

    def generate(self, requests, *, on_result=None):
        for index, request in enumerate(requests):
            on_result(index, Completion(request.messages[-1].content.lower(), "stop", Usage(1, 2, 1)))


def fill(folder, model, texts, command="evaluate"):
    workspace = Workspace.open(folder)
    with Records(workspace.records_url) as store, store.run(command, {"n": len(texts)}, {"order": 1}) as run:
        RecordedModel(model, store, run).generate(ask(*texts))
        run.save_results("scores", [{"accuracy": 0.5}])
    return workspace


def served(workspace, *texts):
    """What the records give, without a model that could be asked."""

    class Silent(Shout):
        def generate(self, requests, *, on_result=None):
            raise AssertionError(requests)

    with Records(workspace.records_url) as store, store.run("look", {}) as run:
        return [one.text for one in RecordedModel(Silent(), store, run).generate(ask(*texts))]


def take_in(here, there):
    with Records(here.records_url) as store:
        return merge_workspace(store, here, there.root)


@pytest.fixture
def pair(tmp_path):
    """Two workspaces: B is asked by both, and answered otherwise in each."""
    return fill(tmp_path / "here", Shout(), ["A", "B"]), fill(tmp_path / "there", Whisper(), ["B", "C", "D"], "judge")


def test_answers_and_runs_come_in_once_and_ones_own_are_still_served(pair):
    here, there = pair
    merged = take_in(here, there)
    assert (merged.answers, merged.runs) == (MergedAnswers(added=3, conflicts=1), 1)
    assert served(here, "A", "B", "C", "D") == ["A", "B", "c", "d"]
    with Records(here.records_url) as store:
        assert [run.command for run in list_runs(store.database)][:2] == ["evaluate", "judge"]
        theirs = run_details(store.database, list_runs(store.database)[1].id)
        assert (theirs.config, theirs.seeds, theirs.results) == (
            {"n": 3},
            {"order": 1},
            {"scores": [{"accuracy": 0.5}]},
        )
        assert (theirs.summary.asked, theirs.summary.status) == (3, "done")
        assert [one.text for b in iterate_answers(store.database, theirs.summary.id) for one in b] == ["b", "c", "d"]
    again = take_in(here, there)
    assert (again.answers, again.runs) == (MergedAnswers(known=3), 0)


def test_runs_are_still_served_what_they_were_served_there(pair):
    here, there = pair
    fill(there.root, Whisper(), ["C", "E"], "second")
    take_in(here, there)
    with Records(here.records_url) as store:
        second = next(run for run in list_runs(store.database) if run.command == "second")
    assert (second.asked, second.served) == (1, 1)


def test_copies_that_went_on_apart_come_together(pair, tmp_path):
    here, _ = pair
    shutil.copytree(here.root, tmp_path / "laptop")
    laptop = fill(tmp_path / "laptop", Shout(), ["A", "L"], "on the laptop")
    fill(here.root, Shout(), ["H"], "at the desk")
    assert take_in(here, laptop).answers == MergedAnswers(added=1, known=2)
    assert served(here, "A", "B", "H", "L") == ["A", "B", "H", "L"]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_an_export_is_imported_and_nothing_of_it_is_asked_again(pair, tmp_path, ending):
    here, there = pair
    with Records(there.records_url) as store:
        export_answers(store.database, tmp_path / f"all.{ending}")
        [run] = list_runs(store.database)
    with Records(here.records_url) as store:
        assert import_answers(store.database, tmp_path / f"all.{ending}") == MergedAnswers(added=3, conflicts=1)
        assert import_answers(store.database, tmp_path / f"all.{ending}") == MergedAnswers(known=3)
        known = next(one for one in list_runs(store.database) if one.id == run.id)
        assert (known.command, known.asked) == ("records import", 3)
        export_answers(store.database, tmp_path / "back.jsonl", run.id)
    assert served(here, "A", "B", "C") == ["A", "B", "c"]
    with Records(there.records_url) as store:
        export_answers(store.database, tmp_path / "first.jsonl")
        assert import_answers(store.database, tmp_path / "back.jsonl") == MergedAnswers(known=3)
    assert (tmp_path / "back.jsonl").read_text() == (tmp_path / "first.jsonl").read_text()


def test_an_answer_under_a_key_that_is_not_its_own_is_left_out(pair, tmp_path):
    here, there = pair
    with Records(there.records_url) as store:
        export_answers(store.database, tmp_path / "all.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    rows[1]["prompt"] = "another question"
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Records(here.records_url) as store:
        assert import_answers(store.database, tmp_path / "all.jsonl") == MergedAnswers(added=2, conflicts=1, damaged=1)


@pytest.mark.parametrize(
    "spoilt", [{"key": "no"}, {"settings": []}, {"answered_at": "then"}, {"attempts": None}, {"x": 1}]
)
def test_a_file_that_is_no_export_changes_nothing(pair, tmp_path, spoilt):
    here, there = pair
    with Records(there.records_url) as store:
        export_answers(store.database, tmp_path / "all.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    rows[-1] |= spoilt
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Records(here.records_url) as store:
        with pytest.raises(InputError, match=r"answer 3: this is not a record written by records export"):
            import_answers(store.database, tmp_path / "all.jsonl")
        assert len(list_runs(store.database)) == 1


def test_datasets_labels_and_checks_come_in(pair):
    here, there = pair
    with Records(here.records_url) as store:
        begin(store, plain(2))
        AnnotationStore(store).label(DATASET, "q0000", "ann", key="a0", **VALID)
        begin(store, plain(1), "mine")
    with Records(there.records_url) as store:
        begin(store, plain(3))
        labels = AnnotationStore(store)
        labels.label(DATASET, "q0001", "bob", key="b1", **WRONG)
        labels.label(DATASET, "q0002", "bob", key="b2", **VALID)
        labels.comment(DATASET, "q0002", "bob", "Well put.", key="c1")
        begin(store, plain(2), "theirs")
        DatasetStore(store).begin("mine", {"seed": 7})
        checks = CheckStore(store)
        done = checks.begin(make_claim("It warms."), DebateSettings(), set_up="one", by="bob")
        checks.finish(done, full_transcript(), run="r1")
        checks.review(done, "ann", "agree")
        checks.begin(make_claim("It cools."), DebateSettings(), set_up="one")
        AccountStore(store.database).add("bob", "admin")
    merged = take_in(here, there)
    assert (merged.datasets, merged.drafts, merged.labels, merged.checks) == (1, 3, 2, 1)
    assert [said for said in merged.conflicts if "mine" in said or "unfinished" in said] == list(merged.conflicts)
    assert len(merged.conflicts) == 2
    with Records(here.records_url) as store:
        items = {item.draft.id: item for item in AnnotationStore(store).items(DATASET)}
        assert {name: (item.state, len(item.labels)) for name, item in items.items()} == {
            f"q000{number}": ("settled", 1) for number in range(3)
        }
        assert [one.text for one in AnnotationStore(store).comments(DATASET)] == ["Well put."]
        assert CheckStore(store).get(done).about.agree == 1
        assert AccountStore(store.database).users() == []
    again = take_in(here, there)
    assert (again.datasets, again.drafts, again.labels, again.checks) == (0, 0, 0, 0)


def add(workspace, name, *texts):
    collection = Collection.create(workspace, name, WordEncoder())
    collection.add([Document(text, text, f"{text}.txt", (Block(f"{text} melts in the sun."),)) for text in texts])


def test_collections_that_are_missing_are_copied_and_others_named(pair, monkeypatch):
    here, there = pair
    monkeypatch.setattr("climassay.corpus.collection.load_encoder", lambda _name: WordEncoder())
    add(here, "same", "Ice")
    add(there, "same", "Ice")
    add(here, "other", "Ice")
    add(there, "other", "Snow")
    add(there, "new", "Snow")
    merged = take_in(here, there)
    assert merged.collections == ("new",)
    assert len(merged.conflicts) == 1
    assert "collection other" in merged.conflicts[0]
    texts = [one.text for one in Collection.open(here, "new", WordEncoder()).each_passage()]
    assert texts == ["Snow melts in the sun."]
    assert take_in(here, there).collections == ()


def test_what_is_no_other_workspace_is_refused(pair, tmp_path):
    here, _ = pair
    for wrong in (tmp_path, here.root):
        with pytest.raises(InputError, match=r"name another one|is not a workspace"):
            take_in(here, Workspace(wrong))


def test_the_commands_say_what_came_in(pair, tmp_path, climassay):
    here, there = pair
    code, out, _ = climassay("records merge", there.root, "-w", here.root, "--json")
    assert (code, json.loads(out)["answers"]["conflicts"]) == (0, 1)
    code, _, err = climassay("records merge", there.root, "-w", here.root)
    assert "New: nothing else." in err
    assert (code, "3 there already" in err) == (0, True)
    file = tmp_path / "all.jsonl"
    climassay("records export", file, "-w", there.root)
    code, out, _ = climassay("records import", file, "-w", tmp_path / "fresh", "--json")
    assert (code, json.loads(out)["added"]) == (0, 3)
    code, _, err = climassay("records import", file, "-w", tmp_path / "fresh")
    assert "0 answers imported, 3 there already" in err
