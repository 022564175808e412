"""Run any of the checks on drafts, and count the drafts that each check rejected."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, apply_where
from climassay.generation.screening.check import CHECKS as CHECKS
from climassay.generation.screening.check import Check
from climassay.generation.screening.check import check as check
from climassay.generation.screening.question_checks import language_check
from climassay.generation.screening.support_checks import MODEL_CHECKS, check_entailment, check_topic
from climassay.metrics import Entailment
from climassay.models.contract import Encoder
from climassay.questions import KINDS, TYPES, Kind
from climassay.reporting import Table, counted
from climassay.statistics import Estimate, proportion

for _kind, _type in TYPES.items():
    for _check in _type.checks:
        _examine = partial(lambda examine, draft: examine(draft.content), _check.examine)
        CHECKS.add(_check.name, Check(_check.name, (_kind,), _check.description, _examine), __name__)


def check_names() -> tuple[str, ...]:
    """Return the names of all checks. Checks that need a model come last."""
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
    """Run checks on drafts, and add their decisions; no draft is removed.

    Each check that finds its fault adds a rejection with its name as ``by`` and ``reason``. If no check finds a fault,
    an acceptance is added.

    Args:
        drafts: Drafts to check; those without a wording are unchanged.
        without: Names of checks to skip.
        only: Names of the checks to run; None runs all except those whose model is missing.
        language: Required language of the questions, a code of :data:`~climassay.corpus.languages.FUNCTION_WORDS`.
        encoder: Encoder for the check ``off topic``.
        entailment: Scorer for the check ``not entailed`` (:func:`climassay.metrics.load_entailment`).

    Returns:
        All drafts in the same order.

    Raises:
        InputError: The check does not exist, or a check in ``only`` lacks its model.
    """
    all_names = check_names()
    unknown_names = [name for name in (*without, *(only or ())) if name not in all_names]
    if unknown_names:
        raise InputError(f"There is no check called {unknown_names[0]!r}: there are {', '.join(all_names)}.")
    names = {name for name in (all_names if only is None else only) if name not in without}
    for name, model, words in (
        ("off topic", encoder, "an encoder"),
        ("not entailed", entailment, "an entailment scorer"),
    ):
        if only is not None and name in names and model is None:
            raise InputError(f"The check {name!r} needs a model: give {words}.")
    checks = [
        language_check(language) if name == "other language" else check
        for name, check in CHECKS.items()
        if name in names
    ]

    def run_checks(written_drafts: Sequence[Draft]) -> list[Draft]:
        decisions_by_draft = [
            [
                Decision("screen", check.name, False, check.name, detail)
                for check in checks
                if (detail := check.find_fault(draft))
            ]
            for draft in written_drafts
        ]
        if encoder is not None and "off topic" in names:
            for decisions, decision in zip(decisions_by_draft, check_topic(written_drafts, encoder), strict=True):
                decisions += [decision] if decision is not None else []
        if entailment is not None and "not entailed" in names:
            for decisions, decision in zip(
                decisions_by_draft, check_entailment(written_drafts, entailment), strict=True
            ):
                decisions += [decision] if decision is not None else []
        acceptance = Decision("screen", "screen", True)
        return [
            draft.with_decisions(
                *decisions, *([] if any(decision.accepted is False for decision in decisions) else [acceptance])
            )
            for draft, decisions in zip(written_drafts, decisions_by_draft, strict=True)
        ]

    return apply_where(lambda draft: draft.written, run_checks, drafts)


STEPS = ("screen", "consistency", "deduplicate")
"""Pipeline steps whose rejections are counted by :func:`check_counts`."""


@dataclass(frozen=True, slots=True)
class CheckCount:
    """Counts of one reason for rejection among the drafts of one kind."""

    reason: str
    kind: Kind | None
    """Kind of the counted drafts; None for all kinds together."""
    first: int
    """Number of drafts whose first fault this is; the sum over all reasons is the number of rejected drafts."""
    total: int
    """Number of drafts with this fault, whether or not they have others."""
    share: Estimate
    """``total`` as a proportion of the written drafts of the kind, with Wilson's 95% interval."""


def check_counts(drafts: Sequence[Draft]) -> tuple[CheckCount, ...]:
    """Count the reasons for rejection, for all kinds together and for each kind; the most frequent reason first."""
    reasons_by_draft = [(draft.kind, _list_reasons(draft)) for draft in drafts if draft.written]
    kinds: list[Kind | None] = [None, *_list_kinds(drafts)]
    frequencies = Counter(reason for _, reasons in reasons_by_draft for reason in reasons)
    counts = []
    for reason, _ in sorted(frequencies.items(), key=lambda item: (-item[1], item[0])):
        for kind in kinds:
            kind_reasons = [reasons for draft_kind, reasons in reasons_by_draft if kind in (None, draft_kind)]
            n_total = sum(reason in reasons for reasons in kind_reasons)
            n_first_faults = sum(reasons[:1] == [reason] for reasons in kind_reasons)
            counts.append(CheckCount(reason, kind, n_first_faults, n_total, proportion(n_total, len(kind_reasons))))
    return tuple(counts)


def screening_table(drafts: Sequence[Draft]) -> Table:
    """Return the counts of :func:`check_counts` as a table with one row per reason."""
    written_drafts = [draft for draft in drafts if draft.written]
    kinds = _list_kinds(drafts)
    counts = {(count.reason, count.kind): count for count in check_counts(drafts)}
    rows = []
    for reason in dict.fromkeys(reason for reason, _ in counts):
        total, kind_counts = counts[reason, None], [counts[reason, kind] for kind in kinds]
        kind_cells = [f"{count.first} / {count.total}" if count.total else "-" for count in kind_counts]
        rows.append((reason, *kind_cells, str(total.first), str(total.total), format_proportion(total.share)))
    if written_drafts:
        rejected_drafts = [draft for draft in written_drafts if _list_reasons(draft)]
        kind_cells = [
            f"{sum(draft.kind == kind for draft in rejected_drafts)} of "
            f"{sum(draft.kind == kind for draft in written_drafts)}"
            for kind in kinds
        ]
        n_rejected = len(rejected_drafts)
        cell = format_proportion(proportion(n_rejected, len(written_drafts)))
        rows.append(("any fault", *kind_cells, str(n_rejected), str(n_rejected), cell))
    note = "First: drafts with this fault as the first. Any: drafts with this fault; by kind as first / any."
    note += " Proportions with 95% intervals (Wilson). No draft is removed."
    if n_failed := len(drafts) - len(written_drafts):
        note += f" Never written and not counted: {counted(n_failed, 'draft')}."
    n_undecided = sum(
        any(decision.step in STEPS and decision.accepted is None for decision in draft.decisions)
        for draft in written_drafts
    )
    if n_undecided:
        note += f" Not checked completely because a call failed: {counted(n_undecided, 'draft')}."
    headings = ("fault", *kinds, "first", "any", "share of drafts")
    strong = [len(rows) - 1] if rows else ()
    return Table.of(f"Screening of {counted(len(written_drafts), 'draft')}", headings, rows, note=note, strong=strong)


def format_proportion(estimate: Estimate) -> str:
    """Format a proportion in percent with its interval."""
    return f"{estimate.value:.1%} ({estimate.interval.low:.1%} to {estimate.interval.high:.1%})"


def _list_kinds(drafts: Sequence[Draft]) -> list[Kind]:
    return [kind for kind in KINDS if any(draft.kind == kind for draft in drafts if draft.written)]


def _list_reasons(draft: Draft) -> list[str]:
    rejections = (decision for decision in draft.decisions if decision.step in STEPS and decision.accepted is False)
    return list(dict.fromkeys(decision.reason or decision.by for decision in rejections))
