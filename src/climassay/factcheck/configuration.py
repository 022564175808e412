"""Settings of debates (a TOML file or options), and filters of lists of checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from climassay.errors import InputError
from climassay.prompts import ProfileSettings
from climassay.settings import commented_table, is_table_list, load_toml, parse_table, settings

DEFAULT_MODEL = "local:smollm2"
ADVERSARY_WEIGHT = 0.25
"""Default weight of an adversarial advocate, see :attr:`AdvocateSettings.weight`."""
AdvocateKind = Literal["collection", "plain", "adversarial"]
Splitter = Literal["model", "rules", "whole"]


@settings(subject="The advocate")
class AdvocateSettings:
    """Settings of an advocate."""

    name: str
    """Name by which the other participants address the advocate."""
    kind: Annotated[AdvocateKind, Field(examples=["collection"])] = "collection"
    """Source of knowledge: collection (one or several collections), plain (the model's own knowledge) or adversarial
    (collections whose stance the advocate argues)."""
    collections: Annotated[tuple[str, ...], Field(examples=[("ipcc",)])] = ()
    """Names of the collections to search."""
    weight: Annotated[float | None, Field(gt=0, allow_inf_nan=False, examples=[1.0])] = None
    """Authority: 1 for an assessment such as the IPCC's, 0.5 for medium, less for low authority; by default 1, or 0.25
    for an adversary. Prompts state it as high, medium or low."""
    model: Annotated[str, Field(examples=["local:my-model"])] = ""
    """Model of the advocate; by default the debate's model."""
    stance: Annotated[str, Field(examples=["present warming is natural and nothing to worry about"])] = ""
    """Standpoint of an adversarial advocate, in one sentence."""
    passages: Annotated[int | None, Field(ge=1, examples=[8])] = None
    """Maximum number of passages in a prompt; by default 8, or 4 for a small model."""
    excerpt_words: Annotated[int | None, Field(ge=0, examples=[120])] = None
    """Maximum number of words per passage; the sentences nearest to the claim are selected, and 0 keeps whole
    passages."""
    rerank: bool = False
    """Retrieve four times as many passages as needed, and rerank them by the similarity of their best sentences to the
    claim."""
    min_cosine: Annotated[float | None, Field(ge=-1, le=1, examples=[0.4])] = None
    """Minimum cosine similarity of a relevant passage; by default the threshold measured for the encoder."""
    about: Annotated[str, Field(examples=["..."])] = ""
    """Description of the source in one line; by default the titles of its documents."""

    @property
    def authority(self) -> float:
        """Weight of the advocate; by default 1, or 0.25 for an adversarial advocate."""
        default_weight = ADVERSARY_WEIGHT if self.kind == "adversarial" else 1.0
        return default_weight if self.weight is None else self.weight


@settings(subject="The mediator")
class MediatorSettings:
    """Settings of the mediator."""

    style: Literal["auto", "expert", "neutral"] = "auto"
    """Attitude to sources: expert trusts all, neutral favours none; auto is neutral if there is an adversary, otherwise
    expert."""
    model: Annotated[str, Field(examples=["openai:gpt-4o"])] = ""
    """Model of the mediator; by default the debate's model."""


@settings(subject="The debate")
class DebateSettings:
    """Settings of a debate."""

    advocates: tuple[AdvocateSettings, ...] = ()
    mediator: MediatorSettings = field(default_factory=MediatorSettings)
    model: str = DEFAULT_MODEL
    """Model of all participants without one of their own: local:HUB_ID_OR_FOLDER or openai:MODEL."""
    scale: str = "accuracy"
    """Scale of verdicts: accuracy (five steps from false to true), climate-feedback (twelve verdicts), climate-fever,
    science-feedback, binary, or a .toml file."""
    rounds: Annotated[int, Field(ge=1)] = 3
    """Maximum number of rounds of debate."""
    split: Splitter = "model"
    """Method of splitting the claim into statements: by a model, by rules, or not at all (whole)."""
    context_prefix: bool = False
    """Put "This claim is made in a climate-change context:" before each claim."""
    check_claims: bool = True
    """Refuse claims that cannot be checked or are not about climate."""
    latest_only: bool = False
    """Use only the latest edition of each document."""
    entailment: bool = False
    """Measure whether cited passages entail the sentences they support."""
    leave_one_out: bool = False
    """Repeat the mediator's assessment without each advocate in turn."""
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Sampling temperature of generated answers; 0 is greedy decoding."""
    seed: int = 0
    """Random seed."""
    max_output_tokens: Annotated[int | None, Field(ge=1, examples=[4000])] = None
    """Maximum number of tokens of each generated answer, not counting reasoning tokens."""
    reasoning_effort: Annotated[str | None, Field(examples=["low"])] = None
    """Reasoning effort of models behind a server, as the provider names it."""
    profile: ProfileSettings = field(default_factory=ProfileSettings)
    """Limits of the prompts; missing ones depend on the size of the debate's model."""

    def __post_init__(self) -> None:
        names = [advocate.name for advocate in self.advocates]
        if len({name.lower() for name in names}) < len(names):
            raise InputError(f"Every advocate needs a name of its own, got {', '.join(names)}.")
        for advocate in self.advocates:
            name = advocate.name
            if not name.strip() or name.strip().lower() == "mediator":
                raise InputError(f"An advocate cannot be called {name!r}.")
            if advocate.kind == "plain" and advocate.collections:
                raise InputError(f"The plain advocate {name} has no collections: leave them out.")
            if advocate.kind != "plain" and not advocate.collections:
                raise InputError(f'The advocate {name} needs collections = ["NAME"], or kind = "plain".')
            if len(set(advocate.collections)) < len(advocate.collections):
                raise InputError(f"The advocate {name} has a collection more than once.")


def load_settings(path: Path) -> DebateSettings:
    """Load settings from a TOML file; ``climassay factcheck init`` writes a commented example.

    Raises:
        InputError: The file is missing or is not TOML, or an entry is unknown or invalid.
    """
    return parse_settings(load_toml(path), where=str(path))


def parse_settings(data: Mapping[str, Any], *, where: str) -> DebateSettings:
    """Return settings from the tables of a TOML file: ``[[advocate]]``, ``[mediator]`` and ``[profile]``.

    Args:
        data: Parsed TOML.
        where: Name of the file, for error messages.

    Raises:
        InputError: An entry is unknown or invalid.
    """
    values = dict(data)
    advocates = values.pop("advocate", [])
    if not is_table_list(advocates) or "advocates" in values:
        raise InputError(f"{where}: advocates are tables that begin with [[advocate]].")
    values["advocates"] = tuple(parse_table(AdvocateSettings, entry, where, "[[advocate]]") for entry in advocates)
    values["mediator"] = parse_table(MediatorSettings, values.get("mediator", {}), where, "[mediator]")
    values["profile"] = parse_table(ProfileSettings, values.get("profile", {}), where, "[profile]")
    return parse_table(DebateSettings, values, where, "the file", file_names={"advocates": "advocate"})


def settings_tables(settings: DebateSettings) -> dict[str, Any]:
    """Convert settings to the tables of a TOML file, the inverse of :func:`parse_settings`; None values are omitted."""
    values = _collect_fields(settings)
    advocates = [_collect_fields(advocate) for advocate in values.pop("advocates")]
    tables = {name: _collect_fields(values[name]) for name in ("mediator", "profile")}
    return {**values, **tables, "advocate": advocates}


def _collect_fields(record: DebateSettings | MediatorSettings | AdvocateSettings | ProfileSettings) -> dict[str, Any]:
    values = {entry.name: getattr(record, entry.name) for entry in fields(record)}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value is not None
    }


def advocates_from_names(
    collections: Sequence[str], *, plain: bool = False, adversaries: Sequence[str] = ()
) -> tuple[AdvocateSettings, ...]:
    """Return advocates named after their collections.

    Args:
        collections: One entry per advocate: the name of a collection, ``A+B`` for two collections, or ``A=0.5`` for the
            weight 0.5.
        plain: Whether to add an advocate without collections.
        adversaries: One entry of the same form per adversarial advocate.

    Raises:
        InputError: A weight is not a number.
    """
    advocates = []
    kinds: tuple[tuple[AdvocateKind, Sequence[str]], ...] = (("collection", collections), ("adversarial", adversaries))
    for kind, entries in kinds:
        for entry in entries:
            names, _, weight = entry.partition("=")
            try:
                number = float(weight) if weight else None
            except ValueError:
                raise InputError(
                    f"{entry!r}: the weight after = must be a number, for example abstracts=0.5."
                ) from None
            advocates.append(AdvocateSettings(names, kind, tuple(names.split("+")), weight=number))
    return (*advocates, AdvocateSettings("model", "plain")) if plain else tuple(advocates)


_EXAMPLES = """\
# One table for each advocate. Make its collections first: climassay corpus add ipcc reports/*.pdf
{}
[[advocate]]
name = "abstracts"
collections = ["abstracts"]
weight = 0.4

# The model's own knowledge, without passages (Climinator+):
# [[advocate]]
# name = "model"
# kind = "plain"
# weight = 0.4

# An advocate that argues the stance of its source; the mediator is then neutral:
# [[advocate]]
# name = "contrarian"
# kind = "adversarial"
# collections = ["pamphlet"]
# weight = 0.25                         # an adversary's is low where none is set
# stance = "present warming is natural and nothing to worry about"
"""
COMMENTED = "\n".join(
    (
        "# A debate about climate claims: who takes part, and by which rules.\n"
        '# climassay check "CLAIM" --config this-file.toml\n',
        commented_table(DebateSettings, exclude=("advocates", "mediator", "profile")),
        commented_table(MediatorSettings, "[mediator]"),
        commented_table(ProfileSettings, "[profile]                               # How the models are asked"),
        _EXAMPLES.format(
            commented_table(
                AdvocateSettings,
                "[[advocate]]",
                values={"name": "IPCC", "collections": ("ipcc",), "weight": 1.0},
                exclude=("kind", "stance"),
            )
        ),
    )
)
"""Content of the file that ``climassay factcheck init`` writes."""


Reviewed = Literal["agreed", "disagreed", "divided", "commented", "unreviewed"]
"""Majority opinion of a check's reviewers; ``divided`` if as many agree as disagree, ``commented`` if all reviewers are
undecided."""


_TEXT: dict[str, Any] = {"pattern": r"^[^\x00]*$", "max_length": 200}
_DAY = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})?$"


@dataclass(frozen=True, slots=True)
class CheckFilter:
    """Filter of a list of checks; empty fields match all checks."""

    words: Annotated[
        str,
        Field(description="Words that all occur in the claim or its source, ignoring case.", alias="q", **_TEXT),
    ] = ""
    verdict: Annotated[
        str, Field(description="Label of the verdict, or the outcome of a check without one.", **_TEXT)
    ] = ""
    review: Annotated[
        Reviewed | Literal[""],
        Field(description="Majority opinion of the reviewers: agreed, disagreed, divided, commented or unreviewed."),
    ] = ""
    topic: Annotated[
        str, Field(description="CARDS code of the contrarian claim it makes (2.1), or of a group (2).", **_TEXT)
    ] = ""
    collection: Annotated[str, Field(description="Collection that an advocate used.", **_TEXT)] = ""
    source: Annotated[str, Field(description="Words in the source of the claim, ignoring case.", **_TEXT)] = ""
    since: Annotated[
        str,
        Field(description="First day of the period in which checks were made, such as 2024-05-31 (UTC).", pattern=_DAY),
    ] = ""
    until: Annotated[str, Field(description="Last day of that period.", pattern=_DAY)] = ""
    visibility: Annotated[
        Literal["", "unpublished", "published", "hidden"],
        Field(description="Readers: everybody with an account, also visitors without one, or adjudicators only."),
    ] = ""
    reviewer: Annotated[str, Field(description="Account that has reviewed the check.", **_TEXT)] = ""
