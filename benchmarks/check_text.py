"""How many false sentences does check-text mark, how many right ones, and how many planted errors in answers?

``benchmarks/data/check_text_claims.jsonl`` has pairs of a right and a false sentence on eight short sources in four
languages: contrary words, negations, other figures, names, times and places. Pairs with odd ids were looked at while
rules were developed, even ones never. With ``--judge`` a model reads each sentence with its passages as well.

``--answers``: sixty answers over the primer's books, each with two sentences that were spoilt one at a time: a number,
the sign or direction, the region, the reference, or how sure it is. ``--swapped``: code replaces figures of untouched
sentences with others of the same kind of unit from five passages found, so that the passages do have the figure, for
something else.

``--fever FILE``: claims of Climate-FEVER, each beside a single sentence of Wikipedia that people found to support or to
refute it.

    python benchmarks/check_text.py [--answers] [--swapped] [--half seen|unseen] [--judge MODEL --base-url URL]
    python benchmarks/check_text.py --fever FILE
"""

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from climassay.api.documents import add_documents
from climassay.confidence.overstatement import describe_overstatement
from climassay.corpus.documents import Passage
from climassay.grounding.answer import CollectionGroup, open_collections
from climassay.grounding.quantities import confirms, find_quantities
from climassay.grounding.support_judge import SupportJudge
from climassay.grounding.text_check import N_PASSAGES, STATUSES, CheckedSentence, check_sentences
from climassay.models import ModelOptions, load_model
from climassay.models.encoders import load_encoder
from climassay.statistics import proportion
from climassay.workspace import Workspace

CLAIMS = Path(__file__).parent / "data" / "check_text_claims.jsonl"
ANSWERS = Path(__file__).parent / "data" / "check_text_answers.jsonl"
BOOKS = ("physical_climate", "aerosols_clouds", "carbon_ice_past")
SOURCES = """

Sources:
[1] Principles of Physical Climate, The climassay authors
[2] Aerosols and Clouds in the Climate System, The climassay authors
[3] Carbon, Ice and the Past: Biogeochemistry, the Cryosphere and Palaeoclimate, The climassay authors"""
KINDS = ("number", "sign", "region", "reference", "confidence")


def check(text: str, group: CollectionGroup) -> tuple[CheckedSentence, ...]:
    return check_sentences(text, group, find_overstatement=describe_overstatement)


def pairs(half: str, judge: SupportJudge | None, *, show: bool, every: int) -> None:
    """Statuses and marks of the right and the false sentences of one half."""
    rows = [json.loads(line) for line in CLAIMS.read_text(encoding="utf-8").splitlines()]
    passages = {
        number: Passage(row["source"], row["text"], row["source"], row["source"], row["source"], number)
        for number, row in enumerate((row for row in rows if "text" in row), start=1)
    }
    encoder = load_encoder()
    statuses: dict[str, Counter[str]] = {"false": Counter(), "true": Counter()}
    marked: dict[str, list[bool]] = {"false": [], "true": []}
    own = [row for row in rows if "id" in row and (row["id"] % 2 == 1) == (half == "seen")][::every]
    for row in own:
        for truth in statuses:
            # A model reads its source alone; without one, all eight are there to be confused.
            near = passages if judge is None else {n: one for n, one in passages.items() if one.id == row["source"]}
            found = check_sentences(
                row[truth], None, encoder=encoder, passages=near, judge=judge, find_overstatement=describe_overstatement
            )
            statuses[truth][found[0].status] += 1
            marked[truth].append(any(one.marked for one in found))
            if show and marked[truth][-1] != (truth == "false"):
                tell(row["id"], f"{truth}, {row['kind']}", found[0])
    print(f"\n| {half} half, {len(own)} pairs | marked (95% interval) | {' | '.join(STATUSES)} |")
    print(f"|---|---:|{'---:|' * len(STATUSES)}")
    for truth in statuses:
        counts = " | ".join(str(statuses[truth][status]) for status in STATUSES)
        print(f"| {truth} | {share(marked[truth])} | {counts} |")


def fever(file: Path) -> None:
    """Statuses and marks of claims beside evidence that supports or refutes them, at most one of each per claim."""
    encoder = load_encoder()
    statuses: dict[str, Counter[str]] = {"REFUTES": Counter(), "SUPPORTS": Counter()}
    marked: dict[str, list[bool]] = {"REFUTES": [], "SUPPORTS": []}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for label in statuses:
            evidence = next((one["evidence"] for one in row["evidences"] if one["evidence_label"] == label), None)
            if evidence is None:
                continue
            passages = {1: Passage("p", evidence, "Wikipedia", "Wikipedia", "Wikipedia", 1)}
            found = check_sentences(row["claim"], None, encoder=encoder, passages=passages)
            statuses[label][max((one.status for one in found), key=STATUSES.index)] += 1
            marked[label].append(any(one.marked for one in found))
    print(f"\n| Climate-FEVER | marked (95% interval) | {' | '.join(STATUSES)} |")
    print(f"|---|---:|{'---:|' * len(STATUSES)}")
    for label in statuses:
        counts = " | ".join(str(statuses[label][status]) for status in STATUSES)
        print(f"| {label} | {share(marked[label])} | {counts} |")


def planted(half: str, group: CollectionGroup, *, show: bool) -> None:
    """Marks on untouched and on spoilt sentences of one half, by kind."""
    marked: dict[str, list[bool]] = defaultdict(list)
    for line in ANSWERS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if (row["id"] % 2 == 1) != (half == "seen"):
            continue
        untouched = check(" ".join(row["sentences"]) + SOURCES, group)
        assert len(untouched) == len(row["sentences"]), row["id"]
        marked["untouched"] += [one.marked for one in untouched]
        for error in row["errors"]:
            sentences = list(row["sentences"])
            sentences[error["sentence"]] = error["text"]
            found = check(" ".join(sentences) + SOURCES, group)
            marked[error["kind"]].append(found[error["sentence"]].marked)
            if show and not found[error["sentence"]].marked:
                tell(row["id"], error["kind"], found[error["sentence"]])
        if show:
            for one in untouched:
                if one.marked:
                    tell(row["id"], "untouched", one)
    spoilt = [one for kind in KINDS for one in marked[kind]]
    print(f"\n| {half} half | marked (95% interval) |\n|---|---:|")
    for name, own in [*((f"{kind} spoilt", marked[kind]) for kind in KINDS), ("all spoilt", spoilt),
                      ("untouched sentences", marked["untouched"])]:  # fmt: skip
        print(f"| {name} | {share(own)} |")
    # One spoilt sentence in an answer of three; as many answers spoilt as whole.
    told = [*[True] * sum(spoilt), *[False] * sum(marked["untouched"])]
    print(f"| precision of a mark, {len(spoilt)} spoilt beside {len(marked['untouched'])} untouched | {share(told)} |")


def swapped(half: str, group: CollectionGroup) -> None:
    """Marks on sentences one figure of which is that of something else in the passages, at most two for each figure."""
    marked = []
    for line in ANSWERS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if (row["id"] % 2 == 1) != (half == "seen"):
            continue
        for place, sentence in enumerate(row["sentences"]):
            [hits] = group.search_many([sentence], k=N_PASSAGES)
            known = [one for hit in hits for one in find_quantities(hit.passage.text)]
            for own in find_quantities(sentence):
                others = (
                    one.text
                    for one in known
                    if own.unit and one.unit and one.unit.is_kind_of(own.unit) and one.unit.rate == own.unit.rate
                    if not confirms(one, own) and not confirms(own, one)
                )
                for other in list(dict.fromkeys(others))[:2] if own.text in sentence else ():
                    sentences = list(row["sentences"])
                    sentences[place] = sentence.replace(own.text, other, 1)
                    found = check(" ".join(sentences) + SOURCES, group)
                    if len(found) == len(sentences):
                        marked.append(found[place].marked)
    print(f"\n| {half} half, a figure of something else | {share(marked)} |")


def share(values: list[bool]) -> str:
    found = proportion(sum(values), len(values))
    low, high = found.interval
    return f"{sum(values)} of {len(values)}: {found.value:.0%} ({low:.0%} to {high:.0%})"


def tell(number: int, kind: str, one: CheckedSentence) -> None:
    print(f"\n{number} {kind}: {one.text}\n   {one.status}: {one.reason} | {one.overstated}")
    for each in one.evidence:
        print(f"   {each.relation}, {each.similarity:.2f}: {each.quotation}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=("seen", "unseen", "both"), default="both")
    parser.add_argument("--answers", action="store_true", help="errors planted in answers over the primer's books")
    parser.add_argument("--swapped", action="store_true", help="figures of something else in the same answers")
    parser.add_argument("--fever", type=Path, help="climate_fever.jsonl")
    parser.add_argument("--judge", help="model that reads each sentence with its passages")
    parser.add_argument("--base-url")
    parser.add_argument("--every", type=int, default=1, help="take one in so many pairs, where a judge is slow")
    parser.add_argument("--show", action="store_true", help="print what was missed or marked wrongly: seen half only")
    given = parser.parse_args()
    if given.fever:
        fever(given.fever)
        return
    halves = ("seen", "unseen") if given.half == "both" else (given.half,)
    with TemporaryDirectory() as folder:
        if not given.answers and not given.swapped:
            options = ModelOptions(base_url=given.base_url)
            model = load_model(given.judge, options, folder=folder) if given.judge else None
            for half in halves:
                judge = None if model is None else SupportJudge(model)
                pairs(half, judge, show=given.show and half == "seen", every=given.every)
            return
        for book in BOOKS:
            add_documents(book, f"primer:{book}", workspace=folder)
        group = open_collections(Workspace(Path(folder)), BOOKS)
        for half in halves:
            if given.answers:
                planted(half, group, show=given.show and half == "seen")
            if given.swapped:
                swapped(half, group)


if __name__ == "__main__":
    main()
