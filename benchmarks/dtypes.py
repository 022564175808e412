"""What computing in bfloat16 instead of float32 changes: the option chosen, log-probabilities, answers, probes.

Both copies of the model get the same requests:

  letters, texts   questions of the primer and of Pira without a context, weighed by option letters and by option texts
  answers          greedy answers of at most 48 tokens
  probes           trained and tested on the same summaries of Newsroom and SummEval, three folds that share no article

Intervals are Wilson's for shares, and 95% bootstrap intervals over questions, or articles, for differences. A processor
without bfloat16 instructions takes several times as long; ``--emulate`` (its default there) keeps weights, inputs and
outputs of every linear layer in bfloat16 and multiplies in float32, as those instructions do, at the speed of float32.
The difference between the two ways on the first three primer questions is printed.

Run: python benchmarks/dtypes.py [--pira 100] [--newsroom 42] [--pairs 12] [--summeval 14] [--json]
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from climassay.judging.item_tables import ItemColumns, read_items
from climassay.judging.judges import BootstrapUnits, StateExtractor, StateTable
from climassay.judging.preferences import Item, QualityRequests, quality
from climassay.judging.training import MethodName, ProbeSettings, create_candidate, make_folds
from climassay.learning.harvest import ActivationStore
from climassay.models.contract import GenerationRequest, Message, Sampling
from climassay.models.local.loading import load_local
from climassay.models.local.model import LocalModel
from climassay.statistics.intervals import paired_difference, proportion
from generation import questions as prompts
from mcq_scoring import DATA, Question, pira_questions, primer_questions, request

LAYERS = (16, 20, 24, -1)
"""Kept of every comparison; cross-validation on training items chooses one."""


@dataclass(frozen=True)
class Change:
    """One measurement in both formats."""

    job: str
    n: int
    float32: float | None
    """Accuracy."""
    bfloat16: float | None
    difference: tuple[float, float, float] | None
    """bfloat16 minus float32, with the ends of its interval."""
    same: tuple[float, float, float] | None = None
    """Share of equal choices, with the ends of its interval."""
    logprob: float | None = None
    """Mean absolute difference of an option's log-probability."""


def emulate(model: LocalModel) -> None:
    """Multiply in float32 what is kept in bfloat16: what the instructions do that this processor lacks."""

    def linear(weight: torch.Tensor, bias: torch.Tensor | None, inputs: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(inputs.float(), weight, bias).to(inputs.dtype)

    layers = dict(model.network.model.named_modules())
    for name, plain in load_local(model.name.removeprefix("local:"), dtype=model.dtype).model.named_modules():
        if isinstance(plain, torch.nn.Linear):
            bias = None if plain.bias is None else plain.bias.float()
            layers[name].forward = partial(linear, plain.weight.float(), bias)  # type: ignore[method-assign]


def scored(model: LocalModel, asked: Sequence[Question], *, letters: bool) -> list[tuple[float, ...]]:
    """Log-probabilities of each question's options."""
    return [one.logprobs for one in model.option_logprobs([request(one, letters=letters) for one in asked])]


def choices(models: Sequence[LocalModel], name: str, asked: Sequence[Question], *, letters: bool) -> Change:
    """Options weighed by both."""
    first, second = (scored(model, asked, letters=letters) for model in models)
    chosen = [[int(np.argmax(row)) for row in rows] for rows in (first, second)]
    right = [[float(a == one.correct) for a, one in zip(row, asked, strict=True)] for row in chosen]
    change = paired_difference(right[0], right[1]).difference
    same = proportion(sum(a == b for a, b in zip(*chosen, strict=True)), len(asked))
    return Change(
        f"{name}, {'letters' if letters else 'texts'}",
        len(asked),
        float(np.mean(right[0])),
        float(np.mean(right[1])),
        (change.value, change.interval.low, change.interval.high),
        (same.value, same.interval.low, same.interval.high),
        float(np.mean(np.abs(np.fromiter(chain(*first), float) - np.fromiter(chain(*second), float)))),
    )


def answers(models: Sequence[LocalModel], count: int) -> Change:
    """Greedy answers of both; equal from the first token to the last."""
    asked = [GenerationRequest((Message("user", text),), Sampling(max_tokens=48)) for text in prompts(count)]
    texts = [[done.text for done in model.generate(asked)] for model in models]
    same = proportion(sum(a == b for a, b in zip(*texts, strict=True)), count)
    return Change("answers", count, None, None, None, (same.value, same.interval.low, same.interval.high))


def summaries(file: str, aspect: str, articles: int) -> list[Item]:
    """Labelled summaries of the first articles."""
    columns = ItemColumns("summary", "summary_id", "article", "article_id", aspect)
    items = read_items(DATA / file, columns, context_words=600).items
    kept = set(list(dict.fromkeys(item.group for item in items))[:articles])
    return [item for item in items if item.group in kept]


def probes(models: Sequence[LocalModel], file: str, aspect: str, method: MethodName, articles: int) -> Change:
    """A probe trained on, and applied to, the states of each."""
    items = summaries(file, aspect, articles)
    labels = np.array([item.label for item in items])
    folds = make_folds(items, train_items=100, folds=3, seed=0)
    pairs = np.concatenate([fold.test_pairs for fold in folds])
    truth = np.sign(labels[pairs[:, 0]] - labels[pairs[:, 1]])
    right = []
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            asked = QualityRequests(quality("text", aspect))
            extractor = StateExtractor(model, asked, LAYERS, ActivationStore(Path(folder)))
            settings = ProbeSettings(layers=tuple((layer,) for layer in LAYERS))
            candidate = create_candidate(method, items, asked, model, StateTable(extractor, items), settings)
            candidate.prepare(folds)
            odds = np.concatenate([candidate.fit_fold(fold).judge(fold.test_pairs).log_odds for fold in folds])
        right.append((1 + np.sign(odds) * truth)[truth != 0] / 2)
    change = (
        BootstrapUnits.of([item.group for item in items])
        .paired_difference(right[0], right[1], pairs[truth != 0])
        .difference
    )
    assert change.value is not None
    assert change.low is not None
    assert change.high is not None
    return Change(
        f"{Path(file).stem} {aspect}, {method}, {articles} articles",
        len(right[0]),
        float(right[0].mean()),
        float(right[1].mean()),
        (change.value, change.low, change.high),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="local:smollm2")
    parser.add_argument("--primer", type=int, default=60, help="questions of the primer")
    parser.add_argument("--pira", type=int, default=100, help="questions of Pira")
    parser.add_argument("--answers", type=int, default=24)
    parser.add_argument("--newsroom", type=int, default=42, help="articles for probes on single summaries")
    parser.add_argument("--pairs", type=int, default=12, help="articles of Newsroom for probes on pairs")
    parser.add_argument("--summeval", type=int, default=14, help="articles for probes on single summaries")
    capabilities = getattr(torch.cpu, "get_capabilities", dict)()
    has = bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    parser.add_argument("--emulate", action=argparse.BooleanOptionalAction, default=not has)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    models = [LocalModel(given.model, device="cpu", dtype=dtype) for dtype in ("float32", "bfloat16")]
    primer = primer_questions()
    apart = None
    if given.emulate:
        plain = scored(models[1], primer[:3], letters=True)
        emulate(models[1])
        models[1].reader.release()
        apart = float(np.abs(np.array(plain) - np.array(scored(models[1], primer[:3], letters=True))).mean())
    jobs = [
        *(partial(choices, models, "primer", primer[: given.primer], letters=way) for way in (True, False)),
        *(partial(choices, models, "Pira", pira_questions()[: given.pira], letters=way) for way in (True, False)),
        partial(probes, models, "newsroom.jsonl", "coherence", "pointwise", given.newsroom),
        partial(probes, models, "summeval.jsonl", "coherence", "pointwise", given.summeval),
        *([partial(answers, models, given.answers)] if given.answers else []),
        *([partial(probes, models, "newsroom.jsonl", "coherence", "ppairs", given.pairs)] if given.pairs else []),
    ]
    found = []
    how = "emulated" if given.emulate else "by the processor"
    print(f"{given.model}, threads: {models[0].threads}, bfloat16 {how}", file=sys.stderr)
    for job in jobs:
        found.append(job())
        print(row(found[-1]), file=sys.stderr if given.json else sys.stdout, flush=True)
    if given.json:
        print(json.dumps({"emulated": given.emulate, "apart": apart, "changes": [asdict(one) for one in found]}))
    elif apart is not None:
        print(f"emulated and computed bfloat16 differ by {apart:.4f} in a letter's log-probability")


def row(change: Change) -> str:
    """For the screen."""

    def shown(value: float | tuple[float, float, float] | None, sign: str = "") -> str:
        if value is None:
            return "-"
        value = value if isinstance(value, tuple) else (value,)
        first, *ends = (f"{one:{sign}.3f}" for one in value)
        return f"{first} [{', '.join(ends)}]" if ends else first

    cells = (shown(change.float32), shown(change.bfloat16), shown(change.difference, "+"), shown(change.same))
    return " | ".join((change.job, str(change.n), *cells, shown(change.logprob)))


if __name__ == "__main__":
    main()
