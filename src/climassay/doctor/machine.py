"""Memory, cores, GPU and the cache folder."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from climassay.doctor.finding import Finding, Level

AREA = "machine"
LITTLE_MEMORY = 3 << 30
"""Bytes below which the bundled models and an encoder hardly fit beside everything else."""
LITTLE_SPACE = 2 << 30
"""Bytes of a disk below which a cache of converted models and activations soon has no room."""
NO_SPACE = 50 << 20
_GPU_DEVICES = ("/dev/nvidia0", "/dev/kfd", "/dev/dxg")


def examine_machine() -> Iterator[Finding]:
    """Memory, cores, GPU and the cache folder; torch is imported only where there is a GPU that it might see."""
    yield _memory()
    yield _cores()
    yield _gpu()
    yield _cache()
    said = "none are needed; chromium and PostgreSQL are only for climassay's own tests"
    yield Finding(AREA, "other programs", "ok", said)


def _memory() -> Finding:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return Finding(AREA, "memory", "ok", "this system does not say how much there is")
    said = f"{size / (1 << 30):.0f} GB"
    if size >= LITTLE_MEMORY:
        return Finding(AREA, "memory", "ok", said)
    return Finding(AREA, "memory", "warning", said, "Use an openai: model on a server, or a smaller collection.")


def _cores() -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = os.environ.get("CLIMASSAY_THREADS")
    return Finding(AREA, "cores", "ok", f"{usable}" + (f"; CLIMASSAY_THREADS={threads}" if threads else ""))


def _gpu() -> Finding:
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return Finding(AREA, "GPU", "ok", "torch is not installed, so none is used")
    if not (sys.platform == "darwin" or any(Path(device).exists() for device in _GPU_DEVICES)):
        return Finding(AREA, "GPU", "ok", f"none; torch {version} computes on the processor")
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        return Finding(AREA, "GPU", "ok", f"{', '.join(names)}; torch {version}")
    if sys.platform == "darwin":
        return Finding(AREA, "GPU", "ok", f"none that is used; torch {version} computes on the processor")
    said = f"there is one, but torch {version} does not see it"
    return Finding(AREA, "GPU", "warning", said, "Install the build of torch for your driver: pytorch.org")


def _cache() -> Finding:
    from climassay.workspace import CACHE_VARIABLE, cache_folder

    try:
        folder = cache_folder()
    except OSError as error:
        said, advice = f"{error.filename}: {error.strerror}", f"Name another folder in {CACHE_VARIABLE}."
        return Finding(AREA, "cache", "broken", said, advice, needed=True)
    return folder_finding(AREA, "cache", folder, f"Name another folder in {CACHE_VARIABLE}.")


def folder_finding(area: str, name: str, folder: Path, otherwise: str) -> Finding:
    """Whether a folder that is there can be written to, and how much room its disk has.

    Args:
        area: Of the finding.
        name: Of the finding.
        folder: Something is written to it, and taken away again.
        otherwise: What to do where it cannot be written to.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"climassay")
    except OSError as error:
        said = f"{folder} cannot be written to ({error.strerror})"
        return Finding(area, name, "broken", said, otherwise, needed=True)
    free = shutil.disk_usage(folder).free
    said = f"{folder}, {free / (1 << 30):.1f} GB free"
    level: Level = "broken" if free < NO_SPACE else "warning" if free < LITTLE_SPACE else "ok"
    return Finding(area, name, level, said, "" if level == "ok" else "Make room on its disk.", needed=True)
