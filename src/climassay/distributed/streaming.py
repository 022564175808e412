"""Large amounts of work through Ray Data: a dataset of jobs that streams past the workers."""

import asyncio
import pickle
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from climassay.distributed.crew import Crew
from climassay.distributed.jobs import Done, Job, Wanted


class Courier:
    """The actor of Ray Data's pool: it takes jobs from the stream to workers and puts what they did into the stream.

    The models are not in Ray Data's own actors because those end with every dataset, and a model would be loaded for
    each call. The courier computes nothing, and one of it keeps many workers busy.

    Args:
        workers: Handles of workers.
        wanted: What they need loaded.
    """

    def __init__(self, workers: Sequence[Any], wanted: Wanted) -> None:
        self._workers = workers
        self._wanted = wanted
        self._crew: Crew | None = None

    async def __call__(self, batch: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Have the jobs of a batch done, all at once."""
        if self._crew is None:
            self._crew = Crew(self._workers)  # here and not before: it belongs to the loop that calls
        jobs = [pickle.loads(job) for job in batch["job"]]
        done = await asyncio.gather(*(self._crew.do(self._wanted, job) for job in jobs))
        yield {"number": batch["number"], "done": [pickle.dumps(one) for one in done]}


def streamed(workers: Sequence[Any], wanted: Wanted, jobs: Sequence[Job]) -> Iterator[tuple[int, Done]]:
    """Do jobs through a Ray Data pipeline.

    Ray Data holds back jobs while answers are not taken, keeps them in the object store (on disk when it is full), and
    does again what was under way when the courier is lost.

    Args:
        workers: Handles of workers.
        wanted: What they need loaded.
        jobs: All of them; each is a block of the dataset.

    Yields:
        Number and outcome of each job, as they come.
    """
    import ray.data

    _be_quiet()
    rows = [{"number": number, "job": pickle.dumps(job)} for number, job in enumerate(jobs)]
    under_way = 2 * len(workers)
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        Courier,
        fn_constructor_args=(list(workers), wanted),
        batch_size=1,
        num_cpus=0,
        compute=ray.data.ActorPoolStrategy(
            size=1, max_tasks_in_flight_per_actor=2 * under_way, max_concurrent_calls_per_actor=under_way
        ),
    )
    for batch in dataset.iter_batches(batch_size=None, prefetch_batches=0):
        for number, done in zip(batch["number"], batch["done"], strict=True):
            yield int(number), pickle.loads(done)


def _be_quiet() -> None:
    """Ray Data's own progress and notes do not go over the command's progress bar."""
    import logging

    from ray.data import DataContext

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
