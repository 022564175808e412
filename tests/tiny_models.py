"""Small random models of several architectures, and the bundled one, for the tests of local models."""

import functools
import json
from pathlib import Path
from typing import Any

from climassay.models import OpenWeights

SIZES = {
    "vocab_size": 300, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "max_position_embeddings": 256,
}  # fmt: skip
GROUPED = {"num_key_value_heads": 2, "head_dim": 8}


def _torch() -> Any:
    """Torch, imported where a test needs it, on one thread: more only wait for each other on models this small."""
    import torch

    torch.set_num_threads(1)
    return torch


def _configs() -> dict[str, Any]:
    import transformers as t

    return {
        "llama": t.LlamaConfig(**SIZES, num_key_value_heads=2),
        "qwen2": t.Qwen2Config(**SIZES, num_key_value_heads=2),
        "qwen2-sliding": t.Qwen2Config(
            **SIZES, num_key_value_heads=2, use_sliding_window=True, sliding_window=7, max_window_layers=1
        ),
        "mistral-sliding": t.MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=5),
        "gemma": t.GemmaConfig(**SIZES, **GROUPED),
        "gemma2-sliding-softcap": t.Gemma2Config(**SIZES, **GROUPED, sliding_window=6),
        "gpt-neox": t.GPTNeoXConfig(**SIZES),
        "gpt2": t.GPT2Config(vocab_size=300, n_embd=32, n_layer=3, n_head=4, n_positions=256),
    }


ARCHITECTURES = (
    "llama", "qwen2", "qwen2-sliding", "mistral-sliding", "gemma", "gemma2-sliding-softcap", "gpt-neox", "gpt2",
)  # fmt: skip


@functools.cache
def tiny(architecture: str) -> Any:
    """A random model; weights large enough that a wrong mask or position shows."""
    from transformers import AutoModelForCausalLM

    _torch().manual_seed(1)
    model = AutoModelForCausalLM.from_config(_configs()[architecture])
    return _shaken(model)


@functools.cache
def tiny_recurrent() -> Any:
    """A model without attention."""
    from transformers import MambaConfig, MambaForCausalLM

    _torch().manual_seed(1)
    return _shaken(MambaForCausalLM(MambaConfig(vocab_size=300, hidden_size=32, num_hidden_layers=2, state_size=8)))


def _shaken(model: Any) -> Any:
    with _torch().no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(0, 0.25)
    return model.eval().requires_grad_(False)


@functools.cache
def smollm2() -> OpenWeights:
    """The bundled model, loaded once for all tests of a process."""
    from climassay.models.local.model import LocalModel

    _torch()
    return LocalModel("local:smollm2")


def save_tiny(
    folder: Path, *, seed: int = 0, chat_template: str | None = None, dtype: str = "float32", context: int = 256
) -> Path:
    """Save a random Llama with a byte-level tokenizer of 300 tokens."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch = _torch()
    torch.manual_seed(seed)
    sizes = SIZES | {"max_position_embeddings": context}
    config = LlamaConfig(**sizes, num_key_value_heads=2, bos_token_id=0, eos_token_id=1, pad_token_id=1)
    LlamaForCausalLM(config).to(getattr(torch, dtype)).save_pretrained(folder)
    save_tokenizer(folder, chat_template)
    return folder


def save_tokenizer(folder: Path, chat_template: str | None = None, merges: int = 42) -> None:
    """Byte-level BPE with a few merges, among them of space and letter."""
    from tokenizers import pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [(first, second) for first in ("Ġ", "t", "a") for second in "abcdefghijklmnop"][:merges]
    vocabulary = ["<s>", "</s>", *alphabet, *(first + second for first, second in pairs)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": 0, "content": "<s>", **special}, {"id": 1, "content": "</s>", **special}],
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": {token: number for number, token in enumerate(vocabulary)},
            "merges": [list(pair) for pair in pairs],
        },
    }
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    if chat_template is not None:
        (folder / "chat_template.jinja").write_text(chat_template, encoding="utf-8")


def save_classifier(folder: Path) -> Path:
    """Save a classifier of two texts with two layers of random weights, as classifiers of inference data are saved."""
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    from climassay.models.bundled import bundled_path

    tokenizer = AutoTokenizer.from_pretrained(bundled_path("minilm"), local_files_only=True)
    _torch().manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        id2label={0: "contradiction", 1: "neutral", 2: "entailment"},
        label2id={"contradiction": 0, "neutral": 1, "entailment": 2},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
