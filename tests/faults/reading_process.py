"""The process that reads mutated files: bounded in memory, and killed by its own clock when a file takes too long.

python tests/faults/reading_process.py MEGABYTES    orders on stdin, answers on stdout, a line of JSON each
"""

import json
import resource
import signal
import sys
import traceback
from pathlib import Path

SECONDS = 20
"""A file of a few kilobytes that takes longer on one busy core hangs its reader."""


def read_one(order: dict, catalogue: dict) -> dict:
    from climassay.errors import ClimassayError

    path = Path(order["path"])
    try:
        catalogue[order["reader"]].read(path)
    except ClimassayError as error:
        said = str(error)
        if not said.strip() or "\n" in said.strip():
            return {"outcome": "not one sentence", "said": said}
        said.encode("utf-8", "surrogateescape")
        return {"outcome": "refused", "said": said}
    except MemoryError:
        return {"outcome": "memory", "said": traceback.format_exc()[-1500:]}
    except Exception:
        return {"outcome": "traceback", "said": traceback.format_exc()[-2500:]}
    return {"outcome": "read"}


def main() -> None:
    from faults.readers import readers

    catalogue = readers()
    bytes_more = int(sys.argv[1]) << 20
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + bytes_more, used + bytes_more))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever native code it is in
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        order = json.loads(line)
        signal.alarm(SECONDS)
        answer = read_one(order, catalogue)
        signal.alarm(0)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
