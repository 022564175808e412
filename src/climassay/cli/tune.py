"""``climassay tune``: train adapters, list them, show how they came about."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.model_options import PromptsOption
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, WorkspaceOption, print_json, progress_bar, stderr_console, stdout_console
from climassay.cli.tune_data import finetuning_data, pretraining_data
from climassay.cli.tune_options import TuningOptions, checked_name
from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.tuning import TuningConfig, TuningData, TuningResult
    from climassay.tuning.config import Task
    from climassay.workspace import Workspace

app = typer.Typer(no_args_is_help=True, help="Train local models on documents or on questions (LoRA).")


class ValidateChoice(StrEnum):
    """What a continued pre-training is validated on."""

    held_out = "held-out"
    source = "source"


@app.callback()
def group() -> None:
    """Train local models on documents or on questions (LoRA)."""


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
        ValidateChoice, typer.Option(help="held-out, or source as in the ClimaQA paper (a leakage).")
    ] = ValidateChoice.held_out,
    tuning: TuningOptions = TuningOptions(output=""),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continued pre-training: read the documents of collections that gave no questions."""
    from climassay.workspace import Workspace

    place = Workspace.open(workspace)
    data = pretraining_data(
        place,
        collection,
        validation=validation or [],
        validation_documents=validation_documents or [],
        source=source or [],
        questions=questions or [],
        validate_on=validate_on.value,
    )
    _train(place, tuning, "pretrain", data.train, data.validation, data.warnings, as_json)


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
    from climassay.workspace import Workspace

    place = Workspace.open(workspace)
    learned, held_out = finetuning_data(
        file,
        validation=validation,
        validation_share=validation_share,
        limit=limit,
        contexts=with_context,
        prompts=prompts,
        seed=tuning.seed,
    )
    _train(place, tuning, "finetune", learned, held_out, (), as_json)


@app.command(name="list")
def list_all(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the adapters of the workspace."""
    from climassay.reporting import Table, as_rich
    from climassay.tuning import list_adapters
    from climassay.workspace import Workspace

    adapters = list_adapters(Workspace.open(workspace).adapters)
    if as_json:
        print_json([_as_data(adapter) for adapter in adapters])
        return
    if not adapters:
        stderr_console().print("There are no adapters yet: see climassay tune --help.", highlight=False)
        return
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
    stdout_console().print(as_rich(Table.of("Adapters", headings, rows, left=3, note="Validation loss, nats a token.")))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Of the adapter.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where an adapter comes from and how its training went."""
    from climassay.tuning import read_result
    from climassay.workspace import Workspace

    result = read_result(Workspace.open(workspace).adapters / checked_name(name))
    if result is None:
        raise InputError(f"There is no finished adapter {name!r}: see climassay tune list.")
    if as_json:
        print_json(_as_data(result))
        return
    _show(result)


@app.command()
def presets(as_json: JsonOption = False) -> None:
    """List the presets: the ClimaQA paper's settings, and those for the bundled model."""
    from climassay.reporting import Table, as_rich
    from climassay.tuning import PRESETS

    if as_json:
        print_json(list(PRESETS.values()))
        return
    rows = []
    for preset in PRESETS.values():
        config = preset.config
        numbers = (config.rank, config.alpha, config.epochs, config.learning_rate, config.max_length)
        rows.append((preset.name, preset.model, *(f"{number:g}" for number in numbers), preset.source))
    headings = ("preset", "model", "rank", "alpha", "epochs", "learning rate", "max length", "source")
    stdout_console().print(as_rich(Table.of("Presets", headings, rows, left=2)))


def _train(
    place: "Workspace",
    options: TuningOptions,
    task: "Task",
    learned: "TuningData",
    held_out: "TuningData",
    warnings: "Sequence[str]",
    as_json: bool,
) -> None:
    """Train or search, with progress; then say how it went."""
    from climassay.tuning import SearchProgress, TuningBase, TuningProgress, search, train

    config, preset = options.settings(task)
    grid, folder = options.searched(), options.folder(place.adapters)
    for warning in warnings:
        stderr_console().print(f"Warning: {warning}", style="yellow", highlight=False)
    base = TuningBase(options.model, device=options.device, dtype=config.dtype)
    with progress_bar(as_json) as progress:
        bar = progress.add_task(f"Loading {options.model}", total=None)
        heading = "Training"

        def trial(state: SearchProgress) -> None:
            nonlocal heading
            heading = f"Trial {state.trial} of {state.trials}"
            progress.update(bar, description=heading, completed=0, total=None)

        def step(state: TuningProgress) -> None:
            loss = "" if state.loss is None else f", loss {state.loss:.3f}"
            description = f"{heading}{loss}, validation {state.validation_loss:.3f}"
            progress.update(bar, description=description, completed=state.step, total=state.steps)

        shared: dict[str, Any] = {
            "preset": preset.name if preset else None,
            "warnings": tuple(warnings),
            "replace_other": options.replace,
            "on_progress": step,
        }
        if grid is None:
            result = train(base, learned, held_out, config, folder, **shared)
        else:
            result = search(base, learned, held_out, config, folder, grid, on_trial=trial, **shared)
    if as_json:
        print_json(_as_data(result))
    else:
        _show(result, told=set(warnings))


def _as_data(result: "TuningResult") -> dict[str, Any]:
    from dataclasses import asdict

    data = {"name": result.name, "model": result.model, **asdict(result)}
    evaluations = [{**asdict(one), "perplexity": one.perplexity} for one in result.evaluations]
    return {**data, "evaluations": evaluations, "loss_before": result.before.loss, "loss": result.best.loss}


def _show(result: "TuningResult", told: "set[str] | None" = None) -> None:
    from climassay.reporting import Table, as_rich

    console, note = stdout_console(), stderr_console()
    rows = [
        (f"{one.step}", f"{one.loss:.4f}", f"{one.perplexity:.2f}", "kept" if one.step == result.best_step else "")
        for one in result.evaluations
    ]
    title = f"{result.name}: {result.base} on {result.train.size} {result.train.kind} of {result.train.name}"
    console.print(
        as_rich(
            Table.of(
                title,
                ("step", "validation loss", "perplexity", ""),
                rows,
                left=0,
                note=f"Nats a token of {result.validation.size} {result.validation.kind} "
                f"({result.validation.name}, {result.validation.learned} tokens).",
                strong=[place for place, one in enumerate(result.evaluations) if one.step == result.best_step],
            )
        )
    )
    if result.trials:
        console.print(as_rich(_trials(result)))
    console.print(f"Settings: {_settings(result.config)}.", highlight=False, soft_wrap=True)
    for warning in result.warnings:
        if warning not in (told or ()):
            note.print(f"Warning: {warning}", style="yellow", highlight=False)
    early = ", stopped early" if result.stopped_early else ""
    note.print(
        f"{len(result.losses)} of {result.steps} steps in {result.seconds:.0f} s{early}. Use it as\n{result.model}",
        highlight=False,
        soft_wrap=True,
    )


def _trials(result: "TuningResult") -> Any:
    from climassay.reporting import Table

    first = result.trials[0].config
    varied = [
        name
        for name in ("rank", "alpha", "epochs", "learning_rate", "dropout", "weight_decay", "warmup", "schedule")
        if any(getattr(trial.config, name) != getattr(first, name) for trial in result.trials)
    ]
    rows = [
        (
            *(f"{getattr(trial.config, name)}" for name in varied),
            "diverged" if trial.loss is None else f"{trial.loss:.4f}",
            f"{trial.step}",
        )
        for trial in result.trials
    ]
    headings = (*(name.replace("_", " ") for name in varied), "validation loss", "at step")
    return Table.of("Trials, best first", headings, rows, left=0, strong=[0])


def _settings(config: "TuningConfig") -> str:
    from dataclasses import asdict

    shown = {**asdict(config), "targets": "+".join(config.targets)}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items() if value is not None)
