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
from numpy.typing import NDArray

from climassay.confidence.tagging import (
    CLIMATEX_MIX,
    SPECS,
    TAGGER_LEVELS,
    LabelledItem,
    evaluate_on_mixes,
    read_climatex,
    train_tagger,
)
from climassay.confidence.tagging.insertion import sample_balanced, train_insertion
from climassay.confidence.tagging.labelled import CLIMATEX_LICENCE
from climassay.confidence.tagging.tagger import make_training_texts
from climassay.learning import Provenance, Split, evaluate, fit_linear, reweight, softmax
from climassay.learning.calibration import class_shares
from climassay.learning.features import POOLINGS, FeatureModels, text_states
from climassay.learning.text_classifier import TrainingTexts, choose_best, compare_classifiers, fit_classifier
from climassay.models.bundled import file_digest
from climassay.models.encoders import load_encoder
from climassay.models.local.model import LocalModel

HELD_OUT = 0.25
HELD_OUT_SEED = 20
LAYERS = (8, 12, 16, 20, 24, 28, -1)
SECTIONS, CHAPTERS = 5, 8
"""Folds of the two cross-validations."""


def row(name: str, truth: NDArray[np.int64], probabilities: NDArray[np.float64], groups: NDArray[np.int64]) -> dict:
    """Scores of a tagger on all mixes, with accuracy in tests of ClimateX's size."""
    found = evaluate_on_mixes(truth, probabilities, groups)
    mixed = found["climatex"].accuracy
    said = f"mix {mixed.value:.3f} ({mixed.interval.low:.3f}, {mixed.interval.high:.3f})"
    loss = found["natural"].log_loss.value
    print(f"  {name:40s} {said} balanced {found['equal'].accuracy.value:.3f} loss {loss:.3f}", flush=True)
    tests = small_tests(truth, probabilities)
    return {"tagger": name, "n": len(truth), "tests_of_300": tests, **{mix: asdict(one) for mix, one in found.items()}}


def small_tests(truth: NDArray[np.int64], probabilities: NDArray[np.float64], draws: int = 2000) -> list[float] | None:
    """Quantiles .025, .5 and .975 of the accuracy in tests of as many statements of each level as ClimateX's has."""
    counts = np.bincount(truth, minlength=len(TAGGER_LEVELS))
    if (counts < CLIMATEX_MIX).any():
        return None
    right = reweight(probabilities, class_shares(counts), CLIMATEX_MIX).argmax(axis=1) == truth
    generator = np.random.default_rng(0)
    found = []
    for _ in range(draws):
        taken = [
            generator.choice(np.flatnonzero(truth == level), int(count), replace=False)
            for level, count in enumerate(CLIMATEX_MIX)
        ]
        found.append(right[np.concatenate(taken)].mean())
    return np.quantile(found, [0.025, 0.5, 0.975]).tolist()


def held_out_part(training: TrainingTexts) -> Split:
    """A quarter of the statements, in whole sections; near copies of them are left out of training."""
    sizes = np.bincount(training.groups)
    order = np.random.default_rng(HELD_OUT_SEED).permutation(len(sizes))
    taken = order[np.cumsum(sizes[order]) <= HELD_OUT * len(training.texts)]
    inside = np.isin(training.groups, taken)
    test = np.flatnonzero(inside)
    return Split(np.setdiff1d(np.flatnonzero(~inside), training.duplicates.of(test)), test)


def pooled(found: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Geometric mean of several probabilities [n, levels], normalised."""
    return softmax(np.mean([np.log(np.maximum(one, 1e-12)) for one in found], axis=0))


def states_of(training: TrainingTexts, file: Path) -> np.ndarray:
    """States of all statements, [statements, layers, 2, width], from the file where it is there."""
    if not file.is_file():
        model = LocalModel("local:smollm2", dtype="bfloat16")
        np.savez(file, states=text_states(model, [text for text, _ in training.texts], LAYERS).astype(np.float16))
    return np.load(file)["states"]


def on_states(training: TrainingTexts, states: np.ndarray, split: Split, pooling: str, layer: int) -> np.ndarray:
    """Probabilities of the test part by a regression on hidden states."""
    block = states[:, LAYERS.index(layer), POOLINGS.index(pooling)].astype(np.float64)
    model = fit_linear([block[split.train]], training.truth[split.train], len(TAGGER_LEVELS), standardise=False)
    return model.probabilities([block[split.test]])


def with_states(training: TrainingTexts, states: np.ndarray, wordy: NDArray[np.float64]) -> list[dict]:
    """Regressions on states, layer by layer; and pooled with a tagger that reads words and vectors."""
    rows, held = {}, {}
    for key in [(pooling, layer) for layer in LAYERS for pooling in POOLINGS]:
        held[key] = np.zeros((len(training.texts), len(TAGGER_LEVELS)))
        for split in training.splits(SECTIONS):
            held[key][split.test] = on_states(training, states, split, *key)
        rows[key] = row(f"{key[0]} state, layer {key[1]}", training.truth, held[key], training.groups)
    best = sorted(rows, key=lambda key: rows[key]["natural"]["log_loss"]["value"])[:2]
    together = pooled([wordy, *(held[key] for key in best)])
    return [*rows.values(), row(f"in context, with states of {best}", training.truth, together, training.groups)]


def by_comparison(items: list[LabelledItem], split: Split, count: int) -> list[dict]:
    """PPAIRS_INSERT: 100 labelled statements of the training part, ``count`` of the held-out one."""
    model = LocalModel("local:smollm2")
    labelled = sample_balanced([items[place] for place in split.train])
    new = sample_balanced([items[place] for place in split.test], count, seed=1)
    truth = np.array([TAGGER_LEVELS.index(one.tag) for one in new])
    found = []
    for method in ("pointwise", "ppairs"):
        tagger = train_insertion(labelled, model, method=method, layers=(20,))
        score = row(f"insertion, {method}", truth, tagger.predict_proba([one.item for one in new]), np.arange(len(new)))
        found.append(score | {"pair_accuracy": asdict(tagger.trained.accuracy)})
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

    file = given.data / "climatex_train.tsv"
    data = read_climatex(file, given.data / "ipcc_ar6_paragraphs.jsonl.gz")
    items = list(data.items)
    keep("data", {"rows": data.rows, "kept": len(items), "match_rate": data.match_rate})
    training = make_training_texts(items, FeatureModels(load_encoder()))
    split = held_out_part(training)
    part = make_training_texts([items[place] for place in split.train], training.models)
    tried = compare_classifiers(SPECS, part, folds=SECTIONS)
    chosen = choose_best(tried).spec
    rows = [row(one.spec.name, part.truth, one.probabilities, part.groups) for one in tried]
    keep("choice", {"chosen": chosen.name, "rows": rows})
    held = []
    for spec in SPECS:
        said = fit_classifier(spec, training, split.train).probabilities(training, split.test)
        held.append(row(spec.name, training.truth[split.test], said, training.groups[split.test]))
    keep("held_out", held)
    everything = compare_classifiers([chosen, SPECS[0]], training, folds=SECTIONS)
    keep(
        "all_by_section", [row(one.spec.name, training.truth, one.probabilities, training.groups) for one in everything]
    )
    documents = np.unique([one.document for one in items], return_inverse=True)[1]
    chapters = compare_classifiers([chosen, SPECS[0]], training, fold_groups=documents, folds=CHAPTERS)
    keep("all_by_chapter", [row(one.spec.name, training.truth, one.probabilities, training.groups) for one in chapters])
    reports = {}
    for report in dict.fromkeys(one.report for one in items):
        own = np.array([one.report == report for one in items])
        found = evaluate(
            training.truth[own], everything[0].probabilities[own], TAGGER_LEVELS, groups=training.groups[own]
        )
        reports[report] = asdict(found)
    keep("by_report", reports)
    if given.bundle:
        source = Provenance(data=file.name, data_sha256=file_digest(file), licence=CLIMATEX_LICENCE)
        made = train_tagger(
            items, training, specs=[chosen], folds=SECTIONS, document_folds=CHAPTERS, provenance=source
        )  # fmt: skip
        made.classifier.save(given.bundle)
    if given.states:
        keep("states", with_states(training, states_of(training, given.states), everything[0].probabilities))
    if given.pairs:
        keep("insertion", by_comparison(items, split, given.pairs))


if __name__ == "__main__":
    main()
