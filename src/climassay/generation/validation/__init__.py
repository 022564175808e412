"""Validators: models that learn from experts which generated questions are valid, and which to have labelled next.

Liu et al. 2025 (ClimaQA), section 4.4 and appendix A.5.2. See docs/generation_validator.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.generation.validation.acquisition import STRATEGIES, Acquisition, choose_next
    from climassay.generation.validation.calibrator import Calibrator, fit_calibrator
    from climassay.generation.validation.fine_tuning import TrainedModel, train_adapter, train_api
    from climassay.generation.validation.head import ValidatorHead, load_head, save_head
    from climassay.generation.validation.labels import (
        LabelledDraft,
        LabelSet,
        read_label_set,
        read_labels,
        reason_figure,
    )
    from climassay.generation.validation.loading import load_validator
    from climassay.generation.validation.measuring import ValidatorScores, reliability_figure, score_validator
    from climassay.generation.validation.reading import draft_vectors
    from climassay.generation.validation.simulation import SimulationItems, SimulationSettings, simulate
    from climassay.generation.validation.simulation_results import SimulationSummary, simulation_report, summarise
    from climassay.generation.validation.threshold import Threshold, threshold_for
    from climassay.generation.validation.training import TrainedHead, train_features, train_probe
    from climassay.generation.validation.validators import (
        ByKind,
        FeatureValidator,
        ProbeValidator,
        PromptedValidator,
        Validator,
        validate,
    )

_PLACES = {
    "acquisition": ("STRATEGIES", "Acquisition", "choose_next"),
    "calibrator": ("Calibrator", "fit_calibrator"),
    "fine_tuning": ("TrainedModel", "train_adapter", "train_api"),
    "head": ("ValidatorHead", "load_head", "save_head"),
    "labels": ("LabelSet", "LabelledDraft", "read_label_set", "read_labels", "reason_figure"),
    "loading": ("load_validator",),
    "measuring": ("ValidatorScores", "reliability_figure", "score_validator"),
    "reading": ("draft_vectors",),
    "simulation": ("SimulationItems", "SimulationSettings", "simulate"),
    "simulation_results": ("SimulationSummary", "simulation_report", "summarise"),
    "threshold": ("Threshold", "threshold_for"),
    "training": ("TrainedHead", "train_features", "train_probe"),
    "validators": (
        "ByKind",
        "FeatureValidator",
        "ProbeValidator",
        "PromptedValidator",
        "Validator",
        "validate",
    ),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "STRATEGIES",
    "Acquisition",
    "ByKind",
    "Calibrator",
    "FeatureValidator",
    "LabelSet",
    "LabelledDraft",
    "ProbeValidator",
    "PromptedValidator",
    "SimulationItems",
    "SimulationSettings",
    "SimulationSummary",
    "Threshold",
    "TrainedHead",
    "TrainedModel",
    "Validator",
    "ValidatorHead",
    "ValidatorScores",
    "choose_next",
    "draft_vectors",
    "fit_calibrator",
    "load_head",
    "load_validator",
    "read_label_set",
    "read_labels",
    "reason_figure",
    "reliability_figure",
    "save_head",
    "score_validator",
    "simulate",
    "simulation_report",
    "summarise",
    "threshold_for",
    "train_adapter",
    "train_api",
    "train_features",
    "train_probe",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
