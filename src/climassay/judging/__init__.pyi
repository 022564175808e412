from .anchor_labelling import InsertionResult as InsertionResult, insert_items as insert_items
from .benchmark import (
    JudgeBenchmark as JudgeBenchmark,
    JudgeResult as JudgeResult,
    JudgeTask as JudgeTask,
    benchmark_judges as benchmark_judges,
    evaluate_judge as evaluate_judge,
)
from .judges import (
    ContrastProbe as ContrastProbe,
    StateExtractor as StateExtractor,
    PointwiseProbe as PointwiseProbe,
    probe_judge as probe_judge,
)
from .item_tables import (
    ItemColumns as ItemColumns,
    ItemTable as ItemTable,
    parse_levels as parse_levels,
    published_columns as published_columns,
    read_items as read_items,
)
from .preferences import (
    Item as Item,
    Method as Method,
    Preferences as Preferences,
    Quality as Quality,
    QualityRequests as QualityRequests,
    aspect_names as aspect_names,
    quality as quality,
)
from .fitting import fit_contrast as fit_contrast
from .probe import Probe as Probe, load_probe as load_probe
from .published_evaluation import score_transfer as score_transfer
from .ranking import ItemRanking as ItemRanking, rank_items as rank_items, sort_items as sort_items
from .settings import BenchmarkSettings as BenchmarkSettings, InsertMode as InsertMode, ProbeSettings as ProbeSettings
from .training import (
    METHODS as METHODS,
    TrainedProbe as TrainedProbe,
    make_folds as make_folds,
    train_probe as train_probe,
)
