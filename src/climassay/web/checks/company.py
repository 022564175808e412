"""Models and collections of debates, loaded once a server."""

import threading

from climassay.corpus import Collection
from climassay.factcheck import DebateResources, PastCheck, find_past
from climassay.factcheck.checking import collections_of, head_dtype, models_of
from climassay.factcheck.configuration import DebateSettings
from climassay.grounding import CollectionGroup
from climassay.models.contract import Generator
from climassay.models.encoders.loading import BUNDLED_ENCODER
from climassay.models.servers import model_price
from climassay.web.place import Place

MOST_PAST = 5
"""Past checks shown before a claim is checked again."""


def company_of(place: Place, settings: DebateSettings) -> DebateResources:
    """Whom and what a debate needs.

    Models and encoders are loaded once a server. Collections are opened anew, which takes milliseconds: one that was
    added to, or removed and made again, is seen as it is now.

    Raises:
        InputError: A collection is not there, or a name of a model is not understood.
        ModelError: A model cannot be loaded.
    """
    models = {name: _model(place, name, settings) for name in models_of(settings)}
    groups = {name: _collection(place, name) for name in collections_of(settings)}
    priced = {name: model_price(name, None, None, place.workspace.root) for name in models}
    prices = {name: price for name, price in priced.items() if price is not None}
    first = next(iter(groups.values()), None)
    return DebateResources(models, groups, prices, first.encoder if first else place.encoder(BUNDLED_ENCODER))


def similar_checks(place: Place, claim: str) -> list[PastCheck]:
    """Debates about the same claim or a similar one, the nearest first."""
    encoder = place.encoder(BUNDLED_ENCODER)
    # Vectors of claims are kept in one file, which two threads must not write at once.
    with place.shared("past checks", threading.Lock):
        return find_past(place.records, claim, encoder, most=MOST_PAST)


def _model(place: Place, name: str, settings: DebateSettings) -> Generator:
    limits = {
        "max_output_tokens": settings.max_output_tokens,
        "reasoning_effort": settings.reasoning_effort,
        "dtype": head_dtype(settings) if name == settings.model else None,
    }
    own = {option: value for option, value in limits.items() if value is not None}
    key = " ".join((f"model {name}", *(f"{option}={value}" for option, value in own.items())))
    return place.shared(key, lambda: place.settings.load(name, place.workspace, **own))


def _collection(place: Place, name: str) -> CollectionGroup:
    made_with = Collection.open(place.workspace, name).settings.encoder
    return CollectionGroup((Collection.open(place.workspace, name, place.encoder(made_with)),))
