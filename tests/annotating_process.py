"""A process that annotates at the same moment as its siblings, and may be killed at any time.

python tests/annotating_process.py URL DATASET NAME   labels until nothing is left, printing each acknowledged key
"""

import subprocess
import sys

from climassay.generation.annotation import AnnotationStore, Label
from climassay.records import Records


def start(url: str, dataset: str, name: str) -> subprocess.Popen[str]:
    """Start an annotator that waits for a line on its standard input."""
    command = [sys.executable, __file__, url, dataset, name]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    """Let an annotator begin."""
    process.stdin.write("go\n")
    process.stdin.flush()


def main() -> None:
    url, dataset, name = sys.argv[1:]
    with Records(url) as records:
        store = AnnotationStore(records)
        print("ready", flush=True)
        sys.stdin.readline()
        while (item := store.next(dataset, name)) is not None:
            key = f"{name}-{item.draft.id}"
            assert store.label(dataset, Label(item.draft.id, name, accepted=True, key=key))
            print(key, flush=True)


if __name__ == "__main__":
    main()
