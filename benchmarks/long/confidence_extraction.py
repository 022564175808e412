"""How well statements and their levels are extracted: three comparisons with what others found in the same reports.

1. AR6 paragraphs: the levels found in each paragraph beside the list of levels that the file gives with it (a set, made
   by a search for "LEVEL confidence"), by report; every difference is put into a class.
2. ClimateX: how many of its statements of the three AR6 working groups are found (by shared words), with which level.
3. The summaries for policymakers of SR15 and of WG1 in AR6: statements from the PDF beside those from the web's
   paragraphs of the same text.
4. Levels that a predicate gives ("confidence in hail remains low"): how many, by report; ``--predicates`` prints them.

    python benchmarks/long/confidence_extraction.py [--data ../shared/data] [--json] [--predicates]
"""

import argparse
import csv
import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from climassay.confidence.extraction import ExtractOptions, extract, normalise_words
from climassay.confidence.extraction.cleaning import clean_sentence
from climassay.confidence.statement import Statement
from climassay.confidence.tags import find_tags
from climassay.corpus.readers.file_types import read
from climassay.statistics import proportion

PARAGRAPHS = "ipcc_ar6_paragraphs.jsonl.gz"
CLIMATEX = "climatex_train.tsv"
SUMMARIES = {"ipcc_sr15_spm.pdf": "sr15", "ipcc_ar6_wg1_spm.pdf": "wg1"}
OVERLAP = 0.8
"""Shared words, as a share of the shorter of two statements, from which on they are the same statement."""
FEWEST_WORDS = 4
_WORD = re.compile(r"[^\W\d_]{2,}")
_PREDICATE = re.compile(r"confiden\w*\b.*(?:low|medium|high)\W*$|highly\s+confident", re.IGNORECASE | re.DOTALL)


def words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(normalise_words(text)))


def share(successes: int, n: int) -> dict[str, float | int]:
    if not n:
        return {"n": 0}
    estimate = proportion(successes, n)
    return {
        "n": n,
        "hits": successes,
        "share": estimate.value,
        "low": estimate.interval.low,
        "high": estimate.interval.high,
    }


# 1. ---------------------------------------------------------------------------------------------------------------


def paragraphs_agreement(rows: Sequence[dict], statements: Iterable[Statement]) -> dict:
    """Levels by paragraph, as often as they are there, beside the file's own list."""
    found: dict[tuple, Counter[str]] = defaultdict(Counter)
    for one in statements:
        found[(one.working_group, one.chapter, one.paragraph_id)][str(one.tag)] += 1
    listed: dict[tuple, Counter[str]] = defaultdict(Counter)
    texts: dict[tuple, str] = defaultdict(str)
    for row in rows:
        key = (row["report"].upper(), row["chapter"], row["para_id"])
        listed[key].update(row["confidence_tags"])
        texts[key] += " " + row["text"]
    by_report: dict[str, Counter] = defaultdict(Counter)
    classes: Counter[str] = Counter()
    examples: dict[str, list[str]] = defaultdict(list)
    for key, text in texts.items():
        ours, theirs = found.get(key, Counter()), listed[key]
        counts = by_report[key[0]]
        counts["paragraphs"] += bool(ours or theirs)
        counts["same"] += ours == theirs and bool(ours)
        counts["both"] += (ours & theirs).total()
        counts["ours"] += ours.total()
        counts["theirs"] += theirs.total()
        for side, more in ((True, ours - theirs), (False, theirs - ours)):
            for level, times in more.items():
                kind = difference(text, level, side)
                classes[kind] += times
                examples[kind].append(f"{key[0]} {key[1]} {key[2]}: {level}")
    reports = {}
    for report, counts in [*by_report.items(), ("all", sum(by_report.values(), Counter()))]:
        reports[report] = {
            "same_paragraph": share(counts["same"], counts["paragraphs"]),
            "recall": share(counts["both"], counts["theirs"]),
            "precision": share(counts["both"], counts["ours"]),
        }
    some = {kind: found_there[:5] for kind, found_there in examples.items()}
    return {"reports": reports, "differences": dict(classes.most_common()), "examples": some}


def difference(text: str, level: str, ours: bool) -> str:
    """Why one of both sides has a level in a paragraph oftener than the other."""
    marks = [mark for mark in find_tags(text) if level in mark.levels]
    plain = re.findall(rf"(?<!very ){level} confidence\b", text, re.IGNORECASE)
    if ours:
        odd = any(not re.fullmatch(rf"{level} confidence", text[mark.start : mark.end], re.I) for mark in marks)
        return f"ours only: {'broken, glued or ranged words' if odd else 'plain words that the list lacks'}"
    if re.search(rf"{level} confidence (?:interval|limit|bound|range)", text, re.IGNORECASE):
        return "theirs only: an interval of statistics"
    if len(marks) < len(plain):
        return "theirs only: not seen as a mark"
    if any(mark.attributive for mark in marks):
        return "theirs only: before a noun, hyphenated"
    if any(len(mark.levels) > 1 and mark.level != level for mark in marks):
        return "theirs only: lower end of a range"
    return "theirs only: explains the vocabulary, or has no words of its own"


# 2. ---------------------------------------------------------------------------------------------------------------


class Index:
    """Finds statements by shared words."""

    def __init__(self, statements: Sequence[Statement]):
        self.statements = statements
        self.words = [words_of(one.text) for one in statements]
        self.places: dict[str, list[int]] = defaultdict(list)
        for place, words in enumerate(self.words):
            for word in words:
                self.places[word].append(place)
        self.limit = max(200, len(statements) // 20)

    def find(self, text: str) -> list[int]:
        """Places of the statements that share at least :data:`OVERLAP` of the shorter one's words, best first."""
        words = words_of(text)
        rare = sorted(words, key=lambda word: len(self.places.get(word, ())))
        shared: Counter[int] = Counter()
        for word in rare:
            places = self.places.get(word, [])
            if len(places) <= self.limit or not shared:
                shared.update(places)
        scored = []
        for place, _ in shared.most_common(60):
            both = len(words & self.words[place])
            shorter = min(len(words), len(self.words[place]))
            if shorter >= FEWEST_WORDS and both / shorter >= OVERLAP:
                scored.append((both / len(words | self.words[place]), both / shorter, place))
        return [place for _, _, place in sorted(scored, reverse=True)]


def climatex_agreement(path: Path, rows_of_file: Sequence[dict], statements: Sequence[Statement]) -> dict:
    """ClimateX's statements among ours."""
    groups = {"AR6_WGI": "WG1", "AR6_WGII": "WG2", "AR6_WGIII": "WG3"}
    paragraphs = Paragraphs(rows_of_file)
    indexes = {name: Index([one for one in statements if one.working_group == group]) for name, group in groups.items()}
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    counts: dict[str, Counter] = defaultdict(Counter)
    classes: Counter[str] = Counter()
    examples: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        index = indexes[row["report"]]
        text = clean_sentence(row["statement"])
        places = index.find(text)
        for name in (row["report"], "all"):
            counts[name]["n"] += 1
            counts[name]["found"] += bool(places)
        if not places:
            kind = _not_found(text, groups[row["report"]], paragraphs)
            classes[kind] += 1
            examples[kind].append(f"{row['statement_idx']} {text[:90]}")
            continue
        # ClimateX keeps a sentence whole up to its last level: of the parts that are ours, any may be meant.
        tags = {index.statements[place].tag for place in places if _same_sentence(index, places[0], place)}
        best = index.statements[places[0]].tag == row["confidence"]
        for name in (row["report"], "all"):
            counts[name]["best"] += best
            counts[name]["any"] += row["confidence"] in tags
        if row["confidence"] not in tags:
            classes[f"other level: {row['confidence']} there, {' and '.join(sorted(map(str, tags)))} here"] += 1
    return {
        "reports": {
            name: {
                "found": share(one["found"], one["n"]),
                "same_level_nearest": share(one["best"], one["found"]),
                "same_level_of_sentence": share(one["any"], one["found"]),
            }
            for name, one in counts.items()
        },
        "differences": dict(classes.most_common(16)),
        "examples": {kind: some[:: max(1, len(some) // 12)] for kind, some in examples.items()},
    }


def _same_sentence(index: Index, one: int, other: int) -> bool:
    first, second = index.statements[one].id, index.statements[other].id
    return first.rsplit(".", 1)[0] == second.rsplit(".", 1)[0] or index.words[one] == index.words[other]


class Paragraphs:
    """Tells whether the words of a statement stand in one paragraph of the file at all."""

    def __init__(self, rows: Sequence[dict]):
        self.words: dict[str, list[frozenset[str]]] = defaultdict(list)
        self.places: dict[tuple[str, str], set[int]] = defaultdict(set)
        for row in rows:
            group = row["report"].upper()
            words = words_of(row["text"])
            for word in words:
                self.places[group, word].add(len(self.words[group]))
            self.words[group].append(words)

    def hold(self, group: str, text: str) -> bool:
        """Whether four fifths of the words of a text are in one paragraph of a report."""
        words = words_of(text)
        rare = sorted(words, key=lambda word: len(self.places.get((group, word), ())))[:12]
        near = set().union(*(self.places.get((group, word), set()) for word in rare[:6])) if rare else set()
        return any(len(words & self.words[group][place]) >= OVERLAP * len(words) for place in near)


def _not_found(text: str, group: str, paragraphs: Paragraphs) -> str:
    if len(words_of(text)) < FEWEST_WORDS:
        return "not found: fewer than four words"
    if not paragraphs.hold(group, text):
        return "not found: no paragraph of the file has these words"
    return "not found: the words are there, no statement of ours shares four fifths of them"


# 3. ---------------------------------------------------------------------------------------------------------------


def summaries_agreement(data: Path, statements: Sequence[Statement]) -> dict:
    """Statements of two PDFs beside those of the same text's paragraphs on the web."""
    found = {}
    for name, report in SUMMARIES.items():
        group = report.upper()
        web = [one for one in statements if one.working_group == group and one.chapter == "SPM"]
        pdf = extract(read(data / "pdf" / name).documents, ExtractOptions(acronyms="never", paragraph_tags="never"))
        pairs = matched(pdf, web)
        found[name] = {
            "pdf": len(pdf),
            "web": len(web),
            "recall": share(len(pairs), len(web)),
            "precision": share(len(pairs), len(pdf)),
            "only_pdf": [one.text[:80] for place, one in enumerate(pdf) if place not in {a for a, _ in pairs}],
            "only_web": [one.text[:80] for place, one in enumerate(web) if place not in {b for _, b in pairs}],
        }
    return found


def matched(left: Sequence[Statement], right: Sequence[Statement]) -> list[tuple[int, int]]:
    """Pairs of statements of the same level and words, each in one pair."""
    candidates = []
    words = [words_of(one.text) for one in right]
    for a, one in enumerate(left):
        mine = words_of(one.text)
        for b, other in enumerate(right):
            both = len(mine & words[b])
            if one.tag == other.tag and both >= OVERLAP * max(len(mine), len(words[b])):
                candidates.append((both / max(1, len(mine | words[b])), a, b))
    pairs, used_left, used_right = [], set(), set()
    for _, a, b in sorted(candidates, key=lambda one: (-one[0], one[1:])):
        if a not in used_left and b not in used_right:
            used_left.add(a)
            used_right.add(b)
            pairs.append((a, b))
    return pairs


# 4. ---------------------------------------------------------------------------------------------------------------


def predicates(statements: Sequence[Statement]) -> list[Statement]:
    """Statements whose level stands behind the word "confidence"."""
    return [one for one in statements if _PREDICATE.search(one.sentence[one.start : one.end])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--predicates", action="store_true", help="Print the sentences of the fourth part.")
    given = parser.parse_args()
    with gzip.open(given.data / PARAGRAPHS, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    # Others leave acronyms as they are.
    statements = extract(
        read(given.data / PARAGRAPHS).documents, ExtractOptions(acronyms="never", paragraph_tags="never")
    )
    said = predicates(statements)
    if given.predicates:
        for one in said:
            print(one.report, one.chapter, one.tag, one.sentence, sep="\t")
        return
    result = {
        "statements": len(statements),
        "repeated": sum(one.duplicate_of is not None for one in statements),
        "paragraphs": paragraphs_agreement(rows, statements),
        "climatex": climatex_agreement(given.data / CLIMATEX, rows, statements),
        "summaries": summaries_agreement(given.data, statements),
        "predicates": dict(Counter(one.report for one in said)),
    }
    json.dump(result, sys.stdout, indent=None if given.json else 1, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
