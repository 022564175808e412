"""``climassay generate``: questions from collections, by a recipe; screened, and published."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from climassay.cli import generate_learned
from climassay.cli.model_options import LoadingOptions, PromptOptions, RayOptions, RequestOptions
from climassay.cli.option_groups import CommandGroup, WholeHelpGroup
from climassay.cli.output import FilesOption, JsonOption, ResultOptions, WorkspaceOptions, add_init, done, emit
from climassay.errors import InputError

app = CommandGroup(no_args_is_help=True)
app.add_typer(generate_learned.validate, name="validate", cls=WholeHelpGroup)
app.add_typer(generate_learned.mask, name="mask")

DatasetArgument = Annotated[str, typer.Argument(help="Name of the dataset, see climassay generate list.")]


add_init(app, "recipe.toml", "a recipe", "generation.recipe", "generate run")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The recipe, see climassay generate init.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "--estimate", help="Say what it would take, and ask no model.")
    ] = False,
    requests: RequestOptions = RequestOptions(),
    where: RayOptions = RayOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Make the questions of a recipe, unattended. Run it again to go on where it was interrupted, or to make more."""
    from climassay.api.generation import generate, with_limits
    from climassay.generation.build_pipeline import estimate_run, estimate_table
    from climassay.generation.recipe import load_recipe
    from climassay.reporting.results import Shown

    recipe = load_recipe(file)
    with to.session(requests, where=where) as session:
        if dry_run:
            found = estimate_run(with_limits(recipe, session), session.workspace, prompts=requests.prompts)
            emit(Shown(found, (estimate_table(found),)), to.as_json, to.output)
        else:
            to.emit(generate(recipe.name, recipe=recipe, workspace=session))


@app.command()
def screen(
    file: Annotated[str, typer.Argument(help="Drafts (climassay generate), a question file with passages, or primer.")],
    without: Annotated[
        list[str] | None, typer.Option("--without", help="Leave out a check by its name; repeat. See generate checks.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Make this check and no other; repeat.")] = None,
    language: Annotated[
        str, typer.Option(help="Language in which the questions are to be: en, de, fr, es, pt, it or nl.")
    ] = "en",
    encoder: Annotated[
        str | None, typer.Option(help="Encoder for the check “off topic”, for example local:minilm.")
    ] = None,
    entailment: Annotated[
        str | None,
        typer.Option(
            help="Scorer for the check “not entailed”: bundled, prompted:MODEL, supports:MODEL, nli:MODEL, FILE."
        ),
    ] = None,
    consistency: Annotated[
        str | None,
        typer.Option(help="Model that answers the questions again with their passages (small ones: multiple choice)."),
    ] = None,
    orders: Annotated[int, typer.Option(min=1, help="Option orders a question, for --consistency.")] = 4,
    needed: Annotated[
        float, typer.Option(min=0.01, max=1, help="Least share of orders answered as marked, for --consistency.")
    ] = 1.0,
    loading: LoadingOptions = LoadingOptions(),
    seed: Annotated[int, typer.Option(min=0, help="Seed of option orders beyond the rotations.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the drafts with their marks.")] = None,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Mark faulty questions by named checks, and show what each check stopped; nothing is removed."""
    from climassay.api.generation import screen
    from climassay.cli.output import stderr_console
    from climassay.generation import write_drafts

    with to.session(loading) as session:
        found = screen(
            file,
            without=without or (),
            only=only or (),
            language=language,
            encoder=encoder,
            entailment=entailment,
            consistency=consistency,
            orders=orders,
            needed=needed,
            seed=seed,
            workspace=session,
        )
    if output is not None:
        write_drafts(output, found.drafts)
    to.emit(found)
    if output is not None and not to.as_json:
        stderr_console().print(f"Marked drafts written to {output}.", highlight=False)


@app.command()
def checks(output: FilesOption = None, as_json: JsonOption = False) -> None:
    """List the checks of the screening: name, kinds of questions, and what is faulty."""
    from climassay.api import generation

    emit(generation.checks(), as_json, output)


@app.command()
def stats(dataset: DatasetArgument, to: ResultOptions = ResultOptions()) -> None:
    """Show yield, reasons for rejection, and how the questions spread over sources and levels."""
    from climassay.generation import DatasetStore
    from climassay.generation.dataset_results import Dataset

    with to.session() as session:
        to.emit(Dataset.of(DatasetStore(session.records), dataset))


@app.command(name="list")
def list_datasets(to: ResultOptions = ResultOptions()) -> None:
    """List the datasets of the workspace."""
    from climassay.api import generation

    with to.session() as session:
        to.emit(generation.datasets(workspace=session))


@app.command()
def export(
    dataset: DatasetArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON Lines, one draft per line.")],
    accepted: Annotated[bool, typer.Option("--accepted", help="Leave out what was rejected or failed.")] = False,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Write the drafts of a dataset to a file, with everything that was decided about them."""
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
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to publish in.")],
    inspect: Annotated[bool, typer.Option("--inspect", help="Write tasks for Inspect.")] = False,
    lm_eval: Annotated[bool, typer.Option("--lm-eval", help="Write tasks for lm-evaluation-harness.")] = False,
    data_only: Annotated[bool, typer.Option("--data-only", help="Write no tasks for other frameworks.")] = False,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the dataset; begins the names of its tasks. By default the file's name."),
    ] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Publish this kind only, for example mcq; repeat.")] = None,
    splits: Annotated[
        str, typer.Option(help="Train, dev and test: shares, or numbers of questions with one -1 for the rest.")
    ] = "0.8,0.1,0.1",
    licence: Annotated[str | None, typer.Option(help="Licence of the questions, as hubs spell it: cc-by-4.0.")] = None,
    canary: Annotated[bool, typer.Option("--canary/--no-canary", help="Carry a canary in the files.")] = True,
    tasks_on: Annotated[
        Literal["all", "test"] | None,
        typer.Option(help="Questions of the tasks; by default those of the test split for drafts, else all."),
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Worked examples in every prompt of the tasks.")] = 0,
    pool: Annotated[str, typer.Option(help="Question file of the examples, or 'primer'.")] = "primer",
    seed: Annotated[int, typer.Option(help="Seed of the splits and of the draw of examples.")] = 0,
    prompts: PromptOptions = PromptOptions(),
    push: Annotated[str | None, typer.Option(metavar="OWNER/NAME", help="Upload to the Hugging Face hub.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository of the hub private.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what another dataset left in the folder.")] = False,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Publish a dataset as a folder: tables, drafts, data card, and tasks for other frameworks.

    The tables are written as Parquet and JSON Lines, in climassay's columns and in ClimaQA's, with train, dev and test
    splits that share no passage. Tasks are written for the frameworks named, for both where none is.
    """
    from climassay.api.publishing import publish
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
