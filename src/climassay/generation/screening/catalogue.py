"""All checks, a screening by any of them, and how many drafts each one stopped."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, where
from climassay.generation.screening.check import CHECKS, Check, check
from climassay.generation.screening.checks import MODEL_CHECKS, language_check, not_entailed, off_topic
from climassay.metrics import Entailment
from climassay.models.contract import Encoder
from climassay.questions import KINDS, TYPES, Kind
from climassay.reporting import Table, counted
from climassay.statistics import Estimate, proportion

__all__ = ["CHECKS", "CheckCount", "check", "check_counts", "check_names", "screen", "table"]

for _kind, _type in TYPES.items():
    for _own in _type.checks:
        _examine = partial(lambda examine, draft: examine(draft.content), _own.examine)
        CHECKS.add(_own.name, Check(_own.name, (_kind,), _own.words, _examine), __name__)


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
        language: In which questions are to be written, see :data:`~climassay.generation.screening.LANGUAGES`.
        encoder: Switches on the check ``off topic``.
        entailment: Switches on the check ``not entailed``; see :func:`climassay.metrics.load_entailment`.

    Returns:
        As many drafts, in the same order.

    Raises:
        InputError: There is no check of a name, or a check needs a model that is not given.
    """
    known = check_names()
    unknown = [name for name in (*without, *(only or ())) if name not in known]
    if unknown:
        raise InputError(f"There is no check called {unknown[0]!r}: there are {', '.join(known)}.")
    wanted = {name for name in (known if only is None else only) if name not in without}
    for name, model, words in (
        ("off topic", encoder, "an encoder"),
        ("not entailed", entailment, "an entailment scorer"),
    ):
        if only is not None and name in wanted and model is None:
            raise InputError(f"The check {name!r} needs a model: give {words}.")
    simple = [
        language_check(language) if name == "other language" else one for name, one in CHECKS.items() if name in wanted
    ]

    def examined(written: Sequence[Draft]) -> list[Draft]:
        faults = [
            [Decision("screen", one.name, False, one.name, detail) for one in simple if (detail := one.fault(draft))]
            for draft in written
        ]
        far = off_topic(written, encoder) if encoder is not None and "off topic" in wanted else []
        contrary = not_entailed(written, entailment) if entailment is not None and "not entailed" in wanted else []
        for decisions in filter(None, (far, contrary)):
            for own, decision in zip(faults, decisions, strict=True):
                own += [decision] if decision is not None else []
        passed = Decision("screen", "screen", True)
        return [
            draft.decided(*own, *([] if any(fault.accepted is False for fault in own) else [passed]))
            for draft, own in zip(written, faults, strict=True)
        ]

    return where(lambda draft: draft.written, examined, drafts)


STEPS = ("screen", "consistency", "deduplicate")
"""Steps whose rejections are screening."""


@dataclass(frozen=True, slots=True)
class CheckCount:
    """What one check, or all together, did to the drafts of one kind."""

    reason: str
    kind: Kind | None
    """None for all kinds together."""
    first: int
    """Drafts for which it was the first fault found: these numbers add up to what was stopped."""
    found: int
    """Drafts that have the fault, others beside it or not."""
    share: Estimate
    """``found`` among the written drafts of the kind, with Wilson's 95% interval."""


def check_counts(drafts: Sequence[Draft]) -> tuple[CheckCount, ...]:
    """Counts by reason, in the order of their numbers, for all kinds and for each kind that occurs."""
    reasons = [(draft.kind, _reasons(draft)) for draft in drafts if draft.written]
    present: list[Kind | None] = [None, *_kinds(drafts)]
    total = Counter(reason for _, own in reasons for reason in own)
    counts = []
    for reason, _ in sorted(total.items(), key=lambda item: (-item[1], item[0])):
        for kind in present:
            those = [own for one, own in reasons if kind in (None, one)]
            result = sum(reason in own for own in those)
            first = sum(own[:1] == [reason] for own in those)
            counts.append(CheckCount(reason, kind, first, result, proportion(result, len(those))))
    return tuple(counts)


def table(drafts: Sequence[Draft]) -> Table:
    """What each check stopped, by kind; see :func:`check_counts`."""
    written = [draft for draft in drafts if draft.written]
    kinds = _kinds(drafts)
    counts = {(one.reason, one.kind): one for one in check_counts(drafts)}
    rows = []
    for reason in dict.fromkeys(reason for reason, _ in counts):
        one, own = counts[reason, None], [counts[reason, kind] for kind in kinds]
        by_kind = [f"{count.first} / {count.found}" if count.found else "-" for count in own]
        rows.append((reason, *by_kind, str(one.first), str(one.found), format_share(one.share)))
    if written:
        stopped = [draft for draft in written if _reasons(draft)]
        by_kind = [
            f"{sum(draft.kind == kind for draft in stopped)} of {sum(draft.kind == kind for draft in written)}"
            for kind in kinds
        ]
        number = str(len(stopped))
        rows.append(("stopped by any", *by_kind, number, number, format_share(proportion(len(stopped), len(written)))))
    note = "First: the first fault found. Any: found at all, beside others or not; by kind as first / any."
    note += " Shares with 95% intervals (Wilson). Nothing is removed, only marked."
    if failed := len(drafts) - len(written):
        note += f" Left out as never written: {counted(failed, 'draft')}."
    undecided = sum(any(one.step in STEPS and one.accepted is None for one in draft.decisions) for draft in written)
    if undecided:
        note += f" Without one of the checks, because a call failed: {counted(undecided, 'draft')}."
    headings = ("fault", *kinds, "first", "any", "share of drafts")
    strong = [len(rows) - 1] if rows else ()
    return Table.of(f"Screening of {counted(len(written), 'draft')}", headings, rows, note=note, strong=strong)


def format_share(one: Estimate) -> str:
    """A share in percent with its interval."""
    return f"{one.value:.1%} ({one.interval.low:.1%} to {one.interval.high:.1%})"


def _kinds(drafts: Sequence[Draft]) -> list[Kind]:
    return [kind for kind in KINDS if any(draft.kind == kind for draft in drafts if draft.written)]


def _reasons(draft: Draft) -> list[str]:
    stops = (one for one in draft.decisions if one.step in STEPS and one.accepted is False)
    return list(dict.fromkeys(one.reason or one.by for one in stops))
