"""Short queries: whether a search for one to four words finds the right passage, and says so if there is none.

Queries (``benchmarks/data/short_queries.json``) are terms of indexes and glossaries; for AR6 also 150 headings of at
most four words, drawn by the hash of their text. Which passages are right is told by strings, without any search of
climassay: those that have the term, or another spelling of it, at least twice, that define it ("TERM is a ..."), or
that stand under a heading with it; if there are none, those that have it once. Terms that more than a fifth of all
passages are right for are left out. Queries without an answer are those of whose spellings none occurs in the
collection; of many of them, the words occur apart.

Each term is also asked about, in one of seven questions. Queries are divided into two halves by their hash; the rule
was chosen on one of them (``tuned``), and the questions of the other are different ones. Compared are the rule
of ``climassay.corpus.relevance``, BM25 alone, and a cosine of 0.40 for all queries, without regard to headings.

    python benchmarks/long/short_queries.py [--data ../shared/data] [--workspace FOLDER] [--no-ar6] [--missed]
"""

import argparse
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from climassay.corpus import Collection, Hit, Passage, read
from climassay.corpus.search import add_weighted_scores
from climassay.models.encoders import load_encoder
from climassay.reporting.tables import Table, as_markdown
from climassay.statistics import wilson_interval
from climassay.workspace import cache_folder

QUERIES = Path(__file__).parents[1] / "data" / "short_queries.json"
SUMMARIES = ("pdf/ipcc_ar6_wg1_spm.pdf", "pdf/ipcc_sr15_spm.pdf")
PARAGRAPHS = "ipcc_ar6_paragraphs.jsonl.gz"
N_HEADINGS, LONGEST_HEADING = 150, 4
TOO_MANY = 0.2
"""Share of the passages above which a term is left out."""
DEPTH = 50
QUESTIONS = {
    "tuned": (
        "What is {}?",
        "How does {} affect people?",
        "What does the report say about {}?",
        "Is {} getting worse?",
        "What are the main causes of {}?",
        "tell me about {}",
        "impacts of {}",
    ),
    "unseen": (
        "Explain {} to me.",
        "Where is {} discussed?",
        "How serious is {}?",
        "Is there anything on {}?",
        "What do we know about {}?",
        "effects of {}",
        "Which findings on {} are new?",
    ),
}
_VAGUE = """
a an and of in the for to on from with by key new main summary executive executi ve introduction overview
scope chapter content remarks final box table figure faq footnotes frequently asked questions case studies
study framework synthesis method methods data methodology concepts observed projected current future changes
change impacts impact risks risk options adaptation mitigation projections trends regional global assessment
assessing evaluation findings knowledge gaps policymakers policy policies approaches responses costs potential
other context observations individual components drivers temporal dimension reference scenarios strong
political support arenas understanding enablers expand section
"""
VAGUE = frozenset(_VAGUE.split())
"""Words of headings that do not tell what they are about by themselves."""


@dataclass(frozen=True)
class Query:
    """A query, with the passages that are right for it; none if the collection has no answer."""

    kind: str
    term: str
    right: frozenset[str]
    template: str = "{}"

    @property
    def text(self) -> str:
        """The words that are searched for."""
        return self.template.format(self.term)

    @property
    def half(self) -> str:
        """The half of the set that a query belongs to."""
        return ("tuned", "unseen")[_number(self.term) % 2]

    def asked(self) -> "Query":
        """Put the term into a question; the halves have different ones."""
        templates = QUESTIONS[self.half]
        return replace(self, kind=f"{self.kind}, asked", template=templates[_number(self.term) // 2 % len(templates)])


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def plain(text: str) -> str:
    """A text in lower case, hyphens as spaces, raised and lowered figures as plain ones."""
    folded = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")
    return " ".join(re.sub(r"[\u2010-\u2015-]", " ", folded).split())


def phrase(term: str) -> re.Pattern[str]:
    """The words of a term beside each other, the last one in singular or plural."""
    *before, last = plain(term).split()
    if last.endswith("ies") and len(last) > 4:
        last = re.escape(last[:-3]) + "(?:y|ies)"
    elif last.endswith("s") and not last.endswith("ss") and len(last) > 4:
        last = re.escape(last[:-1]) + "s?"
    else:
        last = re.escape(last) + "(?:s|es)?"
    return re.compile(r"(?<!\w)" + r"\s".join([*map(re.escape, before), last]) + r"(?!\w)")


@dataclass(frozen=True)
class Texts:
    """The plain texts and headings of passages, by id."""

    texts: dict[str, str]
    headings: dict[str, str]

    @classmethod
    def of(cls, passages: Iterable[Passage]) -> "Texts":
        """Fold the texts and headings of passages."""
        listed = list(passages)
        headings = {one.id: plain(" | ".join([*one.headings, one.chapter or ""])) for one in listed}
        return cls({one.id: plain(one.text) for one in listed}, headings)

    def having(self, spellings: Sequence[str]) -> dict[str, int]:
        """How often each passage has one of the spellings, those that have none left out."""
        counts: dict[str, int] = {}
        for spelling in spellings:
            pattern, start = phrase(spelling), plain(spelling)[:4]
            for item, text in self.texts.items():
                if start in text and (count := len(pattern.findall(text))):
                    counts[item] = counts.get(item, 0) + count
        return counts

    def right(self, spellings: Sequence[str]) -> frozenset[str]:
        """Passages that are right for a term; see the head of this file."""
        counts = self.having(spellings)
        patterns = [phrase(spelling) for spelling in spellings]
        said = r"(?:\s\([^)]*\))?\s(?:is|are|refers?|means?|denotes?)\s(?:defined|an?|the|to)\b"
        defining = re.compile("|".join(one.pattern + said for one in patterns))
        titled = {item for item, text in self.headings.items() if any(one.search(text) for one in patterns)}
        dwelling = {item for item, count in counts.items() if count > 1 or defining.search(self.texts[item])}
        return frozenset(titled | dwelling or counts)


def heading_queries(passages: Iterable[Passage]) -> list[str]:
    """Headings of few words, without their numbers, in an order by hash."""
    found: dict[str, str] = {}
    for passage in passages:
        for heading in passage.headings:
            text = re.sub(r"^[A-Z]{0,3}\.?[\d.]+\s*", "", heading).strip()
            words = plain(text).split()
            is_heading = 1 <= len(words) <= LONGEST_HEADING and re.fullmatch(r"[\w\u2019' -]{5,}", text)
            if is_heading and not VAGUE.issuperset(words):
                found.setdefault(plain(text), text)
    order = sorted(found, key=lambda one: hashlib.sha256(one.encode()).hexdigest())
    return [found[one] for one in order[:N_HEADINGS]]


def queries(collection: Collection, with_headings: bool) -> Iterator[Query]:
    listed = json.loads(QUERIES.read_text(encoding="utf-8"))
    passages = list(collection.iterate_passages())
    texts = Texts.of(passages)
    terms = {("term", term): [term, *others] for term, others in listed["terms"].items()}
    headings = {("heading", one): [one] for one in heading_queries(passages)} if with_headings else {}
    for (kind, text), spellings in (terms | headings).items():
        right = texts.right(spellings)
        if 0 < len(right) <= TOO_MANY * len(passages):
            yield Query(kind, text, right)
    for terms in listed["no answer"].values():
        for text, others in terms.items():
            if not texts.having([text, *others]):
                yield Query("no answer", text, frozenset())


Search = Callable[[Collection, Sequence[str]], list[list[Hit]]]


def by_rule(collection: Collection, texts: Sequence[str]) -> list[list[Hit]]:
    return collection.search_many(texts, k=5, min_cosine="measured")


def by_words(collection: Collection, texts: Sequence[str]) -> list[list[Hit]]:
    return collection.search_many(texts, k=5, mode="bm25")


def by_cosine(collection: Collection, texts: Sequence[str]) -> list[list[Hit]]:
    """Hybrid search with one threshold for all queries."""
    near = collection.search_many(texts, k=DEPTH, mode="dense")
    words = collection.search_many(texts, k=DEPTH, mode="bm25", min_cosine=-1)
    results = []
    for dense, lexical in zip(near, words, strict=True):
        hits = {hit.passage.id: hit for hit in (*lexical, *dense)}
        cosines = {item: hit.cosine or 0.0 for item, hit in hits.items()}
        scores = add_weighted_scores(cosines, {hit.passage.id: hit.score for hit in lexical}, 0.3)
        results.append([hits[item] for item in scores if cosines[item] >= 0.4][:5])
    return results


WAYS: dict[str, Search] = {"measured rule": by_rule, "BM25 alone": by_words, "cosine of 0.40": by_cosine}


def measure(collection: Collection, listed: Sequence[Query], missed: bool) -> Table:
    rows = []
    answers = {name: way(collection, [one.text for one in listed]) for name, way in WAYS.items()}
    for kind in dict.fromkeys(one.kind for one in listed):
        for half in ("tuned", "unseen"):
            chosen = [place for place, one in enumerate(listed) if (one.kind, one.half) == (kind, half)]
            cells = []
            for name in WAYS:
                found = [
                    (any(hit.passage.id in listed[place].right for hit in answers[name][place]))
                    if listed[place].right
                    else not answers[name][place]
                    for place in chosen
                ]
                interval = wilson_interval(sum(found), len(found))
                cells.append(f"{sum(found) / len(found):.3f} ({interval.low:.3f} to {interval.high:.3f})")
                if missed and name == "measured rule" and half == "tuned":
                    print(kind, [listed[place].text for place, there in zip(chosen, found, strict=True) if not there])
            measured = "nothing relevant" if kind.startswith("no answer") else "right passage among five"
            rows.append([f"{kind}, {half}", measured, str(len(chosen)), *cells])
    headings = ["queries", "", "n", *WAYS]
    return Table.of(f"{collection.name}: {len(collection):,} passages", headings, rows, left_columns=2)


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether searches for a few words find what there is.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--workspace", type=Path, default=cache_folder() / "benchmarks")
    parser.add_argument("--no-ar6", action="store_true", help="search the two summaries only")
    parser.add_argument("--missed", action="store_true", help="list what the rule misses in the tuned half")
    arguments = parser.parse_args()
    files = {"summaries": SUMMARIES, "ar6-paragraphs": () if arguments.no_ar6 else (PARAGRAPHS,)}
    for name, paths in files.items():
        if paths:
            collection = Collection.create(arguments.workspace, name, load_encoder())
            for path in paths:
                collection.add(read(arguments.data / path).documents)
            listed = list(queries(collection, with_headings=name != "summaries"))
            listed += [one.asked() for one in listed if one.kind != "heading"]
            print(as_markdown(measure(collection, listed, arguments.missed)))


if __name__ == "__main__":
    main()
