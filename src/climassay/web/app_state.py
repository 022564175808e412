"""Everything one server has open, and what it computes once for all who look at it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request

from climassay.models.contract import Encoder
from climassay.records import Records
from climassay.records.database import Database
from climassay.web.accounts import AccountStore
from climassay.web.job_streams import JobStreams
from climassay.web.jobs import Jobs
from climassay.web.settings import ServerSettings
from climassay.web.visitors import Visitors
from climassay.workspace import Workspace

T = TypeVar("T")
KEPT = 256
"""Computed results that are kept; the least recently used go first."""


class Computed:
    """Results by what they were computed from; threads may share it."""

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._made: OrderedDict[Hashable, Future[Any]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """A result; whoever asks for it while it is computed waits for it, and an error reaches all of them."""
        with self._lock:
            known = self._made.get(key)
            found: Future[T] = self._made.setdefault(key, Future())
            self._made.move_to_end(key)
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        if known is None:
            try:
                found.set_result(make())
            except BaseException as error:
                found.set_exception(error)
                with self._lock:
                    self._made.pop(key, None)
        return found.result()

    def __contains__(self, key: Hashable) -> bool:
        """Whether a result is there already."""
        found = self._made.get(key)
        return found is not None and found.done()


class AppState:
    """A workspace with a server on it.

    Args:
        workspace: Whose data the pages show.
        settings: How the server is set up.
        database_url: Database of the records, by default the workspace's.
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
            make: Makes it while others that want the same wait; it may ask for shared things itself.
        """
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._shared:
                self._shared[key] = make()
            return cast(T, self._shared[key])

    def encoder(self, name: str) -> Encoder:
        """An encoder, loaded once for everything that the server does; it encodes a text once."""
        from climassay.models.encoder import load_encoder
        from climassay.models.vector_memory import VectorMemory

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


def app_state_of(request: Request) -> AppState:
    """The state of the application that answers a request."""
    return cast(AppState, request.app.state.climassay)


App = Annotated[AppState, Depends(app_state_of)]
