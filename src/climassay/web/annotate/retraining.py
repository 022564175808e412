"""Training a validator on the labels of a dataset, as a job in the background."""

from typing import Any

from climassay.web.annotate.shown import address
from climassay.web.jobs import Job, JobReport
from climassay.web.place import Place

KIND = "retrain"
"""Kind of the job."""
MOST_SHOWN = 5


def retrain_work(place: Place, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Train on what is settled, judge what waits, and put the queue into a new order."""
    from climassay.generation.annotation import retrain

    dataset = str(payload["dataset"])
    retrain(place.records, place.workspace, dataset, progress=report.progress)
    return {"page": f"{address(dataset, 'settings')}#retraining"}


def trainings(place: Place, dataset: str) -> list[Job]:
    """The last trainings of a dataset, the newest first."""
    return [job for job in place.jobs.list(KIND) if job.payload["dataset"] == dataset][:MOST_SHOWN]


def open_training(place: Place, dataset: str) -> str | None:
    """Id of a training of a dataset that waits or runs; None where there is none."""
    return next((job.id for job in trainings(place, dataset) if not job.ended), None)
