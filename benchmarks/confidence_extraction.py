"""Extracting statements beside reading the same PDF: pages per second, and how many times as long both take together.

Each round reads and extracts every file in turn; the fastest round counts, in CPU time of this one process.

    python benchmarks/confidence_extraction.py [--data ../shared/data] [--rounds 3] [--json]
"""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pypdfium2

from climassay.confidence.extraction import ExtractOptions, extract
from climassay.corpus.readers.file_types import read

FILES = ("ipcc_ar6_wg1_spm.pdf", "ipcc_sr15_spm.pdf", "ipcc_ar6_wg3_ch07_agriculture.pdf")
THICK_REPORT = 3000


@dataclass(frozen=True)
class Speed:
    """Fastest round of one file, in seconds of CPU time."""

    file: str
    pages: int
    statements: int
    read_s: float
    extract_s: float

    @property
    def pages_per_second(self) -> float:
        """Of reading and extracting together."""
        return self.pages / (self.read_s + self.extract_s)

    @property
    def ratio(self) -> float:
        """Reading and extracting, in times of reading alone."""
        return (self.read_s + self.extract_s) / self.read_s

    @property
    def minutes_of_a_thick_report(self) -> float:
        """Minutes for 3,000 pages like these."""
        return THICK_REPORT / self.pages_per_second / 60


def measure(path: Path, rounds: int) -> Speed:
    reads, extracts, statements = [], [], 0
    for _ in range(rounds):
        begun = time.process_time()
        documents = read(path).documents
        middle = time.process_time()
        statements = len(extract(documents, ExtractOptions()))
        reads.append(middle - begun)
        extracts.append(time.process_time() - middle)
    return Speed(path.name, len(pypdfium2.PdfDocument(path)), statements, min(reads), min(extracts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    paths = [path for name in FILES if (path := given.data / "pdf" / name).exists()]
    if not paths:
        sys.exit(f"None of the PDF files is in {given.data / 'pdf'}.")
    speeds = [measure(path, given.rounds) for path in paths]
    if given.json:
        print(json.dumps([asdict(speed) for speed in speeds], indent=1))
        return
    headings = ("pages", "statements", "read s", "extract s", "pages/s", "ratio", "3000 pages")
    widths = (5, 10, 7, 9, 8, 6, 11)
    print(f"{'file':36} " + " ".join(f"{word:>{width}}" for word, width in zip(headings, widths, strict=True)))
    for one in speeds:
        print(
            f"{one.file:36} {one.pages:5} {one.statements:10} {one.read_s:7.2f} {one.extract_s:9.2f} "
            f"{one.pages_per_second:8.1f} {one.ratio:6.2f} {one.minutes_of_a_thick_report:7.1f} min"
        )


if __name__ == "__main__":
    main()
