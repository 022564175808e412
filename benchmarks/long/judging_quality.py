"""How well a local model judges, by every method, beside the baselines: the tables of docs/results/judging.md.

Newsroom and SummEval come from the folder of shared data (``--data``). It takes hours on two cores and can be killed
and started again at any time: hidden states are kept in ``--activations``, answers in the records of ``--workspace``.

Usage: python benchmarks/long/judging_quality.py newsroom [--model local:NAME] [--articles N] [--methods ppairs,pairs]
       [--wordings 1,2,3]
"""

import argparse
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from climassay.judging.benchmark import JudgeScores, score_judge
from climassay.judging.item_tables import ItemColumns, read_items
from climassay.judging.judges import StateExtractor, StateTable, layer_choices, layers_of
from climassay.judging.preferences import Item, QualityRequests, quality, with_mirrors
from climassay.judging.training import (
    METHODS,
    NEEDS_WEIGHTS,
    ProbeSettings,
    collect_pairs,
    create_candidate,
    make_folds,
)
from climassay.learning.harvest import ActivationStore, harvest
from climassay.models import ModelOptions, OpenWeights, load_model
from climassay.records import RecordedModel, Records
from climassay.workspace import Workspace

DATA = Path(os.environ.get("CLIMASSAY_DATA", Path(__file__).parents[3] / "shared" / "data"))
ASPECTS = {
    "newsroom": ("coherence", "fluency", "informativeness", "relevance"),
    "summeval": ("coherence", "fluency", "consistency", "relevance"),
}
SORTS = ("strengths", "fitted", "greedy", "exact", "beam")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dataset", choices=sorted(ASPECTS))
    parser.add_argument("--model", default="local:smollm2", help="local:smollm2, or local:FOLDER_OR_HUB_ID")
    parser.add_argument("--articles", type=int, help="the first so many articles of the file")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--wordings", default="1")
    parser.add_argument("--aspects")
    parser.add_argument("--train-items", default="100")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--variants", action="store_true", help="other layers, sorts, learning curve")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--activations", type=Path, required=True)
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--json", type=Path, help="append one result per line")
    options = parser.parse_args()
    path = options.data / f"{options.dataset}.jsonl"
    if not path.exists():
        print(f"{path} is not there: nothing measured.")
        return 0
    aspects = (options.aspects or ",".join(ASPECTS[options.dataset])).split(",")
    import torch

    torch.set_num_threads(options.threads)
    model = load_model(options.model, ModelOptions(dtype=options.dtype))
    torch.set_num_threads(options.threads)
    place = Workspace.open(options.workspace)
    with (
        Records(place.records_url) as records,
        records.run("benchmarks/long/judging_quality", {**vars(options), "data": str(path)}) as run,
    ):
        for wording in map(int, options.wordings.split(",")):
            for size in map(int, options.train_items.split(",")):
                for aspect in aspects:
                    _measure(options, path, model, RecordedModel(model, records, run), aspect, wording, size)
    return 0


def _probes(model: OpenWeights) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return, by name, sets of layers among which cross-validation on training items chooses.

    The bundled model's are 16, 20, 24 and the last of 30. Published PPairS reads the last layer alone.
    """
    choices = layer_choices(model, ())
    *inner, last = choices
    side_by_side = tuple(layer for layers in inner for layer in layers)
    return {
        "": choices,
        " last layer": (last,),
        f" layer {side_by_side[0]}": (side_by_side[:1],),
        f" layers {'+'.join(map(str, side_by_side))}": (side_by_side,),
    }


def _items(path: Path, aspect: str, articles: int | None) -> tuple[Item, ...]:
    columns = ItemColumns("summary", "summary_id", "article", "article_id", aspect)
    items = read_items(path, columns, context_words=600).items
    kept = list(dict.fromkeys(item.group for item in items))[:articles]
    return tuple(item for item in items if item.group in set(kept))


def _measure(options, path, model, recorded, aspect, wording, size) -> None:
    items = _items(path, aspect, options.articles)
    folds = make_folds(items, train_items=size, folds=3, seed=options.seed)
    questions = QualityRequests(quality("text", aspect, wording=wording))
    methods = options.methods.split(",")
    store = ActivationStore(options.activations, storage="float16")
    probes = _probes(model)
    layers_read = layers_of(probes[""])
    extractor = StateExtractor(model, questions, layers_read, store)
    if set(methods) & (NEEDS_WEIGHTS - {"pointwise", "pointwise-length"}):
        # Article by article, so that an interruption loses one article at most.
        pairs = with_mirrors(collect_pairs(folds))
        for group in dict.fromkeys(item.group for item in items):
            inside = np.array([items[first].group == group for first in pairs[:, 0]])
            harvest(model, questions.contrast(items, pairs[inside]), layers=layers_read, store=store)
    for method in methods:
        probed = method in NEEDS_WEIGHTS and method != "zero-shot"
        for label, layers in probes.items() if probed and options.variants else [("", probes[""])]:
            table = StateTable(extractor, items)
            candidate = create_candidate(method, items, questions, recorded, table, ProbeSettings(layers=layers))
            sorts = SORTS if options.variants and not label and method in ("ppairs", "pairs") else SORTS[:1]
            curve = (10, 20, 50, 100, 200) if options.variants and probed and not label else ()
            for sort in sorts:
                sizes = tuple(n for n in curve if n <= size) if sort == sorts[0] else ()
                scores = score_judge(
                    items, folds, candidate, method=method + label, quality=aspect, sort=sort, sizes=sizes
                )
                _report(options, replace(scores, order=()), wording, size, sort)


def _report(options, scores: JudgeScores, wording: int, size: int, sort: str) -> None:
    def figure(one) -> str:
        return "-" if one.value is None else f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"

    ours, gain, near = scores.agreement, scores.versus_longer, scores.versus_longer_nearly_equal
    cells = [
        options.model,
        options.dataset,
        scores.quality,
        f"{scores.method} w{wording} n{size} {sort}",
        figure(ours.accuracy_differing),
        f"longer {figure(scores.baselines['longer'].accuracy_differing)}",
        f"gain {figure(gain.difference)}",
        f"near {figure(ours.accuracy_nearly_equal_length)} gain {figure(near.difference)}",
        f"3-way {figure(ours.accuracy_three_way)}",
        f"rho {figure(ours.spearman)}",
        f"layers {[list(layers) for layers in scores.layers]}",
        f"failed {scores.failed}",
    ]
    print(" | ".join(cells), flush=True)
    if options.json:
        row = {
            "model": options.model,
            "dataset": options.dataset,
            "wording": wording,
            "train_items": size,
            "sort": sort,
            "seed": options.seed,
        }
        with options.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, "articles": options.articles, **asdict(scores)}, default=float) + "\n")


if __name__ == "__main__":
    sys.exit(main())
