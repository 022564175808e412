from .api.annotation import (
    annotate_answers as annotate_answers,
    annotate_questions as annotate_questions,
    annotation_status as annotation_status,
    annotator_agreement as annotator_agreement,
    collect_rubrics as collect_rubrics,
    export_labels as export_labels,
    import_labels as import_labels,
    open_annotation as open_annotation,
    retrain_validator as retrain_validator,
)
from .api.benchmarks import (
    evaluate as evaluate,
    evaluate_inspect as evaluate_inspect,
    evaluate_lm_eval as evaluate_lm_eval,
    run_experiment_file as run_experiment_file,
)
from .evaluation.evaluation_result import Evaluation as Evaluation
from .api.claims import (
    check_claim as check_claim,
    check_claims as check_claims,
    list_claims as list_claims,
    score_verdicts as score_verdicts,
)
from .api.confidence import (
    diff_confidence as diff_confidence,
    extract_confidence as extract_confidence,
    find_topics as find_topics,
    lint_confidence as lint_confidence,
    report_topics as report_topics,
)
from .api.documents import (
    add_documents as add_documents,
    ask as ask,
    check_text as check_text,
    compact_collection as compact_collection,
    edit_document as edit_document,
    evaluate_search as evaluate_search,
    list_collections as list_collections,
    remove_documents as remove_documents,
    search as search,
    show_collection as show_collection,
)
from .api.evidence import check_with_evidence as check_with_evidence
from .api.experiments import (
    blind_answers as blind_answers,
    check_judge as check_judge,
    compare_benchmarks as compare_benchmarks,
    experiment_tables as experiment_tables,
    find_contamination as find_contamination,
    plan_questions as plan_questions,
    report_experiment as report_experiment,
)
from .api.fallacies import (
    evaluate_fallacies as evaluate_fallacies,
    name_fallacies as name_fallacies,
    train_fallacies as train_fallacies,
)
from .api.generation import (
    dataset_statistics as dataset_statistics,
    estimate_generation as estimate_generation,
    export_dataset as export_dataset,
    generate as generate,
    list_datasets as list_datasets,
    list_screening_checks as list_screening_checks,
    publish as publish,
    screen as screen,
)
from .api.judges import (
    compare_texts as compare_texts,
    evaluate_judge as evaluate_judge,
    insert as insert,
    rank as rank,
    train_judge as train_judge,
)
from .api.models import (
    check_model as check_model,
    export_prompts as export_prompts,
    list_models as list_models,
    list_prompts as list_prompts,
    show_prompt as show_prompt,
)
from .api.records import (
    back_up_records as back_up_records,
    export_records as export_records,
    import_records as import_records,
    list_runs as list_runs,
    model_usage as model_usage,
    restore_records as restore_records,
    show_record as show_record,
)
from .api.scores import evaluate_entailment as evaluate_entailment, score_answers as score_answers
from .api.tagging import (
    evaluate_tagger as evaluate_tagger,
    insert_statements as insert_statements,
    tag_statements as tag_statements,
    train_tagger as train_tagger,
)
from .api.tuning import (
    finetune as finetune,
    list_adapters as list_adapters,
    list_presets as list_presets,
    pretrain as pretrain,
    show_adapter as show_adapter,
)
from .api.validation import (
    apply_masker as apply_masker,
    apply_validator as apply_validator,
    evaluate_validator as evaluate_validator,
    show_validator as show_validator,
    train_validator as train_validator,
)
from .confidence.tagging import load_tagger as load_tagger
from .corpus import Collection as Collection
from .errors import ClimassayError as ClimassayError
from .factcheck.saved_checks import (
    export_checks as export_checks,
    list_checks as list_checks,
    show_check as show_check,
)
from .factcheck.session_debates import estimate_debates as estimate_debates
from .factcheck.fallacies import find_fallacies as find_fallacies
from .judging import Item as Item, benchmark_judges as benchmark_judges
from .models import ModelOptions as ModelOptions, load_model as load_model
from .models.encoders import load_encoder as load_encoder
from .questions import read_questions as read_questions
from .reproduction.papers import (
    reproduce_climaqa as reproduce_climaqa,
    reproduce_climinator as reproduce_climinator,
    reproduce_ppairs as reproduce_ppairs,
)
from .session import Session as Session
from .workspace import Workspace as Workspace

__version__: str
