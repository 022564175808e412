"""What the calls on benchmarks share with a session: the model and the collections that names stand for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from climassay.session import ModelOptions, Place, Session
from climassay.session import one_or_several as collection_names
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.models import Generator


@contextmanager
def opened_model(
    given: "Generator | str", workspace: Workspace | None = None, *, dtype: str | None = None
) -> "Iterator[Generator]":
    """The model of a name, closed at the end; a loaded one stays open, for it belongs to the caller."""
    if not isinstance(given, str):
        yield given
        return
    with Session(workspace or Workspace.open(), ModelOptions()) as session:
        yield session.model(given, dtype=dtype)


def opened_workspace(place: Place) -> Workspace:
    """The workspace that is meant.

    Raises:
        InputError: Its folder cannot be made.
    """
    if isinstance(place, Session):
        return place.workspace
    return place if isinstance(place, Workspace) else Workspace.open(place)


__all__ = ["Place", "collection_names", "opened_model", "opened_workspace"]
