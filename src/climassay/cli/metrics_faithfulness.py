"""``climassay metrics faithfulness``: whether unfaithful answers can be told, on answers that people judged."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.learning_options import SeedOption
from climassay.cli.output import JsonOption, print_json, stdout_console, waiting
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.grounding.faithful_answers import JudgedAnswer


def faithfulness(
    file: Annotated[Path, typer.Argument(metavar="LABELS", help="JSON lines of answers with passages and labels.")],
    truth: Annotated[str, typer.Option(help="Column that is 1 where the answer is faithful, 0 where not.")],
    group: Annotated[str, typer.Option(help="Column of what is never split between folds.")] = "report",
    answer: Annotated[str, typer.Option(help="Column of the answers.")] = "answer",
    passages: Annotated[str, typer.Option(help="Column of the passages: a list, or a table by number.")] = "cited",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """AUROC of a learned head and of baselines on judged answers, each group predicted by the others."""
    from climassay.grounding.faithful_answers import answer_features, measure_faithfulness
    from climassay.metrics.entailment_loading import bundled_entailment

    given = _judged(file, truth, group, answer, passages)
    scorer = bundled_entailment()
    with waiting("Reading answers", quiet=as_json):
        features = answer_features(given, scorer, scorer.head.encoder)
    found = measure_faithfulness(given, features, seed=seed)
    unfaithful = sum(one.unfaithful for one in given)
    groups = len({one.group for one in given})
    if as_json:
        print_json(
            {"answers": len(given), "unfaithful": unfaithful, "groups": groups, "constant": 0.5, "scores": found}
        )
        return
    from climassay.reporting import Table, as_rich

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
    stdout_console().print(as_rich(Table.of("Unfaithful answers", heading, rows, note=note)))


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
