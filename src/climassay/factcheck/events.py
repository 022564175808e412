"""What happens in a debate as data: for whoever follows it from another process, or comes later."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from climassay.errors import InputError
from climassay.factcheck.serialisation import as_plain, as_record
from climassay.factcheck.stage import Event, Retrieval
from climassay.factcheck.transcript import (
    AdvocateOpinion,
    FollowUp,
    MediatorDecision,
    PassageCitation,
    Subclaim,
    Verdict,
)

EventKind = Literal["subclaims", "passages", "opinion", "question", "decision", "verdict"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
_RECORDS: Mapping[EventKind, type[AdvocateOpinion | FollowUp | MediatorDecision | Verdict]] = {
    "opinion": AdvocateOpinion,
    "question": FollowUp,
    "decision": MediatorDecision,
    "verdict": Verdict,
}


def event_data(event: Event) -> tuple[EventKind, dict[str, Any]]:
    """An event's kind, and what happened: dictionaries, lists, texts and numbers.

    The fields of an opinion, a question, a decision or a verdict are those of its record; subclaims and passages stand
    under the name of the kind.
    """
    if isinstance(event, tuple):
        return "subclaims", {"subclaims": as_plain(event)}
    if isinstance(event, Retrieval):
        return "passages", {"passages": as_plain(event.sources)}
    kind = next(kind for kind, record in _RECORDS.items() if isinstance(event, record))
    return kind, as_plain(event)


def event_from_data(kind: str, data: Mapping[str, Any]) -> Event:
    """The event that :func:`event_data` wrote.

    Raises:
        InputError: It is damaged, or of no known kind.
    """
    if kind == "subclaims":
        return tuple(as_record(Subclaim, entry) for entry in data.get(kind, ()))
    if kind == "passages":
        return Retrieval(tuple(as_record(PassageCitation, entry) for entry in data.get(kind, ())))
    for known, record in _RECORDS.items():
        if kind == known:
            return as_record(record, data)
    raise InputError(f"{kind!r} is nothing that happens in a debate; there are {', '.join(EVENT_KINDS)}.")
