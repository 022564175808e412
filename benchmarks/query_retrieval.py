"""Search queries in the language of the documents: questions to sustainability reports (ClimRetrieve).

Analysts marked the sentences of reports that are relevant to sixteen questions, from 1 (partly) to 3. The text around
each marked sentence is a passage; a question is asked among all passages that were marked in the same report, for
whichever question. Relevant is what was marked for the question itself with 2 or 3, so that recall and precision are
lower bounds: nobody looked whether a passage that was marked for one question helps with another one.

The question alone is compared with the question and up to three queries, which were written by hand from the questions
and the instruction of the prompt ``factcheck_split``, without sight of the reports: the figures are about searching
with several queries, and about no model.

    python benchmarks/query_retrieval.py [--data ../shared/data] [--json]
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from climassay.corpus import Block, Collection, Document
from climassay.corpus.search import fuse_rankings
from climassay.models.encoders import load_encoder
from climassay.statistics import bootstrap_interval

SEED = 17
SHOWN = (4, 8)
LEAST = 10
"""Passages that a report must have, so that there is something to choose from."""
QUERIES: Mapping[str, tuple[str, ...]] = {
    "reference external": ("alignment of targets with Paris Agreement, SBTi or Sustainable Development Goals",
        "national and international adaptation goals, UNFCCC initiatives", "resilience and adaptation targets"),
    "waste management": ("zero waste strategy recycling landfill diversion", "circular economy reuse of materials",
        "hazardous and electronic waste treatment"),
    "impacts of its business": ("greenhouse gas emissions, water use and waste from operations",
        "environmental footprint of products and supply chain", "biodiversity and land use impact of operations"),
    "downstream partners on water": ("engagement of customers and suppliers on water stewardship",
        "water consumption and wastewater reduction programmes", "water pollution in the value chain"),
    "short-term actions": ("waste reduction initiatives this year", "packaging and single-use plastic reduction",
        "recycling rate and landfill diversion target"),
    "align with external": ("science-based targets aligned with 1.5°C and the Paris Agreement",
        "Sustainable Development Goals contribution", "net zero commitment"),
    "adjust its business model": ("climate resilience products and solutions for customers",
        "research and development of sustainable products", "new business opportunities in adaptation"),
    "definitions": ("climate change adaptation means", "definition of resilience and physical climate risk",
        "glossary of climate terms"),
    "scenarios used to test": ("scenario analysis 1.5°C 2°C 4°C RCP", "TCFD scenario analysis of strategy resilience",
        "IEA and IPCC scenarios physical and transition risk"),
    "synergies": ("co-benefits of climate action for cost savings and growth", "sustainability drives business value",
        "resilience investments reduce operating risk"),
    "industry peers": ("industry association and coalition membership on climate", "joint work with peers on standards",
        "joint climate initiatives and alliances"),
    "process in place to identify risks": ("climate risk identification and assessment process",
        "enterprise risk management integrates climate risks", "board and committee oversight of climate risk"),
    "adjustments to its business operations": ("operational resilience to extreme weather",
        "business continuity and site hardening against floods and heat", "supply chain diversification"),
    "third party scenarios": ("IPCC RCP and SSP scenarios", "IEA and NGFS scenarios in climate risk analysis",
        "TCFD scenario analysis"),
    "methodology used": ("life cycle assessment methodology", "GHG Protocol accounting of emissions",
        "materiality assessment and biodiversity impact measurement"),
    "downstream partners to carry out": ("supplier and customer climate risk disclosure CDP",
        "partners required to set targets and assess climate risks", "customer engagement on climate risk assessment"),
}  # fmt: skip
"""By words that only one of the questions has."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    file = options.data / "climretrieve.jsonl"
    if not file.exists():
        sys.exit(f"There is no climretrieve.jsonl in {options.data}; name its folder with --data.")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["context"]]
    passages = {
        report: sorted({r["context"] for r in rows if r["report"] == report}) for report in names(rows, "report")
    }
    counts: dict[str, list[tuple[int, int, int]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (report, texts) in enumerate(passages.items()):
            if len(texts) < LEAST:
                continue
            collection = Collection.create(Path(folder), f"report-{number}", load_encoder())
            collection.add(Document(f"d{n}", f"Passage {n}", report, (Block(text),)) for n, text in enumerate(texts))
            for question in names([row for row in rows if row["report"] == report], "question"):
                marked = [row for row in rows if (row["report"], row["question"]) == (report, question)]
                relevant = {texts.index(row["context"]) for row in marked if row["relevance"] in ("2", "3")}
                if relevant:
                    measure(collection, question, relevant, counts)
    lines = []
    for name, some in counts.items():
        table = np.array(some, dtype=float)
        for figure, statistic in FIGURES.items():
            interval = bootstrap_interval(table, statistic, seed=SEED)
            lines.append((name, figure, len(some), statistic(table), interval.low, interval.high))
    if options.json:
        print(json.dumps(lines, indent=1))
        return
    for name, figure, n, value, low, high in lines:
        print(f"{name}: {figure} {value:.2f} ({low:.2f} to {high:.2f}), n = {n}")


def names(rows: list[dict[str, str]], column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def measure(
    collection: Collection, question: str, relevant: set[int], counts: dict[str, list[tuple[int, int, int]]]
) -> None:
    """Relevant passages shown, passages shown, and relevant ones, by way of searching."""
    [queries] = [some for words, some in QUERIES.items() if words in question]
    found = [
        list(dict.fromkeys(int(hit.passage.document_id[1:]) for hit in hits))
        for hits in collection.search_many([question, *queries], k=50)
    ]
    fused = [int(item) for item in fuse_rankings(*[[str(one) for one in some] for some in found])]
    for most in SHOWN:
        for name, ranked in (("question", found[0]), ("question and queries", fused)):
            shown = ranked[:most]
            row = (len(relevant & set(shown)), len(shown), len(relevant))
            counts.setdefault(f"{name}, {most} passages", []).append(row)


FIGURES: Mapping[str, Callable[[NDArray[np.float64]], float]] = {
    "recall": lambda counts: float((counts[:, 0] / counts[:, 2]).mean()),
    "precision": lambda counts: float(counts[:, 0].sum() / counts[:, 1].sum()),
}


if __name__ == "__main__":
    main()
