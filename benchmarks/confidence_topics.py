"""``confidence topics`` on 5,000 tagged statements: sentences encoded once and exact neighbours, beside the way before.

Before, every statement's whole context was encoded, and UMAP looked for neighbours by approximate descent, whose code
is compiled anew in every process. Each way runs in a process of its own, in CPU time, and finds no vector in the cache.

    python benchmarks/confidence_topics.py [--data ../shared/data] [--statements 5000] [--json]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from unittest.mock import patch

from climassay.confidence.extraction import ExtractOptions, extract
from climassay.confidence.statement import Statement, read_statements
from climassay.corpus.readers.file_types import read
from climassay.reporting.results import write_rows


def statements_of(data: Path, wanted: int) -> list[Statement]:
    """The first tagged statements of AR6's chapters, and no more documents than they need."""
    found: list[Statement] = []
    for document in read(data / "ipcc_ar6_paragraphs.jsonl.gz").documents:
        found += (one for one in extract([document], ExtractOptions()) if one.duplicate_of is None)
        if len(found) >= wanted:
            break
    return found[:wanted]


def timed(way: str, file: Path) -> dict[str, float]:
    """CPU seconds of the vectors, and of groups and map."""
    from climassay.confidence.topics import TopicSettings, modelling
    from climassay.confidence.topics.modelling import context_sentences
    from climassay.models.encoders import load_encoder

    statements, encoder = read_statements(file), load_encoder()
    encoder.encode(["warm"])
    begun = time.process_time()
    texts = [one.context for one in statements] if way == "before" else context_sentences(statements)
    encoded = encoder.encode(texts)
    middle = time.process_time()
    vectors = encoded if way == "before" else _composed(statements, dict(zip(texts, encoded, strict=True)))
    settings = TopicSettings()
    with _approximate() if way == "before" else nullcontext():
        modelling.group_statements([one.text for one in statements], vectors, encoder, settings)
        modelling.project_vectors(vectors, settings.seed)
    return {"vectors": middle - begun, "groups": time.process_time() - middle, "texts": len(texts)}


def _composed(statements: list[Statement], known):  # type: ignore[no-untyped-def]
    """Vectors as ``climassay.confidence.topics.modelling.context_vectors`` makes them, with its cache replaced."""
    import numpy as np

    from climassay.confidence.topics import modelling

    def kept(sentences, *_args, **_options):  # type: ignore[no-untyped-def]
        return np.stack([known[sentence] for sentence in sentences])

    with patch.object(modelling, "cached_vectors", kept):
        return modelling.encode_with_context(statements, encoder=None)  # type: ignore[arg-type]


def _approximate():  # type: ignore[no-untyped-def]
    """UMAP without neighbours given."""
    import umap

    from climassay.confidence.topics import modelling

    def made(components: int, spread: float, seed: int, neighbours: int, vectors):  # type: ignore[no-untyped-def]
        return umap.UMAP(
            n_neighbors=min(neighbours, len(vectors) - 1), n_components=components, min_dist=spread, metric="cosine",
            random_state=seed, n_jobs=1,
        )  # fmt: skip

    return patch.object(modelling, "_umap", made)


def runs(data: Path, wanted: int) -> Iterator[tuple[str, dict[str, float]]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "statements.jsonl"
        write_rows(file, (asdict(replace(one, id=str(n))) for n, one in enumerate(statements_of(data, wanted))))
        for way in ("after", "before"):
            command = [sys.executable, __file__, "--way", way, "--file", str(file)]
            yield way, json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--statements", type=int, default=5000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(timed(given.way, given.file)))
        return
    if not (given.data / "ipcc_ar6_paragraphs.jsonl.gz").exists():
        sys.exit(f"ipcc_ar6_paragraphs.jsonl.gz is not in {given.data}.")
    found = dict(runs(given.data, given.statements))
    totals = {way: one["vectors"] + one["groups"] for way, one in found.items()}
    ratio = totals["before"] / totals["after"]
    if given.json:
        print(json.dumps({**found, "ratio": ratio}, indent=1))
        return
    for way, one in found.items():
        print(f"{way:6} {one['texts']:6.0f} texts, vectors {one['vectors']:6.1f} s, groups {one['groups']:6.1f} s")
    print(f"before / after: {ratio:.1f}")


if __name__ == "__main__":
    main()
