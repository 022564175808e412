"""Scores of answers against references by metrics and a judge, and of entailment scorers on labelled pairs."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.metrics.results import ScoredAnswers, ScoredEntailment, make_entailment_tables
from climassay.models import Generator
from climassay.prompts import load_prompt
from climassay.reporting import Report, Section
from climassay.reporting.tables import counted
from climassay.session import Place, Session

if TYPE_CHECKING:
    pass


def score_answers(
    file: str | Path,
    *,
    metrics: Sequence[str] | None = None,
    encoder: str = "local:minilm",
    window: int | None = 4,
    judge: Generator | str | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> ScoredAnswers:
    """Score answers against their references by several metrics, with means and intervals.

    Args:
        file: Table (CSV, JSONL or Parquet) with the columns reference and answer; cloze answers also need statement.
        metrics: Metrics to compute: bleu_char, bleu, bert_score, judged_accuracy (with --judge), exact_match,
            exact_match_normalised or phrase_similarity; can be repeated. By default the last three for rows with a
            statement, and the first three for other rows.
        encoder: Encoder: local:minilm (bundled), or local: followed by a folder or hub id.
        window: Number of words on each side of the gap that phrase similarity compares; 0 for the whole statement.
        judge: Strong model that grades each answer with a reason (judged_accuracy), given the question, the reference
            and the answer; the table then needs a column question.
        seed: Seed of the bootstrap.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be read, or a metric does not exist.
        ModelError: The judge cannot be loaded.
    """
    from climassay.metrics import read_answers
    from climassay.metrics import score_answers as compute_scores

    answers = read_answers(Path(file))
    with Session.opened(workspace) as session:
        status = f"Scoring {len(answers.rows)} answers ..."
        if judge is None:
            with session.progress.status(status):
                scores = compute_scores(answers.rows, metrics, encoder=encoder, window=window or None, seed=seed)
            return ScoredAnswers(answers, scores)
        prompt = load_prompt("judged_accuracy", session.options.prompts)
        model = session.model(judge)
        config = {"file": answers.name, "model": model.name, "prompt_sha256": prompt.sha256}
        with session.run("metrics score", config) as run, session.progress.status(status):
            scores = compute_scores(
                answers.rows,
                metrics,
                encoder=encoder,
                window=window or None,
                seed=seed,
                judge=session.recorded(model, run),
                judge_prompt=prompt,
            )
    return ScoredAnswers(answers, scores)


def evaluate_entailment(
    scorer: str,
    labels: Path | str,
    *,
    against: Sequence[str] = (),
    limit: int | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> ScoredEntailment:
    """Evaluate entailment scorers on labelled pairs of premise and statement, with the majority-class baseline.

    Args:
        scorer: Scorer: prompted:MODEL, supports:MODEL (the judge of the ClimaQA paper) or nli:MODEL.
        labels: Labelled pairs: Climate-FEVER's JSONL, or a table with the columns premise, statement and label.
        against: Further scorer to evaluate on the same pairs; can be repeated.
        limit: Number of statements to draw at random, with all their pairs; by default all are used.
        seed: Random seed for the sample and the bootstrap.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The pairs cannot be read, or a scorer does not exist.
        ModelError: A model cannot be loaded.
    """
    from climassay.metrics import load_entailment
    from climassay.metrics.labelled_pairs import read_pairs, sample_statements, validate_entailment

    labels = Path(labels)
    table = read_pairs(labels)
    pairs = sample_statements(table.pairs, limit, seed)
    with Session.opened(workspace) as session:
        scorers = {name: load_entailment(name, load=session.load) for name in (scorer, *against)}
        scores = []
        for name, entailment_scorer in scorers.items():
            with session.progress.task(f"Asking {name}", len(pairs)) as task:
                result = validate_entailment(pairs, entailment_scorer, seed=seed, on_progress=task.advance)
            scores.append(replace(result, scorer=name))
    tables = make_entailment_tables(scores)
    introduction = f"How well scorers tell what a passage does to a statement, on labelled pairs of {labels.name}."
    notes = (f"{counted(table.skipped, 'pair')} without a text or a label left out.",) if table.skipped else ()
    data = {
        "file": str(labels),
        "sha256": table.sha256,
        "skipped": table.skipped,
        "scorers": [asdict(score) for score in scores],
    }

    def report() -> Report:
        return Report("Entailment scorers", " ".join((introduction, *notes)), (Section("Scores", tuple(tables)),))

    return ScoredEntailment(data, tables, noted=notes, reported=report)
