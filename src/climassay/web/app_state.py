"""State of a server: its session, accounts, jobs, and results that are computed once."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from fastapi import Depends, Request

from climassay.errors import InputError
from climassay.models import ModelOptions, load_model
from climassay.models.contract import Encoder, Generator
from climassay.records.database import Database
from climassay.session import Session, one_or_several
from climassay.web.accounts import AccountStore
from climassay.web.failures import NotFound
from climassay.web.jobs import Jobs, JobStreams
from climassay.web.limits import VisitorLimits
from climassay.web.settings import ServerSettings
from climassay.web.text_processes import TextProcesses
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.grounding import CollectionGroup

T = TypeVar("T")
MAX_CACHED_RESULTS = 256
"""Maximum number of cached results; the least recently used are evicted first."""


class ResultCache:
    """Thread-safe cache of results by key. If it is full, it evicts the least recently used result."""

    def __init__(self, max_results: int = MAX_CACHED_RESULTS) -> None:
        self._max_results = max_results
        self._lock = threading.Lock()
        self._futures: OrderedDict[Hashable, Future[Any]] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached result of a key, or compute and cache it.

        If several threads request the same key, one computes the result and the others wait for it. An error is raised
        in all of them and is not cached.
        """
        with self._lock:
            existing_future = self._futures.get(key)
            future: Future[T] = self._futures.setdefault(key, Future())
            self._futures.move_to_end(key)
            while len(self._futures) > self._max_results:
                self._futures.popitem(last=False)
        if existing_future is None:
            try:
                future.set_result(compute())
            except BaseException as error:
                future.set_exception(error)
                with self._lock:
                    self._futures.pop(key, None)
        return future.result()

    def __contains__(self, key: Hashable) -> bool:
        """Return whether the result of a key has been computed and is cached."""
        future = self._futures.get(key)
        return future is not None and future.done()


class AppState(Session):
    """Session of a server; all threads share its models, encoders and stores.

    Args:
        workspace: Workspace with the data that the pages show.
        settings: Settings of the server; None for defaults.
        database_url: URL of the records database; None for the workspace's own.
    """

    def __init__(
        self, workspace: Workspace, settings: ServerSettings | None = None, database_url: str | None = None
    ) -> None:
        self.settings = settings or ServerSettings()
        super().__init__(workspace, self.settings.model_options, records_url=database_url)
        self.accounts = AccountStore(self.database)
        self.jobs = Jobs(self.database)
        self.streams = JobStreams(self.jobs)
        self.visitors = VisitorLimits()
        self.text_processes = TextProcesses()
        self.computed = ResultCache()
        self.csrf_key = self.accounts.secret_key("csrf")
        self._shared: dict[str, Any] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    @property
    def database(self) -> Database:
        """Database of records, accounts and jobs."""
        return self.records.database

    def shared(self, key: str, create: Callable[[], T]) -> T:
        """Return an object that is created once per server, such as a loaded model or an open store.

        Args:
            key: Key of the object.
            create: Function that creates the object on first use, while other threads wait. It may request other
                objects of the server.
        """
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._shared:
                self._shared[key] = create()
            return cast(T, self._shared[key])

    def encoder(self, name: str | None = None) -> Encoder:
        """Return the encoder with the given name, loaded once per server; None selects the bundled one.

        Its vectors are cached.
        """
        from climassay.models.encoders import BUNDLED_ENCODER, CachedEncoder, load_encoder

        encoder_name = name or BUNDLED_ENCODER
        return self.shared(f"encoder {encoder_name}", lambda: CachedEncoder(load_encoder(encoder_name)))

    def model(self, model: Generator | str, options: ModelOptions | None = None) -> Generator:
        """Return a model, which is loaded once for all requests with the same options.

        Args:
            model: Name of the model; a loaded model is returned unchanged.
            options: Options for loading it; by default those options of the server that apply to this model.
        """
        if not isinstance(model, str):
            return model
        server_options = self.options.fitting(model)
        model_options = options or server_options
        key = f"model {model}" if model_options == server_options else f"model {model} {model_options}"
        return self.shared(key, lambda: load_model(model, model_options, folder=self.workspace.root))

    def collections(self, names: str | Sequence[str]) -> "CollectionGroup":
        """Return collections by name, each opened once per server with its vectors; see ``web.library.cache``.

        Raises:
            InputError: A collection does not exist, or is damaged.
            ModelError: The encoder of a collection is not installed.
        """
        from climassay.grounding import CollectionGroup
        from climassay.web.library.cache import collection_cache

        library = collection_cache(self)
        try:
            return CollectionGroup(tuple(library.open_searchable(name) for name in one_or_several(names)))
        except NotFound as error:
            raise InputError(str(error)) from None

    def forget(self, prefix: str) -> None:
        """Remove the server's objects whose keys start with a prefix, so that they are created anew on next use."""
        with self._lock:
            for key in [key for key in self._shared if key.startswith(prefix)]:
                del self._shared[key]

    def close(self) -> None:
        """Stop the jobs and the checks of texts, and close the database."""
        self.jobs.close()
        self.text_processes.close()
        super().close()


def get_app_state(request: Request) -> AppState:
    """Return the state of the server that answers a request."""
    return cast(AppState, request.app.state.climassay)


App = Annotated[AppState, Depends(get_app_state)]
