"""``climassay tune``: train adapters, list them, show how they came about."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from climassay.cli.model_options import PromptsOption
from climassay.cli.option_groups import grouped
from climassay.cli.output import FilesOption, JsonOption, WorkspaceOption, emit, opened_session
from climassay.errors import InputError

app = typer.Typer(no_args_is_help=True)
_SETTINGS = (
    *("rank", "alpha", "dropout", "epochs", "warmup", "schedule", "weight_decay", "batch_size", "seed"),
    *("accumulation", "max_length", "max_gradient_norm", "dtype", "patience", "evaluations"),
)


@dataclass(frozen=True)
class TuningOptions:
    """Which model is trained, how, and under which name the adapter is kept."""

    output: Annotated[str, typer.Option("--output", "-o", help="Name of the adapter in the workspace.")]
    model: Annotated[str, typer.Option("--model", "-m", help="local:smollm2 or local:FOLDER_OR_HUB_ID.")] = (
        "local:smollm2"
    )
    preset: Annotated[
        str | None, typer.Option(help="Preset, see climassay tune presets.  [default: the one made for model and task]")
    ] = None
    rank: Annotated[int | None, typer.Option(help="Rank of the adapter's factors.")] = None
    alpha: Annotated[float | None, typer.Option(help="Scale of the adapter, times its rank.")] = None
    dropout: Annotated[float | None, typer.Option(help="Dropout of the adapter's inputs.")] = None
    target: Annotated[list[str] | None, typer.Option(help="Layers to adapt, e.g. q_proj; repeat.")] = None
    epochs: Annotated[int | None, typer.Option(help="Passes over all data.")] = None
    lr: Annotated[float | None, typer.Option("--lr", help="Highest learning rate.")] = None
    warmup: Annotated[float | None, typer.Option(help="Share of the steps in which the learning rate rises.")] = None
    schedule: Annotated[
        str | None, typer.Option(help="Course of the learning rate afterwards: cosine, linear or constant.")
    ] = None
    weight_decay: Annotated[float | None, typer.Option(help="Weight decay of AdamW.")] = None
    batch_size: Annotated[int | None, typer.Option(help="Sequences in one forward pass.")] = None
    accumulation: Annotated[int | None, typer.Option(help="Forward passes a step.")] = None
    max_length: Annotated[int | None, typer.Option(help="Tokens of a block, and most tokens of an example.")] = None
    max_gradient_norm: Annotated[float | None, typer.Option(help="Norm to which longer gradients are scaled down.")] = (
        None
    )
    dtype: Annotated[str | None, typer.Option(help="Number format of the frozen weights: float32 or bfloat16.")] = None
    device: Annotated[str | None, typer.Option(help="Device: cpu, cuda, cuda:1 or mps.")] = None
    gradient_checkpointing: Annotated[
        bool, typer.Option("--gradient-checkpointing", help="Take less memory for more time.")
    ] = False
    patience: Annotated[int | None, typer.Option(help="Evaluations without gain after which the training ends.")] = None
    evaluations: Annotated[int | None, typer.Option(help="Evaluations an epoch.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Seed of first values, order, dropout and splits.")] = 0
    search: Annotated[bool, typer.Option("--search", help="Try a grid and keep the best, see --grid.")] = False
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING=VALUES",
            help="For --search, e.g. rank=8,32; repeat.  [default: rank=8,32 learning_rate=3e-4,1e-3]",
        ),
    ] = None
    replace: Annotated[bool, typer.Option("--replace", help="Remove another adapter of this name.")] = False

    def training(self) -> dict[str, Any]:
        """What the training takes.

        Raises:
            InputError: A part of the grid cannot be read.
        """
        from climassay.tuning import DEFAULT_GRID

        if self.grid and not self.search:
            raise InputError("A --grid is for a search: add --search.")
        settings = {name: getattr(self, name) for name in _SETTINGS}
        settings |= {
            "learning_rate": self.lr,
            "targets": tuple(self.target) if self.target else None,
            "gradient_checkpointing": self.gradient_checkpointing or None,
        }
        grid = dict(_axis(text) for text in self.grid) if self.grid else DEFAULT_GRID
        return {
            "model": self.model,
            "preset": self.preset,
            "settings": settings,
            "grid": grid if self.search else None,
            "device": self.device,
            "replace_other": self.replace,
        }


_AXES: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "rank": (int, "a whole number"),
    "alpha": (float, "a number"),
    "epochs": (int, "a whole number"),
    "learning_rate": (float, "a number"),
    "lr": (float, "a number"),
    "dropout": (float, "a number"),
    "weight_decay": (float, "a number"),
    "warmup": (float, "a number"),
    "schedule": (str, "a word"),
    "batch_size": (int, "a whole number"),
    "accumulation": (int, "a whole number"),
    "max_length": (int, "a whole number"),
}


def _axis(text: str) -> tuple[str, tuple[Any, ...]]:
    name, separator, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not separator or name not in _AXES:
        raise InputError(
            f"The grid {text!r} is not understood: write SETTING=VALUE,VALUE with one of {', '.join(_AXES)}."
        )
    read, wanted = _AXES[name]
    try:
        return "learning_rate" if name == "lr" else name, tuple(read(value.strip()) for value in values.split(","))
    except ValueError as error:
        raise InputError(f"The grid {text!r} has a value that is not {wanted}.") from error


@app.command()
@grouped
def pretrain(
    collection: Annotated[list[str], typer.Argument(help="Collections to read.")],
    validation: Annotated[list[str] | None, typer.Option(help="Collection to validate on; repeat.")] = None,
    validation_documents: Annotated[
        list[str] | None,
        typer.Option(help="Document of the collections, by id, title or file, to validate on; repeat."),
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="Collection of the books the benchmark's questions come from; repeat.")
    ] = None,
    questions: Annotated[
        list[str] | None,
        typer.Option(help="Question file, or 'primer': the documents it names are not read; repeat."),
    ] = None,
    validate_on: Annotated[
        Literal["held-out", "source"],
        typer.Option(help="Documents to validate on: held-out, or source as in the ClimaQA paper (a leakage)."),
    ] = "held-out",
    tuning: TuningOptions = TuningOptions(output=""),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continued pre-training: read the documents of collections that gave no questions."""
    from climassay import api

    training = tuning.training()
    with opened_session(workspace, as_json=as_json) as session:
        result = api.pretrain(
            tuning.output,
            collection,
            validation=validation or (),
            validation_documents=validation_documents or (),
            source=source or (),
            questions=questions or (),
            validate_on=validate_on,
            workspace=session,
            **training,
        )
    emit(result, as_json)


@app.command()
@grouped
def finetune(
    file: Annotated[str, typer.Argument(help="Questions of any kinds (see climassay evaluate), or 'primer'.")],
    validation: Annotated[str | None, typer.Option(help="Questions to validate on, or 'primer'.")] = None,
    validation_share: Annotated[
        float, typer.Option(help="Share of the questions to validate on, where no file is given.")
    ] = 0.1,
    limit: Annotated[int | None, typer.Option(min=2, help="Use only so many questions, drawn by seed.")] = None,
    with_context: Annotated[
        bool, typer.Option("--with-context", help="Put the text that a question comes from before it.")
    ] = False,
    prompts: PromptsOption = None,
    tuning: TuningOptions = TuningOptions(output=""),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tuning: learn the answers to questions, asked as the evaluation asks them."""
    from climassay import api
    from climassay.session import ModelOptions

    training = tuning.training()
    with opened_session(workspace, ModelOptions(prompts=prompts), as_json=as_json) as session:
        result = api.finetune(
            tuning.output,
            file,
            validation=validation,
            validation_share=validation_share,
            limit=limit,
            with_context=with_context,
            seed=tuning.seed,
            workspace=session,
            **training,
        )
    emit(result, as_json)


@app.command(name="list")
def list_all(workspace: WorkspaceOption = None, output: FilesOption = None, as_json: JsonOption = False) -> None:
    """List the adapters of the workspace."""
    from climassay.reporting import Table
    from climassay.reporting.results import Shown
    from climassay.tuning import list_adapters

    with opened_session(workspace, as_json=as_json) as session:
        adapters = list_adapters(session.workspace.adapters)
    rows = [
        (
            adapter.name,
            adapter.base,
            adapter.train.name,
            f"{adapter.train.size} {adapter.train.kind}",
            f"{adapter.before.loss:.4f}",
            f"{adapter.best.loss:.4f}",
            adapter.fingerprint[:12],
        )
        for adapter in adapters
    ]
    headings = ("name", "model", "trained on", "size", "loss before", "loss after", "fingerprint")
    table = Table.of("Adapters", headings, rows, left=3, note="Validation loss, nats a token.")
    none = () if adapters else ("There are no adapters yet: see climassay tune --help.",)
    emit(Shown([one.to_dict() for one in adapters], (table,) if rows else (), noted=none), as_json, output)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name of the adapter.")],
    workspace: WorkspaceOption = None,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where an adapter comes from and how its training went."""
    from climassay.api.tuning import checked_name
    from climassay.tuning import read_result

    with opened_session(workspace, as_json=as_json) as session:
        result = read_result(session.workspace.adapters / checked_name(name))
    if result is None:
        raise InputError(f"There is no finished adapter {name!r}: see climassay tune list.")
    emit(result, as_json, output)


@app.command()
def presets(output: FilesOption = None, as_json: JsonOption = False) -> None:
    """List the presets: the ClimaQA paper's settings, and those for the bundled model."""
    from climassay.reporting import Table
    from climassay.reporting.results import Shown
    from climassay.tuning import PRESETS

    rows = []
    for preset in PRESETS.values():
        config = preset.config
        numbers = (config.rank, config.alpha, config.epochs, config.learning_rate, config.max_length)
        rows.append((preset.name, preset.model, *(f"{number:g}" for number in numbers), preset.source))
    headings = ("preset", "model", "rank", "alpha", "epochs", "learning rate", "max length", "source")
    emit(Shown(list(PRESETS.values()), (Table.of("Presets", headings, rows, left=2),)), as_json, output)
