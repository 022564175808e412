"""LoRA training of local models: continued pre-training on texts, fine-tuning on chats, and the adapters they leave."""

from typing import TYPE_CHECKING

from climassay.registry import export_lazily

if TYPE_CHECKING:
    from climassay.tuning.base import TuningBase as TuningBase
    from climassay.tuning.config import (
        PRESETS as PRESETS,
        Preset as Preset,
        TuningConfig as TuningConfig,
        find_preset as find_preset,
    )
    from climassay.tuning.data import (
        ChatData as ChatData,
        ChatExample as ChatExample,
        ContinuedPretrainingData as ContinuedPretrainingData,
        TextData as TextData,
        TextDocument as TextDocument,
        TuningData as TuningData,
        ValidateOn as ValidateOn,
        split_documents as split_documents,
    )
    from climassay.tuning.result import (
        DataSummary as DataSummary,
        Evaluation as Evaluation,
        StepLoss as StepLoss,
        Trial as Trial,
        TuningResult as TuningResult,
        list_adapters as list_adapters,
        read_result as read_result,
    )
    from climassay.tuning.run import TuningProgress as TuningProgress
    from climassay.tuning.training import (
        DEFAULT_GRID as DEFAULT_GRID,
        SearchProgress as SearchProgress,
        search as search,
        train as train,
    )

export_lazily(__name__)
