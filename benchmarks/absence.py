"""How well does grounding tell what passages lack from what is said of the world?

The rule of ``climassay.grounding.citations`` was made on every second sentence; the others are held out. Sentences of
AR6 that it takes are printed: nearly all of AR6 is about the world.

    python benchmarks/absence.py [--data ../shared/data]
"""

import argparse
import gzip
import json
from pathlib import Path

from climassay.corpus.sentences import split_sentences
from climassay.grounding.absence import states_absence
from climassay.statistics import proportion

SENTENCES = Path(__file__).parent / "data" / "absence_sentences.json"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    paragraphs = parser.parse_args().data / "ipcc_ar6_paragraphs.jsonl.gz"
    print("| sentences | tuned on | held out (95% interval) |\n|---|---:|---:|")
    for kind, sentences in json.loads(SENTENCES.read_text(encoding="utf-8")).items():
        right = [states_absence(sentence) == (kind == "absence") for sentence in sentences]
        tuned, held = right[::2], right[1::2]
        share = proportion(sum(held), len(held))
        percent = [f"{100 * value:.0f}" for value in (share.value, share.interval.low, share.interval.high)]
        held_out = f"{sum(held)} of {len(held)}: {percent[0]}% ({percent[1]} to {percent[2]})"
        print(f"| {kind} | {sum(tuned)} of {len(tuned)} | {held_out} |")
    with gzip.open(paragraphs, "rt", encoding="utf-8") as lines:
        sentences = [sentence for line in lines for sentence in split_sentences(json.loads(line)["text"])]
    taken = [sentence for sentence in sentences if states_absence(sentence)]
    print(f"\nAR6: {len(taken)} of {len(sentences)} sentences taken", *taken, sep="\n- ")


if __name__ == "__main__":
    main()
