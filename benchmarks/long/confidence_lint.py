"""Findings of ``climassay confidence lint`` in real reports, by rule and report.

    python benchmarks/long/confidence_lint.py --data ../shared/data

First the planted sets (``tests/confidence/linting/planted*.tsv``), by half: problems found where they are planted, and
correct uses with a finding. Takes about four minutes on one core: two summaries as PDF, and every paragraph of AR6's
reports. With ``--readings docs/results/confidence_lint_readings.json``, verdicts on findings drawn at random, their
shares are printed with Wilson's intervals.
"""

import argparse
import csv
import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path

from climassay.confidence.extraction.cleaning import clean_sentence
from climassay.confidence.linting import RULES, Draft, check, chosen_rules, draft_of, read_draft
from climassay.confidence.linting.checking import CERTAINTY, open_tagger, tagged_sentences, tagger_rule
from climassay.confidence.linting.term_rules import states_finding
from climassay.corpus.documents import locate_quotation
from climassay.statistics.intervals import proportion

PLANTED = Path(__file__).parents[2] / "tests" / "confidence" / "linting"
SUMMARIES = ("ipcc_ar6_wg1_spm.pdf", "ipcc_sr15_spm.pdf")


def ar6_drafts(data: Path) -> dict[str, Draft]:
    """The paragraphs of each report as one text."""
    texts: dict[str, list[str]] = defaultdict(list)
    with gzip.open(data / "ipcc_ar6_paragraphs.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["class"] == "body":
                texts[row["report"]].append(" ".join(row["text"].split()))
    return {report: draft_of("\n\n".join(found), "text", report) for report, found in texts.items()}


def tell_planted() -> None:
    """Recall on planted problems, and findings in correct uses, by set and half, alone and with a reader's."""
    for path in sorted(PLANTED.glob("planted*.tsv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
        for half in dict.fromkeys(row["half"] for row in rows):
            found: Counter[str] = Counter()
            wrong: Counter[str] = Counter()
            own = [row for row in rows if row["half"] == half]
            for row in own:
                start, end = row["text"].find("[["), row["text"].find("]]") - 2
                text = row["text"].replace("[[", "").replace("]]", "")
                findings = [one for one in check(draft_of(text, "text")).findings if one.rule != "untagged-finding"]
                named = [locate_quotation(text, words) for words in (row.get("reader") or "").split(" || ") if words]
                spans = [(one.start_offset, one.end_offset) for one in findings]
                if row["verdict"] == "problem":
                    hit = any(one < end and start < other for one, other in spans)
                    found["rules"] += hit
                    found["with a reader"] += hit or any(span and span[0] < end and start < span[1] for span in named)
                else:
                    severities = {one.severity for one in findings} | ({"note of the reader"} if named else set())
                    wrong.update(severities)
            problems = sum(row["verdict"] == "problem" for row in own)
            readers = ("rules", "with a reader") if "reader" in own[0] else ("rules",)
            shares = {name: proportion(found[name], problems) for name in readers}
            print(path.stem, half, "found", shares, "correct uses with a finding", dict(wrong))


def recall(drafts: dict[str, Draft]) -> tuple[int, int]:
    """Of sentences with one tag in brackets, how many would be found if they had none."""
    told = total = 0
    for draft in drafts.values():
        for sentence in draft.sentences:
            if len([mark for mark in sentence.marks if mark.levels and mark.in_brackets]) != 1:
                continue
            (plain,) = draft_of(clean_sentence(sentence.text), "text").sentences[:1] or (None,)
            total += 1
            told += plain is not None and states_finding(plain)
    return told, total


def tell_tagger(draft: Draft) -> None:
    """How the bundled tagger does on a summary, and where it is certain."""
    opened = open_tagger()
    asked = list(tagged_sentences(draft))
    table = opened.tagger.predict_proba([(sentence.text, context) for sentence, _, context in asked])
    levels = list(opened.tagger.levels)
    pairs = [(tag, levels[int(row.argmax())], float(row.max())) for (_, tag, _), row in zip(asked, table, strict=True)]
    certain = [pair for pair in pairs if pair[2] >= CERTAINTY]
    for name, group in (("all", pairs), (f"at least {CERTAINTY:.0%} certain", certain)):
        print("tagger", draft.name, name, proportion(sum(tag == best for tag, best, _ in group), len(group)))
    print("tagger-differs", draft.name, len(check(draft, [tagger_rule(opened.tagger, opened.accuracy)]).findings))


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--readings", type=Path)
    chosen = parser.parse_args()
    tell_planted()
    rules = chosen_rules("all")
    summaries = [read_draft(chosen.data / "pdf" / name) for name in SUMMARIES]
    drafts = ar6_drafts(chosen.data)
    for draft in [*summaries, *drafts.values()]:
        checked = check(draft, rules)
        default = sum(count for rule, count in checked.by_rule.items() if RULES[rule].default)
        found = {rule: count for rule, count in checked.by_rule.items() if count}
        print(Path(draft.name).name, draft.words, f"{1000 * default / draft.words:.2f} per 1,000 words", found)
    print("states a finding, of tagged sentences", proportion(*recall(drafts)))
    for draft in summaries:
        tell_tagger(draft)
    if chosen.readings:
        verdicts: dict[str, Counter[bool]] = defaultdict(Counter)
        for row in json.loads(chosen.readings.read_text(encoding="utf-8"))["readings"]:
            verdicts[f"{row['rule']} ({row['drawn_from']})"][row["right"]] += 1
        for name, counts in verdicts.items():
            print(name, proportion(counts[True], counts.total()))


if __name__ == "__main__":
    main()
