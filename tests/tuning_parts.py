"""Small data and settings for the tests of tuning."""

from pathlib import Path

from climassay.models import Message
from climassay.tuning import ChatData, ChatExample, TextData, TextDocument, TuningConfig
from tiny_models import save_tiny

CHATML = (
    "{% for message in messages %}<s>{{ message['role'] }}\n{{ message['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)
"""A chat template as the bundled model has, for control tokens ``<s>`` and ``</s>``."""


def parity(first: int, last: int, name: str = "parity") -> ChatData:
    """Questions of different lengths with one of two answers."""
    return ChatData(
        name,
        tuple(
            ChatExample(
                (Message("user", f"Is {number} even?{' Tell me.' * (number % 4)}"),),
                "Answer:",
                " no" if number % 2 else " yes",
            )
            for number in range(first, last)
        ),
    )


def book(name: str, words: str, sentences: int = 12) -> TextDocument:
    paragraphs = tuple(f"The {words} number {n} of {name} is about {words} and more {words}." for n in range(sentences))
    return TextDocument(f"id-{name}", name, paragraphs)


def library(*documents: TextDocument, name: str = "library") -> TextData:
    return TextData(name, documents)


def small(**values) -> TuningConfig:
    """Settings under which a tiny model learns in a moment, float32 so that results are exact."""
    usual = {"rank": 4, "learning_rate": 1e-2, "batch_size": 4, "max_length": 96, "dtype": "float32", "dropout": 0.1}
    return TuningConfig(**{**usual, **values})


def save_shaken(folder: Path, seed: int = 0) -> Path:
    """Save a random Llama whose weights are large enough that it has strong opinions, which can be changed."""
    import torch
    from safetensors.torch import load_file, save_file

    save_tiny(folder, seed=seed, chat_template=CHATML)
    torch.manual_seed(seed)
    file = folder / "model.safetensors"
    weights = {
        name: torch.empty_like(weight).normal_(0, 0.25) if weight.ndim > 1 else weight
        for name, weight in load_file(file).items()
    }
    save_file(weights, file, metadata={"format": "pt"})
    return folder
