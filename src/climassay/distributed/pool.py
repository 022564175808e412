"""The pool of workers: started once, asked by as many models and encoders as a command uses."""

import asyncio
import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.distributed.cluster import ClusterOptions, Share, joined
from climassay.distributed.crew import Crew
from climassay.distributed.jobs import (
    Done,
    EncoderFrontJob,
    Job,
    ModelFrontJob,
    Wanted,
    WantedEncoder,
    WantedModel,
)
from climassay.distributed.streaming import streamed
from climassay.distributed.worker import Worker
from climassay.models.contract import Encoder, Generator

if TYPE_CHECKING:
    from climassay.models.openai_prices import Price
    from climassay.models.openai_retry import RetryPolicy

_WAKE_SECONDS = 0.5
"""A Ctrl-C that comes just before a wait does not end the wait."""
_CLOSE_SECONDS = 10.0
_ADAPTER_MARK = "+adapter="

Outcome = tuple[int, Done | BaseException]


@dataclass(frozen=True, slots=True)
class Windows:
    """How many jobs of one call are looked at together.

    A dataset of Ray Data takes seconds to begin, whatever is in it. So the first jobs of a call go to the workers
    directly, which is all there is of the many small calls of a debate; what comes after them is streamed, if it is
    much.
    """

    first: int = 64
    """Jobs that are handed out directly."""
    later: int = 512
    """Jobs of a dataset; their requests and answers are in the cluster at the same time."""
    least: int = 128
    """Jobs that a dataset is worth."""


class WorkerPool:
    """Workers that hold models and do jobs. Made by :func:`open_pool`.

    Args:
        share: How many workers, and what each gets of the cluster.
        windows: Which jobs go through Ray Data.
    """

    def __init__(self, share: Share, windows: Windows | None = None) -> None:
        import ray

        self.share = share
        self._windows = windows or Windows()
        # A dead worker is started again without end; how often a job is tried is for the crew to say, which gives it to
        # another worker instead of waiting for the same one.
        actor = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_restarts=-1, max_task_retries=0)(Worker)
        spread = actor.options(scheduling_strategy="SPREAD")
        self._workers: list[Any] = [spread.remote(share.cpus) for _ in range(share.workers)]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="climassay-ray", daemon=True)
        self._thread.start()
        self._crew = asyncio.run_coroutine_threadsafe(self._make_crew(), self._loop).result()

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.share.workers

    def load_model(
        self,
        name: str,
        *,
        base_url: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        adapter: str | None = None,
        concurrency: int | None = None,
        price: "Price | None" = None,
        policy: "RetryPolicy | None" = None,
        max_output_tokens: int | None = None,
        reasoning_effort: str | None = None,
        folder: Path | None = None,
    ) -> Generator:
        """As :func:`climassay.models.load_model`, with the weights of a local model in the workers.

        A model behind a server is asked from this process: one client keeps the server's rate limit, hundreds of
        requests are under way from it at once, and its key stays here.

        Raises:
            InputError: The name or an option is not understood.
            ModelError: A worker cannot find or load it.
        """
        from climassay.distributed.model import DistributedModel
        from climassay.models import load_model
        from climassay.models.bundled import BUNDLED

        if not (name.startswith("local:") or name in BUNDLED) or (base_url or reasoning_effort) is not None:
            return load_model(
                name,
                base_url=base_url,
                device=device,
                dtype=dtype,
                adapter=adapter,
                concurrency=concurrency,
                price=price,
                policy=policy,
                max_output_tokens=max_output_tokens,
                reasoning_effort=reasoning_effort,
                folder=folder,
            )
        shown = name if name.startswith("local:") else f"local:{name}"
        placed = adapter and str(Path(adapter).absolute())
        wanted = WantedModel(_anywhere(shown), device, dtype, placed, concurrency, max_output_tokens)
        front = self.front(wanted, ModelFrontJob())
        # Nodes with other processors would decide for another number format, and compute another model.
        return DistributedModel(self, replace(wanted, dtype=front.dtype), shown, front)

    def load_encoder(self, name: str) -> Encoder:
        """As :func:`climassay.models.encoder.load_encoder`, in the workers.

        Raises:
            ModelError: A worker cannot find it.
        """
        from climassay.distributed.encoder import DistributedEncoder

        wanted = WantedEncoder(_anywhere(name), self.share.cpus)
        return DistributedEncoder(self, wanted, name, self.front(wanted, EncoderFrontJob()))

    def front(self, wanted: Wanted, job: Job) -> Any:
        """What something wanted says about itself, asked of one worker.

        Raises:
            InputError, ModelError, MissingExtraError: It cannot be loaded.
        """
        from climassay.errors import ModelError

        [(_, done)] = self.run(wanted, [job])
        if done.lost is not None:
            raise ModelError(f"No worker could load the model: {done.lost}")
        return done.result

    def run(self, wanted: Wanted, jobs: Iterable[Job]) -> Iterator[tuple[int, Done]]:
        """Have jobs done, by whichever worker is free.

        Args:
            wanted: What the workers need loaded.
            jobs: Taken as they are needed; those behind the first window are read ahead.

        Yields:
            Number and outcome of each job, as they come. What was yielded is done; whoever stops taking loses what is
            under way.

        Raises:
            InputError, ModelError, MissingExtraError: The call as a whole is at fault, or no worker is left.
        """
        source, size, start = iter(jobs), self._windows.first, 0
        while window := list(islice(source, size)):
            # The first window has results at once; only what comes after it can be worth a dataset.
            bulk = start > 0 and len(window) >= self._windows.least
            results = streamed(self._workers, wanted, window) if bulk else self._direct(wanted, window)
            for number, done in results:
                yield start + number, done.checked()
            start, size = start + len(window), self._windows.later

    def forget(self, wanted: Wanted) -> None:
        """Let the workers give back the memory of something; nobody waits for it."""
        for worker in self._workers:
            worker.forget.remote(wanted)

    def close(self) -> None:
        """End the workers."""
        import ray

        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_cancelled_all(), self._loop).result(timeout=_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
        for worker in self._workers:
            with suppress(Exception):
                ray.kill(worker)

    async def _make_crew(self) -> Crew:
        return Crew(self._workers)

    def _direct(self, wanted: Wanted, jobs: Sequence[Job]) -> Iterator[tuple[int, Done]]:
        results: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        whole = asyncio.run_coroutine_threadsafe(self._do_all(wanted, jobs, results), self._loop)
        try:
            for _ in jobs:
                number, outcome = _next(results)
                if isinstance(outcome, BaseException):
                    raise outcome
                yield number, outcome
        finally:
            whole.cancel()

    async def _do_all(self, wanted: Wanted, jobs: Sequence[Job], results: "queue.SimpleQueue[Outcome]") -> None:
        remaining = iter(enumerate(jobs))

        async def hand_out() -> None:
            for number, job in remaining:
                try:
                    results.put((number, await self._crew.do(wanted, job)))
                except Exception as error:
                    results.put((number, error))
                    return

        # As many as there are workers: further jobs would wait in the cluster instead of here.
        await asyncio.gather(*(hand_out() for _ in range(min(self.workers, len(jobs)))))


@contextmanager
def open_pool(options: ClusterOptions, *, windows: Windows | None = None) -> Iterator[WorkerPool]:
    """Join or start a cluster and start workers in it; all of it ends with the context.

    Raises:
        InputError: The cluster cannot be joined, or is too small.
        MissingExtraError: Ray is not installed.
        ModelError: Ray does not start here.

    Example:
        >>> with open_pool(ClusterOptions("local", workers=2)) as pool:
        ...     model = pool.load_model("local:smollm2")
    """
    with joined(options) as share:
        pool = WorkerPool(share, windows)
        try:
            yield pool
        finally:
            pool.close()


def shares(count: int, workers: int, most: int) -> int:
    """Requests of a job: a quarter of a worker's share, so that none is waited for long, and at most ``most``."""
    return max(1, min(most, -(-count // (4 * workers))))


async def _cancelled_all() -> None:
    """End whatever still waits in this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _anywhere(name: str) -> str:
    """A ``local:`` name with its folders as whole paths, since workers run in other folders."""
    prefix, _, rest = name.partition(":")
    model, mark, adapter = rest.partition(_ADAPTER_MARK)
    return f"{prefix}:{_absolute(model)}{mark}{_absolute(adapter)}"


def _absolute(name: str) -> str:
    from climassay.models.bundled import BUNDLED

    path = Path(name).expanduser()
    return str(path.absolute()) if name and name not in BUNDLED and path.is_dir() else name


def _next(results: "queue.SimpleQueue[Outcome]") -> Outcome:
    while True:
        with suppress(queue.Empty):
            return results.get(timeout=_WAKE_SECONDS)
