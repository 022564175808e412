"""``climassay annotate``: what experts say about generated questions."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer import Option

from climassay.api import annotation as api
from climassay.cli import CommandGroup, given, with_flags
from climassay.cli.options import ResultOptions, WorkspaceOptions, add_verb
from climassay.generation.annotation.labels import AnnotationSettings

app = CommandGroup(no_args_is_help=True)


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


add_verb(app, "open", api.open_dataset, to=WorkspaceOptions, parse=_changes)
add_verb(
    app,
    "rubrics",
    api.collect_rubrics,
    to=WorkspaceOptions,
    questions=Annotated[str, typer.Argument()],
    dataset=Option(),
    overlap=Option(min=1, max=20),
)
add_verb(app, "status", api.annotation_status, annotator=Option())
add_verb(app, "agreement", api.annotator_agreement, to=ResultOptions)
add_verb(app, "export", api.export_labels, form=Option("--format"))
add_verb(app, "import", api.import_labels, to=WorkspaceOptions, form=Option("--format"))
add_verb(app, "retrain", api.retrain_validator, to=WorkspaceOptions)
