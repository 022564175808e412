"""Joining a Ray cluster, or starting one on this machine, and dividing it among workers."""

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
_STARTS = 3
"""Ray gives its own processes 30 seconds to start; a busy machine may need more, and less the next time."""
_LEFT_IN = ("RAY_", "HF_", "HUGGING")
"""Beginnings of variables that a worker needs, secret or not: to join the cluster, and to fetch a model of the hub."""
_STORE_BYTES = 512 * 1024 * 1024
"""Object store of a cluster on this machine: requests and answers are small, and what does not fit goes to disk."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Which cluster to use, and how much of it."""

    address: str = LOCAL
    """``HOST:PORT`` of a cluster's head, ``auto`` for the cluster this machine belongs to, or ``local`` to start one on
    this machine for as long as the command runs."""
    workers: int | None = None
    """Processes that hold a model each; by default one a GPU, where there are any, else one a CPU."""
    gpus_per_worker: float | None = None
    """May be a fraction, where several workers share a GPU; by default 1 where the cluster has GPUs, else 0."""


@dataclass(frozen=True, slots=True)
class Share:
    """What each worker gets."""

    workers: int
    cpus: int
    """CPUs of each worker; also its threads."""
    gpus: float
    """GPUs of each worker."""


@contextmanager
def cluster_connection(options: ClusterOptions) -> Iterator[Share]:
    """Be part of a cluster.

    Raises:
        InputError: The address is none, nothing answers there, or the cluster is too small for the workers.
        MissingExtraError: Ray is not installed.
        ModelError: Ray does not start here.
    """
    _check(options)
    # Before Ray is imported: it sends no statistics to its makers, and its C++ part leaves the terminal alone.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("--ray needs Ray: install it with `pip install 'climassay[ray]'`.") from error
    if ray.is_initialized():
        raise ModelError("This process belongs to a Ray cluster already: leave it first (ray.shutdown()).")
    try:
        _start(ray, options)
        yield divide(ray.nodes(), options)
    finally:
        with suppress(Exception):
            ray.shutdown()


def divide(nodes: Sequence[Mapping[str, Any]], options: ClusterOptions) -> Share:
    """What each worker gets of a cluster with the nodes that ``ray.nodes()`` tells of.

    Raises:
        InputError: The cluster is too small.
    """
    resources = [node["Resources"] for node in nodes if node["Alive"]]
    processors = [int(node.get("CPU", 0)) for node in resources if node.get("CPU", 0) >= 1]
    graphics = [float(node.get("GPU", 0)) for node in resources]
    cpus, gpus = sum(processors), sum(graphics)
    gpus_each = options.gpus_per_worker if options.gpus_per_worker is not None else float(gpus >= 1)
    # A worker lies within one node: what is left over of a node is of no use to it.
    max_workers = sum(int(count / gpus_each + 1e-9) for count in graphics) if gpus_each else cpus
    workers = options.workers or max(1, min(max_workers, cpus))
    if workers > max_workers or workers > cpus:
        needed = _counted(workers, "CPU") + (f" and {_counted(workers * gpus_each, 'GPU')}" if gpus_each else "")
        there = f"{_counted(cpus, 'CPU')} and {_counted(gpus, 'GPU')} on {_counted(len(resources), 'node')}"
        raise InputError(
            f"{_counted(workers, 'worker')} {'needs' if workers == 1 else 'need'} {needed}, there are {there}: "
            "use fewer with --ray-workers, or less of a GPU each with --ray-gpus-per-worker."
        )
    # The most whole CPUs that so many workers can have each, none of them across two nodes.
    each = max(processors)
    while each > 1 and sum(count // each for count in processors) < workers:
        each -= 1
    return Share(workers, each, gpus_each)


def _counted(number: float, noun: str) -> str:
    return f"{number:g} {noun}{'' if number == 1 else 's'}"


def _check(options: ClusterOptions) -> None:
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


def _start(ray: Any, options: ClusterOptions) -> None:
    import logging

    import ray._private.worker as inner

    init_options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if options.address == LOCAL:
        # Ray's workers otherwise give way to all other work of the machine, and on a busy one hardly run.
        os.environ.setdefault("RAY_worker_niceness", "0")
        init_options |= {"address": LOCAL, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
        init_options["num_cpus"] = max(os.cpu_count() or 1, options.workers or 1)
    else:
        init_options["address"] = options.address
    # Ray tells on stdout of workers that died, amid what ``--json`` prints, whatever ``ray.init`` is told, and there is
    # no public way to stop it; the scheduler tells of them itself.
    inner._worker_logs_enabled = False
    attempts = _STARTS if options.address == LOCAL else 1
    try:
        with _told_no_secrets():
            for number in range(1, attempts + 1):
                try:
                    ray.init(**init_options)
                    break
                except Exception:
                    ray.shutdown()
                    if number == attempts:
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
def _told_no_secrets() -> Iterator[None]:
    """Ray learns no key and no password.

    The processes of a cluster on this machine inherit the environment that they are started in, and need none of its
    keys. Of a cluster that is there, everybody may read the command line of its jobs, also long after they have ended;
    it may hold an address with a password.
    """
    import ray._private.utils as inner

    # There is no public way to say what Ray keeps as the command line.
    command_line = getattr(inner, "get_entrypoint_name", str)
    redacted_command_line = without_secrets(command_line())
    open_to_all = environment_without_secrets()
    hidden = {
        name: value for name, value in os.environ.items() if name not in open_to_all and not name.startswith(_LEFT_IN)
    }
    for name in hidden:
        del os.environ[name]
    inner.get_entrypoint_name = lambda: redacted_command_line
    try:
        yield
    finally:
        inner.get_entrypoint_name = command_line
        os.environ.update(hidden)
