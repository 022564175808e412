"""All checks, and a screening by any of them."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft
from climassay.generation.screening import clues, form, options, references, statements, support
from climassay.generation.screening.check import Check, Examine
from climassay.generation.screening.language import language_check
from climassay.generation.screening.model_checks import MODEL_CHECKS, ModelCheck, entailment_check, topic_check
from climassay.metrics import Entailment
from climassay.models.contract import Encoder
from climassay.questions import TYPES, Kind
from climassay.registry import Registry

CHECKS: Registry[Check] = Registry("check", "climassay.checks")
"""Every check that needs no model, in the order in which faults are told."""
for _one in (
    *form.CHECKS,
    language_check(),
    *references.CHECKS,
    *options.CHECKS,
    *clues.CHECKS,
    *statements.CHECKS,
    *support.CHECKS,
):
    CHECKS.add(_one.name, _one)
for _kind, _type in TYPES.items():
    for _own in _type.checks:
        _examine = partial(lambda examine, draft: examine(draft.content), _own.examine)
        CHECKS.add(_own.name, Check(_own.name, (_kind,), _own.words, _examine))


def check(name: str, kinds: Sequence[Kind], words: str) -> Callable[[Examine], Examine]:
    """Add a function as a check; see :class:`Check` for what it gets and gives.

    Example:
        >>> @check("shouting", ["mcq", "freeform"], "The question is in capital letters.")
        ... def shouting(draft):
        ...     return "All letters are capitals." if draft.wording.question.isupper() else None
    """

    def add(function: Examine) -> Examine:
        CHECKS.add(name, Check(name, tuple(kinds), words, function))
        return function

    return add


def check_names() -> tuple[str, ...]:
    """Names of all checks, those that need a model last."""
    return (*CHECKS, *MODEL_CHECKS)


def screen(
    drafts: Sequence[Draft],
    *,
    without: Collection[str] = (),
    only: Collection[str] | None = None,
    language: str = "en",
    encoder: Encoder | None = None,
    entailment: Entailment | None = None,
) -> list[Draft]:
    """Mark what is faulty; nothing is removed.

    Every check that finds its fault adds a decision with its name as ``by`` and ``reason``; where none does, there is
    one accepting decision by ``screen``.

    Args:
        drafts: Any; those without wording pass through unchanged.
        without: Names of checks to leave out.
        only: Names of the checks to make; None makes all.
        language: In which questions are to be written, see :mod:`climassay.generation.screening.language`.
        encoder: Switches on the check ``off topic``.
        entailment: Switches on the check ``not entailed``; see :func:`climassay.metrics.load_entailment`.

    Returns:
        As many drafts, in the same order.

    Raises:
        InputError: There is no check of a name, or a check needs a model that is not given.
    """
    wanted = _wanted(without, only)
    needed = {"off topic": encoder, "not entailed": entailment}
    missing = [name for name, model in needed.items() if only is not None and name in wanted and model is None]
    if missing:
        model = "an encoder" if missing[0] == "off topic" else "an entailment scorer"
        raise InputError(f"The check {missing[0]!r} needs a model: give {model}.")
    simple = [
        language_check(language) if name == "other language" else one for name, one in CHECKS.items() if name in wanted
    ]
    asked: list[ModelCheck] = []
    if encoder is not None and "off topic" in wanted:
        asked.append(topic_check(encoder))
    if entailment is not None and "not entailed" in wanted:
        asked.append(entailment_check(entailment))
    written = [place for place, draft in enumerate(drafts) if draft.written]
    faults = {
        place: [_rejected(one.name, detail) for one in simple if (detail := one.fault(drafts[place]))]
        for place in written
    }
    for check in asked:
        for place, decision in zip(written, check.examine_all([drafts[place] for place in written]), strict=True):
            if decision is not None:
                faults[place].append(decision)
    return [_decided(draft, faults.get(place)) for place, draft in enumerate(drafts)]


def _wanted(without: Collection[str], only: Collection[str] | None) -> set[str]:
    known = check_names()
    unknown = [name for name in (*without, *(only or ())) if name not in known]
    if unknown:
        raise InputError(f"There is no check called {unknown[0]!r}: there are {', '.join(known)}.")
    return {name for name in (known if only is None else only) if name not in without}


def _rejected(name: str, detail: str) -> Decision:
    return Decision("screen", name, False, name, detail)


def _decided(draft: Draft, faults: list[Decision] | None) -> Draft:
    if faults is None:
        return draft
    if any(fault.accepted is False for fault in faults):
        return draft.decided(*faults)
    return draft.decided(*faults, Decision("screen", "screen", True))
