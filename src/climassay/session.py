"""Session: a workspace with its records, models, collections and encoders, each opened at first use and shared.

Commands, pages, the demo and the public functions work in a session::

    with Session.opened("my-project") as session:
        climassay.ask("How much has the sea level risen?", "ipcc", model="openai:gpt-4o-mini", workspace=session)
        climassay.check_claim("Volcanoes emit more CO2 than people.", "ipcc", workspace=session)

Models, encoders and collections are cached and closed with the session: the second call above reuses the encoder of the
first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from climassay.models import provider
from climassay.models.options import ModelOptions
from climassay.progress import Progress, default_progress
from climassay.workspace import Workspace, cache_folder

if TYPE_CHECKING:
    from climassay.distributed import WorkerPool
    from climassay.grounding import CollectionGroup
    from climassay.learning import ActivationStore
    from climassay.models import Generator
    from climassay.models.contract import Encoder
    from climassay.records import RecordedModel, Records, Run


MIN_ITEMS_FOR_PROGRESS = 50
"""Minimum number of items for which a progress bar is shown if each item takes little time."""


class Session:
    """Workspace in use, with the records, models, collections and encoders opened so far.

    Args:
        workspace: Workspace of the collections and records, or its folder, which is created at first use; None for the
            workspace of the command line.
        options: Options for loading and calling models.
        progress: Progress display for long-running work; by default progress bars in a notebook, nothing elsewhere.
        pool: Worker pool of a cluster that runs models and encoders; by default they run in this process.
        records_url: URL of the records database; by default that of the workspace.
    """

    def __init__(
        self,
        workspace: Workspace | Path | str | None = None,
        options: ModelOptions = ModelOptions(),
        *,
        progress: Progress | None = None,
        pool: "WorkerPool | None" = None,
        records_url: str | None = None,
    ) -> None:
        self._workspace = workspace
        self.options = options
        self.progress = progress or default_progress()
        self.pool = pool
        self._records_url = records_url
        self._stack = ExitStack()
        self._models: dict[tuple[str, ModelOptions], Generator] = {}
        self._encoders: dict[str, Encoder] = {}

    @classmethod
    @contextmanager
    def opened(
        cls,
        workspace: "Session | Workspace | Path | str | None" = None,
        options: ModelOptions | None = None,
        *,
        progress: Progress | None = None,
        pool: "WorkerPool | None" = None,
        records_url: str | None = None,
    ) -> Iterator["Session"]:
        """Yield a new session and close it afterwards; if ``workspace`` is a session, yield it and leave it open.

        Args:
            workspace: A session, a workspace, its folder, or None for the workspace of the command line.
            options: Options for loading and calling models.
            progress: Progress display for long-running work; by default progress bars in a notebook, nothing elsewhere.
            pool: Worker pool of a cluster that runs models and encoders; by default they run in this process.
            records_url: URL of the records database; by default that of the workspace.
        """
        if isinstance(workspace, Session):
            yield workspace
            return
        with cls(
            workspace, options or ModelOptions(), progress=progress, pool=pool, records_url=records_url
        ) as session:
            yield session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the records and the models, and release the encoders."""
        self._models.clear()
        self._encoders.clear()
        self.__dict__.pop("records", None)
        self._stack.close()

    @cached_property
    def workspace(self) -> Workspace:
        """Workspace of the collections and records; its folder is created at first use.

        Raises:
            InputError: The folder cannot be created.
        """
        return self._workspace if isinstance(self._workspace, Workspace) else Workspace.open(self._workspace)

    @property
    def records_url(self) -> str:
        """URL of the records database."""
        return self._records_url or self.workspace.records_url

    @cached_property
    def records(self) -> "Records":
        """Records of requests, answers and runs; the database is opened at first use."""
        from climassay.records import Records

        return self._stack.enter_context(Records(self.records_url))

    @property
    def records_of_runs(self) -> "Records | None":
        """Records of this session; None if no run was started in this session."""
        records: Records | None = self.__dict__.get("records")
        return records if records is not None and records.latest_runs else None

    @contextmanager
    def run(
        self, command: str, config: Mapping[str, object], seeds: Mapping[str, int] | None = None
    ) -> Iterator["Run"]:
        """Start a run in the records, yield it, and end it after the block.

        ``config`` are the settings and inputs on which the results depend, and ``seeds`` the random seeds by purpose.
        """
        with self.records.run(command=command, config=dict(config), seeds=dict(seeds or {})) as run:
            yield run

    def model(self, model: "Generator | str", options: ModelOptions | None = None) -> "Generator":
        """Return the model with the given name, loading it only once per session; return a loaded model unchanged.

        Raises:
            InputError: The name is invalid, or an option does not apply to the model.
            ModelError: The model cannot be loaded.
        """
        if not isinstance(model, str):
            return model
        key = model, options or self.options
        if key not in self._models:
            load = provider.load_model if self.pool is None else self.pool.load_model
            with self.progress.status(f"Loading {model} ..."):
                loaded = load(*key, folder=self.workspace.root)
            self._stack.callback(loaded.close)
            self._models[key] = loaded
        return self._models[key]

    def load(self, name: str, defaults: ModelOptions = ModelOptions()) -> "Generator":
        """Load a model with those of the session's options that apply to it.

        ``defaults`` are values for options that the session does not set.

        Raises:
            InputError: The name is invalid, or an option does not apply to the model.
            ModelError: The model cannot be loaded.
        """
        return self.model(name, self.options.with_defaults(defaults).fitting(name))

    def progress_of(self, count: int) -> Progress:
        """Return the session's progress display, or a silent display if ``count`` is low."""
        return self.progress if count >= MIN_ITEMS_FOR_PROGRESS else Progress()

    def recorded(self, model: "Generator", run: "Run") -> "RecordedModel":
        """Wrap a model so that its answers are stored in the records, and reused if they are stored already."""
        from climassay.records import RecordedModel

        return RecordedModel(model, self.records, run, use_cache=not self.options.no_cache)

    def encoder(self, name: str | None = None) -> "Encoder":
        """Return the encoder with the given name, loaded only once per session; by default the bundled encoder."""
        from climassay.models.encoders import BUNDLED_ENCODER, load_encoder

        encoder_name = name or BUNDLED_ENCODER
        if encoder_name not in self._encoders:
            self._encoders[encoder_name] = load_encoder(encoder_name)
        return self._encoders[encoder_name]

    def collections(self, names: str | Sequence[str]) -> "CollectionGroup":
        """Open collections by name as one group; their encoders are loaded only once per session.

        Raises:
            InputError: There is no name, a name is repeated, or a collection does not exist.
        """
        from climassay.corpus import Collection
        from climassay.grounding import open_collections

        collection_names = one_or_several(names)
        encoder = None
        if collection_names and self._encoders:
            encoder = self._encoders.get(Collection.open(self.workspace, collection_names[0]).settings.encoder)
        group = open_collections(self.workspace, collection_names, encoder=encoder)
        for collection in group.collections:
            self._encoders.setdefault(collection.settings.encoder, collection.encoder)
        return group

    @cached_property
    def activations(self) -> "ActivationStore":
        """Store of cached hidden states; if the cache is disabled, a store that is deleted with the session."""
        from tempfile import TemporaryDirectory

        from climassay.learning import ActivationStore

        if self.options.no_cache:
            return ActivationStore(Path(self._stack.enter_context(TemporaryDirectory(prefix="climassay-"))))
        return ActivationStore(cache_folder() / "activations")


NameOrPath = TypeVar("NameOrPath", bound=str | Path)
Place = Session | Workspace | Path | str | None
"""Workspace that a function uses: a session, a workspace or its folder; None selects the default of the command
line."""


def one_or_several(names: NameOrPath | Iterable[NameOrPath]) -> tuple[NameOrPath, ...]:
    """Return one or several names or paths as a tuple."""
    return (names,) if isinstance(names, (str, Path)) else tuple(names)
