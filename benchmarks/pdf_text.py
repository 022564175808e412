"""PDF text: our reader against pypdf on the same files in one run: pages per second, and how well the words agree.

Speed: both read every file in turn, ours from bytes to cleaned paragraphs with headings, pypdf from file to plain text
of each page; the fastest of some rounds counts, in CPU time of this one process.

Quality: the paragraphs of the same IPCC chapters, as published on the web, are the reference. Words are runs of at
least two letters in lower case. Recall is the share of the reference's words (as a multiset) that the text has,
precision the share of the text's words that the reference has. The same for runs of five words shows whether the
reading order is right: a wrong column, a running head or a figure's label in a sentence breaks them. The
reference has the body, the captions and the notes of a chapter, without its tables and list of references; so our
reader keeps captions here, and finds tables but leaves them out.

    python benchmarks/pdf_text.py [--data ../shared/data] [--rounds 3] [--json]
"""

import argparse
import gzip
import json
import logging
import re
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pypdf

from climassay.corpus.documents import ReadOptions
from climassay.corpus.readers.pdf import read_pdf

REFERENCES = {
    "ipcc_ar6_wg1_spm.pdf": "wg1_SPM",
    "ipcc_sr15_spm.pdf": "sr15_SPM",
    "ipcc_ar6_wg3_ch07_agriculture.pdf": "wg3_Chapter07",
}
ORDER = 5
# Buttons of the web page that stand behind its paragraphs and in no PDF.
_WEB_ONLY = re.compile(r"\s*\b(?:Expand|Links to (?:chapters|longer report))\b.*\Z", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True)
class Speed:
    """Fastest round of one file, in seconds of CPU time."""

    file: str
    pages: int
    ours_s: float
    pypdf_s: float

    @property
    def ratio(self) -> float:
        """How many times as fast ours is."""
        return self.pypdf_s / self.ours_s


@dataclass(frozen=True)
class Agreement:
    """Shares from 0 to 1."""

    file: str
    reader: str
    word_recall: float
    word_precision: float
    run_recall: float
    run_precision: float


def read_ours(path: Path) -> str:
    result = read_pdf(path.read_bytes(), path.name, ReadOptions(captions=True, tables=False))
    return "\n".join(block.text for document in result.documents for block in document.blocks)


def read_pypdf(path: Path) -> str:
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)


def timed(reader: Callable[[Path], str], path: Path) -> float:
    begun = time.process_time()
    reader(path)
    return time.process_time() - begun


def measure_speed(paths: list[Path], rounds: int) -> list[Speed]:
    """Alternate between the two readers, round after round."""
    seconds: dict[Path, tuple[list[float], list[float]]] = {path: ([], []) for path in paths}
    for _ in range(rounds):
        for path in paths:
            ours, theirs = seconds[path]
            ours.append(timed(read_ours, path))
            theirs.append(timed(read_pypdf, path))
    return [
        Speed(path.name, len(pypdf.PdfReader(path).pages), min(ours), min(theirs))
        for path, (ours, theirs) in seconds.items()
    ]


def words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


def runs(tokens: list[str]) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(ORDER)), strict=False))


def compare(file: str, reader: str, text: str, reference: list[str]) -> Agreement:
    found = words(text)
    expected_words: Counter[str] = Counter()
    expected_runs: Counter[tuple[str, ...]] = Counter()
    for paragraph in reference:
        tokens = words(paragraph)
        expected_words.update(tokens)
        expected_runs.update(runs(tokens))
    found_words, found_runs = Counter(found), runs(found)
    shared_words = (found_words & expected_words).total()
    shared_runs = (found_runs & expected_runs).total()
    return Agreement(
        file,
        reader,
        shared_words / expected_words.total(),
        shared_words / found_words.total(),
        shared_runs / expected_runs.total(),
        shared_runs / found_runs.total(),
    )


def reference_paragraphs(path: Path) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {name: [] for name in REFERENCES.values()}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["doc_id"] in texts:
                texts[row["doc_id"]].append(_WEB_ONLY.sub("", row["text"]))
    return texts


def measure_quality(folder: Path, paragraphs: Path) -> list[Agreement]:
    texts = reference_paragraphs(paragraphs)
    return [
        compare(file, name, reader(folder / file), texts[document])
        for file, document in REFERENCES.items()
        for name, reader in (("climassay", read_ours), ("pypdf", read_pypdf))
    ]


def print_tables(speeds: list[Speed], agreements: list[Agreement]) -> None:
    print(f"{'file':36} {'pages':>5} {'ours p/s':>9} {'pypdf p/s':>9} {'ratio':>6}")
    for speed in speeds:
        per_second = speed.pages / speed.ours_s, speed.pages / speed.pypdf_s
        print(f"{speed.file:36} {speed.pages:5} {per_second[0]:9.0f} {per_second[1]:9.1f} {speed.ratio:6.1f}")
    print(f"\n{'file':36} {'reader':10} {'word recall':>11} {'precision':>9} {'run recall':>10} {'precision':>9}")
    for row in agreements:
        shares = (row.word_recall, row.word_precision, row.run_recall, row.run_precision)
        print(f"{row.file:36} {row.reader:10} {shares[0]:11.3f} {shares[1]:9.3f} {shares[2]:10.3f} {shares[3]:9.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="PDF reading: speed and agreement, against pypdf.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with pdf/ and the paragraphs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    paths = sorted((arguments.data / "pdf").glob("*.pdf"))
    if not paths:
        sys.exit(f"There are no PDF files in {arguments.data / 'pdf'}; name the folder with --data.")
    speeds = measure_speed(paths, arguments.rounds)
    total = Speed("all", sum(s.pages for s in speeds), sum(s.ours_s for s in speeds), sum(s.pypdf_s for s in speeds))
    agreements = measure_quality(arguments.data / "pdf", arguments.data / "ipcc_ar6_paragraphs.jsonl.gz")
    rows = [*speeds, total]
    if arguments.json:
        speed_rows = [{**asdict(speed), "ratio": speed.ratio} for speed in rows]
        print(json.dumps({"speed": speed_rows, "agreement": [asdict(row) for row in agreements]}, indent=2))
    else:
        print_tables(rows, agreements)


if __name__ == "__main__":
    main()
