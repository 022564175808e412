"""Twelve questions of the primer as a benchmark, and a generator that only writes down what it is asked."""

from pathlib import Path

from climassay.generation.publishing import to_json_lines
from climassay.models import Completion, Usage
from climassay.primer import gold_questions
from climassay.questions import Kind, Question, question_row

COUNTS: dict[Kind, int] = {"mcq": 6, "freeform": 3, "cloze": 3}


def sample() -> list[Question]:
    """Six multiple-choice questions, two a level; three freeform, one a level; three cloze statements."""
    chosen = []
    for kind, count in COUNTS.items():
        own = gold_questions().of_kind(kind)
        levels = list(dict.fromkeys(question.level for question in own))
        for level in levels:
            chosen += [question for question in own if question.level == level][: count // len(levels)]
    return chosen


def write_sample(folder: Path) -> Path:
    """The sample as a question file."""
    file = folder / "sample.jsonl"
    file.write_text(to_json_lines(question_row(question) for question in sample()), encoding="utf-8")
    return file


class Listener:
    """A generator that keeps the requests and gives every one the same answer."""

    parameters = 135_000_000

    name = "listener"
    fingerprint = "0" * 64

    def __init__(self, answer: str = " b"):
        self.answer = answer
        self.requests = []
        self.groups = []

    def render(self, messages, assistant_prefix=""):
        return "".join(f"[{turn.role}]{turn.content}" for turn in messages) + f"[assistant]{assistant_prefix}"

    def generate(self, requests, *, on_result=None):
        self.requests += requests
        self.groups.append(len(requests))
        return [Completion(self.answer, "stop", Usage(10, 2, 1)) for _ in requests]

    def close(self):
        pass
