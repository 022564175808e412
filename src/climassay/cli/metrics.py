"""``climassay metrics``: score answers against references, and check the metrics themselves."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.model_options import LoadingOptions
from climassay.cli.option_groups import grouped
from climassay.cli.output import (
    JsonOption,
    WorkspaceOption,
    print_json,
    stderr_console,
    stdout_console,
    waiting,
    write_text,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.metrics import AnswerScores, Judgement
    from climassay.metrics.answer_scores import AnswerTable
    from climassay.reporting import Table

app = typer.Typer(no_args_is_help=True, help="Score answers against references, and check the metrics themselves.")

EncoderOption = Annotated[
    str, typer.Option(help="local:minilm (bundled), or local: and a folder or hub id of an encoder.")
]


@app.callback()
def group() -> None:
    """Score answers against references, and check the metrics themselves."""


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
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the table of means as CSV.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the scores of every answer (.jsonl, otherwise CSV).")
    ] = None,
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
    from climassay.metrics import read_answers, score_answers
    from climassay.reporting import as_csv, as_rich

    answers = read_answers(file)
    with ExitStack() as stack:
        model = prompt = None
        if judge is not None:
            from climassay.prompts import load_prompt
            from climassay.records import RecordedModel, Records
            from climassay.workspace import Workspace

            place = Workspace.open(workspace)
            prompt = load_prompt("judged_accuracy", loading.prompts)
            loaded = loading.load(judge, place, quiet=as_json)
            stack.callback(loaded.close)
            store = stack.enter_context(Records(place.records_url))
            config = {"file": answers.name, "model": judge, "prompt_sha256": prompt.sha256}
            run = stack.enter_context(store.run(command="metrics score", config=config))
            model = RecordedModel(loaded, store, run, use_cache=not loading.no_cache)
        stack.enter_context(waiting(f"Scoring {len(answers.rows)} answers ...", quiet=as_json))
        scored = score_answers(
            answers.rows,
            metric,
            encoder=encoder,
            window=window or None,
            seed=seed,
            judge=model,
            judge_prompt=prompt,
        )
    table = _score_table(answers.name, scored)
    if csv_file:
        write_text(csv_file, as_csv(table))
    if output:
        write_text(output, _score_lines(scored, as_jsonl=output.suffix == ".jsonl"))
    if as_json:
        print_json(_score_data(answers, scored))
        return
    stdout_console().print(as_rich(table))
    if answers.skipped:
        stderr_console().print(
            f"{len(answers.skipped)} rows left out, the first: {answers.skipped[0]}", highlight=False
        )


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
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the table as CSV.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report with the figure.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Which window of phrase similarity tells right cloze answers from wrong ones best (ClimaQA, Figure 4)."""
    from climassay.metrics.window_calibration import calibrate_window as calibrate
    from climassay.metrics.window_calibration import primer_answers, read_labelled_answers
    from climassay.metrics.window_report import window_report, window_table, window_verdict
    from climassay.reporting import as_csv, as_rich

    if not -1 <= floor <= 1:
        raise InputError(f"A mean cosine lies between -1 and 1, and so must --floor; {floor:g} does not.")
    answers = read_labelled_answers(file) if file else primer_answers()
    source = str(file) if file else "primer, 40 answers labelled by the climassay authors"
    with waiting(f"Encoding {len(answers)} answers in every window ..."):
        found = calibrate(answers, encoder, floor=floor, seed=seed)
    if csv_file:
        write_text(csv_file, as_csv(window_table(found)))
    if html:
        write_text(html, window_report(found, source).to_html())
    if as_json:
        print_json({"source": source, "verdict": window_verdict(found), "calibration": found})
        return
    console = stdout_console()
    console.print(as_rich(window_table(found)))
    console.print(window_verdict(found), highlight=False)


def _score_table(name: str, scored: "AnswerScores") -> "Table":
    from climassay.metrics import ANSWER_METRICS
    from climassay.reporting import Table

    rows = []
    for metric, mean in scored.means.items():
        shown = f"{mean.value:.3f}", f"{mean.interval.low:.3f} to {mean.interval.high:.3f}", str(mean.n)
        pooled = scored.pooled.get(metric)
        rows.append(
            (
                ANSWER_METRICS[metric].label,
                *shown,
                "" if pooled is None else f"{pooled:.3f}",
                scored.sources.get(metric, ""),
            )
        )
    return Table.of(
        f"{name}: {len(scored.rows)} answers",
        ("metric", "mean", "95% interval", "n", "all together", "computed by"),
        rows,
        note="Means over answers, as in ClimaQA's tables."
        + (" All together: BLEU with the counts of all answers summed." if scored.pooled else "")
        + _judge_note(scored),
    )


def _judge_note(scored: "AnswerScores") -> str:
    from climassay.metrics.judged_accuracy import SCORES

    if not scored.judgements:
        return ""
    counted = Counter(one.verdict for one in scored.judgements.values())
    verdicts = ", ".join(f"{counted[verdict]} {verdict}" for verdict in SCORES)
    return f" As judged: {verdicts}; {counted[None]} judgements failed. Partly correct counts one half."


def _score_rows(scored: "AnswerScores") -> list[dict[str, Any]]:
    return [
        {
            "id": row.id,
            "reference": row.reference,
            "answer": row.answer,
            **({"statement": row.statement} if row.statement else {}),
            **{metric: values[place] for metric, values in scored.scores.items()},
            **({} if (said := scored.judgements.get(place)) is None else _said(said)),
        }
        for place, row in enumerate(scored.rows)
    ]


def _said(judgement: "Judgement") -> dict[str, str | None]:
    return {"verdict": judgement.verdict, "reason": judgement.reason, "judge_error": judgement.error}


def _score_lines(scored: "AnswerScores", *, as_jsonl: bool) -> str:
    import csv
    import io
    import json

    from climassay.spreadsheets import safe_cell

    rows = _score_rows(scored)
    if as_jsonl:
        return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    out = io.StringIO()
    names = ["id", "reference", "answer", "statement", *scored.scores]
    names += ["verdict", "reason", "judge_error"] if scored.judgements else []
    writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: safe_cell(cell) for name, cell in row.items()} for row in rows)
    return out.getvalue()


def _score_data(answers: "AnswerTable", scored: "AnswerScores") -> dict[str, Any]:
    return {
        "file": answers.name,
        "skipped": list(answers.skipped),
        "means": scored.means,
        "pooled": scored.pooled,
        "computed_by": scored.sources,
        "judge_failures": sum(one.verdict is None for one in scored.judgements.values()),
        "answers": _score_rows(scored),
    }
