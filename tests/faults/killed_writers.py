"""Writers that are killed at the last moment before their file would appear, each in a process of its own.

python tests/faults/killed_writers.py FOLDER    prints what became of each file, as JSON
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

EARLIER = b"what was there before"


def writers() -> dict[str, Callable[[Path], object]]:
    """What writes a file of the user's, by name."""
    from climassay.confidence.topics import write_names, write_topics
    from climassay.generation import write_drafts
    from climassay.generation.annotation import AnnotationSettings, write_annotations
    from climassay.io import write_file
    from climassay.models.openai.finetuning import FineTuningState, write_state
    from generated_drafts import draft
    from planted_statements import planted, topics_of, write_statements

    statements = planted(1, ("cloud", "ocean"))
    return {
        "a file": lambda path: write_file(path, b"new" * 1000),
        "a text": lambda path: write_file(path, "a,b\n" * 1000),
        "drafts": lambda path: write_drafts(path, [draft(number) for number in range(5)]),
        "statements": lambda path: write_statements(statements, path),
        "topics": lambda path: write_topics(topics_of(statements, [0, 1]), path),
        "names": lambda path: write_names(path, []),
        "annotations": lambda path: write_annotations(path, "silver", AnnotationSettings(), [], []),
        "a fine-tuning": lambda path: write_state(FineTuningState("http://x", "m", "a" * 64), path),
        "a trained head": _save_probe,
    }


def _save_probe(path: Path) -> None:
    import numpy as np

    from climassay.judging import Probe
    from climassay.learning import Provenance

    Probe("pair", *np.ones((2, 4)), 1.0, 0.0, Provenance(settings={"method": "supervised"})).save(path)


def killed_in(work: Callable[[], object]) -> int:
    """Do something in a child that is killed when it would rename; the signal that ended it."""
    child = os.fork()
    if child == 0:

        def die(*_: object, **__: object) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        Path.replace = Path.rename = os.replace = os.rename = die  # type: ignore[method-assign, assignment]
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    found = {}
    for name, write in writers().items():
        path = Path(sys.argv[1]) / name / "file"
        path.parent.mkdir()
        path.write_bytes(EARLIER)
        ended = killed_in(lambda write=write, path=path: write(path))
        kept = path.read_bytes() == EARLIER
        write(path)
        found[name] = {"ended": ended, "kept": kept, "written": path.read_bytes() != EARLIER}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
