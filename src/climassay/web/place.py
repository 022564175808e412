"""Everything one server has open."""

import threading
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request

from climassay.models.contract import Encoder
from climassay.records import Records
from climassay.records.database import Database
from climassay.web.accounts import AccountStore
from climassay.web.computed import Computed
from climassay.web.job_streams import JobStreams
from climassay.web.jobs import Jobs
from climassay.web.settings import ServerSettings
from climassay.web.visitors import Visitors
from climassay.workspace import Workspace

T = TypeVar("T")


class Place:
    """A workspace with a server on it.

    Args:
        workspace: Whose data the pages show.
        settings: Of the server.
        database_url: Of the records, by default the workspace's.
    """

    def __init__(
        self, workspace: Workspace, settings: ServerSettings | None = None, database_url: str | None = None
    ) -> None:
        self.workspace = workspace
        self.settings = settings or ServerSettings()
        self.records = Records(database_url or workspace.records_url)
        self.accounts = AccountStore(self.database)
        self.jobs = Jobs(self.database)
        self.streams = JobStreams(self.jobs)
        self.visitors = Visitors()
        self.computed = Computed()
        self.csrf_key = self.accounts.secret("csrf")
        self._shared: dict[str, Any] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    @property
    def database(self) -> Database:
        """Where everything is kept."""
        return self.records.database

    def shared(self, key: str, make: Callable[[], T]) -> T:
        """Something that is made once a server: a loaded model, an open store.

        Args:
            key: What it is; another key makes another one.
            make: Makes it; others that want the same wait for it. It may ask for shared things itself.
        """
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._shared:
                self._shared[key] = make()
            return cast(T, self._shared[key])

    def encoder(self, name: str) -> Encoder:
        """An encoder, loaded once for everything that the server does; it encodes a text once."""
        from climassay.models.encoders.embedding_cache import VectorMemory
        from climassay.models.encoders.loading import load_encoder

        return self.shared(f"encoder {name}", lambda: VectorMemory(load_encoder(name)))

    def forget(self, prefix: str) -> None:
        """Let go of shared things whose key begins so; who holds one goes on with it."""
        with self._lock:
            for key in [key for key in self._shared if key.startswith(prefix)]:
                del self._shared[key]

    def close(self) -> None:
        """End the jobs and give back the database."""
        self.jobs.close()
        self.records.close()


def place_of(request: Request) -> Place:
    """The place whose application answers a request."""
    return cast(Place, request.app.state.place)


PlaceHere = Annotated[Place, Depends(place_of)]
