"""Verdicts on Climate-FEVER with given evidence: prompts, calibration and trained heads, beside the baselines.

The tables of docs/results/factcheck_climate_fever.md. 200 claims are held out by whole groups of like claims; every
choice is made by cross-validation on the others. It can be killed and started again at any time: hidden states are kept
in the cache folder, answers in the records of ``--workspace``.

Usage: python benchmarks/long/factcheck_climate_fever.py [--output results.json] [--head head.safetensors]
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from climassay.factcheck.evidence_mode import (
    EvidenceClaim,
    EvidenceTable,
    check_with_evidence,
    read_evidence_claims,
)
from climassay.factcheck.scales import CLIMATE_FEVER
from climassay.factcheck.verdict_head import (
    ANSWERS,
    EVIDENCE_LABELS,
    PROMPT,
    VERDICT_LABELS,
    Material,
    Reading,
    TrainedHead,
    TrainingData,
    VerdictHead,
    check_with_head,
    default_readings,
    read_pairs,
    rule_verdict,
    train_head,
    verdict_features,
)
from climassay.judging import ActivationStore, fit_contrast
from climassay.learning import hold_out, log_loss, near_duplicate_groups, reweighted, splits_of
from climassay.models import OpenWeights, OptionRequest, load_model
from climassay.models.contract import PLACEHOLDERS, calibrate, mean_log_probabilities
from climassay.models.encoders import load_encoder
from climassay.prompts import load_prompt
from climassay.records import RecordedModel, Records
from climassay.reporting import Table, as_markdown
from climassay.workspace import Workspace, cache_folder

DATA = Path(os.environ.get("CLIMASSAY_DATA", Path(__file__).parents[3] / "shared" / "data"))
RESAMPLES = 5000
KINDS = len(VERDICT_LABELS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="local:smollm2")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--held-out", type=int, default=200)
    parser.add_argument("--limit", type=int, help="use only the first so many claims of the file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--output", type=Path, help="write everything as JSON")
    parser.add_argument("--head", type=Path, help="write the chosen head")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    Experiment(options).run()
    return 0


class Experiment:
    """The split, the model, and what has been found so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.table = read_evidence_claims(DATA / "climate_fever.jsonl")
        rows = self.table.rows[: options.limit]
        self.encoder = load_encoder()
        groups = near_duplicate_groups([row.text for row in rows], self.encoder)
        kept, held_out = hold_out(groups, options.held_out, seed=options.seed)
        self.train: list[EvidenceClaim] = [rows[place] for place in kept]
        self.test: list[EvidenceClaim] = [rows[place] for place in held_out]
        self.truth = np.array([VERDICT_LABELS.index(row.label or "") for row in self.test])
        model = load_model(options.model, dtype=options.dtype)
        assert isinstance(model, OpenWeights)
        self.model = model
        self.store = ActivationStore(cache_folder() / "activations")
        self.readings = default_readings(model.layers, True)
        self.layers = tuple(sorted({layer for reading in self.readings for layer in reading.layers}))
        self.lines: list[dict[str, Any]] = []
        self.started = time.monotonic()

    def run(self) -> None:
        """Everything, cheapest first."""
        self.baselines()
        self.prompted()
        material = self.read_test()
        self.prompted_by_passage()
        self.heads(material)
        self.shared_contrast(material)
        self.show()

    def add(self, name: str, verdicts: Sequence[int | None], loss: float | None = None, **more: object) -> None:
        """Score verdicts on the held-out claims, with intervals over claims."""
        given = np.array([KINDS if verdict is None else verdict for verdict in verdicts])
        figures = scored(self.truth, given, self.options.seed)
        self.lines.append({"method": name, **figures, "log_loss": loss, **more})
        print(f"[{time.monotonic() - self.started:6.0f} s] {name}: {figures}", file=sys.stderr, flush=True)
        if self.options.output:
            self.options.output.write_text(json.dumps({"n": len(self.test), "rows": self.lines}, indent=2))

    def baselines(self) -> None:
        """A constant answer, and guesses drawn with the class shares of the training part."""
        shares = np.bincount([VERDICT_LABELS.index(row.label or "") for row in self.train], minlength=KINDS)
        self.shares = shares / shares.sum()
        self.add("constant", [int(self.shares.argmax())] * len(self.test))
        generator = np.random.default_rng(self.options.seed)
        draws = [generator.choice(KINDS, len(self.test), p=self.shares) for _ in range(RESAMPLES)]
        self.guesses = np.array([macro_f1(self.truth, draw) for draw in draws])
        accuracy = np.array([(self.truth == draw).mean() for draw in draws])
        self.lines.append(
            {
                "method": "random guess matched to the class shares",
                "macro_f1": float(self.guesses.mean()),
                "macro_f1_interval": np.quantile(self.guesses, [0.025, 0.975]).tolist(),
                "accuracy": float(accuracy.mean()),
                "accuracy_interval": np.quantile(accuracy, [0.025, 0.975]).tolist(),
            }
        )

    def prompted(self) -> None:
        """The model's own verdict on claim and all evidence, raw and calibrated."""
        with Records(Workspace.open(self.options.workspace).records_url) as records:
            for calibrated in (False, True):
                config = {"calibrated": calibrated, "seed": self.options.seed}
                with records.run(command="benchmark factcheck_climate_fever", config=config) as run:
                    scorer = RecordedModel(self.model, records, run)
                    found = check_with_evidence(self.test, scorer, CLIMATE_FEVER, calibrated=calibrated)
                places = [None if one.verdict is None else VERDICT_LABELS.index(one.verdict) for one in found]
                loss = log_loss(np.array([one.probabilities for one in found]), self.truth)
                self.add(f"prompted, all evidence, {'calibrated' if calibrated else 'raw'}", places, loss)

    def read_test(self) -> Material:
        """Hidden states and vectors of the held-out claims' passages, once for all heads."""
        pairs = [(row.text, passage) for row in self.test for passage in row.passages]
        prompt = load_prompt(PROMPT)
        return read_pairs(pairs, prompt, model=self.model, layers=self.layers, encoder=self.encoder, store=self.store)

    def prompted_by_passage(self) -> None:
        """The model's own answer on each passage, and the rule; raw and calibrated."""
        prompt = load_prompt(PROMPT)

        def request(claim: str, passage: str) -> OptionRequest:
            rendered = prompt.render(claim=claim, passage=passage)
            return OptionRequest(rendered.messages, ANSWERS, rendered.assistant_prefix)

        asked = [request(text, text) for text in PLACEHOLDERS]
        asked += [request(row.text, passage) for row in self.test for passage in row.passages]
        with (
            Records(Workspace.open(self.options.workspace).records_url) as records,
            records.run(command="benchmark factcheck_climate_fever", config={"seed": self.options.seed}) as run,
        ):
            found = [score.logprobs for score in RecordedModel(self.model, records, run).option_logprobs(asked)]
        blank, scores = mean_log_probabilities(found[: len(PLACEHOLDERS)]), found[len(PLACEHOLDERS) :]
        for name, correction in (("raw", None), ("calibrated", blank)):
            evidence = np.array([calibrate(score, correction) for score in scores])
            verdicts = [rule_verdict(rows.argmax(1)) for rows in self.by_claim(evidence)]
            self.add(f"prompted, passage by passage, {name}", verdicts)

    def shared_contrast(self, material: Material) -> None:
        """The contrast probe of ``judging`` as it is, one direction for all answers, with the heads' second step."""
        pairs = [(row.text, passage) for row in self.train for passage in row.passages]
        taught = read_pairs(pairs, load_prompt(PROMPT), model=self.model, layers=self.layers, store=self.store)
        groups = near_duplicate_groups([row.text for row in self.train], self.encoder)
        owner = np.repeat(np.arange(len(self.train)), [len(row.evidence) for row in self.train])
        lesson = TrainingData(self.train, taught, groups, 5, self.options.seed)
        labels = lesson.evidence
        layer = self.layers[len(self.layers) // 2]
        states = [part.states[:, :, part.layers.index(layer)] for part in (taught, material)]
        guesses = np.zeros((len(labels), len(EVIDENCE_LABELS)))
        for inside, outside in splits_of(lesson.folds[owner]):
            probe = SharedContrast(states[0][inside], labels[inside], groups[owner[inside]])
            guesses[outside] = probe.judge(states[0][outside])
        second = lesson.fit_verdicts(guesses, np.arange(len(lesson.truth)))
        evidence = SharedContrast(states[0], labels, groups[owner]).judge(states[1])
        plain = second.probabilities([np.array([verdict_features(rows) for rows in self.by_claim(evidence)])])
        verdicts = reweighted(plain, self.shares)
        name = f"contrast probe of judging, one direction, layer {layer}"
        self.add(name, verdicts.argmax(1).tolist(), log_loss(verdicts, self.truth))

    def heads(self, material: Material) -> None:
        """Trained heads: of words and vectors, of states, of both; the best by cross-validation is the one."""
        chosen = self.head(self.readings, material, "head chosen: ")
        best, settings = chosen.head.reading, chosen.choices[0].regularisation
        plain = Reading(best.states, best.layers, "none")
        other = Reading("mean" if best.states == "contrast" else "contrast", best.layers, "cosine")
        for readings in (
            (Reading("none", (), "none"),),
            (Reading("none", (), "vectors"),),
            (plain,),
            (other,),
            (Reading(best.states, best.layers, "vectors"),),
        ):
            self.head(readings, material, "head: ")
        self.fewer(chosen.head, material)
        self.end_to_end(chosen.head)
        if self.options.head:
            chosen.head.save(self.options.head)
        self.lines.append(
            {
                "method": "cross-validation",
                "regularisation": settings,
                "choices": [{**asdict(choice), "reading": str(choice.reading)} for choice in chosen.choices],
                "balances": {balance: one.figures for balance, one in chosen.balances.items()},
            }
        )

    def head(self, readings: Sequence[Reading], material: Material, name: str) -> TrainedHead:
        """Train on the training part, score on the held-out one."""
        trained = train_head(
            EvidenceTable(self.table.name, self.table.sha256, tuple(self.train), ()),
            self.train,
            self.model,
            encoder=self.encoder,
            readings=readings,
            layers=self.layers,
            seed=self.options.seed,
            store=self.store,
        )
        verdicts = self.verdicts(trained.head, material)
        self.add(
            f"{name}{trained.head.reading}",
            verdicts.argmax(1).tolist(),
            log_loss(verdicts, self.truth),
            balance=trained.head.balance,
            regularisation=trained.head.provenance.regularisation,
            held_out=trained.head.provenance.measured,
        )
        return trained

    def fewer(self, head: VerdictHead, material: Material) -> None:
        """The chosen head on the passages nearest to the claim only."""
        evidence = head.judge(material)
        cosines = np.sum(material.claims * material.passages, axis=1)
        for count in (1, 2, 3, 4):
            verdicts = [
                head.combine(rows[np.argsort(-near)[:count]])
                for rows, near in zip(self.by_claim(evidence), self.by_claim(cosines), strict=True)
            ]
            self.add(f"chosen head, nearest {count} of 5 passages", np.argmax(verdicts, axis=1).tolist())

    def end_to_end(self, head: VerdictHead) -> None:
        """The same through the function that users call, which reads the model anew."""
        found = check_with_head(self.test, head.with_models(self.encoder, self.model, self.store))
        self.add(
            "chosen head, end to end",
            [None if one.verdict is None else VERDICT_LABELS.index(one.verdict) for one in found],
        )

    def verdicts(self, head: VerdictHead, material: Material) -> np.ndarray:
        """Probabilities [claims, 4] of the held-out claims."""
        return np.array([head.combine(rows) for rows in self.by_claim(head.judge(material))])

    def by_claim(self, values: np.ndarray) -> list[np.ndarray]:
        """Values of passages, claim by claim."""
        return np.split(values, np.cumsum([len(row.evidence) for row in self.test])[:-1])

    def show(self) -> None:
        """The table of the document."""
        rows = []
        for line in self.lines:
            if "macro_f1" in line:
                cells = [with_interval(line, key) for key in ("macro_f1", "accuracy")]
                loss = line.get("log_loss")
                rows.append([str(line["method"]), *cells, "" if loss is None else f"{loss:.3f}"])
        headings = ("method", "macro-F1", "accuracy", "log-loss")
        print(as_markdown(Table.of(f"{len(self.test)} held-out claims of Climate-FEVER", headings, rows)))
        if self.options.output:
            self.options.output.write_text(json.dumps({"n": len(self.test), "rows": self.lines}, indent=2))


class SharedContrast:
    """One direction for all three answers; its three scores are calibrated by a small regression."""

    def __init__(self, states: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> None:
        from sklearn.linear_model import LogisticRegression

        self.mean = states.mean(axis=0)
        centred = states - self.mean
        probe = fit_contrast(*contrasts(centred, labels), groups=np.repeat(groups, len(ANSWERS))).probe
        self.weights = probe.weights * probe.scale
        self.fitted = LogisticRegression().fit(centred @ self.weights, labels)

    def judge(self, states: np.ndarray) -> np.ndarray:
        """Probabilities [passages, 3] from states [passages, answers, width]."""
        return np.asarray(self.fitted.predict_proba((states - self.mean) @ self.weights))


def contrasts(states: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The true answer against each other one: differences of activations, pairs of (passage, answer), their labels."""
    kinds = len(ANSWERS)
    differences, pairs = [], []
    for one in range(kinds):
        for other in range(kinds):
            if one != other:
                kept = np.flatnonzero((labels == one) | (labels == other))
                differences.append(states[kept, one] - states[kept, other])
                pairs.append(np.stack([kept * kinds + one, kept * kinds + other], axis=1))
    truth = np.eye(kinds)[labels].ravel()
    return np.concatenate(differences), np.concatenate(pairs), truth


def macro_f1(truth: np.ndarray, given: np.ndarray) -> float:
    """Mean F1 of the four classes."""
    hits = np.bincount(truth[truth == given], minlength=KINDS)
    total = np.bincount(truth, minlength=KINDS) + np.bincount(given, minlength=KINDS + 1)[:KINDS]
    return float(np.mean(2 * hits / np.maximum(total, 1)))


def scored(truth: np.ndarray, given: np.ndarray, seed: int) -> dict[str, object]:
    """Macro-F1 and accuracy with percentile bootstrap intervals over claims, and what exceeds matched guesses."""
    generator = np.random.default_rng(seed)
    shares = np.bincount(truth, minlength=KINDS) / len(truth)
    samples = [generator.integers(0, len(truth), len(truth)) for _ in range(RESAMPLES)]
    f1 = np.array([macro_f1(truth[sample], given[sample]) for sample in samples])
    above = f1 - [macro_f1(truth[sample], generator.choice(KINDS, len(truth), p=shares)) for sample in samples]

    def interval(measure: Callable[[np.ndarray], float] | None, values: np.ndarray) -> list[float]:
        return np.quantile(values if measure is None else [measure(s) for s in samples], [0.025, 0.975]).tolist()

    by_class = [
        float(2 * np.sum((truth == k) & (given == k)) / max(1, np.sum(truth == k) + np.sum(given == k)))
        for k in range(KINDS)
    ]
    return {
        "macro_f1": macro_f1(truth, given),
        "macro_f1_interval": interval(None, f1),
        "above_guess_interval": interval(None, above),
        "accuracy": float((truth == given).mean()),
        "accuracy_interval": interval(lambda sample: float((truth[sample] == given[sample]).mean()), f1),
        "f1": dict(zip(VERDICT_LABELS, by_class, strict=True)),
        "given": np.bincount(given, minlength=KINDS + 1).tolist(),
    }


def with_interval(line: dict[str, Any], key: str) -> str:
    """A measure of a row with its interval."""
    low, high = line[f"{key}_interval"]
    return f"{line[key]:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    raise SystemExit(main())
