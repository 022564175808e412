"""Models learned from labels: features, splits, linear models, calibration, evaluation and model files.

Models have scikit-learn's methods (``fit``, ``predict``, ``predict_proba``, ``score``) and ``save`` and ``load``. They
are selected and evaluated on groups that were not used for fitting. Each is saved as one small file, with its
provenance.
"""

from climassay.learning.calibration import (
    Calibrator as Calibrator,
    Threshold as Threshold,
    fit_calibrator as fit_calibrator,
    reweight as reweight,
    find_threshold as find_threshold,
)
from climassay.learning.evaluation import (
    Calibration as Calibration,
    HeldOutScores as HeldOutScores,
    auroc as auroc,
    auroc_estimate as auroc_estimate,
    calibration as calibration,
    evaluate as evaluate,
    log_loss as log_loss,
)
from climassay.learning.harvest import ActivationStore as ActivationStore, Harvest as Harvest, harvest as harvest
from climassay.learning.linear import (
    LinearModel as LinearModel,
    fit_linear as fit_linear,
    fit_path as fit_path,
    softmax as softmax,
)
from climassay.learning.model_file import (
    ModelFormat as ModelFormat,
    Provenance as Provenance,
    SavedModel as SavedModel,
    check_array as check_array,
)
from climassay.learning.splits import (
    NearDuplicates as NearDuplicates,
    Split as Split,
    group_folds as group_folds,
    hold_out as hold_out,
    sample as sample,
    iterate_splits as iterate_splits,
)
from climassay.learning.text_classifier import (
    ClassifierSpec as ClassifierSpec,
    PartSpec as PartSpec,
    TextClassifier as TextClassifier,
)
