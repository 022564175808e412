"""How many drafts each check stopped."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from climassay.generation.draft import Decision, Draft
from climassay.questions import KINDS, Kind
from climassay.reporting import Table
from climassay.statistics import Estimate, proportion

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
    """Counts by reason, in the order of their numbers, for all kinds and for each kind that occurs.

    Args:
        drafts: Screened; those that were never written are left out.
    """
    written = [draft for draft in drafts if draft.written]
    present: list[Kind | None] = [None, *(kind for kind in KINDS if any(one.kind == kind for one in written))]
    total = Counter(reason for draft in written for reason in _reasons(draft))
    counts = []
    for reason, _ in sorted(total.items(), key=lambda item: (-item[1], item[0])):
        for kind in present:
            those = [_reasons(draft) for draft in written if kind in (None, draft.kind)]
            first = sum(bool(reasons) and reasons[0] == reason for reasons in those)
            found = sum(reason in reasons for reasons in those)
            counts.append(CheckCount(reason, kind, first, found, proportion(found, len(those))))
    return tuple(counts)


def table(drafts: Sequence[Draft]) -> Table:
    """What each check stopped, by kind; see :func:`check_counts`."""
    written = [draft for draft in drafts if draft.written]
    kinds = [kind for kind in KINDS if any(draft.kind == kind for draft in written)]
    counts = {(one.reason, one.kind): one for one in check_counts(drafts)}
    rows = []
    for reason in dict.fromkeys(reason for reason, _ in counts):
        one = counts[reason, None]
        of_kinds = [_pair(counts[reason, kind]) for kind in kinds]
        rows.append((reason, *of_kinds, str(one.first), str(one.found), _share(one.share)))
    stopped = [draft for draft in written if _reasons(draft)]
    if written:
        of_kinds = [
            f"{sum(draft.kind == kind for draft in stopped)} of {sum(draft.kind == kind for draft in written)}"
            for kind in kinds
        ]
        all_of_them = (str(len(stopped)), str(len(stopped)), _share(proportion(len(stopped), len(written))))
        rows.append(("stopped by any", *of_kinds, *all_of_them))
    failed, undecided = len(drafts) - len(written), sum(map(_is_undecided, written))
    note = "First: the first fault found. Any: found at all, beside others or not; by kind as first / any."
    note += " Shares with 95% intervals (Wilson). Nothing is removed, only marked."
    if failed:
        note += f" {failed} drafts that were never written are left out."
    if undecided:
        note += f" {undecided} drafts have a check that could not be made (a failed call)."
    headings = ("fault", *kinds, "first", "any", "share of drafts")
    return Table.of(
        f"Screening of {len(written)} drafts", headings, rows, note=note, strong=[len(rows) - 1] if rows else ()
    )


def _reasons(draft: Draft) -> list[str]:
    return list(dict.fromkeys(one.reason or one.by for one in draft.decisions if _stops(one)))


def _stops(decision: Decision) -> bool:
    return decision.step in STEPS and decision.accepted is False


def _is_undecided(draft: Draft) -> bool:
    return any(one.step in STEPS and one.accepted is None for one in draft.decisions)


def _pair(count: CheckCount) -> str:
    return f"{count.first} / {count.found}" if count.found else "-"


def _share(estimate: Estimate) -> str:
    return "{:.1%} ({:.1%} to {:.1%})".format(estimate.value, *estimate.interval)
