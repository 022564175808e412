"""``climassay judge``: compare texts by a quality, rank them, and measure who judges well."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from climassay.api import judges as api
from climassay.api.claims import PRIMER_CLAIMS
from climassay.cli.options import (
    HTML_REPORT,
    CommandGroup,
    LayerOption,
    ModelResultSetup,
    ModelSetup,
    SeedOption,
    given,
    numbers,
    rows_written,
    with_flags,
)
from climassay.errors import InputError
from climassay.judging.settings import BenchmarkSettings, ProbeSettings, SortMethod
from climassay.primer import claims_path

if TYPE_CHECKING:
    from climassay.judging.preferences import ItemTable, Quality

app = CommandGroup(no_args_is_help=True)

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
PAIRS = typer.Option(min=1)


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

        name = str(file)
        if name == PRIMER_CLAIMS:
            file = claims_path()
        levels = parse_levels(self.levels) if self.levels is not None and label is not None else ()
        columns = ItemColumns(self.text, self.item, self.context, self.group, label, levels, label_optional)
        table = read_items(file, columns, context_words=self.context_words)
        kept = set(list(dict.fromkeys(item.group for item in table.items))[: self.limit_groups])
        items = tuple(item for item in table.items if item.group in kept)[: self.limit_items]
        return replace(table, items=items, file=name)

    def labelled(self, file: Path, asked: "QualityOptions", aspect: str) -> "ItemTable":
        """Items with the experts' labels: of the column named, else of the one that has the aspect's name.

        Raises:
            InputError: No column is named, or one for several aspects, or the file cannot be used.
        """
        if self.label is not None and len(asked.aspect or ()) > 1:
            raise InputError("--label is one column, and several aspects are named: leave it out, or take one aspect.")
        if self.label is None and (asked.quality is not None or asked.kind not in (None, KindChoice.text)):
            raise InputError("Name the column of the experts' labels with --label.")
        return self.read(file, label=self.label or aspect)


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
        result = self.all()
        if len(result) > 1:
            raise InputError("This command takes one aspect and one wording at a time.")
        return result[0]


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


@dataclass(frozen=True)
class JudgeOptions:
    """Who compares."""

    probe: Annotated[Path | None, typer.Option(help="A probe that climassay judge train made.", show_default=False)] = (
        None
    )
    method: Annotated[
        str | None, typer.Option(help="Without a probe: zero-shot, pairs, direct or direct-expected.")
    ] = None

    def judge(self, asked: QualityOptions) -> dict[str, Any]:
        """The judge, by the quality asked for, else the one that the probe was trained for.

        Raises:
            InputError: The probe cannot be read, a method is named too, or no quality is known.
        """
        if self.probe is not None and self.method is not None:
            raise InputError("Give either --probe or --method.")
        quality = asked.one() if self.probe is None or asked.given else None
        wanted = api.JudgeSpec(quality, self.probe).wanted  # what is wrong with the probe is said before a file is read
        return {"quality": wanted, "probe": self.probe, "method": self.method}


def _named(who: str, asked: QualityOptions) -> dict[str, Any]:
    """A judge by one name: that of a method which needs no labels, else a probe's file."""
    from climassay.judging.judges import JUDGES

    return (JudgeOptions(None, who) if who in JUDGES else JudgeOptions(Path(who))).judge(asked)


_JUDGE = dict.fromkeys(("quality", "probe", "method"))
"""Arguments that are made of :class:`QualityOptions` and :class:`JudgeOptions`."""
_RANKED = {"to": ModelResultSetup, "texts": None, "command": None, **_JUDGE}


def _benchmark(
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
) -> dict[str, Any]:
    from climassay.judging.benchmark import JudgeTask

    own = given(learning, BenchmarkSettings)
    # With some of the pairs only, the list is long, and strengths would ask for all of them.
    chosen = sort or ("fitted" if "pairs_per_item" in own else "strengths")
    sizes = () if learning_curve is None else tuple(sorted(numbers(learning_curve, "--learning-curve")))
    settings = BenchmarkSettings(**own, seed=seed, sizes=sizes, sort=chosen, probe=learning.probes(seed))
    if sizes and not 2 <= sizes[0] <= sizes[-1] <= settings.train_items:
        raise InputError(f"--learning-curve takes sizes from 2 to --train-items ({settings.train_items}).")
    qualities = asked.all()
    read = {name: table.labelled(labels, asked, name) for name in {one.name: None for one in qualities}}
    tasks = [JudgeTask(one, read[one.name].items, read[one.name].skipped) for one in qualities]
    return {"tasks": tasks, "settings": settings, "methods": method or ["ppairs"], "file": str(labels)}


_RANKS = typer.Option(help="Write every item's rank (.jsonl, .csv, .xlsx).")
app.add_verb(
    "benchmark",
    api.benchmark_judges,
    to=ModelResultSetup,
    parse=_benchmark,
    writes={"predictions": (_RANKS, rows_written(lambda result: result.places()))},
    tasks=None,
    methods=None,
    file=None,
)


def _train(
    labels: LabelsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to save the probe in.")],
    table: TableOptions,
    asked: QualityOptions,
    probe: ProbeOptions = ProbeOptions(),
    seed: SeedOption = 0,
) -> dict[str, Any]:
    quality, settings = asked.one(), probe.probes(seed)
    items = table.labelled(labels, asked, quality.name)
    return {"items": items, "quality": quality, "settings": settings, "output": output, "seed": seed}


app.add_verb(
    "train",
    api.train_judge,
    to=ModelSetup,
    parse=_train,
    writes=HTML_REPORT,
    method=Annotated[str, typer.Option()],
    pairs_per_item=PAIRS,
    **dict.fromkeys(("items", "quality", "output", "seed")),
)


def _evaluate(who: JudgeArgument, labels: LabelsArgument, table: TableOptions, asked: QualityOptions) -> dict[str, Any]:
    judge = _named(who, asked)
    return {**judge, "items": table.labelled(labels, asked, judge["quality"].name)}


def _apply(who: JudgeArgument, items: ItemsArgument, table: TableOptions, asked: QualityOptions) -> dict[str, Any]:
    read = table.read(items, label=table.label, label_optional=True)
    return {**_named(who, asked), "texts": read, "command": "judge apply"}


def _rank(file: ItemsArgument, table: TableOptions, asked: QualityOptions, who: JudgeOptions) -> dict[str, Any]:
    return {"texts": table.read(file, label=table.label, label_optional=True), **who.judge(asked)}


def _compared(asked: QualityOptions, who: JudgeOptions) -> dict[str, Any]:
    return who.judge(asked)


_MOST_LEVELS = 20
"""Different numbers in a column of labels that are taken for a scale."""


def _insert(
    file: ItemsArgument,
    anchors: Annotated[Path, typer.Option(help="Labelled items, in a table with the same columns and --label.")],
    table: TableOptions,
    asked: QualityOptions,
    who: JudgeOptions,
    truth: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of FILE with the true labels, to score the result.")
    ] = None,
) -> dict[str, Any]:
    if table.label is None:
        raise InputError("Name the column of the anchors' labels with --label.")
    if table.levels is None:
        numbers = sorted(
            {item.label for item in table.read(anchors, label=table.label).items if item.label is not None}
        )
        if len(numbers) > _MOST_LEVELS:
            raise InputError(
                f"{anchors} has {len(numbers)} different numbers in {table.label!r}: name the labels, low to high, "
                "with --levels."
            )
        table = replace(table, levels=",".join(f"{number:g}" for number in numbers))
    labelled = table.read(anchors, label=table.label)
    return {"anchors": labelled, "texts": table.read(file, label=truth, label_optional=True), **who.judge(asked)}


app.add_verb(
    "evaluate",
    api.evaluate_judge,
    to=ModelResultSetup,
    parse=_evaluate,
    pairs_per_item=PAIRS,
    items=None,
    **_JUDGE,
)
app.add_verb("apply", api.rank, parse=_apply, **_RANKED)
app.add_verb(
    "compare",
    api.compare_texts,
    to=ModelSetup,
    parse=_compared,
    first=typer.Argument(metavar="TEXT_A"),
    second=typer.Argument(metavar="TEXT_B"),
    **_JUDGE,
)
app.add_verb("rank", api.rank, parse=_rank, **_RANKED)
app.add_verb(
    "insert",
    api.insert,
    to=ModelResultSetup,
    parse=_insert,
    samples=typer.Option(min=1),
    **dict.fromkeys(("texts", "anchors", "levels")),
    **_JUDGE,
)
