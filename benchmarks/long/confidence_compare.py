"""How well ``climassay confidence compare`` finds what became of stated certainty, with known truth.

    python benchmarks/long/confidence_compare.py --data ../shared/data [--draw pairs.tsv]

1. Drafts: code plants changes in the paragraphs of real summaries (levels changed, taken away and added, sentences
   dropped, added from another report, joined, reworded, paragraphs moved), and what is reported is held against them.
   SR15 was used to choose the least similarity (``--tune``); the others were run once afterwards.
2. A summary and its chapter: statements of AR6's synthesis summary beside its longer report. ``--draw`` writes pairs
   drawn at random for reading; ``confidence_compare_read.tsv`` holds the verdicts on them, without the reports' words.
"""

import argparse
import csv
import gzip
import hashlib
import json
import random
import re
from collections import Counter
from pathlib import Path

from climassay.confidence.comparison import LEAST_SIMILAR, Comparison, compare
from climassay.confidence.extraction import ExtractOptions, extract
from climassay.confidence.extraction.extracting import split_report_sentences
from climassay.confidence.marks import find_tags
from climassay.confidence.statement import Statement
from climassay.confidence.vocabulary import TAGS
from climassay.corpus.documents import Block, Document
from climassay.models.encoders import load_encoder
from climassay.statistics import proportion

READ = Path(__file__).with_name("confidence_compare_read.tsv")
SUMMARIES = {"sr15": "SPM", "srccl": "SPM", "srocc": "SPM", "syr": "SPM"}
KINDS = ("level changed", "level removed", "level added", "dropped", "added")
SEEDS = (1, 2, 3)
OTHER_WORDS = {
    "projected": "expected",
    "increase": "rise",
    "increases": "rises",
    "increased": "risen",
    "decrease": "decline",
    "decreases": "declines",
    "reduce": "lower",
    "reduced": "lowered",
    "approximately": "about",
    "significant": "marked",
    "substantially": "considerably",
    "including": "among them",
    "many": "numerous",
    "impacts": "effects",
    "impact": "effect",
    "regions": "areas",
    "continue": "go on",
    "due to": "because of",
    "such as": "for example",
    "would": "is expected to",
    "global warming": "warming of the globe",
    "climate change": "a changing climate",
    "human": "anthropogenic",
    "land": "the land surface",
    "compared to": "relative to",
    "associated with": "linked to",
    "limit": "hold back",
    "measures": "action",
    "options": "choices",
}
_OTHER = re.compile(rf"\b(?:{'|'.join(sorted(OTHER_WORDS, key=len, reverse=True))})\b")
_OPENING = re.compile(r"^((?:In|By|At|Under|For|With|Over|Since|During)\s[^,.()]{4,60}),\s+(\w)")
_BRACKETS = re.compile(r"\s\((?![^()]*(?:confidence|likely|certain|evidence|agreement))[^()]{3,80}\)")


def paragraphs(data: Path) -> dict[tuple[str, str], list[dict]]:
    """Paragraphs of body text by report and chapter."""
    found: dict[tuple[str, str], list[dict]] = {}
    with gzip.open(data / "ipcc_ar6_paragraphs.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["class"] == "body":
                found.setdefault((row["report"], row["chapter"]), []).append(row)
    return found


def statements(rows: list[dict], name: str) -> list[Statement]:
    """All sentences of paragraphs, tagged or not."""
    blocks = tuple(
        Block(row["text"], headings=tuple(row["headings"].split(" > ")), paragraph_id=row["para_id"]) for row in rows
    )
    return extract([Document(name, name, name, blocks)], ExtractOptions(untagged=True, context=0))


def reworded(sentence: str, draw: random.Random) -> str:
    """The same sentence in other words, as far as rules can: synonyms, opening moved, brackets and a part left out."""
    marks = [mark.whole for mark in find_tags(sentence) if mark.in_brackets]
    braces = [match.start() for match in re.finditer(r"[{]|\(Figure", sentence)]
    end = min([*(start for start, _ in marks), *braces], default=len(sentence))
    head, tail = _BRACKETS.sub("", sentence[:end]), sentence[end:]
    head = _OTHER.sub(lambda match: OTHER_WORDS[match.group()], head)
    parts = head.split(", ")
    inner = [place for place in range(1, len(parts) - 1) if len(parts[place]) < max(map(len, parts))]
    if inner and draw.random() < 0.5:
        cut = draw.choice(inner)
        head = ", ".join([*parts[:cut], *parts[cut + 1 :]])
    opening = _OPENING.match(head)
    if opening:
        rest = opening[2].upper() + head[opening.end() :]
        stop = "." if rest.rstrip().endswith(".") else ""
        head = f"{rest.rstrip().rstrip('.')} {opening[1][0].lower()}{opening[1][1:]}{stop} "
    return head + tail


def planted(rows: list[dict], foreign: list[str], seed: int) -> tuple[list[dict], dict[str, tuple[str, str]]]:
    """A later draft and, for each sentence touched, what happened and its new words ("" where it is dropped)."""
    draw = random.Random(seed)
    later, truth = [], {}
    for row in rows:
        sentences, last = [], ""
        for sentence in split_report_sentences(row["text"]):
            marks = [mark for mark in find_tags(sentence) if len(mark.levels) == 1 and mark.in_brackets]
            chance, new, what = draw.random(), sentence, "kept"
            if marks and chance < 0.15:
                mark = draw.choice(marks)
                level = draw.choice([tag for tag in TAGS if tag != mark.levels[0]])
                new = f"{sentence[: mark.start]}{level} confidence{sentence[mark.end :]}"
                what = "level changed"
            elif len(marks) == 1 and chance < 0.23 and not marks[0].scope:
                start, end = marks[0].whole
                new, what = f"{sentence[:start].rstrip()}{sentence[end:]}", "level removed"
            elif marks and chance < 0.31:
                new, what = "", "dropped"
            elif not find_tags(sentence) and len(sentence.split()) > 8 and sentence.endswith(".") and chance < 0.15:
                new, what = f"{sentence[:-1]} ({draw.choice(TAGS)} confidence).", "level added"
            if new and draw.random() < 0.4:
                new = reworded(new, draw)
            if new:
                sentences.append(new)
            truth[sentence] = (what, new)
            if what == "kept" and last and len(new.split()) < 30 and draw.random() < 0.15:
                # Joined with the sentence before it.
                one, other = truth[last][1].rstrip().rstrip("."), sentences.pop()
                new = f"{one}, and {other[0].lower()}{other[1:]}"
                sentences[-1] = new
                truth[last], truth[sentence] = ("kept", new), ("kept", new)
                last = ""
            else:
                last = sentence if what == "kept" and new.rstrip().endswith(".") else ""
            if foreign and draw.random() < 0.04:
                extra = foreign.pop(draw.randrange(len(foreign)))
                sentences.append(extra)
                truth[extra], last = ("added", extra), ""
        if sentences:
            later.append({**row, "text": " ".join(sentences)})
    for place in range(len(later) - 1):
        if draw.random() < 0.1:
            later[place], later[place + 1] = later[place + 1], later[place]
    return later, truth


def squeezed(text: str) -> str:
    return " ".join(text.split())


def marked(comparison: Comparison, truth: dict[str, tuple[str, str]], counts: Counter) -> None:
    """Add what was found to counts: pairs and changes, right, reported and true."""
    wanted = {squeezed(old): (what, squeezed(new)) for old, (what, new) in truth.items() if what != "added"}
    foreign = {squeezed(new) for what, new in truth.values() if what == "added"}
    reported: set[tuple[str, str, str]] = set()
    pairs: set[tuple[str, str]] = set()
    for change in comparison.changes:
        old, new = (squeezed(one.sentence) if one else "" for one in (change.old, change.new))
        if change.status in KINDS:
            reported.add(
                (change.status, old if change.status != "added" else "", new if change.status != "dropped" else "")
            )
        if old and new:
            pairs.add((old, new))
    assessed = {old for old, _ in pairs} | {squeezed(one.old.sentence) for one in comparison.changes if one.old}
    true_pairs = {(old, new) for old, (_, new) in wanted.items() if new and old in assessed}
    counts["pairs right"] += len(pairs & true_pairs)
    counts["pairs reported"] += len(pairs)
    counts["pairs true"] += len(true_pairs)
    true = {(what, old, new) for old, (what, new) in wanted.items() if what in KINDS} | {
        ("added", "", new) for new in foreign
    }
    for kind in KINDS:
        ours, theirs = ({one for one in group if one[0] == kind} for group in (reported, true))
        counts[f"{kind} right"] += len(ours & theirs)
        counts[f"{kind} reported"] += len(ours)
        counts[f"{kind} true"] += len(theirs)


def told(counts: Counter, what: str) -> str:
    right, reported, true = (counts[f"{what} {name}"] for name in ("right", "reported", "true"))
    said = []
    for name, n in (("precision", reported), ("recall", true)):
        share = proportion(right, n)
        said.append(f"{name} {share.value:.3f} ({share.interval.low:.3f} to {share.interval.high:.3f}) of {n}")
    return f"{what:14} {', '.join(said)}"


def drafts(found: dict, encoder, reports: tuple[str, ...], least: float) -> Counter:
    counts: Counter = Counter()
    for report in reports:
        rows = found[report, SUMMARIES[report]]
        others = [row for (name, _), some in found.items() if name == "wg2" for row in some[:6]]
        for seed in SEEDS:
            foreign = [
                sentence
                for row in others
                for sentence in split_report_sentences(row["text"])
                if any(mark.levels and mark.in_brackets for mark in find_tags(sentence))
            ]
            later, truth = planted(rows, foreign, seed)
            comparison = compare(statements(rows, "old"), statements(later, "new"), encoder, least_similar=least)
            marked(comparison, truth, counts)
    return counts


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draw", type=Path)
    parser.add_argument("--tune", action="store_true", help="SR15 alone, with several least similarities.")
    chosen = parser.parse_args()
    found, encoder = paragraphs(chosen.data), load_encoder()
    if chosen.tune:
        for least in (0.5, 0.6, 0.65, 0.7, 0.8):
            counts = drafts(found, encoder, ("sr15",), least)
            print(f"least similarity {least}")
            for what in ("pairs", *KINDS):
                print("  ", told(counts, what))
        return
    for least in (LEAST_SIMILAR, 0.999):
        counts = drafts(found, encoder, ("srccl", "srocc", "syr"), least)
        print(f"least similarity {least}")
        for what in ("pairs", *KINDS):
            print("  ", told(counts, what))
    summary, longer = (statements(found["syr", chapter], chapter) for chapter in ("SPM", "LongerReport"))
    comparison = compare(summary, longer, encoder, kind="summary")
    print("synthesis", {status: count for status, count in comparison.counts.items() if count})
    keyed = {
        hashlib.sha256((c.old.id + (c.new.text if c.new else "")).encode()).hexdigest()[:12]: c
        for c in comparison.changes
        if c.old
    }
    if chosen.draw:
        lines = [
            f"{key}\t{c.status}\t{c.similarity}\t{c.old.original}\t{c.new.original if c.new else ''}"
            for key, c in random.Random(22).sample(sorted(keyed.items()), 60)
        ]
        chosen.draw.write_text("\n".join(lines), encoding="utf-8")
    if READ.exists():
        with READ.open(encoding="utf-8", newline="") as file:
            verdicts = Counter(
                (("found" if keyed[row["key"]].new else "not found"), row["verdict"])
                for row in csv.DictReader(file, delimiter="\t")
                if row["key"] in keyed
            )
        print(verdicts)


if __name__ == "__main__":
    main()
