"""Rule that lets a language model find what mechanical rules cannot, such as a term whose object is unclear."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from climassay.confidence.linting.checking import MODEL_FINDING
from climassay.confidence.linting.draft import Manuscript, Remark, Rule
from climassay.corpus.sentences import locate_quotation
from climassay.models.contract import Completion, GenerationRequest, Generator, Sampling, object_schema
from climassay.prompts import Prompt, load_prompt, profile_of
from climassay.reporting import counted

_CERTAINTY = re.compile(
    r"confid|certain|lik[el]+y|likel|probab|eviden|agreement|consensus|chance|\bodds\b|doubt|possib|plausib|\bsure|"
    r"[(\[]\s*(?:very\s+)?(?:low|medium|high|limited|robust|moderate)\b",
    re.IGNORECASE,
)
"""Pattern of words of certainty and their misspellings; passages without any are not sent to the model."""
_SCHEMA = object_schema(
    {
        "reasoning": {"type": "string", "maxLength": 800},
        "problems": {
            "type": "array",
            "maxItems": 10,
            "items": object_schema(
                {
                    "words": {"type": "string", "maxLength": 400},
                    "problem": {"type": "string", "maxLength": 400},
                    "suggestion": {"type": "string", "maxLength": 400},
                }
            ),
        },
    }
)


class ModelReader:
    """Language model that lists departures from the IPCC's guidance in every passage with words of certainty.

    Args:
        model: Model that answers under a JSON schema; use a recorded one to store its answers.
        prompt: Template with ``passage``; the built-in ``lint`` by default.
        on_progress: Callback that is called with 1 for each passage read.
    """

    def __init__(
        self, model: Generator, prompt: Prompt | None = None, on_progress: Callable[[int], None] | None = None
    ) -> None:
        self.name = model.name
        self.passages = 0
        """Number of passages read."""
        self.unreadable = 0
        """Number of passages whose answer is missing or breaks the schema."""
        self.misquoted = 0
        """Number of dropped problems whose words are not in the passage."""
        self.error = ""
        """Reason of the latest unreadable answer."""
        self._model = model
        self._small = profile_of(model).name == "small"
        self._prompt = prompt or load_prompt("lint")
        self._on_progress = on_progress

    @property
    def rule(self) -> Rule:
        """Rule that lets the model check a draft, for :func:`~climassay.confidence.linting.check`."""
        return Rule(
            MODEL_FINDING,
            "note",
            "place that a language model would have changed",
            f"{self.name} read every passage with words of certainty against the guidance. How often it is right is "
            "not measured.",
            (),
            self._check,
        )

    @property
    def summary(self) -> str:
        """Text that states the number of passages read and of unusable answers."""
        text = f"{self.name} read {counted(self.passages, 'passage')} with words of certainty."
        if self.unreadable:
            text += f" It gave no usable answer on {self.unreadable:,} of them."
        if self.misquoted:
            text += f" {counted(self.misquoted, 'problem')} left out, whose words are not in the text."
        return text + (" A model of this size misses most: that it names nothing says nothing." if self._small else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON-serialisable values."""
        counts = {"passages": self.passages, "unreadable": self.unreadable, "misquoted": self.misquoted}
        return {"model": self.name, **counts}

    def _check(self, draft: Manuscript) -> Iterator[Remark]:
        passages = select_passages(draft)
        requests = []
        for _, text in passages:
            rendered_prompt = self._prompt.render(passage=text)
            prefix = rendered_prompt.assistant_prefix
            requests.append(
                GenerationRequest(rendered_prompt.messages, Sampling(max_tokens=None), _SCHEMA, assistant_prefix=prefix)
            )
        report = self._on_progress
        on_result = None if report is None else (lambda _index, _answer: report(1))
        answers = self._model.generate(requests, on_result=on_result) if requests else []
        self.passages += len(passages)
        for (start, text), answer in zip(passages, answers, strict=True):
            problems = _parse_problems(answer)
            if problems is None:
                self.unreadable += 1
                self.error = answer.error or "The reply breaks the schema."
                continue
            for words, problem, suggestion in problems:
                if (span := locate_quotation(text, words)) is None:
                    self.misquoted += 1
                else:
                    message = f'{problem} Suggested: "{suggestion}".' if suggestion else problem
                    yield Remark(start + span[0], start + span[1], message, suggestion)


def select_passages(draft: Manuscript) -> list[tuple[int, str]]:
    """Return the paragraphs with words of certainty, each with its offset in the draft's text."""
    return [(start, text) for start, text in draft.paragraphs if _CERTAINTY.search(text)]


def _parse_problems(answer: Completion) -> list[tuple[str, str, str]] | None:
    """Return the words, description and suggestion of each problem; None if the answer violates the schema."""
    if answer.error is not None:
        return None
    try:
        problems: list[dict[str, Any]] = json.loads(answer.text)["problems"]
        return [
            (str(entry["words"]), " ".join(str(entry["problem"]).split()), " ".join(str(entry["suggestion"]).split()))
            for entry in problems
        ]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
