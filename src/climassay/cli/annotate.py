"""``climassay annotate``: what experts say about generated questions."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer import Option

from climassay.api import annotation as api
from climassay.cli import CommandGroup, given, with_flags
from climassay.cli.options import ResultOptions, WorkspaceOptions
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


app.add_verb("open", api.open_dataset, to=WorkspaceOptions, parse=_changes)
app.add_verb(
    "rubrics",
    api.collect_rubrics,
    to=WorkspaceOptions,
    questions=Annotated[str, typer.Argument()],
    dataset=Option(),
    overlap=Option(min=1, max=20),
)
app.add_verb("status", api.annotation_status, annotator=Option())
app.add_verb("agreement", api.annotator_agreement, to=ResultOptions)
app.add_verb("export", api.export_labels, form=Option("--format"))
app.add_verb("import", api.import_labels, to=WorkspaceOptions, form=Option("--format"))
app.add_verb("retrain", api.retrain_validator, to=WorkspaceOptions)
