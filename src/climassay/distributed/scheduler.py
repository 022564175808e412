"""Handing jobs to whichever worker is free, and doing them again elsewhere when a worker dies."""

import asyncio
from collections.abc import Sequence
from typing import Any

from climassay import __version__
from climassay.distributed.jobs import Job, JobResult, LoadSpec
from climassay.errors import ModelError

ATTEMPTS = 3
"""Times that a job is tried before its requests count as failed: a job may be what kills its workers."""
PATIENCE = 600.0
"""Seconds until a worker that does not start, or does not come back, is given up."""
_PAUSE = 0.2


class Scheduler:
    """Some workers, each with one job at a time. Used from one event loop only.

    A worker joins when it first answers, and again when it has died and was started anew; meanwhile the others go on.
    So a lost node slows the work down and does not stop it.

    Args:
        workers: Handles of :class:`climassay.distributed.pool.Worker` actors.
    """

    def __init__(self, workers: Sequence[Any]) -> None:
        self._free: asyncio.Queue[Any | None] = asyncio.Queue()
        self._left = len(workers)
        self._why = ""
        self._joining: set[asyncio.Task[None]] = set()
        for worker in workers:
            self._expect(worker)

    async def do(self, spec: LoadSpec, job: Job) -> JobResult:
        """Do a job, on another worker where one dies over it.

        Raises:
            ModelError: No worker is left.
        """
        from ray.exceptions import RayActorError, RayError

        why = ""
        for _ in range(ATTEMPTS):
            worker = await self._next()
            back = True
            try:
                done: JobResult = await worker.do.remote(spec, job)
                return done
            except RayActorError:
                back, why = False, "its worker died."
                self._expect(worker)
            except RayError as error:
                why = _sentence(error)
            finally:
                # Also when this wait was cancelled: what comes next queues up behind the job that nobody waits for.
                if back:
                    self._free.put_nowait(worker)
        return JobResult(lost=f"No answer from {ATTEMPTS} workers in turn; the last one: {why}")

    async def _next(self) -> Any:
        worker = await self._free.get()
        if worker is None:
            self._free.put_nowait(None)  # for whoever waits beside us
            raise ModelError(f"No worker of the cluster is left: {self._why}")
        return worker

    def _expect(self, worker: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._join(worker))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)

    async def _join(self, worker: Any) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                version = await _answered(worker)
        except TimeoutError:
            self._lose(f"a worker did not start within {PATIENCE:.0f} s; is another job using the cluster?")
        except Exception as error:
            self._lose(_sentence(error))
        else:
            if version == __version__:
                self._free.put_nowait(worker)
            else:
                self._lose(f"the nodes have climassay {version}, this one has {__version__}; install the same.")

    def _lose(self, why: str) -> None:
        self._left -= 1
        self._why = why
        if not self._left:
            self._free.put_nowait(None)


async def _answered(worker: Any) -> str:
    """What a worker says when it is asked for the first time, or for the first time since it died."""
    from ray.exceptions import ActorUnavailableError

    while True:
        try:
            version: str = await worker.hello.remote()
            return version
        except ActorUnavailableError:
            await asyncio.sleep(_PAUSE)


def _sentence(error: BaseException) -> str:
    """The last line of what Ray says, which is the error itself; the lines before it are the worker's traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
