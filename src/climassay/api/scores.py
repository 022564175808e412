"""Answers scored against references, by metrics and by a judge; what tells what a passage does to a statement."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.api.learned import card, check_model_path, comparison_table, text_rows
from climassay.errors import InputError
from climassay.models import Generator
from climassay.prompts import load_prompt
from climassay.reporting import Report, Section, Table
from climassay.reporting.results import Result, Shown
from climassay.reporting.tables import percent, percent_interval, skipped_note, split_columns
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.grounding.faithful_answers import JudgedAnswer
    from climassay.metrics import AnswerScores
    from climassay.metrics.answer_scores import AnswerTable
    from climassay.metrics.entailment import RelationScorer
    from climassay.metrics.entailment_head import EntailmentScores, LabelledPair


@dataclass(frozen=True, slots=True)
class ScoredAnswers(Result):
    """Answers of a file with their scores."""

    rests_on_calls = False

    answers: "AnswerTable"
    scores: "AnswerScores"

    def to_dict(self) -> dict[str, Any]:
        """Means with intervals, and the scores of every answer."""
        scored = self.scores
        return {
            "file": self.answers.name,
            "skipped": list(self.answers.skipped),
            "means": scored.means,
            "pooled": scored.pooled,
            "computed_by": scored.sources,
            "judge_failures": sum(one.verdict is None for one in scored.judgements.values()),
            "answers": self.rows(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row per answer."""
        scored = self.scores
        rows = []
        for place, one in enumerate(scored.rows):
            row: dict[str, Any] = {"id": one.id, "reference": one.reference, "answer": one.answer}
            row |= {"statement": one.statement} if one.statement else {}
            row |= {metric: values[place] for metric, values in scored.scores.items()}
            if (said := scored.judgements.get(place)) is not None:
                row |= {"verdict": said.verdict, "reason": said.reason, "judge_error": said.error}
            rows.append(row)
        return rows

    def tables(self) -> tuple[Table, ...]:
        """A row per metric."""
        from climassay.metrics import ANSWER_METRICS
        from climassay.metrics.factual_accuracy import SCORES

        scored = self.scores
        rows = []
        for metric, mean in scored.means.items():
            pooled = scored.pooled.get(metric)
            rows.append(
                (
                    ANSWER_METRICS[metric].label,
                    f"{mean.value:.3f}",
                    f"{mean.interval.low:.3f} to {mean.interval.high:.3f}",
                    str(mean.n),
                    "" if pooled is None else f"{pooled:.3f}",
                    scored.sources.get(metric, ""),
                )
            )
        note = "Means over answers, as in ClimaQA's tables."
        note += " All together: BLEU with the counts of all answers summed." if scored.pooled else ""
        if scored.judgements:
            tally = Counter(one.verdict for one in scored.judgements.values())
            verdicts = ", ".join(f"{tally[verdict]} {verdict}" for verdict in SCORES)
            note += f" As judged: {verdicts}; {tally[None]} judgements failed. Partly correct counts one half."
        headings = ("metric", "mean", "95% interval", "n", "all together", "computed by")
        title = f"{self.answers.name}: {len(scored.rows)} answers"
        return (Table.of(title, headings, rows, note=note),)

    def notes(self) -> Iterator[str]:
        """Rows that were left out."""
        yield from skipped_note(self.answers.skipped)


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
    """Score answers against their references: every answer, and means with intervals.

    Args:
        file: Table (CSV, JSONL, Parquet) with the columns reference and answer, and for cloze answers statement.
        metrics: bleu_char, bleu, bert_score, judged_accuracy (with --judge), exact_match, exact_match_normalised or
            phrase_similarity; repeat. By default the last three for rows with a statement, the first three for the
            others.
        encoder: local:minilm (bundled), or local: and a folder or hub id of an encoder.
        window: Words on each side of the gap, for phrase similarity; 0: the whole statement.
        judge: A strong model that sees question, reference and answer and marks each answer, with its reason:
            judged_accuracy. Needs a column question.
        seed: Seed of resampling.
        workspace: Where the judge's answers are kept.

    Raises:
        InputError: The file cannot be read, or there is no such metric.
        ModelError: The judge cannot be loaded.
    """
    from climassay.metrics import read_answers
    from climassay.metrics import score_answers as scored

    answers = read_answers(Path(file))
    with Session.opened(workspace) as session:
        words = f"Scoring {len(answers.rows)} answers ..."
        if judge is None:
            with session.progress.waiting(words):
                scores = scored(answers.rows, metrics, encoder=encoder, window=window or None, seed=seed)
            return ScoredAnswers(answers, scores)
        prompt = load_prompt("judged_accuracy", session.options.prompts)
        model = session.model(judge)
        config = {"file": answers.name, "model": model.name, "prompt_sha256": prompt.sha256}
        with session.run("metrics score", config) as run, session.progress.waiting(words):
            scores = scored(
                answers.rows,
                metrics,
                encoder=encoder,
                window=window or None,
                seed=seed,
                judge=session.recorded(model, run),
                judge_prompt=prompt,
            )
    return ScoredAnswers(answers, scores)


def measure_faithfulness(
    labels: Path,
    truth: str,
    *,
    group: str = "report",
    answer: str = "answer",
    passages: str = "cited",
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Measure how well a learned head and baselines detect unfaithful answers: cross-validated AUROC.

    Args:
        labels: JSON lines with answers, passages and labels.
        truth: Column that is 1 where the answer is faithful, 0 where not.
        group: Column of the groups that are never split between folds.
        answer: Column of the answers.
        passages: Column of the passages: a list, or an object keyed by number.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Whose session tells progress.

    Raises:
        InputError: The file or a column cannot be used.
    """
    from climassay.grounding import faithful_answers
    from climassay.metrics.entailment_head import bundled_entailment

    given = _judged(labels, truth, group, answer, passages)
    scorer = bundled_entailment()
    with Session.opened(workspace) as session, session.progress.waiting("Reading answers"):
        features = faithful_answers.answer_features(given, scorer, scorer.head.encoder)
    result = faithful_answers.measure_faithfulness(given, features, seed=seed)
    unfaithful, groups = sum(one.unfaithful for one in given), len({one.group for one in given})
    rows = [
        [
            one.name,
            f"{one.auroc.value:.3f} [{one.auroc.interval.low:.3f}, {one.auroc.interval.high:.3f}]",
            "" if one.gain is None else f"{one.gain.low:+.3f} to {one.gain.high:+.3f}",
        ]
        for one in result
    ]
    note = (
        f"{len(given)} answers, {unfaithful} of them unfaithful, in {groups} groups, compared within groups; 95%"
        " bootstrap intervals over groups. The constant has 0.5."
    )
    heading = ["told by", "AUROC of unfaithful", "less the best baseline"]
    data = {"answers": len(given), "unfaithful": unfaithful, "groups": groups, "constant": 0.5, "scores": result}
    return Shown(data, (Table.of("Unfaithful answers", heading, rows, note=note),))


def _judged(file: Path, truth: str, group: str, answer: str, passages: str) -> "list[JudgedAnswer]":
    from climassay.grounding.faithful_answers import JudgedAnswer

    results = []
    for number, (said, row) in enumerate(text_rows(file, answer, truth, group, passages), start=1):
        cited = row[passages]
        listed = list(cited.values()) if isinstance(cited, dict) else cited if isinstance(cited, list) else []
        texts = tuple(" ".join(str(text).split()) for text in listed)
        if not any(texts) or str(row[truth]) not in ("0", "1"):
            raise InputError(f"Row {number} of {file} needs passages, and 0 or 1 as {truth}.")
        results.append(JudgedAnswer(said.strip(), tuple(filter(None, texts)), str(row[group]), str(row[truth]) == "0"))
    return results


ALL_FIGURES = 90
"""Columns of a screen that holds all figures of a scorer side by side."""


@dataclass(frozen=True, slots=True)
class ScoredEntailment(Shown):
    """Scorers of what a passage does to a statement, side by side."""

    def terminal_tables(self, width: int) -> list[Table]:
        """The scores in parts, with scorers on lines of their own: a file's name may be longer than all figures."""
        columns = 4 if width >= ALL_FIGURES else 2
        return [
            part
            for table in self.tables()
            for part in (split_columns(table, 1, columns) if table.grouped else (table,))
        ]


def _scored_entailment(
    data: Any, scores: "Sequence[EntailmentScores]", told: Sequence[str], file: str, before: Sequence[Table] = ()
) -> ScoredEntailment:
    """Accuracies in two and three classes, and how well pairs are ranked, behind other tables."""
    about = f"How well scorers tell what a passage does to a statement, on labelled pairs of {file}."

    def report() -> Report:
        return Report("Entailment scorers", " ".join((about, *told)), (Section("Scores", tuple(tables)),))

    tables = _score_tables(scores) if scores else []
    return ScoredEntailment(data, [*before, *tables], noted=told, reported=report)


def _score_tables(scores: "Sequence[EntailmentScores]") -> list[Table]:
    two = comparison_table([(one.scorer, one.two_class) for one in scores], "SUPPORTS or REFUTES")
    three = comparison_table([(one.scorer, one.three_class) for one in scores], "Three relations")
    rows = []
    for one in scores:
        auroc = one.two_class.auroc
        assert auroc is not None
        rows.append(
            (
                one.scorer,
                "{:.3f} [{:.3f}, {:.3f}]".format(auroc.value, *auroc.interval),
                f"{one.support_auroc:.3f}",
                f"{one.calibration.expected_calibration_error:.3f}",
                str(one.three_class.failed),
            )
        )
    columns = ("model", "AUROC", "AUROC of\nsupport", "calibration\nerror", "failed")
    words = "AUROC: supporting pairs above refuting ones; of support: above all others. 0.5 is chance."
    ranking = Table.of("Ranking", columns, rows, note=words)
    marks = [
        (
            one.scorer,
            *("-" if part is None else f"{percent(part.value)} [{percent_interval(part.interval)}]"
              for part in (one.marked, one.unsupporting)),
            str(one.marked.n if one.marked else 0),
            str(one.unsupporting.n),
        )
        for one in scores
    ]  # fmt: skip
    columns = ("model", "marks right\n(%)", "on every pair\n(%)", "marks", "pairs")
    words = (
        "A mark is a probability of support below a half; it is right where the pair does not support. "
        "The second share is that of marks on every pair."
    )
    marked = Table.of('"May not say so"', columns, marks, note=words)
    return [replace(table, grouped=1) for table in (two, three, ranking, marked)]


def train_entailment(
    labels: Path,
    output: Path,
    *,
    hold_out: float = 0,
    encoder: str = "local:minilm",
    folds: int = 5,
    seed: int = 0,
    workspace: Place = None,
) -> ScoredEntailment:
    """Train an entailment head on labelled pairs; its file can be named as a scorer.

    Args:
        labels: Labelled pairs: Climate-FEVER's JSONL, or a table with premise, statement and label.
        output: File to save the head in.
        hold_out: Items held out of training to measure on, in whole groups: their number, or a share below 1.
        encoder: Encoder whose vectors are used, or none.
        folds: Number of cross-validation folds.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Whose session loads the encoder.

    Raises:
        InputError: The pairs cannot be read, or the head cannot be written.
    """
    from climassay.metrics import entailment_head
    from climassay.metrics.entailment_head import read_pairs

    check_model_path(output)
    with Session.opened(workspace) as session:
        table, vectors = read_pairs(labels), session.encoder(encoder)
        lesson, held_out = entailment_head.split_pairs(table.pairs, hold_out, vectors, seed=seed)
        with session.progress.task("Trying settings") as task:
            trained = entailment_head.train_entailment(
                table, lesson, vectors, folds=folds, seed=seed, on_fit=task.advance
            )
        trained.head.save(output)
        scores = []
        if held_out:
            scorer = entailment_head.HeadEntailment(trained.head, vectors)
            scores.append(_scores(session, output.name, scorer, held_out, seed))
    facts = card(trained.head.provenance)
    data = {
        "model": str(output),
        "provenance": facts,
        "choices": [{**asdict(choice), "merit": choice.merit} for choice in trained.choices],
        "held_out": asdict(scores[0]) if scores else None,
    }
    rows = [
        (
            f"{one.regularisation:g}",
            f"{one.synthetic_share:.0%}",
            "yes" if one.vectors else "no",
            f"{one.two_class_auroc:.3f}",
            f"{one.turned_auroc:.3f}",
        )
        for one in trained.choices
    ]
    columns = ("C", "made by rule", "vectors", "AUROC, labelled pairs", "AUROC, pairs made by rule")
    words = "On statements not fitted on; the setting with the highest mean of the two is taken."
    settings = Table.of("Settings by cross-validation", columns, rows, note=words)
    told = (
        f"Trained on {facts['items']} pairs of {facts['groups']} statements and {facts['settings']['turned']} made by"
        f" rule. Saved as {output}."
    )
    return _scored_entailment(data, scores, (told,), labels.name, (settings,))


def evaluate_entailment(
    scorer: str,
    labels: Path,
    *,
    beside: Sequence[str] = (),
    include_trained: bool = False,
    limit: int | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> ScoredEntailment:
    """Score entailment scorers on labelled pairs they were not trained on, beside the constant baseline.

    Args:
        scorer: bundled, prompted:MODEL, supports:MODEL (the paper's judge), nli:MODEL, or a head's file.
        labels: Labelled pairs: Climate-FEVER's JSONL, or a table with premise, statement and label.
        beside: Further scorer to compare on the same pairs; repeat.
        include_trained: Also score items of the training data.
        limit: Number of items drawn at random; all by default.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Whose session loads models.

    Raises:
        InputError: The pairs cannot be read, or there is no such scorer.
        ModelError: A model cannot be loaded.
    """
    from climassay.metrics.entailment_head import load_entailment, read_pairs, sample_statements, unseen_pairs

    table = read_pairs(labels)
    with Session.opened(workspace) as session:
        opened = {name: load_entailment(name, load=session.load) for name in (scorer, *beside)}
        # One set of pairs for all scorers: what any of the heads was trained on is left out for every one of them.
        pairs = table.pairs
        for one in () if include_trained else opened.values():
            pairs = unseen_pairs(pairs, one)
        left_out = len(table.pairs) - len(pairs)
        pairs = sample_statements(pairs, limit, seed)
        results = [_scores(session, name, one, pairs, seed) for name, one in opened.items()]
    told = f"{left_out} pairs are left out: a head was trained on their statements."
    data = {
        "file": str(labels),
        "sha256": table.sha256,
        "left_out": left_out,
        "scorers": [asdict(one) for one in results],
    }
    return _scored_entailment(data, results, (told,) if left_out else (), labels.name)


def apply_entailment(scorer: str, items: Path, *, workspace: Place = None) -> Shown:
    """Classify what each passage does to its statement: confirms it, contradicts it, or leaves it open.

    Args:
        scorer: bundled, prompted:MODEL, supports:MODEL (the paper's judge), nli:MODEL, or a head's file.
        items: Pairs: a table with premise and statement, or claim and evidences.
        workspace: Whose session loads models.

    Raises:
        InputError: The pairs cannot be read, or there is no such scorer.
        ModelError: A model cannot be loaded.
    """
    from climassay.metrics.entailment import RELATIONS
    from climassay.metrics.entailment_head import load_entailment, read_pairs, relation_probabilities

    pairs = read_pairs(items, labelled=False).pairs
    with Session.opened(workspace) as session:
        asked = load_entailment(scorer, load=session.load)
        with session.progress.task(f"Asking {scorer}", len(pairs)) as task:
            result = relation_probabilities(pairs, asked, on_progress=task.advance).tolist()
    rows = [
        {
            "premise": pair.premise,
            "statement": pair.statement,
            "probabilities": None if row[0] != row[0] else dict(zip(RELATIONS, row, strict=True)),
        }
        for pair, row in zip(pairs, result, strict=True)
    ]
    cells = [
        (pair.premise, pair.statement, *(f"{share:.0%}" if share == share else "failed" for share in row))
        for pair, row in zip(pairs, result, strict=True)
    ]
    table = Table.of("What passages do to statements", ("premise", "statement", *RELATIONS), cells, left=2)
    return Shown({"scorer": scorer, "pairs": rows}, (table,), rows)


def _scores(
    session: Session, name: str, scorer: "RelationScorer", pairs: "Sequence[LabelledPair]", seed: int
) -> "EntailmentScores":
    from climassay.metrics.entailment_head import validate_entailment

    with session.progress.task(f"Asking {name}", len(pairs)) as task:
        result = validate_entailment(pairs, scorer, seed=seed, on_progress=task.advance)
    return replace(result, scorer=name)
