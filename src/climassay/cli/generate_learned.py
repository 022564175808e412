"""``climassay generate validate`` and ``climassay generate mask``: what learns from experts about questions."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import typer

from climassay.api import validation as api
from climassay.cli.learning_options import (
    EncoderOption,
    FoldsOption,
    HtmlOption,
    LayersOption,
    OutputOption,
    SeedOption,
)
from climassay.cli.model_options import PromptedOptions, ReachOptions
from climassay.cli.option_groups import CommandGroup, WholeHelpGroup
from climassay.cli.output import FilesOption, JsonOption, ResultOptions, WorkspaceOptions
from climassay.cli.verbs import verb

validate = CommandGroup(no_args_is_help=True, help="Models that learn from experts which questions are valid.")


class _MaskGroup(WholeHelpGroup):
    old_names: ClassVar = {"measure": "evaluate"}


mask = CommandGroup(cls=_MaskGroup, no_args_is_help=True, help="Choose the term of cloze statements that is masked.")


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


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
@verb(api.train_validator)
def train(
    labels: LabelsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="File (features, probe, api) or folder (adapter).")],
    method: Annotated[
        Literal["features", "probe", "adapter", "api"], typer.Option(help="Kind of validator, by what learns.")
    ] = "features",
    model: Annotated[
        str, typer.Option("--model", "-m", help="Local model of probe and adapter, or the server's model of api.")
    ] = "local:smollm2",
    precision: Annotated[
        float | None, typer.Option(help="Wanted share of valid questions among those kept, for example 0.95.")
    ] = None,
    encoder: EncoderOption = "local:minilm",
    layers: LayersOption = None,
    preset: Annotated[str, typer.Option(help="Tuning preset of the adapter.")] = "smollm2-cpu-finetune",
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of adapter and api (paper: 3).")] = None,
    hold_out: Annotated[float, typer.Option(help="Share of the labels that adapter and api are measured on.")] = 0.25,
    folds: FoldsOption = 5,
    replace_other: Annotated[bool, typer.Option("--replace", help="Replace another training's adapter.")] = False,
    reach: PromptedOptions = PromptedOptions(),
    field: FieldOption = None,
    files: HtmlOption = None,
    seed: SeedOption = 0,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Train a validator on experts' labels, with its figures on passages that it was not trained on."""


@validate.command()
@verb(api.evaluate_validator)
def evaluate(
    validator: ValidatorArgument,
    labels: LabelsArgument,
    reach: PromptedOptions = PromptedOptions(),
    field: FieldOption = None,
    seed: SeedOption = 0,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Measure a validator on labelled questions, without those that it was trained on."""


@validate.command()
@verb(api.apply_validator)
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


@validate.command()
@verb(api.simulate_labelling)
def simulate(
    labels: LabelsArgument,
    strategies: Annotated[
        str,
        typer.Option(callback=_listed, help="Strategies to compare, between commas: random,paper,margin,diverse."),
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


@validate.command()
@verb(api.describe_validator)
def show(
    validator: Annotated[Path, typer.Argument(help="A trained validator: its file, adapter folder or state file.")],
    files: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a trained validator is: its data, figures and threshold; nothing is loaded but its description."""


_LABELS = typer.Argument(help="Drafts whose terms experts chose, or cloze questions in any known format, or 'primer'.")
MaskerArgument = Annotated[str, typer.Argument(help="statistics, prompted:MODEL or a trained masker's file.")]
GlossaryOption = Annotated[Path | None, typer.Option(help="Terms of the field, one a line; preferred.")]
AskedModelOption = Annotated[
    str | None, typer.Option("--model", "-m", help="local:NAME or openai:NAME, asked by the masker 'prompted'.")
]


@mask.command("train")
@verb(api.train_masker)
def train_mask(
    labels: Annotated[list[str], _LABELS],
    output: OutputOption,
    glossary: GlossaryOption = None,
    vectors: Annotated[bool, typer.Option(help="Read what the bundled encoder sees of a word.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Learn from the terms that people masked; every statement is left out once to tell how well it works."""


@mask.command("evaluate")
@verb(api.evaluate_maskers)
def evaluate_mask(
    maskers: Annotated[
        str,
        typer.Argument(
            callback=_listed,
            help="Between commas: statistics, prompted:MODEL, a trained masker's file, or 'trained': one fitted on all "
            "other statements.",
        ),
    ],
    labels: Annotated[list[str], _LABELS],
    model: AskedModelOption = None,
    reach: ReachOptions = ReachOptions(),
    glossary: GlossaryOption = None,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Measure how often maskers choose the term that people masked, beside chance and the longest word."""


@mask.command("apply")
@verb(api.apply_masker)
def apply_mask(
    masker: MaskerArgument,
    drafts: Annotated[Path, typer.Argument(help="Drafts (JSONL).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File of the drafts with their terms.")],
    model: AskedModelOption = None,
    reach: PromptedOptions = PromptedOptions(),
    glossary: GlossaryOption = None,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Choose the term of every accepted cloze statement that has none."""
