"""Comparisons of runs, computed once for all readers: tests over 20,000 answers take seconds."""

from collections.abc import Sequence

from climassay.errors import InputError
from climassay.evaluation.comparing import RunComparison, compare_runs
from climassay.web.place import Place
from climassay.web.results.runs import found_run
from climassay.web.results.stored_run import StoredRun


def compared(place: Place, names: Sequence[str], metric: str, level: str) -> RunComparison:
    """One metric of several runs.

    Raises:
        InputError: A run asked no questions, or there is no such metric.
    """
    runs = [comparable_run(place, name) for name in names]
    experiments = [run.experiment for run in runs if run.experiment is not None]
    key = ("comparison", *((run.id, run.digest) for run in runs), metric, level)
    return place.computed.get(key, lambda: compare_runs(experiments, metric, level=level))


def comparable_run(place: Place, name: str) -> StoredRun:
    """A run with an experiment.

    Raises:
        InputError: It asked no questions of a benchmark.
    """
    stored = found_run(place, name)
    if stored.experiment is None:
        raise InputError(f"The run {name} asked no questions of a benchmark, so that it cannot be compared.")
    return stored
