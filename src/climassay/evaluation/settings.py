"""Settings: what a model is given besides the question.

A setting is named on the command line by a short text:

======================  ===============================================================================
``default``             the question alone
``rag:C``               the best passages of collection C (``rag:C+D`` of several), found with the question
``context``             the text the question was made from, where the file has it: the ceiling of retrieval
======================  ===============================================================================
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from climassay.errors import InputError
from climassay.questions import Question

if TYPE_CHECKING:
    from climassay.corpus.documents import Hit


class Retriever(Protocol):
    """What ``rag:`` needs of the corpus: the best passages for many queries at once."""

    def search_many(self, queries: Sequence[str], *, k: int) -> "list[list[Hit]]":
        """Hits of every query, best first."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The passages that go into one question's prompt."""

    passages: tuple[str, ...] = ()
    passage_ids: tuple[str, ...] = ()
    """Ids of retrieved passages, so that a prediction says what the model has read."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A named way of preparing questions."""

    name: str
    prepare: Callable[[Sequence[Question]], list[Prepared]]


def parse_setting(text: str, open_retriever: Callable[[tuple[str, ...]], Retriever], *, k: int = 3) -> Setting:
    """Setting of a name as in the module's table.

    Args:
        text: The name.
        open_retriever: Opens collections by name; only called for ``rag:``.
        k: Passages a question.

    Raises:
        InputError: No such setting.
    """
    if text == "default":
        return Setting(text, lambda questions: [Prepared() for _ in questions])
    if text == "context":
        return Setting(text, _own_context)
    if text.startswith("rag:"):
        names = tuple(name for name in text.removeprefix("rag:").split("+") if name)
        if not names:
            raise InputError("The setting rag: needs the name of a collection, for example rag:ipcc.")
        retriever = open_retriever(names)
        return Setting(text, lambda questions: _retrieved(questions, retriever, k))
    raise InputError(f"There is no setting {text!r}: there are default, context and rag:COLLECTION.")


def _own_context(questions: Sequence[Question]) -> list[Prepared]:
    missing = sum(question.context is None for question in questions)
    if missing:
        raise InputError(f"The setting context needs every question's source text; {missing} of them have none.")
    return [Prepared((question.context or "",)) for question in questions]


def _retrieved(questions: Sequence[Question], retriever: Retriever, k: int) -> list[Prepared]:
    found = retriever.search_many([question.question for question in questions], k=k)
    return [Prepared(tuple(hit.passage.text for hit in hits), tuple(hit.passage.id for hit in hits)) for hits in found]
