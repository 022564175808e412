"""Findings of ``climassay confidence lint`` in real reports, by rule and report.

    python benchmarks/long/confidence_lint.py --data ../shared/data [--show 10]

First the planted sets (``tests/confidence/linting/planted*.tsv``): problems found where they are planted, and correct
uses with a finding, by the rules alone and with what a strong reader named. Then two summaries as PDF and every
paragraph of AR6's reports, which takes about seven minutes on one core. ``--show`` prints findings drawn at random.
"""

import argparse
import csv
import gzip
import json
import random
from collections import Counter, defaultdict
from pathlib import Path

from climassay.confidence.linting import Manuscript, check, draft_of, read_draft
from climassay.corpus.documents import Block
from climassay.corpus.sentences import locate_quotation
from climassay.statistics.intervals import proportion

PLANTED = Path(__file__).parents[2] / "tests" / "confidence" / "linting"
SUMMARIES = ("ipcc_ar6_wg1_spm.pdf", "ipcc_sr15_spm.pdf")


def ar6_drafts(data: Path) -> dict[str, Manuscript]:
    """The paragraphs of each report as one text."""
    texts: dict[str, list[str]] = defaultdict(list)
    with gzip.open(data / "ipcc_ar6_paragraphs.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["class"] == "body":
                texts[row["report"]].append(" ".join(row["text"].split()))
    return {report: Manuscript(report, tuple(map(Block, found))) for report, found in texts.items()}


def tell_planted() -> None:
    """Print recall on planted problems and the share of correct uses with a finding, by set."""
    for path in sorted(PLANTED.glob("planted*.tsv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
        found: Counter[str] = Counter()
        for row in rows:
            start, end = row["text"].find("[["), row["text"].find("]]") - 2
            text = row["text"].replace("[[", "").replace("]]", "")
            spans = [(one.start, one.end) for one in check(draft_of(text, "text")).findings]
            named = [locate_quotation(text, words) for words in row["reader"].split(" || ") if words]
            problem = row["verdict"] == "problem"
            for name, some in (("rules", spans), ("with a reader", [*spans, *filter(None, named)])):
                found[f"{row['verdict']}, {name}"] += any(
                    not problem or (one < end and start < other) for one, other in some
                )
        for name, count in sorted(found.items()):
            print(path.stem, name, proportion(count, sum(row["verdict"] == name.split(",")[0] for row in rows)))


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="Print so many findings of each rule.")
    options = parser.parse_args()
    tell_planted()
    summaries = [read_draft(options.data / "pdf" / name) for name in SUMMARIES]
    drawn: dict[str, list[str]] = defaultdict(list)
    for draft in [*summaries, *ar6_drafts(options.data).values()]:
        checked = check(draft)
        found = {rule: count for rule, count in checked.by_rule.items() if count}
        print(Path(draft.name).name, draft.words, f"{1000 * len(checked.findings) / draft.words:.3f} per 1,000", found)
        for one in checked.findings:
            drawn[one.rule].append(f"{Path(draft.name).name}: {draft.text[max(0, one.start - 80) : one.end + 20]}")
    generator = random.Random(1)
    for rule, places in drawn.items():
        for place in generator.sample(places, min(options.show, len(places))):
            print(rule, place, sep="\t")


if __name__ == "__main__":
    main()
