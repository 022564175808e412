"""Choose number format and number of threads for computing models on this machine's CPU, by short measurements.

Processors with bfloat16 instructions (AVX512-BF16, AMX, Arm's BF16) compute a model in bfloat16 nearly twice as fast as
in float32; others emulate it, several times slower. The format is part of a model's fingerprint, by which answers,
activations and trained files are found again, so each machine stores its decision in the cache folder.

On a machine shared with others, two threads on two busy cores can be several times slower than one, because each
parallel loop waits for the slower core; on an idle machine more threads are faster, up to some number.
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
THREADS_VARIABLE = "CLIMASSAY_THREADS"
CPU_DTYPES = ("float32", "bfloat16")
_MIN_SPEEDUP = 1.2
_MAX_ROUNDS = 5
_MAX_SLOWDOWN = 2.0
_INPUT_WIDTH, _OUTPUT_WIDTH, _ROW_COUNTS = 576, 1536, (64, 32)
"""Input width and output width of a layer of the bundled model, and numbers of input rows to measure. The row counts
stand for 64 tokens of a prompt and for one token of each of 32 answers. Larger models gain more from bfloat16."""
_SECONDS_PER_MEASUREMENT = 0.15
_MAX_THREAD_SLOWDOWN = 1.25
_n_threads: int | None = None
Measure = Callable[[], tuple[float, float]]


def fastest_cpu_dtype(measure: Measure | None = None) -> str:
    """Return ``bfloat16`` if this CPU computes it at least 1.2 times as fast as float32, otherwise ``float32``.

    ``$CLIMASSAY_DTYPE`` overrides the measurement, which is made once per processor type and torch version (a few
    hundredths of a second) and stored in the cache folder.

    Args:
        measure: Function that returns the seconds of a computation in float32 and in bfloat16; by default, of the
            matrix products of one layer.

    Raises:
        InputError: ``$CLIMASSAY_DTYPE`` is neither float32 nor bfloat16.
    """
    value = os.environ.get(DTYPE_VARIABLE)
    if value:
        if value not in CPU_DTYPES:
            raise InputError(f"{DTYPE_VARIABLE} is {value!r}: set it to {' or '.join(CPU_DTYPES)}.")
        return value
    return measured_cpu_dtype(measure)


def measured_cpu_dtype(measure: Measure | None = None) -> str:
    """Return the CPU number format that is faster in a measurement, ignoring ``$CLIMASSAY_DTYPE``.

    See :func:`fastest_cpu_dtype`.
    """
    return _load_or_measure_dtype(cache_folder(), measure or _measure_dtypes)


@functools.cache
def _load_or_measure_dtype(folder: Path, measure: Measure) -> str:
    """Return the number format stored in a folder, or measure and store it.

    A result that cannot be stored is used for the rest of this process.
    """
    import torch

    cpu = f"{processor()}\n{torch.__version__}"
    file = folder / "dtypes" / f"{hashlib.sha256(cpu.encode()).hexdigest()[:32]}.json"
    if (stored_dtype := _read_dtype(file)) is not None:
        return stored_dtype
    float32_seconds, bfloat16_seconds = measure()
    result = CPU_DTYPES[bfloat16_seconds * _MIN_SPEEDUP <= float32_seconds]
    entry = {"dtype": result, "float32_seconds": float32_seconds, "bfloat16_seconds": bfloat16_seconds}
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        # Of processes that measure at the same time, the first decides for all.
        with file.open("x", encoding="utf-8") as handle:
            handle.write(json.dumps(entry))
    return _read_dtype(file) or result


def processor() -> str:
    """Return the name and the instruction sets of the CPU."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        cpuinfo = ""
    # Virtual machines of several generations go by one name; their instructions tell them apart.
    lines = re.findall(r"^(?:model name|CPU part|flags|Features)\s*:.*", cpuinfo.partition("\n\n")[0], re.MULTILINE)
    return "\n".join([platform.machine(), platform.processor(), *lines])


def _read_dtype(file: Path) -> str | None:
    """Return the stored number format; None if it is missing or damaged. A damaged file is removed."""
    try:
        result = json.loads(file.read_text(encoding="utf-8"))["dtype"]
    except OSError:
        return None
    except (ValueError, KeyError, TypeError):
        result = None
    if result in CPU_DTYPES:
        return str(result)
    with contextlib.suppress(OSError):
        file.unlink()
    return None


def _measure_dtypes() -> tuple[float, float]:
    """Return the minimum CPU seconds of a layer in float32 and in bfloat16, measured alternately on one thread.

    Minimum CPU times hardly depend on other processes. The comparison also holds for more threads, since they share the
    memory's bandwidth, of which bfloat16 needs half.
    """
    import torch

    def measure_seconds(dtype: torch.dtype) -> float:
        start_time = time.thread_time()
        for batch in inputs[dtype]:
            torch.nn.functional.linear(batch, weights[dtype])
        return time.thread_time() - start_time

    n_threads_before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        dtypes = (torch.float32, torch.bfloat16)
        weights = {dtype: torch.ones(_OUTPUT_WIDTH, _INPUT_WIDTH).to(dtype) for dtype in dtypes}
        inputs = {dtype: [torch.ones(rows, _INPUT_WIDTH).to(dtype) for rows in _ROW_COUNTS] for dtype in dtypes}
        for dtype in dtypes:
            measure_seconds(dtype)
        float32_seconds = bfloat16_seconds = float("inf")
        for index in range(_MAX_ROUNDS):
            float32_seconds, bfloat16_seconds = (
                min(float32_seconds, measure_seconds(torch.float32)),
                min(bfloat16_seconds, measure_seconds(torch.bfloat16)),
            )
            if index and bfloat16_seconds > _MAX_SLOWDOWN * float32_seconds:
                break
        return float32_seconds, bfloat16_seconds
    finally:
        torch.set_num_threads(n_threads_before)


def choose_threads(computation: Callable[[], object]) -> int:
    """Set torch's number of threads for this process to the number with which ``computation`` is fastest.

    The first call measures, unless ``$CLIMASSAY_THREADS`` states the number. Later calls use its result.

    Returns:
        The number of threads in use.

    Raises:
        InputError: ``$CLIMASSAY_THREADS`` is not a positive whole number.
    """
    global _n_threads
    import torch

    if _n_threads is None:
        value = os.environ.get(THREADS_VARIABLE)
        if value and (not value.isdecimal() or int(value) < 1):
            raise InputError(f"{THREADS_VARIABLE} is {value!r}: set it to a whole number of threads, for example 1.")
        _n_threads = int(value) if value else _find_fastest_threads(computation)
    torch.set_num_threads(_n_threads)
    return _n_threads


def _find_fastest_threads(computation: Callable[[], object]) -> int:
    """Try increasing numbers of threads (powers of two, and all cores) until one is clearly slower."""
    import torch

    cores = usable_cores()
    best_threads, best_seconds = 1, float("inf")
    for threads in sorted({1 << power for power in range(cores.bit_length())} | {cores}):
        torch.set_num_threads(threads)
        seconds = _measure_mean_seconds(computation)
        if seconds < best_seconds:
            best_threads, best_seconds = threads, seconds
        elif seconds > _MAX_THREAD_SLOWDOWN * best_seconds:
            break
    return best_threads


def _measure_mean_seconds(computation: Callable[[], object]) -> float:
    """Return the mean duration of a call in seconds, after one warm-up call.

    The mean includes waiting for busy cores.
    """
    start_time = time.perf_counter()
    computation()
    if time.perf_counter() - start_time > 10 * _SECONDS_PER_MEASUREMENT:
        return time.perf_counter() - start_time
    start_time, n_runs = time.perf_counter(), 0
    while time.perf_counter() - start_time < _SECONDS_PER_MEASUREMENT:
        computation()
        n_runs += 1
    return (time.perf_counter() - start_time) / n_runs


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
