"""Requests about the annotation of one dataset: permissions, visible labels and comments, and responses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.responses import Response

from climassay.generation.annotation import AnnotationItem, AnnotationStore, Comment, Label
from climassay.web.access import Adjudicator, Annotator, DatasetManager
from climassay.web.accounts import User
from climassay.web.annotate.views import count_assigned_items, find_own_label, may_annotate, page_path, require_dataset
from climassay.web.api.base import DatasetName
from climassay.web.app_state import App, AppState
from climassay.web.checks.pages import display_names
from climassay.web.failures import Forbidden, not_found_if_invalid
from climassay.web.pages import page, redirect_to

STATUS_MESSAGES = {
    "": "",
    "label": "Saved.",
    "edit": "Saved with your wording.",
    "skip": "Skipped.",
    "undo": "Taken back.",
    "nothing": "There was nothing to take back.",
    "decided": "Decided.",
    "comment": "Comment added.",
    "settings": "Settings saved.",
    "skipped": "What you skipped is back in your queue.",
}
"""Messages that confirm the last action, by the value of the query parameter ``done``."""


@dataclass(frozen=True, slots=True)
class DatasetRequest:
    """Request about one dataset from a user who has the required role."""

    request: Request
    app: AppState
    user: User
    dataset: str
    store: AnnotationStore

    def url_for(self, *parts: str) -> str:
        """Return the path of a page about the dataset, such as ``/annotate/DATASET/settings``."""
        return page_path(self.dataset, *parts)

    def redirect(self, *parts: str, done: str, anchor: str = "") -> Response:
        """Redirect to a page about the dataset that shows a message; ``done`` is a key of :data:`STATUS_MESSAGES`."""
        return redirect_to(f"{self.url_for(*parts)}?done={done}{anchor}")

    def render(self, template: str, *, done: str = "", error: str = "", **values: Any) -> Response:
        """Render a page about the dataset.

        Args:
            template: Name of the template, without folder and suffix.
            done: Key of :data:`STATUS_MESSAGES`; unknown keys show no message.
            error: Error message to show; if not empty, the status is 400.
            **values: Further values for the template.
        """
        all_values = {
            "dataset": self.dataset,
            "base": self.url_for(),
            "done": STATUS_MESSAGES.get(done, ""),
            "error": error,
            **values,
        }
        return page(self.request, f"annotate/{template}.html.j2", status=400 if error else 200, **all_values)

    @property
    def display_name(self) -> Callable[[str], str]:
        """Function that maps a user name to the display name."""
        return display_names(self.app, self.user)

    def item(self, draft: str) -> AnnotationItem:
        """Return the item of the draft with the given id.

        Raises:
            NotFound: The item does not exist.
        """
        with not_found_if_invalid():
            return self.store.item(self.dataset, draft)

    def claim_item(self, draft: str) -> AnnotationItem:
        """Return an item that the user may label and, if it needs further labels, reserve it for the user.

        Annotators may label items that they have labelled before or that need further labels; adjudicators may label
        all items.

        Raises:
            NotFound: The item does not exist.
            Forbidden: The item has all the labels it needs, or is reserved for others.
        """
        item, name = self.item(draft), self.user.name
        # Undone labels (current=False) count as well, so that users can label an item again.
        if (
            self.user.may("adjudicate")
            or self.store.labels(self.dataset, draft=draft, annotator=name, current=False)
            or self.store.claim(self.dataset, draft, name)
        ):
            return item
        raise Forbidden("This question has all the labels it needs, or is open at other annotators.")

    def visible_comments(self, item: AnnotationItem) -> list[Comment]:
        """Return the comments on an item.

        Other users' comments are included only if the user has already labelled the item.
        """
        is_labelled, comments = (
            find_own_label(item, self.user) is not None,
            self.store.comments(self.dataset, item.draft.id),
        )
        return [comment for comment in comments if is_labelled or comment.author == self.user.name]

    def history(self, annotator: str, limit: int, after: str | None) -> Sequence[Label]:
        """Return the labels of an annotator, newest first; another user's labels are included only for decided items.

        Args:
            annotator: Name of the annotator; the user's own if empty.
            limit: Maximum number of labels.
            after: Key of the label after which to continue; None to start with the newest.

        Raises:
            Forbidden: The labels are another user's, and the user is not an adjudicator.
        """
        name = annotator or self.user.name
        if name != self.user.name and not self.user.may("adjudicate"):
            raise Forbidden("Only adjudicators can see other annotators' labels.")
        return self.store.history(self.dataset, name, limit, after=after, settled_only=name != self.user.name)

    def progress_values(self, done: str) -> dict[str, Any]:
        """Return the user's progress as template values, with a message for the key ``done``."""
        progress = self.store.progress(self.dataset, self.user.name)
        total = count_assigned_items(progress)
        latest_labels = self.store.history(self.dataset, self.user.name, limit=1)
        announcement = " ".join(filter(None, (STATUS_MESSAGES.get(done, ""), f"{progress.mine} of {total}.")))
        return {
            "progress": progress,
            "total": total,
            "announcement": announcement,
            "last": latest_labels[0].key if latest_labels else "",
        }


def _require_dataset_role(role: Any) -> Any:
    """Return a route dependency for users with a role, which creates the :class:`DatasetRequest`.

    The dependency raises Forbidden if the dataset is assigned to other annotators and the user is not an adjudicator.
    """

    def make_request(request: Request, app: App, user: role, dataset: DatasetName) -> DatasetRequest:
        store = require_dataset(app, dataset)
        if not may_annotate(store, dataset, user):
            raise Forbidden("This queue is assigned to others: ask whoever runs this server.")
        return DatasetRequest(request, app, user, dataset, store)

    return Depends(make_request)


AnnotatorRequest = Annotated[DatasetRequest, _require_dataset_role(Annotator)]
AdjudicatorRequest = Annotated[DatasetRequest, _require_dataset_role(Adjudicator)]
ManagerRequest = Annotated[DatasetRequest, _require_dataset_role(DatasetManager)]
