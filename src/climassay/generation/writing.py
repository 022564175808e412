"""Writing questions from passages and evolving them (ClimaQA, section 4.2 and appendix A.4.1).

The paper asks for four options under letters and for the letter of the correct one. Here the correct answer is a field
of its own and the distractors are a list: nobody can then mark a wrong letter, and where the correct answer stands is
decided by code and not by a model's liking for the third place.
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from climassay.corpus.documents import sentence_spans
from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, DraftStep, Origin, SourcePassage, Subject, Wording, is_blank
from climassay.models.contract import (
    GenerationRequest,
    Generator,
    Message,
    Sampling,
    number_format,
    token_count,
    window_of,
)
from climassay.prompts import RenderedPrompt, load_prompt
from climassay.questions import KINDS, TYPES, Kind, Level, Question
from climassay.questions.types import Lengths
from climassay.questions.types.multiple_choice import OPTIONS
from climassay.records import RecordedModel

TERM = "term"
"""The text that a writer may leave empty."""


class UnreadableAnswerError(ValueError):
    """A model's answer gives no wording; the message is one sentence."""


class DeclinedError(ValueError):
    """A model found the passage unfit to write from; the message is its reason."""


FULL = Lengths(question=2000, answer=2000, option=1000, statement=1000, reason=500, term=60)
BRIEF = Lengths(question=250, answer=300, option=120, statement=250)
"""For very small models."""


def answer_schema(kind: Kind, lengths: Lengths = FULL) -> dict[str, Any]:
    """JSON schema of the answer about one question of a kind, its texts and lists bounded."""
    # Who declines leaves the other fields empty.
    least = {} if lengths.reason else {"minLength": 1}
    properties: dict[str, Any] = {"declined": {"type": "string", "maxLength": lengths.reason}} if lengths.reason else {}
    texts, lists = TYPES[kind].texts(lengths), TYPES[kind].lists(lengths)
    properties |= {name: {"type": "string", **least, "maxLength": most} for name, most in texts.items()}
    for name, (count, most) in lists.items():
        properties[name] = {
            "type": "array",
            "minItems": 0 if lengths.reason else count,
            "maxItems": count,
            "items": {"type": "string", **least, "maxLength": most},
        }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def example_answer(question: Question, lengths: Lengths = FULL) -> str:
    """A question as a perfect writer would have answered, in the very format of the schema.

    Raises:
        InputError: The question cannot be an example, such as one of multiple choice without four options.
    """
    given = question.type.written(question)
    asked = (*question.type.texts(lengths), *question.type.lists(lengths))
    accepted = {"declined": ""} if lengths.reason else {}
    return json.dumps({**accepted, **{name: given[name] for name in asked}}, ensure_ascii=False)


def read_wording(kind: Kind, text: str, lengths: Lengths, *, position: int = 0, seed: int = 0) -> Wording:
    """The wording that a model's answer holds.

    Raises:
        DeclinedError: The model declined the passage.
        UnreadableAnswerError: It is not JSON of the schema, a text of it is empty or cut off, or options are missing.
    """
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableAnswerError("The reply is not complete JSON.") from None
    if not isinstance(fields, dict):
        raise UnreadableAnswerError("The reply is not a JSON object.")
    declined = fields.get("declined")
    if lengths.reason and isinstance(declined, str) and not is_blank(declined):
        raise DeclinedError(" ".join(declined.split()))
    given: dict[str, Any] = {}
    for name, most in TYPES[kind].texts(lengths).items():
        if name != TERM:
            given[name] = _checked(fields.get(name), name, most)
            continue
        term = fields.get(TERM)
        # A statement without its term is as good as any other: a masker chooses it then.
        given[TERM] = "" if not isinstance(term, str) or is_blank(term) else term.strip()
    for name, (count, most) in TYPES[kind].lists(lengths).items():
        result = fields[name] if isinstance(fields.get(name), list) else []
        if len(result) < count:
            raise UnreadableAnswerError(f"The reply has {len(result)} {name} instead of {count}.")
        one = name.removesuffix("s")
        given[name] = [_checked(part, f"{one} {number}", most) for number, part in enumerate(result[:count], start=1)]
    return Wording(*TYPES[kind].worded(given, position, random.Random(seed)))


def assign_positions(seeds: Sequence[int]) -> list[int]:
    """Where the correct options of questions written together shall stand, every letter about equally often.

    Each four questions in a row use every position once, in an order that their seeds decide.
    """
    positions: list[int] = []
    for start in range(0, len(seeds), OPTIONS):
        hand = list(range(OPTIONS))
        dealt = seeds[start : start + OPTIONS]
        random.Random(" ".join(map(str, dealt))).shuffle(hand)
        positions += hand[: len(dealt)]
    return positions


def _checked(value: object, name: str, most: int) -> str:
    """A text that says something and was not cut off, without needless blanks and quotation marks around it."""
    if not isinstance(value, str) or re.search(r"\w", value) is None:
        raise UnreadableAnswerError(f"The reply leaves the {name} empty.")
    text = " ".join(value.split())
    inner = text[1:-1]
    if len(text) > 2 and (text[0], text[-1]) in _QUOTES and text[0] not in inner:
        text = inner.strip()
    # A grammar closes a text at its bound, wherever the sentence then is; a longer text was not written under one.
    if len(value) == most and not text.endswith((".", "?", "!")):
        raise UnreadableAnswerError(f"The {name} of the reply was cut off at {most} characters.")
    return text


_QUOTES = {('"', '"'), ("“", "”"), ("'", "'")}


Examples = Mapping[Kind, Sequence[Question]]
"""Questions that are shown as a writer's good work."""


def passage_values(passages: Sequence[SourcePassage]) -> dict[str, Any]:
    """What templates read of the passages, the main one first: texts, and title and section of each."""
    main, *retrieved = passages
    return {
        "main": main.text,
        "main_source": main.source,
        "retrieved": [passage.text for passage in retrieved],
        "retrieved_sources": [passage.source for passage in retrieved],
    }


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


class _Author:
    """Asks one model for questions; nothing that the model answers raises an error."""

    step: DraftStep
    asks: str
    """Beginning of the names of its prompts."""
    kinds: Sequence[Kind] = KINDS

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
        """Prepare; nothing is asked yet.

        Args:
            model: Writes.
            subject: Which science, from what, for whom.
            prompts: Folder of the user's own prompts.
            examples: Questions to be shown, each with its answer in the very format that is asked for.
            temperature: Sampling temperature.
            max_tokens: Maximum number of tokens of an answer.
            brief: Short prompts, for very small models; they are not asked whether a passage is fit to write from.
            own_terms: Whether the writer of a statement names the term to be masked; never with ``brief``.

        Raises:
            InputError: A prompt does not exist or is not valid, an example lacks what it needs, or a number makes no
                sense.
        """
        if temperature < 0:
            raise InputError(f"The temperature is {temperature}: it cannot be negative.")
        if max_tokens < 1:
            raise InputError(f"max_tokens is {max_tokens}: at least one token must be allowed.")
        self._model, self._subject = model, subject or Subject()
        self._temperature, self._max_tokens = temperature, max_tokens
        suffix = "_brief" if brief else ""
        self._prompts = {kind: load_prompt(f"{self.asks}_{kind}{suffix}", prompts) for kind in self.kinds}
        self.lengths = BRIEF if brief else FULL if own_terms else replace(FULL, term=0)
        self._take_examples(examples or {})

    def _take_examples(self, examples: Examples) -> None:
        raise NotImplementedError

    def _origin(self, kind: Kind, seed: int) -> Origin:
        prompt, model = self._prompts[kind], self._model
        used = ((prompt.name, prompt.sha256),)
        return Origin(model.name, model.fingerprint, used, seed, dtype=number_format(model))

    def _render(self, draft: Draft, passages: Sequence[SourcePassage]) -> RenderedPrompt:
        raise NotImplementedError

    def _written(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Drafts with the words that the model gives for their passages; all are asked for in one call."""
        requests = []
        shown = []
        for draft in drafts:
            passages, request = self._fitted(draft)
            shown.append(passages)
            requests.append(request)
        # Questions with options are dealt the places of their correct ones by kind.
        positions = [0] * len(drafts)
        for kind in dict.fromkeys(draft.kind for draft in drafts if draft.type.options):
            places = [place for place, draft in enumerate(drafts) if draft.kind == kind]
            dealt = assign_positions([drafts[one].origin.seed for one in places])
            for place, position in zip(places, dealt, strict=True):
                positions[place] = position
        written = []
        answers = self._model.generate(requests)
        for draft, passages, answer, position in zip(drafts, shown, answers, positions, strict=True):
            made = replace(draft, wording=Wording(""), passages=passages, error=answer.error)
            if answer.error is None:
                try:
                    if answer.finish_reason == "length":
                        raise UnreadableAnswerError(f"The reply was cut off at {self._max_tokens} tokens.")
                    seed = draft.origin.seed
                    wording = read_wording(draft.kind, answer.text, self.lengths, position=position, seed=seed)
                    made = replace(made, wording=wording)
                except DeclinedError as refusal:
                    made = made.with_decisions(Decision(self.step, self._model.name, False, "declined", str(refusal)))
                except UnreadableAnswerError as fault:
                    made = made.with_decisions(
                        Decision(self.step, self._model.name, False, "unreadable reply", str(fault))
                    )
            written.append(made)
        return written

    def _fitted(self, draft: Draft) -> tuple[tuple[SourcePassage, ...], GenerationRequest]:
        """The passages that the model's window holds, and the request about them.

        Retrieved ones are dropped from the end, then the main one is cut at a sentence. Where not even its first
        sentence fits, that sentence is all that is left, and it is for the model to refuse.
        """
        model = self._model.wrapped if isinstance(self._model, RecordedModel) else self._model
        room = window_of(model) - self._max_tokens

        def request(passages: Sequence[SourcePassage]) -> GenerationRequest:
            rendered = self._render(draft, passages)
            return GenerationRequest(
                rendered.messages,
                Sampling(self._max_tokens, self._temperature, seed=draft.origin.seed),
                answer_schema(draft.kind, self.lengths),
                rendered.assistant_prefix,
            )

        def fits(passages: Sequence[SourcePassage]) -> bool:
            one = request(passages)
            return token_count(model, model.render(one.messages, one.assistant_prefix)) <= room

        passages = draft.passages
        for count in range(len(passages), 0, -1):
            if fits(passages[:count]):
                return passages[:count], request(passages[:count])
        main = passages[0]
        ends = [end for _, end in sentence_spans(main.text)] or [len(main.text)]
        fewest, most = 0, len(ends) - 1  # at least the first sentence stays, and the last one has to go
        while fewest + 1 < most:
            middle = (fewest + most) // 2
            if fits((replace(main, text=main.text[: ends[middle]].rstrip()),)):
                fewest = middle
            else:
                most = middle
        cut = (replace(main, text=main.text[: ends[fewest]].rstrip()),)
        return cut, request(cut)


class Writer(_Author):
    """Writes questions with one model.

    The user's own prompts are ``generate_mcq``, ``generate_freeform`` and ``generate_cloze``, each with ``_brief`` for
    the brief ones. They get ``main``, ``retrieved`` (texts), ``main_source``, ``retrieved_sources`` (title and
    section), ``subject`` and ``own_terms``. Examples are earlier turns of the chat, each with its passage; of questions
    of several levels only those of level base are shown, if there are any.

    Notes:
        The rules are those of the paper's prompts, in our words. The answer's format is another one: the correct
        answer and the distractors are fields of their own, so that a model cannot mark a wrong letter, and code decides
        where the correct option stands. Among each four questions of a call it appears once at each place.
    """

    step = "write"
    asks = "generate"

    def _take_examples(self, examples: Examples) -> None:
        self._values = {"subject": self._subject, "own_terms": self.lengths.term > 0}
        self._turns: dict[Kind, list[Message]] = {kind: [] for kind in KINDS}
        for kind, prompt in self._prompts.items():
            shown = examples.get(kind, ())
            for example in [one for one in shown if one.level in (None, "base")] or shown:
                if not example.context:
                    raise InputError(
                        f"The question {example.id} cannot be an example: the passage it was made from is missing."
                    )
                passage = SourcePassage("", example.context, "", example.document or "", example.section or "")
                asked = prompt.render(**passage_values([passage]), **self._values)
                answer = asked.assistant_prefix + example_answer(example, self.lengths)
                self._turns[kind] += [message for message in asked.messages if message.role != "system"]
                self._turns[kind].append(Message("assistant", answer))

    def write(self, assignments: Sequence[Assignment]) -> list[Draft]:
        """Write a base draft for each assignment, in their order; all are asked for in one call.

        A call that fails gives a draft with ``error``. A passage that the model declines to write from gives a draft
        with a decision against it that holds the model's reason. An answer that cannot be read (cut off, a text left
        empty, distractors missing) gives a draft with a decision against it.
        Passages that the model's window does not hold are dropped from the end, and the main one is cut at a sentence
        if it must be; the draft keeps what was shown.
        """
        return self._written(
            [
                Draft(one.id, one.kind, "base", Wording(""), one.passages, self._origin(one.kind, one.seed))
                for one in assignments
            ]
        )

    def _render(self, draft: Draft, passages: Sequence[SourcePassage]) -> RenderedPrompt:
        """The prompt, with the examples between its system message and what it asks."""
        rendered = self._prompts[draft.kind].render(**passage_values(passages), **self._values)
        at = next((place for place, message in enumerate(rendered.messages) if message.role != "system"), 0)
        turns = self._turns[draft.kind]
        return replace(rendered, messages=(*rendered.messages[:at], *turns, *rendered.messages[at:]))


EVOLVING_KINDS: tuple[Kind, ...] = tuple(kind for kind, one in TYPES.items() if one.levels)
"""Cloze statements have one level only."""


class Evolver(_Author):
    """Turns base questions into ones that take several steps, or that put a hypothetical case.

    The paper adds the complexity in a second request, which shows the base question with its passages; so does this.

    The user's own prompts are ``evolve_mcq`` and ``evolve_freeform``, each with ``_brief`` for the brief ones. They get
    what the writer's prompts get and ``level``, ``base`` (``question``, ``answer``, ``distractors``) and ``examples``
    (texts in the format that is asked for). Examples of the level that is asked for are shown in the prompt, and are
    not turns of the chat, for the questions that they were made from are not known.
    """

    step = "evolve"
    asks = "evolve"
    kinds = EVOLVING_KINDS

    def _take_examples(self, examples: Examples) -> None:
        self._examples: dict[tuple[Kind, Level | None], list[str]] = {}
        for kind in EVOLVING_KINDS:
            for example in examples.get(kind, ()):
                self._examples.setdefault((kind, example.level), []).append(example_answer(example, self.lengths))

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
        asked = {}
        for place, (draft, seed) in enumerate(zip(drafts, seeds, strict=True)):
            if draft.error is None:
                own = self._origin(draft.kind, seed)
                prompts = (*draft.origin.prompts, *own.prompts)
                origin = replace(own, prompts=prompts, evolved_from=draft.wording)
                asked[place] = replace(draft, level=level, origin=origin)
        evolved = list(drafts)
        for place, made in zip(asked, self._written([*asked.values()]), strict=True):
            if made.wording.question and _words(made.wording.question) == _words(drafts[place].wording.question):
                said = "The model gave the base question back."
                made = made.with_decisions(Decision("evolve", self._model.name, False, "not evolved", said))
            evolved[place] = made
        return evolved

    def _render(self, draft: Draft, passages: Sequence[SourcePassage]) -> RenderedPrompt:
        base = draft.origin.evolved_from
        assert base is not None
        distractors = [option for place, option in enumerate(base.options) if place != base.correct]
        return self._prompts[draft.kind].render(
            **passage_values(passages),
            subject=self._subject,
            level=draft.level,
            base={"question": base.question, "answer": base.answer, "distractors": distractors},
            examples=self._examples.get((draft.kind, draft.level), []),
        )


def _words(text: str) -> list[str]:
    return "".join(sign if sign.isalnum() else " " for sign in text.casefold()).split()
