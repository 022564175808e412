"""The number format in which a local model computes on a CPU: found by a short measurement, and then kept.

Processors with bfloat16 instructions (AVX512-BF16, AMX, Arm's BF16) compute a model in bfloat16 nearly twice as fast as
in float32; others only imitate it, several times slower. The format is part of a model's fingerprint, by which answers,
activations and trained files are found again, so a machine decides once: the decision lies in the cache folder.
"""

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import time
from collections.abc import Callable
from pathlib import Path

from climassay.errors import InputError
from climassay.workspace import cache_folder

DTYPE_VARIABLE = "CLIMASSAY_DTYPE"
CPU_DTYPES = ("float32", "bfloat16")
_CLEARLY_FASTER = 1.2
_ROUNDS = 5
_HOPELESS = 2.0
_INPUTS, _OUTPUTS, _ROWS = 576, 1536, (64, 32)
"""A layer of the bundled model: tokens of a prompt, and of 32 answers side by side. Larger models gain more."""

Measure = Callable[[], tuple[float, float]]


def fastest_cpu_dtype(measure: Measure | None = None) -> str:
    """``bfloat16`` where this CPU computes it at least 1.2 times as fast as float32, ``float32`` elsewhere.

    ``$CLIMASSAY_DTYPE`` decides instead where it is set. Otherwise it is measured once for each kind of processor and
    version of torch (some hundredths of a second) and read from the cache folder from then on.

    Args:
        measure: Gives the seconds in float32 and in bfloat16; by default those of multiplying a layer's weights.

    Raises:
        InputError: ``$CLIMASSAY_DTYPE`` is neither of the two.
    """
    wanted = os.environ.get(DTYPE_VARIABLE)
    if wanted:
        if wanted not in CPU_DTYPES:
            raise InputError(f"{DTYPE_VARIABLE} is {wanted!r}: set it to {' or '.join(CPU_DTYPES)}.")
        return wanted
    return _settled(cache_folder(), measure or _seconds)


@functools.cache
def _settled(folder: Path, measure: Measure) -> str:
    """The decision in the cache folder, made first where there is none; without one it holds for this process."""
    file = folder / "dtypes" / f"{hashlib.sha256(_processor().encode()).hexdigest()[:32]}.json"
    kept = _kept(file)
    if kept is not None:
        return kept
    plain, half = measure()
    found = CPU_DTYPES[half * _CLEARLY_FASTER <= plain]
    entry = {"dtype": found, "float32_seconds": plain, "bfloat16_seconds": half}
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        # Of processes that measure at the same time, the first decides for all.
        with file.open("x", encoding="utf-8") as opened:
            opened.write(json.dumps(entry))
    return _kept(file) or found


def _kept(file: Path) -> str | None:
    """What was decided; a damaged file is removed."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))["dtype"]
    except OSError:
        return None
    except (ValueError, KeyError, TypeError):
        found = None
    if found in CPU_DTYPES:
        return str(found)
    with contextlib.suppress(OSError):
        file.unlink()
    return None


def _processor() -> str:
    """Name and instructions of the CPU, and the version of torch."""
    import torch

    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        told = ""
    # Virtual machines of several generations go by one name; their instructions tell them apart.
    lines = re.findall(r"^(?:model name|CPU part|flags|Features)\s*:.*", told.partition("\n\n")[0], re.MULTILINE)
    return "\n".join([platform.machine(), platform.processor(), *lines, torch.__version__])


def _seconds() -> tuple[float, float]:
    """The shortest CPU times of a layer's work in float32 and in bfloat16, on one thread, in turns.

    What other processes do hardly counts then. More threads share the memory's bandwidth, of which bfloat16 needs half,
    so that what one thread says holds for them.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        works = [_layer(dtype) for dtype in (torch.float32, torch.bfloat16)]
        for work in works:
            work()
        plain = half = float("inf")
        for number in range(_ROUNDS):
            plain, half = min(plain, _timed(works[0])), min(half, _timed(works[1]))
            if number and half > _HOPELESS * plain:
                break
        return plain, half
    finally:
        torch.set_num_threads(threads)


def _layer(dtype: object) -> Callable[[], None]:
    import torch

    weights = torch.ones(_OUTPUTS, _INPUTS).to(dtype)  # type: ignore[call-overload]
    inputs = [torch.ones(rows, _INPUTS).to(dtype) for rows in _ROWS]  # type: ignore[call-overload]

    def work() -> None:
        for one in inputs:
            torch.nn.functional.linear(one, weights)

    return work


def _timed(work: Callable[[], None]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started
