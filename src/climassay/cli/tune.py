"""``climassay tune``: train adapters, list them, show how they came about."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from climassay.api import tuning as api
from climassay.cli import CommandGroup, given, with_flags
from climassay.cli.options import PromptOptions, WorkspaceOptions, add_verb
from climassay.errors import InputError
from climassay.tuning.config import TuningConfig

app = CommandGroup(no_args_is_help=True)


@dataclass(frozen=True)
@with_flags(TuningConfig, defaults=False)
class TuningOptions:
    """Which model is trained, how, and under which name the adapter is kept."""

    output: Annotated[str, typer.Option("--output", "-o", help="Name of the adapter in the workspace.")]
    model: Annotated[str, typer.Option("--model", "-m", help="local:smollm2 or local:FOLDER_OR_HUB_ID.")] = (
        "local:smollm2"
    )
    preset: Annotated[
        str | None, typer.Option(help="Preset, see climassay tune presets.  [default: the one made for model and task]")
    ] = None
    device: Annotated[str | None, typer.Option(help="Device: cpu, cuda, cuda:1 or mps.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Seed of initial values, order, dropout and splits.")] = 0
    search: Annotated[bool, typer.Option("--search", help="Try a grid of settings and keep the best; see --grid.")] = (
        False
    )
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING=VALUES",
            help="Values to search, e.g. rank=8,32; repeat.  [default: rank=8,32 learning_rate=3e-4,1e-3]",
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
        settings = given(self, TuningConfig)
        if "targets" in settings:
            settings["targets"] = tuple(settings["targets"])
        grid = dict(_axis(text) for text in self.grid) if self.grid else DEFAULT_GRID
        return {
            "model": self.model,
            "preset": self.preset,
            "settings": settings | {"seed": self.seed},
            "grid": grid if self.search else None,
            "device": self.device,
            "replace_other": self.replace,
        }


_AXES = ("rank", "alpha", "epochs", "learning_rate", "lr", "dropout", "weight_decay", "warmup", "schedule",
         "batch_size", "accumulation", "max_length")  # fmt: skip
"""Settings whose values can be searched."""
_WORDS: Mapping[type, str] = {int: "a whole number", float: "a number", str: "a word"}


def _axis(text: str) -> tuple[str, tuple[Any, ...]]:
    name, separator, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not separator or name not in _AXES:
        raise InputError(
            f"The grid {text!r} is not understood: write SETTING=VALUE,VALUE with one of {', '.join(_AXES)}."
        )
    setting = "learning_rate" if name == "lr" else name
    kind = type(getattr(TuningConfig(), setting))
    try:
        return setting, tuple(kind(value.strip()) for value in values.split(","))
    except ValueError as error:
        raise InputError(f"The grid {text!r} has a value that is not {_WORDS[kind]}.") from error


@app.command()
def pretrain(
    collection: Annotated[list[str], typer.Argument(help="Collections to train on.")],
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
        typer.Option(help="Question file, or 'primer': the documents it names are not trained on; repeat."),
    ] = None,
    validate_on: Annotated[
        Literal["held-out", "source"],
        typer.Option(help="Documents to validate on: held-out, or source as in the ClimaQA paper (a leakage)."),
    ] = "held-out",
    tuning: TuningOptions = TuningOptions(output=""),
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Continued pre-training on documents of collections that no question comes from."""
    training = tuning.training()
    with to.session() as session:
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
    to.emit(result)


@app.command()
def finetune(
    file: Annotated[str, typer.Argument(help="Questions of any kind (see climassay evaluate), or 'primer'.")],
    validation: Annotated[str | None, typer.Option(help="Questions to validate on, or 'primer'.")] = None,
    validation_share: Annotated[
        float, typer.Option(help="Share of the questions to validate on, if no file is given.")
    ] = 0.1,
    limit: Annotated[int | None, typer.Option(min=2, help="Number of questions to use, drawn at random.")] = None,
    with_context: Annotated[
        bool, typer.Option("--with-context", help="Put the source passage before each question.")
    ] = False,
    prompts: PromptOptions = PromptOptions(),
    tuning: TuningOptions = TuningOptions(output=""),
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Fine-tune on questions and their answers, asked as the evaluation asks them."""
    training = tuning.training()
    with to.session(prompts) as session:
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
    to.emit(result)


add_verb(app, "list", api.adapters)
add_verb(app, "show", api.adapter)
add_verb(app, "presets", api.presets)
