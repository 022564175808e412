"""Everything one server has open, and what it computes once for all who look at it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from fastapi import Depends, Request

from climassay.models.contract import Encoder, Generator
from climassay.records.database import Database
from climassay.session import ModelOptions, Session, one_or_several
from climassay.web.accounts import AccountStore
from climassay.web.jobs import Jobs, JobStreams
from climassay.web.limits import VisitorLimits
from climassay.web.settings import ServerSettings
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.grounding import CollectionGroup

T = TypeVar("T")
KEPT = 256
"""ResultCache results that are kept; the least recently used go first."""


class ResultCache:
    """Results by what they were computed from; threads may share it."""

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._made: OrderedDict[Hashable, Future[Any]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """A result; whoever asks for it while it is computed waits for it, and an error reaches all of them."""
        with self._lock:
            known = self._made.get(key)
            result: Future[T] = self._made.setdefault(key, Future())
            self._made.move_to_end(key)
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        if known is None:
            try:
                result.set_result(make())
            except BaseException as error:
                result.set_exception(error)
                with self._lock:
                    self._made.pop(key, None)
        return result.result()

    def __contains__(self, key: Hashable) -> bool:
        """Whether a result is there already."""
        result = self._made.get(key)
        return result is not None and result.done()


class AppState(Session):
    """The session of a server, whose models, encoders and stores all threads share.

    Args:
        workspace: Whose data the pages show.
        settings: How the server is set up.
        database_url: Database of the records, by default the workspace's.
    """

    def __init__(
        self, workspace: Workspace, settings: ServerSettings | None = None, database_url: str | None = None
    ) -> None:
        super().__init__(workspace, records_url=database_url)
        self.settings = settings or ServerSettings()
        self.accounts = AccountStore(self.database)
        self.jobs = Jobs(self.database)
        self.streams = JobStreams(self.jobs)
        self.visitors = VisitorLimits()
        self.computed = ResultCache()
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

    def encoder(self, name: str | None = None) -> Encoder:
        """An encoder, loaded once for everything that the server does; it encodes a text once."""
        from climassay.models.encoders import BUNDLED_ENCODER, CachedEncoder, load_encoder

        wanted = name or BUNDLED_ENCODER
        return self.shared(f"encoder {wanted}", lambda: CachedEncoder(load_encoder(wanted)))

    def model(
        self,
        given: Generator | str,
        *,
        options: ModelOptions | None = None,
        base_url: str | None = None,
        dtype: str | None = None,
    ) -> Generator:
        """The model of a name, loaded once, in the way that the server's settings say."""
        if not isinstance(given, str):
            return given
        chosen = options or self.options
        limits = {
            "base_url": base_url,
            "max_output_tokens": chosen.max_output_tokens,
            "reasoning_effort": chosen.reasoning_effort,
            "dtype": dtype,
        }
        own = {option: value for option, value in limits.items() if value is not None}
        key = " ".join((f"model {given}", *(f"{option}={value}" for option, value in own.items())))
        return self.shared(key, lambda: self.settings.load(given, self.workspace, **own))

    def collections(self, names: str | Sequence[str]) -> "CollectionGroup":
        """Collections by name, opened anew, which takes milliseconds: what was changed or replaced is seen as it is.

        Raises:
            InputError: There is no such collection.
        """
        from climassay.corpus import Collection
        from climassay.grounding import CollectionGroup

        listed = one_or_several(names)
        encoders = [self.encoder(Collection.open(self.workspace, name).settings.encoder) for name in listed]
        opened = (Collection.open(self.workspace, *pair) for pair in zip(listed, encoders, strict=True))
        return CollectionGroup(tuple(opened))

    def forget(self, prefix: str) -> None:
        """Let go of shared things whose key begins so; who holds one goes on with it."""
        with self._lock:
            for key in [key for key in self._shared if key.startswith(prefix)]:
                del self._shared[key]

    def close(self) -> None:
        """End the jobs and give back the database."""
        self.jobs.close()
        super().close()


def app_state_of(request: Request) -> AppState:
    """The state of the application that answers a request."""
    return cast(AppState, request.app.state.climassay)


App = Annotated[AppState, Depends(app_state_of)]
