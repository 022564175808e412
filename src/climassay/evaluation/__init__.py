"""Measure language models on question benchmarks: tasks, settings, scores, tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.evaluation.comparing import (
        Favour,
        ModelMeans,
        PublishedScore,
        RankAgreement,
        compare_runs,
        experiment_means,
        generator_favour,
        published_means,
        published_scores,
        rank_agreement,
    )
    from climassay.evaluation.contamination import ContaminationReport, LabelledText
    from climassay.evaluation.experiment_file import (
        BenchmarkSpec,
        ExperimentPlan,
        HarnessSpec,
        ModelSpec,
        load_plan,
        parse_plan,
    )
    from climassay.evaluation.judge_check import BlindAnswer, Preferred, RatedAnswer, alpha_estimate
    from climassay.evaluation.planning import Assumptions, Plan, assume_binary, assume_from_run, assume_mean, plan
    from climassay.evaluation.report import experiment_report, mcq_report_sections
    from climassay.evaluation.results import (
        Cell,
        CellRecord,
        ConstantScore,
        Experiment,
        Outcome,
        TaskGroup,
        load_experiment,
    )
    from climassay.evaluation.runner import (
        Ask,
        EvaluationResources,
        HarnessCell,
        HarnessCells,
        Progress,
        limited,
        open_resources,
        open_sources,
        read_benchmark,
        run_experiment,
    )
    from climassay.evaluation.scores import (
        OVERALL,
        AccuracyRow,
        ExperimentScores,
        McqScores,
        PairedRow,
        PositionRow,
        score_experiment,
        score_mcq,
    )
    from climassay.evaluation.settings import (
        ExamplePool,
        Prepared,
        Retriever,
        Setting,
        SettingSpec,
        Sources,
        TaskPrompts,
        Values,
        after_prefix,
        chat_examples,
        example_values,
        expected_answer,
        make_setting,
        open_pool,
        parse_setting,
        parse_spec,
    )
    from climassay.evaluation.side_by_side import Better, Comparer
    from climassay.evaluation.tables import experiment_tables, mcq_tables
    from climassay.evaluation.tasks import Prediction, Scoring, ask_mcq, option_orders
    from climassay.evaluation.tuned import ReadDocument, collection_documents, question_data, split_questions

_PLACES = {
    "comparing": "Favour ModelMeans PublishedScore RankAgreement compare_runs experiment_means generator_favour "
    "published_means published_scores rank_agreement",
    "contamination": "ContaminationReport LabelledText",
    "experiment_file": "BenchmarkSpec ExperimentPlan HarnessSpec ModelSpec load_plan parse_plan",
    "planning": "Assumptions Plan assume_binary assume_from_run assume_mean plan",
    "report": "experiment_report mcq_report_sections",
    "results": "Cell CellRecord ConstantScore Experiment Outcome TaskGroup load_experiment",
    "runner": "Ask EvaluationResources HarnessCell HarnessCells "
    "Progress limited open_resources open_sources read_benchmark run_experiment",
    "judge_check": "BlindAnswer Preferred RatedAnswer alpha_estimate",
    "side_by_side": "Better Comparer",
    "scores": "OVERALL AccuracyRow ExperimentScores McqScores PairedRow PositionRow score_experiment score_mcq",
    "settings": "ExamplePool Prepared Retriever Setting SettingSpec Sources TaskPrompts Values after_prefix "
    "chat_examples example_values expected_answer make_setting open_pool parse_setting parse_spec",
    "tables": "experiment_tables mcq_tables",
    "tasks": "Prediction Scoring ask_mcq option_orders",
    "tuned": "ReadDocument collection_documents question_data split_questions",
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = [
    "OVERALL", "AccuracyRow", "Ask", "Assumptions", "BenchmarkSpec", "Better", "BlindAnswer", "Cell", "CellRecord",
    "Comparer", "ConstantScore", "ContaminationReport", "EvaluationResources", "ExamplePool", "Experiment",
    "ExperimentPlan", "ExperimentScores", "Favour", "HarnessCell", "HarnessCells", "HarnessSpec", "LabelledText",
    "McqScores", "ModelMeans", "ModelSpec", "Outcome", "PairedRow", "Plan", "PositionRow", "Prediction", "Preferred",
    "Prepared", "Progress", "PublishedScore", "RankAgreement", "RatedAnswer", "ReadDocument", "Retriever", "Scoring",
    "Setting", "SettingSpec", "Sources", "TaskGroup", "TaskPrompts", "Values", "after_prefix", "alpha_estimate",
    "ask_mcq", "assume_binary", "assume_from_run", "assume_mean", "chat_examples", "collection_documents",
    "compare_runs", "example_values", "expected_answer", "experiment_means", "experiment_report", "experiment_tables",
    "generator_favour", "limited", "load_experiment", "load_plan", "make_setting", "mcq_report_sections",
    "mcq_tables", "open_pool", "open_resources", "open_sources", "option_orders", "parse_plan", "parse_setting",
    "parse_spec", "plan", "published_means", "published_scores", "question_data", "rank_agreement", "read_benchmark",
    "run_experiment", "score_experiment", "score_mcq", "split_questions",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the records and the models come with many of them."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
