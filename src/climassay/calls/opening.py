"""What the calls share: the workspace, the model and the collections that names stand for."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.models import Generator, load_model
from climassay.models.servers import is_served
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.grounding import CollectionGroup

Place = Workspace | Path | str | None
"""A workspace, its folder, or None for the one of the command line."""


@contextmanager
def opened_model(
    given: Generator | str, workspace: Workspace | None = None, *, dtype: str | None = None
) -> Iterator[Generator]:
    """The model of a name, closed at the end; a loaded one stays open, for it belongs to the caller.

    Args:
        given: A model or its name.
        workspace: Where it is kept what a server's model can do.
        dtype: Number format of a local model, where a trained file reads it.

    Raises:
        InputError: The name is not understood.
        ModelError: The model cannot be loaded.
    """
    if not isinstance(given, str):
        yield given
        return
    folder = None if workspace is None else workspace.root
    loaded = load_model(given, dtype=None if is_served(given) else dtype or None, folder=folder)
    try:
        yield loaded
    finally:
        loaded.close()


def opened_workspace(workspace: Place) -> Workspace:
    """The workspace that is meant.

    Raises:
        InputError: Its folder cannot be made.
    """
    return workspace if isinstance(workspace, Workspace) else Workspace.open(workspace)


def collection_names(collections: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several as several."""
    return (collections,) if isinstance(collections, str) else tuple(collections)


def collection_groups(place: Workspace, names: Sequence[str]) -> "dict[str, CollectionGroup]":
    """Each collection as a group of one; the encoder that several share is loaded once."""
    from climassay.grounding import open_collections

    groups: dict[str, CollectionGroup] = {}
    encoder = None
    for name in names:
        groups[name] = open_collections(place, [name], encoder=encoder)
        encoder = groups[name].encoder
    return groups
