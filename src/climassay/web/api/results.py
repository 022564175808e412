"""Operations on results: runs, and their tables as data."""

from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import Field, JsonValue

from climassay.records.queries import list_run_entries, run_settings
from climassay.reporting import Table
from climassay.web.access import Reader
from climassay.web.api.base import NO_NUL, After, Data, Limit, Moment, Page, api_router, make_page, path_name
from climassay.web.app_state import App
from climassay.web.checks.moderation import hidden_runs, require_visible_run
from climassay.web.results.stored_run import find_run_summary, find_stored_run

router = api_router("/runs", "runs")
router.dependencies.append(Depends(require_visible_run))
RunId = Annotated[str, path_name("Id of the run.", "r00c0ffee")]
Word = Annotated[str, Query(pattern=NO_NUL, max_length=200)]


class RunData(Data):
    """Recorded run of a command."""

    id: str
    command: str = Field(examples=["evaluate run"])
    status: str
    """State of the run: `running`, `done`, `failed` or `interrupted`."""
    version: str
    """Version of climassay that ran the command."""
    started_at: Moment
    ended_at: Moment | None
    sent: int
    """Number of requests to models."""
    failed: int
    """Number of requests without a usable answer."""
    served: int
    """Number of answers reused from earlier runs."""
    cost: float | None
    """Cost in US dollars; null if no price is known."""
    models: list[str]
    """Names of the models that answered."""
    tokens: int
    """Number of prompt tokens and completion tokens."""
    page: str
    """Path of the run's page."""

    @classmethod
    def of(cls, entry: Any) -> "RunData":
        """Return the data of a run from its entry in a list of runs."""
        extra_fields = {"models": list(entry.models), "tokens": entry.tokens, "page": f"/results/{entry.summary.id}"}
        fields = {name: getattr(entry.summary, name) for name in cls.model_fields if name not in extra_fields}
        return cls(**fields, **extra_fields)


class RunDetailsData(Data):
    """Recorded run with its configuration."""

    run: RunData
    config: dict[str, JsonValue]
    """Configuration after defaults were filled in."""
    seeds: dict[str, JsonValue]
    error: str | None
    """Reason why the run failed; null if it did not."""


class TableData(Data):
    """Table of a run's report."""

    number: int
    """Number of the table among the blocks of the report, from 1."""
    section: str
    """Heading of the report's section that contains the table."""
    title: str
    note: str
    columns: list[str]
    """Headings of its columns."""
    rows: list[list[str]]
    """Rows of cells, each cell as the text that is displayed."""


@router.get("", response_model=Page[RunData])
def list_runs(
    app: App,
    user: Reader,
    command: Annotated[Word, Query(description="Only runs of this command.", examples=["evaluate run"])] = "",
    text: Annotated[Word, Query(description="Text in the id, command or configuration, ignoring case.")] = "",
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """List the runs that match the filters, newest first."""
    entries = list_run_entries(
        app.database, command=command, text=text, limit=limit + 1, after=after, excluded=hidden_runs(user)
    )
    return make_page(entries, limit, RunData.of)


@router.get("/{run}", response_model=RunDetailsData)
def get_run(app: App, user: Reader, run: RunId) -> Any:
    """Get a run with its configuration."""
    find_run_summary(app, run)
    [entry] = list_run_entries(app.database, run=run, limit=1)
    config, seeds, error = run_settings(app.database, run)
    return RunDetailsData(run=RunData.of(entry), config=config, seeds=seeds, error=error)


@router.get("/{run}/tables", response_model=Page[TableData])
def list_tables(
    app: App,
    user: Reader,
    run: RunId,
    published: Annotated[
        Literal["", "gold", "silver"], Query(description="Published results to show beside those of an experiment.")
    ] = "",
) -> Any:
    """List the tables of a run's report, computed from its stored results."""
    sections = find_stored_run(app, run).report(published).sections
    blocks = [(section.heading, block) for section in sections for block in section.blocks]
    tables = [
        TableData(
            number=number,
            section=heading,
            title=block.title,
            note=block.note,
            columns=[column.label for column in block.columns],
            rows=[list(row) for row in block.rows],
        )
        for number, (heading, block) in enumerate(blocks, start=1)
        if isinstance(block, Table)
    ]
    return {"items": tables}
