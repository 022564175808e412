"""Answers scored against references, by metrics and by a judge."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.models import Generator
from climassay.reporting import Table, counted
from climassay.reporting.results import Result, Shown
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.grounding.faithful_answers import JudgedAnswer
    from climassay.metrics import AnswerScores
    from climassay.metrics.answer_scores import AnswerTable


@dataclass(frozen=True, slots=True)
class ScoredAnswers(Result):
    """Answers of a file with their scores."""

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
        headings = ("metric", "mean", "95% interval", "n", "all together", "computed by")
        title = f"{self.answers.name}: {len(scored.rows)} answers"
        return (Table.of(title, headings, rows, note=note + _judge_note(scored)),)

    def notes(self) -> Iterator[str]:
        """Rows that were left out."""
        if self.answers.skipped:
            yield f"{counted(len(self.answers.skipped), 'row')} left out, the first: {self.answers.skipped[0]}"


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
        window: Words on each side of the gap, for phrase similarity; 0 takes the whole.
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
    from climassay.prompts import load_prompt

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


def _judge_note(scored: "AnswerScores") -> str:
    from climassay.metrics.factual_accuracy import SCORES

    if not scored.judgements:
        return ""
    tally = Counter(one.verdict for one in scored.judgements.values())
    verdicts = ", ".join(f"{tally[verdict]} {verdict}" for verdict in SCORES)
    return f" As judged: {verdicts}; {tally[None]} judgements failed. Partly correct counts one half."


def calibrate_window(
    file: Path | None = None,
    *,
    encoder: str = "local:minilm",
    floor: float = 0.75,
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Find the window of phrase similarity that tells right cloze answers from wrong ones best (ClimaQA, Figure 4).

    Args:
        file: Table of labelled answers with the columns statement, reference, answer and correct (true or false);
            without one, 40 answers to statements of the primer.
        encoder: local:minilm (bundled), or local: and a folder or hub id of an encoder.
        floor: Least mean cosine of right answers for a window to be chosen.
        seed: Seed of resampling.
        workspace: Whose session tells progress.

    Raises:
        InputError: The table cannot be read.
    """
    from climassay.metrics import window_calibration
    from climassay.metrics import window_calibration as window_report

    answers = window_calibration.read_labelled_answers(file) if file else window_calibration.primer_answers()
    source = str(file) if file else "primer, 40 answers labelled by the climassay authors"
    with (
        Session.opened(workspace) as session,
        session.progress.waiting(f"Encoding {len(answers)} answers in every window ..."),
    ):
        found = window_calibration.calibrate_window(answers, encoder, floor=floor, seed=seed)
    verdict = window_report.window_verdict(found)
    return Shown(
        {"source": source, "verdict": verdict, "calibration": found},
        (window_report.window_table(found),),
        noted=(verdict,),
        reported=lambda: window_report.window_report(found, source),
    )


def measure_faithfulness(
    file: Path,
    truth: str,
    *,
    group: str = "report",
    answer: str = "answer",
    passages: str = "cited",
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Measure how well a learned head and baselines tell unfaithful answers: AUROC, each group by the others.

    Args:
        file: JSON lines of answers with passages and labels.
        truth: Column that is 1 where the answer is faithful, 0 where not.
        group: Column of what is never split between folds.
        answer: Column of the answers.
        passages: Column of the passages: a list, or a table by number.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Whose session tells progress.

    Raises:
        InputError: The file or a column cannot be used.
    """
    from climassay.grounding import faithful_answers
    from climassay.metrics.entailment_loading import bundled_entailment

    given = _judged(file, truth, group, answer, passages)
    scorer = bundled_entailment()
    with Session.opened(workspace) as session, session.progress.waiting("Reading answers"):
        features = faithful_answers.answer_features(given, scorer, scorer.head.encoder)
    found = faithful_answers.measure_faithfulness(given, features, seed=seed)
    unfaithful, groups = sum(one.unfaithful for one in given), len({one.group for one in given})
    rows = [
        [
            one.name,
            f"{one.auroc.value:.3f} [{one.auroc.interval.low:.3f}, {one.auroc.interval.high:.3f}]",
            "" if one.gain is None else f"{one.gain.low:+.3f} to {one.gain.high:+.3f}",
        ]
        for one in found
    ]
    note = (
        f"{len(given)} answers, {unfaithful} of them unfaithful, in {groups} groups, compared within groups; 95%"
        " bootstrap intervals over groups. The constant has 0.5."
    )
    heading = ["told by", "AUROC of unfaithful", "less the best baseline"]
    data = {"answers": len(given), "unfaithful": unfaithful, "groups": groups, "constant": 0.5, "scores": found}
    return Shown(data, (Table.of("Unfaithful answers", heading, rows, note=note),))


def _judged(file: Path, truth: str, group: str, answer: str, passages: str) -> "list[JudgedAnswer]":
    from climassay.grounding.faithful_answers import JudgedAnswer
    from climassay.questions.rows import parse_rows, read_bytes

    found = []
    for number, row in enumerate(parse_rows(file, read_bytes(file)), start=1):
        missing = next((name for name in (truth, group, answer, passages) if name not in row), None)
        if missing is not None:
            raise InputError(f"Row {number} of {file} has no column {missing!r}.")
        cited = row[passages]
        listed = list(cited.values()) if isinstance(cited, dict) else cited if isinstance(cited, list) else []
        texts = tuple(" ".join(str(text).split()) for text in listed)
        said = str(row[answer] or "").strip()
        if not said or not any(texts) or str(row[truth]) not in ("0", "1"):
            raise InputError(f"Row {number} of {file} needs an answer, passages, and 0 or 1 as {truth}.")
        found.append(JudgedAnswer(said, tuple(filter(None, texts)), str(row[group]), str(row[truth]) == "0"))
    if not found:
        raise InputError(f"{file} has no rows.")
    return found
