"""``climassay factcheck fallacies``: how texts mislead, and what is learned to tell it."""

from dataclasses import asdict, replace
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
    card,
    check_model_path,
    comparison_table,
    counting,
    load_weights,
    note,
    show,
    text_rows,
)
from climassay.cli.option_groups import DefaultCommandGroup
from climassay.cli.output import JsonOption, print_json
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.factcheck.fallacies import LabelledTexts
    from climassay.learning import Evaluation, TextClassifier
    from climassay.reporting import Table


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
    from climassay.factcheck.fallacies import LabelledTexts

    if column is None and truth is None and not Path(text).is_file():
        if Path(text).suffix in (".csv", ".tsv", ".jsonl", ".json", ".parquet") and " " not in text:
            raise InputError(f"There is no file {text}.")
        _tell(subject.value, LabelledTexts((text,), ("",)), False, seed, as_json)
    elif column is None:
        raise InputError(f"{text} is a table: name the column of its texts with --text COLUMN.")
    else:
        _tell(subject.value, _labelled(Path(text), column, truth), truth is not None, seed, as_json)


@app.command()
def apply(
    model: ModelArgument,
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="Table of texts.")],
    column: Annotated[str, typer.Option("--text", help="Column of the texts.")] = "text",
    as_json: JsonOption = False,
) -> None:
    """The most probable fallacy of every text of a table, by a classifier of your own."""
    _tell(model, _labelled(items, column, None), False, 0, as_json)


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
    from climassay.models.encoders.loading import load_encoder

    loaded = load_fallacies(model)
    given = _labelled(labels, text, truth or subject_of(loaded).column)
    kept = given.at([place for place, one in enumerate(given.texts) if not loaded.provenance.knows(one)])
    if apart:
        others = [one for file in apart for one, _ in text_rows(file, text)]
        kept = kept.without(others, None if encoder == "none" else load_encoder(encoder))
    if not kept:
        raise InputError(f"{labels} has no text that the classifier was not trained on.")
    scores = score_fallacies(loaded, kept, seed=seed)
    left = len(given) - len(kept)
    if as_json:
        _, evaluation = next(iter(scores.items()))
        print_json({"classifier": _facts(loaded), "left_out": left, **evaluation.to_dict(), "scores": _data(scores)})
        return
    note(f"{left} texts left out: training texts, or nearly equal to one." if left else "")
    show(_tables(scores))


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
    from climassay.factcheck.fallacies import SUBJECTS, threshold_of, train_fallacies
    from climassay.learning import Provenance
    from climassay.models.encoders.loading import load_encoder
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
    weights = load_weights(model) if model else None
    with counting("Reading texts", quiet=as_json) as advance:
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
            on_progress=advance,
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
    certain = ""
    if (one := threshold_of(trained.classifier)) is not None:
        kept, right = one.yield_.value, one.precision.value
        certain = f"From a probability of {one.value:.2f} on, {right:.0%} are right ({kept:.0%} of the texts)."
    tables = [comparison_table([(one.spec.name, one.evaluation) for one in trained.tried])]
    chosen = f"Chosen: {trained.chosen.spec.name}; written to {output}."
    show([*tables, *trained.chosen.evaluation.tables()], certain, chosen)


def _labelled(file: Path, text: str, truth: str | None) -> "LabelledTexts":
    """Texts of a table with their labels, which are empty where no column of them is named."""
    from climassay.factcheck.fallacies import LabelledTexts

    rows = text_rows(file, text, truth)
    labels = ("" if truth is None else str(row[truth] or "") for _, row in rows)
    return LabelledTexts(tuple(said for said, _ in rows), tuple(labels))


def _tell(source: str, given: "LabelledTexts", labelled: bool, seed: int, as_json: bool) -> None:
    """What is found in texts and, where labels are known, how often that is right."""
    from climassay.factcheck.fallacies import find_fallacies, load_fallacies, score_fallacies, threshold_of
    from climassay.reporting import Table

    loaded, texts = load_fallacies(source), given.texts
    with counting("Reading texts", quiet=as_json or len(texts) < 50) as advance:
        found = find_fallacies(texts, classifier=loaded, on_progress=advance)
    scores = score_fallacies(loaded, given, seed=seed) if labelled else {}
    if as_json:
        rows = [
            {"text": text, **asdict(one), **({"truth": label} if labelled else {})}
            for text, one, label in zip(texts, found, given.labels, strict=True)
        ]
        first = next(iter(scores.values())).to_dict() if scores else {}
        known = {"scores": _data(scores)} if scores else {}
        print_json({"classifier": _facts(loaded), "texts": rows, **first, **known})
        return
    shown = [[text, one.name, f"{one.probability:.0%}"] for text, one in zip(texts, found, strict=True)]
    sure = [place for place, one in enumerate(found) if one.sure]
    figures, limit = loaded.provenance.measured, threshold_of(loaded)
    from_there = "" if limit is None else f"; {limit.precision.value:.0%} from {limit.value:.0%} on (strong)"
    show(
        [Table.of("", ["text", "most probable", "probability"], shown, left=2, strong=sure)],
        f"{found[0].name}: {found[0].meaning}" if len(texts) == 1 else "",
        f"Right for {figures['accuracy']:.0%} of {figures['n']:.0f} texts of climate misinformation that it had not"
        f" seen (the most frequent: {figures['constant']:.0%}){from_there}. A text that does not mislead gets a name,"
        " too.",
    )
    show(_tables(scores))


def _facts(loaded: "TextClassifier") -> dict[str, Any]:
    return {**card(loaded.provenance), "sources": loaded.sources, "classes": loaded.classes}


def _data(scores: "dict[str, Evaluation]") -> dict[str, Any]:
    return {name: one.to_dict() for name, one in scores.items()}


def _tables(scores: "dict[str, Evaluation]") -> "list[Table]":
    return [replace(one, title=f"{one.title}: {name}") for name, each in scores.items() for one in each.tables()]
