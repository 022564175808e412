"""Hidden states of comparisons: this package against the published loop, same weights, same tokens, side by side.

Claim: at most a twelfth of the tokens and at least eight times faster, with the same states (to 1e-4), on comparisons
of Newsroom's shape: an article of up to 600 words, and all 42 ordered pairs of its 7 summaries.

The published loop makes two full forward passes a comparison, one for each forced answer, at batch size one, with
``output_hidden_states=True`` and the language-model head on every token. Both sides hold the same model object in
float32 with the same number of threads; they run in turns, an article at a time, and what this package keeps between
calls is dropped before each turn. As the loop takes minutes an article on a CPU, ``--loop-pairs`` times it on some of
the comparisons, evenly spread; the ratio is then that of the times per comparison, and token counts are of all.

Run: python benchmarks/harvest.py [--data ../shared/data] [--articles 2] [--loop-pairs 42] [--device cuda] [--json]

Without the Newsroom file the articles and items are passages and questions of the primer.
"""

import argparse
import functools
import html
import itertools
import json
import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from climassay.learning.harvest import harvest
from climassay.models.contract import Message, OptionRequest
from climassay.models.local.loading import load_local
from climassay.models.local.model import LocalModel

WORDS = 600
SUMMARIES = 7
PREFIX = "Between Choice 1 and Choice 2, the more relevant choice is Choice "


@dataclass(frozen=True)
class Article:
    """A text and what is said of it."""

    text: str
    summaries: tuple[str, ...]


def newsroom(path: Path, count: int) -> list[Article]:
    """The first articles of the Newsroom file, as plain text of up to 600 words."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["article_id"], []).append(row)
    return [
        Article(_shortened(rows[0]["article"]), tuple(_plain(row["summary"]) for row in rows[:SUMMARIES]))
        for rows in list(found.values())[:count]
    ]


def primer(count: int) -> list[Article]:
    """Passages of the bundled questions put together to articles, and the questions as their items."""
    folder = resources.files("climassay.primer") / "questions"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".jsonl")), key=lambda entry: entry.name)
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    texts = {row["question"]: row["passage"] for row in rows if row.get("passage")}
    questions = list(texts)
    return [
        Article(
            _shortened(" ".join(dict.fromkeys(texts[question] for question in questions[start:] + questions[:start]))),
            tuple(questions[start : start + SUMMARIES]),
        )
        for start in range(0, count * SUMMARIES, SUMMARIES)
    ]


def comparisons(article: Article) -> list[OptionRequest]:
    """All ordered pairs of an article's summaries."""
    return [
        OptionRequest(
            (
                Message(
                    "user",
                    f"Consider the following article:\n{article.text}\n\nBelow are two summaries of this article.\n\n"
                    f"Choice 1: {first}\n\nChoice 2: {second}\n\nWhich summary is more relevant?",
                ),
            ),
            ("1", "2"),
            PREFIX,
        )
        for first, second in itertools.permutations(article.summaries, 2)
    ]


@functools.cache
def plain_network(model: LocalModel) -> Any:
    """The model as transformers loads it."""
    return load_local(model.name.removeprefix("local:"), device=model.device, dtype=model.dtype).model


def published_loop(model: LocalModel, requests: Sequence[OptionRequest]) -> NDArray[np.float32]:
    """Two plain passes a comparison; last layer's states at the answer, [comparisons, 2, width]."""
    states = []
    network = plain_network(model)
    for request in requests:
        prompt = model.render(request.messages, request.assistant_prefix)
        for option in request.options:
            tokens = torch.tensor([model.prompts.encode(prompt + option)], device=model.device)
            with torch.no_grad():
                out = network(input_ids=tokens, attention_mask=torch.ones_like(tokens), output_hidden_states=True)
            states.append(out.hidden_states[-1][0, -1].float().cpu().numpy())
    return np.stack(states).reshape(len(requests), 2, -1)


def seconds(model: LocalModel, work: Any) -> tuple[float, Any]:
    """Time of some work, with the device's queue empty before and after."""
    _wait(model)
    started = time.perf_counter()
    result = work()
    _wait(model)
    return time.perf_counter() - started, result


def compare(model: LocalModel, article: Article, *, loop_pairs: int, token_budget: int | None) -> dict[str, float]:
    """Both sides on one article, the loop first."""
    requests = comparisons(article)
    chosen = np.unique(np.linspace(0, len(requests) - 1, min(loop_pairs, len(requests))).round().astype(int))
    plain_network(model)
    loop_seconds, expected = seconds(model, lambda: published_loop(model, [requests[index] for index in chosen]))
    model.reader.release()
    own_seconds, found = seconds(model, lambda: harvest(model, requests, token_budget=token_budget))
    assert not found.failed
    return {
        "pairs": len(requests),
        "loop_pairs": len(chosen),
        "tokens_two_pass": found.tokens_two_pass,
        "tokens_computed": found.tokens_computed,
        "passes": found.passes,
        "loop_seconds": loop_seconds,
        "climassay_seconds": own_seconds,
        "ratio": (loop_seconds / len(chosen)) / (own_seconds / len(requests)),
        "largest_difference": float(np.abs(found.states[chosen, :, 0] - expected).max()),
    }


def summary(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """All articles together; the ratio of times is the median of the articles'."""
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    return {
        "pairs": total["pairs"],
        "token_ratio": total["tokens_two_pass"] / total["tokens_computed"],
        "time_ratio": statistics.median(row["ratio"] for row in rows),
        "loop_pairs_per_second": total["loop_pairs"] / total["loop_seconds"],
        "climassay_pairs_per_second": total["pairs"] / total["climassay_seconds"],
        "largest_difference": max(row["largest_difference"] for row in rows),
    }


def _plain(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html.unescape(text)).split())


def _shortened(text: str) -> str:
    return " ".join(_plain(text).split()[:WORDS])


def _wait(model: LocalModel) -> None:
    if model.device.startswith("cuda"):
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with newsroom.jsonl")
    parser.add_argument("--model", default="local:smollm2")
    parser.add_argument("--articles", type=int, default=2)
    parser.add_argument("--loop-pairs", type=int, default=42, help="comparisons an article that the loop is timed on")
    parser.add_argument("--device", help="as torch names it, for example cuda")
    parser.add_argument("--dtype", default="float32", help="in 16 bits the differences are those of rounding")
    parser.add_argument("--token-budget", type=int, help="most tokens of one forward pass")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    path = given.data / "newsroom.jsonl"
    articles = newsroom(path, given.articles) if path.exists() else primer(given.articles)
    model = LocalModel(given.model, device=given.device, dtype=given.dtype)
    warm = comparisons(Article("Warm up.", articles[0].summaries[:2]))
    published_loop(model, warm)
    harvest(model, warm)
    rows = []
    for article in articles:
        rows.append(compare(model, article, loop_pairs=given.loop_pairs, token_budget=given.token_budget))
        if not given.json:
            row = rows[-1]
            print(
                f"{row['pairs']} pairs: tokens {row['tokens_computed']} of {row['tokens_two_pass']}, "
                f"{row['passes']} passes; loop {row['loop_seconds']:.1f} s for {row['loop_pairs']} pairs, climassay "
                f"{row['climassay_seconds']:.1f} s for all; {row['ratio']:.1f} times faster, "
                f"largest difference {row['largest_difference']:.1e}",
                flush=True,
            )
    whole = summary(rows)
    if given.json:
        about = {"model": given.model, "device": model.device, "dtype": model.dtype, "threads": model.threads}
        print(json.dumps({**about, "source": path.stem if path.exists() else "primer", "articles": rows, **whole}))
        return
    print(
        f"{given.model}, {model.dtype}, {model.device}, threads: {model.threads}: {whole['token_ratio']:.1f} times "
        f"fewer tokens, {whole['time_ratio']:.1f} times faster ({whole['loop_pairs_per_second']:.2f} against "
        f"{whole['climassay_pairs_per_second']:.2f} pairs/s), largest difference {whole['largest_difference']:.1e}"
    )


if __name__ == "__main__":
    main()
