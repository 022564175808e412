"""climassay: measure whether a language model can be trusted on climate.

The names that matter in a notebook; the rooms (``climassay.corpus``, ``climassay.evaluation`` ...) have many more::

    import climassay

    climassay.add_documents("books", ["report.pdf"])
    print(climassay.ask("How much has the sea level risen?", "books").text)
    print(climassay.check_claim("Volcanoes emit more CO2 than people.", "books").verdict.label)
    result = climassay.evaluate("primer", settings=["default", "rag:books"])

Each is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.api import (
        Evaluation,
        add_documents,
        ask,
        check_claim,
        check_claims,
        check_text,
        evaluate,
        evaluate_lm_eval,
        evaluate_search,
        extract_confidence,
        find_fallacies,
        finetune,
        generate,
        insert,
        lint_confidence,
        pretrain,
        publish,
        rank,
        score_answers,
        score_verdicts,
        screen,
        search,
        train_judge,
    )
    from climassay.api.annotation import (
        annotation_status,
        annotator_agreement,
        export_labels,
        import_labels,
        retrain_validator,
    )
    from climassay.api.benchmarks import (
        run_experiment_file,
    )
    from climassay.api.claims import (
        estimate_debates,
        export_checks,
        list_checks,
        show_check,
    )
    from climassay.api.confidence import (
        compare_confidence,
    )
    from climassay.api.documents import (
        compact_collection,
        remove_documents,
        rename_document,
        show_collection,
    )
    from climassay.api.entailment import (
        apply_entailment,
        evaluate_entailment,
        train_entailment,
    )
    from climassay.api.experiments import (
        compare_benchmarks,
        experiment_tables,
        find_contamination,
        plan_questions,
        report_experiment,
    )
    from climassay.api.fallacies import (
        evaluate_fallacies,
        train_fallacies,
    )
    from climassay.api.judges import (
        ablate_judge,
        benchmark_judges,
        compare_texts,
        evaluate_judge,
    )
    from climassay.api.long_answers import (
        blind_answers,
        check_judge,
    )
    from climassay.api.models import (
        check_model,
        list_models,
    )
    from climassay.api.records import (
        export_records,
        import_records,
        list_runs,
        merge_records,
        model_usage,
        show_record,
    )
    from climassay.api.scores import (
        calibrate_window,
        measure_faithfulness,
    )
    from climassay.api.tagging import (
        evaluate_tagger,
        insert_statements,
        tag_statements,
        train_tagger,
    )
    from climassay.api.topics import (
        find_topics,
        report_topics,
    )
    from climassay.api.validation import (
        apply_masker,
        apply_validator,
        evaluate_maskers,
        evaluate_validator,
        simulate_labelling,
        train_masker,
        train_validator,
    )
    from climassay.api.verdict_heads import (
        apply_verdict_head,
        check_with_evidence,
        train_verdict_head,
    )
    from climassay.confidence.tagging import load_tagger
    from climassay.corpus import Collection
    from climassay.errors import ClimassayError
    from climassay.judging import Item
    from climassay.models import load_model
    from climassay.models.encoders.loading import load_encoder
    from climassay.questions import read_questions
    from climassay.session import ModelOptions, Session
    from climassay.workspace import Workspace

__version__ = "0.1.0.dev0"

_PLACES = {
    "api": (
        "Evaluation",
        "add_documents",
        "ask",
        "check_claim",
        "check_claims",
        "check_text",
        "evaluate",
        "evaluate_lm_eval",
        "evaluate_search",
        "extract_confidence",
        "find_fallacies",
        "finetune",
        "generate",
        "insert",
        "lint_confidence",
        "pretrain",
        "publish",
        "rank",
        "score_answers",
        "score_verdicts",
        "screen",
        "search",
        "train_judge",
    ),
    "api.annotation": (
        "annotation_status",
        "annotator_agreement",
        "export_labels",
        "import_labels",
        "retrain_validator",
    ),
    "api.benchmarks": ("run_experiment_file",),
    "api.claims": (
        "estimate_debates",
        "export_checks",
        "list_checks",
        "show_check",
    ),
    "api.confidence": ("compare_confidence",),
    "api.documents": (
        "compact_collection",
        "remove_documents",
        "rename_document",
        "show_collection",
    ),
    "api.entailment": (
        "apply_entailment",
        "evaluate_entailment",
        "train_entailment",
    ),
    "api.experiments": (
        "compare_benchmarks",
        "experiment_tables",
        "find_contamination",
        "plan_questions",
        "report_experiment",
    ),
    "api.fallacies": (
        "evaluate_fallacies",
        "train_fallacies",
    ),
    "api.judges": (
        "ablate_judge",
        "benchmark_judges",
        "compare_texts",
        "evaluate_judge",
    ),
    "api.long_answers": (
        "blind_answers",
        "check_judge",
    ),
    "api.models": (
        "check_model",
        "list_models",
    ),
    "api.records": (
        "export_records",
        "import_records",
        "list_runs",
        "merge_records",
        "model_usage",
        "show_record",
    ),
    "api.scores": (
        "calibrate_window",
        "measure_faithfulness",
    ),
    "api.tagging": (
        "evaluate_tagger",
        "insert_statements",
        "tag_statements",
        "train_tagger",
    ),
    "api.topics": (
        "find_topics",
        "report_topics",
    ),
    "api.validation": (
        "apply_masker",
        "apply_validator",
        "evaluate_maskers",
        "evaluate_validator",
        "simulate_labelling",
        "train_masker",
        "train_validator",
    ),
    "api.verdict_heads": (
        "apply_verdict_head",
        "check_with_evidence",
        "train_verdict_head",
    ),
    "confidence.tagging": ("load_tagger",),
    "corpus": ("Collection",),
    "errors": ("ClimassayError",),
    "judging": ("Item",),
    "models": ("load_model",),
    "models.encoders.loading": ("load_encoder",),
    "questions": ("read_questions",),
    "session": ("ModelOptions", "Session"),
    "workspace": ("Workspace",),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "ClimassayError",
    "Collection",
    "Evaluation",
    "Item",
    "ModelOptions",
    "Session",
    "Workspace",
    "__version__",
    "ablate_judge",
    "add_documents",
    "annotation_status",
    "annotator_agreement",
    "apply_entailment",
    "apply_masker",
    "apply_validator",
    "apply_verdict_head",
    "ask",
    "benchmark_judges",
    "blind_answers",
    "calibrate_window",
    "check_claim",
    "check_claims",
    "check_judge",
    "check_model",
    "check_text",
    "check_with_evidence",
    "compact_collection",
    "compare_benchmarks",
    "compare_confidence",
    "compare_texts",
    "estimate_debates",
    "evaluate",
    "evaluate_entailment",
    "evaluate_fallacies",
    "evaluate_judge",
    "evaluate_lm_eval",
    "evaluate_maskers",
    "evaluate_search",
    "evaluate_tagger",
    "evaluate_validator",
    "experiment_tables",
    "export_checks",
    "export_labels",
    "export_records",
    "extract_confidence",
    "find_contamination",
    "find_fallacies",
    "find_topics",
    "finetune",
    "generate",
    "import_labels",
    "import_records",
    "insert",
    "insert_statements",
    "lint_confidence",
    "list_checks",
    "list_models",
    "list_runs",
    "load_encoder",
    "load_model",
    "load_tagger",
    "measure_faithfulness",
    "merge_records",
    "model_usage",
    "plan_questions",
    "pretrain",
    "publish",
    "rank",
    "read_questions",
    "remove_documents",
    "rename_document",
    "report_experiment",
    "report_topics",
    "retrain_validator",
    "run_experiment_file",
    "score_answers",
    "score_verdicts",
    "screen",
    "search",
    "show_check",
    "show_collection",
    "show_record",
    "simulate_labelling",
    "tag_statements",
    "train_entailment",
    "train_fallacies",
    "train_judge",
    "train_masker",
    "train_tagger",
    "train_validator",
    "train_verdict_head",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import climassay`` costs next to nothing."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    """The public names, so that a notebook completes them before they are imported."""
    return sorted({*globals(), *__all__})
