"""Connect to a Ray cluster, or start one on this machine, and divide its resources among workers."""

import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.redaction import environment_without_secrets, without_secrets

LOCAL = "local"
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[\w.-]+):(?P<port>\d{1,5})")
_CONNECT_SECONDS = 5.0
_MAX_START_ATTEMPTS = 3
"""Maximum number of attempts to start Ray. An attempt fails if the processes take more than 30 seconds, as on a busy
machine."""
_KEPT_PREFIXES = ("RAY_", "HF_", "HUGGING")
"""Prefixes of environment variables that remain set while Ray starts, even if secret: workers need them to join the
cluster and to download models."""
_OBJECT_STORE_BYTES = 512 * 1024 * 1024
"""Size of the object store of a cluster on this machine, in bytes; objects that do not fit are written to disk."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Address of a Ray cluster, and the number and size of its workers."""

    address: str = LOCAL
    """Address of a cluster's head (``HOST:PORT``); ``auto``: the cluster of this machine; ``local``: a cluster started
    on this machine for the command."""
    workers: int | None = None
    """Number of worker processes, each with its own model; by default one per GPU, or one per CPU without GPUs."""
    gpus_per_worker: float | None = None
    """Number of GPUs per worker, a fraction if workers share a GPU; by default 1 if the cluster has GPUs, else 0."""


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """Number of workers, and the resources of each worker."""

    workers: int
    cpus: int
    """Number of CPUs per worker, which is also its number of threads."""
    gpus: float
    """Number of GPUs per worker, possibly a fraction."""


@contextmanager
def cluster_connection(options: ClusterOptions) -> Iterator[WorkerResources]:
    """Join or start a cluster, yield the workers' number and resources, and leave the cluster afterwards.

    Raises:
        InputError: The address is malformed, no cluster answers there, or the cluster is too small for the workers.
        MissingExtraError: Ray is not installed.
        ModelError: Ray does not start on this machine, or this process already belongs to a cluster.
    """
    _check_options(options)
    # Set before the import of Ray, to disable usage statistics and the terminal output of its C++ part.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("--ray needs Ray: install it with `pip install 'climassay[ray]'`.") from error
    if ray.is_initialized():
        raise ModelError("This process belongs to a Ray cluster already: leave it first (ray.shutdown()).")
    try:
        _start_ray(ray, options)
        yield divide_resources(ray.nodes(), options)
    finally:
        with suppress(Exception):
            ray.shutdown()


def divide_resources(nodes: Sequence[Mapping[str, Any]], options: ClusterOptions) -> WorkerResources:
    """Divide the nodes of a cluster, as listed by ``ray.nodes()``, among workers.

    Raises:
        InputError: The cluster is too small.
    """
    resources = [node["Resources"] for node in nodes if node["Alive"]]
    cpus_by_node = [int(node.get("CPU", 0)) for node in resources if node.get("CPU", 0) >= 1]
    gpus_by_node = [float(node.get("GPU", 0)) for node in resources]
    cpus, gpus = sum(cpus_by_node), sum(gpus_by_node)
    gpus_per_worker = options.gpus_per_worker if options.gpus_per_worker is not None else float(gpus >= 1)
    # A worker cannot span nodes, so that the remainder of a node stays unused.
    max_workers = sum(int(count / gpus_per_worker + 1e-9) for count in gpus_by_node) if gpus_per_worker else cpus
    workers = options.workers or max(1, min(max_workers, cpus))
    if workers > max_workers or workers > cpus:
        required_resources = _format_count(workers, "CPU") + (
            f" and {_format_count(workers * gpus_per_worker, 'GPU')}" if gpus_per_worker else ""
        )
        available_resources = (
            f"{_format_count(cpus, 'CPU')} and {_format_count(gpus, 'GPU')} on {_format_count(len(resources), 'node')}"
        )
        raise InputError(
            f"{_format_count(workers, 'worker')} {'needs' if workers == 1 else 'need'} {required_resources}, "
            f"there are {available_resources}: use fewer with --ray-workers, or less of a GPU each "
            "with --ray-gpus-per-worker."
        )
    # Maximum number of CPUs per worker such that all workers fit, none of them across two nodes.
    cpus_per_worker = max(cpus_by_node)
    while cpus_per_worker > 1 and sum(count // cpus_per_worker for count in cpus_by_node) < workers:
        cpus_per_worker -= 1
    return WorkerResources(workers, cpus_per_worker, gpus_per_worker)


def _format_count(number: float, noun: str) -> str:
    return f"{number:g} {noun}{'' if number == 1 else 's'}"


def _check_options(options: ClusterOptions) -> None:
    if options.workers is not None and options.workers < 1:
        raise InputError(f"{options.workers} workers cannot do any work: use at least one.")
    if options.gpus_per_worker is not None and options.gpus_per_worker < 0:
        raise InputError(f"A worker cannot have {options.gpus_per_worker:g} GPUs.")
    if options.address in (LOCAL, "auto"):
        return
    match = _ADDRESS.fullmatch(options.address)
    if match is None:
        raise InputError(
            f"--ray takes HOST:PORT of a cluster's head, auto or local, not {options.address!r}; "
            "a command joins a cluster from one of its machines, not through ray://."
        )
    # Ray itself tries for minutes.
    try:
        with socket.create_connection((match["host"].strip("[]"), int(match["port"])), _CONNECT_SECONDS):
            pass
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "no answer"
        raise InputError(
            f"No Ray cluster answers at {options.address} ({reason.lower()}): "
            "start one with `ray start --head`, or write --ray local."
        ) from error


def _start_ray(ray: Any, options: ClusterOptions) -> None:
    import logging

    import ray._private.worker as ray_worker

    init_options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if options.address == LOCAL:
        # By default Ray's workers have a low priority, and hardly run on a busy machine.
        os.environ.setdefault("RAY_worker_niceness", "0")
        init_options |= {"address": LOCAL, "include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
        init_options["num_cpus"] = max(os.cpu_count() or 1, options.workers or 1)
    else:
        init_options["address"] = options.address
    # Ray prints the deaths of workers to stdout, amid the output of ``--json``, and no public setting prevents it. The
    # scheduler reports them itself.
    ray_worker._worker_logs_enabled = False
    attempts = _MAX_START_ATTEMPTS if options.address == LOCAL else 1
    try:
        with _hide_secrets():
            for attempt in range(1, attempts + 1):
                try:
                    ray.init(**init_options)
                    break
                except Exception:
                    ray.shutdown()
                    if attempt == attempts:
                        raise
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = lines[0].rstrip(".") if lines else type(error).__name__
        if options.address == LOCAL:
            raise ModelError(f"Ray does not start on this machine ({reason}).") from error
        raise InputError(
            f"The Ray cluster {options.address} cannot be joined ({reason}): run the command on one of its machines, "
            "with the same versions of Ray and Python."
        ) from error


@contextmanager
def _hide_secrets() -> Iterator[None]:
    """Remove keys and passwords from the environment while Ray starts.

    The processes of a cluster on this machine inherit the environment, and need none of its keys. Every user of an
    existing cluster can read the command lines of its jobs, even of old ones; these may contain passwords.
    """
    import ray._private.utils as ray_utils

    # Ray has no public setting for the command line that it stores.
    command_line = getattr(ray_utils, "get_entrypoint_name", str)
    redacted_command_line = without_secrets(command_line())
    public_environment = environment_without_secrets()
    secret_variables = {
        name: value
        for name, value in os.environ.items()
        if name not in public_environment and not name.startswith(_KEPT_PREFIXES)
    }
    for name in secret_variables:
        del os.environ[name]
    ray_utils.get_entrypoint_name = lambda: redacted_command_line
    try:
        yield
    finally:
        ray_utils.get_entrypoint_name = command_line
        os.environ.update(secret_variables)
