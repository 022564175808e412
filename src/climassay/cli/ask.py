"""``climassay ask``."""

from typing import Annotated

import typer

from climassay.cli.model_options import LoadingOptions, ModelOption, ProfileOption
from climassay.cli.option_groups import grouped
from climassay.cli.output import FilesOption, JsonOption, WorkspaceOption, emit, opened_session


@grouped
def ask(
    question: Annotated[str, typer.Argument(help="Your question, in quotes.")],
    collection: Annotated[list[str], typer.Option("--collection", "-c", help="Collection to look in; repeat.")],
    model: ModelOption = "local:smollm2",
    passages: Annotated[int, typer.Option("--passages", "-k", min=1, help="Passages put before the model.")] = 4,
    threshold: Annotated[
        float | None, typer.Option(min=-1, max=1, help="Similarity below which a passage is not relevant.")
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, help="Most sentences of the answer.")] = 3,
    profile: ProfileOption = None,
    output: FilesOption = None,
    loading: LoadingOptions = LoadingOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from your collections, with numbered citations, or say that they do not hold the answer."""
    from climassay import api
    from climassay.errors import ModelError

    with opened_session(workspace, loading, as_json=as_json) as session:
        answer = api.ask(
            question,
            collection,
            model=model,
            workspace=session,
            passages=passages,
            threshold=threshold,
            sentences=sentences,
            profile=profile or "auto",
        )
    emit(answer, as_json, output)
    if answer.error is not None:
        raise ModelError(f"The model gave no answer: {answer.error}")
