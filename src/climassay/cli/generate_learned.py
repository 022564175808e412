"""``climassay generate validate`` and ``climassay generate mask``: what learns from experts about questions."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from climassay.cli.learning_options import (
    EncoderOption,
    FoldsOption,
    HtmlOption,
    OutputOption,
    SeedOption,
    note,
    numbers,
)
from climassay.cli.model_options import PromptedOptions, ReachOptions
from climassay.cli.option_groups import CommandGroup
from climassay.cli.output import FilesOption, JsonOption, ResultOptions, WorkspaceOptions, emit
from climassay.errors import InputError

validate = CommandGroup(no_args_is_help=True, help="Models that learn from experts which questions are valid.")
mask = CommandGroup(no_args_is_help=True, help="Choose the term of cloze statements that is masked.")


class Method(StrEnum):
    """How a validator learns."""

    features = "features"
    probe = "probe"
    adapter = "adapter"
    api = "api"


LabelsArgument = Annotated[
    Path,
    typer.Argument(help="Drafts with expert decisions, a question table with Validation or valid, or pira_qa.csv."),
]
ValidatorArgument = Annotated[
    str, typer.Argument(help="prompted:MODEL, adapter:FOLDER, api:STATE.json, a trained file, or mcq=...,freeform=...")
]
FieldOption = Annotated[
    str | None, typer.Option(help="The science, as prompts of models name it; by default climate science.")
]


@validate.command()
def train(
    labels: LabelsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="File (features, probe, api) or folder (adapter).")],
    method: Annotated[Method, typer.Option(help="Kind of validator, by what learns.")] = Method.features,
    model: Annotated[
        str, typer.Option("--model", "-m", help="Local model of probe and adapter, or the server's model of api.")
    ] = "local:smollm2",
    precision: Annotated[
        float | None, typer.Option(help="Wanted share of valid questions among those kept, for example 0.95.")
    ] = None,
    encoder: EncoderOption = "local:minilm",
    layer: Annotated[str | None, typer.Option(help="Layers of the probe, side by side as 16,-1.")] = None,
    preset: Annotated[str, typer.Option(help="Tuning preset of the adapter.")] = "smollm2-cpu-finetune",
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of adapter and api (paper: 3).")] = None,
    hold_out: Annotated[float, typer.Option(help="Share of the labels that adapter and api are measured on.")] = 0.25,
    folds: FoldsOption = 5,
    replace: Annotated[bool, typer.Option("--replace", help="Replace another training's adapter.")] = False,
    reach: PromptedOptions = PromptedOptions(),
    field: FieldOption = None,
    html: HtmlOption = None,
    seed: SeedOption = 0,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Train a validator on experts' labels, with its figures on passages that it was not trained on."""
    from climassay.api.validation import train_validator

    with to.session(reach) as session:
        trained = train_validator(
            labels,
            output,
            method=method.value,
            model=model,
            precision=precision,
            encoder=encoder,
            layers=numbers(layer, "--layer") if layer else (),
            preset=preset,
            epochs=epochs,
            hold_out=hold_out,
            folds=folds,
            replace_other=replace,
            field=field,
            seed=seed,
            workspace=session,
        )
    emit(trained, to.as_json, html)


@validate.command()
def evaluate(
    validator: ValidatorArgument,
    labels: LabelsArgument,
    reach: PromptedOptions = PromptedOptions(),
    field: FieldOption = None,
    seed: SeedOption = 0,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Measure a validator on labelled questions, without those that it was trained on."""
    from climassay.api.validation import evaluate_validator

    with to.session(reach) as session:
        to.emit(evaluate_validator(validator, labels, field=field, seed=seed, workspace=session))


@validate.command()
def apply(
    validator: ValidatorArgument,
    drafts: Annotated[Path, typer.Argument(help="Drafts of climassay (JSON Lines).")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the drafts with the decisions.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Least P(valid) that is kept; by default the validator's own, else 0.5.")
    ] = None,
    reach: PromptedOptions = PromptedOptions(),
    field: FieldOption = None,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Decide on drafts; those that were rejected before stay as they are."""
    from climassay.api.validation import apply_validator

    with to.session(reach) as session:
        decided = apply_validator(validator, drafts, output, threshold=threshold, field=field, workspace=session)
    to.emit(decided)


@validate.command()
def simulate(
    labels: LabelsArgument,
    strategies: Annotated[
        str, typer.Option(help="Strategies to compare, between commas: random,paper,margin,diverse.")
    ] = "random,paper,margin,diverse",
    splits: Annotated[int, typer.Option(min=2, help="Random splits into training and test passages.")] = 100,
    start: Annotated[int, typer.Option(min=2, help="Labels before the first choice.")] = 20,
    batch: Annotated[int, typer.Option(min=1, help="Labels a round.")] = 10,
    test_share: Annotated[float, typer.Option(help="Share of the questions that is measured on.")] = 0.25,
    zero_shot: Annotated[
        str | None, typer.Option(help="Model whose untrained verdicts are shown beside, for example local:smollm2.")
    ] = None,
    encoder: EncoderOption = "local:minilm",
    store: Annotated[
        Path | None, typer.Option(help="Keep finished splits here, so that the same command goes on.")
    ] = None,
    reach: PromptedOptions = PromptedOptions(),
    field: FieldOption = None,
    seed: SeedOption = 0,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Play active learning through on labels that are known: precision over label count, strategy by strategy."""
    from climassay.api.validation import simulate_labelling

    with to.session(reach) as session:
        played = simulate_labelling(
            labels,
            strategies=[name.strip() for name in strategies.split(",")],
            splits=splits,
            start=start,
            batch=batch,
            test_share=test_share,
            zero_shot=zero_shot,
            encoder=encoder,
            store=store,
            field=field,
            seed=seed,
            workspace=session,
        )
    to.emit(played)


@validate.command()
def show(
    validator: Annotated[Path, typer.Argument(help="A trained validator: its file, adapter folder or state file.")],
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a trained validator is: its data, figures and threshold; nothing is loaded but its description."""
    from climassay.api.validation import describe_validator

    emit(describe_validator(validator), as_json, output)


_LABELS = typer.Argument(help="Drafts whose terms experts chose, or cloze questions in any known format, or 'primer'.")
MaskerArgument = Annotated[str, typer.Argument(help="statistics, prompted:MODEL or a trained masker's file.")]
GlossaryOption = Annotated[Path | None, typer.Option(help="Terms of the field, one a line; preferred.")]
AskedModelOption = Annotated[
    str | None, typer.Option("--model", "-m", help="local:NAME or openai:NAME, asked by the masker 'prompted'.")
]


@mask.command("train")
def train_mask(
    labels: Annotated[list[str], _LABELS],
    output: OutputOption,
    glossary: GlossaryOption = None,
    vectors: Annotated[bool, typer.Option(help="Read what the bundled encoder sees of a word.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Learn from the terms that people masked; every statement is left out once to tell how well it works."""
    from climassay.api.validation import train_masker

    emit(train_masker(labels, output, glossary=glossary, vectors=vectors), as_json)


@mask.command("measure", hidden=True, help="Earlier form of evaluate: LABELS... --masker MASKER.")
@mask.command("evaluate")
def evaluate_mask(
    context: typer.Context,
    maskers: Annotated[
        str,
        typer.Argument(
            help="Between commas: statistics, prompted:MODEL, a trained masker's file, or 'trained': one fitted on all "
            "other statements.",
        ),
    ],
    labels: Annotated[list[str] | None, _LABELS] = None,
    earlier: Annotated[list[str] | None, typer.Option("--masker", hidden=True)] = None,
    model: AskedModelOption = None,
    reach: ReachOptions = ReachOptions(),
    glossary: GlossaryOption = None,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Measure how often maskers choose the term that people masked, beside chance and the longest word."""
    from climassay.api.validation import LEFT_OUT, evaluate_maskers

    labels = labels or []
    if context.info_name == "measure":
        labels = [maskers, *labels]
        maskers = ",".join(earlier or ["statistics", *(["prompted"] if model else []), LEFT_OUT])
        note(f"Now: climassay generate mask evaluate {maskers} {' '.join(labels)}")
    if not labels:
        raise InputError("Name the labels to measure on behind the maskers, for example primer.")
    with to.session(reach) as session:
        found = evaluate_maskers(maskers.split(","), labels, model=model, glossary=glossary, workspace=session)
    to.emit(found)


@mask.command("apply")
def apply_mask(
    masker: MaskerArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="File of the drafts with their terms.")],
    drafts: Annotated[Path | None, typer.Argument(help="Drafts (JSONL).")] = None,
    earlier: Annotated[str, typer.Option("--masker", hidden=True)] = "statistics",
    model: AskedModelOption = None,
    reach: PromptedOptions = PromptedOptions(),
    glossary: GlossaryOption = None,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Choose the term of every accepted cloze statement that has none."""
    from climassay.api.validation import apply_masker

    if drafts is None:
        drafts, masker = Path(masker), earlier
        note(f"Now: climassay generate mask apply {masker} {drafts} -o {output}")
    with to.session(reach) as session:
        found = apply_masker(masker, drafts, output, model=model, glossary=glossary, workspace=session)
    to.emit(found)
