from .base import TuningBase as TuningBase
from .config import PRESETS as PRESETS, Preset as Preset, TuningConfig as TuningConfig, find_preset as find_preset
from .data import (
    ChatData as ChatData,
    ChatExample as ChatExample,
    ContinuedPretrainingData as ContinuedPretrainingData,
    TextData as TextData,
    TextDocument as TextDocument,
    TuningData as TuningData,
    ValidateOn as ValidateOn,
    split_documents as split_documents,
)
from .result import (
    DataSummary as DataSummary,
    ValidationLoss as ValidationLoss,
    StepLoss as StepLoss,
    Trial as Trial,
    TuningResult as TuningResult,
    list_adapters as list_adapters,
    read_result as read_result,
)
from .run import TuningProgress as TuningProgress
from .training import DEFAULT_GRID as DEFAULT_GRID, SearchProgress as SearchProgress, search as search, train as train
