"""Judging: which of two texts has more of a quality, by pairs, probes on contrast pairs, sorting and insertion.

PairS (Liu et al. 2024) and PPairS (Maiya 2024), computed without waste and measured honestly: one pass over a tree of
shared prompts instead of two passes a pair, merges that are exact, folds that share no item, and baselines that have to
be beaten. See docs/judging.md.
"""

from climassay.judging.asking import Questions
from climassay.judging.benchmark import Agreement, JudgeScores, score_judge
from climassay.judging.candidates import METHODS, CandidateMaker, ProbeSettings
from climassay.judging.causal import Ablation, ablate
from climassay.judging.experiment import (
    BenchmarkSettings,
    JudgeBenchmark,
    JudgeResult,
    JudgeTask,
    benchmark_judges,
    result_row,
)
from climassay.judging.folds import Fold, make_folds
from climassay.judging.insertion import Insertion, insert, insert_many
from climassay.judging.items import Item, ItemColumns, ItemTable, parse_levels, read_items
from climassay.judging.preferences import Judgements, Method, Preferences
from climassay.judging.probe import Contrast, PairProbe, PointProbe, load_probe, save_probe
from climassay.judging.probe_fitting import fit_contrast, fit_pointwise, fit_principal
from climassay.judging.probing import ContrastProbe, Harvester, PointwiseProbe, ZeroShotContrast
from climassay.judging.prompting import DirectScoring, PairwisePrompt
from climassay.judging.quality import Quality, aspect_names, quality
from climassay.judging.ranking import ItemRanking, insert_items, rank_items
from climassay.judging.sorting import Ranking, sort_items
from climassay.judging.training import TrainedProbe, train_probe
from climassay.learning.activation_store import ActivationStore
from climassay.learning.evaluation import Calibration, brier_score, calibration
from climassay.learning.harvest import Harvest, harvest
from climassay.statistics import reliability_curve

__all__ = [
    "METHODS",
    "Ablation",
    "ActivationStore",
    "Agreement",
    "BenchmarkSettings",
    "Calibration",
    "CandidateMaker",
    "Contrast",
    "ContrastProbe",
    "DirectScoring",
    "Fold",
    "Harvest",
    "Harvester",
    "Insertion",
    "Item",
    "ItemColumns",
    "ItemRanking",
    "ItemTable",
    "JudgeBenchmark",
    "JudgeResult",
    "JudgeScores",
    "JudgeTask",
    "Judgements",
    "Method",
    "PairProbe",
    "PairwisePrompt",
    "PointProbe",
    "PointwiseProbe",
    "Preferences",
    "ProbeSettings",
    "Quality",
    "Questions",
    "Ranking",
    "TrainedProbe",
    "ZeroShotContrast",
    "ablate",
    "aspect_names",
    "benchmark_judges",
    "brier_score",
    "calibration",
    "fit_contrast",
    "fit_pointwise",
    "fit_principal",
    "harvest",
    "insert",
    "insert_items",
    "insert_many",
    "load_probe",
    "make_folds",
    "parse_levels",
    "quality",
    "rank_items",
    "read_items",
    "reliability_curve",
    "result_row",
    "save_probe",
    "score_judge",
    "sort_items",
    "train_probe",
]
