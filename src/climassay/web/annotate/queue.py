"""The queues of datasets that are annotated: the store, who may open what, and training on the labels."""

from typing import Any

from climassay.generation.annotation import Agreement, AnnotationStore, Comment, Item, Label, Progress
from climassay.generation.annotation.labels import is_rubric
from climassay.web.accounts import User
from climassay.web.annotate.views import address
from climassay.web.app_state import AppState
from climassay.web.failures import Refused, missing
from climassay.web.jobs import Job, JobReport

KIND = "retrain"
"""Kind of the job."""
MOST_SHOWN = 5


def store_of(app: AppState) -> AnnotationStore:
    """The annotations of a server's workspace."""
    return app.shared("annotations", lambda: AnnotationStore(app.records))


def queue_of(app: AppState, dataset: str) -> AnnotationStore:
    """The annotations, for the pages of one dataset; missing where there is none of that name."""
    store = store_of(app)
    with missing():
        store.settings(dataset)
    return store


def agreement_of(app: AppState, dataset: str) -> Agreement:
    """Agreement with its bootstrap intervals, computed once for the labels that there are."""
    store = queue_of(app, dataset)
    return app.computed.get(("agreement", dataset, store.revision(dataset)), lambda: store.agreement(dataset))


def item_of(store: AnnotationStore, dataset: str, draft: str) -> Item:
    """An item; missing where there is no such dataset, or no such draft in it."""
    with missing():
        return store.item(dataset, draft)


def holds_rubrics(store: AnnotationStore, dataset: str) -> bool:
    """Whether people write rubrics in a dataset."""
    first = next(store.items(dataset), None)
    return first is not None and is_rubric(first.draft.wording)


def own_item(store: AnnotationStore, dataset: str, draft: str, user: User) -> Item:
    """An item that somebody may label: one that they labelled before, or that wants a label of theirs.

    The latter is kept for them from now on. Adjudicators may open every item.

    Raises:
        Missing: There is no such item.
        Refused: It has the labels that it needs, or others are about to give them.
    """
    item = item_of(store, dataset, draft)
    if user.may("adjudicator") or own_label(item, user) is not None:
        return item
    if store.labels(dataset, draft=draft, annotator=user.name, current=False):
        # Taken back: it lies before them again, perhaps beside another one.
        return item
    if not store.take(dataset, draft, user.name):
        raise Refused("This question has the labels that it needs, or others have it before them now.")
    return item


def own_label(item: Item, user: User) -> Label | None:
    """What somebody said about an item, and what still counts."""
    said = (label for label in item.labels if label.annotator == user.name and not label.adjudicates)
    return next(said, None)


def visible_comments(store: AnnotationStore, dataset: str, item: Item, user: User) -> list[Comment]:
    """The discussion of an item for somebody who labels: others' comments once they have said what they think."""
    labelled = own_label(item, user) is not None
    return [one for one in store.comments(dataset, item.draft.id) if labelled or one.author == user.name]


def total_of(progress: Progress) -> int:
    """Items that an annotator has labelled, skipped or still before them."""
    return progress.mine + progress.skipped + progress.left_for_me


def training_offered(store: AnnotationStore, dataset: str) -> bool:
    """Whether enough was settled since the validator was last trained."""
    return store.new_labels(dataset) >= store.settings(dataset).retrain_every


def retrain_work(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Train on what is settled, judge what waits, and put the queue into a new order."""
    from climassay.generation.annotation import retrain

    dataset = str(payload["dataset"])
    retrain(app.records, app.workspace, dataset, progress=report.progress)
    return {"page": f"{address(dataset, 'settings')}#retraining"}


def trainings(app: AppState, dataset: str) -> list[Job]:
    """The last trainings of a dataset, the newest first."""
    return [job for job in app.jobs.list(KIND) if job.payload["dataset"] == dataset][:MOST_SHOWN]


def open_training(app: AppState, dataset: str) -> str | None:
    """Id of a training of a dataset that waits or runs; None where there is none."""
    return next((job.id for job in trainings(app, dataset) if not job.ended), None)


def train(app: AppState, dataset: str, user: User) -> str:
    """Have a validator trained, where no such job waits or runs already; gives the id of the job."""
    queue_of(app, dataset)
    return open_training(app, dataset) or app.jobs.submit(
        KIND, f"Train the validator of {dataset}", {"dataset": dataset}, by=user.name
    )
