"""Encoders on the processor: passages per second and what retrieval quality they leave, in one run.

All variants are the same model, all-MiniLM-L6-v2, on the same passages of about 2000 characters (some 400 tokens):

* sentence-transformers as it comes: float32, batches of 32, texts cut at 256 tokens,
* the same sorted by length into batches of a bounded number of padded tokens; then in bfloat16; then with the 8-bit
  dynamic quantisation of torch,
* our ONNX graph in float32 and in 8 bits, cut at 256 or 512 tokens, or the mean over windows of at most 256 tokens.

Quality is the recall of dense search alone on questions with a known passage, and the cosine to what torch computes in
float32 from the same tokens (where that is the cut text). Speed is passages per second of CPU time on one thread, the
best of some rounds of all variants in turn; ``all cores`` is wall-clock time.

    python benchmarks/encoder.py [--data ../shared/data] [--passages 96] [--rounds 3] [--json]
"""

import argparse
import csv
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from climassay.corpus.documents import split_passages
from climassay.corpus.gold_texts import MIN_GOLD_SHARE, GoldText, LabelledQuestion, read_gold_questions, split_words
from climassay.corpus.readers.file_types import read
from climassay.models.bundled import bundled_path, encoder_fingerprint
from climassay.models.encoders import WINDOW_TOKENS, BertEncoder, token_batches
from climassay.primer import book_names, book_path, question_paths

Encode = Callable[[Sequence[str]], Any]
SUMMARIES = ("SPM", "TS")


@dataclass(frozen=True)
class Result:
    """One variant."""

    name: str
    rate: float
    """Passages a second of CPU time, one thread."""
    ratio: float
    """To sentence-transformers as it comes."""
    cosine: float | None
    """Mean cosine to torch in float32 on the same tokens."""
    recall: float
    """Share of the questions whose passage is among the first ten."""
    mrr: float


class CutEncoder(BertEncoder):
    """Our graph, but every text is cut, as sentence-transformers does."""

    def __init__(self, folder: Path, precision: Any, most: int) -> None:
        super().__init__("cut", folder, encoder_fingerprint(folder, {}), precision, threads=1)
        self.most = most

    def _encode_tokens(self, session: Any, ids: Sequence[int]) -> Any:
        start, end = self._special_tokens
        cut = [start, *ids[: self.most - 2], end]
        return session.run(None, {"ids": np.array([cut], dtype=np.int32)})[0][0]


def by_budget(model: SentenceTransformer) -> Encode:
    def encode(texts: Sequence[str]) -> Any:
        lengths = [len(row) for row in model.tokenizer(list(texts), truncation=True, max_length=256)["input_ids"]]
        vectors = np.zeros((len(texts), 384), dtype=np.float32)
        for batch in token_batches(lengths, 2048):
            chosen = [texts[index] for index in batch]
            vectors[batch] = model.encode(chosen, batch_size=len(batch), normalize_embeddings=True)
        return vectors

    return encode


def variants(folder: Path) -> dict[str, Encode]:
    plain = SentenceTransformer(str(folder), device="cpu")
    half = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    whole = [BertEncoder("w", folder, encoder_fingerprint(folder, {}), p, threads=1) for p in ("float32", "int8")]
    found: dict[str, Encode] = {
        "sentence-transformers": lambda texts: plain.encode(list(texts), batch_size=32, normalize_embeddings=True),
        "torch, token batches": by_budget(plain),
        "torch, bfloat16": by_budget(half),
        "ONNX float32, cut at 256": CutEncoder(folder, "float32", 256).encode,
        "ONNX int8, cut at 256": CutEncoder(folder, "int8", 256).encode,
        "ONNX int8, cut at 512": CutEncoder(folder, "int8", 512).encode,
        "ONNX float32, windows": whole[0].encode,
        "ONNX int8, windows": whole[1].encode,
    }
    quantised = quantised_model(folder)
    if quantised is not None:
        found["torch, int8"] = by_budget(quantised)
    return found


def quantised_model(folder: Path) -> SentenceTransformer | None:
    """The model with torch's dynamic quantisation; None in a torch that has given it up."""
    try:
        from torch.ao.quantization import quantize_dynamic
    except ImportError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SentenceTransformer(str(folder), device="cpu")
        model[0].model = quantize_dynamic(model[0].model, {torch.nn.Linear}, dtype=torch.qint8)
    return model


def passages_and_questions(data: Path) -> tuple[list[str], list[LabelledQuestion]]:
    """Summaries of AR6, the primer's books and Pira's abstracts; questions on the last two."""
    documents = [d for d in read(data / "ipcc_ar6_paragraphs.jsonl.gz").documents if d.blocks[0].chapter in SUMMARIES]
    documents += [document for name in book_names() for document in read(book_path(name)).documents]
    texts = [passage.text for document in documents for passage in split_passages(document)]
    with (data / "pira_qa.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts += sorted({row["abstract"] for row in rows})
    questions = [LabelledQuestion(row["question_en_origin"], row["abstract"]) for row in rows]
    return texts, questions + [question for path in question_paths() for question in read_gold_questions(path)[0]]


def relevant(texts: Sequence[str], questions: Sequence[LabelledQuestion]) -> list[list[int]]:
    """For each question the passages that hold its gold text; of a gold text that was cut in two, the larger part."""
    words = [split_words(text) for text in texts]
    found = []
    for question in questions:
        gold = GoldText.from_text(question.passage)
        shares = np.array([len(gold.find_shared_words(row)) / len(gold.words) for row in words])
        found.append(np.flatnonzero(shares >= min(MIN_GOLD_SHARE, shares.max())).tolist())
    return found


def quality(encode: Encode, texts: Sequence[str], questions: Sequence[str], gold: Sequence[list[int]]) -> Any:
    """Recall of the first ten and mean reciprocal rank, and the vectors of the passages."""
    vectors, asked = encode(texts), encode(questions)
    scores = asked @ vectors.T
    ranks = np.array([1 + (row > row[right].max()).sum() for row, right in zip(scores, gold, strict=True)])
    return float((ranks <= 10).mean()), float(((ranks <= 10) / ranks).mean()), vectors


def mean_cosine(vectors: Any, reference: Any) -> float:
    # Vectors computed in bfloat16 are not quite of unit length.
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(reference, axis=1)
    return float(((vectors * reference).sum(axis=1) / lengths).mean())


def best_rates(encoders: dict[str, Encode], texts: Sequence[str], rounds: int) -> dict[str, float]:
    rates = dict.fromkeys(encoders, 0.0)
    for _ in range(rounds):
        for name, encode in encoders.items():
            start = time.process_time()
            encode(texts)
            rates[name] = max(rates[name], len(texts) / (time.process_time() - start))
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description="Encoders on the processor: speed and retrieval quality.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with the AR6 paragraphs")
    parser.add_argument("--passages", type=int, default=96, help="passages that speed is measured on")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not (arguments.data / "ipcc_ar6_paragraphs.jsonl.gz").exists():
        sys.exit(f"There is no ipcc_ar6_paragraphs.jsonl.gz in {arguments.data}; name its folder with --data.")
    torch.set_num_threads(1)
    folder = bundled_path("minilm")
    encoders = variants(folder)
    texts, questions = passages_and_questions(arguments.data)
    gold = relevant(texts, questions)
    asked = [question.question for question in questions]
    long = [text for text in texts if len(text) > 1500]
    sample = long[:: max(1, len(long) // arguments.passages)][: arguments.passages]
    rates = best_rates(encoders, sample, arguments.rounds)
    measured = {name: quality(encode, texts, asked, gold) for name, encode in encoders.items()}
    cut, windowed = measured["sentence-transformers"][2], measured["ONNX float32, windows"][2]
    results = []
    for name, (recall, mrr, vectors) in measured.items():
        reference = None if "512" in name else windowed if "windows" in name else cut
        cosine = None if reference is None else mean_cosine(vectors, reference)
        ratio = rates[name] / rates["sentence-transformers"]
        results.append(Result(name, rates[name], ratio, cosine, recall, mrr))
    show(results, len(texts), len(questions), all_cores(folder, sample), arguments.json)


def all_cores(folder: Path, texts: Sequence[str]) -> float:
    """Passages a second of wall-clock time of the encoder that is kept, on all cores."""
    encoder = BertEncoder("all", folder, encoder_fingerprint(folder, {}), "int8")
    encoder.encode(texts[:8])
    start = time.perf_counter()
    encoder.encode(texts)
    return len(texts) / (time.perf_counter() - start)


def show(results: list[Result], passages: int, questions: int, cores: float, as_json: bool) -> None:
    if as_json:
        told = {"passages": passages, "questions": questions, "all_cores": cores}
        print(json.dumps(told | {"variants": [asdict(result) for result in results]}, indent=2))
        return
    print(f"{'variant':26} {'p/cpu-s':>8} {'ratio':>6} {'cosine':>7} {'recall@10':>10} {'MRR@10':>7}")
    for result in results:
        cosine = "" if result.cosine is None else f"{result.cosine:.4f}"
        quality = f"{cosine:>7} {result.recall:10.3f} {result.mrr:7.3f}"
        print(f"{result.name:26} {result.rate:8.1f} {result.ratio:6.2f} {quality}")
    print(f"\n{questions} questions over {passages} passages; windows are of {WINDOW_TOKENS} tokens.")
    print(f"ONNX int8 with windows on all cores: {cores:.0f} passages/s")


if __name__ == "__main__":
    main()
