"""What the commands of ``climassay judge`` share: their options, and the model with its records and activations."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from climassay.cli.learning_options import activation_store, note, numbers
from climassay.cli.model_options import LoadingOptions, ModelOption
from climassay.cli.output import WorkspaceOption
from climassay.cli.ray_option import RayOptions
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.judging.candidates import ProbeSettings
    from climassay.judging.items import ItemTable
    from climassay.judging.judges import Cost, Harvester
    from climassay.judging.preferences import Method
    from climassay.judging.probe import PairProbe, PointProbe
    from climassay.judging.prompts import Quality, Questions
    from climassay.judging.sorting import SortMethod
    from climassay.learning.harvest import ActivationStore
    from climassay.models.contract import Generator
    from climassay.records import RecordedModel, Records, Run


PRIMER_CLAIMS = "primer:claims"
LABELLED = "Labelled items: CSV, TSV, JSON, JSONL or Parquet, also .gz; or primer:claims."
PairsOption = Annotated[
    int | None, typer.Option(min=1, help="Compare each item with so many others instead of all of its group.")
]
TiesOption = Annotated[str, typer.Option(help="Training pairs of equal labels: drop, keep or three-way.")]
RegularisationOption = Annotated[
    float | None, typer.Option(help="Inverse penalty C of probes; by default chosen by cross-validation.")
]
SortOption = Annotated[str, typer.Option(help="exact, beam, greedy, fitted, strengths or all-pairs.")]


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
    context_words: Annotated[int | None, typer.Option(min=1, help="Keep so many words of each context.")] = None
    limit_groups: Annotated[int | None, typer.Option(min=1, help="Use only the first so many groups.")] = None
    limit_items: Annotated[int | None, typer.Option(min=1, help="Use only the first so many items.")] = None

    def read(self, file: Path, *, label: str | None, label_optional: bool = False) -> "ItemTable":
        """Read the items, labelled by a column if one is named; rows without a label are left out, or kept without.

        Raises:
            InputError: The file or a column cannot be used.
        """
        from dataclasses import replace

        from climassay.judging.items import ItemColumns, parse_levels, read_items

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
    quality: Annotated[str | None, typer.Option(metavar="SENTENCE", help="A quality of your own in one sentence.")] = (
        None
    )
    noun: Annotated[str, typer.Option(help="What the texts are called, for --kind text.")] = "summary"
    source: Annotated[str, typer.Option(help="What their source is called, for --kind text.")] = "article"
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
        from climassay.judging.prompts import aspect_names, quality

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
class ModelSetup(LoadingOptions, RayOptions):
    """The model, and where its answers are kept."""

    model: ModelOption = "local:smollm2"
    token_budget: Annotated[
        int | None, typer.Option(min=1, help="Most tokens of one forward pass: bounds the memory.")
    ] = None
    workspace: WorkspaceOption = None


@dataclass(frozen=True)
class EvaluationResources:
    """A loaded model with its records and activations."""

    model: "Generator"
    records: "Records"
    activations: "ActivationStore"
    setup: ModelSetup

    def harvester(self, questions: "Questions", layers: tuple[int, ...]) -> "Harvester | None":
        """Reader of hidden states; None where the weights are not at hand."""
        from climassay.judging.judges import Harvester
        from climassay.models import OpenWeights

        if not isinstance(self.model, OpenWeights):
            return None
        return Harvester(self.model, questions, layers, self.activations, self.setup.token_budget)

    def recorded(self, run: "Run") -> "RecordedModel":
        """The model with records around it."""
        from climassay.records import RecordedModel

        return RecordedModel(self.model, self.records, run, use_cache=not self.setup.no_cache)


@contextmanager
def opened(setup: ModelSetup, *, quiet: bool, dtype: str | None = None) -> Iterator[EvaluationResources]:
    """Load the model, open records and activations; with ``--no-cache`` activations are kept for this run only.

    Args:
        setup: As the user wants it.
        quiet: Tell nothing.
        dtype: Number format that a trained file reads; ``--dtype`` goes before it.
    """
    from tempfile import TemporaryDirectory

    from climassay.learning.harvest import ActivationStore
    from climassay.records import Records
    from climassay.workspace import Workspace

    place = Workspace.open(setup.workspace)
    with ExitStack() as stack:
        pool = stack.enter_context(setup.opened(quiet=quiet))
        loaded = setup.load(setup.model, place, quiet=quiet, pool=pool, dtype=dtype or None)
        stack.callback(loaded.close)
        store = activation_store()
        if setup.no_cache:
            store = ActivationStore(Path(stack.enter_context(TemporaryDirectory(prefix="climassay-"))))
        records = stack.enter_context(Records(place.records_url))
        yield EvaluationResources(loaded, records, store, setup)


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

    def resolve(self, asked: QualityOptions) -> "tuple[PairProbe | PointProbe | None, Quality]":
        """The probe, if one is named, and the quality asked for, else the one that the probe was trained for.

        Raises:
            InputError: The probe cannot be read, a method is named too, or no quality is known.
        """
        from climassay.judging.probe import load_probe
        from climassay.judging.training import quality_of

        if self.probe is not None and self.method is not None:
            raise InputError("Give either --probe or --method.")
        probe = None if self.probe is None else load_probe(self.probe)
        return probe, asked.one() if probe is None or asked.given else quality_of(probe.provenance)


@dataclass(frozen=True)
class RunningJudge:
    """A judge in a recorded run."""

    run: "Run"
    method: "Method"
    quality: "Quality"
    probe: "PairProbe | PointProbe | None"
    harvester: "Harvester | None"
    recorded: "RecordedModel"

    @property
    def cost(self) -> "Cost":
        """What its comparisons took so far."""
        from climassay.judging.judges import Cost

        if self.harvester is not None and self.harvester.cost != Cost():
            return self.harvester.cost
        tally = self.recorded.tally
        tokens = tally.usage.prompt_tokens
        return Cost(tally.asked, tokens, tokens, tally.asked, tally.hits)


@contextmanager
def running_judge(
    command: str,
    who: JudgeOptions,
    asked: QualityOptions,
    setup: ModelSetup,
    config: dict[str, Any],
    *,
    seeds: dict[str, int] | None = None,
    quiet: bool = False,
) -> Iterator[RunningJudge]:
    """Open a judge in a run of its own.

    Args:
        command: Name of the run.
        who: Who compares; without a name, zero-shot, or prompts where the weights are not at hand.
        asked: By which quality.
        setup: The model.
        config: What the run is to remember beside them.
        seeds: Of the run.
        quiet: Tell nothing.

    Raises:
        InputError: As :meth:`JudgeOptions.resolve`, or the judge needs another model.
    """
    from climassay.judging.judges import Harvester, named_judge, open_weights, probe_judge
    from climassay.judging.probe import PairProbe
    from climassay.judging.prompts import Questions

    probe, quality = who.resolve(asked)
    questions = Questions(quality, setup.prompts)
    config = {**config, "quality": quality.name, "model": setup.model, "probe": who.probe, "method": who.method}
    with (
        opened(setup, quiet=quiet, dtype=probe.provenance.dtype if probe is not None else None) as resources,
        resources.records.run(command=command, config=config, seeds=seeds or {}) as run,
    ):
        recorded, harvester = resources.recorded(run), resources.harvester(questions, (-1,))
        if probe is None:
            name = who.method or ("pairs" if harvester is None else "zero-shot")
            method = named_judge(name, recorded, questions, harvester)
        else:
            prompt = questions.prompt("contrast" if isinstance(probe, PairProbe) else "point")
            if probe.provenance.template_sha256 not in ("", prompt.sha256):
                note(f"The probe was trained with another template than {prompt.name} ({prompt.origin}): check the "
                     "transfer on labelled items.")  # fmt: skip
            weights, layers = open_weights(resources.model, "A probe"), probe.provenance.layers or (-1,)
            harvester = Harvester(weights, questions, layers, resources.activations, setup.token_budget)
            method = probe_judge(probe, harvester)
        yield RunningJudge(run, method, quality, probe, harvester, recorded)


def probe_settings(layer: list[str] | None, ties: str, regularisation: float | None, seed: int) -> "ProbeSettings":
    """How probes are fitted, from the options.

    Raises:
        InputError: An option is out of its range.
    """
    from climassay.judging.candidates import ProbeSettings

    if ties not in ("drop", "keep", "three-way"):
        raise InputError(f"--ties is drop, keep or three-way, not {ties!r}.")
    if regularisation is not None and not (regularisation > 0 and math.isfinite(regularisation)):
        raise InputError(f"--regularisation is a positive number, not {regularisation}.")
    sets = tuple(numbers(text, "--layer") for text in dict.fromkeys(layer or []))
    return ProbeSettings(sets, regularisation, ties, seed)  # type: ignore[arg-type]


def checked_sort(sort: str) -> "SortMethod":
    """A way of sorting by its name.

    Raises:
        InputError: There is none of this name.
    """
    from climassay.judging.sorting import SortMethod

    for known in get_args(SortMethod):
        if sort == known:
            return cast("SortMethod", known)
    raise InputError(f"--sort is one of {', '.join(get_args(SortMethod))}, not {sort!r}.")


def label_column(table: TableOptions, asked: QualityOptions, aspect: str) -> str:
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


def tell_skipped(*tables: "ItemTable") -> None:
    """Say on stderr which rows were left out."""
    for table in tables:
        if table.skipped:
            note(f"{len(table.skipped)} rows left out, the first: {table.skipped[0]}.")
