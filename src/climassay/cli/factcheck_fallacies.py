"""``climassay factcheck fallacies``: how texts mislead, and what is learned to tell it."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.learning_options import (
    EncoderOption,
    FoldsOption,
    LimitOption,
    OutputOption,
    SeedOption,
    check_model_path,
    comparison_table,
)
from climassay.cli.option_groups import DefaultCommandGroup
from climassay.cli.output import JsonOption, print_json, progress_bar, stderr_console, stdout_console
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.factcheck.fallacies import LabelledTexts
    from climassay.learning import Evaluation, TextClassifier


class _FallaciesGroup(DefaultCommandGroup):
    default = "find"


app = typer.Typer(
    cls=_FallaciesGroup,
    no_args_is_help=True,
    help=(
        'How texts mislead, by fallacy or by contrarian claim: climassay factcheck fallacies "TEXT" or FILE --text '
        "COLUMN; its options: climassay factcheck fallacies find --help."
    ),
)


class SubjectChoice(StrEnum):
    """What is told of a text."""

    fallacies = "fallacies"
    claims = "claims"


SubjectOption = Annotated[SubjectChoice, typer.Option(help="Twelve fallacies, or seventeen contrarian claims (CARDS).")]
TextOption = Annotated[str, typer.Option(help="Column of the texts.")]
TruthOption = Annotated[
    str | None, typer.Option(help="Column of the labels.  [default: fallacy or cards_claim, as in FLICC]")
]
LabelsArgument = Annotated[Path, typer.Argument(metavar="LABELS", help="Table of texts and labels.")]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="File of train; or fallacies, claims (bundled).")]


@app.command(_FallaciesGroup.default)
def find(
    text: Annotated[str, typer.Argument(metavar="TEXT|FILE", help="A text in quotes, or a table of them.")],
    column: Annotated[str | None, typer.Option("--text", help="Column of a table that holds the texts.")] = None,
    truth: Annotated[str | None, typer.Option(help="Column of known labels, to score what was found.")] = None,
    subject: SubjectOption = SubjectChoice.fallacies,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """The most probable fallacy of a text, or of every text of a table, by the bundled classifier."""
    if column is None and truth is None and not Path(text).is_file():
        if Path(text).suffix in (".csv", ".tsv", ".jsonl", ".json", ".parquet") and " " not in text:
            raise InputError(f"There is no file {text}.")
        _tell(subject.value, [text], None, seed, as_json)
    elif column is None:
        raise InputError(f"{text} is a table: name the column of its texts with --text COLUMN.")
    else:
        _tell(subject.value, *_columns(Path(text), column, truth), seed, as_json)


@app.command()
def apply(
    model: ModelArgument,
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="Table of texts.")],
    column: Annotated[str, typer.Option("--text", help="Column of the texts.")] = "text",
    as_json: JsonOption = False,
) -> None:
    """The most probable fallacy of every text of a table, by a classifier of your own."""
    _tell(model, *_columns(items, column, None), 0, as_json)


@app.command()
def evaluate(
    model: ModelArgument,
    labels: LabelsArgument,
    text: TextOption = "text",
    truth: TruthOption = None,
    apart: Annotated[
        list[Path] | None,
        typer.Option(help="Table whose texts, and what nearly equals them, are left out (the training data); repeat."),
    ] = None,
    encoder: EncoderOption = "local:minilm",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Score a classifier on labelled texts that it was not trained on."""
    from climassay.factcheck.fallacies import load_fallacies, score_fallacies, subject_of
    from climassay.models.encoder import load_encoder

    loaded = load_fallacies(model)
    given = _labelled(labels, text, truth or subject_of(loaded).column)
    kept = given.at([place for place, one in enumerate(given.texts) if not loaded.provenance.knows(one)])
    if apart:
        others = [one for file in apart for one in _columns(file, text, None)[0]]
        kept = kept.without(others, None if encoder == "none" else load_encoder(encoder))
    if not kept:
        raise InputError(f"{labels} has no text that the classifier was not trained on.")
    scores = score_fallacies(loaded, kept, seed=seed)
    left = len(given) - len(kept)
    if as_json:
        _, evaluation = next(iter(scores.items()))
        print_json({"classifier": _facts(loaded), "left_out": left, **evaluation.to_dict(), "scores": _data(scores)})
        return
    if left:
        stderr_console().print(f"{left} texts left out: training texts, or nearly equal to one.", highlight=False)
    _show_scores(scores)


@app.command()
def train(
    labels: LabelsArgument,
    output: OutputOption,
    subject: SubjectOption = SubjectChoice.fallacies,
    text: TextOption = "text",
    truth: TruthOption = None,
    encoder: EncoderOption = "local:minilm",
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Local model whose hidden states are tried, too.")
    ] = None,
    layer: Annotated[list[int] | None, typer.Option(help="Layer of it; several may be given.  [default: 24]")] = None,
    folds: FoldsOption = 5,
    precision: Annotated[
        float, typer.Option(min=0.01, max=1, help="Share of right answers from the threshold on.")
    ] = 0.8,
    limit: LimitOption = None,
    licence: Annotated[str, typer.Option(help="Licence of the data, to be kept with the classifier.")] = "",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Train a classifier; what it reads is chosen by log loss on folds that share no near copies."""
    import hashlib

    from climassay.claim_identity import words_id
    from climassay.factcheck.fallacies import SUBJECTS, train_fallacies
    from climassay.learning import Provenance
    from climassay.models.encoder import load_encoder
    from climassay.questions.rows import read_bytes

    check_model_path(output)
    wanted = SUBJECTS[subject.value]
    given = _labelled(labels, text, truth or wanted.column).drawn(limit, seed)
    facts = Provenance(
        data=labels.name,
        data_sha256=hashlib.sha256(read_bytes(labels)).hexdigest(),
        licence=licence,
        trained_on=tuple(dict.fromkeys(map(words_id, given.texts))),
    )
    weights = _open_weights(model) if model else None
    with progress_bar(as_json) as progress:
        task = progress.add_task("Reading texts", total=None)
        trained = train_fallacies(
            given,
            wanted,
            encoder=load_encoder(encoder),
            model=weights,
            layers=tuple(layer or (24,)),
            folds=folds,
            seed=seed,
            precision=precision,
            provenance=facts,
            on_progress=lambda count: progress.advance(task, count),
        )
    trained.classifier.save(output)
    if as_json:
        print_json(
            {
                "output": output,
                "chosen": trained.chosen.spec.name,
                "classifier": _facts(trained.classifier),
                "left_out": len(given) - trained.chosen.evaluation.n,
                **trained.chosen.evaluation.to_dict(),
                "tried": [{"name": one.spec.name, "scores": one.evaluation.to_dict()} for one in trained.tried],
            }
        )
        return
    from climassay.reporting import as_rich

    console = stdout_console()
    console.print(as_rich(comparison_table([(one.spec.name, one.evaluation) for one in trained.tried])))
    for table in trained.chosen.evaluation.tables():
        console.print(as_rich(table))
    if trained.threshold is not None:
        one, kept = trained.threshold, trained.threshold.yield_.value
        console.print(
            f"From a probability of {one.value:.2f} on, {one.precision.value:.0%} are right ({kept:.0%} of the texts).",
            highlight=False,
        )
    console.print(f"Chosen: {trained.chosen.spec.name}; written to {output}.", highlight=False)


def _open_weights(name: str) -> Any:
    from climassay.models import OpenWeights, load_model

    model = load_model(name)
    if not isinstance(model, OpenWeights):
        raise InputError(f"The states of {name} cannot be read: give a local: model.")
    return model


def _columns(file: Path, text: str, truth: str | None) -> tuple[list[str], list[str] | None]:
    """Texts of a table, and its labels where a column of them is named."""
    from climassay.questions.rows import parse_rows, read_bytes

    texts, labels = [], []
    for number, row in enumerate(parse_rows(file, read_bytes(file)), start=1):
        missing = next((name for name in (text, truth) if name is not None and name not in row), None)
        if missing is not None:
            raise InputError(f"Row {number} of {file} has no column {missing!r}.")
        said = str(row[text] or "")
        if not any(map(str.isalpha, said)):
            raise InputError(f"Row {number} of {file} has no text in the column {text!r}.")
        texts.append(said)
        labels.append("" if truth is None else str(row[truth] or ""))
    if not texts:
        raise InputError(f"{file} has no rows.")
    return texts, labels if truth is not None else None


def _labelled(file: Path, text: str, truth: str) -> "LabelledTexts":
    from climassay.factcheck.fallacies import LabelledTexts

    texts, labels = _columns(file, text, truth)
    return LabelledTexts(tuple(texts), tuple(labels or ()))


def _tell(source: str, texts: list[str], labels: list[str] | None, seed: int, as_json: bool) -> None:
    """What is found in texts and, where labels are known, how often that is right."""
    from climassay.factcheck.fallacies import LabelledTexts, find_fallacies, load_fallacies, score_fallacies

    loaded = load_fallacies(source)
    with progress_bar(as_json or len(texts) < 50) as progress:
        task = progress.add_task("Reading texts", total=None)
        found = find_fallacies(texts, classifier=loaded, on_progress=lambda count: progress.advance(task, count))
    scores = {}
    if labels is not None:
        scores = score_fallacies(loaded, LabelledTexts(tuple(texts), tuple(labels)), seed=seed)
    if as_json:
        rows = [{"text": text, **_row(one)} for text, one in zip(texts, found, strict=True)]
        for row, label in zip(rows, labels or (), strict=bool(labels)):
            row["truth"] = label
        first = next(iter(scores.values()), None)
        print_json(
            {
                "classifier": _facts(loaded),
                "texts": rows,
                **(first.to_dict() if first else {}),
                **({"scores": _data(scores)} if scores else {}),
            }
        )
        return
    from climassay.reporting import Table, as_rich

    console = stdout_console()
    shown = [[text, one.name, f"{one.probability:.0%}"] for text, one in zip(texts, found, strict=True)]
    sure = [place for place, one in enumerate(found) if one.sure]
    console.print(as_rich(Table.of("", ["text", "most probable", "probability"], shown, left=2, strong=sure)))
    for name, meaning in dict.fromkeys((one.name, one.meaning) for one in found if len(texts) == 1):
        console.print(f"{name}: {meaning}", highlight=False)
    console.print(_trust(loaded), highlight=False)
    _show_scores(scores)


def _trust(loaded: "TextClassifier") -> str:
    """How far a classifier is to be believed, by its own figures."""
    from climassay.factcheck.fallacies import threshold_of

    figures, limit = loaded.provenance.measured, threshold_of(loaded)
    sure = "" if limit is None else f"; {limit.precision.value:.0%} from {limit.value:.0%} on (strong)"
    return (
        f"Right for {figures['accuracy']:.0%} of {figures['n']:.0f} texts of climate misinformation that it had not"
        f" seen (the most frequent: {figures['constant']:.0%}){sure}. A text that does not mislead gets a name, too."
    )


def _row(one: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(one)


def _facts(loaded: "TextClassifier") -> dict[str, Any]:
    known = loaded.provenance.facts()
    known["trained_on"] = len(loaded.provenance.trained_on)
    return {**known, "sources": loaded.sources, "classes": loaded.classes}


def _data(scores: "dict[str, Evaluation]") -> dict[str, Any]:
    return {name: one.to_dict() for name, one in scores.items()}


def _show_scores(scores: "dict[str, Evaluation]") -> None:
    from dataclasses import replace

    from climassay.reporting import as_rich

    for name, one in scores.items():
        for table in one.tables():
            stdout_console().print(as_rich(replace(table, title=f"{table.title}: {name}")))
