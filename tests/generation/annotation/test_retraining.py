"""Training on what experts said, with an encoder of words: what is tested is the loop, not the encoder."""

import shutil

import pytest

from annotated_drafts import DATASET, WRONG, begin
from climassay.generation import Wording
from climassay.generation.annotation import AnnotationStore, Label, retrain
from climassay.generation.validation import TextReader, TrainedValidator
from climassay.records import Records
from climassay.workspace import Workspace
from generated_drafts import draft
from word_encoder import WordEncoder


class Interrupted(WordEncoder):
    """Is stopped once it has been given so many texts."""

    def encode(self, texts, **options):
        if len(self.encoded) + len(texts) > 30:
            raise KeyboardInterrupt
        return super().encode(texts, **options)


def made(number):
    answer = "It warms the deep ocean." if number % 3 else "Bananas are sold on Mondays."
    return draft(number, wording=Wording(f"What does process {number} do?", answer))


def annotated(workspace):
    """A dataset of sixty drafts, forty of them labelled."""
    records = Records(workspace.records_url)
    begin(records, [made(number) for number in range(60)])
    store = AnnotationStore(records)
    given = [
        Label(f"q{number:04d}", "ann", bool(number % 3), () if number % 3 else ("wrong answer",), key=str(number))
        for number in range(40)
    ]
    assert store.import_labels(DATASET, given).stored == 40
    return records, store


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The workspace of a first training, what it returned, what it told, and its store."""
    workspace = Workspace.open(tmp_path_factory.mktemp("first"))
    records, store = annotated(workspace)
    assert store.new_labels(DATASET) == 40
    told = []
    tell = lambda *now: told.append(now)  # noqa: E731
    found = retrain(records, workspace, DATASET, reader=TextReader(WordEncoder(width=32)), folds=2, progress=tell)
    yield workspace, found, told, store
    records.close()


@pytest.fixture
def second(first, tmp_path):
    """Another workspace with the same labels, in which the first one's validator lies already."""
    workspace = Workspace.open(tmp_path)
    shutil.copytree(first[0].root / "validators", workspace.root / "validators")
    records, store = annotated(workspace)
    yield workspace, records, store
    records.close()


def again(second, encoder, **options):
    workspace, records, _ = second
    return retrain(records, workspace, DATASET, reader=TextReader(encoder), folds=2, **options)


def test_training_judges_what_waits_and_puts_it_in_order(first):
    _, found, told, store = first
    assert (found.labels, found.invalid, found.judged, found.trained) == (40, 14, 20, True)
    assert found.cross_validated["auroc"] > 0.9
    assert TrainedValidator.load(found.validator).record.provenance.data == "labels of silver"
    assert store.validator(DATASET) == found.validator.name
    waiting = [item for item in store.items(DATASET) if item.state == "open"]
    doubts = [abs(item.p_valid - 0.5) for item in waiting]
    assert doubts == sorted(doubts)
    good = [item.p_valid for item in waiting if "warms" in item.draft.wording.answer]
    bad = [item.p_valid for item in waiting if "Bananas" in item.draft.wording.answer]
    assert min(good) > max(bad)
    assert store.new_labels(DATASET) == 0
    assert all(0 <= done <= total for done, total, _ in told)
    assert {message for _, _, message in told} == {
        "Reading labelled questions",
        "Cross-validating",
        "Judging the unsettled items",
        "Done",
    }


def test_an_interrupted_call_is_finished_by_the_next(first, second, monkeypatch):
    monkeypatch.setattr("climassay.generation.annotation.retraining.BATCH_SIZE", 5)
    _, _, store = second
    whole = WordEncoder(width=32)
    with pytest.raises(KeyboardInterrupt):
        again(second, Interrupted(width=32))
    assert store.validator(DATASET) is None
    judged = sum(item.p_valid is not None for item in store.items(DATASET))
    assert 0 < judged < 20
    found = again(second, whole)
    assert (found.trained, found.judged, found.validator.name) == (False, 20 - judged, first[1].validator.name)
    orders = [
        [(item.draft.id, item.p_valid) for item in one.items(DATASET) if item.state == "open"]
        for one in (store, first[3])
    ]
    assert [name for name, _ in orders[0]] == [name for name, _ in orders[1]]
    assert [chance for _, chance in orders[0]] == pytest.approx([chance for _, chance in orders[1]])


def test_labels_that_come_meanwhile_are_new_afterwards(second):
    _, _, store = second

    def label(done, total, message):
        if message == "Judging the unsettled items":
            store.label(DATASET, Label("q0059", "bob", key="meanwhile", **WRONG))

    again(second, WordEncoder(width=32), progress=label)
    assert store.new_labels(DATASET) == 1
