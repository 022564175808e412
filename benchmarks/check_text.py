"""How many planted errors does check-text find, and how many untouched sentences does it mark?

Sixty answers over the primer's books, each with two sentences that were spoilt one at a time: a number, the sign or
direction, the region, the reference, or how sure it is. Odd ids were looked at while thresholds were chosen, even ones
never. With ``--chatreport`` also: does the least supported sentence tell answers that people found unfaithful?

With ``--swapped`` code replaces figures of untouched sentences with others of the same kind of unit from five passages
found, so that the passages do have the figure, for something else.

    python benchmarks/check_text.py [--swapped] [--half seen|unseen] [--chatreport FILE]
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from climassay.api.documents import add_documents
from climassay.confidence.overstatement import overstatement
from climassay.corpus.documents import Passage
from climassay.grounding.answer import CollectionGroup, open_collections
from climassay.grounding.quantities import backs, quantities
from climassay.grounding.text_check import PASSAGES, CheckedSentence, Thresholds, check_sentences
from climassay.learning import auroc_estimate
from climassay.metrics.entailment_head import bundled_entailment
from climassay.statistics import proportion
from climassay.workspace import Workspace

ANSWERS = Path(__file__).parent / "data" / "check_text_answers.jsonl"
BOOKS = ("physical_climate", "aerosols_clouds", "carbon_ice_past")
SOURCES = """

Sources:
[1] Principles of Physical Climate, The climassay authors
[2] Aerosols and Clouds in the Climate System, The climassay authors
[3] Carbon, Ice and the Past: Biogeochemistry, the Cryosphere and Palaeoclimate, The climassay authors"""
KINDS = ("number", "sign", "region", "reference", "confidence")


def check(text: str, group: CollectionGroup, thresholds: Thresholds) -> tuple[CheckedSentence, ...]:
    return check_sentences(
        text, group, scorer=bundled_entailment(), overstated=overstatement, thresholds=thresholds
    )  # fmt: skip


def planted(half: str, group: CollectionGroup, thresholds: Thresholds, *, show: bool) -> None:
    """Marks on untouched and on spoilt sentences of one half, by kind."""
    marked: dict[str, list[bool]] = defaultdict(list)
    for line in ANSWERS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if (row["id"] % 2 == 1) != (half == "seen"):
            continue
        untouched = check(" ".join(row["sentences"]) + SOURCES, group, thresholds)
        assert len(untouched) == len(row["sentences"]), row["id"]
        marked["untouched"] += [one.marked for one in untouched]
        for error in row["errors"]:
            sentences = list(row["sentences"])
            sentences[error["sentence"]] = error["text"]
            found = check(" ".join(sentences) + SOURCES, group, thresholds)
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


def swapped(half: str, group: CollectionGroup, thresholds: Thresholds) -> None:
    """Marks on sentences one figure of which is that of something else in the passages, at most two for each figure."""
    marked = []
    for line in ANSWERS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if (row["id"] % 2 == 1) != (half == "seen"):
            continue
        for place, sentence in enumerate(row["sentences"]):
            [hits] = group.search_many([sentence], k=PASSAGES)
            known = [one for hit in hits for one in quantities(hit.passage.text)]
            for own in quantities(sentence):
                others = (
                    one.text
                    for one in known
                    if own.unit and one.unit and one.unit.is_kind_of(own.unit) and one.unit.rate == own.unit.rate
                    if not backs(one, own) and not backs(own, one)
                )
                for other in list(dict.fromkeys(others))[:2] if own.text in sentence else ():
                    sentences = list(row["sentences"])
                    sentences[place] = sentence.replace(own.text, other, 1)
                    found = check(" ".join(sentences) + SOURCES, group, thresholds)
                    if len(found) == len(sentences):
                        marked.append(found[place].marked)
    print(f"\n| {half} half, a figure of something else | {share(marked)} |")


def share(values: list[bool]) -> str:
    found = proportion(sum(values), len(values))
    low, high = found.interval
    return f"{sum(values)} of {len(values)}: {found.value:.0%} ({low:.0%} to {high:.0%})"


def tell(number: int, kind: str, one: CheckedSentence) -> None:
    print(f"\n{number} {kind}: {one.text}\n   {one.status} {one.support:.2f}: {one.reason} | {one.overstated}")
    if one.evidence:
        near = one.evidence
        print(f"   {near.similarity:.2f} {near.confirms:.2f} {near.contradicts:.2f} {near.quotation}")


def chatreport(file: Path, thresholds: Thresholds) -> None:
    """AUROC of the least support of an answer's sentences, within reports; and precision of marks."""
    scorer = bundled_entailment()
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    scores, marks = [], []
    for row in rows:
        given = {
            number: Passage(f"{row['report']}-{name}", text, row["report"], row["report"], row["report"], number)
            for number, (name, text) in enumerate(row["cited"].items(), start=1)
        }
        found = check_sentences(
            row["answer"],
            None,
            scorer=scorer,
            encoder=scorer.head.encoder,
            passages=given,
            thresholds=thresholds,
        )
        claims = [one for one in found if one.status != "no claim"]
        scores.append(-min((one.support for one in claims), default=1.0))
        marks.append(any(one.marked for one in claims))
    _, groups = np.unique([row["report"] for row in rows], return_inverse=True)
    print(
        "\n| ChatReport, unfaithful in | AUROC, by least support | answers marked | precision of a mark | unfaithful |"
    )
    print("|---|---:|---:|---:|---:|")
    for name in ("content_faithful", "sources_faithful"):
        truth = np.array([1 - int(row[name]) for row in rows])
        found = auroc_estimate(truth, np.array(scores), groups=groups, folds=groups)
        right = [bool(one) for one, mark in zip(truth, marks, strict=True) if mark]
        low, high = found.interval
        cells = (
            name.removesuffix("_faithful"),
            f"{found.value:.3f} ({low:.3f} to {high:.3f})",
            f"{sum(marks)} of {len(marks)}",
            share(right),
            f"{truth.mean():.0%}",
        )
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=("seen", "unseen", "both"), default="both")
    parser.add_argument("--chatreport", type=Path)
    parser.add_argument("--swapped", action="store_true", help="figures of something else in place of planted errors")
    parser.add_argument("--show", action="store_true", help="print what was missed or marked wrongly: seen half only")
    parser.add_argument("--supported", type=float, default=Thresholds().supported)
    parser.add_argument("--contradicted", type=float, default=Thresholds().contradicted)
    parser.add_argument("--about", type=float, default=Thresholds().about)
    given = parser.parse_args()
    thresholds = Thresholds(given.supported, given.contradicted, given.about)
    with TemporaryDirectory() as folder:
        for book in BOOKS:
            add_documents(book, f"primer:{book}", workspace=folder)
        group = open_collections(Workspace(Path(folder)), BOOKS)
        for half in ("seen", "unseen") if given.half == "both" else (given.half,):
            if given.swapped:
                swapped(half, group, thresholds)
            else:
                planted(half, group, thresholds, show=given.show and half == "seen")
    if given.chatreport:
        chatreport(given.chatreport, thresholds)


if __name__ == "__main__":
    main()
