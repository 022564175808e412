"""One process of the cluster that keeps models in memory and does jobs with them."""

import os
from typing import Any

from climassay import __version__
from climassay.distributed.jobs import Done, Job, Wanted
from climassay.errors import ClimassayError
from climassay.models.threads import THREADS_VARIABLE


class Worker:
    """Lives as long as the pool, so that a model is loaded once, however many small calls there are.

    Every job says what it needs loaded. A worker that died and was started again therefore needs to be told nothing.

    Args:
        threads: Of torch, where the environment of its node does not say otherwise.
    """

    def __init__(self, threads: int) -> None:
        os.environ.setdefault(THREADS_VARIABLE, str(threads))
        self._loaded: dict[Wanted, Any] = {}

    def hello(self) -> str:
        """The version of climassay on its node."""
        return __version__

    def do(self, wanted: Wanted, job: Job) -> Done:
        """Do a job with what is wanted, loading it first where it is not loaded yet."""
        try:
            loaded = self._load(wanted)
            before = getattr(loaded, "work", None)
            result = job.run(loaded)
        except ClimassayError as error:
            return Done.refused(error)
        spent = None if before is None else loaded.work - before
        return Done(result, loaded.fingerprint, *((0, 0) if spent is None else (spent.passes, spent.tokens)))

    def forget(self, wanted: Wanted) -> None:
        """Give back the memory of what is not needed any more."""
        loaded = self._loaded.pop(wanted, None)
        if hasattr(loaded, "close"):
            loaded.close()

    def _load(self, wanted: Wanted) -> Any:
        wanted = wanted.settled()
        if wanted not in self._loaded:
            self._loaded[wanted] = wanted.load()
        return self._loaded[wanted]
