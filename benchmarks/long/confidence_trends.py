"""Whether changes between cycles are found: AR6's own statements, and a synthetic AR5 made of them.

AR6's sections are dealt at random to two halves, one of which is called AR5. Nothing differs between them, so that
every change that is claimed is a false one. Then levels of some topics are lowered in AR5 by one step, with a given
probability, and these topics should be found. With ``--text`` the same is done once in the words of the paragraphs,
which are extracted anew: what is planted in the text must arrive as levels.

    python benchmarks/long/confidence_trends.py --data ../shared/data [--statements 5000] [--seeds 100]
"""

import argparse
import gzip
import json
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from climassay.confidence.extraction import ExtractOptions, extract
from climassay.confidence.statement import Statement
from climassay.confidence.topics import OUTSIDE, TopicModel, TopicSettings, fit_topics
from climassay.confidence.trends import TopicChange, TrendStatements, measure_changes, select_statements
from climassay.confidence.vocabulary import LEVELS
from climassay.corpus.readers.file_types import read
from climassay.models.encoders import load_encoder
from climassay.statistics.intervals import proportion

PLANTED = 3
SHARES = (0.25, 0.5, 1.0)
SIZES = ((10, 20), (20, 40), (40, 10_000))
"""Sections of a topic on its smaller side, from and below."""


def ar6_statements(paragraphs: Path, wanted: int) -> list[Statement]:
    found: list[Statement] = []
    for document in read(paragraphs).documents:
        found += (one for one in extract([document], ExtractOptions()) if one.duplicate_of is None)
        if len(found) >= wanted:
            break
    return found


def dealt(
    cases: TrendStatements, topics: Sequence[int], share: float, generator: np.random.Generator
) -> TrendStatements:
    """Cases with half of the sections in AR5, where the levels of some topics are lowered."""
    sections = sorted({case.section for case in cases.tagged})
    early = {
        section for section, is_early in zip(sections, generator.random(len(sections)) < 0.5, strict=True) if is_early
    }
    made = []
    for case in cases.tagged:
        if case.section not in early:
            made.append(replace(case, column="AR6"))
            continue
        lowered = case.topic in topics and generator.random() < share
        assert case.tag is not None
        tag = LEVELS[max(0, LEVELS.index(case.tag) - lowered)]
        made.append(replace(case, column="AR5", tag=tag))
    return TrendStatements("cycle", ("AR5", "AR6"), tuple(made), (), 0)


def simulate(cases: TrendStatements, model: TopicModel, seeds: int, first: int, shares: Sequence[float]) -> None:
    count = len(model.topics)
    for share in shares:
        found: Counter[tuple[int, bool]] = Counter()
        false = tests = families = 0
        raw = overall = 0
        for seed in range(seeds):
            generator = np.random.default_rng([first, seed])
            large = sorted(topic for topic, size in topic_sections(cases).items() if size >= 2 * SIZES[0][0])
            planted = generator.choice(large, PLANTED, replace=False).tolist() if share else []
            changes = measure_changes(dealt(cases, planted, share, generator), count, seed=seed)
            overall += next(one.p for one in changes if one.topic is None) < 0.05
            own = [one for one in changes if one.topic is not None]
            for one in own:
                clear = one.p_holm < 0.05
                if one.topic in planted:
                    found[_size(one), clear] += 1
                else:
                    tests, raw, false = tests + 1, raw + (one.p < 0.05), false + clear
            families += any(one.p_holm < 0.05 and one.topic not in planted for one in own)
        said = (
            f"lowered {share:.0%}: unplanted topics p < .05 {raw}/{tests} = {raw / tests:.3f}, clear (Holm) {false}; "
        )
        said += f"runs with any false one {_told(families, seeds)}"
        print(said, flush=True)
        if not share:
            print(f"  all topics together p < .05: {_told(overall, seeds)}", flush=True)
        for size, (low, high) in enumerate(SIZES):
            if share:
                hits, misses = found[size, True], found[size, False]
                print(f"  found, {low} to {high} sections: {_told(hits, hits + misses)}", flush=True)


def topic_sections(cases: TrendStatements) -> Counter[int]:
    """Sections of each topic."""
    return Counter(topic for topic, _ in {(case.topic, case.section) for case in cases.tagged} if topic != OUTSIDE)


def _size(change: TopicChange) -> int:
    return next((n for n, (low, high) in enumerate(SIZES) if low <= min(change.sections) < high), -1)


def _told(hits: int, of: int) -> str:
    if not of:
        return "none tried"
    share = proportion(hits, of)
    return f"{hits}/{of} = {share.value:.2f} ({share.interval.low:.2f} to {share.interval.high:.2f})"


def in_text(paragraphs: Path, statements: Sequence[Statement], model: TopicModel) -> None:
    """Lower levels in the words of paragraphs, extract them anew, and look for the change."""
    generator = np.random.default_rng(0)
    planted = [topic for topic, _ in topic_sections(select_statements(statements, model)).most_common(2 + PLANTED)[2:]]
    sections = sorted({(one.document_id, one.group) for one in statements})
    early = {
        section for section, is_early in zip(sections, generator.random(len(sections)) < 0.5, strict=True) if is_early
    }
    texts = {one.paragraph_id: one for one in statements if (one.document_id, one.group) in early}
    lowered: dict[str | None, list[str]] = {}
    for one in statements:
        if one.paragraph_id in texts and model.topic_of(one.id) in planted:
            lowered.setdefault(one.paragraph_id, []).append(one.sentence)
    known = {one.paragraph_id for one in statements}
    changed = 0
    with tempfile.TemporaryDirectory() as folder:
        files = {"AR5": Path(folder) / "AR5.jsonl", "AR6": Path(folder) / "AR6.jsonl"}
        rows: dict[str, list[str]] = {"AR5": [], "AR6": []}
        with gzip.open(paragraphs, "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                if row["para_id"] not in known:
                    continue
                cycle = "AR5" if row["para_id"] in texts else "AR6"
                for sentence in lowered.get(row["para_id"], ()):
                    words = _lower(sentence)
                    changed += words != sentence and sentence in row["text"]
                    row["text"] = row["text"].replace(sentence, words)
                row["report"] = f"{cycle} WG1"
                rows[cycle].append(json.dumps(row, ensure_ascii=False))
        for cycle, lines in rows.items():
            files[cycle].write_text("\n".join(lines) + "\n", encoding="utf-8")
        anew = [
            replace(one, id=f"{cycle}-{one.id}")
            for cycle, file in files.items()
            for one in extract(read(file).documents, ExtractOptions(cycle=cycle))
        ]
    fitted = fit_topics(anew, load_encoder(), TopicSettings()).model
    changes = measure_changes(select_statements(anew, fitted), len(fitted.topics))
    print(f"in the text: {changed} sentences lowered, {Counter(one.cycle for one in anew)}")
    moved = {one.text for one in statements if model.topic_of(one.id) in planted}
    for one in changes:
        if one.topic is not None and one.p_holm < 0.05:
            mine = [each.text for each in anew if fitted.topic_of(each.id) == one.topic]
            share = sum(text in moved for text in mine) / len(mine)
            print(f"  {fitted.name(one.topic)}: {one.value:+.2f}, p {one.p_holm:.4f}, {share:.0%} of planted topics")


def _lower(sentence: str) -> str:
    """A sentence with every level of confidence one step lower."""
    steps = {"very high": "high", "high": "medium", "medium": "low", "low": "very low", "very low": "very low"}
    pattern = re.compile(r"\b(very high|very low|high|medium|low)(?= confidence)", re.IGNORECASE)
    return pattern.sub(lambda match: steps[match[1].lower()], sentence)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--statements", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1, help="another number, other halves")
    parser.add_argument("--unplanted", action="store_true", help="only halves that do not differ")
    parser.add_argument("--text", action="store_true")
    given = parser.parse_args()
    paragraphs = given.data / "ipcc_ar6_paragraphs.jsonl.gz"
    statements = ar6_statements(paragraphs, given.statements)
    model = fit_topics(statements, load_encoder(), TopicSettings()).model
    print(f"{len(statements)} statements, {len(model.topics)} topics", flush=True)
    if given.text:
        in_text(paragraphs, statements, model)
    simulate(
        select_statements(statements, model),
        model,
        given.seeds,
        given.first,
        (0.0,) if given.unplanted else (0.0, *SHARES),
    )


if __name__ == "__main__":
    main()
