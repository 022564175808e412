"""Taggers of confidence on ClimateX: cross-validation, a held-out part, whole chapters, hidden states, insertion.

One command; a quarter of an hour on one thread of a quiet machine, and as long again for each of the last two::

    python benchmarks/long/confidence_tagging.py --data ../shared/data --output tagging.json \
        --bundle tagger.safetensors --states states.npz --pairs 60

``--states`` reads the bundled generator's states once and keeps them in the file. ``--pairs N`` tags N statements by
comparison with 100 labelled ones. The held-out quarter decides nothing.
"""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from climassay.confidence.tagging import (
    CLIMATEX_MIX,
    LEVELS,
    SPECS,
    Lesson,
    PartSpec,
    Readers,
    Tagged,
    TaggerSpec,
    Tried,
    best_of,
    by_group,
    compare,
    finish,
    measured,
    read_climatex,
    save_tagger,
    small_tests,
)
from climassay.confidence.tagging.labelled import CLIMATEX_LICENCE
from climassay.confidence.tagging.linear import fit_levels
from climassay.confidence.tagging.pairwise import balanced_sample, train_insertion
from climassay.confidence.tagging.splits import hold_out
from climassay.confidence.tagging.states import POOLINGS, read_layers
from climassay.confidence.tagging.tagger import pooled
from climassay.confidence.tagging.training import fit
from climassay.models.encoder import load_encoder
from climassay.models.local.model import LocalModel

HELD_OUT = 0.25
HELD_OUT_SEED = 20
LAYERS = (8, 12, 16, 20, 24, 28, -1)
SECTIONS, CHAPTERS = 5, 8
"""Folds of the two cross-validations."""


def row(one: Tried) -> dict:
    """Scores of a tagger, with accuracy in tests of ClimateX's size."""
    drawn = small_tests(one.tagged.on_mix(CLIMATEX_MIX)) if min(np.bincount(one.tagged.truth)) >= 50 else np.zeros(0)
    mixed = one.mixed.accuracy
    said = f"mix {mixed.value:.3f} ({mixed.interval.low:.3f}, {mixed.interval.high:.3f})"
    loss = one.natural.log_loss.value
    print(f"  {one.spec.name:40s} {said} balanced {one.balanced.accuracy.value:.3f} loss {loss:.3f}", flush=True)
    return {
        "tagger": one.spec.name,
        "n": len(one.tagged.truth),
        "natural": asdict(one.natural),
        "mix": asdict(one.mixed),
        "balanced": asdict(one.balanced),
        "tests_of_300": np.quantile(drawn, [0.025, 0.5, 0.975]).tolist() if len(drawn) else None,
    }


def states_of(lesson: Lesson, file: Path) -> np.ndarray:
    """States of all statements, [statements, layers, 2, width], from the file where it is there."""
    if not file.is_file():
        model = LocalModel("local:smollm2", dtype="bfloat16")
        read = read_layers(model, [one.item.text for one in lesson.items], LAYERS)
        np.savez(file, states=read.astype(np.float16))
    return np.load(file)["states"]


def with_states(lesson: Lesson, states: np.ndarray, splits, wordy: Tagged) -> list[dict]:
    """Regressions on states, layer by layer; and pooled with a tagger that reads words and vectors."""
    found, held = [], {}
    for at, layer in enumerate(LAYERS):
        for side, pooling in enumerate(POOLINGS):
            block = states[:, at, side].astype(np.float64)
            rows = np.zeros((len(lesson.items), len(LEVELS)))
            for split in splits:
                model = fit_levels([block[split.train]], lesson.truth[split.train], len(LEVELS), regularisation=1.0)
                rows[split.test] = model.probabilities([block[split.test]])
            held[pooling, layer] = rows
            name = TaggerSpec(f"{pooling} state, layer {layer}", (PartSpec(("mean states",)),))
            found.append((row(measured(name, Tagged(lesson.truth, rows, lesson.sections))), (pooling, layer)))
    best = [key for _, key in sorted(found, key=lambda one: one[0]["natural"]["log_loss"]["value"])[:2]]
    together = pooled([wordy.probabilities, *(held[key] for key in best)])
    name = TaggerSpec(f"in context, with states of {best}", (PartSpec(("mean states",)),))
    return [*(one for one, _ in found), row(measured(name, Tagged(lesson.truth, together, lesson.sections)))]


def by_comparison(lesson: Lesson, split, count: int) -> list[dict]:
    """PPAIRS_INSERT: 100 labelled statements of the training part, ``count`` of the held-out one."""
    model = LocalModel("local:smollm2")
    labelled = balanced_sample([lesson.items[place] for place in split.train])
    new = balanced_sample([lesson.items[place] for place in split.test], count, seed=1)
    truth = np.array([LEVELS.index(one.tag) for one in new])
    found = []
    for method in ("pointwise", "ppairs"):
        tagger = train_insertion(labelled, model, method=method, layers=(20,))
        said = tagger.probabilities([one.item for one in new])
        score = measured(TaggerSpec(f"insertion, {method}", ()), Tagged(truth, said, np.arange(len(new))))
        pairs = tagger.trained.accuracy
        found.append(row(score) | {"pair_accuracy": asdict(pairs)})
    return found


def main() -> None:
    """Measure, step by step; what is known is written after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--states", type=Path)
    parser.add_argument("--pairs", type=int, default=0)
    given = parser.parse_args()
    results: dict = {}

    def keep(name: str, value: object) -> None:
        results[name] = value
        given.output.write_text(json.dumps(results, indent=1, default=float), encoding="utf-8")
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)

    data = read_climatex(given.data / "climatex_train.tsv", given.data / "ipcc_ar6_paragraphs.jsonl.gz")
    keep("data", {"rows": data.rows, "kept": len(data.items), "match_rate": data.match_rate})
    lesson = Lesson(data.items, Readers(load_encoder()))
    split = hold_out(data.items, lesson.twins(), HELD_OUT, seed=HELD_OUT_SEED)
    part = Lesson([data.items[place] for place in split.train], lesson.readers)
    for source in ("vectors", "context vectors"):
        part.give(source, np.asarray(lesson.block(source, split.train, None)))
    tried = compare(SPECS, part, count=SECTIONS)
    chosen = best_of(tried).spec
    keep("choice", {"chosen": chosen.name, "rows": [row(one) for one in tried]})
    held = []
    for spec in SPECS:
        said = fit(spec, lesson, split.train).probabilities(lesson, split.test)
        held.append(measured(spec, Tagged(lesson.truth[split.test], said, lesson.sections[split.test])))
    keep("held_out", [row(one) for one in held])
    everything = compare([chosen, SPECS[0]], lesson, count=SECTIONS)
    keep("all_by_section", [row(one) for one in everything])
    chapters = compare([chosen, SPECS[0]], lesson, apart="document", count=CHAPTERS)
    keep("all_by_chapter", [row(one) for one in chapters])
    reports = by_group(everything[0].tagged, [one.report for one in data.items])
    keep("by_report", {name: asdict(scores) for name, scores in reports.items()})
    if given.bundle:
        made = finish(everything[0], lesson, data="climatex_train.tsv", data_sha256=data.sha256,
                      licence=CLIMATEX_LICENCE, by_document=chapters[0])  # fmt: skip
        save_tagger(made, given.bundle)
    if given.states:
        from climassay.confidence.tagging.splits import folds

        splits = folds(lesson.items, lesson.twins(), count=SECTIONS)
        keep("states", with_states(lesson, states_of(lesson, given.states), splits, everything[0].tagged))
    if given.pairs:
        keep("insertion", by_comparison(lesson, split, given.pairs))


if __name__ == "__main__":
    main()
