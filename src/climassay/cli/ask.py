"""``climassay ask``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.model_options import LoadingOptions, ModelOption, ProfileOption
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, WorkspaceOption, print_json, stdout_console, write_text

if TYPE_CHECKING:
    from climassay.grounding import GroundedAnswer


@grouped
def ask(
    question: Annotated[str, typer.Argument(help="Your question, in quotes.")],
    collection: Annotated[list[str], typer.Option("--collection", "-c", help="Where to look; repeat for several.")],
    model: ModelOption = "local:smollm2",
    passages: Annotated[int, typer.Option("--passages", "-k", min=1, help="Passages put before the model.")] = 4,
    threshold: Annotated[
        float | None, typer.Option(min=-1, max=1, help="Similarity below which a passage is not relevant.")
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, help="Sentences asked for, at most.")] = 3,
    profile: ProfileOption = None,
    html: Annotated[Path | None, typer.Option(help="Write the answer as a self-contained HTML page.")] = None,
    loading: LoadingOptions = LoadingOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from your collections, with numbered citations, or say that they do not hold the answer."""
    from climassay.errors import ModelError
    from climassay.grounding import answer_data, answer_question, answer_report, open_collections
    from climassay.models.profiles import ProfileSettings
    from climassay.prompts import load_prompt
    from climassay.records import RecordedModel, Records
    from climassay.workspace import Workspace

    place = Workspace.open(workspace)
    group = open_collections(place, tuple(collection))
    prompt = load_prompt("ask", loading.prompts)
    loaded = loading.load(model, place, quiet=as_json)
    config = {
        "question": question,
        "collections": collection,
        "model": model,
        "passages": passages,
        "threshold": threshold,
        "prompt_sha256": prompt.sha256,
    }
    try:
        with Records(place.records_url) as store, store.run(command="ask", config=config) as run:
            answer = answer_question(
                question,
                group,
                RecordedModel(loaded, store, run, use_cache=not loading.no_cache),
                k=passages,
                min_cosine=threshold,
                sentences=sentences,
                prompt=prompt,
                profile=ProfileSettings(profile or "auto"),
            )
            run.save_results("answer", [answer_data(answer)])
    finally:
        loaded.close()
    if html:
        write_text(html, answer_report(answer).to_html())
    if as_json:
        print_json(answer_data(answer))
    else:
        _show(answer)
    if answer.error is not None:
        raise ModelError(f"The model gave no answer: {answer.error}")


def _show(answer: "GroundedAnswer") -> None:
    from rich.text import Text

    from climassay.grounding.presentation import removed_note

    console = stdout_console()
    if answer.error is not None:
        return
    console.print(Text(answer.text))
    if not answer.enough_information:
        reason = "the passages found do not answer it" if answer.sources else "no passage is relevant"
        console.print(Text(f"({reason}; nothing was made up)", style="dim"))
    if answer.sources:
        console.print()
    for source in answer.sources:
        similarity = "" if source.cosine is None else f"  ({source.cosine:.2f})"
        console.print(Text(f"[{source.number}] {source.citation}{similarity}", style="dim"))
    if note := removed_note(answer.removed_citations):
        console.print(Text(note, style="dim"))
