"""What all runs used: tokens, cost, failures and what the records saved, by model, command and day."""

from collections.abc import Sequence
from typing import get_args

from fastapi import APIRouter, Request
from starlette.responses import Response

from climassay.records.queries import UsageGroup, UsageLine, usage_by
from climassay.reporting import Report, Section, Table
from climassay.web.access import Annotator
from climassay.web.failures import Missing
from climassay.web.pages import page
from climassay.web.place import Place, PlaceHere
from climassay.web.results.blocks import shown_sections, table_at
from climassay.web.results.downloads import table_file
from climassay.web.results.style import block_assets

router = APIRouter(include_in_schema=False)


@router.get("/usage")
def show_usage(request: Request, place: PlaceHere, _user: Annotator) -> Response:
    """Usage of the whole workspace."""
    lines = usage_by(place.database, "command")
    return page(
        request,
        "results/usage.html.j2",
        total=_total(lines),
        sections=shown_sections(_report(place), "/usage"),
        **block_assets(),
    )


@router.get("/usage/tables/{number}.{form}")
def send_table(place: PlaceHere, _user: Annotator, number: int, form: str) -> Response:
    """A table of usage as a file."""
    table = table_at(_report(place), number)
    if table is None:
        raise Missing(f"There is no table of usage with the number {number}.")
    return table_file(table, form, f"usage-{number}")


def usage_table(lines: Sequence[UsageLine], group: UsageGroup) -> Table:
    """One line a model, command or day."""
    rows = [
        (
            line.name,
            f"{line.answers:,}",
            f"{line.failed:,}",
            f"{line.served:,}",
            f"{100 * line.cached:.1f}%",
            f"{line.attempts:,}",
            f"{line.prompt_tokens:,}",
            f"{line.completion_tokens:,}",
            f"{line.reasoning_tokens:,}",
            cost_words(line),
        )
        for line in lines
    ]
    headings = [group, "asked", "failed", "from records", "share", "sent", "prompt tokens", "completion tokens"]
    headings += ["thought", "cost"]
    return Table.of(
        f"Tokens, cost and failures by {group}",
        headings,
        rows,
        note="from records: answers of earlier runs that nobody had to pay again; share: of all answers that runs got. "
        "sent: requests with their repetitions. thought: completion tokens before the answers. cost: in US dollars, of "
        "what has a price.",
    )


def cost_words(line: UsageLine) -> str:
    """A cost as it is shown, with what has no known price beside it."""
    if line.cost is None:
        return "unknown" if line.unpriced else "–"
    return f"{line.cost:.4f}" + (f" + {line.unpriced:,} unpriced" if line.unpriced else "")


def _report(place: Place) -> Report:
    groups: tuple[UsageGroup, ...] = get_args(UsageGroup)
    tables = [(group, usage_table(usage_by(place.database, group), group)) for group in groups]
    return Report("Usage", "", tuple(Section(f"By {group}", (table,)) for group, table in tables))


def _total(lines: Sequence[UsageLine]) -> UsageLine:
    costs = [line.cost for line in lines if line.cost is not None]
    return UsageLine(
        "all",
        sum(line.answers for line in lines),
        sum(line.failed for line in lines),
        sum(line.served for line in lines),
        sum(line.attempts for line in lines),
        sum(line.prompt_tokens for line in lines),
        sum(line.completion_tokens for line in lines),
        sum(line.reasoning_tokens for line in lines),
        sum(costs) if costs else None,
        sum(line.unpriced for line in lines),
    )
