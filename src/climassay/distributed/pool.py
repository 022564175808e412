"""Pool of workers that all models and encoders of a command share; each job is run by a free worker."""

import asyncio
import os
import pickle
import queue
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from climassay import __version__
from climassay.distributed.cluster import ClusterOptions, WorkerResources, cluster_connection
from climassay.distributed.remote import (
    DistributedEncoder,
    DistributedModel,
    EncoderSpec,
    JobResult,
    LoadSpec,
    ModelArguments,
    RemoteCall,
)
from climassay.errors import ClimassayError, ModelError
from climassay.models import ModelOptions
from climassay.models.contract import Encoder, Generator
from climassay.models.local.cpu_settings import THREADS_VARIABLE

ATTEMPTS = 3
"""Maximum number of attempts at a job before its requests fail. The number is limited because a job may crash its
workers."""
MAX_START_SECONDS = 600.0
"""Maximum number of seconds to wait until a worker has started or restarted."""
_POLL_SECONDS = 0.2


class WorkerScheduler:
    """Scheduler that gives each worker one job at a time; used from one event loop only.

    A worker is available as soon as it answers after its start or restart. The other workers continue meanwhile, so
    that a lost node slows the work down without stopping it.
    """

    def __init__(self, workers: Sequence[Any]) -> None:
        self._free_workers: asyncio.Queue[Any | None] = asyncio.Queue()
        self._n_workers = len(workers)
        self._loss_reason = ""
        self._start_tasks: set[asyncio.Task[None]] = set()
        for worker in workers:
            self._watch_start(worker)

    async def run_job(self, spec: LoadSpec, job: RemoteCall) -> JobResult:
        """Run a job on a free worker. If the job fails, run it on another worker, up to ``ATTEMPTS`` times in all.

        If all attempts fail, :attr:`JobResult.failure_reason` of the result states the reason.

        Raises:
            ModelError: No worker is left.
        """
        from ray.exceptions import RayActorError, RayError

        failure_reason = ""
        for _ in range(ATTEMPTS):
            worker = await self._next_worker()
            is_available = True
            try:
                result: JobResult = await worker.run_job.remote(spec, job)
                return result
            except RayActorError:
                is_available, failure_reason = False, "its worker died."
                self._watch_start(worker)
            except RayError as error:
                failure_reason = _last_line(error)
            finally:
                # Also if this task was cancelled: the worker runs its next job after the abandoned one.
                if is_available:
                    self._free_workers.put_nowait(worker)
        return JobResult(failure_reason=f"No answer from {ATTEMPTS} workers in turn; the last one: {failure_reason}")

    async def _next_worker(self) -> Any:
        worker = await self._free_workers.get()
        if worker is None:
            self._free_workers.put_nowait(None)  # wakes the next waiting task
            raise ModelError(f"No worker of the cluster is left: {self._loss_reason}")
        return worker

    def _watch_start(self, worker: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._add_when_ready(worker))
        self._start_tasks.add(task)
        task.add_done_callback(self._start_tasks.discard)

    async def _add_when_ready(self, worker: Any) -> None:
        try:
            async with asyncio.timeout(MAX_START_SECONDS):
                version = await _wait_for_version(worker)
        except TimeoutError:
            self._remove_worker(
                f"a worker did not start within {MAX_START_SECONDS:.0f} s; is another job using the cluster?"
            )
        except Exception as error:
            self._remove_worker(_last_line(error))
        else:
            if version == __version__:
                self._free_workers.put_nowait(worker)
            else:
                self._remove_worker(
                    f"the nodes have climassay {version}, this one has {__version__}; install the same."
                )

    def _remove_worker(self, reason: str) -> None:
        self._n_workers -= 1
        self._loss_reason = reason
        if not self._n_workers:
            self._free_workers.put_nowait(None)


async def _wait_for_version(worker: Any) -> str:
    """Return a worker's version of climassay, polling until the worker has started or restarted."""
    from ray.exceptions import ActorUnavailableError

    while True:
        try:
            version: str = await worker.version.remote()
            return version
        except ActorUnavailableError:
            await asyncio.sleep(_POLL_SECONDS)


def _last_line(error: BaseException) -> str:
    """Return the last line of a Ray error, which follows the worker's traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


_WAKE_SECONDS = 0.5
"""Maximum duration of one wait for a result, in seconds. The duration is limited because a Ctrl-C just before a wait
does not interrupt it."""
_CLOSE_SECONDS = 10.0
_ADAPTER_SEPARATOR = "+adapter="

IndexedResult = tuple[int, JobResult | BaseException]


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """Sizes of the batches into which the jobs of one call are divided for scheduling."""

    first: int = 64
    """Maximum number of jobs in the first batch, which is sent to the workers without a Ray Data dataset."""
    later: int = 512
    """Maximum number of jobs in each batch after the first. The requests and answers of a batch are in the cluster at
    the same time."""
    min_streamed: int = 128
    """Minimum number of jobs for which a Ray Data dataset is created."""


class Worker:
    """Ray actor that loads each model once and runs jobs on it, for the lifetime of the pool.

    Every job comes with the spec of its model, so that a restarted worker loads the model again.

    Args:
        threads: Number of torch threads, unless ``$CLIMASSAY_THREADS`` states it on the node.
    """

    def __init__(self, threads: int) -> None:
        os.environ.setdefault(THREADS_VARIABLE, str(threads))
        self._loaded: dict[LoadSpec, Any] = {}

    def version(self) -> str:
        """Return the version of climassay on the worker's node."""
        return __version__

    def run_job(self, spec: LoadSpec, job: RemoteCall) -> JobResult:
        """Run a job on the model or encoder of ``spec``, loading it if necessary.

        Errors that every worker would raise are returned as :attr:`JobResult.error`.
        """
        try:
            spec = spec.resolved()
            if spec not in self._loaded:
                self._loaded[spec] = spec.load()
            instance = self._loaded[spec]
            work_before = getattr(instance, "work", None)
            result = job.run(instance)
        except ClimassayError as error:
            return JobResult.from_error(error)
        work = None if work_before is None else instance.work - work_before
        return JobResult(result, instance.fingerprint, *((0, 0) if work is None else (work.passes, work.tokens)))

    def forget(self, spec: LoadSpec) -> None:
        """Unload a model or encoder."""
        instance = self._loaded.pop(spec, None)
        if hasattr(instance, "close"):
            instance.close()


class WorkerPool:
    """Pool of workers that load models and run jobs; opened by :func:`open_pool`."""

    def __init__(self, resources: WorkerResources, batch_sizes: BatchSizes | None = None) -> None:
        import ray

        self.resources = resources
        self._batch_sizes = batch_sizes or BatchSizes()
        # Ray restarts dead workers without limit. The scheduler limits the attempts at a job and retries it on another
        # worker instead of waiting for the same one.
        actor = ray.remote(num_cpus=resources.cpus, num_gpus=resources.gpus, max_restarts=-1, max_task_retries=0)(
            Worker
        )
        spread_actor = actor.options(scheduling_strategy="SPREAD")
        self._workers: list[Any] = [spread_actor.remote(resources.cpus) for _ in range(resources.workers)]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="climassay-ray", daemon=True)
        self._thread.start()

        async def create_scheduler() -> WorkerScheduler:
            return WorkerScheduler(self._workers)  # created in its own event loop

        self._scheduler = asyncio.run_coroutine_threadsafe(create_scheduler(), self._loop).result()

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.resources.workers

    def load_model(
        self, name: str, options: ModelOptions = ModelOptions(), *, folder: Path | str | None = None
    ) -> Generator:
        """Load a model, a local one into the workers; see :func:`climassay.models.load_model`.

        Requests to a model behind a server are sent from this process: a single client respects the server's rate limit
        and sends hundreds of requests concurrently, and its key stays on this machine.

        Raises:
            InputError: The name or an option is invalid.
            ModelError: A worker cannot find or load the model.
        """
        from climassay.models import load_model
        from climassay.models.bundled import BUNDLED

        is_local = name.startswith("local:") or name in BUNDLED
        if not is_local or options != options.fitting(name):
            return load_model(name, options, folder=folder)
        full_name = name if name.startswith("local:") else f"local:{name}"
        spec = ModelArguments(
            _with_absolute_paths(full_name),
            options.device,
            options.dtype,
            str(Path(options.adapter).absolute()) if options.adapter else None,
            options.concurrency,
            options.max_output_tokens,
        )
        info = self.info(spec)
        # Nodes with other processors would choose another number format, and so get other results.
        return DistributedModel(self, replace(spec, dtype=info.dtype), full_name, info)

    def load_encoder(self, name: str) -> Encoder:
        """Load an encoder in the workers; see :func:`climassay.models.encoders.load_encoder`.

        Raises:
            ModelError: A worker cannot find the encoder.
        """
        spec = EncoderSpec(_with_absolute_paths(name), self.resources.cpus)
        return DistributedEncoder(self, spec, name, self.info(spec))

    def info(self, spec: LoadSpec) -> Any:
        """Load a model or encoder in one worker and return its :class:`ModelInfo` or :class:`EncoderInfo`.

        Raises:
            InputError, ModelError, MissingExtraError: The model or encoder cannot be loaded.
        """
        [(_, job_result)] = self.run(spec, [RemoteCall("info")])
        if job_result.failure_reason is not None:
            raise ModelError(f"No worker could load the model: {job_result.failure_reason}")
        return job_result.result

    def run(self, spec: LoadSpec, jobs: Iterable[RemoteCall]) -> Iterator[tuple[int, JobResult]]:
        """Run jobs on free workers.

        Args:
            spec: Model or encoder of the jobs.
            jobs: Jobs, which are taken from the iterable one batch at a time.

        Yields:
            Index and result of each job, in order of completion. Closing the iterator abandons the running jobs.

        Raises:
            InputError, ModelError, MissingExtraError: A worker raised this error, or no worker is left.
        """
        source, size, start = iter(jobs), self._batch_sizes.first, 0
        while batch := list(islice(source, size)):
            # The first batch gives results at once; only later batches can be large enough for a dataset.
            uses_dataset = start > 0 and len(batch) >= self._batch_sizes.min_streamed
            batch_results = (
                run_streamed(self._workers, spec, batch) if uses_dataset else self._run_directly(spec, batch)
            )
            for number, result in batch_results:
                yield start + number, result.raise_for_error()
            start, size = start + len(batch), self._batch_sizes.later

    def forget(self, spec: LoadSpec) -> None:
        """Unload a model or encoder in all workers, without waiting for them."""
        for worker in self._workers:
            worker.forget.remote(spec)

    def close(self) -> None:
        """Cancel running jobs, and end the workers."""
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

    def _run_directly(self, spec: LoadSpec, jobs: Sequence[RemoteCall]) -> Iterator[tuple[int, JobResult]]:
        results: queue.SimpleQueue[IndexedResult] = queue.SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(self._run_all(spec, jobs, results), self._loop)
        try:
            for _ in jobs:
                number, outcome = _next_result(results)
                if isinstance(outcome, BaseException):
                    raise outcome
                yield number, outcome
        finally:
            future.cancel()

    async def _run_all(
        self, spec: LoadSpec, jobs: Sequence[RemoteCall], results: "queue.SimpleQueue[IndexedResult]"
    ) -> None:
        remaining_jobs = iter(enumerate(jobs))

        async def run_jobs() -> None:
            for number, job in remaining_jobs:
                try:
                    results.put((number, await self._scheduler.run_job(spec, job)))
                except Exception as error:
                    results.put((number, error))
                    return

        # One task per worker, so that further jobs wait here and not in the cluster.
        await asyncio.gather(*(run_jobs() for _ in range(min(self.workers, len(jobs)))))


class JobForwarder:
    """Ray Data actor that passes streamed jobs to the workers and returns their results to the stream.

    Ray Data's own actors end with every dataset, and would therefore load the model again for each call. The
    forwarder computes nothing itself, and one forwarder keeps many workers busy.
    """

    def __init__(self, workers: Sequence[Any], spec: LoadSpec) -> None:
        self._workers = workers
        self._spec = spec
        self._scheduler: WorkerScheduler | None = None

    async def __call__(self, batch: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Run all jobs of a batch concurrently and yield the jobs' numbers and pickled results."""
        if self._scheduler is None:
            self._scheduler = WorkerScheduler(self._workers)  # created here, in the calling event loop
        jobs = [pickle.loads(job) for job in batch["job"]]
        results = await asyncio.gather(*(self._scheduler.run_job(self._spec, job) for job in jobs))
        yield {"number": batch["number"], "done": [pickle.dumps(result) for result in results]}


def run_streamed(workers: Sequence[Any], spec: LoadSpec, jobs: Sequence[RemoteCall]) -> Iterator[tuple[int, JobResult]]:
    """Run jobs through a Ray Data pipeline; yield the index and result of each, in order of completion.

    Each job is a block of the dataset. Ray Data starts no further jobs until finished results are consumed. It spills
    results to disk if the object store is full, and repeats running jobs if the forwarder is lost.
    """
    import logging

    import ray.data

    # Ray Data's own messages would overwrite the command's progress bar.
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    rows = [{"number": number, "job": pickle.dumps(job)} for number, job in enumerate(jobs)]
    max_jobs_in_flight = 2 * len(workers)
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        JobForwarder,
        fn_constructor_args=(list(workers), spec),
        batch_size=1,
        num_cpus=0,
        compute=ray.data.ActorPoolStrategy(
            size=1,
            max_tasks_in_flight_per_actor=2 * max_jobs_in_flight,
            max_concurrent_calls_per_actor=max_jobs_in_flight,
        ),
    )
    for batch in dataset.iter_batches(batch_size=None, prefetch_batches=0):
        for number, pickled_result in zip(batch["number"], batch["done"], strict=True):
            yield int(number), pickle.loads(pickled_result)


@contextmanager
def open_pool(options: ClusterOptions, *, batch_sizes: BatchSizes | None = None) -> Iterator[WorkerPool]:
    """Join or start a cluster and start workers in it; the workers end when the context exits.

    Raises:
        InputError: The cluster cannot be joined, or is too small.
        MissingExtraError: Ray is not installed.
        ModelError: Ray does not start here.

    Example:
        >>> with open_pool(ClusterOptions("local", workers=2)) as pool:
        ...     model = pool.load_model("local:smollm2")
    """
    with cluster_connection(options) as worker_resources:
        pool = WorkerPool(worker_resources, batch_sizes)
        try:
            yield pool
        finally:
            pool.close()


def _with_absolute_paths(name: str) -> str:
    """Return a ``local:`` model name with absolute paths, since workers run in other folders."""
    prefix, _, rest = name.partition(":")
    model, separator, adapter = rest.partition(_ADAPTER_SEPARATOR)
    return f"{prefix}:{_absolute_path(model)}{separator}{_absolute_path(adapter)}"


def _absolute_path(name: str) -> str:
    from climassay.models.bundled import BUNDLED

    path = Path(name).expanduser()
    return str(path.absolute()) if name and name not in BUNDLED and path.is_dir() else name


def _next_result(results: "queue.SimpleQueue[IndexedResult]") -> IndexedResult:
    while True:
        with suppress(queue.Empty):
            return results.get(timeout=_WAKE_SECONDS)
