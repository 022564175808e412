"""How judges learn, sort and are cross-validated; light to import, so that commands take their options from here."""

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from climassay.settings import validate_settings

SortMethod: TypeAlias = Literal["exact", "beam", "greedy", "all-pairs", "fitted", "strengths"]
"""See :func:`climassay.judging.ranking.sort_items`."""
InsertMode: TypeAlias = Literal["band", "three-way"]
"""See :func:`climassay.judging.anchor_labelling.insert_items`."""


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """How probes are fitted."""

    layers: tuple[tuple[int, ...], ...] = ((-1,),)
    """Sets of layers; of several, the one with the lowest cross-validated loss on training items is taken."""
    regularisation: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="Inverse penalty C of probes; by default chosen by cross-validation.",
        ),
    ] = None
    ties: Annotated[
        Literal["drop", "keep", "three-way"],
        Field(description="What to do with training pairs of equal labels."),
    ] = "drop"
    seed: int = 0

    def __post_init__(self) -> None:
        validate_settings(self, "The probe")


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """How judges are cross-validated."""

    train_items: Annotated[int, Field(ge=2, description="Number of labelled items to learn from in each fold.")] = 100
    folds: Annotated[int, Field(ge=2, description="Number of folds; they share no group.")] = 3
    seed: int = 0
    pairs_per_item: Annotated[
        int | None,
        Field(ge=1, description="Number of others each item is compared with, instead of all of its group."),
    ] = None
    sizes: tuple[int, ...] = ()
    """Numbers of labelled items of the learning curve."""
    sort: SortMethod = "strengths"
    probe: ProbeSettings = field(default_factory=ProbeSettings)
