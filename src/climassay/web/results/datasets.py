"""Generated datasets: yield, reasons for rejection, sources, and the drafts with what was decided about them."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from climassay.generation.dataset_results import dataset_report, dataset_stats
from climassay.generation.dataset_store import DatasetStore, DatasetSummary
from climassay.reporting import Report
from climassay.web.access import Reader
from climassay.web.failures import Missing
from climassay.web.pages import page
from climassay.web.place import Place, PlaceHere
from climassay.web.results.blocks import figure_at, shown_sections, table_at
from climassay.web.results.downloads import table_file
from climassay.web.results.files import as_file
from climassay.web.results.style import block_assets

router = APIRouter(include_in_schema=False)
DRAFTS = 60
"""Drafts that a page lists; a report lists more, and all are in the dataset's own export."""


def datasets_of(place: Place) -> list[DatasetSummary]:
    """The generated datasets of the workspace, the newest first."""
    return dataset_store(place).list()


@router.get("/results/datasets")
def show_datasets(request: Request, place: PlaceHere, _user: Reader) -> Response:
    """All generated datasets."""
    return page(request, "results/datasets.html.j2", datasets=datasets_of(place))


@router.get("/results/datasets/{name}")
def show_dataset(request: Request, place: PlaceHere, _user: Reader, name: str) -> Response:
    """The statistics of one dataset."""
    report = _report(place, name)
    return page(
        request,
        "results/dataset.html.j2",
        name=name,
        report=report,
        sections=shown_sections(report, f"/results/datasets/{name}"),
        **block_assets(),
    )


@router.get("/results/datasets/{name}/tables/{number}.{form}")
def send_table(place: PlaceHere, _user: Reader, name: str, number: int, form: str) -> Response:
    """One table of a dataset's page."""
    table = table_at(_report(place, name), number)
    if table is None:
        raise Missing(f"The dataset {name} has no table with the number {number}.")
    return table_file(table, form, f"{name}-{table.title}")


@router.get("/results/datasets/{name}/figures/{number}.svg")
def send_figure(place: PlaceHere, _user: Reader, name: str, number: int) -> Response:
    """One figure of a dataset's page."""
    from climassay.reporting.html import as_svg

    figure = figure_at(_report(place, name), number)
    if figure is None:
        raise Missing(f"The dataset {name} has no figure with the number {number}.")
    return as_file(as_svg(figure), f"{name}-{figure.title}.svg")


@router.get("/results/datasets/{name}/report.html")
def send_report(place: PlaceHere, _user: Reader, name: str) -> Response:
    """The dataset's report as one self-contained page."""
    return as_file(_report(place, name, None).to_html(), f"{name}.html")


def _report(place: Place, name: str, most: int | None = DRAFTS) -> Report:
    """The report of a dataset.

    Raises:
        Missing: There is no such dataset.
    """
    store = dataset_store(place)
    if name not in store:
        raise Missing(f"There is no dataset {name[:60]}.")
    drafts = list(store.placed(name))
    stats = dataset_stats(name, drafts)
    return dataset_report(stats, drafts if most is None else drafts[:most])


def dataset_store(place: Place) -> DatasetStore:
    """The generated datasets of the workspace."""
    return place.shared("results:datasets", lambda: DatasetStore(place.records))
