"""Search time of the exact merge against the beam of PairS, on the same noisy preferences.

Preferences come from a ready matrix, so that only the search is timed. The beam is timed twice: as written here, where
growing a candidate copies its order once, and with deep copies as in the published code. Ratios are to the exact merge
without pruning, in the same run; pruning spares comparisons, not search time. Kendall's tau with the planted order and
the comparisons asked about stand beside them.

    python benchmarks/merge_sort.py [--items 200] [--beam 1000] [--repeats 5] [--json]
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.judging.merging import (
    merge_all_pairs,
    merge_beam,
    merge_exact,
    merge_greedy,
)
from climassay.judging.preferences import Comparisons
from climassay.judging.ranking import halve


@dataclass(frozen=True)
class Timing:
    """One way to sort."""

    method: str
    threshold: float | None
    score: str
    seconds: float
    comparisons: int
    batches: int
    kendall: float
    times_exact: float | None = None


def planted(n: int, spread: float, noise: float, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Qualities, shape [n], and antisymmetric log-odds, shape [n, n]: their differences with Gaussian noise a pair."""
    generator = np.random.default_rng(seed)
    quality = generator.normal(scale=spread, size=n)
    above = np.triu(quality[:, None] - quality[None, :] + generator.normal(scale=noise, size=(n, n)), 1)
    return quality, above - above.T


def sort(n: int, log_odds: NDArray[np.float64], merge: Callable[..., Any]) -> tuple[float, list[int], Comparisons]:
    start = time.perf_counter()
    comparisons = Comparisons(lambda pairs: log_odds[pairs[:, 0], pairs[:, 1]], n)
    runs = halve(range(n))
    while len(runs) > 1:
        runs = [merged.order for merged in merge(list(zip(runs[::2], runs[1::2], strict=True)), comparisons.look_up)]
    return time.perf_counter() - start, list(runs[0]), comparisons


def measure(n: int, beam: int, repeats: int, seed: int) -> list[Timing]:
    from scipy.stats import kendalltau

    quality, log_odds = planted(n, spread=2.0, noise=1.0, seed=seed)

    def timing(name: str, merge: Callable[..., Any], times: int, **options: Any) -> Timing:
        runs = [sort(n, log_odds, partial(merge, **options)) for _ in range(times)]
        _, order, comparisons = runs[0]
        tau = float(kendalltau(-quality[order], np.arange(n)).statistic)
        seconds = min(seconds for seconds, _, _ in runs)
        score = options.get("score", "")
        return Timing(name, options.get("threshold"), score, seconds, comparisons.n_pairs, comparisons.batches, tau)

    rows = [timing("greedy", merge_greedy, repeats), timing("all-pairs", merge_all_pairs, repeats)]
    for threshold in (0.6, 0.0):
        for score in ("mean", "sum"):
            options = {"threshold": threshold, "score": score}
            exact = timing("exact", merge_exact, repeats, prune=False, **options)
            rows += [exact, timing("exact, pruned", merge_exact, repeats, prune=True, **options)]
            for name, deep in (("beam", False), ("beam, deep", True)):
                row = timing(name, merge_beam, 1, beam_size=beam, deep_copies=deep, **options)
                rows.append(Timing(**{**asdict(row), "times_exact": row.seconds / exact.seconds}))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Search time of the exact merge against the beam of PairS.")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--beam", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = measure(arguments.items, arguments.beam, arguments.repeats, arguments.seed)
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{arguments.items} items, beam of {arguments.beam}")
    print(
        f"{'method':13} {'threshold':>9} {'score':5} {'seconds':>9} {'asked':>7} {'batches':>7} {'tau':>6} {'ratio':>7}"
    )
    for row in rows:
        threshold = "" if row.threshold is None else f"{row.threshold:.1f}"
        ratio = "" if row.times_exact is None else f"{row.times_exact:7.1f}"
        print(
            f"{row.method:13} {threshold:>9} {row.score:5} {row.seconds:9.4f} {row.comparisons:7} {row.batches:7} "
            f"{row.kendall:6.3f} {ratio}"
        )


if __name__ == "__main__":
    main()
