"""How a debate is set up: who takes part, on which scale, by which rules. A small TOML file, or flags."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from climassay.errors import InputError
from climassay.factcheck.subclaims import Splitter
from climassay.models.profiles import ProfileSettings
from climassay.settings import filled, is_tables, load_toml

DEFAULT_MODEL = "local:smollm2"
ADVERSARY_WEIGHT = 0.25
"""Authority of an advocate who argues a standpoint, where none is set."""
AdvocateKind = Literal["collection", "plain", "adversarial"]


@dataclass(frozen=True, slots=True)
class AdvocateSettings:
    """One advocate."""

    name: str
    """How the others call it, for example ``IPCC``."""
    kind: AdvocateKind = "collection"
    """``collection`` (one or several), ``plain`` (the model's own knowledge) or ``adversarial`` (argues the stance of
    its collections)."""
    collections: tuple[str, ...] = ()
    weight: float | None = None
    """Authority: 1 for an assessment such as the IPCC's, less for single abstracts. Told to the mediator in words, and
    used as a number by ``decide = "pool"``. Not set: 1, and :data:`ADVERSARY_WEIGHT` for an adversary."""
    model: str = ""
    """Its own model; empty: that of the debate."""
    stance: str = ""
    """What an adversarial advocate stands for, in one sentence."""
    passages: int | None = None
    """Put before it at a time. Not set: by the profile."""
    excerpt_words: int | None = None
    """Of each passage, its sentences nearest to the claim; 0 gives it whole. Not set: by the profile."""
    rerank: bool = False
    """Choose among four times as many passages by their nearest sentences."""
    min_cosine: float | None = None
    """Similarity below which a passage is not relevant; not set: the encoder's measured threshold."""
    about: str = ""
    """What its source is, in one line for the others; empty: the titles of its documents."""

    @property
    def authority(self) -> float:
        """The weight, or the usual one where it is not set."""
        usual = ADVERSARY_WEIGHT if self.kind == "adversarial" else 1.0
        return usual if self.weight is None else self.weight


@dataclass(frozen=True, slots=True)
class MediatorSettings:
    """The mediator."""

    style: Literal["auto", "expert", "neutral"] = "auto"
    """``expert`` trusts all sources, ``neutral`` favours none; ``auto`` is neutral where an advocate is adversarial."""
    model: str = ""
    """Empty: that of the debate."""
    decide: Literal["mediator", "pool"] = "mediator"
    """``pool`` takes the verdict from the informed advocates' probabilities, multiplied with their weights as powers;
    the mediator still asks, explains and gives levels. For models too small to weigh opinions."""


@dataclass(frozen=True, slots=True)
class DebateSettings:
    """A whole debate."""

    advocates: tuple[AdvocateSettings, ...] = ()
    mediator: MediatorSettings = field(default_factory=MediatorSettings)
    model: str = DEFAULT_MODEL
    """Of everybody who has none of its own."""
    scale: str = "accuracy"
    """Name of a scale (``accuracy`` has five steps from false to true), or a ``.toml`` file."""
    rounds: int = 3
    """At most."""
    split: Splitter = "model"
    """Who splits a claim into subclaims: ``model``, ``rules`` or ``none``."""
    elicitation: Literal["auto", "scored", "schema"] = "auto"
    """``scored`` decides by probabilities of options, ``schema`` by one JSON answer: the profile's ``scored``."""
    wording: Literal["auto", "full", "brief"] = "auto"
    """``full`` prompts state every rule; ``brief`` ones are for models too small to follow them: the profile's
    ``brief``."""
    verdict_first: bool = False
    calibrated: bool | None = None
    """Correct option probabilities by a content-free prompt; not set: by the profile."""
    context_prefix: bool = False
    """Put "This claim is made in a climate-change context:" before each claim."""
    check_claims: bool = True
    """Tell claims apart that cannot be checked or are not about climate, and do not debate them."""
    latest_only: bool = False
    """Use the latest edition of each document only."""
    head: str = ""
    """File of a trained verdict head (``climassay factcheck train``); it decides the advocates' verdicts."""
    entailment: bool = False
    """Measure whether each cited passage entails the sentence it supports."""
    leave_one_out: bool = False
    """Ask the mediator again without each advocate in turn."""
    text_tokens: int | None = None
    """Room for a draft, an explanation or a reply; not set: by the profile."""
    temperature: float = 0.0
    seed: int = 0
    max_output_tokens: int | None = None
    """Limit of every generated answer, in place of the requests' own; what a model thinks before it comes on top."""
    reasoning_effort: str | None = None
    """How much models behind a server are to think, in the provider's words."""
    profile: ProfileSettings = field(default_factory=ProfileSettings)
    """How the models are asked; what is not set follows their size, and what is set above goes before it."""

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def asked_as(self) -> ProfileSettings:
        """The profile with its entries that are set above, under the names that they had before there were profiles."""
        given: dict[str, Any] = {
            "scored": None if self.elicitation == "auto" else self.elicitation == "scored",
            "brief": None if self.wording == "auto" else self.wording == "brief",
            "calibrated": self.calibrated,
            "text_tokens": self.text_tokens,
        }
        return replace(self.profile, **{name: value for name, value in given.items() if value is not None})


def check_settings(settings: DebateSettings) -> None:
    """Whether a debate can be held like this.

    Raises:
        InputError: It cannot; the sentence says why.
    """
    names = [advocate.name for advocate in settings.advocates]
    if len({name.lower() for name in names}) < len(names):
        raise InputError(f"Every advocate needs a name of its own, got {', '.join(names)}.")
    if settings.rounds < 1:
        raise InputError("A debate has at least one round.")
    if settings.text_tokens is not None and settings.text_tokens < 1:
        raise InputError("text_tokens must be at least 1.")
    if settings.max_output_tokens is not None and settings.max_output_tokens < 1:
        raise InputError("max_output_tokens must be at least 1.")
    if not 0 <= settings.temperature < math.inf:
        raise InputError(f"The temperature must be 0 or more, got {settings.temperature}.")
    for advocate in settings.advocates:
        _check_advocate(advocate)


def _check_advocate(advocate: AdvocateSettings) -> None:
    name = advocate.name
    if not name.strip() or name.strip().lower() == "mediator":
        raise InputError(f"An advocate cannot be called {name!r}.")
    if advocate.kind == "plain" and advocate.collections:
        raise InputError(f"The plain advocate {name} has no collections: leave them out.")
    if advocate.kind != "plain" and not advocate.collections:
        raise InputError(f'The advocate {name} needs collections = ["NAME"], or kind = "plain".')
    if len(set(advocate.collections)) < len(advocate.collections):
        raise InputError(f"The advocate {name} has a collection more than once.")
    if not 0 < advocate.authority < math.inf:
        raise InputError(f"The weight of {name} must be a number above 0.")
    if (advocate.passages is not None and advocate.passages < 1) or (advocate.excerpt_words or 0) < 0:
        raise InputError(f"{name} needs at least one passage, and excerpt_words of 0 or more.")
    if advocate.min_cosine is not None and not -1 <= advocate.min_cosine <= 1:
        raise InputError(f"min_cosine of {name} must be from -1 to 1, got {advocate.min_cosine}.")


def load_settings(path: Path) -> DebateSettings:
    """Settings from a TOML file; ``climassay factcheck init`` writes one with every entry explained.

    Raises:
        InputError: The file is missing, is not TOML, or has an entry that does not fit.
    """
    return parse_settings(load_toml(path), where=str(path))


def parse_settings(data: Mapping[str, Any], *, where: str) -> DebateSettings:
    """Settings from a table with ``[[advocate]]``, ``[mediator]`` and ``[profile]``.

    Raises:
        InputError: An entry does not exist or does not fit.
    """
    values = dict(data)
    advocates = values.pop("advocate", [])
    mediator = values.pop("mediator", {})
    profile = values.pop("profile", {})
    if not is_tables(advocates) or "advocates" in values:
        raise InputError(f"{where}: advocates are tables that begin with [[advocate]].")
    if not isinstance(mediator, Mapping):
        raise InputError(f"{where}: the mediator is a table that begins with [mediator].")
    if not isinstance(profile, Mapping):
        raise InputError(f"{where}: the profile is a table that begins with [profile].")
    values["advocates"] = tuple(filled(AdvocateSettings, entry, where, "[[advocate]]") for entry in advocates)
    values["mediator"] = filled(MediatorSettings, mediator, where, "[mediator]")
    values["profile"] = filled(ProfileSettings, profile, where, "[profile]")
    return filled(DebateSettings, values, where, "the file", shown={"advocates": "advocate"})


def settings_tables(settings: DebateSettings) -> dict[str, Any]:
    """Settings as the tables of a file, which :func:`parse_settings` reads; what is not set is left out."""
    values = _set_fields(settings)
    advocates = [_set_fields(advocate) for advocate in values.pop("advocates")]
    tables = {name: _set_fields(values[name]) for name in ("mediator", "profile")}
    return {**values, **tables, "advocate": advocates}


def _set_fields(record: DebateSettings | MediatorSettings | AdvocateSettings | ProfileSettings) -> dict[str, Any]:
    values = {entry.name: getattr(record, entry.name) for entry in fields(record)}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value is not None
    }


def advocates_from_names(
    collections: Sequence[str], *, plain: bool = False, adversaries: Sequence[str] = ()
) -> tuple[AdvocateSettings, ...]:
    """Advocates named after their collections, for a debate set up by flags.

    Args:
        collections: One advocate each; ``A+B`` is one advocate with two collections, ``A=0.5`` one of weight 0.5.
        plain: Whether the model itself takes part too.
        adversaries: Collections of adversarial advocates.

    Raises:
        InputError: A weight is not a number.
    """
    made = [_named(entry, "collection") for entry in collections]
    made += [_named(entry, "adversarial") for entry in adversaries]
    if plain:
        made.append(AdvocateSettings("model", "plain"))
    return tuple(made)


def _named(entry: str, kind: AdvocateKind) -> AdvocateSettings:
    names, _, weight = entry.partition("=")
    try:
        number = float(weight) if weight else None
    except ValueError:
        raise InputError(f"{entry!r}: the weight behind = must be a number, for example abstracts=0.5.") from None
    return AdvocateSettings(names, kind, tuple(names.split("+")), weight=number)
