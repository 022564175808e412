"""How torch computes on a CPU: number format and threads, both found by short measurements, because no rule is right.

Processors with bfloat16 instructions (AVX512-BF16, AMX, Arm's BF16) compute a model in bfloat16 nearly twice as fast as
in float32; others only imitate it, several times slower. The format is part of a model's fingerprint, by which answers,
activations and trained files are found again, so a machine decides once: the decision lies in the cache folder.

On a machine shared with others, two threads on two busy cores can be several times slower than one, for each parallel
loop waits for the slower core; on a machine of one's own more threads are faster, up to some number.
"""

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from climassay.errors import InputError
from climassay.workspace import cache_folder

DTYPE_VARIABLE = "CLIMASSAY_DTYPE"
THREADS_VARIABLE = "CLIMASSAY_THREADS"
CPU_DTYPES = ("float32", "bfloat16")
_CLEARLY_FASTER = 1.2
_ROUNDS = 5
_HOPELESS = 2.0
_INPUTS, _OUTPUTS, _ROWS = 576, 1536, (64, 32)
"""A layer of the bundled model: tokens of a prompt, and of 32 answers side by side. Larger models gain more."""
_SECONDS_EACH = 0.15
_CLEARLY_SLOWER = 1.25
_chosen: int | None = None

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
    return _decided_dtype(cache_folder(), measure or _dtype_seconds)


@functools.cache
def _decided_dtype(folder: Path, measure: Measure) -> str:
    """The decision in the cache folder, made first where there is none; without one it holds for this process."""
    import torch

    kind = f"{processor()}\n{torch.__version__}"
    file = folder / "dtypes" / f"{hashlib.sha256(kind.encode()).hexdigest()[:32]}.json"
    if (kept := _read_dtype(file)) is not None:
        return kept
    plain, half = measure()
    found = CPU_DTYPES[half * _CLEARLY_FASTER <= plain]
    entry = {"dtype": found, "float32_seconds": plain, "bfloat16_seconds": half}
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        # Of processes that measure at the same time, the first decides for all.
        with file.open("x", encoding="utf-8") as opened:
            opened.write(json.dumps(entry))
    return _read_dtype(file) or found


def processor() -> str:
    """Name and instructions of the CPU."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        cpuinfo = ""
    # Virtual machines of several generations go by one name; their instructions tell them apart.
    lines = re.findall(r"^(?:model name|CPU part|flags|Features)\s*:.*", cpuinfo.partition("\n\n")[0], re.MULTILINE)
    return "\n".join([platform.machine(), platform.processor(), *lines])


def _read_dtype(file: Path) -> str | None:
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


def _dtype_seconds() -> tuple[float, float]:
    """The shortest CPU times of a layer's work in float32 and in bfloat16, on one thread, in turns.

    What other processes do hardly counts then. More threads share the memory's bandwidth, of which bfloat16 needs half,
    so that what one thread says holds for them.
    """
    import torch

    def seconds(dtype: torch.dtype) -> float:
        started = time.thread_time()
        for one in inputs[dtype]:
            torch.nn.functional.linear(one, weights[dtype])
        return time.thread_time() - started

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        dtypes = (torch.float32, torch.bfloat16)
        weights = {dtype: torch.ones(_OUTPUTS, _INPUTS).to(dtype) for dtype in dtypes}
        inputs = {dtype: [torch.ones(rows, _INPUTS).to(dtype) for rows in _ROWS] for dtype in dtypes}
        for dtype in dtypes:
            seconds(dtype)
        plain = half = float("inf")
        for number in range(_ROUNDS):
            plain, half = min(plain, seconds(torch.float32)), min(half, seconds(torch.bfloat16))
            if number and half > _HOPELESS * plain:
                break
        return plain, half
    finally:
        torch.set_num_threads(threads)


def choose_threads(work: Callable[[], object]) -> int:
    """Set torch's number of threads for this process, by measurement at the first call.

    ``$CLIMASSAY_THREADS`` decides instead where it is set. Later calls in the same process do nothing.

    Returns:
        The number of threads in use.

    Raises:
        InputError: ``$CLIMASSAY_THREADS`` is not a positive whole number.
    """
    global _chosen
    import torch

    if _chosen is None:
        wanted = os.environ.get(THREADS_VARIABLE)
        if wanted and (not wanted.isdecimal() or int(wanted) < 1):
            raise InputError(f"{THREADS_VARIABLE} is {wanted!r}: set it to a whole number of threads, for example 1.")
        _chosen = int(wanted) if wanted else _fastest_threads(work)
    torch.set_num_threads(_chosen)
    return _chosen


def _fastest_threads(work: Callable[[], object]) -> int:
    """Try ever more threads (powers of two, and all cores) as long as that is not clearly slower."""
    import torch

    cores = usable_cores()
    best, best_seconds = 1, float("inf")
    for threads in sorted({1 << power for power in range(cores.bit_length())} | {cores}):
        torch.set_num_threads(threads)
        seconds = _mean_seconds(work)
        if seconds < best_seconds:
            best, best_seconds = threads, seconds
        elif seconds > _CLEARLY_SLOWER * best_seconds:
            break
    return best


def gpu_devices() -> list[str]:
    """What a GPU would compute through; found without importing torch, which sees none where this is empty."""
    there = [device for device in ("/dev/nvidia0", "/dev/kfd", "/dev/dxg") if Path(device).exists()]
    return there or ["mps"] * (sys.platform == "darwin")


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _mean_seconds(work: Callable[[], object]) -> float:
    """Mean time of the work after one run to warm up; the mean and not the best, for contention is what matters."""
    started = time.perf_counter()
    work()
    if time.perf_counter() - started > 10 * _SECONDS_EACH:
        return time.perf_counter() - started
    started, runs = time.perf_counter(), 0
    while time.perf_counter() - started < _SECONDS_EACH:
        work()
        runs += 1
    return (time.perf_counter() - started) / runs
