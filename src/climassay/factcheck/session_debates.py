"""Debates in a session: its models and collections are opened for them, and its records keep their requests."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from climassay.factcheck import checking
from climassay.factcheck.checking import Checker, DebateResources, list_collections, list_models, set_up_debate
from climassay.factcheck.configuration import DebateSettings
from climassay.factcheck.scales import load_scale
from climassay.models import Generator
from climassay.models.provider import is_served, model_price
from climassay.session import Place, Session
from climassay.settings import with_changes

if TYPE_CHECKING:
    from climassay.factcheck.estimate import DebateEstimate
    from climassay.factcheck.transcript import Claim


def load_resources(session: Session, settings: DebateSettings, model: Generator | None = None) -> DebateResources:
    """Load the models, collections, prices and encoder that a debate needs.

    Args:
        session: Session that shares its models, collections and encoders.
        settings: Settings of the debate, which name its advocates, collections and models.
        model: Model of all participants; by default the models that the settings name are loaded.

    Raises:
        InputError: A collection does not exist, or an option applies to none of the models.
        ModelError: A model cannot be loaded.
    """
    load_scale(settings.scale)  # a wrong name is reported before models are loaded
    groups = {name: session.collections(name) for name in list_collections(settings)}
    debate_options = with_changes(
        session.options, max_output_tokens=settings.max_output_tokens, reasoning_effort=settings.reasoning_effort
    )
    if model is not None:
        models = {settings.model: model}
    else:
        models = {
            name: session.model(name, model_options)
            for name, model_options in debate_options.fitting_each(list_models(settings)).items()
        }
    prices = {name: model_price(name, session.options, session.workspace.root) for name in models if is_served(name)}
    first = next(iter(groups.values()), None)
    return DebateResources(
        models,
        groups,
        {name: price for name, price in prices.items() if price is not None},
        first.encoder if first else session.encoder(),
    )


@contextmanager
def open_session_checker(
    session: Session,
    settings: DebateSettings,
    command: str,
    config: Mapping[str, Any],
    model: Generator | str | None = None,
) -> Iterator[Checker]:
    """Load the models and collections of debates, and yield a checker whose requests are recorded as one run.

    Args:
        session: Session in which models and collections are loaded.
        settings: Participants and rules.
        command: Command name under which the run is recorded.
        config: Further settings to record, for example the claim.
        model: Model of all participants; by default the models of the settings.

    Raises:
        InputError: The debate has no advocate, or a collection or the scale does not exist.
        ModelError: A model cannot be loaded.
    """
    loaded_model = None if model is None else session.model(model)
    if loaded_model is not None:
        settings = replace(
            settings,
            model=loaded_model.name,
            mediator=replace(settings.mediator, model=""),
            advocates=tuple(replace(advocate, model="") for advocate in settings.advocates),
        )
    with checking.open_checker(
        settings,
        load_resources(session, settings, loaded_model),
        session.records,
        command=command,
        config=dict(config),
        prompts=session.options.prompts,
        use_cache=not session.options.no_cache,
    ) as checker:
        yield checker


def estimate_debates(
    claims: "Sequence[Claim]",
    settings: DebateSettings,
    *,
    model: Generator | None = None,
    samples: int = 1,
    timed: bool = True,
    workspace: Place = None,
) -> "DebateEstimate":
    """Estimate the requests, tokens, cost and time of debates.

    Args:
        claims: Claims to be debated.
        settings: Settings of the debate.
        model: Loaded model of all participants; by default the models of the settings.
        samples: Number of debates for each claim.
        timed: Whether to time local models on a few requests. Otherwise no model is called.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A collection or the scale does not exist.
        ModelError: A model cannot be loaded.
    """
    from climassay.factcheck.estimate import estimate_debate
    from climassay.records.queries import seconds_per_answer

    with Session.opened(workspace) as session:
        resources = load_resources(session, settings, model)
        with session.progress.status("Estimating ..."):
            setup = set_up_debate(settings, resources, session.options.prompts)
            database = session.records.database
            return estimate_debate(
                setup,
                resources,
                claims,
                samples,
                lambda model: seconds_per_answer(database, model),
                timed=timed,
            )
