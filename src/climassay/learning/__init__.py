"""Everything that is learned from labels: features, splits, linear models, calibration, evaluation, model files.

A learned thing follows scikit-learn (``fit``, ``predict``, ``predict_proba``, ``score``, ``save``, ``load``), is chosen
and measured on groups it was not fitted on, and is kept in one small file that says where it comes from.
"""

from climassay.learning.calibration import Calibrator, Threshold, fit_calibrator, reweighted, threshold_for
from climassay.learning.evaluation import (
    Calibration,
    Evaluation,
    auroc,
    auroc_estimate,
    calibration,
    evaluate,
    log_loss,
)
from climassay.learning.harvest import ActivationStore, Harvest, harvest
from climassay.learning.linear import LinearModel, fit_linear, fit_path, softmax
from climassay.learning.model_file import ModelFormat, Provenance, SavedModel, checked_array
from climassay.learning.splits import (
    NearDuplicates,
    Split,
    group_folds,
    hold_out,
    near_duplicate_groups,
    splits_of,
)
from climassay.learning.text_classifier import (
    ClassifierSpec,
    PartSpec,
    TextClassifier,
    TrainedClassifier,
    train_text_classifier,
)

__all__ = [
    "ActivationStore",
    "Calibration",
    "Calibrator",
    "ClassifierSpec",
    "Evaluation",
    "Harvest",
    "LinearModel",
    "ModelFormat",
    "NearDuplicates",
    "PartSpec",
    "Provenance",
    "SavedModel",
    "Split",
    "TextClassifier",
    "Threshold",
    "TrainedClassifier",
    "auroc",
    "auroc_estimate",
    "calibration",
    "checked_array",
    "evaluate",
    "fit_calibrator",
    "fit_linear",
    "fit_path",
    "group_folds",
    "harvest",
    "hold_out",
    "log_loss",
    "near_duplicate_groups",
    "reweighted",
    "softmax",
    "splits_of",
    "threshold_for",
    "train_text_classifier",
]
