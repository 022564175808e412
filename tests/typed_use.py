"""How ``import climassay`` is used, with the types that come out; ``make lint`` checks them, nothing runs this."""

from collections.abc import Callable
from pathlib import Path
from typing import assert_type

import climassay
from climassay.confidence.results import ExtractedStatements, LintedDrafts
from climassay.corpus import AddReport, Collection, Hit, RetrievalReport
from climassay.corpus.presentation import SearchResult
from climassay.evaluation import Experiment
from climassay.factcheck import CheckedClaim, CheckedClaims, FoundFallacy, ScoredVerdicts
from climassay.generation.dataset_results import GeneratedDataset, ScreenedDrafts
from climassay.grounding import GroundedAnswer
from climassay.grounding.text_check_result import TextCheck
from climassay.integrations.dataset_publication import Publication
from climassay.judging import InsertionResult, ItemRanking, Probe, TrainedProbe
from climassay.metrics.results import ScoredAnswers
from climassay.models import Encoder, Generator
from climassay.questions import QuestionSet
from climassay.reporting.results import Result
from climassay.tuning import TuningResult


def use(folder: Path) -> None:
    """Every name once."""
    assert_type(climassay.__version__, str)
    workspace = climassay.Workspace.open(folder)
    assert_type(workspace, climassay.Workspace)
    assert_type(climassay.add_documents("books", [folder / "book.pdf"], workspace=workspace), AddReport)
    encoder = climassay.load_encoder()
    assert_type(encoder, Encoder)
    assert_type(climassay.Collection.open(workspace, "books", encoder).search("heat"), list[Hit])
    assert_type(climassay.Collection.create(workspace, "more", encoder), Collection)
    model = climassay.load_model()
    assert_type(model, Generator)
    assert_type(climassay.ask("Why?", "books", model=model, workspace=folder), GroundedAnswer)
    assert_type(climassay.check_claim("It warms.", ["books"], model="local:smollm2"), CheckedClaim)
    assert_type(climassay.find_fallacies(["It has always changed."]), list[FoundFallacy])
    assert_type(climassay.generate("silver", "books", cloze=3), GeneratedDataset)
    assert_type(climassay.screen("primer"), ScreenedDrafts)
    assert_type(climassay.publish("silver", folder / "silver"), Publication)
    assert_type(climassay.check_claims(["It warms."], "books"), CheckedClaims)
    assert_type(climassay.score_verdicts(folder / "v.csv", "truth", "ours"), ScoredVerdicts)
    with climassay.Session.opened(folder, climassay.ModelOptions(no_cache=True)) as session:
        assert_type(session, climassay.Session)
        assert_type(climassay.search("books", "heat", workspace=session), SearchResult)
        assert_type(climassay.evaluate_search("books", "primer", workspace=session), RetrievalReport)
    questions = climassay.read_questions(folder / "questions.jsonl")
    assert_type(questions, QuestionSet)
    result = climassay.evaluate(
        questions, models=[model, "local:smollm2"], metrics=["accuracy"], settings=["default", "rag:books"], limit=5
    )
    assert_type(result, climassay.Evaluation)
    assert_type(result.experiment, Experiment)
    result.report().write(folder / "report.html")
    assert_type(climassay.pretrain("adapted", "books"), TuningResult)
    assert_type(climassay.finetune("tuned", "primer"), TuningResult)
    assert_type(climassay.score_answers(folder / "answers.csv", metrics=["bleu"]), ScoredAnswers)
    item = climassay.Item("1", "A text", label=1.0)
    trained = climassay.train_judge([item], "claims", output=folder / "probe.safetensors")
    assert_type(trained, TrainedProbe)
    assert_type(trained.probe, Probe)
    assert_type(climassay.rank(["A text", item], probe=trained.probe), ItemRanking)
    assert_type(climassay.insert(["A text"], [item], ["low", "high"], "claims"), InsertionResult)
    assert_type(climassay.extract_confidence(folder / "report.pdf"), ExtractedStatements)
    assert_type(climassay.lint_confidence(folder / "draft.md"), LintedDrafts)
    assert_type(climassay.check_text("It warms.", "books"), TextCheck)
    try:
        assert_type(climassay.load_tagger().predict(["The sea level rises."])[0], str)
    except climassay.ClimassayError as error:
        assert_type(error.exit_code, int)


VERBS: tuple[Callable[..., Result], ...] = (
    climassay.annotation_status, climassay.annotator_agreement, climassay.apply_masker,
    climassay.apply_validator, climassay.benchmark_judges,
    climassay.blind_answers, climassay.check_judge, climassay.check_model,
    climassay.check_text, climassay.check_with_evidence, climassay.collect_rubrics, climassay.compact_collection,
    climassay.compare_benchmarks, climassay.diff_confidence, climassay.compare_texts,
    climassay.dataset_statistics, climassay.estimate_debates, climassay.estimate_generation,
    climassay.evaluate_entailment, climassay.evaluate_fallacies, climassay.evaluate_inspect,
    climassay.evaluate_judge, climassay.evaluate_lm_eval, climassay.evaluate_tagger,
    climassay.evaluate_validator, climassay.experiment_tables,
    climassay.export_checks, climassay.export_dataset, climassay.export_labels, climassay.export_prompts,
    climassay.export_records, climassay.find_contamination, climassay.find_topics, climassay.import_labels,
    climassay.import_records, climassay.insert_statements, climassay.list_adapters, climassay.list_checks,
    climassay.list_claims, climassay.list_collections, climassay.list_datasets, climassay.list_models,
    climassay.list_presets,
    climassay.list_prompts, climassay.list_runs, climassay.list_screening_checks,
    climassay.annotate_answers, climassay.annotate_questions,
    climassay.model_usage, climassay.name_fallacies, climassay.open_annotation,
    climassay.plan_questions, climassay.remove_documents, climassay.edit_document, climassay.report_experiment,
    climassay.report_topics, climassay.reproduce_climaqa, climassay.reproduce_climinator, climassay.reproduce_ppairs,
    climassay.retrain_validator, climassay.back_up_records, climassay.restore_records,
    climassay.run_experiment_file, climassay.show_adapter,
    climassay.show_check, climassay.show_collection, climassay.show_prompt, climassay.show_record,
    climassay.show_validator, climassay.tag_statements, climassay.train_fallacies,
    climassay.train_tagger, climassay.train_validator,
)  # fmt: skip
"""What is left of the commands, each with a result that has tables, rows and a report."""
