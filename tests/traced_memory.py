"""Memory that some code takes, traced in a process without threads: beside threads, tracemalloc crashes Python 3.11."""

import os
import subprocess
import sys


def peak_memory(setup: str, code: str) -> int:
    """Return the bytes that code takes at its peak, beside those that its set-up holds."""
    script = f"{setup}\nimport tracemalloc\ntracemalloc.start()\n{code}\nprint(tracemalloc.get_traced_memory()[1])"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return int(result.stdout.splitlines()[-1])
