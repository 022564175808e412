"""Writing base questions and statements from passages (ClimaQA, section 4.2 and appendix A.4.1)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, Origin, SourcePassage, Subject, Wording
from climassay.generation.question_requests import (
    BRIEF,
    FULL,
    Examples,
    QuestionAsker,
    QuestionRequest,
    example_answer,
    passage_values,
)
from climassay.models.contract import Generator, Message, number_format
from climassay.prompts import Prompt, RenderedPrompt, load_prompt
from climassay.questions import KINDS, TYPES, Kind, Level


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
    """Decides the sampling and the order of the options."""


class Writer:
    """Writes questions with one model.

    Notes:
        The rules are those of the paper's prompts, in our words. The answer's format is another one: the correct
        answer and the distractors are fields of their own, so that a model cannot mark a wrong letter, and code decides
        where the correct option stands. Among each four questions of a call it appears once at each place.
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
            temperature: Sampling temperature.
            max_tokens: Maximum number of tokens of an answer.
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
        self._turns: dict[Kind, list[Message]] = {kind: [] for kind in KINDS}
        for kind, prompt in self._prompts.items():
            shown = (examples or {}).get(kind, ())
            for example in [one for one in shown if one.level in (None, "base")] or shown:
                if not example.context:
                    raise InputError(
                        f"The question {example.id} cannot be an example: the passage it was made from is missing."
                    )
                passage = SourcePassage("", example.context, "", example.document or "", example.section or "")
                asked = prompt.render(**passage_values([passage]), **self._values)
                answer = asked.assistant_prefix + example_answer(example, lengths)
                self._turns[kind] += [message for message in asked.messages if message.role != "system"]
                self._turns[kind].append(Message("assistant", answer))

    @property
    def _values(self) -> dict[str, Any]:
        return {"subject": self._subject, "own_terms": self._own_terms}

    def write(self, assignments: Sequence[Assignment]) -> list[Draft]:
        """Write a base draft for each assignment, in their order; all are asked for in one call.

        A call that fails gives a draft with ``error``. A passage that the model declines to write from gives a draft
        with a decision against it that holds the model's reason. An answer that cannot be read (cut off, a text left
        empty, distractors missing) gives a draft with a decision against it.
        Passages that the model's window does not hold are dropped from the end, and the main one is cut at a sentence
        if it must be; the draft keeps what was shown.
        """
        requests = [
            QuestionRequest(asked.kind, asked.passages, asked.seed, partial(self._render, asked.kind))
            for asked in assignments
        ]
        drafts = []
        for asked, result in zip(assignments, self._asker.ask(requests), strict=True):
            prompt = self._prompts[asked.kind]
            origin = Origin(
                model=self._model.name,
                fingerprint=self._model.fingerprint,
                prompts=((prompt.name, prompt.sha256),),
                seed=asked.seed,
                dtype=number_format(self._model),
            )
            draft = Draft(asked.id, asked.kind, "base", Wording(""), asked.passages, origin)
            drafts.append(result.applied(draft, "write", self._model.name))
        return drafts

    def _render(self, kind: Kind, passages: Sequence[SourcePassage]) -> RenderedPrompt:
        """The prompt, with the examples between its system message and what it asks."""
        rendered = self._prompts[kind].render(**passage_values(passages), **self._values)
        at = next((place for place, message in enumerate(rendered.messages) if message.role != "system"), 0)
        return replace(rendered, messages=(*rendered.messages[:at], *self._turns[kind], *rendered.messages[at:]))


EVOLVING_KINDS: tuple[Kind, ...] = tuple(kind for kind, one in TYPES.items() if one.levels)
"""Cloze statements have one level only."""


class Evolver:
    """Turns base questions into ones that take several steps, or that put a hypothetical case.

    The paper adds the complexity in a second request, which shows the base question with its passages; so does this.
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
    ) -> None:
        """Prepare to evolve; the arguments are those of :class:`Writer`.

        The user's own prompts are ``evolve_mcq`` and ``evolve_freeform``, each with ``_brief`` for the brief ones. They
        get what the writer's prompts get and ``level``, ``base`` (``question``, ``answer``, ``distractors``) and
        ``examples`` (texts in the format that is asked for). Examples of the level that is asked for are shown in the
        prompt, and are not turns of the chat, for the questions that they were made from are not known.

        Raises:
            InputError: A prompt does not exist, an example has not four options, or a number makes no sense.
        """
        self._model = model
        self._subject = subject or Subject()
        lengths = BRIEF if brief else FULL
        self._asker = QuestionAsker(model, temperature=temperature, max_tokens=max_tokens, lengths=lengths)
        suffix = "_brief" if brief else ""
        self._prompts: dict[Kind, Prompt] = {
            kind: load_prompt(f"evolve_{kind}{suffix}", prompts) for kind in EVOLVING_KINDS
        }
        self._examples: dict[tuple[Kind, Level | None], list[str]] = {}
        for kind in EVOLVING_KINDS:
            for example in (examples or {}).get(kind, ()):
                self._examples.setdefault((kind, example.level), []).append(example_answer(example, lengths))

    def evolve(self, drafts: Sequence[Draft], level: Level, seeds: Sequence[int]) -> list[Draft]:
        """Evolve drafts to a level, in their order.

        An evolved draft keeps id, passages and decisions, and its origin the base question and both prompts. A draft
        that already failed passes through unchanged. Where the model's answer cannot be read, the draft fails; where
        the model gives the base question back, the draft is rejected as ``not evolved``.

        Args:
            drafts: Multiple-choice and freeform ones; what their ``level`` says is not looked at.
            level: ``reasoning`` or ``hypothetical``.
            seeds: One for each draft.

        Raises:
            InputError: The level is base, a draft is a cloze statement, or the numbers of drafts and seeds differ.
        """
        if level == "base":
            raise InputError("A base question is evolved to reasoning or hypothetical, not to base.")
        if len(seeds) != len(drafts):
            raise InputError(f"{len(drafts)} drafts need as many seeds, not {len(seeds)}.")
        if any(draft.kind not in EVOLVING_KINDS for draft in drafts):
            raise InputError("Cloze statements are always base: only mcq and freeform questions can be evolved.")
        places = [place for place, draft in enumerate(drafts) if draft.error is None]
        requests = [
            QuestionRequest(draft.kind, draft.passages, seeds[place], partial(self._render, draft, level))
            for place in places
            for draft in (drafts[place],)
        ]
        evolved = list(drafts)
        for place, result in zip(places, self._asker.ask(requests), strict=True):
            draft, model = drafts[place], self._model
            prompt = self._prompts[draft.kind]
            origin = replace(
                draft.origin,
                model=model.name,
                fingerprint=model.fingerprint,
                prompts=(*draft.origin.prompts, (prompt.name, prompt.sha256)),
                seed=seeds[place],
                evolved_from=draft.wording,
                dtype=number_format(model),
            )
            made = result.applied(replace(draft, level=level, origin=origin), "evolve", model.name)
            if result.wording is not None and _words(result.wording.question) == _words(draft.wording.question):
                said = "The model gave the base question back."
                made = made.decided(Decision("evolve", model.name, False, "not evolved", said))
            evolved[place] = made
        return evolved

    def _render(self, draft: Draft, level: Level, passages: Sequence[SourcePassage]) -> RenderedPrompt:
        wording = draft.wording
        distractors = [option for place, option in enumerate(wording.options) if place != wording.correct]
        return self._prompts[draft.kind].render(
            **passage_values(passages),
            subject=self._subject,
            level=level,
            base={"question": wording.question, "answer": wording.answer, "distractors": distractors},
            examples=self._examples.get((draft.kind, level), []),
        )


def _words(text: str) -> list[str]:
    return "".join(sign if sign.isalnum() else " " for sign in text.casefold()).split()
