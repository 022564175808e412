"""``climassay generate``: questions from collections, by a recipe; screened, and published."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer
from typer import Option

from climassay.api import generation as api
from climassay.api import validation
from climassay.cli import CommandGroup, WholeHelpGroup
from climassay.cli.options import (
    FOLDS,
    OUTPUT,
    SEED,
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
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.generation.dataset_results import ScreenedDrafts
    from climassay.reporting.results import Result

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
            found = estimate_run(api.with_limits(recipe, session), session.workspace, prompts=requests.prompts)
            emit(Shown(found, (estimate_table(found),)), to.as_json, to.output)
        else:
            to.emit(api.generate(recipe.name, recipe=recipe, workspace=session))


def _write_page(found: "Result", file: Path) -> None:
    found.save(file)


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


@app.command()
def publish(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A dataset of the workspace (climassay generate list), exported drafts (JSONL), a folder published "
            "before, questions in any known format (climassay, ClimaQA or Pira tables), or 'primer'."
        ),
    ],
    output: Annotated[Path, Option("--output", "-o", help="Folder to publish in.")],
    inspect: Annotated[bool, Option("--inspect", help="Write tasks for Inspect.")] = False,
    lm_eval: Annotated[bool, Option("--lm-eval", help="Write tasks for lm-evaluation-harness.")] = False,
    data_only: Annotated[bool, Option("--data-only", help="Write no tasks for other frameworks.")] = False,
    name: Annotated[
        str | None,
        Option(help="Name of the dataset; begins the names of its tasks. By default the file's name."),
    ] = None,
    kind: Annotated[
        list[str] | None, Option(help="Kind of question to publish, for example mcq; repeat. By default all.")
    ] = None,
    splits: Annotated[
        str, Option(help="Train, dev and test: shares, or numbers of questions with one -1 for the rest.")
    ] = "0.8,0.1,0.1",
    licence: Annotated[str | None, Option(help="Licence of the questions, as hubs spell it: cc-by-4.0.")] = None,
    canary: Annotated[bool, Option("--canary/--no-canary", help="Put a canary string into the files.")] = True,
    tasks_on: Annotated[
        Literal["all", "test"] | None,
        Option(help="Questions of the tasks; by default those of the test split for drafts, else all."),
    ] = None,
    examples: Annotated[int, Option(min=0, help="Worked examples in every prompt of the tasks.")] = 0,
    pool: Annotated[str, Option(help="Question file that examples are taken from, or 'primer'.")] = "primer",
    seed: Annotated[int, Option(help="Seed of the splits and of the choice of examples.")] = 0,
    prompts: PromptOptions = PromptOptions(),
    push: Annotated[str | None, Option(metavar="OWNER/NAME", help="Upload to the Hugging Face hub.")] = None,
    private: Annotated[bool, Option("--private", help="Make a new repository on the hub private.")] = False,
    force: Annotated[bool, Option("--force", help="Replace another dataset's files in the folder.")] = False,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Publish a dataset as a folder: tables, drafts, a data card, and tasks for other frameworks.

    The tables are written as Parquet and JSON Lines, in climassay's columns and in ClimaQA's, with train, dev and test
    splits that share no passage. Tasks are written for the frameworks named, for both where none is.
    """
    from climassay.api.generation import publish
    from climassay.questions import KINDS

    unknown = next((one for one in kind or () if one not in KINDS), None)
    if unknown is not None:
        raise InputError(f"There is no kind {unknown!r} of questions: there are {', '.join(KINDS)}.")
    if data_only and (inspect or lm_eval):
        raise InputError(
            "--data-only leaves out the tasks that --inspect and --lm-eval ask for: give one or the other."
        )
    either = not (inspect or lm_eval or data_only)
    with to.session(prompts) as session:
        found = publish(
            dataset,
            output,
            inspect=None if either else inspect,
            lm_eval=None if either else lm_eval,
            name=name,
            kinds=tuple(kind) if kind else KINDS,
            splits=splits,
            licence=licence,
            canary=canary,
            tasks_on=tasks_on,
            examples=examples,
            pool=pool,
            seed=seed,
            push=push,
            private=private,
            force=force,
            workspace=session,
        )
    to.emit(found)


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


add_verb(
    validate,
    "train",
    validation.train_validator,
    reach=PromptedOptions,
    writes={"html": (Option(help="Write figures and tables as a self-contained HTML report."), _write_page)},
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
