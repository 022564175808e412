"""Train a probe for use, with the evidence that says how far it can be trusted."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.judging.candidates import (
    PROBE_METHODS,
    ProbeCandidate,
    ProbeMethod,
    labels_of,
    outcomes_of,
    pairs_within,
)
from climassay.judging.items import Item, word_counts
from climassay.judging.judges import Cost, Harvester, StateTable, layers_of
from climassay.judging.preferences import FloatArray, IntArray, Progress
from climassay.judging.probe import Probe, States, fit_principal, log_length_differences, three_way
from climassay.judging.prompts import Quality, both_ways
from climassay.judging.scores import Figure, JudgedPairs, PairedFigure, Units, correctness, pair_calibration
from climassay.judging.settings import ProbeSettings
from climassay.learning.evaluation import Calibration
from climassay.learning.model_file import Provenance
from climassay.learning.pairwise import HeldOut, RegularisationPath, average_orders, item_folds, pair_splits
from climassay.learning.splits import held_out

COMPONENTS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Differences of training pairs on their first principal components (thesis, Figure C.1)."""

    coordinates: FloatArray
    """[pairs, 3]; the first component is turned so that positive speaks for the first item. Fewer than three where
    there are fewer dimensions."""
    truth: IntArray
    """[pairs]; 1 where the first item has the higher label, -1 the second, 0 where they are equal."""
    explained: tuple[float, ...]
    """Share of the variance that each component explains."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedProbe:
    """A probe and its evidence. What is held out, is held out by group, or by item where all form one group."""

    probe: Probe
    path: RegularisationPath | None
    accuracy: Figure
    """On differing pairs of held-out items, by probes that did not see them."""
    longer: Figure
    """Accuracy of "the longer text is better" on the same pairs."""
    versus_longer: PairedFigure
    calibration: Calibration | None
    """Calibration of the probabilities on held-out differing pairs in both orders; their scale was fitted on the same
    pairs, one number, so that it is a little rosy. None where nothing could be held out."""
    picture: Picture
    cost: Cost
    n_items: int
    n_groups: int
    n_pairs: int
    """Unordered training pairs, ties and failures included."""
    failed: int
    """Requests, of these pairs in both orders, to which the model gave no activations."""


def train_probe(
    items: Sequence[Item],
    harvester: Harvester,
    *,
    method: ProbeMethod = "ppairs",
    settings: ProbeSettings | None = None,
    pairs: IntArray | None = None,
    pairs_per_item: int | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> TrainedProbe:
    """Fit a probe on all labelled items and measure it on held-out ones.

    Args:
        items: Labelled items; pairs are made within groups.
        harvester: Reads the model with the prompts of the quality.
        method: ``ppairs`` and ``pointwise``, each with length regressed out (``-length``), or ``principal``.
        settings: How it is fitted; by default on all layers that the harvester reads, side by side, regularisation by
            cross-validation, ties dropped.
        pairs: Unordered training pairs [pairs, 2]; by default all within groups, or as many as ``pairs_per_item`` says.
        pairs_per_item: Compare each item with so many others instead of all of its group.
        seed: Seed of the draw of pairs and of the bootstrap.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: The method does not exist, items are not labelled, there are too few or only equal ones, or the
            settings name a layer that the harvester does not read.
    """
    if method not in PROBE_METHODS:
        raise InputError(f"No probe is trained for the method {method!r}: there are {', '.join(PROBE_METHODS)}.")
    unlabelled = sum(item.label is None for item in items)
    if unlabelled:
        raise InputError(f"{unlabelled} of {len(items)} items have no label to train on: name the column with --label.")
    chosen = settings or ProbeSettings((harvester.layers,))
    unread = next((layer for layer in layers_of(chosen.layers) if layer not in harvester.layers), None)
    if unread is not None:
        raise InputError(
            f"The harvester does not read layer {unread}: it reads {', '.join(map(str, harvester.layers))}."
        )
    groups = [item.group for item in items]
    labels = labels_of(items)
    if pairs is None:
        pairs = pairs_within(groups, np.arange(len(items)), pairs_per_item, np.random.default_rng(seed))
    if not len(pairs):
        raise InputError("No two of the items can be compared: each is the only one of its group.")
    table = StateTable(harvester, items, on_progress)
    fitted = ProbeCandidate(method, table, items, chosen).fit(pairs)
    fit, shown, evidence = fitted.fit, fitted.pairs, fitted.fit.held_out
    if method.startswith("pointwise"):
        states, shown = table.points(items, layers=fitted.layers)[0].astype(np.float64), both_ways(fitted.pairs)
        differences = states[shown[:, 0]] - states[shown[:, 1]]
    else:
        read = table.contrasts(items, fitted.pairs, layers=fitted.layers).states
        differences = read - read.mean(axis=0, dtype=np.float64)
        if method == "principal":
            evidence = _hold_out_principal(read, fitted.pairs, labels, groups, chosen.seed)
    # Each held-out pair in one order only, for both orders were averaged.
    once = fitted.pairs[evidence.rows, 0] < fitted.pairs[evidence.rows, 1]
    odds, truth = evidence.log_odds[once], evidence.outcomes[once].astype(np.float64)
    test = JudgedPairs(fitted.pairs[evidence.rows[once]], truth, odds, three_way(odds, fit.probe.tie_band))
    test = test.take(test.truth != 0)
    ratios = log_length_differences(np.array(word_counts(items)), test.pairs)
    longer = replace(test, log_odds=ratios, predicted=three_way(ratios, 0.0))
    units = Units.of(groups, seed=seed)
    prompt = harvester.questions.prompt("point" if method.startswith("pointwise") else "contrast")
    source = fit.probe.provenance.reading(model=harvester.model)
    source = replace(
        source,
        settings={**source.settings, "quality": asdict(harvester.questions.quality)},
        layers=fitted.layers,
        template=prompt.name,
        template_sha256=prompt.sha256,
        trained_on=tuple(dict.fromkeys(words_id(items[index].text) for index in np.unique(pairs))),
    )
    return TrainedProbe(
        replace(fit.probe, provenance=source),
        fit.path,
        units.mean(correctness(test), test.pairs),
        units.mean(correctness(longer), test.pairs),
        units.difference(correctness(longer), correctness(test), test.pairs),
        pair_calibration(test),
        _picture(differences, outcomes_of(labels, shown), seed),
        harvester.cost,
        n_items=len(np.unique(pairs)),
        n_groups=len({groups[index] for index in np.unique(pairs)}),
        n_pairs=len(pairs),
        failed=fitted.failed,
    )


def quality_of(provenance: Provenance) -> Quality:
    """The quality that a probe was trained for.

    Raises:
        InputError: The probe does not say.
    """
    try:
        values = provenance.settings["quality"]
        # Probes of version 1 keep it as JSON.
        values = json.loads(values) if isinstance(values, str) else values
        return Quality(**{**values, "scale": tuple(values["scale"])})
    except (ValueError, TypeError, KeyError):
        raise InputError(
            "The probe does not say which quality it was trained for: name one with --kind, --aspect or --quality."
        ) from None


def _hold_out_principal(
    states: States, pairs: IntArray, labels: FloatArray, groups: Sequence[str], seed: int
) -> HeldOut:
    """The component sees every pair, so that it is found anew without the items of each fold."""
    splits = pair_splits(pairs, item_folds(pairs, groups, seed=seed))
    odds = held_out(
        (one for one in splits if outcomes_of(labels, pairs[one.train]).any()),
        lambda train: fit_principal(states[train], pairs[train], labels, groups=groups).probe,
        lambda probe, test: average_orders(probe.log_odds(states[test]), pairs[test]),
        len(pairs),
    )
    held = np.flatnonzero(np.isfinite(odds))
    return HeldOut(held, odds[held], outcomes_of(labels, pairs[held]))


def _picture(differences: FloatArray, truth: IntArray, seed: int) -> Picture:
    from sklearn.decomposition import PCA

    count = min(COMPONENTS, *differences.shape)
    analysis = PCA(count, svd_solver="randomized", random_state=seed)
    coordinates = np.asarray(analysis.fit_transform(differences), dtype=np.float64)
    if coordinates[:, 0] @ truth < 0:
        coordinates[:, 0] *= -1
    return Picture(coordinates, truth, tuple(float(share) for share in analysis.explained_variance_ratio_))
