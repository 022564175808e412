"""The catalogue of checks, screening by any of them, and counts of the drafts that each check rejected."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, apply_where
from climassay.generation.screening.check import CHECKS, Check, check
from climassay.generation.screening.question_checks import language_check
from climassay.generation.screening.support_checks import MODEL_CHECKS, not_entailed, off_topic
from climassay.metrics import Entailment
from climassay.models.contract import Encoder
from climassay.questions import KINDS, TYPES, Kind
from climassay.reporting import Table, counted
from climassay.statistics import Estimate, proportion

__all__ = ["CHECKS", "CheckCount", "check", "check_counts", "check_names", "screen", "screening_table"]

for _kind, _type in TYPES.items():
    for _check in _type.checks:
        _examine = partial(lambda examine, draft: examine(draft.content), _check.examine)
        CHECKS.add(_check.name, Check(_check.name, (_kind,), _check.description, _examine), __name__)


def check_names() -> tuple[str, ...]:
    """Return the names of all checks, those that need a model last."""
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
    """Add the decisions of checks to drafts; no draft is removed.

    Each check that finds its fault adds a rejection with its name as ``by`` and ``reason``. If none does, ``screen``
    adds an acceptance.

    Args:
        drafts: Drafts; those without a wording are unchanged.
        without: Names of checks to leave out.
        only: Names of the checks to run; None runs all.
        language: Required language of the questions, a code of :data:`~climassay.corpus.languages.FUNCTION_WORDS`.
        encoder: Encoder of the check ``off topic``, which needs one.
        entailment: Scorer of the check ``not entailed``, which needs one (:func:`climassay.metrics.load_entailment`).

    Returns:
        All drafts in the same order.

    Raises:
        InputError: There is no such check, or a check of ``only`` lacks its model.
    """
    all_names = check_names()
    unknown = [name for name in (*without, *(only or ())) if name not in all_names]
    if unknown:
        raise InputError(f"There is no check called {unknown[0]!r}: there are {', '.join(all_names)}.")
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

    def examined(written: Sequence[Draft]) -> list[Draft]:
        by_draft = [
            [
                Decision("screen", check.name, False, check.name, detail)
                for check in checks
                if (detail := check.fault(draft))
            ]
            for draft in written
        ]
        if encoder is not None and "off topic" in names:
            for decisions, decision in zip(by_draft, off_topic(written, encoder), strict=True):
                decisions += [decision] if decision is not None else []
        if entailment is not None and "not entailed" in names:
            for decisions, decision in zip(by_draft, not_entailed(written, entailment), strict=True):
                decisions += [decision] if decision is not None else []
        passed = Decision("screen", "screen", True)
        return [
            draft.with_decisions(
                *decisions, *([] if any(decision.accepted is False for decision in decisions) else [passed])
            )
            for draft, decisions in zip(written, by_draft, strict=True)
        ]

    return apply_where(lambda draft: draft.written, examined, drafts)


STEPS = ("screen", "consistency", "deduplicate")
"""Steps whose rejections count as screening."""


@dataclass(frozen=True, slots=True)
class CheckCount:
    """Counts of one reason for rejection among the drafts of one kind."""

    reason: str
    kind: Kind | None
    """Kind; None for all kinds together."""
    first: int
    """Number of drafts with this fault as the first; these add up to the number of rejected drafts."""
    total: int
    """Number of drafts with this fault, with or without others."""
    share: Estimate
    """``total`` as a share of the written drafts of the kind, with Wilson's 95% interval."""


def check_counts(drafts: Sequence[Draft]) -> tuple[CheckCount, ...]:
    """Return counts by reason, the most frequent first, for all kinds together and for each kind."""
    reasons_by_draft = [(draft.kind, _reasons(draft)) for draft in drafts if draft.written]
    kinds: list[Kind | None] = [None, *_kinds(drafts)]
    frequencies = Counter(reason for _, reasons in reasons_by_draft for reason in reasons)
    counts = []
    for reason, _ in sorted(frequencies.items(), key=lambda item: (-item[1], item[0])):
        for kind in kinds:
            of_kind = [reasons for draft_kind, reasons in reasons_by_draft if kind in (None, draft_kind)]
            total = sum(reason in reasons for reasons in of_kind)
            first = sum(reasons[:1] == [reason] for reasons in of_kind)
            counts.append(CheckCount(reason, kind, first, total, proportion(total, len(of_kind))))
    return tuple(counts)


def screening_table(drafts: Sequence[Draft]) -> Table:
    """Return the counts of :func:`check_counts` as a table with one row per reason."""
    written = [draft for draft in drafts if draft.written]
    kinds = _kinds(drafts)
    counts = {(count.reason, count.kind): count for count in check_counts(drafts)}
    rows = []
    for reason in dict.fromkeys(reason for reason, _ in counts):
        total, kind_counts = counts[reason, None], [counts[reason, kind] for kind in kinds]
        by_kind = [f"{count.first} / {count.total}" if count.total else "-" for count in kind_counts]
        rows.append((reason, *by_kind, str(total.first), str(total.total), format_share(total.share)))
    if written:
        rejected = [draft for draft in written if _reasons(draft)]
        by_kind = [
            f"{sum(draft.kind == kind for draft in rejected)} of {sum(draft.kind == kind for draft in written)}"
            for kind in kinds
        ]
        number = str(len(rejected))
        rows.append(("any fault", *by_kind, number, number, format_share(proportion(len(rejected), len(written)))))
    note = "First: drafts with this fault as the first. Any: drafts with this fault; by kind as first / any."
    note += " Shares with 95% intervals (Wilson). No draft is removed."
    if failed := len(drafts) - len(written):
        note += f" Never written and left out: {counted(failed, 'draft')}."
    undecided = sum(
        any(decision.step in STEPS and decision.accepted is None for decision in draft.decisions) for draft in written
    )
    if undecided:
        note += f" Not checked completely because a call failed: {counted(undecided, 'draft')}."
    headings = ("fault", *kinds, "first", "any", "share of drafts")
    strong = [len(rows) - 1] if rows else ()
    return Table.of(f"Screening of {counted(len(written), 'draft')}", headings, rows, note=note, strong=strong)


def format_share(estimate: Estimate) -> str:
    """Return a share in percent with its interval."""
    return f"{estimate.value:.1%} ({estimate.interval.low:.1%} to {estimate.interval.high:.1%})"


def _kinds(drafts: Sequence[Draft]) -> list[Kind]:
    return [kind for kind in KINDS if any(draft.kind == kind for draft in drafts if draft.written)]


def _reasons(draft: Draft) -> list[str]:
    rejections = (decision for decision in draft.decisions if decision.step in STEPS and decision.accepted is False)
    return list(dict.fromkeys(decision.reason or decision.by for decision in rejections))
