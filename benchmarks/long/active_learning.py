"""Active learning played through on the rated questions of Pirá 2, and on a control where there is something to learn.

    python benchmarks/long/active_learning.py --data ../shared/data --out runs/active_learning

Takes about half an hour on one core, most of it the hidden states of the probe; started again it goes on where it was.
The control takes Pirá's valid questions and makes a fifth of them invalid by giving them the answer of another passage:
it shows that the simulation finds a difference between strategies where labels can be learned.
"""

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from labelling_simulation import (
    SimulationItems,
    SimulationSettings,
    simulate,
    simulation_report,
    simulation_tables,
    summarise,
)

from climassay.generation.draft import Subject, Wording
from climassay.generation.validation.labels import (
    LabelledDraft,
    LabelSet,
    ValidatorScores,
    labels_array,
    read_label_set,
    score_validator,
    source_groups,
)
from climassay.generation.validation.readers import (
    StateReader,
    TextReader,
    draft_vectors,
    validation_prompt,
    validation_request,
)
from climassay.generation.validation.training import cross_validate, train_validator
from climassay.learning import ActivationStore, harvest
from climassay.models import OpenWeights, load_model
from climassay.models.contract import calibrate
from climassay.models.encoders import load_encoder
from climassay.reporting import as_markdown

LAYERS = (15, 18, 21, 24, 30)
"""Layers whose states are kept; the simulation reads the second."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="Folder with pira_qa.csv.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--model", default="local:smollm2", help="Of zero-shot and probe; none leaves both out.")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    pira = read_label_set(given.data / "pira_qa.csv")
    settings = SimulationSettings(splits=given.splits)
    run("control", control(pira), settings, given.out, "none")
    run("pira", pira, settings, given.out, given.model)


def control(pira: LabelSet, seed: int = 0) -> LabelSet:
    """Valid questions, a fifth of them with the answer of a question on another passage."""
    good = [one for one in pira.drafts if one.valid]
    groups = source_groups([one.draft for one in good])
    generator = np.random.default_rng(seed)
    spoiled = set(generator.permutation(len(good))[: len(good) // 5].tolist())
    made = []
    for place, one in enumerate(good):
        if place not in spoiled:
            made.append(one)
            continue
        other = int(generator.choice(np.flatnonzero(groups != groups[place])))
        wording = Wording(one.draft.wording.question, good[other].draft.wording.answer)
        made.append(LabelledDraft(replace(one.draft, wording=wording), False, "wrong answer"))
    return pira._replace(name="control", drafts=tuple(made))


def zero_shot(model: OpenWeights, labels: LabelSet, store: ActivationStore) -> np.ndarray:
    """P(valid) by the model's own words, which come free with the hidden states."""
    prompt, science = validation_prompt(), Subject()
    requests = [validation_request(one.draft, prompt, science) for one in labels.drafts]
    given = harvest(model, requests, layers=LAYERS, store=store).logprobs
    return np.array([calibrate(row)[0] for row in given.tolist()])


def probe_scores(blocks: tuple[np.ndarray, ...], valid: np.ndarray, groups: np.ndarray) -> ValidatorScores:
    """As training the probe gives them, from states that have been read already."""
    probabilities, folds = cross_validate(blocks, valid, groups)
    return score_validator(valid, probabilities, groups, folds=folds)


def run(name: str, labels: LabelSet, settings: SimulationSettings, out: Path, model: str) -> None:
    encoder = load_encoder()
    drafts = [one.draft for one in labels.drafts]
    valid, groups = labels_array(labels.drafts), source_groups(drafts)
    trained = train_validator(labels, TextReader(encoder))
    found = {"features": asdict(trained.scores)}
    blocks = {"features": TextReader(encoder).read(drafts).blocks}
    zero = None
    if model != "none":
        asked = load_model(model)
        store = ActivationStore(out / "activations")
        states = StateReader(asked, validation_prompt(), LAYERS, store, Subject()).read(drafts).blocks
        zero = zero_shot(asked, labels, store)
        found["zero-shot"] = asdict(score_validator(valid, zero, groups))
        width = states[0].shape[1] // len(LAYERS)
        at = LAYERS.index(18)
        blocks["probe"] = tuple(block[:, at * width : (at + 1) * width] for block in states)
        found["probe"] = asdict(probe_scores(blocks["probe"], valid, groups))
    (out / f"{name}_scores.json").write_text(json.dumps(found, indent=1))
    vectors = draft_vectors(drafts, encoder)
    for kind, features in blocks.items():
        items = SimulationItems(f"{labels.name}, {kind}", features, vectors, valid, groups, zero)
        results = simulate(
            items, settings, store=out / f"{name}_{kind}.jsonl", on_split=lambda _: print(".", end="", flush=True)
        )
        summary = summarise(items, results)
        simulation_report(summary, settings, labels.drafts).write(out / f"{name}_{kind}.html")
        text = "\n".join(map(as_markdown, simulation_tables(summary, settings)))
        (out / f"{name}_{kind}.md").write_text(text)
        (out / f"{name}_{kind}.json").write_text(json.dumps(asdict(summary), indent=1))
        print(text, flush=True)


if __name__ == "__main__":
    main()
