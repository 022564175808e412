"""``climassay generate``: questions by a recipe, screened and published; ``climassay annotate``: experts' labels."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer
from typer import Argument, Option

from climassay.api import annotation, validation
from climassay.api import generation as api
from climassay.cli.main import WholeHelpGroup
from climassay.cli.options import (
    FOLDS,
    OUTPUT,
    SEED,
    CommandGroup,
    LayersOption,
    LoadingOptions,
    PromptedOptions,
    PromptOptions,
    RayOptions,
    ReachOptions,
    RequestOptions,
    ResultOptions,
    WorkspaceOptions,
    add_init,
    add_verb,
    done,
    emit,
    given,
    with_flags,
    write_page,
)
from climassay.generation.annotation.labels import AnnotationSettings

if TYPE_CHECKING:
    from climassay.generation.dataset_results import ScreenedDrafts

app = CommandGroup(no_args_is_help=True)
validate = CommandGroup(
    no_args_is_help=True, help="Train and use models that learn from experts which questions are valid."
)


class _MaskGroup(WholeHelpGroup):
    old_names: ClassVar = {"measure": "evaluate"}


mask = CommandGroup(cls=_MaskGroup, no_args_is_help=True, help="Choose the term that is masked in cloze statements.")
app.add_typer(validate, name="validate", cls=WholeHelpGroup)
app.add_typer(mask, name="mask")

DatasetArgument = Annotated[str, typer.Argument(help="Name of the dataset, see climassay generate list.")]


add_init(app, "recipe.toml", "a recipe", "generation.recipe", "generate run")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The recipe, see climassay generate init.")],
    dry_run: Annotated[
        bool, Option("--dry-run", "--estimate", help="Only say what it would take; no model is asked.")
    ] = False,
    requests: RequestOptions = RequestOptions(),
    where: RayOptions = RayOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Generate the questions of a recipe, unattended. Run it again to continue, or to generate more."""
    from climassay.generation.pipeline import estimate_run, estimate_table
    from climassay.generation.recipe import load_recipe
    from climassay.reporting.results import Shown

    recipe = load_recipe(file)
    with to.session(requests, where=where) as session:
        if dry_run:
            result = estimate_run(api.with_limits(recipe, session), session.workspace, prompts=requests.prompts)
            emit(Shown(result, (estimate_table(result),)), to.as_json, to.output)
        else:
            to.emit(api.generate(recipe.name, recipe=recipe, workspace=session))


def _write_drafts(found: "ScreenedDrafts", file: Path) -> None:
    from climassay.generation import write_drafts

    write_drafts(file, found.drafts)


add_verb(
    app,
    "screen",
    api.screen,
    reach=LoadingOptions,
    to=WorkspaceOptions,
    writes={"output": (Option("--output", "-o", help="Write the drafts with their marks."), _write_drafts)},
    drafts=Annotated[str, typer.Argument()],
    orders=Option(min=1),
    needed=Option(min=0.01, max=1),
    seed=Option(min=0),
)
add_verb(app, "checks", api.checks)
add_verb(app, "list", api.datasets)


@app.command()
def stats(dataset: DatasetArgument, to: ResultOptions = ResultOptions()) -> None:
    """Show yield, reasons for rejection, and the spread of questions over sources and levels."""
    from climassay.generation import DatasetStore
    from climassay.generation.dataset_results import Dataset

    with to.session() as session:
        to.emit(Dataset.of(DatasetStore(session.records), dataset))


@app.command()
def export(
    dataset: DatasetArgument,
    output: Annotated[Path, Option("--output", "-o", help="JSON Lines, one draft per line.")],
    accepted: Annotated[bool, Option("--accepted", help="Leave out what was rejected or failed.")] = False,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Write the drafts of a dataset to a file, with all decisions about them."""
    from climassay.generation import DatasetStore, write_drafts
    from climassay.reporting import counted

    with to.session() as session:
        kept = [draft for draft in DatasetStore(session.records).drafts(dataset) if draft.usable or not accepted]
    write_drafts(output, kept)
    done({"file": output, "drafts": len(kept)}, f"Wrote {counted(len(kept), 'draft')} to {output}", as_json=to.as_json)


add_verb(
    app,
    "publish",
    api.publish,
    reach=PromptOptions,
    to=WorkspaceOptions,
    output=Option("--output", "-o"),
    inspect=Option("--inspect"),
    lm_eval=Option("--lm-eval"),
    kinds=Annotated[list[str] | None, Option("--kind")],
    canary=Option("--canary/--no-canary"),
    examples=Option(min=0),
    push=Option(metavar="OWNER/NAME"),
)


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


add_verb(
    validate,
    "train",
    validation.train_validator,
    reach=PromptedOptions,
    writes={"html": (Option(help="Write figures and tables as a self-contained HTML report."), write_page)},
    output=Option("--output", "-o"),
    method=Annotated[Literal["features", "probe", "adapter", "api"], Option()],
    model=Option("--model", "-m"),
    layers=LayersOption,
    epochs=Option(min=1),
    folds=FOLDS,
    replace_other=Option("--replace"),
    seed=SEED,
)
add_verb(validate, "evaluate", validation.evaluate_validator, reach=PromptedOptions, seed=SEED)
add_verb(validate, "apply", validation.apply_validator, reach=PromptedOptions, output=Option("--output", "-o"))
add_verb(
    validate,
    "simulate",
    validation.simulate_labelling,
    reach=PromptedOptions,
    strategies=Annotated[str | None, Option(callback=_listed)],
    splits=Option(min=2),
    start=Option(min=2),
    batch=Option(min=1),
    seed=SEED,
)
add_verb(validate, "show", validation.describe_validator)
add_verb(mask, "train", validation.train_masker, output=OUTPUT, vectors=Option("--vectors/--no-vectors"))
add_verb(
    mask,
    "evaluate",
    validation.evaluate_maskers,
    reach=ReachOptions,
    maskers=Annotated[str, typer.Argument(callback=_listed)],
    model=Option("--model", "-m"),
)
add_verb(
    mask,
    "apply",
    validation.apply_masker,
    reach=PromptedOptions,
    output=Option("--output", "-o"),
    model=Option("--model", "-m"),
)


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


add_verb(annotate, "open", annotation.open_dataset, to=WorkspaceOptions, parse=_changes)
add_verb(
    annotate,
    "rubrics",
    annotation.collect_rubrics,
    to=WorkspaceOptions,
    questions=Annotated[str, Argument()],
    dataset=Option(),
    overlap=Option(min=1, max=20),
)
add_verb(annotate, "status", annotation.annotation_status, annotator=Option())
add_verb(annotate, "agreement", annotation.annotator_agreement, to=ResultOptions)
add_verb(annotate, "export", annotation.export_labels, output=Option("--output", "-o"), form=Option("--format"))
add_verb(annotate, "import", annotation.import_labels, to=WorkspaceOptions, form=Option("--format"))
add_verb(
    annotate,
    "retrain",
    annotation.retrain_validator,
    to=WorkspaceOptions,
    model=Option("--model", "-m"),
    folds=Option(min=2),
    seed=Option(min=0),
)
