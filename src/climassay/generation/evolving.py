"""Evolving base questions to the levels reasoning and hypothetical (ClimaQA, appendix A.4.2)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.generation.asking import Delivery, Examples, Order, QuestionAsker, counted, passage_values, with_delivery
from climassay.generation.draft import Decision, Draft, SourcePassage, Subject, Wording
from climassay.generation.schemas import BRIEF, FULL, example_answer
from climassay.models.contract import Generator, number_format
from climassay.prompts import Prompt, RenderedPrompt, load_prompt
from climassay.questions import TYPES, Kind, Level

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
        """Prepare to evolve; the arguments are those of :class:`~climassay.generation.writing.Writer`.

        Args:
            model: Writes.
            subject: Which science, from what, for whom.
            prompts: Folder of the user's own ``evolve_mcq`` and ``evolve_freeform``, each with ``_brief`` for the brief
                ones. They get what the writer's prompts get and ``level``, ``base`` (``question``, ``answer``,
                ``distractors``) and ``examples`` (texts in the format that is asked for).
            examples: Those of the level that is asked for are shown in the prompt. They are no turns of the chat, for
                the questions that they were made from are not known.
            temperature: Of the sampling.
            max_tokens: Of an answer.
            brief: Short prompts, for very small models.

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

    def evolve(
        self,
        drafts: Sequence[Draft],
        level: Level,
        seeds: Sequence[int],
        on_progress: Callable[[int], None] | None = None,
    ) -> list[Draft]:
        """Evolve drafts to a level, in their order.

        An evolved draft keeps id, passages and decisions, and its origin the base question and both prompts. A draft
        that already failed passes through unchanged. Where the model's answer cannot be read, the draft fails; where
        the model gives the base question back, the draft is rejected as ``not evolved``.

        Args:
            drafts: Multiple-choice and freeform ones; what their ``level`` says is not looked at.
            level: ``reasoning`` or ``hypothetical``.
            seeds: One for each draft.
            on_progress: Called with the number of drafts evolved so far.

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
        orders = [self._order(drafts[place], level, seeds[place]) for place in places]
        evolved = list(drafts)
        deliveries = self._asker.ask(orders, counted(on_progress))
        for place, delivery in zip(places, deliveries, strict=True):
            evolved[place] = self._evolved(drafts[place], level, seeds[place], delivery)
        return evolved

    def _order(self, draft: Draft, level: Level, seed: int) -> Order:
        def render(passages: Sequence[SourcePassage]) -> RenderedPrompt:
            return self._prompts[draft.kind].render(
                **passage_values(passages),
                subject=self._subject,
                level=level,
                base=_base_values(draft.wording),
                examples=self._examples.get((draft.kind, level), []),
            )

        return Order(draft.kind, draft.passages, seed, render)

    def _evolved(self, draft: Draft, level: Level, seed: int, delivery: Delivery) -> Draft:
        prompt = self._prompts[draft.kind]
        origin = replace(
            draft.origin,
            model=self._model.name,
            fingerprint=self._model.fingerprint,
            prompts=(*draft.origin.prompts, (prompt.name, prompt.sha256)),
            seed=seed,
            evolved_from=draft.wording,
            dtype=number_format(self._model),
        )
        evolved = with_delivery(replace(draft, level=level, origin=origin), delivery, "evolve", self._model.name)
        if delivery.wording is not None and _alike(delivery.wording, draft.wording):
            said = "The model gave the base question back."
            return evolved.decided(Decision("evolve", self._model.name, False, "not evolved", said))
        return evolved


def _base_values(wording: Wording) -> dict[str, Any]:
    """The base question as the templates read it."""
    distractors = [option for place, option in enumerate(wording.options) if place != wording.correct]
    return {"question": wording.question, "answer": wording.answer, "distractors": distractors}


def _alike(first: Wording, second: Wording) -> bool:
    return _words(first.question) == _words(second.question)


def _words(text: str) -> list[str]:
    return "".join(sign if sign.isalnum() else " " for sign in text.casefold()).split()
