"""``climassay generate screen`` and ``climassay generate checks``."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.model_options import LoadingOptions
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, WorkspaceOption, print_json, progress_bar, stderr_console, stdout_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.generation import Draft
    from climassay.workspace import Workspace

FileArgument = Annotated[
    str, typer.Argument(help="Drafts (climassay generate), a question file with passages, or primer.", metavar="FILE")
]


@grouped
def screen(
    file: FileArgument,
    without: Annotated[
        list[str] | None, typer.Option("--without", help="Leave out a check by its name; repeat. See generate checks.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Make this check and no other; repeat.")] = None,
    language: Annotated[
        str, typer.Option(help="In which the questions are to be: en, de, fr, es, pt, it or nl.")
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
    seed: Annotated[int, typer.Option(min=0, help="Of option orders beyond the rotations.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the drafts with their marks.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mark faulty questions by named checks, and show what each check stopped; nothing is removed."""
    from climassay.generation.screening import check_counts, table
    from climassay.generation.screening import screen as screened
    from climassay.metrics import load_entailment
    from climassay.models.encoder import load_encoder
    from climassay.reporting import as_rich
    from climassay.workspace import Workspace

    drafts = _read(file)
    marked: Sequence[Draft] = screened(
        drafts,
        without=without or (),
        only=only or None,
        language=language,
        encoder=None if encoder is None else load_encoder(encoder),
        entailment=None
        if entailment is None
        else load_entailment(entailment, load=loading.loader(workspace, quiet=as_json)),
    )
    if consistency is not None:
        space = Workspace.open(workspace)
        marked = _consistent(marked, consistency, space, orders, needed, seed, loading, as_json)
    if output is not None:
        from climassay.generation import write_drafts

        write_drafts(output, marked)
    if as_json:
        written = [draft for draft in marked if draft.error is None]
        print_json(
            {
                "file": file,
                "drafts": len(marked),
                "failed": len(marked) - len(written),
                "stopped": sum(draft.rejection is not None for draft in written),
                "checks": check_counts(marked),
            }
        )
        return
    stdout_console().print(as_rich(table(marked)))
    if output is not None:
        stderr_console().print(f"Marked drafts written to {output}.", highlight=False)


def checks(as_json: JsonOption = False) -> None:
    """List the checks of the screening: name, kinds of questions, and what is faulty."""
    from climassay.generation.screening import CHECKS, MODEL_CHECKS
    from climassay.reporting import Table, as_rich

    listed = [{"name": one.name, "kinds": list(one.kinds), "words": one.words} for one in CHECKS]
    listed += [
        {"name": name, "kinds": ["mcq", "freeform", "cloze"], "words": words} for name, words in MODEL_CHECKS.items()
    ]
    if as_json:
        print_json(listed)
        return
    rows = [(str(one["name"]), ", ".join(one["kinds"]), str(one["words"])) for one in listed]
    stdout_console().print(as_rich(Table.of("Checks", ("check", "kinds", "what is faulty"), rows, left=3)))


def _read(file: str) -> "list[Draft]":
    """Drafts of a draft file, or of any question file.

    Raises:
        InputError: It is neither.
    """
    from climassay.cli.tune_data import question_set
    from climassay.generation import read_drafts
    from climassay.generation.screening import question_draft

    if file != "primer" and _holds_drafts(Path(file)):
        return list(read_drafts(Path(file)))
    found = question_set(file)
    for sentence in found.skipped:
        stderr_console().print(f"Left out: {sentence}", highlight=False)
    return [question_draft(question) for question in found.questions]


def _holds_drafts(path: Path) -> bool:
    """Whether the first line of a file is a draft rather than a question."""
    from climassay.given_files import parse_json, read_lines

    try:
        row = parse_json(next((line for line in read_lines(path) if line.strip()), "null"))
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and {"wording", "origin"} <= set(row)


def _consistent(
    drafts: "Sequence[Draft]",
    name: str,
    workspace: "Workspace",
    orders: int,
    needed: float,
    seed: int,
    loading: LoadingOptions,
    quiet: bool,
) -> "Sequence[Draft]":
    """The drafts with the decisions of the self-consistency; answers are kept in the records."""
    from climassay.evaluation import TaskPrompts
    from climassay.generation.screening import answer_check
    from climassay.records import RecordedModel, Records

    templates = TaskPrompts.load(loading.prompts)
    model = loading.load(name, workspace, quiet=quiet)
    config = {
        "model": model.name,
        "fingerprint": model.fingerprint,
        "orders": orders,
        "needed": needed,
        "prompts": {templates.mcq.name: {"sha256": templates.mcq.sha256, "origin": templates.mcq.origin}},
    }
    with ExitStack() as stack:
        stack.callback(model.close)
        store = stack.enter_context(Records(workspace.records_url))
        run = stack.enter_context(store.run(command="generate screen", config=config, seeds={"orders": seed}))
        bars = stack.enter_context(progress_bar(quiet))
        task = bars.add_task("Answering the questions", total=None)
        asked = answer_check(
            RecordedModel(model, store, run, use_cache=not loading.no_cache),
            orders=orders,
            needed=needed,
            prompts=loading.prompts,
            seed=seed,
        )
        return asked.check(drafts, on_progress=lambda count: bars.advance(task, count))
