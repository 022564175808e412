"""A whole document in the prompt, or as much of it around the most relevant passage as the model's window holds."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from climassay.corpus.passages import join_passages
from climassay.errors import InputError
from climassay.evaluation.settings import AUTO, Prepared, Retriever, SettingSpec
from climassay.models.contract import Generator, Windowed, token_count, window_of
from climassay.questions import Question
from climassay.records import RecordedModel

if TYPE_CHECKING:
    from climassay.corpus.documents import Passage

ROOM = 512
"""Tokens left for the question, its options, the instructions and the answer."""


def with_documents(
    questions: Sequence[Question], model: Generator, retriever: Retriever, spec: SettingSpec
) -> list[Prepared]:
    """Put a document before each question.

    A document that does not fit is cut to consecutive passages around the one that is most relevant to the question,
    grown to both sides; the note says how much of it was left.

    Args:
        questions: To be prepared.
        model: Tells window and tokens where it can (``Windowed``); else both are estimated.
        retriever: Finds the most relevant passage.
        spec: Of kind ``long-context``.

    Raises:
        InputError: A collection has no passage for a question or no such document, or the window holds no passage.
    """
    model = model.wrapped if isinstance(model, RecordedModel) else model
    room = _room(model, spec)
    count = cache(lambda text: token_count(model, text))
    pages = cache(retriever.document_passages)
    hits = retriever.search_many([question.question for question in questions], k=1)
    prepared = []
    for question, found in zip(questions, hits, strict=True):
        if not found and spec.document == AUTO:
            raise InputError(f"The collections {', '.join(spec.collections)} have no passage for {question.id}.")
        best = found[0].passage if found else None
        passages = pages(best.document_id if spec.document == AUTO and best is not None else spec.document)
        at = _place(passages, question, retriever, best)
        prepared.append(_cut(passages, at, room, [count(passage.text) for passage in passages]))
    return prepared


def _room(model: Generator, spec: SettingSpec) -> int:
    own = window_of(model)
    window = own if spec.window is None else spec.window
    if spec.window is not None and isinstance(model, Windowed) and window > own:
        raise InputError(f"A window of {window} tokens is asked for, but {model.name} reads at most {own}.")
    if window <= ROOM:
        raise InputError(f"A window of {window} tokens leaves no room: {ROOM} are kept for the question.")
    return window - ROOM


def _place(passages: "Sequence[Passage]", question: Question, retriever: Retriever, best: "Passage | None") -> int:
    """Where in the document the passage is that fits the question best."""
    places = {passage.id: place for place, passage in enumerate(passages)}
    if best is not None and best.id in places:
        return places[best.id]
    for hit in retriever.search_many([question.question], k=len(passages) + 100)[0]:
        if hit.passage.id in places:
            return places[hit.passage.id]
    return 0


def _cut(passages: "Sequence[Passage]", at: int, room: int, sizes: Sequence[int]) -> Prepared:
    """Consecutive passages around one of them, as many as fit."""
    first, last, used = at, at, sizes[at]
    if used > room:
        raise InputError(f"The window holds {room} tokens of a document, but its passage {passages[at].id} has {used}.")
    while True:
        before = first > 0 and used + sizes[first - 1] <= room
        after = last + 1 < len(passages) and used + sizes[last + 1] <= room
        if not before and not after:
            break
        # The side that has fewer passages so far grows first, so that the best one stays in the middle.
        if before and (not after or at - first <= last - at):
            first -= 1
            used += sizes[first]
        else:
            last += 1
            used += sizes[last]
    kept = passages[first : last + 1]
    cut = len(kept) < len(passages)
    note = f"{kept[0].document}: passages {first + 1} to {last + 1} of {len(passages)} fit the window" if cut else ""
    text = join_passages([passage.text for passage in kept])
    return Prepared((text,), tuple(passage.id for passage in kept), note=note)
