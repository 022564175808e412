"""``climassay judge``: compare texts by a quality, rank them, and measure who judges well."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from climassay.cli import CommandGroup, given, with_flags
from climassay.cli.options import OUTPUT, FilesOption, LayerOption, ModelSetup, SeedOption, numbers
from climassay.errors import InputError
from climassay.judging.settings import BenchmarkSettings, InsertMode, ProbeSettings, Scope, SortMethod

if TYPE_CHECKING:
    from climassay.api.judges import JudgeSpec
    from climassay.judging.preferences import ItemTable, Quality

app = CommandGroup(no_args_is_help=True)

PRIMER_CLAIMS = "primer:claims"
JudgeArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="A probe's file, or zero-shot, pairs, direct, direct-expected.")
]
LabelsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="LABELS", help="Labelled items: CSV, TSV, JSON, JSONL or Parquet, also .gz; or primer:claims."
    ),
]
ItemsArgument = Annotated[
    Path, typer.Argument(help="Items, labelled or not: CSV, TSV, JSON, JSONL or Parquet, also .gz.")
]
PairsOption = Annotated[
    int | None, typer.Option(min=1, help="Number of others each item is compared with, instead of all of its group.")
]
SortOption = Annotated[SortMethod, typer.Option(help="Way of sorting.")]


class KindChoice(StrEnum):
    """What is judged."""

    text = "text"
    claims = "claims"
    confidence = "confidence"
    own = "own"


@dataclass(frozen=True)
class TableOptions:
    """Which columns and rows of a table to use."""

    text: Annotated[str, typer.Option(help="Column of the texts to be judged.")] = "text"
    item: Annotated[str | None, typer.Option(help="Column of the items' names; by default they are numbered.")] = None
    group: Annotated[
        str | None, typer.Option(help="Column that says which items are compared with each other, e.g. the article.")
    ] = None
    context: Annotated[
        str | None, typer.Option(help="Column of the source text, or of the text around a statement.")
    ] = None
    label: Annotated[str | None, typer.Option(help="Column of the experts' labels; more is better.")] = None
    levels: Annotated[
        str | None, typer.Option(help="Labels that are words, low to high: low,medium,high (synonyms: poor|bad).")
    ] = None
    context_words: Annotated[int | None, typer.Option(min=1, help="Number of words kept of each context.")] = None
    limit_groups: Annotated[
        int | None, typer.Option(min=1, help="Number of groups to use, from the top of the file.")
    ] = None
    limit_items: Annotated[
        int | None, typer.Option(min=1, help="Number of items to use, from the top of the file.")
    ] = None

    def read(self, file: Path, *, label: str | None, label_optional: bool = False) -> "ItemTable":
        """Read the items, labelled by a column if one is named; rows without a label are left out, or kept without.

        Raises:
            InputError: The file or a column cannot be used.
        """
        from climassay.judging.preferences import ItemColumns, parse_levels, read_items

        if str(file) == PRIMER_CLAIMS:
            from climassay.primer import claims_path

            file = claims_path()
        levels = parse_levels(self.levels) if self.levels is not None and label is not None else ()
        columns = ItemColumns(self.text, self.item, self.context, self.group, label, levels, label_optional)
        table = read_items(file, columns, context_words=self.context_words)
        kept = set(list(dict.fromkeys(item.group for item in table.items))[: self.limit_groups])
        return replace(table, items=tuple(item for item in table.items if item.group in kept)[: self.limit_items])


@dataclass(frozen=True)
class QualityOptions:
    """Which quality to compare by."""

    aspect: Annotated[
        list[str] | None,
        typer.Option(help="coherence, consistency, fluency, relevance or informativeness of texts; see --kind."),
    ] = None
    kind: Annotated[
        KindChoice | None,
        typer.Option(
            help="text: an aspect of texts; claims: their accuracy; confidence: of statements; own: --quality."
        ),
    ] = None
    quality: Annotated[
        str | None, typer.Option(metavar="SENTENCE", help="Your own quality, described in one sentence.")
    ] = None
    noun: Annotated[str, typer.Option(help="Name of the texts in prompts, for --kind text.")] = "summary"
    source: Annotated[str, typer.Option(help="Name of their source in prompts, for --kind text.")] = "article"
    wording: Annotated[list[int] | None, typer.Option(help="Wording of the prompts, 1 to 3; repeat for several.")] = (
        None
    )

    @property
    def given(self) -> bool:
        """Whether the user names a quality."""
        return self.kind is not None or bool(self.aspect) or self.quality is not None

    def all(self) -> "list[Quality]":
        """The qualities named, in every wording named.

        Raises:
            InputError: None is named, or one does not exist.
        """
        from climassay.judging.preferences import aspect_names, quality

        kind = self.kind or (KindChoice.own if self.quality is not None else KindChoice.text)
        aspects = list(dict.fromkeys(self.aspect or ()))
        if kind is KindChoice.text and not aspects:
            raise InputError(f"Name the aspect with --aspect ({', '.join(aspect_names())}), or describe a quality of "
                             "your own with --quality.")  # fmt: skip
        if kind is not KindChoice.text and len(aspects) > 1:
            raise InputError(f"--aspect names several qualities of --kind text only, not of {kind.value}.")
        if kind in (KindChoice.claims, KindChoice.confidence) and aspects:
            raise InputError(f"--aspect goes with --kind text; --kind {kind.value} is a quality by itself.")
        if kind is not KindChoice.own and self.quality is not None:
            raise InputError(f"--quality describes a quality of your own and does not go with --kind {kind.value}.")
        return [
            quality(kind.value, aspect, sentence=self.quality or "", noun=self.noun, source=self.source, wording=number)
            for aspect in aspects or [""]
            for number in dict.fromkeys(self.wording or [1])
        ]

    def one(self) -> "Quality":
        """The one quality named.

        Raises:
            InputError: None or several are named, or it does not exist.
        """
        found = self.all()
        if len(found) > 1:
            raise InputError("This command takes one aspect and one wording at a time.")
        return found[0]


@dataclass(frozen=True)
@with_flags(ProbeSettings)
class ProbeOptions:
    """How probes are fitted."""

    layers: LayerOption = None

    def probes(self, seed: int) -> ProbeSettings:
        """The settings of probes.

        Raises:
            InputError: An option is out of its range.
        """
        sets = cast("tuple[tuple[int, ...], ...]", tuple(self.layers or ()))
        return ProbeSettings(sets, seed=seed, **given(self, ProbeSettings))


@dataclass(frozen=True)
@with_flags(BenchmarkSettings)
class BenchmarkOptions(ProbeOptions):
    """How judges are cross-validated."""

    pairs_per_item: PairsOption = None


@dataclass(frozen=True)
class JudgeOptions:
    """Who compares."""

    probe: Annotated[Path | None, typer.Option(help="A probe that climassay judge train made.", show_default=False)] = (
        None
    )
    method: Annotated[
        str | None, typer.Option(help="Without a probe: zero-shot, pairs, direct or direct-expected.")
    ] = None

    @classmethod
    def named(cls, model: str) -> "JudgeOptions":
        """A judge by one name: that of a method which needs no labels, else a probe's file."""
        from climassay.judging.judges import JUDGES

        return cls(method=model) if model in JUDGES else cls(probe=Path(model))

    def judge(self, asked: QualityOptions, setup: ModelSetup) -> "JudgeSpec":
        """Who compares, by the quality asked for, else the one that the probe was trained for.

        Raises:
            InputError: The probe cannot be read, a method is named too, or no quality is known.
        """
        from climassay.api.judges import JudgeSpec

        if self.probe is not None and self.method is not None:
            raise InputError("Give either --probe or --method.")
        quality = asked.one() if self.probe is None or asked.given else None
        spec = JudgeSpec(quality, self.probe, self.method, setup.model, setup.token_budget)
        assert spec.wanted  # what is wrong with the probe is reported before anything is read
        return spec


@app.command()
def benchmark(
    labels: LabelsArgument,
    table: TableOptions,
    asked: QualityOptions,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="direct, direct-expected, pairs, zero-shot, ppairs, ppairs-length, principal, pointwise, "
            "pointwise-length or all; repeat.  [default: ppairs]"
        ),
    ] = None,
    seed: SeedOption = 0,
    learning: BenchmarkOptions = BenchmarkOptions(),
    sort: Annotated[
        SortMethod | None, typer.Option(help="Way of sorting.  [default: strengths; fitted with --pairs-per-item]")
    ] = None,
    learning_curve: Annotated[
        str | None, typer.Option(metavar="SIZES", help="Numbers of labelled items, e.g. 10,20,50,100,200.")
    ] = None,
    predictions: Annotated[Path | None, typer.Option(help="Write every item's rank (.jsonl, .csv, .xlsx).")] = None,
    output: FilesOption = None,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Measure how well judges agree with experts on unseen groups, beside "longer is better" and the constant.

    Without --layer, probes choose among four layers of the upper half.
    """
    from climassay.api.judges import benchmark_judges
    from climassay.judging.benchmark import JudgeTask
    from climassay.reporting.results import write_rows

    # With some of the pairs only, the list is long, and strengths would ask for all of them.
    chosen = sort or ("strengths" if learning.pairs_per_item is None else "fitted")
    sizes = () if learning_curve is None else tuple(sorted(numbers(learning_curve, "--learning-curve")))
    settings = BenchmarkSettings(
        **given(learning, BenchmarkSettings), seed=seed, sizes=sizes, sort=chosen, probe=learning.probes(seed)
    )
    if sizes and not 2 <= sizes[0] <= sizes[-1] <= settings.train_items:
        raise InputError(f"--learning-curve takes sizes from 2 to --train-items ({settings.train_items}).")
    tasks, read = [], {}
    for quality in asked.all():
        column = _label_column(table, asked, quality.name)
        if column not in read:
            read[column] = table.read(labels, label=column)
        tasks.append(JudgeTask(quality, read[column].items, read[column].skipped))
    with setup.session() as session:
        done = benchmark_judges(
            tasks,
            settings,
            method or ["ppairs"],
            file=str(labels),
            with_evidence=any(file.suffix.lower() == ".html" for file in output or ()),
            model=setup.model,
            workspace=session,
            token_budget=setup.token_budget,
        )
    if predictions is not None:
        write_rows(predictions, done.places())
    setup.emit(done, output)


@app.command()
def train(
    labels: LabelsArgument,
    output: Annotated[Path, OUTPUT],
    table: TableOptions,
    asked: QualityOptions,
    method: Annotated[
        str, typer.Option(help="ppairs, ppairs-length, principal, pointwise or pointwise-length.")
    ] = "ppairs",
    probe: ProbeOptions = ProbeOptions(),
    pairs_per_item: PairsOption = None,
    seed: SeedOption = 0,
    html: Annotated[Path | None, typer.Option(help="Write figures and tables as a self-contained HTML report.")] = None,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Train a probe on labelled items and measure it on held-out ones; without --layer, four are tried."""
    from climassay.api.judges import train_judge_on_table

    quality, settings = asked.one(), probe.probes(seed)
    read = table.read(labels, label=_label_column(table, asked, quality.name))
    with setup.session() as session:
        trained = train_judge_on_table(
            read,
            quality,
            output,
            file=str(labels),
            model=setup.model,
            method=method,
            settings=settings,
            pairs_per_item=pairs_per_item,
            token_budget=setup.token_budget,
            workspace=session,
            seed=seed,
        )
    setup.emit(trained, html)


@app.command()
def evaluate(
    who: JudgeArgument,
    labels: LabelsArgument,
    table: TableOptions,
    asked: QualityOptions,
    include_trained: Annotated[
        bool, typer.Option("--include-trained", help="Also score items of the training data.")
    ] = False,
    pairs_per_item: PairsOption = None,
    seed: SeedOption = 0,
    output: FilesOption = None,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Score a judge on labelled items it was not trained on, beside "longer is better" and the constant."""
    from climassay.api.judges import evaluate_judge

    judge = JudgeOptions.named(who).judge(asked, setup)
    read = table.read(labels, label=_label_column(table, asked, judge.wanted.name))
    with setup.session() as session:
        found = evaluate_judge(
            judge,
            read,
            name=who,
            include_trained=include_trained,
            pairs_per_item=pairs_per_item,
            file=str(labels),
            workspace=session,
            seed=seed,
        )
    setup.emit(found, output)


@app.command()
def apply(
    who: JudgeArgument,
    items: ItemsArgument,
    table: TableOptions,
    asked: QualityOptions,
    output: FilesOption = None,
    sort: SortOption = "fitted",
    seed: SeedOption = 0,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Rank the items of each group, best first, with a probe or a method."""
    _rank("judge apply", items, table, asked, JudgeOptions.named(who), sort, seed, setup, output)


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="TEXT_A", help="A text, in quotes.")],
    second: Annotated[str, typer.Argument(metavar="TEXT_B", help="Another text, in quotes.")],
    asked: QualityOptions,
    who: JudgeOptions,
    context: Annotated[str, typer.Option(help="Source that both texts were written from.")] = "",
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Say which of two texts has more of a quality, with its probability; asked in both orders."""
    from climassay.api.judges import compare_texts

    judge = who.judge(asked, setup)
    with setup.session() as session:
        setup.emit(compare_texts(judge, first, second, context=context, workspace=session))


@app.command()
def rank(
    file: ItemsArgument,
    table: TableOptions,
    asked: QualityOptions,
    who: JudgeOptions,
    sort: SortOption = "fitted",
    seed: SeedOption = 0,
    output: FilesOption = None,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Rank the items of each group, best first, making only the comparisons that the sort needs."""
    _rank("judge rank", file, table, asked, who, sort, seed, setup, output)


def _rank(
    command: str,
    file: Path,
    table: TableOptions,
    asked: QualityOptions,
    who: JudgeOptions,
    sort: SortMethod,
    seed: int,
    setup: ModelSetup,
    output: list[Path] | None,
) -> None:
    from climassay.api.judges import rank_table

    read = table.read(file, label=table.label, label_optional=True)
    judge = who.judge(asked, setup)
    with setup.session() as session:
        ranked = rank_table(judge, read, command=command, file=str(file), sort=sort, workspace=session, seed=seed)
    setup.emit(ranked, output)


@app.command()
def insert(
    file: ItemsArgument,
    anchors: Annotated[Path, typer.Option(help="Labelled items, in a table with the same columns and --label.")],
    table: TableOptions,
    asked: QualityOptions,
    who: JudgeOptions,
    samples: Annotated[
        int, typer.Option(min=1, help="Number of anchors per label that an item is compared with.")
    ] = 10,
    mode: Annotated[InsertMode, typer.Option(help="Rule that decides when items count as equal.")] = "band",
    truth: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of FILE with the true labels, to score the result.")
    ] = None,
    seed: SeedOption = 0,
    output: FilesOption = None,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Give new items a label on an ordered scale, by comparing them with labelled anchors."""
    from climassay.api.judges import insert_table

    if table.label is None or table.levels is None:
        raise InputError(
            "Name the column of the anchors' labels with --label, and the labels with --levels low,...,high."
        )
    labelled = table.read(anchors, label=table.label)
    read = table.read(file, label=truth, label_optional=True)
    judge = who.judge(asked, setup)
    with setup.session() as session:
        found = insert_table(
            judge,
            read,
            labelled,
            file=str(file),
            anchors_file=str(anchors),
            samples=samples,
            mode=mode,
            workspace=session,
            seed=seed,
        )
    setup.emit(found, output)


@app.command()
def ablate(
    probe: Annotated[Path, typer.Argument(help="A probe that climassay judge train made.")],
    file: ItemsArgument,
    table: TableOptions,
    asked: QualityOptions,
    scope: Annotated[
        Scope, typer.Option(help="Where the direction is ablated: the probed layer, from it onward, or all layers.")
    ] = "onward",
    controls: Annotated[int, typer.Option(min=0, help="Number of random directions to compare with.")] = 10,
    pairs_per_item: PairsOption = None,
    seed: SeedOption = 0,
    output: FilesOption = None,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Ablate a probe's direction in the model and report how its zero-shot preference changes."""
    from climassay.api.judges import ablate_judge

    read = table.read(file, label=table.label, label_optional=True)
    with setup.session() as session:
        found = ablate_judge(
            probe,
            read,
            asked.one() if asked.given else None,
            file=str(file),
            scope=scope,
            controls=controls,
            pairs_per_item=pairs_per_item,
            model=setup.model,
            token_budget=setup.token_budget,
            workspace=session,
            seed=seed,
        )
    setup.emit(found, output)


def _label_column(table: TableOptions, asked: QualityOptions, aspect: str) -> str:
    """Column of the experts' labels: the one named, else the one that has the aspect's name.

    Raises:
        InputError: None is named, or one for several aspects.
    """
    if table.label is not None:
        if len(asked.aspect or ()) > 1:
            raise InputError("--label is one column, and several aspects are named: leave it out, or take one aspect.")
        return table.label
    if asked.quality is not None or asked.kind not in (None, KindChoice.text):
        raise InputError("Name the column of the experts' labels with --label.")
    return aspect
