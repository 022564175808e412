"""The bundled encoder fine-tuned as a tagger of confidence, alone and pooled with the regressions.

One command; about ten minutes on one thread of a quiet machine, and what is done is kept beside the output::

    python benchmarks/long/confidence_finetuning.py --data ../shared/data --output finetuned.json --states states.npz

Low-rank changes to all layers and a linear head are trained on ClimateX, on statements alone and with ``--context``
(four times as long) also with the sentences around them; by default on the training part of the split that
``confidence_tagging.py`` holds out, and with ``--folds`` in its cross-validation over all statements. ``--states`` (the
file that ``confidence_tagging.py`` makes) adds regressions on hidden states to the pools. Epochs and rates are fixed
beforehand: no result decides anything.
"""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from confidence_tagging import SECTIONS, held_out_part, on_states, pooled, row
from cross_encoder import CrossEncoderConfig, train
from numpy.typing import NDArray

from climassay.confidence.tagging import LEVELS, LabelledItem, read_climatex
from climassay.confidence.tagging.tagger import IN_CONTEXT, tagging_texts
from climassay.learning import Split, softmax
from climassay.learning.features import FeatureModels
from climassay.learning.text_classifier import TrainingTexts, fit_classifier
from climassay.models.bundled import bundled_path
from climassay.models.encoders import load_encoder

CONFIG = CrossEncoderConfig(rank=8, epochs=3, classes=len(LEVELS))
SENTENCES = 2
"""Of context, before and after; a pair has room for 192 tokens."""
STATES = (("mean", 16), ("last", 20))
"""Hidden states that go into the pools."""


def fine_tuned(
    items: list[LabelledItem], training: TrainingTexts, split: Split, context: bool, seed: int
) -> NDArray[np.float64]:
    """Probabilities of the test part, [test, levels], by an encoder trained on the rest."""
    pairs = [(one.item.read(SENTENCES)[1] if context else "", one.item.text) for one in items]
    start, done, said = time.monotonic(), 0, 0

    def on_step(count: int) -> None:
        nonlocal done, said
        done += count
        if done >= said + 3200:
            said = done
            print(f"    {done} of {CONFIG.epochs * len(split.train)} in {time.monotonic() - start:.0f} s", flush=True)

    tuned = train(
        bundled_path("minilm"),
        [pairs[place] for place in split.train],
        [int(training.truth[place]) for place in split.train],
        CONFIG,
        seed=seed,
        on_step=on_step,
    )
    return softmax(tuned.logits([pairs[place] for place in split.test]))


def taggers_of(
    items: list[LabelledItem],
    training: TrainingTexts,
    split: Split,
    states: NDArray[np.float16] | None,
    kinds: tuple[str, ...],
    file: Path,
) -> dict[str, NDArray[np.float64]]:
    """Held-out probabilities of one split by tagger; fine-tuning is kept in files and not done twice."""
    linear = fit_classifier(IN_CONTEXT, training, split.train).probabilities(training, split.test)
    tuned = {}
    for kind in kinds:
        kept = file.with_name(f"{file.name}-{kind}.npy")
        if not kept.is_file():
            np.save(kept, fine_tuned(items, training, split, kind == "context", seed=0))
        tuned[f"encoder fine-tuned, {kind}"] = np.load(kept)
    found = {
        "words and vectors, in context": linear,
        **tuned,
        "words and vectors, and encoder fine-tuned": pooled([linear, *tuned.values()]),
    }
    if states is not None:
        read = [on_states(training, states, split, *one) for one in STATES]
        found["words and vectors, and states"] = pooled([linear, *read])
        found["words and vectors, states, and encoder fine-tuned"] = pooled([linear, *read, *tuned.values()])
    return found


def scored(training: TrainingTexts, splits: list[Split], found: list[dict]) -> list[dict]:
    """Scores of each tagger over the test parts of all splits."""
    order = np.concatenate([split.test for split in splits])
    rows = []
    for name in found[0]:
        probabilities = np.concatenate([one[name] for one in found])
        rows.append(row(name, training.truth[order], probabilities, training.groups[order]))
    return rows


def main() -> None:
    """Fine-tune, pool, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--states", type=Path)
    parser.add_argument("--folds", action="store_true")
    parser.add_argument("--context", action="store_true")
    given = parser.parse_args()
    data = read_climatex(given.data / "climatex_train.tsv", given.data / "ipcc_ar6_paragraphs.jsonl.gz")
    items = list(data.items)
    training = tagging_texts(items, FeatureModels(load_encoder()))
    states = np.load(given.states)["states"] if given.states else None
    folder = given.output.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    split = held_out_part(training)
    kinds = ("alone", "context") if given.context else ("alone",)
    held = taggers_of(items, training, split, states, kinds, folder / "held-out")
    results = {"config": asdict(CONFIG), "held_out": scored(training, [split], [held])}
    given.output.write_text(json.dumps(results, indent=1, default=float), encoding="utf-8")
    if given.folds:
        splits = training.splits(SECTIONS)
        found = [
            taggers_of(items, training, one, states, kinds, folder / f"fold-{place}")
            for place, one in enumerate(splits)
        ]
        results["all_by_section"] = scored(training, splits, found)
        given.output.write_text(json.dumps(results, indent=1, default=float), encoding="utf-8")


if __name__ == "__main__":
    main()
