"""``climassay generate``: questions by a recipe, screened and published; ``climassay annotate``: experts' labels."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter, convert

from climassay.api import annotation, validation
from climassay.api import generation as api
from climassay.cli.commands import HTML_REPORT_OPTION, add_command, add_init
from climassay.cli.options import (
    NON_NEGATIVE,
    POSITIVE,
    LayersOption,
    LoadingOptions,
    PromptedOptions,
    PromptOptions,
    RayOptions,
    RequestOptions,
    ResultOptions,
    WorkspaceOptions,
    bounded,
    given_values,
    options_for,
)
from climassay.generation.annotation.labels import AnnotationSettings

if TYPE_CHECKING:
    from climassay.generation.dataset_results import ScreenedDrafts

app = App(name="generate")
validate = App(name="validate", help="Train and use models that learn from experts which questions are valid.")
annotate = App(name="annotate")
app.command(validate)
add_init(app, "recipe.toml", "a recipe", "generation.recipe", "generate run")


@app.command
def run(
    file: Path,
    /,
    *,
    dry_run: bool = False,
    options: Annotated[RequestOptions, Parameter(name="*")] = RequestOptions(),
    ray: Annotated[RayOptions, Parameter(name="*")] = RayOptions(),
    common_options: Annotated[ResultOptions, Parameter(name="*")] = ResultOptions(),
) -> None:
    """Generate the questions of a recipe. Run it again to continue after an interruption, or to generate more.

    Args:
        file: Recipe file; climassay generate init writes one.
        dry_run: Only estimate the number of requests and their cost, without calling a model.
    """
    from climassay.generation.recipe import load_recipe

    recipe = load_recipe(file)
    with common_options.open_session(options, ray=ray) as session:
        if dry_run:
            common_options.print_result(api.estimate_generation(recipe, workspace=session))
        else:
            common_options.print_result(api.generate(recipe.name, recipe=recipe, workspace=session), session)


def _write_drafts(screening_result: "ScreenedDrafts", file: Path) -> None:
    from climassay.generation import write_drafts

    write_drafts(file, screening_result.drafts)


add_command(
    app,
    "screen",
    api.screen,
    model_options=LoadingOptions,
    common_options=WorkspaceOptions,
    writes={"output": (Parameter(alias="-o", help="Write the drafts with their marks."), _write_drafts)},
    drafts=Annotated[str, Parameter()],
)
add_command(app, "checks", api.list_screening_checks)
add_command(app, "list", api.list_datasets)
add_command(app, "stats", api.dataset_statistics)
add_command(app, "export", api.export_dataset)
add_command(
    app,
    "publish",
    api.publish,
    model_options=PromptOptions,
    common_options=WorkspaceOptions,
    output=Annotated[Path, Parameter(name=("--output", "-o"))],
    kinds=Annotated[list[str] | None, Parameter(name="--kind")],
    canary=Parameter(negative="--no-canary"),
    examples=NON_NEGATIVE,
    force=Parameter(name="--replace"),
)

add_command(
    validate,
    "train",
    validation.train_validator,
    model_options=PromptedOptions,
    writes=HTML_REPORT_OPTION,
    output=Annotated[Path, Parameter(name=("--output", "-o"))],
    method=Annotated[Literal["features", "probe", "adapter", "api"], Parameter()],
    layers=LayersOption,
    epochs=POSITIVE,
    replace_other=Parameter(name="--replace"),
)
add_command(validate, "evaluate", validation.evaluate_validator, model_options=PromptedOptions)
add_command(validate, "apply", validation.apply_validator, model_options=PromptedOptions)
add_command(validate, "show", validation.show_validator)
add_command(app, "mask", validation.apply_masker, model_options=PromptedOptions)


@dataclass(frozen=True)
@options_for(
    AnnotationSettings,
    "overlap",
    "order",
    "guideline",
    "seed",
    show_defaults=False,
    annotators=Parameter(name="--annotator", negative="--everybody"),
    hide_confidence=Parameter(negative="--show-confidence"),
    include_rejected=Parameter(negative="--usable-only"),
)
class QueueOptions:
    """Options for the queue of items that annotators label."""

    lease_minutes: Annotated[float | None, Parameter(converter=convert)] = None
    """Minutes for which an item is reserved for the annotator to whom it is shown."""

    def build(self) -> dict[str, Any]:
        """Return the settings that the user gave."""
        lease_seconds = None if self.lease_minutes is None else 60 * self.lease_minutes
        return {**given_values(self, AnnotationSettings), "lease_seconds": lease_seconds}


add_command(annotate, "open", annotation.open_annotation, common_options=WorkspaceOptions, changes=QueueOptions)
_ANNOTATOR_OPTION = Annotated[list[str], Parameter(name="--annotator")]
add_command(
    annotate,
    "questions",
    annotation.annotate_questions,
    common_options=WorkspaceOptions,
    questions=Annotated[str, Parameter()],
    dataset=Parameter(name="--dataset"),
    overlap=bounded(1, 20),
    annotators=_ANNOTATOR_OPTION,
)
add_command(
    annotate,
    "answers",
    annotation.annotate_answers,
    common_options=WorkspaceOptions,
    dataset=Parameter(name="--dataset"),
    overlap=bounded(1, 20),
    annotators=_ANNOTATOR_OPTION,
)
add_command(
    annotate,
    "rubrics",
    annotation.collect_rubrics,
    common_options=WorkspaceOptions,
    questions=Annotated[str, Parameter()],
    dataset=Parameter(name="--dataset"),
    overlap=bounded(1, 20),
)
_FORMAT_OPTION = Parameter(name="--format")
add_command(annotate, "status", annotation.annotation_status, annotator=Parameter(name="--annotator"))
add_command(annotate, "agreement", annotation.annotator_agreement)
add_command(annotate, "export", annotation.export_labels, form=_FORMAT_OPTION)
add_command(annotate, "import", annotation.import_labels, common_options=WorkspaceOptions, form=_FORMAT_OPTION)
add_command(annotate, "retrain", annotation.retrain_validator, common_options=WorkspaceOptions)
