"""What judging commands keep with their runs, read back for pages: benchmarks, rankings, labels, probes."""

from collections.abc import Mapping
from typing import Any

from climassay.judging.benchmark import Agreement, JudgeScores, LearningPoint
from climassay.judging.experiment import JudgeResult
from climassay.judging.probing import Cost
from climassay.judging.quality import Quality
from climassay.judging.scores import Figure, PairedFigure
from climassay.learning.evaluation import Calibration
from climassay.records.queries import RunDetails
from climassay.reporting import Table
from climassay.statistics import Estimate, Interval, ReliabilityBin

BENCHMARK = "judge benchmark"


def judge_results_of(details: RunDetails) -> tuple[JudgeResult, ...]:
    """The results of a finished ``climassay judge benchmark``.

    The orders of single items are not kept with a run.
    """
    qualities = [_quality(row) for row in details.config["qualities"]]
    return tuple(_result(row, qualities) for row in details.results["judges"])


def stored_ranking_table(details: RunDetails) -> Table:
    """The items that ``climassay judge rank`` put in order, with their whole texts."""
    rows = details.results["ranking"]
    grouped = len({row["group"] for row in rows}) > 1
    cells = [
        (
            *((row["group"],) if grouped else ()),
            str(row["place"]),
            str(row["item"]),
            row["text"],
            "-" if row["label"] is None else f"{row['label']:g}",
            f"{row['strength']:+.2f}",
        )
        for row in rows
    ]
    return Table.of(
        f"Ranking by {details.config.get('quality', 'quality')}",
        [*(["group"] if grouped else []), "place", "item", "text", "label", "strength"],
        cells,
        left=4 if grouped else 3,
        grouped=int(grouped),
        note="strength: log-odds, mean 0 in a group.",
    )


def stored_label_table(details: RunDetails) -> Table:
    """The labels that ``climassay judge insert`` gave."""
    rows = [
        (
            str(row["item"]),
            row["text"],
            row["label"],
            ", ".join(f"{step['label']} {step['preference']:.2f}" for step in row["path"]),
            str(row["comparisons"]),
        )
        for row in details.results["labels"]
    ]
    return Table.of("Labels", ["item", "text", "label", "compared with", "comparisons"], rows, left=4)


def calibration_of(row: Mapping[str, Any] | None) -> Calibration | None:
    """A calibration as it was stored."""
    if row is None:
        return None
    return Calibration(**{**row, "curve": tuple(map(_bin, row["curve"]))})


def _bin(stored: Any) -> ReliabilityBin:
    if isinstance(stored, Mapping):
        return ReliabilityBin(**{**stored, "accuracy": Estimate.read(stored["accuracy"])})
    # As version 0.1 stored it before its bins were those of the statistics.
    n, predicted, observed, ends = stored
    low = min(int(predicted * 10), 9) / 10
    return ReliabilityBin(low, low + 0.1, predicted, Estimate(observed, Interval(*ends), n))


def _quality(row: Mapping[str, Any]) -> Quality:
    return Quality(**{**row, "scale": tuple(row["scale"])})


def _result(row: Mapping[str, Any], qualities: list[Quality]) -> JudgeResult:
    quality = next(one for one in qualities if one.name == row["quality"] and one.wording == row["wording"])
    scores = JudgeScores(
        method=row["method"],
        quality=row["quality"],
        agreement=_agreement(row),
        baselines={name: _agreement(one) for name, one in row["baselines"].items()},
        versus_longer=_paired(row["versus_longer"]),
        versus_longer_nearly_equal=_paired(row["versus_longer_nearly_equal"]),
        calibration=calibration_of(row["calibration"]),
        n_items=row["n_items"],
        n_pairs=row["n_pairs"],
        n_pairs_differing=row["n_pairs_differing"],
        n_groups=row["n_groups"],
        failed=row["failed"],
        layers=tuple(tuple(layers) for layers in row["layers"]),
        regularisation=tuple(row["regularisation"]),
        learning_curve=tuple(
            LearningPoint(point["items"], Figure(**point["accuracy_differing"])) for point in row["learning_curve"]
        ),
    )
    cost = Cost(**{name: row[name] for name in Cost.__dataclass_fields__})
    return JudgeResult(quality, scores, cost)


def _agreement(row: Mapping[str, Any]) -> Agreement:
    return Agreement(**{name: Figure(**row[name]) for name in Agreement.__dataclass_fields__})


def _paired(row: Mapping[str, Any]) -> PairedFigure:
    return PairedFigure(Figure(**{name: row[name] for name in Figure.__dataclass_fields__}), row["p_value"])
