"""What the pages of the area share: the store, who may open what, and the page of an item."""

from fastapi import Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.generation.annotation import Agreement, AnnotationStore, Item, Label, Progress
from climassay.web.accounts import User
from climassay.web.annotate.forms import LabelForm, new_key
from climassay.web.annotate.shown import address, shown_item
from climassay.web.failures import Missing, Refused
from climassay.web.pages import page
from climassay.web.place import Place

DONE = {
    "": "",
    "label": "Saved.",
    "skip": "Skipped.",
    "undo": "Taken back.",
    "nothing": "There was nothing to take back.",
    "decided": "Decided.",
    "settings": "Settings saved.",
    "skipped": "What you skipped is back in your queue.",
}
"""What a page says about what was done before it was shown, by the word in its address."""


def store_of(place: Place) -> AnnotationStore:
    """The annotations of a server's workspace."""
    return place.shared("annotations", lambda: AnnotationStore(place.records))


def queue_of(place: Place, dataset: str) -> AnnotationStore:
    """The annotations, for the pages of one dataset.

    Raises:
        Missing: There is no such dataset.
    """
    store = store_of(place)
    try:
        store.settings(dataset)
    except InputError as error:
        raise Missing(str(error)) from None
    return store


def agreement_of(place: Place, dataset: str) -> Agreement:
    """Agreement with its bootstrap intervals, computed once for the labels that there are.

    Raises:
        Missing: There is no such dataset.
    """
    store = queue_of(place, dataset)
    return place.computed.get(("agreement", dataset, store.revision(dataset)), lambda: store.agreement(dataset))


def done_words(word: str) -> str:
    """What was done, in words; an address that was tampered with says nothing."""
    return DONE.get(word, "")


def item_of(store: AnnotationStore, dataset: str, draft: str) -> Item:
    """An item.

    Raises:
        Missing: There is no such dataset, or no such draft in it.
    """
    try:
        return store.item(dataset, draft)
    except InputError as error:
        raise Missing(str(error)) from None


def own_item(store: AnnotationStore, dataset: str, draft: str, user: User) -> Item:
    """An item that somebody may label: one that they labelled before or that lies before them now.

    Adjudicators may open every item.

    Raises:
        Missing: There is no such item.
        Refused: It is in the queue of others.
    """
    item = item_of(store, dataset, draft)
    if user.may("adjudicator") or own_label(item, user) is not None:
        return item
    if store.labels(dataset, draft=draft, annotator=user.name, current=False):
        # Taken back: it lies before them again, perhaps beside another one.
        return item
    now = store.next(dataset, user.name)
    if now is None or now.draft.id != draft:
        raise Refused("This question is not in your queue.")
    return item


def own_label(item: Item, user: User) -> Label | None:
    """What somebody said about an item, and what still counts."""
    said = (label for label in item.labels if label.annotator == user.name and not label.adjudicates)
    return next(said, None)


def progress_words(progress: Progress) -> str:
    """How far an annotator has come, in words."""
    return f"{progress.mine} of {total_of(progress)}"


def total_of(progress: Progress) -> int:
    """Items that an annotator has labelled, skipped or still before them."""
    return progress.mine + progress.skipped + progress.left_for_me


def training_offered(store: AnnotationStore, dataset: str) -> bool:
    """Whether enough was settled since the validator was last trained."""
    return store.new_labels(dataset) >= store.settings(dataset).retrain_every


def item_page(
    request: Request,
    place: Place,
    user: User,
    dataset: str,
    item: Item,
    *,
    done: str = "",
    form: LabelForm | None = None,
    error: str = "",
) -> Response:
    """The page on which an item is labelled.

    Args:
        request: What is answered.
        place: The server's.
        user: Who labels.
        dataset: Its name.
        item: What is labelled.
        done: Word of what was done just before.
        form: What could not be stored; its words are kept.
        error: Why it could not.
    """
    store = store_of(place)
    settings = store.settings(dataset)
    progress = store.progress(dataset, user.name)
    last = store.history(dataset, user.name, most=1)
    return page(
        request,
        "annotate/item.html.j2",
        status=400 if error else 200,
        dataset=dataset,
        item=shown_item(item, confidence=not settings.hide_confidence, own=own_label(item, user), form=form),
        own=own_label(item, user),
        progress=progress,
        total=total_of(progress),
        said=" ".join(filter(None, (done_words(done), f"{progress_words(progress)}."))),
        done=done_words(done),
        error=error,
        key=new_key(),
        last=last[0].key if last else "",
        base=address(dataset),
        action=address(dataset, item.draft.id),
    )
