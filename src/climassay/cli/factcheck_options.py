"""What the commands of fact-checking share: who debates, by which rules, with which models and collections."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.model_options import LoadingOptions
from climassay.cli.output import WorkspaceOption
from climassay.cli.ray_option import RayOptions
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.factcheck.checking import Company
    from climassay.factcheck.configuration import DebateSettings
    from climassay.models.openai_prices import Price
    from climassay.records import Records
    from climassay.workspace import Workspace


class SplitChoice(StrEnum):
    """Who splits claims."""

    model = "model"
    rules = "rules"
    none = "none"


class ElicitationChoice(StrEnum):
    """How verdicts are decided."""

    auto = "auto"
    scored = "scored"
    schema = "schema"


class WordingChoice(StrEnum):
    """How long the prompts are."""

    auto = "auto"
    full = "full"
    brief = "brief"


class MediatorChoice(StrEnum):
    """The mediator's standpoint."""

    auto = "auto"
    expert = "expert"
    neutral = "neutral"


class DecideChoice(StrEnum):
    """Where the verdict comes from."""

    mediator = "mediator"
    pool = "pool"


@dataclass(frozen=True)
class DebateOptions(LoadingOptions, RayOptions):
    """Who debates, and by which rules; what is named here overrides the configuration file."""

    config: Annotated[
        Path | None, typer.Option(help="TOML file of the debate: climassay factcheck init writes one.")
    ] = None
    collection: Annotated[
        list[str] | None,
        typer.Option(
            "--collection", "-c", help="An advocate with this collection (A+B: two; A=0.5: authority 0.5); repeat."
        ),
    ] = None
    plain: Annotated[bool, typer.Option("--plain", help="Let the model itself take part, without passages.")] = False
    adversary: Annotated[
        list[str] | None, typer.Option(help="An adversarial advocate with this collection; repeat.")
    ] = None
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="local:smollm2 (default), local:FOLDER_OR_HUB_ID or openai:MODEL."),
    ] = None
    scale: Annotated[
        str | None,
        typer.Option(
            help="accuracy (default: five steps from false to true), climate-feedback (its twelve verdicts), "
            "climate-fever, science-feedback, binary, or a .toml file."
        ),
    ] = None
    rounds: Annotated[int | None, typer.Option(min=1, help="Most rounds of debate.")] = None
    split: Annotated[SplitChoice | None, typer.Option(help="Who splits the claim into statements.")] = None
    passages: Annotated[int | None, typer.Option("--passages", "-k", min=1, help="Passages an advocate.")] = None
    excerpt_words: Annotated[
        int | None, typer.Option(min=0, help="Words of each passage nearest to the claim; 0: the whole passage.")
    ] = None
    rerank: Annotated[
        bool | None, typer.Option("--rerank/--no-rerank", help="Choose among four times as many passages.")
    ] = None
    elicitation: Annotated[
        ElicitationChoice | None, typer.Option(help="Verdicts by scored options or by a JSON answer.")
    ] = None
    wording: Annotated[WordingChoice | None, typer.Option(help="Full prompts, or brief ones for small models.")] = None
    verdict_first: Annotated[
        bool | None, typer.Option("--verdict-first/--verdict-last", help="Decide before the assessment is written.")
    ] = None
    calibrated: Annotated[
        bool | None, typer.Option("--calibrate/--no-calibrate", help="Correct scores by a content-free prompt.")
    ] = None
    context_prefix: Annotated[
        bool | None, typer.Option("--prefix/--no-prefix", help="Put claims into a climate-change context.")
    ] = None
    check_claims: Annotated[
        bool | None,
        typer.Option("--screen/--no-screen", help="Do not debate what is not checkable or not about climate."),
    ] = None
    latest_only: Annotated[
        bool | None, typer.Option("--latest-only/--all-editions", help="Latest edition of each document only.")
    ] = None
    mediator: Annotated[MediatorChoice | None, typer.Option(help="expert, neutral, or what fits.")] = None
    decide: Annotated[
        DecideChoice | None, typer.Option(help="Verdict by the mediator, or pooled from the advocates' probabilities.")
    ] = None
    head: Annotated[
        str | None, typer.Option(metavar="FILE", help="A verdict head: climassay factcheck-head train.")
    ] = None
    entailment: Annotated[
        bool | None, typer.Option("--entailment/--no-entailment", help="Measure whether citations entail sentences.")
    ] = None
    leave_one_out: Annotated[
        bool | None, typer.Option("--leave-one-out/--all-in", help="Ask the mediator again without each advocate.")
    ] = None
    text_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of a draft or an explanation.")] = None
    seed: Annotated[int | None, typer.Option(help="Of everything that is drawn.")] = None
    workspace: WorkspaceOption = None

    def settings(self) -> "DebateSettings":
        """The debate.

        Raises:
            InputError: The configuration does not fit, or nobody debates.
        """
        from climassay.factcheck.configuration import DebateSettings, advocates_from_names, load_settings

        base = load_settings(self.config) if self.config else DebateSettings()
        names = ("model", "scale", "rounds", "split", "elicitation", "wording", "verdict_first", "calibrated",
                 "context_prefix", "check_claims", "latest_only", "head", "entailment", "leave_one_out",
                 "text_tokens", "seed", "max_output_tokens", "reasoning_effort")  # fmt: skip
        changed = {name: _plain(value) for name in names if (value := getattr(self, name)) is not None}
        advocates = base.advocates
        if self.collection or self.plain or self.adversary:
            advocates = advocates_from_names(self.collection or (), plain=self.plain, adversaries=self.adversary or ())
        if not advocates:
            raise InputError("Nobody debates: name a collection (--collection NAME), --plain, or a file (--config).")
        every = {"passages": self.passages, "excerpt_words": self.excerpt_words, "rerank": self.rerank}
        own: dict[str, Any] = {name: value for name, value in every.items() if value is not None}
        mediator = {"style": _plain(self.mediator), "decide": _plain(self.decide)}
        given = {name: value for name, value in mediator.items() if value is not None}
        return replace(
            base,
            **changed,
            advocates=tuple(replace(advocate, **own) for advocate in advocates),
            mediator=replace(base.mediator, **given),
        )


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value


@dataclass(frozen=True)
class Room:
    """Everything that a debate needs, opened."""

    workspace: "Workspace"
    store: "Records"
    settings: "DebateSettings"
    company: "Company"


@contextmanager
def opened(options: DebateOptions, *, quiet: bool) -> Iterator[Room]:
    """Load models, open collections and records.

    Raises:
        InputError: A collection is not there, or a setting does not fit.
    """
    from climassay.factcheck.checking import Company, collections_of, head_dtype, models_of
    from climassay.factcheck.scales import load_scale
    from climassay.grounding import open_collections
    from climassay.records import Records
    from climassay.workspace import Workspace

    settings = options.settings()
    load_scale(settings.scale)  # a wrong name is told before models are loaded
    place = Workspace.open(options.workspace)
    with ExitStack() as stack:
        groups: dict[str, Any] = {}
        encoder = None
        for name in collections_of(settings):
            groups[name] = open_collections(place, [name], encoder=encoder)
            encoder = groups[name].encoder
        pool = stack.enter_context(options.opened(quiet=quiet))
        models: dict[str, Any] = {}
        loading = replace(
            options, max_output_tokens=settings.max_output_tokens, reasoning_effort=settings.reasoning_effort
        )
        for name, fitting in loading.fitting_each(models_of(settings)).items():
            dtype = head_dtype(settings) if name == settings.model else None
            models[name] = fitting.load(name, place, quiet=quiet, pool=pool, dtype=dtype)
            stack.callback(models[name].close)
        store = stack.enter_context(Records(place.records_url))
        yield Room(place, store, settings, Company(models, groups, _prices(options, place, models), _encoder(encoder)))


def _encoder(first: Any) -> Any:
    """The collections' encoder; the bundled one where no collection takes part."""
    if first is not None:
        return first
    from climassay.models.encoder import load_encoder

    return load_encoder("local:minilm")


def _prices(options: DebateOptions, place: "Workspace", models: dict[str, Any]) -> "dict[str, Price]":
    from climassay.models.openai_prices import find_price, price_from_options
    from climassay.models.servers import is_served

    given = price_from_options(options.price_in, options.price_out)
    found = {name: given or find_price(name, place.root) for name in models if is_served(name)}
    return {name: price for name, price in found.items() if price is not None}
