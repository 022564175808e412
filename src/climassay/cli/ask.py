"""``climassay ask``."""


def ask(question: str) -> None:
    """Answer a question."""
