"""Fifty annotators at once, and the server killed under them: what was acknowledged is stored exactly once."""

import pytest

from climassay.generation.annotation import AnnotationStore
from climassay.records import Records
from labelling_crowd import DATASET, Crowd, ServerProcess, differences, prepare

pytestmark = pytest.mark.faults

ANNOTATORS, LABELS_EACH, OVERLAP = 50, 2, 2
KILLED_AFTER = (30,)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """None: the SQLite file of the workspace."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def test_every_acknowledged_label_is_stored_exactly_once(tmp_path, database):
    drafts = ANNOTATORS * LABELS_EACH
    place = prepare(
        tmp_path / "workspace", annotators=ANNOTATORS, drafts=drafts, overlap=OVERLAP, database_url=database
    )
    with ServerProcess(place) as server:
        told = Crowd(server, place.sessions, labels_each=LABELS_EACH, kill_after=KILLED_AFTER).work()
    assert told.kills == len(KILLED_AFTER)
    assert told.cut > 0
    assert len(told.acknowledged) == ANNOTATORS * LABELS_EACH
    assert not any(differences(place, told).values()), differences(place, told)
    with Records(place.url) as records:
        store = AnnotationStore(records)
        by_draft = {}
        for label in store.labels(DATASET):
            by_draft.setdefault(label.draft, []).append(label)
        assert max(map(len, by_draft.values())) <= OVERLAP
        agreed = [draft for draft, labels in by_draft.items() if len({one.accepted for one in labels}) == 1]
        whole = {draft for draft, labels in by_draft.items() if len(labels) == OVERLAP}
        progress = store.progress(DATASET)
        assert progress.settled == len(whole & set(agreed))
        assert progress.conflicts == len(whole - set(agreed))
