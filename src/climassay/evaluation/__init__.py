"""Measure language models on question benchmarks: tasks, settings, scores, tables."""

from climassay.evaluation.bench import open_bench
from climassay.evaluation.comparing import (
    Favour,
    ModelMeans,
    RankAgreement,
    experiment_means,
    generator_favour,
    published_means,
    rank_agreement,
)
from climassay.evaluation.contamination import ContaminationReport, LabelledText
from climassay.evaluation.examples import ExamplePool, TaskPrompts, chat_examples, open_pool
from climassay.evaluation.experiment_file import ExperimentPlan, load_plan, parse_plan
from climassay.evaluation.experiment_report import experiment_report
from climassay.evaluation.experiment_scores import ExperimentScores, score_experiment
from climassay.evaluation.experiment_store import load_experiment
from climassay.evaluation.experiment_tables import experiment_tables
from climassay.evaluation.matrix import Bench, read_benchmark, run_experiment
from climassay.evaluation.mcq import Prediction, Scoring, ask_mcq, option_orders, parse_letter
from climassay.evaluation.mcq_run import McqEvaluation, evaluate_mcq
from climassay.evaluation.outcome import METRICS, Cell, Experiment, Outcome
from climassay.evaluation.planning import Assumptions, Plan, assume_binary, assume_from_run, assume_mean, plan
from climassay.evaluation.presentation import mcq_report, mcq_report_sections, mcq_tables
from climassay.evaluation.published import PublishedScore, published_scores
from climassay.evaluation.scores import AccuracyRow, McqScores, PairedRow, PositionRow, score_mcq
from climassay.evaluation.settings import (
    Prepared,
    Retriever,
    Setting,
    SettingSpec,
    Sources,
    make_setting,
    parse_setting,
    parse_spec,
)

__all__ = [
    "METRICS",
    "AccuracyRow",
    "Assumptions",
    "Bench",
    "Cell",
    "ContaminationReport",
    "ExamplePool",
    "Experiment",
    "ExperimentPlan",
    "ExperimentScores",
    "Favour",
    "LabelledText",
    "McqEvaluation",
    "McqScores",
    "ModelMeans",
    "Outcome",
    "PairedRow",
    "Plan",
    "PositionRow",
    "Prediction",
    "Prepared",
    "PublishedScore",
    "RankAgreement",
    "Retriever",
    "Scoring",
    "Setting",
    "SettingSpec",
    "Sources",
    "TaskPrompts",
    "ask_mcq",
    "assume_binary",
    "assume_from_run",
    "assume_mean",
    "chat_examples",
    "evaluate_mcq",
    "experiment_means",
    "experiment_report",
    "experiment_tables",
    "generator_favour",
    "load_experiment",
    "load_plan",
    "make_setting",
    "mcq_report",
    "mcq_report_sections",
    "mcq_tables",
    "open_bench",
    "open_pool",
    "option_orders",
    "parse_letter",
    "parse_plan",
    "parse_setting",
    "parse_spec",
    "plan",
    "published_means",
    "published_scores",
    "rank_agreement",
    "read_benchmark",
    "run_experiment",
    "score_experiment",
    "score_mcq",
]
