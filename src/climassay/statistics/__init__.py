"""Intervals, baselines, paired tests, agreement, rank correlation and power, as pure functions of arrays.

Functions that draw random numbers take a seed.
"""

from climassay.statistics.agreement import Correlation, cohen_kappa, fleiss_kappa, kendall, krippendorff_alpha, spearman
from climassay.statistics.classification import (
    CoveragePoint,
    ReliabilityBin,
    SelectiveCurve,
    constant_baseline,
    expected_calibration_error,
    reliability_curve,
    selective_curve,
)
from climassay.statistics.intervals import (
    Estimate,
    Interval,
    McNemar,
    PairedComparison,
    PairedDifference,
    ResampledEstimate,
    accuracy_sample_size,
    bootstrap_interval,
    holm,
    mcnemar,
    mcnemar_power,
    mean_estimate,
    mean_estimates,
    paired_difference,
    paired_differences,
    paired_tests,
    percentile_interval,
    proportion,
    share_interval,
    wilson_interval,
)

__all__ = [
    "Correlation", "CoveragePoint", "Estimate", "Interval", "McNemar", "PairedComparison", "PairedDifference",
    "ReliabilityBin", "ResampledEstimate", "SelectiveCurve", "accuracy_sample_size", "bootstrap_interval",
    "cohen_kappa", "constant_baseline", "expected_calibration_error", "fleiss_kappa", "holm", "kendall",
    "krippendorff_alpha", "mcnemar", "mcnemar_power", "mean_estimate", "mean_estimates",
    "paired_difference", "paired_differences", "paired_tests", "percentile_interval", "proportion",
    "reliability_curve", "selective_curve", "share_interval", "spearman", "wilson_interval",
]  # fmt: skip
