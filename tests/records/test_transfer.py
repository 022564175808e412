"""Export of answers and its import: one's own answers stay, new ones come in, conflicts are counted."""

import json

import pytest

from climassay.errors import InputError
from climassay.models import Completion, Usage
from climassay.records import RecordedModel, Records
from climassay.records.queries import list_runs
from climassay.records.transfer import ImportCounts, export_answers, import_answers
from climassay.workspace import Workspace
from command_line import done, refused
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


@pytest.fixture
def pair(tmp_path):
    """Two workspaces: B is asked by both, and answered otherwise in each."""
    return fill(tmp_path / "here", Shout(), ["A", "B"]), fill(tmp_path / "there", Whisper(), ["B", "C", "D"], "judge")


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_an_export_is_imported_and_nothing_of_it_is_asked_again(pair, tmp_path, ending):
    here, there = pair
    with Records(there.records_url) as store:
        export_answers(store.database, tmp_path / f"all.{ending}")
        [run] = list_runs(store.database)
    with Records(here.records_url) as store:
        assert import_answers(store.database, tmp_path / f"all.{ending}") == ImportCounts(added=3, conflicts=1)
        assert import_answers(store.database, tmp_path / f"all.{ending}") == ImportCounts(known=3)
        known = next(one for one in list_runs(store.database) if one.id == run.id)
        assert (known.command, known.sent) == ("records import", 3)
        export_answers(store.database, tmp_path / "back.jsonl", run.id)
    assert served(here, "A", "B", "C") == ["A", "B", "c"]
    with Records(there.records_url) as store:
        export_answers(store.database, tmp_path / "first.jsonl")
        assert import_answers(store.database, tmp_path / "back.jsonl") == ImportCounts(known=3)
    assert (tmp_path / "back.jsonl").read_text() == (tmp_path / "first.jsonl").read_text()


def test_an_answer_under_a_key_that_is_not_its_own_is_left_out(pair, tmp_path):
    here, there = pair
    with Records(there.records_url) as store:
        export_answers(store.database, tmp_path / "all.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    rows[1]["prompt"] = "another question"
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Records(here.records_url) as store:
        assert import_answers(store.database, tmp_path / "all.jsonl") == ImportCounts(added=2, conflicts=1, damaged=1)


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


def test_the_command_says_what_was_imported(pair, tmp_path, climassay):
    here, there = pair
    done(climassay("records export", tmp_path / "all.jsonl", "-w", there.root))
    imported = json.loads(done(climassay("records import", tmp_path / "all.jsonl", "-w", here.root, "--json")))
    assert (imported["added"], imported["conflicts"]) == (3, 1)
    assert "none.jsonl" in refused(climassay("records import", tmp_path / "none.jsonl", "-w", here.root), alone=False)
