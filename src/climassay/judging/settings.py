"""Settings for training, sorting and cross-validating judges; quick to import, since the help of commands uses them."""

from dataclasses import field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from climassay.settings import settings

SortMethod: TypeAlias = Literal["exact", "beam", "greedy", "all-pairs", "fitted", "strengths"]
"""Sorting method, see :func:`climassay.judging.ranking.sort_items`."""
InsertMode: TypeAlias = Literal["band", "three-way", "printed"]
"""Rule that decides when items count as equal, see :func:`climassay.judging.anchor_labelling.insert_indices`."""


@settings(subject="The probe")
class ProbeSettings:
    """Settings for fitting a probe."""

    layers: tuple[tuple[int, ...], ...] = ((-1,),)
    """Candidate sets of layers; the one with the lowest cross-validated loss on training items is used."""
    regularisation: Annotated[float | None, Field(gt=0, allow_inf_nan=False)] = None
    """Inverse penalty C of probes; by default chosen by cross-validation."""
    ties: Literal["drop", "keep", "three-way"] = "drop"
    """Treatment of training pairs with equal labels."""
    seed: int = 0


@settings(subject="The benchmark")
class BenchmarkSettings:
    """Settings of the cross-validation of judges."""

    train_items: Annotated[int, Field(ge=2)] = 100
    """Number of labelled items to train on in each fold."""
    folds: Annotated[int, Field(ge=2)] = 3
    """Number of folds; they share no group."""
    seed: int = 0
    pairs_per_item: Annotated[int | None, Field(ge=1)] = None
    """Number of items in its group with which each item is compared; default: all."""
    sizes: tuple[int, ...] = ()
    """Numbers of training items at which the learning curve is computed."""
    sort: SortMethod = "strengths"
    beam_size: Annotated[
        int, Field(ge=1, description="Number of partial orders that the sort beam keeps in each merge.")
    ] = 1000
    threshold: Annotated[
        float,
        Field(
            ge=0,
            description="Entropy in nats above which the sorts exact and beam follow both outcomes of a comparison.",
        ),
    ] = 0.6
    score: Annotated[
        Literal["mean", "sum"],
        Field(description="Score of an order in the sorts exact and beam: mean (PairS) or sum (PPairS) of its parts."),
    ] = "mean"
    as_published: Annotated[
        bool,
        Field(
            description="Also evaluate as the thesis did, beside the table without leaks: pairs split at random, ties "
            "as not greater, last layer, sort beam with sums."
        ),
    ] = False
    probe: ProbeSettings = field(default_factory=ProbeSettings)
