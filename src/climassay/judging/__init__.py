"""Judging: which of two texts has more of a quality, by pairs, probes on contrast pairs, sorting and insertion.

PairS (Liu et al. 2024) and PPairS (Maiya 2024), computed without waste and measured honestly: one pass over a tree of
shared prompts instead of two passes per pair, exact merges, folds that share no item, and baselines that have to be
beaten. See docs/judging.md.
"""

from climassay.judging.anchor_labelling import Inserted, Insertion, insert_items, insert_many
from climassay.judging.benchmark import (
    Agreement,
    BenchmarkSettings,
    JudgeBenchmark,
    JudgeResult,
    JudgeScores,
    JudgeTask,
    benchmark_judges,
    evaluate_judge,
    score_judge,
)
from climassay.judging.candidates import METHODS, Fold, ProbeSettings, make_folds
from climassay.judging.causal import Ablation, ablate
from climassay.judging.items import Item, ItemColumns, ItemTable, parse_levels, read_items
from climassay.judging.judges import (
    ContrastProbe,
    DirectScoring,
    Harvester,
    PairwisePrompt,
    PointwiseProbe,
    ZeroShotContrast,
)
from climassay.judging.preferences import Judgements, Method, Preferences
from climassay.judging.probe import (
    Contrast,
    PairProbe,
    PointProbe,
    fit_contrast,
    fit_pointwise,
    fit_principal,
    load_probe,
    save_probe,
)
from climassay.judging.prompts import Quality, Questions, aspect_names, quality
from climassay.judging.ranking import ItemRanking, rank_items
from climassay.judging.sorting import Ranking, sort_items
from climassay.judging.training import TrainedProbe, train_probe
from climassay.learning.harvest import ActivationStore

__all__ = [
    "METHODS", "Ablation", "ActivationStore", "Agreement", "BenchmarkSettings", "Contrast", "ContrastProbe",
    "DirectScoring", "Fold", "Harvester", "Inserted", "Insertion", "Item", "ItemColumns", "ItemRanking",
    "ItemTable", "JudgeBenchmark", "JudgeResult", "JudgeScores", "JudgeTask", "Judgements", "Method", "PairProbe",
    "PairwisePrompt", "PointProbe", "PointwiseProbe", "Preferences", "ProbeSettings", "Quality", "Questions",
    "Ranking", "TrainedProbe", "ZeroShotContrast", "ablate", "aspect_names", "benchmark_judges", "evaluate_judge",
    "fit_contrast", "fit_pointwise", "fit_principal", "insert_items", "insert_many", "load_probe", "make_folds",
    "parse_levels", "quality", "rank_items", "read_items", "save_probe", "score_judge", "sort_items", "train_probe",
]  # fmt: skip
