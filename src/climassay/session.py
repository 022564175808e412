"""A session: a workspace with its records, models, collections and encoders, opened once by whoever is in front.

Commands, pages, the demo and the calls of :mod:`climassay.api` open one and do their work over it::

    with Session.opened("my-project") as session:
        climassay.ask("How much has the sea level risen?", "ipcc", model="openai:gpt-4o-mini", workspace=session)
        climassay.check_claim("Volcanoes emit more CO2 than people.", "ipcc", workspace=session)

Everything is opened when it is first asked for, kept, and closed with the session: the second call above would find
the collection's encoder loaded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import Field

from climassay.models.provider import MaxOutputTokens, ModelAccess, is_served, load_as_set, model_price
from climassay.progress import Progress, default_progress
from climassay.workspace import Workspace, cache_folder

if TYPE_CHECKING:
    from climassay.distributed import WorkerPool
    from climassay.factcheck import DebateResources, DebateSettings
    from climassay.grounding import CollectionGroup
    from climassay.learning import ActivationStore
    from climassay.models import Generator
    from climassay.models.contract import Encoder
    from climassay.records import RecordedModel, Records, Run


FEW = 50
"""Items that need no progress bar, where each takes a moment."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions(ModelAccess):
    """How models are reached, loaded and asked; None leaves it to the model or its server."""

    deadline: Annotated[
        float | None,
        Field(
            ge=1, description="Seconds after which a request to an openai: model counts as failed, retries included."
        ),
    ] = None
    max_output_tokens: MaxOutputTokens = None
    prompts: Annotated[
        Path | None, Field(description="Folder of your own prompt templates (see climassay prompts export).")
    ] = None
    no_cache: bool = False
    """Ask everything again instead of using stored answers."""

    def fitting(self, name: str) -> Self:
        """The options that go with a model, where several may be asked: no server for a local one."""
        from climassay.models.servers import OPENAI

        if not is_served(name):
            return replace(self, base_url=None, reasoning_effort=None)
        server = self.base_url if name.startswith(f"{OPENAI}:") else None
        return replace(self, base_url=server, dtype=None, device=None)

    def fitting_each(self, names: Iterable[str]) -> dict[str, Self]:
        """The options that go with each of several models, by name.

        Each gets all of them where one goes with none of the models, so that it is refused when they are loaded.
        """
        results = {name: self.fitting(name) for name in names}
        for option in ("base_url", "reasoning_effort", "dtype", "device"):
            if getattr(self, option) is not None and all(getattr(one, option) is None for one in results.values()):
                return dict.fromkeys(results, self)
        return results

    def open_model(
        self,
        name: str,
        folder: Path,
        *,
        pool: "WorkerPool | None" = None,
        base_url: str | None = None,
        dtype: str | None = None,
    ) -> "Generator":
        """Load a model by its name, into the workers where there are some.

        Args:
            name: Its name.
            folder: The workspace, in which it is kept what a server's model can do.
            pool: The workers.
            base_url: Its server where the options name none.
            dtype: Number format of a local model where the options name none, for example that of a trained file.

        Raises:
            ModelError: There is no such model, or it cannot be loaded.
            InputError: Its options do not go together.
        """
        return load_as_set(
            name,
            self,
            folder,
            deadline=self.deadline,
            load=None if pool is None else pool.load_model,
            base_url=self.base_url or base_url,
            dtype=self.dtype or (None if is_served(name) else dtype or None),
        )


class Session:
    """A workspace and what is open in it.

    Args:
        workspace: Where collections and records lie, or its folder, which is made when it is first used; None for the
            workspace of the command line.
        options: How models are loaded and asked.
        progress: Shows how far long work is; by default bars in a notebook, nothing elsewhere.
        pool: Workers of a cluster, in which models and encoders compute.
        records_url: Database of the records; by default the workspace's.
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
        self._place = workspace
        # Commands add options of their own, which are no part of how a model is asked.
        self.options = ModelOptions(**{one.name: getattr(options, one.name) for one in fields(ModelOptions)})
        self.progress = progress or default_progress()
        self.pool = pool
        self._records_url = records_url
        self._stack = ExitStack()
        self._models: dict[tuple[str, ModelOptions, str | None], Generator] = {}
        self._encoders: dict[str, Encoder] = {}

    @classmethod
    @contextmanager
    def opened(
        cls,
        place: "Session | Workspace | Path | str | None" = None,
        options: ModelOptions | None = None,
        *,
        progress: Progress | None = None,
        pool: "WorkerPool | None" = None,
        records_url: str | None = None,
    ) -> Iterator["Session"]:
        """A session, closed at the end; one that is open already stays open.

        Args:
            place: A session, a workspace, its folder, or None for the workspace of the command line.
            options: As for :class:`Session`.
            progress: As for :class:`Session`.
            pool: As for :class:`Session`.
            records_url: As for :class:`Session`.
        """
        if isinstance(place, Session):
            yield place
            return
        with cls(place, options or ModelOptions(), progress=progress, pool=pool, records_url=records_url) as session:
            yield session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what was opened: records and models."""
        self._models.clear()
        self._encoders.clear()
        self.__dict__.pop("records", None)
        self._stack.close()

    @cached_property
    def workspace(self) -> Workspace:
        """Where collections and records lie.

        Raises:
            InputError: The folder cannot be made.
        """
        return self._place if isinstance(self._place, Workspace) else Workspace.open(self._place)

    @cached_property
    def records(self) -> "Records":
        """The store of requests, answers and runs."""
        from climassay.records import Records

        return self._stack.enter_context(Records(self._records_url or self.workspace.records_url))

    @property
    def records_of_runs(self) -> "Records | None":
        """The records, if a run was begun in them."""
        records: Records | None = self.__dict__.get("records")
        return records if records is not None and records.latest_runs else None

    @contextmanager
    def run(
        self, command: str, config: Mapping[str, object], seeds: Mapping[str, int] | None = None
    ) -> Iterator["Run"]:
        """A run in the records.

        Args:
            command: What it does, by the name of its command.
            config: Everything that decides the outcome.
            seeds: Seeds by what they draw.
        """
        with self.records.run(command=command, config=dict(config), seeds=dict(seeds or {})) as run:
            yield run

    def model(
        self,
        given: "Generator | str",
        *,
        options: ModelOptions | None = None,
        base_url: str | None = None,
        dtype: str | None = None,
    ) -> "Generator":
        """The model of a name, loaded once and closed with the session; a loaded one is given back as it is.

        Args:
            given: A model or its name.
            options: How it is loaded, where that is not as the session says.
            base_url: Its server, where the options name none.
            dtype: Number format of a local model that a trained file reads; an option goes before it.

        Raises:
            InputError: The name is not understood, or an option does not go with the model.
            ModelError: The model cannot be loaded.
        """
        if not isinstance(given, str):
            return given
        chosen = replace(options or self.options, base_url=(options or self.options).base_url or base_url)
        key = given, chosen, dtype
        if key not in self._models:
            with self.progress.status(f"Loading {given} ..."):
                loaded = chosen.open_model(given, self.workspace.root, pool=self.pool, dtype=dtype)
            self._stack.callback(loaded.close)
            self._models[key] = loaded
        return self._models[key]

    def load(self, name: str, *, base_url: str | None = None, dtype: str | None = None) -> "Generator":
        """The model of a name with those options that go with it: for rooms that load models which a file names.

        Args:
            name: Its name.
            base_url: As for :meth:`model`.
            dtype: As for :meth:`model`.

        Raises:
            InputError: The name is not understood, or an option does not go with the model.
            ModelError: The model cannot be loaded.
        """
        return self.model(name, options=self.options.fitting(name), base_url=base_url, dtype=dtype)

    def progress_of(self, count: int) -> Progress:
        """How progress of so many items is shown: not at all where they are done at once."""
        return self.progress if count >= FEW else Progress()

    def recorded(self, model: "Generator", run: "Run") -> "RecordedModel":
        """A model whose answers are kept, and taken from the records where they are there."""
        from climassay.records import RecordedModel

        return RecordedModel(model, self.records, run, use_cache=not self.options.no_cache)

    def encoder(self, name: str | None = None) -> "Encoder":
        """An encoder, loaded once; the bundled one where none is named."""
        from climassay.models.encoders import BUNDLED_ENCODER, load_encoder

        wanted = name or BUNDLED_ENCODER
        if wanted not in self._encoders:
            self._encoders[wanted] = load_encoder(wanted)
        return self._encoders[wanted]

    def collections(self, names: str | Sequence[str]) -> "CollectionGroup":
        """Collections by name, in one group; encoders are loaded once a session.

        Raises:
            InputError: No name, a name twice, or no such collection.
        """
        from climassay.corpus import Collection
        from climassay.grounding import open_collections

        listed = one_or_several(names)
        known = None
        if listed and self._encoders:
            known = self._encoders.get(Collection.open(self.workspace, listed[0]).settings.encoder)
        group = open_collections(self.workspace, listed, encoder=known)
        for one in group.collections:
            self._encoders.setdefault(one.settings.encoder, one.encoder)
        return group

    @cached_property
    def activations(self) -> "ActivationStore":
        """Hidden states that were read before; without the cache, those of this session alone."""
        from tempfile import TemporaryDirectory

        from climassay.learning import ActivationStore

        if self.options.no_cache:
            return ActivationStore(Path(self._stack.enter_context(TemporaryDirectory(prefix="climassay-"))))
        return ActivationStore(cache_folder() / "activations")

    def debate(self, settings: "DebateSettings", model: "Generator | None" = None) -> "DebateResources":
        """Models, collections and encoder of a debate.

        Args:
            settings: Who debates, and by which rules.
            model: Speaks for everybody; by default each model that the settings name is loaded.

        Raises:
            InputError: A collection is not there, or an option goes with none of the models.
            ModelError: A model cannot be loaded.
        """
        from climassay.factcheck import DebateResources
        from climassay.factcheck.checking import collections_of, models_of
        from climassay.factcheck.scales import load_scale

        load_scale(settings.scale)  # a wrong name is reported before models are loaded
        groups = {name: self.collections(name) for name in collections_of(settings)}
        limits: dict[str, Any] = {
            "max_output_tokens": settings.max_output_tokens,
            "reasoning_effort": settings.reasoning_effort,
        }
        own = replace(self.options, **{name: value for name, value in limits.items() if value is not None})
        if model is not None:
            models = {settings.model: model}
        else:
            models = {
                name: self.model(name, options=fitting)
                for name, fitting in own.fitting_each(models_of(settings)).items()
            }
        given = self.options.price_in, self.options.price_out
        prices = {name: model_price(name, *given, self.workspace.root) for name in models}
        first = next(iter(groups.values()), None)
        return DebateResources(
            models,
            groups,
            {name: price for name, price in prices.items() if price is not None and is_served(name)},
            first.encoder if first else self.encoder(),
        )


Given = TypeVar("Given", bound=str | Path)
Place = Session | Workspace | Path | str | None
"""A session, a workspace, its folder, or None for the workspace of the command line."""


def one_or_several(given: Given | Iterable[Given]) -> tuple[Given, ...]:
    """One name or path, or several, as several."""
    return (given,) if isinstance(given, (str, Path)) else tuple(given)
