import json
import re
from dataclasses import replace

import pyarrow.parquet
import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from climassay.errors import InputError
from climassay.generation import (
    Decision,
    Wording,
    contains_canary,
    publish_dataset,
    push_dataset,
    read_dataset,
    read_drafts,
)
from climassay.generation.publishing import canary_sentence, find_canaries, read_dataset_questions
from climassay.primer import gold_questions
from climassay.questions import read_questions
from generated_drafts import draft, drafts, passage, rejected


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def a_mixed_set():
    good = [draft(number, kind) for number, kind in enumerate(["mcq", "freeform", "cloze"] * 10)]
    bad = [rejected(draft(100 + number)) for number in range(4)]
    return [*good, *bad, replace(draft(200, "cloze"), wording=Wording("It has a high albedo."))]


def same(question):
    """What a reader gives back of a question: the readers make all white space one space."""
    return (
        question.kind,
        " ".join(question.question.split()),
        " ".join(question.answer.split()),
        tuple(" ".join(option.split()) for option in question.options),
        question.correct,
        " ".join((question.context or "").split()) or None,
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drafts())
def test_drafts_come_back_as_they_were(tmp_path_factory, made):
    folder = tmp_path_factory.mktemp("data")
    if not any(one.usable and (one.kind != "cloze" or one.wording.answer) for one in made):
        with pytest.raises(InputError, match="nothing to publish"):
            publish_dataset(made, folder / "out", name="x")
        return
    result = publish_dataset(made, folder / "out", name="x")
    assert read_dataset(folder / "out") == made
    assert list(read_drafts(folder / "out/drafts.jsonl")) == made
    published = sum(sum(counts.values()) for counts in result.counts.values())
    assert published + result.rejected + result.without_term == len(made)


def test_a_published_folder_is_read_as_its_test_split_and_whole_where_there_is_none(tmp_path):
    for splits, split in ((0.5, 0.0, 0.5), "test"), ((1, 0, 0), "train"):
        folder = tmp_path / split
        counts = publish_dataset(a_mixed_set(), folder, name="x", splits=splits).counts
        result = read_questions(folder)
        assert result.name == split
        assert len(result.questions) == sum(one.get(split, 0) for one in counts.values())
        assert {question.kind for question in result.questions} == {"mcq", "freeform", "cloze"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="folder without tables"):
        read_questions(tmp_path / "empty")


@pytest.mark.parametrize("form", ["data/{}.parquet", "jsonl/{}.jsonl", "climaqa/{}.parquet", "climaqa/{}.jsonl"])
def test_every_table_gives_the_questions_back(tmp_path, form):
    made = [one for one in a_mixed_set() if one.usable and one.wording.answer]
    doubtful = replace(draft(300, "mcq"), wording=Wording("Which letter is the first?", "a", ("b", "c", "a", "d"), 2))
    made.append(doubtful)
    result = publish_dataset(made, tmp_path, name="x")
    found = []
    for kind, counts in result.counts.items():
        for split, count in counts.items():
            table = read_questions(tmp_path / form.format(f"{kind}/{split}"))
            assert not table.skipped
            assert len(table.questions) == count
            found += table.questions
    expected = [one.as_question() for one in made]
    assert sorted(map(same, found)) == sorted(map(same, expected))
    if form.startswith(("data", "jsonl")):
        details = {(one.id, one.level, one.document) for one in found}
        assert details == {(one.id, one.level, one.document) for one in expected}


def test_climaqa_columns_are_the_published_ones(tmp_path):
    accepted = draft(1, "mcq").with_decisions(Decision("expert", "ada", accepted=True))
    publish_dataset([accepted, draft(2), draft(3, "cloze")], tmp_path, name="x", splits=(0, 0, 1))
    table = pyarrow.parquet.read_table(tmp_path / "climaqa/mcq/test.parquet")
    assert table.column_names == ["Question", "Options", "Answer", "Context", "Complexity", "Validation"]
    row = table.to_pylist()[0]
    assert row["Options"] == f"\n{'-' * 20}\n".join(
        ["a) the albedo", "b) the emissivity", "c) the optical depth", "d) the insolation"]
    )
    assert (row["Answer"], row["Complexity"], row["Validation"]) == ("a", "BASE", "VALID")
    assert pyarrow.parquet.read_table(tmp_path / "climaqa/cloze/test.parquet").column_names == [
        "Question",
        "Answer",
        "Context",
    ]
    free = json.loads((tmp_path / "climaqa/freeform/test.jsonl").read_text())
    assert list(free) == ["Question", "Answer", "Context", "Complexity", "Validation"]
    assert free["Validation"] == ""


def test_what_an_expert_says_later_moves_no_other_question(tmp_path):
    made = a_mixed_set()
    publish_dataset(made, tmp_path / "before", name="x")
    turned = [
        one.with_decisions(Decision("expert", "ada", accepted=one.rejection is not None)) if number % 7 == 3 else one
        for number, one in enumerate(made)
    ]
    publish_dataset(turned, tmp_path / "after", name="x")

    def places(folder):
        return {
            question.id: split
            for split in ("train", "dev", "test")
            for question in read_dataset_questions(folder, split).questions
        }

    before, after = places(tmp_path / "before"), places(tmp_path / "after")
    assert before.keys() != after.keys()
    assert all(after[name] == split for name, split in before.items() if name in after)


def test_datasets_loads_every_split(tmp_path):
    datasets = pytest.importorskip("datasets")
    result = publish_dataset(a_mixed_set(), tmp_path / "out", name="x")
    assert datasets.get_dataset_config_names(str(tmp_path / "out")) == ["mcq", "freeform", "cloze"]
    for kind, counts in result.counts.items():
        loaded = datasets.load_dataset(str(tmp_path / "out"), kind, cache_dir=str(tmp_path / "cache"))
        assert {split: part.num_rows for split, part in loaded.items()} == dict(counts)
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert loaded["train"][0]["options"] == ["the albedo", "the emissivity", "the optical depth", "the insolation"]


def test_publishing_again_changes_nothing(tmp_path):
    first = publish_dataset(a_mixed_set(), tmp_path, name="x")
    before = contents(tmp_path)
    second = publish_dataset(a_mixed_set(), tmp_path, name="x")
    assert set(first.written) == set(second.unchanged) == set(before)
    assert not second.written
    assert contents(tmp_path) == before


def test_files_of_the_version_before_are_removed_and_the_canary_stays(tmp_path):
    first = publish_dataset(a_mixed_set(), tmp_path, name="x")
    (tmp_path / "notes.txt").write_text("mine")
    second = publish_dataset(a_mixed_set()[:9], tmp_path, name="x", kinds=("mcq",), splits=(0, 0, 1))
    assert second.canary == first.canary
    assert second.content_sha256 != first.content_sha256
    assert {str(one.relative_to(tmp_path)) for one in (tmp_path / "data").rglob("*") if one.is_file()} == {
        "data/mcq/test.parquet"
    }
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "climaqa/cloze").exists()


def test_a_manifest_cannot_remove_what_lies_outside(tmp_path):
    publish_dataset(a_mixed_set(), tmp_path / "out", name="x")
    (tmp_path / "precious.txt").write_text("mine")
    told = json.loads((tmp_path / "out/dataset.json").read_text())
    told["files"] += ["../precious.txt", str(tmp_path / "precious.txt")]
    (tmp_path / "out/dataset.json").write_text(json.dumps(told))
    publish_dataset(a_mixed_set()[:6], tmp_path / "out", name="x")
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_other_things_in_the_folder_are_left_alone(tmp_path):
    publish_dataset(a_mixed_set(), tmp_path / "one", name="x")
    before = contents(tmp_path / "one")
    with pytest.raises(InputError, match="another dataset"):
        publish_dataset(a_mixed_set(), tmp_path / "one", name="y")
    assert contents(tmp_path / "one") == before
    (tmp_path / "two").mkdir()
    (tmp_path / "two/thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="other files"):
        publish_dataset(a_mixed_set(), tmp_path / "two", name="y")
    with pytest.raises(InputError, match="is a file"):
        publish_dataset(a_mixed_set(), tmp_path / "two/thesis.tex", name="y")
    assert publish_dataset(a_mixed_set(), tmp_path / "one", name="y", force=True).name == "y"


@pytest.mark.parametrize("fault", ["changed", "missing", "no drafts", "nothing"])
def test_a_damaged_dataset_is_not_read(tmp_path, fault):
    if fault == "no drafts":
        publish_dataset(gold_questions(), tmp_path, name="primer")
    elif fault != "nothing":
        publish_dataset(a_mixed_set(), tmp_path, name="x")
    file = tmp_path / "drafts.jsonl"
    if fault == "changed":
        file.write_text(file.read_text().replace("It grows.", "It shrinks.", 1))
    if fault == "missing":
        file.unlink()
    with pytest.raises(InputError, match=r"changed since|cannot be read|has no drafts|no dataset"):
        read_dataset(tmp_path)


def test_questions_from_elsewhere_are_published_whole(tmp_path):
    primer = gold_questions()
    result = publish_dataset(primer, tmp_path, name="primer")
    assert result.counts == {
        "mcq": {"train": 48, "dev": 6, "test": 6},
        "freeform": {"train": 24, "dev": 3, "test": 3},
        "cloze": {"train": 24, "dev": 3, "test": 3},
    }
    assert set(read_dataset_questions(tmp_path).questions) == set(primer.questions)


def test_every_file_but_the_drafts_and_climaqas_rows_has_the_canary(tmp_path):
    result = publish_dataset(a_mixed_set(), tmp_path, name="x")
    for path, data in contents(tmp_path).items():
        bare = path == "drafts.jsonl" or (path.startswith("climaqa") and path.endswith("jsonl"))
        text = data.decode(errors="replace")
        assert contains_canary(text) != bare, path
        assert find_canaries(text) == (() if bare else (result.canary,))
        if path.startswith("jsonl"):
            assert all(contains_canary(line) for line in text.splitlines())
    other = publish_dataset(a_mixed_set(), tmp_path / "other", name="y")
    assert other.canary != result.canary
    own = publish_dataset(a_mixed_set(), tmp_path / "own", name="x", canary=result.canary.upper())
    assert own.canary == result.canary
    none = publish_dataset(a_mixed_set(), tmp_path / "none", name="x", canary=False)
    assert none.canary is None
    assert not any(contains_canary(data.decode(errors="replace")) for data in contents(tmp_path / "none").values())


def test_a_canary_is_found_in_other_text_and_only_there():
    guid = "123e4567-e89b-12d3-a456-426614174000"
    assert find_canaries(f"x {canary_sentence(guid).upper()} y") == (guid,)
    assert not contains_canary(f"Canary: {guid}")
    assert not contains_canary("climassay-canary-123e4567")
    with pytest.raises(InputError, match="not a GUID"):
        publish_dataset([draft()], None, name="x", canary="tweety")


def cells(card, heading):
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", card, re.M | re.S)[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]


def test_the_card_tells_counts_removals_sources_and_models(tmp_path):
    known = [draft(number, passages=(passage(number, licence="CC BY 4.0"),)) for number in range(0, 8, 2)]
    further = passage(1, similarity=0.6)
    made = [*known, replace(draft(9, "mcq"), passages=(passage(9), replace(further, document="Third | book")))]
    made += [rejected(draft(20), "copied"), rejected(rejected(draft(21), "too long"), "copied")]
    made += [replace(draft(22), error="The answer was cut off.", wording=Wording(""))]
    publish_dataset(made, tmp_path, name="demo", licence="cc-by-4.0", splits=(0, 0, 1))
    card = (tmp_path / "README.md").read_text()
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["license"] == "cc-by-4.0"
    for config in head["configs"]:
        assert all((tmp_path / part["path"]).is_file() for part in config["data_files"])
    assert ["freeform", "base", "Book 0", "0", "0", "4"] in cells(card, "Questions")
    assert cells(card, "Questions")[-1] == ["all", "", "", "0", "0", "5"]
    assert cells(card, "What was removed")[2:] == [
        ["write", "failed", "1", "1"],
        ["screen", "copied", "1", "2"],
        ["screen", "too long", "1", "1"],
    ]
    assert "Of 8 drafts 3 were rejected or failed" in card
    assert cells(card, "Sources and licences")[2:] == [
        ["Book 0", "CC BY 4.0", "4", "0"],
        ["Book 1", "unknown", "1", "0"],
        ["Third \\", "book", "unknown", "0", "1"],
    ]
    assert "licence of 2 of 3 sources is not known" in card
    written = ["local:test", "f" * 12, "float32", "generate `aaaaaaaaaaaa`", "5", "5"]
    assert cells(card, "How they were written")[2] == written
    assert "No expert judged" in card


def judged(number, **said):
    one = draft(number)
    for name, verdict in said.items():
        step = "validate" if name == "head" else "expert"
        one = one.with_decisions(Decision(step, name, accepted=verdict))
    return one


def test_the_card_tells_agreement_as_worked_by_hand(tmp_path):
    # Two experts on ten questions: 5 both valid, 3 both invalid, 2 apart (one each way): po 0.8, pe 0.6*0.6+0.4*0.4.
    verdicts = [(True, True)] * 5 + [(False, False)] * 3 + [(True, False), (False, True)]
    made = [judged(number, ada=first, ben=second) for number, (first, second) in enumerate(verdicts)]
    publish_dataset(made, tmp_path / "two", name="x")
    kappa = (0.8 - 0.52) / (1 - 0.52)
    assert cells((tmp_path / "two/README.md").read_text(), "Agreement")[2] == [
        "ada and ben", "10", "80%", "Cohen's kappa", f"{kappa:.2f}",
    ]  # fmt: skip
    mixed = [judged(0, ada=True, ben=True), judged(1, ben=False, cy=False), judged(2, ada=True, cy=False)]
    mixed += [judged(3, ada=True, head=True), judged(4, ada=False, head=True)]
    publish_dataset(mixed, tmp_path / "three", name="x")
    rows = cells((tmp_path / "three/README.md").read_text(), "Agreement")[2:]
    assert rows[0][:4] == ["3 annotators", "3", "67%", "Krippendorff's alpha"]
    assert rows[1][:3] == ["head and the experts", "2", "50%"]


@pytest.mark.parametrize(
    ("made", "word"),
    [
        ([rejected(draft(1))], "none of the kind"),
        ([replace(draft(1, "cloze"), wording=Wording("It is high."))], "no term is chosen yet for 1 cloze statement"),
        ([draft(1), draft(1)], "Two drafts have the id"),
        ([replace(draft(1), passages=())], "has no passage"),
        ([replace(draft(1), kind="longform", wording=Wording("Why?", "", ("Rubric",)))], "to get a rubric"),
        ([replace(draft(1, "mcq"), wording=Wording("Which?", "a", ("a", "b")))], "marks none of its 2 options"),
        ([replace(draft(1, "mcq"), wording=Wording("Which?", "a", ("a", "b"), 2))], "marks none of its 2 options"),
        ([replace(draft(1, "cloze"), wording=Wording("It is.", "albedo"))], "not a word of the statement"),
        ([], "no question"),
    ],
    ids=[
        "rejected", "no term", "twice", "no passage", "for people", "no answer", "answer beyond", "no such word",
        "empty",
    ],
)  # fmt: skip
def test_what_cannot_be_published_is_said(tmp_path, made, word):
    with pytest.raises(InputError, match=word):
        publish_dataset(made, tmp_path / "out", name="x")
    assert not (tmp_path / "out").exists()


HfApi = pytest.importorskip("huggingface_hub").HfApi
errors = pytest.importorskip("huggingface_hub.errors")
client = pytest.importorskip("httpx2")


@pytest.fixture
def folder(tmp_path):
    publish_dataset([draft(number) for number in range(3)], tmp_path / "out", name="x")
    return tmp_path / "out"


def refusing(error):
    def refuse(*args, **kwargs):
        raise error

    return refuse


def http_error(status):
    request = client.Request("POST", "https://hub.test/api/repos/create")
    return errors.HfHubHTTPError("no", response=client.Response(status, request=request))


def test_the_folder_goes_to_a_repository_that_is_made_first(monkeypatch, folder):
    calls = []
    monkeypatch.setattr(HfApi, "create_repo", lambda self, name, **rest: calls.append((name, rest)) or "https://hub/x")
    monkeypatch.setattr(HfApi, "upload_folder", lambda self, **rest: calls.append(rest))
    assert push_dataset(folder, "me/climate", private=True) == "https://hub/x"
    assert calls[0] == ("me/climate", {"repo_type": "dataset", "private": True, "exist_ok": True})
    assert calls[1]["repo_id"] == "me/climate"
    assert calls[1]["repo_type"] == "dataset"
    assert calls[1]["folder_path"] == str(folder)
    assert not any("token" in call for call in (calls[0][1], calls[1]))


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (http_error(403), "HF_TOKEN"),
        (http_error(500), "refused the dataset me/climate: 500"),
        (errors.LocalTokenNotFoundError("no"), "requires a token"),
        (errors.OfflineModeIsEnabled("no"), "could not be reached"),
        (client.ConnectError("no"), "could not be reached"),
    ],
    ids=["forbidden", "server", "token", "offline", "network"],
)
def test_what_goes_wrong_is_one_sentence(monkeypatch, folder, error, word):
    monkeypatch.setattr(HfApi, "create_repo", refusing(error))
    with pytest.raises(InputError, match=word):
        push_dataset(folder, "me/climate")


@pytest.mark.parametrize("name", ["climate", "me/", "me/a b", "/x", "a/b/c", None])
def test_what_is_no_name_or_no_dataset_is_refused_before_anything_is_sent(monkeypatch, tmp_path, folder, name):
    monkeypatch.setattr(HfApi, "create_repo", refusing(AssertionError("sent")))
    with pytest.raises(InputError, match="OWNER/NAME" if name else "not a dataset"):
        push_dataset(folder if name else tmp_path, name or "me/climate")
