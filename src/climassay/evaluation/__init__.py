"""Measure language models on question benchmarks: tasks, settings, scores, tables."""

from climassay.evaluation.experiment import McqEvaluation, evaluate_mcq
from climassay.evaluation.mcq import McqPrompts, Prediction, Scoring, ask_mcq, option_orders, parse_letter
from climassay.evaluation.presentation import mcq_report, mcq_report_sections, mcq_tables
from climassay.evaluation.scores import AccuracyRow, McqScores, PairedRow, PositionRow, score_mcq
from climassay.evaluation.settings import Prepared, Retriever, Setting, parse_setting

__all__ = [
    "AccuracyRow",
    "McqEvaluation",
    "McqPrompts",
    "McqScores",
    "PairedRow",
    "PositionRow",
    "Prediction",
    "Prepared",
    "Retriever",
    "Scoring",
    "Setting",
    "ask_mcq",
    "evaluate_mcq",
    "mcq_report",
    "mcq_report_sections",
    "mcq_tables",
    "option_orders",
    "parse_letter",
    "parse_setting",
    "score_mcq",
]
