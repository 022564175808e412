"""``climassay judge``: compare texts by a quality, rank them, and measure which method judges well."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter, Token, convert

from climassay.api import judges as api
from climassay.cli.commands import add_command
from climassay.cli.options import (
    POSITIVE,
    ModelResultSetup,
    ModelSetup,
    bounded,
    given_values,
    options_for,
    parse_numbers,
)
from climassay.errors import InputError
from climassay.judging.settings import BenchmarkSettings, InsertMode, ProbeSettings, SortMethod
from climassay.primer import PRIMER_CLAIMS, claims_path
from climassay.reporting.results import write_rows

if TYPE_CHECKING:
    from climassay.judging.item_tables import ItemTable
    from climassay.judging.preferences import Quality

app = App(name="judge")

MAX_LEVELS = 20
"""Maximum number of distinct numeric labels that are used as the levels of a scale without ``--levels``."""
JudgeArgument = Annotated[
    str, Parameter(name="model", help="A probe's file, or zero-shot, pairs, direct, direct-expected.")
]
LabelsArgument = Annotated[
    Path,
    Parameter(name="labels", help="Labelled items: CSV, TSV, JSON, JSONL or Parquet, also .gz; or primer:claims."),
]
ItemsArgument = Annotated[
    Path, Parameter(name="items", help="Items, labelled or not: CSV, TSV, JSON, JSONL or Parquet, also .gz.")
]
SeedOption = Annotated[int, bounded(0, help="Seed of samples, splits, folds and resampling.")]
PairsOption = Annotated[
    int | None,
    bounded(1, help="Number of others each item is compared with, instead of all of its group."),
]
SortOption = Annotated[SortMethod, Parameter(help="Way of sorting.")]


@dataclass(frozen=True)
class TableOptions:
    """Options for the columns and rows of a table."""

    text: str | None = None
    """Column of the texts to judge; by default text. Tables of Newsroom and SummEval need no column options."""
    item: str | None = None
    """Column of the items' names; by default items are numbered."""
    group: str | None = None
    """Column of groups, for example articles; only items of the same group are compared."""
    context: str | None = None
    """Column of the source text, or of the text around a statement."""
    label: str | None = None
    """Column of the experts' labels; higher is better."""
    levels: str | None = None
    """Words used as labels, from low to high: low,medium,high (synonyms: poor|bad)."""
    context_words: Annotated[int | None, POSITIVE] = None
    """Length in words to which contexts are truncated."""
    limit_groups: Annotated[int | None, POSITIVE] = None
    """Maximum number of groups, from the top of the file."""
    limit_items: Annotated[int | None, POSITIVE] = None
    """Maximum number of items, from the top of the file."""

    def read(self, file: Path, *, label: str | None, label_optional: bool = False) -> "ItemTable":
        """Read the items from a table.

        Args:
            file: File of the table, or ``primer:claims``.
            label: Column of the labels; None for no labels.
            label_optional: Whether to keep items without a label instead of skipping them.

        Raises:
            InputError: The file or a column cannot be used.
        """
        from climassay.judging.item_tables import ItemColumns, parse_levels, published_columns, read_items

        file_name = str(file)
        if file_name == PRIMER_CLAIMS:
            file = claims_path()
        levels = parse_levels(self.levels) if self.levels is not None and label is not None else ()
        columns = None
        if (self.text, self.item, self.context, self.group) == (None,) * 4:
            columns = published_columns(file, label)
        if columns is None:
            columns = ItemColumns(self.text or "text", self.item, self.context, self.group, label)
        columns = replace(columns, levels=levels, label_optional=label_optional)
        table = read_items(file, columns, context_words=self.context_words)
        groups = set(list(dict.fromkeys(item.group for item in table.items))[: self.limit_groups])
        items = tuple(item for item in table.items if item.group in groups)[: self.limit_items]
        return replace(table, items=items, file=file_name)

    def read_labelled(self, file: Path, quality: "QualityOptions", aspect: str) -> "ItemTable":
        """Read items with experts' labels.

        Args:
            file: File of the table, or ``primer:claims``.
            quality: Options that name the judged qualities.
            aspect: Name of the judged quality, which is the default column of its labels.

        Raises:
            InputError: ``--label`` is missing for a quality that is not an aspect of texts, was given for several
                aspects, or the file cannot be used.
        """
        if self.label is not None and len(quality.aspect) > 1:
            raise InputError("--label is one column, and several aspects are named: leave it out, or take one aspect.")
        if self.label is None and (quality.quality is not None or quality.kind not in (None, "text")):
            raise InputError("Name the column of the experts' labels with --label.")
        return self.read(file, label=self.label or aspect)


@dataclass(frozen=True)
class QualityOptions:
    """Options for the quality by which texts are compared."""

    aspect: tuple[str, ...] = ()
    """Aspect of texts: coherence, consistency, fluency, relevance or informativeness; repeat for several."""
    kind: Annotated[Literal["text", "claims", "confidence", "own"] | None, Parameter(converter=convert)] = None
    """Kind of quality: text (an aspect of texts, see --aspect), claims (the accuracy of claims), confidence (the
    confidence of statements) or own (a quality that you describe with --quality)."""
    quality: str | None = None
    """Your own quality, described in one sentence."""
    noun: str = "summary"
    """Word for the texts in the prompts, e.g. "summary"; only with --kind text."""
    source: str = "article"
    """Word for a text's source in the prompts, e.g. "article"; only with --kind text."""
    wording: tuple[int, ...] = ()
    """Prompt wording to use, 1 to 3; repeat for several."""

    def build(self) -> "Quality | None":
        """Return the only named quality; None if no option names a quality.

        Raises:
            InputError: Several qualities are named, or the quality does not exist.
        """
        is_set = self.kind is not None or bool(self.aspect) or self.quality is not None
        return self.single_quality() if is_set else None

    def qualities(self) -> "list[Quality]":
        """Return each of the named qualities in each of the named wordings.

        Raises:
            InputError: No quality is named, a quality does not exist, or the options contradict each other.
        """
        from climassay.judging.preferences import aspect_names, quality

        kind = self.kind or ("own" if self.quality is not None else "text")
        aspects = list(dict.fromkeys(self.aspect))
        if kind == "text" and not aspects:
            raise InputError(f"Name the aspect with --aspect ({', '.join(aspect_names())}), or describe a quality of "
                             "your own with --quality.")  # fmt: skip
        if kind != "text" and len(aspects) > 1:
            raise InputError(f"--aspect names several qualities of --kind text only, not of {kind}.")
        if kind in ("claims", "confidence") and aspects:
            raise InputError(f"--aspect goes with --kind text; --kind {kind} is a quality by itself.")
        if kind != "own" and self.quality is not None:
            raise InputError(f"--quality describes a quality of your own and does not go with --kind {kind}.")
        return [
            quality(kind, aspect, sentence=self.quality or "", noun=self.noun, source=self.source, wording=number)
            for aspect in aspects or [""]
            for number in dict.fromkeys(self.wording or [1])
        ]

    def single_quality(self) -> "Quality":
        """Return the only named quality.

        Raises:
            InputError: No quality or several qualities are named, or the quality does not exist.
        """
        qualities = self.qualities()
        if len(qualities) > 1:
            raise InputError("This command takes one aspect and one wording at a time.")
        return qualities[0]


def _parse_layer_sets(_: object, tokens: tuple[Token, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(parse_numbers(text, "--layer") for text in dict.fromkeys(token.value for token in tokens))


@dataclass(frozen=True)
@options_for(ProbeSettings, "regularisation", "ties")
class ProbeOptions:
    """Options for the layers and the regularisation of probes."""

    layers: Annotated[
        tuple[tuple[int, ...], ...],
        Parameter(name="--layer", converter=_parse_layer_sets, n_tokens=1, allow_leading_hyphen=True),
    ] = ()
    """Layer whose hidden states are the features (-1: last), or several layers to concatenate, as 16,-1; repeat to have
    the best chosen by cross-validation."""

    def probe_settings(self, seed: int) -> ProbeSettings:
        """Return the settings for training probes.

        Raises:
            InputError: The value of an option is out of range.
        """
        return ProbeSettings(self.layers, seed=seed, **given_values(self, ProbeSettings))


@dataclass(frozen=True)
@options_for(
    BenchmarkSettings,
    "train_items",
    "folds",
    "pairs_per_item",
    "beam_size",
    "threshold",
    "score",
    as_published=Parameter(negative=()),
)
class BenchmarkOptions(ProbeOptions):
    """Options for the cross-validation of judges and for their probes."""


ProbeOption = Annotated[Path | None, Parameter(help="File of a probe that climassay judge train wrote.")]
MethodOption = Annotated[
    str | None,
    Parameter(help="Method to use instead of a probe: zero-shot, pairs, direct or direct-expected."),
]


@app.command
def benchmark(
    labels: LabelsArgument,
    /,
    *,
    table: Annotated[TableOptions, Parameter(name="*")] = TableOptions(),
    quality: Annotated[QualityOptions, Parameter(name="*")] = QualityOptions(),
    method: tuple[str, ...] = ("ppairs",),
    seed: SeedOption = 0,
    learning: Annotated[BenchmarkOptions, Parameter(name="*")] = BenchmarkOptions(),
    sort: SortMethod | None = None,
    learning_curve: str | None = None,
    predictions: Path | None = None,
    common_options: Annotated[ModelResultSetup, Parameter(name="*")] = ModelResultSetup(),
) -> None:
    """Measure how well judges agree with experts on unseen groups, compared with two baselines.

    The baselines are "longer is better" and a constant. Without --layer, the best of four layers in the upper half of
    the model is chosen for each probe.

    Args:
        method: Method of judging: direct, direct-expected, pairs, zero-shot, ppairs, ppairs-length, principal,
            pointwise, pointwise-length or all. Repeat the option for several methods.
        sort: Method of sorting. The default is strengths, or fitted with --pairs-per-item.
        learning_curve: Numbers of labelled items for a learning curve, for example 10,20,50,100,200.
        predictions: Write the rank of every item (.jsonl, .csv, .xlsx).
    """
    from climassay.judging.benchmark import JudgeTask, benchmark_judges

    values = given_values(learning, BenchmarkSettings)
    # Sorting by strengths would compare all pairs, which --pairs-per-item is meant to avoid.
    default_sort: SortMethod = "fitted" if "pairs_per_item" in values else "strengths"
    sizes = () if learning_curve is None else tuple(sorted(parse_numbers(learning_curve, "--learning-curve")))
    settings = BenchmarkSettings(
        **values, seed=seed, sizes=sizes, sort=sort or default_sort, probe=learning.probe_settings(seed)
    )
    if sizes and not 2 <= sizes[0] <= sizes[-1] <= settings.train_items:
        raise InputError(f"--learning-curve takes sizes from 2 to --train-items ({settings.train_items}).")
    qualities = quality.qualities()
    tables = {
        name: table.read_labelled(labels, quality, name)
        for name in {task_quality.name: None for task_quality in qualities}
    }
    tasks = [
        JudgeTask(task_quality, item_table.items, item_table.skipped, item_table.notes)
        for task_quality in qualities
        for item_table in [tables[task_quality.name]]
    ]
    with common_options.open_session() as session:
        result = benchmark_judges(
            tasks,
            settings,
            method,
            file=str(labels),
            model=common_options.model,
            token_budget=common_options.token_budget,
            workspace=session,
        )
        if predictions is not None:
            write_rows(predictions, result.rank_rows())
        common_options.print_result(result, session, written_files=[] if predictions is None else [predictions])


@app.command
def train(
    labels: LabelsArgument,
    /,
    *,
    output: Annotated[Path, Parameter(alias="-o")],
    table: Annotated[TableOptions, Parameter(name="*")] = TableOptions(),
    quality: Annotated[QualityOptions, Parameter(name="*")] = QualityOptions(),
    method: Literal["ppairs", "ppairs-length", "principal", "pointwise", "pointwise-length"] = "ppairs",
    probe: Annotated[ProbeOptions, Parameter(name="*")] = ProbeOptions(),
    pairs_per_item: PairsOption = None,
    seed: SeedOption = 0,
    html: Path | None = None,
    common_options: Annotated[ModelSetup, Parameter(name="*")] = ModelSetup(),
) -> None:
    """Train a probe on labelled items and evaluate it on held-out items; without --layer, four layers are tried.

    Args:
        output: File to which the probe is saved.
        method: Method of training.
        html: Write figures and tables as a self-contained HTML report.
    """
    named_quality, settings = quality.single_quality(), probe.probe_settings(seed)
    item_table = table.read_labelled(labels, quality, named_quality.name)
    with common_options.open_session() as session:
        result = api.train_judge(
            item_table,
            named_quality,
            model=common_options.model,
            method=method,
            settings=settings,
            pairs_per_item=pairs_per_item,
            output=output,
            token_budget=common_options.token_budget,
            seed=seed,
            workspace=session,
        )
        if html is not None:
            result.save(html)
        common_options.print_result(result, session, written_files=[] if html is None else [html])


@app.command
def evaluate(
    judge: JudgeArgument,
    labels: LabelsArgument,
    /,
    *,
    table: Annotated[TableOptions, Parameter(name="*")] = TableOptions(),
    quality: Annotated[QualityOptions, Parameter(name="*")] = QualityOptions(),
    include_trained: bool = False,
    pairs_per_item: PairsOption = None,
    seed: SeedOption = 0,
    common_options: Annotated[ModelResultSetup, Parameter(name="*")] = ModelResultSetup(),
) -> None:
    """Evaluate a judge on labelled items, compared with the baselines "longer is better" and a constant.

    Args:
        include_trained: Also score items on which the probe was trained.
    """
    from climassay.judging.judges import JUDGES
    from climassay.judging.opened_judge import JudgeSpec

    probe, method = (None, judge) if judge in JUDGES else (Path(judge), None)
    # The probe is read here, so that a faulty one is reported before a long table is read.
    named_quality = JudgeSpec(quality.build(), probe, method).resolved_quality
    item_table = table.read_labelled(labels, quality, named_quality.name)
    with common_options.open_session() as session:
        result = api.evaluate_judge(
            item_table,
            named_quality,
            probe=probe,
            method=method,
            model=common_options.model,
            include_trained=include_trained,
            pairs_per_item=pairs_per_item,
            token_budget=common_options.token_budget,
            seed=seed,
            workspace=session,
        )
        common_options.print_result(result, session)


add_command(
    app,
    "compare",
    api.compare_texts,
    common_options=ModelSetup,
    first=Parameter(name="TEXT_A"),
    second=Parameter(name="TEXT_B"),
    quality=QualityOptions,
    probe=ProbeOption,
    method=MethodOption,
)


@app.command
def rank(
    file: ItemsArgument,
    /,
    *,
    table: Annotated[TableOptions, Parameter(name="*")] = TableOptions(),
    quality: Annotated[QualityOptions, Parameter(name="*")] = QualityOptions(),
    probe: ProbeOption = None,
    method: MethodOption = None,
    sort: SortOption = "fitted",
    seed: SeedOption = 0,
    common_options: Annotated[ModelResultSetup, Parameter(name="*")] = ModelResultSetup(),
) -> None:
    """Rank the items of each group, best first, with only the comparisons that the sorting method needs."""
    item_table = table.read(file, label=table.label, label_optional=True)
    with common_options.open_session() as session:
        result = api.rank(
            item_table,
            quality.build(),
            probe=probe,
            method=method,
            model=common_options.model,
            sort=sort,
            token_budget=common_options.token_budget,
            seed=seed,
            workspace=session,
        )
        common_options.print_result(result, session)


@app.command
def insert(
    file: ItemsArgument,
    /,
    *,
    anchors: Path,
    table: Annotated[TableOptions, Parameter(name="*")] = TableOptions(),
    quality: Annotated[QualityOptions, Parameter(name="*")] = QualityOptions(),
    probe: ProbeOption = None,
    method: MethodOption = None,
    truth: str | None = None,
    samples: Annotated[int, POSITIVE] = 10,
    mode: InsertMode = "band",
    seed: SeedOption = 0,
    common_options: Annotated[ModelResultSetup, Parameter(name="*")] = ModelResultSetup(),
) -> None:
    """Label new items on an ordered scale by comparing them with labelled items, the anchors.

    Args:
        anchors: Table of labelled items with the same columns as the new ones; --label names their labels.
        truth: Column of the new items with their true labels, for scoring the result.
        samples: Number of anchors per label with which each item is compared.
        mode: Rule that decides when two items count as equal.
    """
    if table.label is None:
        raise InputError("Name the column of the anchors' labels with --label.")
    if table.levels is None:
        labels = {item.label for item in table.read(anchors, label=table.label).items if item.label is not None}
        if len(labels) > MAX_LEVELS:
            raise InputError(
                f"{anchors} has {len(labels)} different numbers in {table.label!r}: name the labels, low to high, "
                "with --levels."
            )
        table = replace(table, levels=",".join(f"{label:g}" for label in sorted(labels)))
    anchor_table = table.read(anchors, label=table.label)
    new_items = table.read(file, label=truth, label_optional=True)
    with common_options.open_session() as session:
        result = api.insert(
            new_items,
            anchor_table,
            quality=quality.build(),
            probe=probe,
            method=method,
            model=common_options.model,
            samples=samples,
            mode=mode,
            token_budget=common_options.token_budget,
            seed=seed,
            workspace=session,
        )
        common_options.print_result(result, session)
