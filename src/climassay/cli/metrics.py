"""``climassay metrics``: score answers against references, and check the metrics themselves."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.learning_options import SeedOption
from climassay.cli.model_options import LoadingOptions
from climassay.cli.option_groups import grouped
from climassay.cli.output import FilesOption, JsonOption, WorkspaceOption, emit, opened_session, waiting
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.grounding.faithful_answers import JudgedAnswer

app = typer.Typer(no_args_is_help=True, help="Score answers against references, and check the metrics themselves.")

EncoderOption = Annotated[
    str, typer.Option(help="local:minilm (bundled), or local: and a folder or hub id of an encoder.")
]


@app.command()
@grouped
def score(
    file: Annotated[
        Path,
        typer.Argument(
            help="Table (CSV, JSONL, Parquet) with the columns reference and answer, and for cloze answers statement."
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="bleu_char, bleu, bert_score, judged_accuracy (with --judge), exact_match, "
            "exact_match_normalised or phrase_similarity; repeat. By "
            "default the last three for rows with a statement, the first three for the others.",
        ),
    ] = None,
    encoder: EncoderOption = "local:minilm",
    window: Annotated[
        int, typer.Option(min=0, help="Words on each side of the gap, for phrase similarity; 0 takes the whole.")
    ] = 4,
    output: FilesOption = None,
    seed: Annotated[int, typer.Option(help="Seed of resampling.")] = 0,
    judge: Annotated[
        str | None,
        typer.Option(
            help="A strong model that sees question, reference and answer and marks each answer, with its reason: "
            "judged_accuracy. Needs a column question."
        ),
    ] = None,
    loading: LoadingOptions = LoadingOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score answers against their references: every answer, and means with intervals."""
    from climassay import api

    with opened_session(workspace, loading, as_json=as_json) as session:
        scored = api.score_answers(
            file, metrics=metric, encoder=encoder, window=window or None, judge=judge, seed=seed, workspace=session
        )
    emit(scored, as_json, output)


@app.command(name="calibrate-window")
def calibrate_window(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Table of labelled answers with the columns statement, reference, answer and correct (true or false); "
            "without one, 40 answers to statements of the primer."
        ),
    ] = None,
    encoder: EncoderOption = "local:minilm",
    floor: Annotated[float, typer.Option(help="Least mean cosine of right answers for a window to be chosen.")] = 0.75,
    seed: Annotated[int, typer.Option(help="Seed of resampling.")] = 0,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Which window of phrase similarity tells right cloze answers from wrong ones best (ClimaQA, Figure 4)."""
    from climassay.metrics.window_calibration import calibrate_window as calibrate
    from climassay.metrics.window_calibration import (
        primer_answers,
        read_labelled_answers,
        window_report,
        window_table,
        window_verdict,
    )
    from climassay.reporting.results import Shown

    if not -1 <= floor <= 1:
        raise InputError(f"A mean cosine lies between -1 and 1, and so must --floor; {floor:g} does not.")
    answers = read_labelled_answers(file) if file else primer_answers()
    source = str(file) if file else "primer, 40 answers labelled by the climassay authors"
    with waiting(f"Encoding {len(answers)} answers in every window ...", quiet=as_json):
        found = calibrate(answers, encoder, floor=floor, seed=seed)
    data = {"source": source, "verdict": window_verdict(found), "calibration": found}
    tables = (window_table(found),)
    shown = Shown(data, tables, noted=(window_verdict(found),), reported=lambda: window_report(found, source))
    emit(shown, as_json, output)


@app.command()
def faithfulness(
    file: Annotated[Path, typer.Argument(metavar="LABELS", help="JSON lines of answers with passages and labels.")],
    truth: Annotated[str, typer.Option(help="Column that is 1 where the answer is faithful, 0 where not.")],
    group: Annotated[str, typer.Option(help="Column of what is never split between folds.")] = "report",
    answer: Annotated[str, typer.Option(help="Column of the answers.")] = "answer",
    passages: Annotated[str, typer.Option(help="Column of the passages: a list, or a table by number.")] = "cited",
    seed: SeedOption = 0,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well a learned head and baselines tell unfaithful answers: AUROC, each group by the others."""
    from climassay.grounding.faithful_answers import answer_features, measure_faithfulness
    from climassay.metrics.entailment_loading import bundled_entailment

    given = _judged(file, truth, group, answer, passages)
    scorer = bundled_entailment()
    with waiting("Reading answers", quiet=as_json):
        features = answer_features(given, scorer, scorer.head.encoder)
    found = measure_faithfulness(given, features, seed=seed)
    unfaithful = sum(one.unfaithful for one in given)
    groups = len({one.group for one in given})
    from climassay.reporting import Table
    from climassay.reporting.results import Shown

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
    emit(Shown(data, (Table.of("Unfaithful answers", heading, rows, note=note),)), as_json, output)


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
