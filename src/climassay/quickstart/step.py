"""What a step of the quickstart is, what it works with, and who it talks to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.models import Generator
    from climassay.records.queries import RunDetails
    from climassay.session import Session

NAME = "quickstart"
"""Name of the collection, the dataset and the experiment."""

State = Literal["done", "found", "skipped"]


class Dialog(Protocol):
    """The one whom the quickstart leads."""

    @property
    def patient(self) -> bool:
        """Whether a question may be put again after an answer that is of no use."""

    def say(self, text: str) -> None:
        """Tell something."""

    def answer(self, question: str, offer: str) -> str | None:
        """The answer to a question, ``offer`` where it is taken; None to skip."""

    def progress(self, name: str, total: int | None) -> Callable[[int], None]:
        """Begin to show progress; the function is called at every advance."""


@dataclass(frozen=True)
class QuickstartContext:
    """What the steps work with.

    Attributes:
        workspace: Where everything lies; what is there already is used.
        model_name: Of the model that answers, debates, writes and is evaluated.
        labels_by: Name under which questions are annotated.
    """

    workspace: Workspace
    model_name: str
    labels_by: str

    @cached_property
    def session(self) -> "Session":
        """What is open in the workspace: records, encoders and the model, once a step needs them."""
        from climassay.session import Session

        return Session(self.workspace)

    @property
    def model(self) -> "Generator":
        """The model, loaded when a step first needs it.

        Raises:
            InputError: Its name is not understood.
            ModelError: It cannot be loaded.
        """
        return self.session.model(self.model_name)

    @property
    def folder(self) -> Path:
        """Where the quickstart writes files; made by the step that first writes one."""
        return self.workspace.root / NAME

    def runs(self, *commands: str) -> "Iterator[RunDetails]":
        """Finished runs of a command in this workspace, the newest first; it may have had other names before."""
        from climassay.records.queries import list_runs, run_details

        if not self.workspace.has_records:
            return
        database = self.session.records.database
        for one in reversed(list_runs(database)):
            if one.command in commands and one.status == "done":
                yield run_details(database, one.id)

    def close(self) -> None:
        """Close what was opened."""
        if "session" in self.__dict__:
            self.session.close()


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a new user learns."""

    name: str
    title: str
    asks: str
    """The question put to the user."""
    offer: Callable[[QuickstartContext], str]
    """What is taken where the user just presses Enter."""
    command: Callable[[QuickstartContext, str], str]
    """The command that does this step alone, with the user's answer."""
    found: Callable[[QuickstartContext], str | None]
    """What is there of an earlier time, in words; None where the step is still to be done."""
    work: Callable[[QuickstartContext, str, Dialog], str]
    """Does it with the user's answer; what came out, in words. What is wrong with the answer is an InputError."""
    needs: Callable[[QuickstartContext], bool] = field(default=lambda _room: True)
    """Whether what the step builds upon is there."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step."""

    step: str
    state: State
    said: str
    command: str
    """That does it alone."""
