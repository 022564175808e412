"""Options of the commands that can use more than one machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.output import waiting
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.distributed import WorkerPool


@dataclass(frozen=True)
class RayOptions:
    """Where local models and encoders compute."""

    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|local",
            help="Compute in workers of a Ray cluster: HOST:PORT of its head, auto, or local for one on this machine.",
        ),
    ] = None
    ray_workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that hold the model; by default one a GPU, else one a CPU.")
    ] = None
    ray_gpus_per_worker: Annotated[
        float | None, typer.Option(min=0, help="GPUs of each, or a part of one; by default 1 where there are any.")
    ] = None

    @contextmanager
    def opened(self, *, quiet: bool) -> Iterator["WorkerPool | None"]:
        """The workers; None where the command computes in its own process.

        Raises:
            InputError: The cluster cannot be joined or is too small, or its options come without ``--ray``.
            MissingExtraError: Ray is not installed.
        """
        if self.ray is None:
            if self.ray_workers is not None or self.ray_gpus_per_worker is not None:
                raise InputError("--ray-workers and --ray-gpus-per-worker go with --ray: name the cluster, or local.")
            yield None
            return
        from contextlib import ExitStack

        from climassay.distributed import ClusterOptions, open_pool

        options = ClusterOptions(self.ray, self.ray_workers, self.ray_gpus_per_worker)
        with ExitStack() as stack:
            with waiting(f"Joining Ray ({self.ray}) ...", quiet=quiet):
                pool = stack.enter_context(open_pool(options))
            yield pool
