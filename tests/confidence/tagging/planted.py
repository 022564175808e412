"""Statements whose level can be told by their words, for tests of taggers without a language model."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from climassay.confidence.statement import Statement
from climassay.confidence.tagging import TAGGER_LEVELS, LabelledItem, TaggingItem
from planted_statements import write_statements
from topic_encoder import TopicEncoder

SIGNS = ("might perhaps", "suggests", "shows", "unequivocally")
"""One for each level."""
_THINGS = ("albedo", "cloud", "aerosol", "ocean", "carbon", "glacier")


def planted(count: int = 160, *, seed: int = 0, noise: float = 0.0) -> list[LabelledItem]:
    """Statements of all levels in turn, four a section, two sections a document; ``noise``: share of wrong signs."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(count):
        level = int(generator.integers(0, 4)) if generator.random() < noise else number % 4
        first, second = generator.choice(_THINGS, 2, replace=False)
        text = f"The record {SIGNS[level]} that {first} and {second} change in region number{number}."
        around = (f"This part is about {first}.",)
        section = f"section {number // 4}"
        item = TaggingItem(text, around, ("More work follows.",))
        found.append(LabelledItem(item, TAGGER_LEVELS[number % 4], "AR6 WG1", f"chapter {number // 8}", section, True))
    return found


def write_extracted(pairs: Iterable[tuple[str, str]], file: Path) -> list[Statement]:
    """Pairs of text and level as ``confidence extract`` writes them, one a section."""
    statements = [
        Statement(
            id=f"s{number}", text=text, tag=tag, report="AR6 WG1", document_id="d", document="Chapter 1",
            headings=(f"Section {number}",), cycle="AR6", working_group="WG1",
        )
        for number, (text, tag) in enumerate(pairs)
    ]  # fmt: skip
    write_statements(statements, file)
    return statements


def write_climatex(file: Path) -> Path:
    """120 statements as the ClimateX dataset has them, four a page."""
    head = "statement_idx\treport\tpage_num\tsent_num\tstatement\tconfidence\tscore\tsplit"
    rows = [
        f"{n}\tAR6_WGI\t{n // 4}\t1\t{one.item.text}\t{TAGGER_LEVELS[n % 4]}\t1\ttrain"
        for n, one in enumerate(planted(120, seed=3))
    ]
    file.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return file


def encoder() -> TopicEncoder:
    """Counts topics; knows nothing of signs."""
    return TopicEncoder()
