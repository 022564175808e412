"""The rule that a language model applies: it reads what rules on words cannot, such as what a term is given to."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from climassay.confidence.linting.checking import MODEL_FINDING
from climassay.confidence.linting.draft import Draft, DraftBlock, Remark, Rule, Sentence
from climassay.corpus.documents import locate_quotation
from climassay.models.contract import Completion, GenerationRequest, Generator, Sampling, object_schema
from climassay.prompts import Prompt, load_prompt, profile_of
from climassay.reporting import counted

_PASSAGE = 3_000
"""Characters from which a paragraph is read in parts."""
_ASKED = re.compile(
    r"confid|certain|lik[el]+y|likel|probab|eviden|agreement|consensus|chance|\bodds\b|doubt|possib|plausib|\bsure|"
    r"[(\[]\s*(?:very\s+)?(?:low|medium|high|limited|robust|moderate)\b",
    re.IGNORECASE,
)
"""Words of certainty and their misspellings: a passage without any is not read."""
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


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """Sentences of one block that are read together."""

    block: DraftBlock
    text: str
    places: tuple[int, ...]
    """Where each character of the text appears in the draft."""


class ModelReader:
    """A language model that reads every passage with words of certainty, and names what departs from the guidance.

    Args:
        model: Answers under a JSON schema; one that is recorded keeps its answers.
        prompt: Template with ``passage`` and ``heading`` (whether it is one); the built-in ``lint`` by default.
        on_progress: Called with 1 for each passage read.
    """

    def __init__(
        self, model: Generator, prompt: Prompt | None = None, on_progress: Callable[[int], None] | None = None
    ) -> None:
        self.name = model.name
        self.passages = 0
        """Passages read so far."""
        self.unreadable = 0
        """Those without an answer, or with one that is not what was asked for."""
        self.misquoted = 0
        """Problems left out because their words are not in the passage."""
        self.error = ""
        """Why the latest of the unreadable answers is so."""
        self._model = model
        self._small = profile_of(model).name == "small"
        self._prompt = prompt or load_prompt("lint")
        self._on_progress = on_progress

    @property
    def rule(self) -> Rule:
        """The reader as a rule of :func:`~climassay.confidence.linting.check`."""
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
        """How much was read, and what of the answers could not be used, in one or two sentences."""
        said = f"{self.name} read {counted(self.passages, 'passage')} with words of certainty."
        if self.unreadable:
            said += f" It gave no usable answer on {self.unreadable:,} of them."
        if self.misquoted:
            said += f" {counted(self.misquoted, 'problem')} left out, whose words are not in the text."
        if self._small:
            said += " A model of this size misses most: that it names nothing says nothing."
        return said

    def to_dict(self) -> dict[str, Any]:
        """The same as data."""
        counts = {"passages": self.passages, "unreadable": self.unreadable, "misquoted": self.misquoted}
        return {"model": self.name, **counts}

    def _check(self, draft: Draft) -> Iterator[Remark]:
        passages = passages_to_read(draft)
        requests = []
        for passage in passages:
            rendered = self._prompt.render(passage=passage.text, heading=passage.block.kind == "heading")
            requests.append(
                GenerationRequest(
                    rendered.messages, Sampling(max_tokens=None), _SCHEMA, assistant_prefix=rendered.assistant_prefix
                )
            )
        told = self._on_progress
        on_result = None if told is None else (lambda _place, _answer: told(1))
        answers = self._model.generate(requests, on_result=on_result) if requests else []
        self.passages += len(passages)
        for passage, answer in zip(passages, answers, strict=True):
            problems = _problems(answer)
            if problems is None:
                self.unreadable += 1
                self.error = answer.error or "The reply is not what was asked for."
                continue
            for words, problem, suggestion in problems:
                if (span := locate_quotation(passage.text, words)) is None:
                    self.misquoted += 1
                else:
                    said = f'{problem} Suggested: "{suggestion}".' if suggestion else problem
                    yield Remark(passage.places[span[0]], passage.places[span[1] - 1] + 1, said, suggestion)


def passages_to_read(draft: Draft) -> list[ReadPassage]:
    """What a model is shown of a draft: each block with words of certainty, long ones in parts of whole sentences."""
    return [one for one in _passages(draft) if _ASKED.search(one.text)]


def _passages(draft: Draft) -> Iterator[ReadPassage]:
    for block, sentences in groupby(draft.sentences, key=lambda one: one.block):
        part: list[Sentence] = []
        for sentence in sentences:
            if part and sum(len(one.text) + 1 for one in (*part, sentence)) > _PASSAGE:
                yield _together(block, part)
                part = []
            part.append(sentence)
        yield _together(block, part)


def _together(block: DraftBlock, sentences: list[Sentence]) -> ReadPassage:
    places: list[int] = []
    for sentence in sentences:
        if places:
            places.append(places[-1])
        places += sentence.places
    return ReadPassage(block, " ".join(one.text for one in sentences), tuple(places))


def _problems(answer: Completion) -> list[tuple[str, str, str]] | None:
    """Words, problem and suggestion of each problem; None where the answer is not what was asked for."""
    if answer.error is not None:
        return None
    try:
        problems: list[dict[str, Any]] = json.loads(answer.text)["problems"]
        return [
            (str(one["words"]), " ".join(str(one["problem"]).split()), " ".join(str(one["suggestion"]).split()))
            for one in problems
        ]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
