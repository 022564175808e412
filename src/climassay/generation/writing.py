"""Writing base questions and statements from passages (ClimaQA, section 4.2 and appendix A.4.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from climassay.generation.asking import (
    Delivery,
    Examples,
    Order,
    QuestionAsker,
    counted,
    example_turns,
    passage_values,
    with_delivery,
    with_turns,
)
from climassay.generation.draft import Draft, Origin, SourcePassage, Subject, Wording
from climassay.generation.schemas import BRIEF, FULL
from climassay.models.contract import Generator, Message, number_format
from climassay.prompts import Prompt, RenderedPrompt, load_prompt
from climassay.questions import KINDS, Kind, Level, Question


@dataclass(frozen=True, slots=True)
class Assignment:
    """One question to be written."""

    id: str
    """The draft's."""
    kind: Kind
    level: Level
    """The level wanted in the end; what is written first is always ``base``."""
    passages: tuple[SourcePassage, ...]
    """The main passage first, then those retrieved for it."""
    seed: int
    """Of the sampling, and of the order of the options."""


class Writer:
    """Writes questions with one model.

    Notes:
        The rules are those of the paper's prompts, in our words. The answer's format is another one: the correct
        answer and the distractors are fields of their own, so that a model cannot mark a wrong letter, and code decides
        where the correct option stands. Among each four questions of a call it stands once at each place.
    """

    def __init__(
        self,
        model: Generator,
        *,
        subject: Subject | None = None,
        prompts: Path | None = None,
        examples: Examples | None = None,
        temperature: float = 0.7,
        max_tokens: int = 400,
        brief: bool = False,
        own_terms: bool = True,
    ) -> None:
        """Prepare to write.

        Args:
            model: Writes.
            subject: Which science, from what, for whom.
            prompts: Folder of the user's own ``generate_mcq``, ``generate_freeform`` and ``generate_cloze``, each with
                ``_brief`` for the brief ones. They get ``main``, ``retrieved`` (texts), ``main_source``,
                ``retrieved_sources`` (title and section), ``subject`` and ``own_terms``.
            examples: Shown as earlier turns of the chat, each with its passage and its answer in the very format that
                is asked for. Of questions of several levels only those of level base are shown, if there are any.
            temperature: Of the sampling.
            max_tokens: Of an answer.
            brief: Short prompts, for very small models; they are not asked whether a passage is fit to write from.
            own_terms: Whether the writer of a statement names the term to be masked; never with ``brief``.

        Raises:
            InputError: A prompt does not exist or is not valid, an example has no passage or not four options, or a
                number makes no sense.
        """
        self._model = model
        self._subject = subject or Subject()
        lengths = BRIEF if brief else FULL if own_terms else replace(FULL, term=0)
        self._own_terms = lengths.term > 0
        self._asker = QuestionAsker(model, temperature=temperature, max_tokens=max_tokens, lengths=lengths)
        suffix = "_brief" if brief else ""
        self._prompts: dict[Kind, Prompt] = {kind: load_prompt(f"generate_{kind}{suffix}", prompts) for kind in KINDS}
        self._turns: dict[Kind, tuple[Message, ...]] = {
            kind: example_turns(prompt, _base_examples(examples or {}, kind), self._values, lengths)
            for kind, prompt in self._prompts.items()
        }

    @property
    def _values(self) -> dict[str, Any]:
        return {"subject": self._subject, "own_terms": self._own_terms}

    def write(self, assignments: Sequence[Assignment], on_progress: Callable[[int], None] | None = None) -> list[Draft]:
        """Write a base draft for each assignment, in their order.

        A call that fails gives a draft with ``error``. A passage that the model declines to write from gives a draft
        with a decision against it that holds the model's reason. An answer that cannot be read (cut off, a text left
        empty, distractors missing) gives a draft with a decision against it.
        Passages that the model's window does not hold are dropped from the end, and the main one is cut at a sentence
        if it must be; the draft keeps what was shown.

        Args:
            assignments: Of any kinds; all are asked in one call.
            on_progress: Called with the number of drafts written so far.
        """
        orders = [
            Order(asked.kind, asked.passages, asked.seed, partial(self._render, asked.kind)) for asked in assignments
        ]
        deliveries = self._asker.ask(orders, counted(on_progress))
        return [self._draft(asked, delivery) for asked, delivery in zip(assignments, deliveries, strict=True)]

    def _render(self, kind: Kind, passages: Sequence[SourcePassage]) -> RenderedPrompt:
        rendered = self._prompts[kind].render(**passage_values(passages), **self._values)
        return with_turns(rendered, self._turns[kind])

    def _draft(self, asked: Assignment, delivery: Delivery) -> Draft:
        prompt = self._prompts[asked.kind]
        draft = Draft(
            id=asked.id,
            kind=asked.kind,
            level="base",
            wording=Wording(""),
            passages=asked.passages,
            origin=Origin(
                model=self._model.name,
                fingerprint=self._model.fingerprint,
                prompts=((prompt.name, prompt.sha256),),
                seed=asked.seed,
                dtype=number_format(self._model),
            ),
        )
        return with_delivery(draft, delivery, "write", self._model.name)


def _base_examples(examples: Examples, kind: Kind) -> Sequence[Question]:
    shown = examples.get(kind, ())
    return [example for example in shown if example.level in (None, "base")] or list(shown)
