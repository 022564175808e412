"""What the commands of ``climassay judge`` share: their options, and the model with its records and activations."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.model_options import LoadingOptions, ModelOption
from climassay.cli.output import WorkspaceOption, stderr_console
from climassay.cli.ray_option import RayOptions
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.judging.asking import Questions
    from climassay.judging.items import Item, ItemTable
    from climassay.judging.preferences import Method
    from climassay.judging.probe import PairProbe, PointProbe
    from climassay.judging.probing import Harvester
    from climassay.judging.quality import Quality
    from climassay.learning.activation_store import ActivationStore
    from climassay.models.contract import Generator
    from climassay.records import RecordedModel, Records, Run


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

        if str(file) == "primer:claims":
            from climassay.primer import claims_path

            file = claims_path()
        levels = parse_levels(self.levels) if self.levels is not None and label is not None else ()
        columns = ItemColumns(self.text, self.item, self.context, self.group, label, levels, label_optional)
        table = read_items(file, columns, context_words=self.context_words)
        return replace(table, items=self._limited(table.items))

    def _limited(self, items: "tuple[Item, ...]") -> "tuple[Item, ...]":
        names = list(dict.fromkeys(item.group for item in items))[: self.limit_groups]
        kept = set(names)
        return tuple(item for item in items if item.group in kept)[: self.limit_items]


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
        from climassay.judging.quality import aspect_names, quality

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
class Bench:
    """A loaded model with its records and activations."""

    model: "Generator"
    records: "Records"
    activations: "ActivationStore"
    setup: ModelSetup

    def harvester(self, questions: "Questions", layers: tuple[int, ...]) -> "Harvester | None":
        """Reader of hidden states; None where the weights are not at hand."""
        from climassay.judging.probing import Harvester
        from climassay.models import OpenWeights

        if not isinstance(self.model, OpenWeights):
            return None
        return Harvester(self.model, questions, layers, self.activations, self.setup.token_budget)

    def recorded(self, run: "Run") -> "RecordedModel":
        """The model with records around it."""
        from climassay.records import RecordedModel

        return RecordedModel(self.model, self.records, run, use_cache=not self.setup.no_cache)


@contextmanager
def opened(setup: ModelSetup, *, quiet: bool, dtype: str | None = None) -> Iterator[Bench]:
    """Load the model, open records and activations; with ``--no-cache`` activations are kept for this run only.

    Args:
        setup: As the user wants it.
        quiet: Tell nothing.
        dtype: Number format that a trained file reads; ``--dtype`` goes before it.
    """
    from tempfile import TemporaryDirectory

    from climassay.learning.activation_store import ActivationStore
    from climassay.records import Records
    from climassay.workspace import Workspace, cache_folder

    place = Workspace.open(setup.workspace)
    with ExitStack() as stack:
        pool = stack.enter_context(setup.opened(quiet=quiet))
        loaded = setup.load(setup.model, place, quiet=quiet, pool=pool, dtype=dtype or None)
        stack.callback(loaded.close)
        if setup.no_cache:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="climassay-")))
        else:
            folder = cache_folder() / "activations"
        records = stack.enter_context(Records(place.records_url))
        yield Bench(loaded, records, ActivationStore(folder), setup)


@dataclass(frozen=True)
class JudgeOptions:
    """Who compares."""

    probe: Annotated[Path | None, typer.Option(help="A probe that climassay judge train made.", show_default=False)] = (
        None
    )
    method: Annotated[
        str | None, typer.Option(help="Without a probe: zero-shot, pairs, direct or direct-expected.")
    ] = None

    def load(self) -> "PairProbe | PointProbe | None":
        """The probe, if one is named.

        Raises:
            InputError: It cannot be read, or a method is named too.
        """
        if self.probe is None:
            return None
        if self.method is not None:
            raise InputError("Give either --probe or --method.")
        from climassay.judging.probe import load_probe

        return load_probe(self.probe)

    def quality(self, probe: "PairProbe | PointProbe | None", wanted: QualityOptions) -> "Quality":
        """The quality named, else the one that the probe was trained for."""
        if probe is None or wanted.given:
            return wanted.one()
        from climassay.judging.training import quality_of

        return quality_of(probe.provenance)

    def judge(
        self, bench: Bench, run: "Run", questions: "Questions", probe: "PairProbe | PointProbe | None"
    ) -> "Method":
        """The method of comparing.

        Raises:
            InputError: The probe or the method needs another model.
        """
        from climassay.judging.judges import named_judge, open_weights, probe_judge
        from climassay.judging.probing import Harvester

        if probe is None:
            harvester = bench.harvester(questions, (-1,))
            name = self.method or ("pairs" if harvester is None else "zero-shot")
            return named_judge(name, bench.recorded(run), questions, harvester)
        model = open_weights(bench.model, "A probe")
        _warn_of_other_template(probe, questions)
        layers = probe.provenance.layers or (-1,)
        return probe_judge(probe, Harvester(model, questions, layers, bench.activations, bench.setup.token_budget))


def _warn_of_other_template(probe: "PairProbe | PointProbe", questions: "Questions") -> None:
    from climassay.judging.probe import PairProbe

    prompt = questions.prompt("contrast" if isinstance(probe, PairProbe) else "point")
    if probe.provenance.template_sha256 not in ("", prompt.sha256):
        stderr_console().print(
            f"The probe was trained with another template than {prompt.name} ({prompt.origin}): check the transfer on "
            "labelled items.",
            highlight=False,
        )


def numbers(text: str, option: str) -> tuple[int, ...]:
    """Whole numbers between commas.

    Raises:
        InputError: They are not.
    """
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} takes whole numbers between commas, not {text!r}.") from None
    if len(set(found)) < len(found):
        raise InputError(f"{option} names a number twice: {text}.")
    return found


def tell_skipped(table: "ItemTable") -> None:
    """Say on stderr which rows were left out."""
    if table.skipped:
        stderr_console().print(f"{len(table.skipped)} rows left out, the first: {table.skipped[0]}.", highlight=False)
