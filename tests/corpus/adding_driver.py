"""Adds documents to a collection in a process of its own, and tells on which texts the encoder has worked.

Arguments: folder of collections, log file, number of the first document, number after the last, and, to die on the way,
the number of texts after whose encoding the process kills itself and the milliseconds it waits before it does so.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from climassay import load_encoder
from climassay.corpus import Block, Collection, Document
from climassay.corpus import collection as collection_adding

CHUNK = 8
PARAGRAPHS = 24
NAME = "killed"


def document(number: int) -> Document:
    """A document of 24 passages, all different, with the same word in every one."""
    blocks = tuple(
        Block(
            f"Station {number} reports in its part {part} on glaciers at level {part * 7 + number}.", chapter=f"{part}"
        )
        for part in range(PARAGRAPHS)
    )
    return Document(f"doc{number:04d}", f"Report {number}", f"report{number}.txt", blocks)


class LoggingEncoder:
    """The bundled encoder; every text is in the log, on the disk, before it is encoded."""

    def __init__(self, log: Path, kill_after: int | None, wait: float) -> None:
        self._encoder = load_encoder()
        self._log = log.open("a", encoding="utf-8")
        self._left = kill_after
        self._wait = wait
        self.name, self.fingerprint, self.width = "local:minilm", self._encoder.fingerprint, self._encoder.width

    def encode(self, texts, *, role="passage", on_progress=None):
        self._log.writelines(text.replace("\n", " ") + "\n" for text in texts)
        self._log.flush()
        os.fsync(self._log.fileno())
        vectors = self._encoder.encode(texts, role=role, on_progress=on_progress)
        if self._left is not None:
            self._left -= len(texts)
            if self._left <= 0:
                # A moment later the passages are being stored, or are stored and the next ones are being encoded.
                threading.Timer(self._wait, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return vectors


def main() -> None:
    folder, log, first, last, *kill = sys.argv[1:]
    collection_adding.CHUNK_PASSAGES = CHUNK
    encoder = LoggingEncoder(Path(log), *(int(kill[0]), float(kill[1]) / 1000) if kill else (None, 0.0))
    collection = Collection.create(folder, NAME, encoder, passage_size=160, passage_overlap=0)
    collection.add(document(number) for number in range(int(first), int(last)))


if __name__ == "__main__":
    main()
