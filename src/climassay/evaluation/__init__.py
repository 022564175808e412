"""Measure language models on question benchmarks: tasks, settings, scores, tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# A function that has its module's name must be bound here and now: importing a submodule sets an attribute of its name
# on the package, which would hide a function that is looked up only when it is used. These modules are light.
from climassay.evaluation.experiment_report import experiment_report
from climassay.evaluation.experiment_tables import experiment_tables

if TYPE_CHECKING:
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
    from climassay.evaluation.examples import (
        ExamplePool,
        TaskPrompts,
        Values,
        after_prefix,
        chat_examples,
        example_values,
        expected_answer,
        open_pool,
    )
    from climassay.evaluation.experiment_file import BenchmarkSpec, ExperimentPlan, ModelSpec, load_plan, parse_plan
    from climassay.evaluation.experiment_scores import ExperimentScores, score_experiment
    from climassay.evaluation.experiment_store import load_experiment
    from climassay.evaluation.matrix import Bench, read_benchmark, run_experiment
    from climassay.evaluation.mcq import LETTER_TOKENS, Prediction, Scoring, ask_mcq, option_orders, parse_letter
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
    from climassay.evaluation.tuned import ReadDocument, collection_documents, question_data, split_questions
    from climassay.evaluation.written import CLOZE_TOKENS, FREEFORM_TOKENS, cloze_answer, freeform_answer

_PLACES = {
    "bench": ("open_bench",),
    "comparing": (
        "Favour",
        "ModelMeans",
        "RankAgreement",
        "experiment_means",
        "generator_favour",
        "published_means",
        "rank_agreement",
    ),
    "contamination": (
        "ContaminationReport",
        "LabelledText",
    ),
    "examples": (
        "ExamplePool",
        "TaskPrompts",
        "Values",
        "after_prefix",
        "chat_examples",
        "example_values",
        "expected_answer",
        "open_pool",
    ),
    "experiment_file": (
        "BenchmarkSpec",
        "ExperimentPlan",
        "ModelSpec",
        "load_plan",
        "parse_plan",
    ),
    "experiment_scores": (
        "ExperimentScores",
        "score_experiment",
    ),
    "experiment_store": ("load_experiment",),
    "matrix": (
        "Bench",
        "read_benchmark",
        "run_experiment",
    ),
    "mcq": (
        "LETTER_TOKENS",
        "Prediction",
        "Scoring",
        "ask_mcq",
        "option_orders",
        "parse_letter",
    ),
    "mcq_run": (
        "McqEvaluation",
        "evaluate_mcq",
    ),
    "outcome": (
        "METRICS",
        "Cell",
        "Experiment",
        "Outcome",
    ),
    "planning": (
        "Assumptions",
        "Plan",
        "assume_binary",
        "assume_from_run",
        "assume_mean",
        "plan",
    ),
    "presentation": (
        "mcq_report",
        "mcq_report_sections",
        "mcq_tables",
    ),
    "published": (
        "PublishedScore",
        "published_scores",
    ),
    "scores": (
        "AccuracyRow",
        "McqScores",
        "PairedRow",
        "PositionRow",
        "score_mcq",
    ),
    "settings": (
        "Prepared",
        "Retriever",
        "Setting",
        "SettingSpec",
        "Sources",
        "make_setting",
        "parse_setting",
        "parse_spec",
    ),
    "tuned": (
        "ReadDocument",
        "collection_documents",
        "question_data",
        "split_questions",
    ),
    "written": (
        "CLOZE_TOKENS",
        "FREEFORM_TOKENS",
        "cloze_answer",
        "freeform_answer",
    ),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "CLOZE_TOKENS",
    "FREEFORM_TOKENS",
    "LETTER_TOKENS",
    "METRICS",
    "AccuracyRow",
    "Assumptions",
    "Bench",
    "BenchmarkSpec",
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
    "ModelSpec",
    "Outcome",
    "PairedRow",
    "Plan",
    "PositionRow",
    "Prediction",
    "Prepared",
    "PublishedScore",
    "RankAgreement",
    "ReadDocument",
    "Retriever",
    "Scoring",
    "Setting",
    "SettingSpec",
    "Sources",
    "TaskPrompts",
    "Values",
    "after_prefix",
    "ask_mcq",
    "assume_binary",
    "assume_from_run",
    "assume_mean",
    "chat_examples",
    "cloze_answer",
    "collection_documents",
    "evaluate_mcq",
    "example_values",
    "expected_answer",
    "experiment_means",
    "experiment_report",
    "experiment_tables",
    "freeform_answer",
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
    "question_data",
    "rank_agreement",
    "read_benchmark",
    "run_experiment",
    "score_experiment",
    "score_mcq",
    "split_questions",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the records and the models come with many of them."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
