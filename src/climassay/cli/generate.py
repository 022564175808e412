"""``climassay generate``: questions by a recipe, screened and published; ``climassay annotate``: experts' labels."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from climassay.api import annotation, validation
from climassay.api import generation as api
from climassay.cli.main import WholeHelpGroup
from climassay.cli.options import (
    HTML_REPORT,
    CommandGroup,
    LayersOption,
    LoadingOptions,
    PromptedOptions,
    PromptOptions,
    RayOptions,
    RequestOptions,
    ResultOptions,
    WorkspaceOptions,
    given,
    with_flags,
)
from climassay.generation.annotation.labels import AnnotationSettings

if TYPE_CHECKING:
    from climassay.generation.dataset_results import ScreenedDrafts

app = CommandGroup(no_args_is_help=True)
validate = CommandGroup(
    no_args_is_help=True, help="Train and use models that learn from experts which questions are valid."
)


app.add_typer(validate, name="validate", cls=WholeHelpGroup)

app.add_init("recipe.toml", "a recipe", "generation.recipe", "generate run")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The recipe, see climassay generate init.")],
    dry_run: Annotated[bool, Option("--dry-run", help="Only say what it would take; no model is asked.")] = False,
    requests: RequestOptions = RequestOptions(),
    where: RayOptions = RayOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Generate the questions of a recipe, unattended. Run it again to continue, or to generate more."""
    from climassay.generation.recipe import load_recipe

    recipe = load_recipe(file)
    with to.session(requests, where=where) as session:
        if dry_run:
            to.emit(api.estimate_generation(recipe, workspace=session))
        else:
            to.emit(api.generate(recipe.name, recipe=recipe, workspace=session), session=session)


def _write_drafts(found: "ScreenedDrafts", file: Path) -> None:
    from climassay.generation import write_drafts

    write_drafts(file, found.drafts)


app.add_verb(
    "screen",
    api.screen,
    reach=LoadingOptions,
    to=WorkspaceOptions,
    writes={"output": (Option("--output", "-o", help="Write the drafts with their marks."), _write_drafts)},
    drafts=Annotated[str, typer.Argument()],
    orders=Option("--permutations", min=1),
    min_agreement=Option("--min-agreement", min=0.01, max=1),
)
app.add_verb("checks", api.list_screening_checks)
app.add_verb("list", api.list_datasets)
app.add_verb("stats", api.dataset_statistics)
app.add_verb("export", api.export_dataset)
app.add_verb(
    "publish",
    api.publish,
    reach=PromptOptions,
    to=WorkspaceOptions,
    inspect=Option("--inspect"),
    lm_eval=Option("--lm-eval"),
    kinds=Annotated[list[str] | None, Option("--kind")],
    canary=Option("--canary/--no-canary"),
    examples=Option(min=0),
    force=Option("--replace"),
    push=Option(metavar="OWNER/NAME"),
)


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


validate.add_verb(
    "train",
    validation.train_validator,
    reach=PromptedOptions,
    writes=HTML_REPORT,
    method=Annotated[Literal["features", "probe", "adapter", "api"], Option()],
    layers=LayersOption,
    epochs=Option(min=1),
    replace_other=Option("--replace"),
)
validate.add_verb("evaluate", validation.evaluate_validator, reach=PromptedOptions)
validate.add_verb("apply", validation.apply_validator, reach=PromptedOptions)
validate.add_verb("show", validation.show_validator)
app.add_verb("mask", validation.apply_masker, reach=PromptedOptions)


annotate = CommandGroup(no_args_is_help=True)


@dataclass(frozen=True)
@with_flags(AnnotationSettings, defaults=False)
class QueueOptions:
    """How a dataset is annotated."""

    lease_minutes: Annotated[float | None, Option(help="Minutes for which an item is reserved for an annotator.")] = (
        None
    )


def _changes(queue: QueueOptions) -> dict[str, Any]:
    lease = None if queue.lease_minutes is None else 60 * queue.lease_minutes
    return {**given(queue, AnnotationSettings), "lease_seconds": lease}


annotate.add_verb("open", annotation.open_annotation, to=WorkspaceOptions, parse=_changes)
annotate.add_verb(
    "rubrics",
    annotation.collect_rubrics,
    to=WorkspaceOptions,
    questions=Annotated[str, Argument()],
    dataset=Option(),
    overlap=Option(min=1, max=20),
)
annotate.add_verb("status", annotation.annotation_status, annotator=Option())
annotate.add_verb("agreement", annotation.annotator_agreement, to=ResultOptions)
annotate.add_verb("export", annotation.export_labels, form=Option("--format"))
annotate.add_verb("import", annotation.import_labels, to=WorkspaceOptions, form=Option("--format"))
annotate.add_verb("retrain", annotation.retrain_validator, to=WorkspaceOptions)
