"""Debates held side by side against the same debates held one after the other, on the same model and collections.

Claim: coroutines whose questions are asked together are faster than a loop over claims. In 16 bits a few verdicts
differ, because rounding depends on what is computed together; how many are the same is printed. Both sides run in one
process with one number of threads, in turns, and ask everything afresh.

Run: python benchmarks/debates.py [--claims 8] [--repeats 2] [--dtype bfloat16] [--json]
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from climassay import primer
from climassay.corpus import open_or_create, read
from climassay.factcheck import Claim, DebateResources, DebateSettings, advocates_from_names, make_claim, open_checker
from climassay.grounding import open_collections
from climassay.models import ModelOptions, load_model
from climassay.prompts import ProfileSettings
from climassay.records import Records
from climassay.workspace import Workspace

BOOKS = ("physical_climate", "carbon_ice_past")


def company(folder: Path, dtype: str) -> DebateResources:
    """The bundled model, and each book as a collection of its own."""
    place = Workspace.open(folder)
    for name in BOOKS:
        open_or_create(place, name, encoder="local:minilm").add(read(primer.book_path(name)).documents)
    groups = {name: open_collections(place, [name]) for name in BOOKS}
    return DebateResources({"local:smollm2": load_model("local:smollm2", ModelOptions(dtype=dtype))}, groups)


def debated(who: DebateResources, claims: list[Claim], at_once: int, folder: Path) -> tuple[float, list[str | None]]:
    """Seconds of all debates, and their verdicts."""
    settings = DebateSettings(
        advocates_from_names(BOOKS),
        split="rules",
        rounds=1,
        profile=ProfileSettings(text_tokens=40),
        check_claims=False,
    )
    with (
        Records(f"sqlite:///{folder / 'records.sqlite'}") as store,
        open_checker(settings, who, store, use_cache=False) as checker,
    ):
        before = time.perf_counter()
        transcripts = checker.check(claims, concurrency=at_once)
        return time.perf_counter() - before, [transcript.verdict.label for transcript in transcripts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--claims", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    claims = [make_claim(gold.claim) for gold in primer.claims()[: given.claims]]
    alone, together, same = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        who = company(folder, given.dtype)
        for _ in range(given.repeats):
            spent, first = debated(who, claims, 1, folder)
            alone.append(spent)
            spent, second = debated(who, claims, given.claims, folder)
            together.append(spent)
            same.append(sum(a == b for a, b in zip(first, second, strict=True)))
    result = {
        "claims": len(claims),
        "dtype": given.dtype,
        "seconds_one_by_one": statistics.median(alone),
        "seconds_side_by_side": statistics.median(together),
        "ratio": statistics.median(a / b for a, b in zip(alone, together, strict=True)),
        "same_verdicts": min(same),
    }
    if given.json:
        print(json.dumps(result, indent=2))
    else:
        sys.stdout.write("".join(f"{key:22} {value}\n" for key, value in result.items()))


if __name__ == "__main__":
    main()
