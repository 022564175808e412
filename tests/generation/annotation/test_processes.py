"""Several processes at once, one of them killed: nothing acknowledged is lost or doubled."""

import pytest

from annotated_drafts import DATASET, begin, plain
from annotating_process import go, start
from climassay.generation.annotation import AnnotationSettings, AnnotationStore
from climassay.records import Records
from patience import PATIENCE

pytestmark = pytest.mark.process

ITEMS = 16


@pytest.fixture
def store(database_url):
    with Records(database_url) as records:
        begin(records, plain(ITEMS))
        store = AnnotationStore(records)
        store.configure(DATASET, AnnotationSettings(overlap=2, lease_seconds=3600))
        yield store


def test_acknowledged_labels_survive_a_kill_and_are_stored_once(store, database_url):
    killed, *others = processes = [start(database_url, DATASET, name) for name in ("ann", "bob", "cid")]
    for process in processes:
        go(process)
    # On a busy machine the others may leave fewer than three to the one that is killed.
    first = "".join(killed.stdout.readline() for _ in range(3))
    killed.kill()
    acknowledged = (first + killed.stdout.read()).split()
    killed.wait()
    for process in others:
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        acknowledged += out.split()
    labels = store.labels(DATASET, current=False)
    keys = [label.key for label in labels]
    assert len(set(keys)) == len(keys)
    assert set(acknowledged) <= set(keys)
    assert len(set(keys) - set(acknowledged)) <= 1, "stored, and killed before it could say so"
    by_draft = {one.id: [label for label in labels if label.draft == one.id] for one in plain(ITEMS)}
    assert all(len(own) <= 2 for own in by_draft.values()), "no item went to more people than it needs"
    progress = store.progress(DATASET)
    assert progress.settled == sum(len(own) == 2 for own in by_draft.values()) >= ITEMS - 1
