"""How throughput grows with workers: a simulation by discrete events, fed with what two workers really do.

Jobs go to whichever worker is free. A worker takes a drawn time for a job; then the driver, one job after the other,
takes it in: it unpacks the answers and puts them into the records. Workers may die; their job is done again, and they
are back after a while. Everything else (the network, the node's memory) is taken for free, so the result is an upper
bound.
"""

import heapq
import math
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run on a few workers tells; seconds."""

    job: float
    """A worker's mean time for a job."""
    variation: float
    """Standard deviation of that time, as a part of the mean."""
    driver: float
    """The driver's time for a job: handing it out, taking its answers in, recording them."""
    load: float = 0.0
    """A worker's time until it has loaded the model."""
    between_deaths: float = math.inf
    """Mean time until a worker dies, for example because its machine is taken away."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """What so many workers would do."""

    workers: int
    seconds: float
    """Until the last job is taken in."""
    repeated: int
    """Jobs done again because their worker had died."""
    efficiency: float
    """Part of the workers' time that went into jobs that counted."""


def simulate(jobs: int, workers: int, measured: Measured, *, seed: int = 0) -> Simulated:
    """Run the jobs.

    Args:
        jobs: Number of jobs.
        workers: Number of workers.
        measured: Where the times come from; a job's time is drawn from a log-normal distribution.
        seed: Of all draws.

    Returns:
        Times and losses; with no jobs, none.
    """
    draw = random.Random(seed)
    spread = math.sqrt(math.log1p(measured.variation**2))
    centre = math.log(measured.job) - spread**2 / 2
    free = [measured.load] * workers  # a heap of the times at which workers are free
    heapq.heapify(free)
    done: list[float] = []
    waiting, repeated, useful = jobs, 0, 0.0
    while waiting:
        start = heapq.heappop(free)
        length = draw.lognormvariate(centre, spread)
        death = draw.expovariate(1 / measured.between_deaths) if math.isfinite(measured.between_deaths) else math.inf
        if death < length:
            repeated += 1
            heapq.heappush(free, start + death + measured.load)
            continue
        waiting -= 1
        useful += length
        heapq.heappush(free, start + length)
        done.append(start + length)
    seconds = _taken_in(sorted(done), measured.driver)
    return Simulated(workers, seconds, repeated, useful / (seconds * workers) if seconds else 1.0)


def _taken_in(finished: list[float], each: float) -> float:
    """When the driver, which takes in one job at a time, has taken in the last one."""
    clock = 0.0
    for time in finished:
        clock = max(clock, time) + each
    return clock
