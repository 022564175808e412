"""The pool of workers: started once, asked by all models and encoders of a command; a job goes to whoever is free."""

import asyncio
import os
import pickle
import queue
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

from climassay import __version__
from climassay.distributed.cluster import ClusterOptions, Share, cluster_connection
from climassay.distributed.remote import (
    DistributedEncoder,
    DistributedModel,
    EncoderSpec,
    Job,
    JobResult,
    LoadSpec,
    ModelSpec,
)
from climassay.errors import ClimassayError, ModelError
from climassay.models.contract import Encoder, Generator
from climassay.models.local.cpu_settings import THREADS_VARIABLE

ATTEMPTS = 3
"""Times that a job is tried before its requests count as failed: a job may be what kills its workers."""
PATIENCE = 600.0
"""Seconds until a worker that does not start, or does not come back, is given up."""
_PAUSE = 0.2


class Scheduler:
    """Some workers, each with one job at a time. Used from one event loop only.

    A worker joins when it first answers, and again when it has died and was started anew; meanwhile the others go on.
    So a lost node slows the work down and does not stop it.
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


_WAKE_SECONDS = 0.5
"""A Ctrl-C that comes just before a wait does not end the wait."""
_CLOSE_SECONDS = 10.0
_ADAPTER_MARK = "+adapter="

Outcome = tuple[int, JobResult | BaseException]


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
    min_streamed: int = 128
    """Minimum number of jobs for which a dataset is created."""


class Worker:
    """Lives as long as the pool, so that a model is loaded once, however many small calls there are.

    Every job says what it needs loaded. A worker that died and was started again therefore needs no further messages.

    Args:
        threads: Of torch, where the environment of its node does not say otherwise.
    """

    def __init__(self, threads: int) -> None:
        os.environ.setdefault(THREADS_VARIABLE, str(threads))
        self._loaded: dict[LoadSpec, Any] = {}

    def hello(self) -> str:
        """The version of climassay on its node."""
        return __version__

    def do(self, spec: LoadSpec, job: Job) -> JobResult:
        """Do a job with what is spec, loading it first where it is not loaded yet."""
        try:
            spec = spec.resolved()
            if spec not in self._loaded:
                self._loaded[spec] = spec.load()
            loaded = self._loaded[spec]
            before = getattr(loaded, "work", None)
            result = job.run(loaded)
        except ClimassayError as error:
            return JobResult.refused(error)
        spent = None if before is None else loaded.work - before
        return JobResult(result, loaded.fingerprint, *((0, 0) if spent is None else (spent.passes, spent.tokens)))

    def forget(self, spec: LoadSpec) -> None:
        """Give back the memory of what is not needed any more."""
        loaded = self._loaded.pop(spec, None)
        if hasattr(loaded, "close"):
            loaded.close()


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
        # A dead worker is started again without end; the scheduler decides how often a job is tried, and gives it to
        # another worker instead of waiting for the same one.
        actor = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_restarts=-1, max_task_retries=0)(Worker)
        spread = actor.options(scheduling_strategy="SPREAD")
        self._workers: list[Any] = [spread.remote(share.cpus) for _ in range(share.workers)]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="climassay-ray", daemon=True)
        self._thread.start()

        async def scheduler() -> Scheduler:
            return Scheduler(self._workers)  # made in the loop that it belongs to

        self._scheduler = asyncio.run_coroutine_threadsafe(scheduler(), self._loop).result()

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.share.workers

    def load_model(self, name: str, **options: Any) -> Generator:
        """As :func:`climassay.models.load_model`, with the weights of a local model in the workers.

        A model behind a server is asked from this process: one client keeps the server's rate limit, hundreds of
        requests are under way from it at once, and its key stays here.

        Raises:
            InputError: The name or an option is not understood.
            ModelError: A worker cannot find or load it.
        """
        from climassay.models import load_model
        from climassay.models.bundled import BUNDLED

        is_local = name.startswith("local:") or name in BUNDLED
        if not is_local or options.get("base_url") or options.get("reasoning_effort"):
            return load_model(name, **options)
        full_name = name if name.startswith("local:") else f"local:{name}"
        spec_options = {field.name: options[field.name] for field in fields(ModelSpec) if field.name in options}
        if spec_options.get("adapter"):
            spec_options["adapter"] = str(Path(spec_options["adapter"]).absolute())
        spec = ModelSpec(_anywhere(full_name), **spec_options)
        info = self.info(spec)
        # Nodes with other processors would decide for another number format, and compute another model.
        return DistributedModel(self, replace(spec, dtype=info.dtype), full_name, info)

    def load_encoder(self, name: str) -> Encoder:
        """As :func:`climassay.models.encoders.load_encoder`, in the workers.

        Raises:
            ModelError: A worker cannot find it.
        """
        spec = EncoderSpec(_anywhere(name), self.share.cpus)
        return DistributedEncoder(self, spec, name, self.info(spec))

    def info(self, spec: LoadSpec) -> Any:
        """What a model or an encoder says about itself, asked of one worker.

        Raises:
            InputError, ModelError, MissingExtraError: It cannot be loaded.
        """
        [(_, done)] = self.run(spec, [Job("info")])
        if done.lost is not None:
            raise ModelError(f"No worker could load the model: {done.lost}")
        return done.result

    def run(self, spec: LoadSpec, jobs: Iterable[Job]) -> Iterator[tuple[int, JobResult]]:
        """Have jobs done, by whichever worker is free.

        Args:
            spec: What the workers need loaded.
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
            bulk = start > 0 and len(window) >= self._windows.min_streamed
            results = streamed(self._workers, spec, window) if bulk else self._direct(spec, window)
            for number, done in results:
                yield start + number, done.checked()
            start, size = start + len(window), self._windows.later

    def forget(self, spec: LoadSpec) -> None:
        """Let the workers give back the memory of something; nobody waits for it."""
        for worker in self._workers:
            worker.forget.remote(spec)

    def close(self) -> None:
        """End the workers."""
        import ray

        async def cancel_all() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(cancel_all(), self._loop).result(timeout=_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
        for worker in self._workers:
            with suppress(Exception):
                ray.kill(worker)

    def _direct(self, spec: LoadSpec, jobs: Sequence[Job]) -> Iterator[tuple[int, JobResult]]:
        results: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(self._do_all(spec, jobs, results), self._loop)
        try:
            for _ in jobs:
                number, outcome = _next(results)
                if isinstance(outcome, BaseException):
                    raise outcome
                yield number, outcome
        finally:
            future.cancel()

    async def _do_all(self, spec: LoadSpec, jobs: Sequence[Job], results: "queue.SimpleQueue[Outcome]") -> None:
        remaining = iter(enumerate(jobs))

        async def hand_out() -> None:
            for number, job in remaining:
                try:
                    results.put((number, await self._scheduler.do(spec, job)))
                except Exception as error:
                    results.put((number, error))
                    return

        # As many as there are workers: further jobs would wait in the cluster instead of here.
        await asyncio.gather(*(hand_out() for _ in range(min(self.workers, len(jobs)))))


class JobRelay:
    """The actor of Ray Data's pool: it takes jobs from the stream to workers and puts what they did into the stream.

    The models are not in Ray Data's own actors because those end with every dataset, and a model would be loaded for
    each call. The relay computes nothing, and one of it keeps many workers busy.
    """

    def __init__(self, workers: Sequence[Any], spec: LoadSpec) -> None:
        self._workers = workers
        self._spec = spec
        self._scheduler: Scheduler | None = None

    async def __call__(self, batch: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Have the jobs of a batch done, all at once."""
        if self._scheduler is None:
            self._scheduler = Scheduler(self._workers)  # here and not before: it belongs to the loop that calls
        jobs = [pickle.loads(job) for job in batch["job"]]
        done = await asyncio.gather(*(self._scheduler.do(self._spec, job) for job in jobs))
        yield {"number": batch["number"], "done": [pickle.dumps(result) for result in done]}


def streamed(workers: Sequence[Any], spec: LoadSpec, jobs: Sequence[Job]) -> Iterator[tuple[int, JobResult]]:
    """Do jobs, each a block of the dataset, through a Ray Data pipeline; number and outcome of each, as they come.

    Ray Data holds back jobs while answers are not taken, keeps them in the object store (on disk when it is full), and
    does again what was under way when the relay is lost.
    """
    import logging

    import ray.data

    # Ray Data's own progress and notes do not go over the command's progress bar.
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    rows = [{"number": number, "job": pickle.dumps(job)} for number, job in enumerate(jobs)]
    under_way = 2 * len(workers)
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        JobRelay,
        fn_constructor_args=(list(workers), spec),
        batch_size=1,
        num_cpus=0,
        compute=ray.data.ActorPoolStrategy(
            size=1, max_tasks_in_flight_per_actor=2 * under_way, max_concurrent_calls_per_actor=under_way
        ),
    )
    for batch in dataset.iter_batches(batch_size=None, prefetch_batches=0):
        for number, done in zip(batch["number"], batch["done"], strict=True):
            yield int(number), pickle.loads(done)


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
    with cluster_connection(options) as share:
        pool = WorkerPool(share, windows)
        try:
            yield pool
        finally:
            pool.close()


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
