"""What active learning would have saved: label, fit, choose, label again, over labels that are all known already.

Every strategy starts from the same labelled drafts of a split, and is measured on the same passages that it never sees.
Nothing is random but what the seed of the split decides, and each split is stored as soon as it is done.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.generation.validation.acquisition import STRATEGIES, Acquisition, choose_places
from climassay.generation.validation.calibrator import check_labels
from climassay.generation.validation.head_fitting import Scaling, fit_logistic, in_span
from climassay.generation.validation.measuring import auroc, precision_at
from climassay.given_files import parse_json, read_text

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SimulationItems:
    """Labelled drafts as arrays."""

    name: str
    blocks: tuple[FloatArray, ...]
    """Features, [items, features] each."""
    vectors: NDArray[np.float32]
    """For clusters, [items, width]."""
    valid: IntArray
    """[items], 0 or 1."""
    groups: IntArray
    """[items], the main passage of each."""
    zero_shot: FloatArray | None = None
    """[items], P(valid) by a model that was not trained; None where none was asked."""

    @property
    def sha256(self) -> str:
        """Over all of it."""
        digest = hashlib.sha256()
        parts: list[NDArray[Any]] = [*self.blocks, self.vectors, self.valid, self.groups]
        for part in parts if self.zero_shot is None else [*parts, self.zero_shot]:
            digest.update(str((part.dtype, part.shape)).encode() + np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How the labelling is played through."""

    strategies: tuple[Acquisition, ...] = STRATEGIES
    splits: int = 100
    test_share: float = 0.25
    """Of the items, whole passages (the paper's test sets have about 40)."""
    start: int = 20
    """Labels before the first choice, drawn at random."""
    batch: int = 10
    """Labels a round."""
    rounds: int | None = None
    """Choices made; None: until all training items are labelled."""
    regularisation: float = 10.0
    """C of the regression: one for all rounds, since few labels cannot choose it. Weak, so that a validator without
    skill rejects something too; a strong penalty has it keep everything."""
    kept_share: float = 0.8
    """Share of the test items that is kept for the precision at a fixed share."""
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = [one for one in self.strategies if one not in STRATEGIES]
        if unknown or not self.strategies or len(set(self.strategies)) < len(self.strategies):
            raise InputError(f"The strategies must be different ones of {', '.join(STRATEGIES)}.")
        for name in ("splits", "start", "batch"):
            if getattr(self, name) < 1:
                raise InputError(f"A simulation needs at least one of {name}, not {getattr(self, name)}.")
        for name in ("test_share", "kept_share"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"The {name.replace('_', ' ')} is {getattr(self, name)}: give a share, as 0.25.")
        if self.rounds is not None and self.rounds < 0:
            raise InputError(f"A simulation cannot have {self.rounds} rounds.")


class RoundScores(NamedTuple):
    """A validator after some labels, on the test passages of its split."""

    labels: int
    precision: float
    """Share of valid ones among those with P(valid) of at least one half; the base rate where there are none."""
    kept: float
    """Share of the test items that were kept so."""
    precision_at_share: float
    """When the likeliest ones are kept, a fixed share of the test items."""
    auroc: float
    """One half where the test passages have items of one kind only."""


@dataclass(frozen=True, slots=True)
class SplitResult:
    """All strategies on one split."""

    split: int
    test: int
    """Test items."""
    train: int
    none: RoundScores
    """Without a validator: everything is kept."""
    zero_shot: RoundScores | None
    rounds: tuple[tuple[Acquisition, tuple[RoundScores, ...]], ...]


def simulate(
    items: SimulationItems,
    settings: SimulationSettings | None = None,
    *,
    store: Path | None = None,
    on_split: Callable[[int], None] | None = None,
) -> list[SplitResult]:
    """Play the labelling through on many splits.

    Args:
        items: Labelled drafts.
        settings: By default those of :class:`SimulationSettings`.
        store: A file that takes each split as a line when it is done: the same call again goes on where it stopped.
        on_split: Called with the number of splits done since the last call.

    Returns:
        One result a split, in order.

    Raises:
        InputError: Too few labels for the settings, or the file belongs to another simulation.
    """
    chosen = settings or SimulationSettings()
    check_labels(items.valid)
    fingerprint = _fingerprint(items, chosen)
    done = _stored(store, fingerprint)
    if on_split is not None and done:
        on_split(len(done))
    for split in range(chosen.splits):
        if split in done:
            continue
        done[split] = _one_split(items, chosen, split)
        _append(store, fingerprint, done[split])
        if on_split is not None:
            on_split(1)
    return [done[split] for split in range(chosen.splits)]


def _one_split(items: SimulationItems, settings: SimulationSettings, split: int) -> SplitResult:
    pool, test = split_items(items.groups, settings.test_share, settings.seed, split)
    if len(pool) < settings.start:
        raise InputError(
            f"A simulation that starts with {settings.start} labels needs more than the {len(pool)} training items "
            f"that {len(items.valid)} labels leave."
        )
    valid = items.valid[test]
    base = float(valid.mean())
    none = RoundScores(0, base, 1.0, base, 0.5)
    zero = None if items.zero_shot is None else _score(0, valid, items.zero_shot[test], settings.kept_share)
    # Unlabelled drafts are at hand before any label is: scale and span may come from all of the pool.
    scaling = Scaling.of([block[pool] for block in items.blocks])
    rows = scaling.apply(np.concatenate(items.blocks, axis=1))
    turned, axes = in_span(rows[pool])
    outside = rows[test] @ axes
    start = np.random.default_rng([settings.seed, split, 1]).permutation(len(pool))[: settings.start]
    found = tuple(
        (strategy, tuple(_play(items, settings, strategy, (pool, test), turned, outside, start, split)))
        for strategy in settings.strategies
    )
    return SplitResult(split, len(test), len(pool), none, zero, found)


def _play(
    items: SimulationItems,
    settings: SimulationSettings,
    strategy: Acquisition,
    places: tuple[IntArray, IntArray],
    rows: FloatArray,
    outside: FloatArray,
    start: IntArray,
    split: int,
) -> Iterator[RoundScores]:
    """One strategy on one split: fit, measure, choose, label."""
    from scipy.special import expit

    pool, test = places
    labelled = np.zeros(len(pool), dtype=bool)
    labelled[start] = True
    rounds = len(pool) if settings.rounds is None else settings.rounds
    for number in range(rounds + 1):
        fitted = fit_logistic(rows[labelled], items.valid[pool[labelled]], settings.regularisation)
        given = expit(fitted.scores(outside))
        yield _score(int(labelled.sum()), items.valid[test], given, settings.kept_share)
        rest = np.flatnonzero(~labelled)
        if number == rounds or not len(rest):
            return
        chances = expit(fitted.scores(rows[rest]))
        seed = int(np.random.default_rng([settings.seed, split, 2, number]).integers(2**31))
        labelled[rest[choose_places(chances, items.vectors[pool[rest]], settings.batch, strategy, seed)]] = True


def _score(labels: int, valid: IntArray, given: FloatArray, share: float) -> RoundScores:
    kept = given >= 0.5
    precision = float(valid[kept].mean()) if kept.any() else float(valid.mean())
    area = auroc(valid, given)
    return RoundScores(
        labels,
        precision,
        float(kept.mean()),
        precision_at(share, valid, given).precision.value,
        0.5 if np.isnan(area) else area,
    )


def split_items(groups: IntArray, test_share: float, seed: int, split: int) -> tuple[IntArray, IntArray]:
    """Training and test items, whole groups each; the test share is met as closely as groups in random order allow.

    Args:
        groups: Number of the group of each item, shape [items].
        test_share: Of the items, 0 to 1.
        seed: Of all splits.
        split: Number of this one.

    Returns:
        Places of the items, shapes [training items] and [test items].
    """
    order = np.random.default_rng([seed, split]).permutation(np.unique(groups))
    wanted, taken, size = test_share * len(groups), [], 0
    for group in order[:-1]:
        if size >= wanted:
            break
        taken.append(group)
        size += int((groups == group).sum())
    inside = np.isin(groups, taken)
    return np.flatnonzero(~inside), np.flatnonzero(inside)


def _fingerprint(items: SimulationItems, settings: SimulationSettings) -> str:
    # More splits go on with those that are there.
    decisive = {name: value for name, value in asdict(settings).items() if name != "splits"}
    return hashlib.sha256(json.dumps([1, items.sha256, decisive], sort_keys=True).encode()).hexdigest()


def _stored(store: Path | None, fingerprint: str) -> dict[int, SplitResult]:
    if store is None or not store.is_file():
        return {}
    try:
        lines = read_text(store).split("\n")
        rows = list(_whole_rows(lines))
        if any(row["simulation"] != fingerprint for row in rows):
            raise InputError(f"{store} holds another simulation, of other labels or settings: name another file.")
        found = [_split_from(row["result"]) for row in rows]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{store} is no file of a simulation ({error}): name another one.") from error
    return {result.split: result for result in found}


def _whole_rows(lines: Sequence[str]) -> Iterable[dict[str, object]]:
    """Rows of a file whose last line may have been cut off when its process was killed."""
    for number, line in enumerate(lines):
        try:
            if line:
                yield parse_json(line)
        except ValueError:
            if number + 1 < len(lines):
                raise


def _append(store: Path | None, fingerprint: str, result: SplitResult) -> None:
    if store is None:
        return
    line = json.dumps({"simulation": fingerprint, "result": asdict(result)}) + "\n"
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
        text = store.read_bytes() if store.is_file() else b""
        # What a killed process left without its end must not swallow the next line.
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):
            store.write_bytes(whole)
        with store.open("a", encoding="utf-8") as file:
            file.write(line)
    except OSError as error:
        raise InputError(f"The simulation cannot be kept in {store}: {error.strerror or error}.") from error


def _split_from(data: object) -> SplitResult:
    if not isinstance(data, dict):
        raise TypeError("a result is no object")
    return SplitResult(
        split=data["split"],
        test=data["test"],
        train=data["train"],
        none=RoundScores(*data["none"]),
        zero_shot=None if data["zero_shot"] is None else RoundScores(*data["zero_shot"]),
        rounds=tuple((name, tuple(RoundScores(*one) for one in scores)) for name, scores in data["rounds"]),
    )
