"""Writing questions from passages and evolving them (ClimaQA, section 4.2 and appendix A.4.1).

ClimaQA requests four lettered options and the letter of the correct one. Here the correct answer is a separate field
and the distractors are a list, so a model cannot mark a wrong letter, and code chooses the position of the correct
option, because models prefer some positions.
"""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from climassay.corpus.sentences import sentence_spans
from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, DraftStep, Origin, SourcePassage, Subject, Wording, is_blank
from climassay.models.contract import (
    Completion,
    GenerationRequest,
    Generator,
    Message,
    Sampling,
    number_format,
    object_schema,
    token_count,
    window_of,
)
from climassay.prompts import RenderedPrompt, load_prompt
from climassay.questions import KINDS, TYPES, Kind, Level, Question
from climassay.questions.types.multiple_choice import N_OPTIONS
from climassay.records import RecordedModel

TERM = "term"
"""Name of the only field of the writer's answer that may be empty."""
MAX_REASON_LENGTH = 500
"""Maximum number of characters of the reason for declining a passage."""


class UnreadableAnswerError(ValueError):
    """Error for a model's answer that cannot be parsed; the message says why in one sentence."""


class DeclinedError(ValueError):
    """Error if a model declines to write a question from a passage; the message is the model's reason."""


def answer_schema(kind: Kind, names_masked_term: bool = True) -> dict[str, Any]:
    """Return the JSON schema of the answer in which a model writes a question of the given kind.

    Every field may be empty: a model that declines fills only ``declined``, with its reason. ``names_masked_term`` adds
    the field in which the model names the term to mask in a cloze statement.
    """
    properties: dict[str, Any] = {"declined": {"type": "string", "maxLength": MAX_REASON_LENGTH}}
    properties |= {
        name: {"type": "string", "maxLength": length} for name, length in _text_fields(kind, names_masked_term)
    }
    for name, (count, length) in TYPES[kind].writer_lists.items():
        items = {"type": "string", "maxLength": length}
        properties[name] = {"type": "array", "minItems": 0, "maxItems": count, "items": items}
    return object_schema(properties)


def _text_fields(kind: Kind, names_masked_term: bool) -> list[tuple[str, int]]:
    return [(name, length) for name, length in TYPES[kind].writer_texts.items() if names_masked_term or name != TERM]


def example_answer(question: Question, names_masked_term: bool = True) -> str:
    """Return the answer, matching :func:`answer_schema`, with which a model would have written a question.

    Raises:
        InputError: The question cannot be an example, such as multiple choice without four options.
    """
    fields = {"declined": "", **question.type.example_fields(question)}
    return json.dumps(
        {name: fields[name] for name in answer_schema(question.kind, names_masked_term)["properties"]},
        ensure_ascii=False,
    )


def read_wording(kind: Kind, text: str, *, names_masked_term: bool = True, position: int = 0, seed: int = 0) -> Wording:
    """Parse the question in a model's answer.

    Args:
        kind: Kind of the question.
        text: Answer of the model.
        names_masked_term: Whether the answer names the term to mask; otherwise the term is ignored.
        position: Index at which to place the correct option.
        seed: Seed of the order of the other options.

    Raises:
        DeclinedError: The model declined to write a question.
        UnreadableAnswerError: The answer does not match the schema, a text is empty or truncated, or options are
            missing.
    """
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableAnswerError("The reply is not complete JSON.") from None
    if not isinstance(fields, dict):
        raise UnreadableAnswerError("The reply is not a JSON object.")
    refusal = fields.get("declined")
    if isinstance(refusal, str) and not is_blank(refusal):
        # Small models copy the passage into this field and write a question all the same.
        texts = [fields.get(name) for name in TYPES[kind].writer_texts]
        if not any(isinstance(text, str) and not is_blank(text) for text in texts):
            raise DeclinedError(" ".join(refusal.split()))
    values: dict[str, Any] = {}
    for name, length in _text_fields(kind, names_masked_term):
        if name != TERM:
            values[name] = _clean_text(fields.get(name), name, length)
            continue
        term = fields.get(TERM)
        # A statement may lack its term: a masker then chooses it.
        values[TERM] = "" if not isinstance(term, str) or is_blank(term) else term.strip()
    for name, (count, length) in TYPES[kind].writer_lists.items():
        entries = fields[name] if isinstance(fields.get(name), list) else []
        if len(entries) < count:
            raise UnreadableAnswerError(f"The reply has {len(entries)} {name} instead of {count}.")
        singular = name.removesuffix("s")
        values[name] = [
            _clean_text(entry, f"{singular} {entry_number}", length)
            for entry_number, entry in enumerate(entries[:count], start=1)
        ]
    return Wording(*TYPES[kind].assemble(values, position, random.Random(seed)))


def assign_positions(seeds: Sequence[int]) -> list[int]:
    """Return the position of the correct option for each question, so that all positions are about equally frequent.

    Each group of four questions uses every position once, in an order that depends on the seeds of the four.
    """
    positions: list[int] = []
    for start in range(0, len(seeds), N_OPTIONS):
        group_positions = list(range(N_OPTIONS))
        group_seeds = seeds[start : start + N_OPTIONS]
        random.Random(" ".join(map(str, group_seeds))).shuffle(group_positions)
        positions += group_positions[: len(group_seeds)]
    return positions


def _clean_text(value: object, name: str, max_length: int) -> str:
    """Remove superfluous white space and enclosing quotation marks from a text.

    Raises:
        UnreadableAnswerError: The value is not a text with a word, or was truncated at ``max_length``.
    """
    if not isinstance(value, str) or re.search(r"\w", value) is None:
        raise UnreadableAnswerError(f"The reply leaves the {name} empty.")
    text = " ".join(value.split())
    quoted_text = text[1:-1]
    if len(text) > 2 and (text[0], text[-1]) in _QUOTES and text[0] not in quoted_text:
        text = quoted_text.strip()
    # A grammar ends a text at exactly its maximum length; a longer text was written without a grammar.
    if len(value) == max_length and not text.endswith((".", "?", "!")):
        raise UnreadableAnswerError(f"The {name} of the reply was cut off at {max_length} characters.")
    return text


_QUOTES = {('"', '"'), ("“", "”"), ("'", "'")}


Examples = Mapping[Kind, Sequence[Question]]
"""Example questions for the prompts, by kind of question."""


def passage_values(passages: Sequence[SourcePassage]) -> dict[str, Any]:
    """Return template variables with the texts and sources of passages. The first passage is the main one."""
    main, *retrieved_passages = passages
    return {
        "main": main.text,
        "main_source": main.source,
        "retrieved": [passage.text for passage in retrieved_passages],
        "retrieved_sources": [passage.source for passage in retrieved_passages],
    }


@dataclass(frozen=True, slots=True)
class Assignment:
    """Specification of a question to write."""

    id: str
    """Id of the draft."""
    kind: Kind
    level: Level
    """Level that the question should finally have; writers always write a question of level ``base`` first."""
    passages: tuple[SourcePassage, ...]
    """Main passage, then the passages retrieved for it."""
    seed: int
    """Seed of the sampling and of the order of the options."""


AnswerProgress = Callable[[int, int], None]
"""Function that receives the number of answered requests of a batch, and the number of its requests."""


class _QuestionWriter:
    """Base class of :class:`Writer` and :class:`Evolver`, which request questions from a model."""

    step: DraftStep
    prompt_prefix: str
    """Prefix of the names of the prompt templates."""
    kinds: Sequence[Kind] = KINDS

    def __init__(
        self,
        model: Generator,
        *,
        subject: Subject | None = None,
        prompts: Path | None = None,
        examples: Examples | None = None,
        temperature: float = 0.7,
        max_tokens: int = 1000,
        names_masked_term: bool = True,
        on_answer: AnswerProgress | None = None,
    ) -> None:
        """Load prompts and examples.

        Args:
            model: Model that writes the questions.
            subject: Field, source and audience of the questions.
            prompts: Folder of the user's own prompts.
            examples: Questions to show in the prompts.
            temperature: Sampling temperature.
            max_tokens: Maximum number of tokens in an answer.
            names_masked_term: Whether the model names the term to mask in a cloze statement.
            on_answer: Function that is called after each answer of a batch.

        Raises:
            InputError: A prompt does not exist or is invalid, an example lacks a field, or a number is out of range.
        """
        if temperature < 0:
            raise InputError(f"The temperature is {temperature}: it cannot be negative.")
        if max_tokens < 1:
            raise InputError(f"max_tokens is {max_tokens}: at least one token must be allowed.")
        self._model, self._subject = model, subject or Subject()
        self._temperature, self._max_tokens = temperature, max_tokens
        self._names_masked_term, self._on_answer = names_masked_term, on_answer
        self._prompts = {kind: load_prompt(f"{self.prompt_prefix}_{kind}", prompts) for kind in self.kinds}
        self._set_examples(examples or {})

    def _set_examples(self, examples: Examples) -> None:
        raise NotImplementedError

    def _origin(self, kind: Kind, seed: int) -> Origin:
        prompt, model = self._prompts[kind], self._model
        prompts = ((prompt.name, prompt.sha256),)
        return Origin(model.name, model.fingerprint, prompts, seed, dtype=number_format(model))

    def _render_prompt(self, draft: Draft, passages: Sequence[SourcePassage]) -> RenderedPrompt:
        raise NotImplementedError

    def _request_wordings(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Return the drafts with the wordings that the model writes; all are requested in one call."""
        requests = []
        passages_by_draft = []
        for draft in drafts:
            passages, request = self._fit_window(draft)
            passages_by_draft.append(passages)
            requests.append(request)
        # Positions of the correct options are assigned within each kind.
        positions = [0] * len(drafts)
        for kind in dict.fromkeys(draft.kind for draft in drafts if draft.type.has_options):
            indices = [index for index, draft in enumerate(drafts) if draft.kind == kind]
            kind_positions = assign_positions([drafts[index].origin.seed for index in indices])
            for index, position in zip(indices, kind_positions, strict=True):
                positions[index] = position
        results = []
        n_answered = 0

        def count_answer(_index: int, _answer: Completion) -> None:
            nonlocal n_answered
            n_answered += 1
            if self._on_answer is not None:
                self._on_answer(n_answered, len(requests))

        answers = self._model.generate(requests, on_result=count_answer)
        for draft, passages, answer, position in zip(drafts, passages_by_draft, answers, positions, strict=True):
            result = replace(draft, wording=Wording(""), passages=passages, error=answer.error)
            if answer.error is None:
                try:
                    if answer.finish_reason == "length":
                        raise UnreadableAnswerError(f"The reply was cut off at {self._max_tokens} tokens.")
                    seed = draft.origin.seed
                    wording = read_wording(
                        draft.kind, answer.text, names_masked_term=self._names_masked_term, position=position, seed=seed
                    )
                    result = replace(result, wording=wording)
                except DeclinedError as refusal:
                    result = result.with_decisions(
                        Decision(self.step, self._model.name, False, "declined", str(refusal))
                    )
                except UnreadableAnswerError as fault:
                    result = result.with_decisions(
                        Decision(self.step, self._model.name, False, "unreadable reply", str(fault))
                    )
            results.append(result)
        return results

    def _fit_window(self, draft: Draft) -> tuple[tuple[SourcePassage, ...], GenerationRequest]:
        """Return the passages that fit into the model's context window, and the request that contains them.

        Retrieved passages are dropped, the last one first. If the main passage alone is too long, it is truncated after
        a sentence, but its first sentence is always kept.
        """
        model = self._model.wrapped if isinstance(self._model, RecordedModel) else self._model
        max_prompt_tokens = window_of(model) - self._max_tokens

        def build_request(passages: Sequence[SourcePassage]) -> GenerationRequest:
            rendered_prompt = self._render_prompt(draft, passages)
            return GenerationRequest(
                rendered_prompt.messages,
                Sampling(self._max_tokens, self._temperature, seed=draft.origin.seed),
                answer_schema(draft.kind, self._names_masked_term),
                rendered_prompt.assistant_prefix,
            )

        def fits_prompt(passages: Sequence[SourcePassage]) -> bool:
            request = build_request(passages)
            return token_count(model, model.render(request.messages, request.assistant_prefix)) <= max_prompt_tokens

        passages = draft.passages
        for count in range(len(passages), 0, -1):
            if fits_prompt(passages[:count]):
                return passages[:count], build_request(passages[:count])
        main = passages[0]
        sentence_ends = [end for _, end in sentence_spans(main.text)] or [len(main.text)]
        low, high = 0, len(sentence_ends) - 1  # the first sentence always stays; the whole passage does not fit
        while low + 1 < high:
            middle = (low + high) // 2
            if fits_prompt((replace(main, text=main.text[: sentence_ends[middle]].rstrip()),)):
                low = middle
            else:
                high = middle
        truncated_passages = (replace(main, text=main.text[: sentence_ends[low]].rstrip()),)
        return truncated_passages, build_request(truncated_passages)


class Writer(_QuestionWriter):
    """Writer of base questions with a model.

    The prompt templates are ``generate_mcq``, ``generate_freeform`` and so on. Their variables are ``main`` and
    ``retrieved`` (texts of passages), ``main_source`` and ``retrieved_sources`` (title and section of each),
    ``subject`` and ``names_masked_term``. Examples become earlier turns of the chat, each with its passage; those of
    level ``base`` are used if there are any.

    Notes:
        The prompts state the rules of ClimaQA's prompts in our own words. Unlike there, the correct answer and the
        distractors are separate fields of the answer, so that a model cannot mark a wrong letter. The position of the
        correct option is assigned by :func:`assign_positions`.
    """

    step = "write"
    prompt_prefix = "generate"

    def _set_examples(self, examples: Examples) -> None:
        self._values = {"subject": self._subject, "own_terms": self._names_masked_term}
        self._turns: dict[Kind, list[Message]] = {kind: [] for kind in KINDS}
        for kind, prompt in self._prompts.items():
            kind_examples = examples.get(kind, ())
            base_examples = [example for example in kind_examples if example.level in (None, "base")]
            for example in base_examples or kind_examples:
                if not example.context:
                    raise InputError(
                        f"The question {example.id} cannot be an example: the passage it was made from is missing."
                    )
                passage = SourcePassage("", example.context, "", example.document or "", example.section or "")
                rendered_prompt = prompt.render(**passage_values([passage]), **self._values)
                answer = rendered_prompt.assistant_prefix + example_answer(example, self._names_masked_term)
                self._turns[kind] += [message for message in rendered_prompt.messages if message.role != "system"]
                self._turns[kind].append(Message("assistant", answer))

    def write(self, assignments: Sequence[Assignment]) -> list[Draft]:
        """Write a base draft for each assignment, in order; all are requested in one call.

        No exception is raised for a single draft. If the call fails, the draft has an ``error``. If the model declines
        the passage, or its answer cannot be parsed, the draft is rejected. Passages that do not fit into the model's
        context window are dropped or truncated; the draft contains the passages that were sent.
        """
        drafts = []
        for assignment in assignments:
            origin = self._origin(assignment.kind, assignment.seed)
            drafts.append(Draft(assignment.id, assignment.kind, "base", Wording(""), assignment.passages, origin))
        return self._request_wordings(drafts)

    def _render_prompt(self, draft: Draft, passages: Sequence[SourcePassage]) -> RenderedPrompt:
        """Render the prompt, and insert the examples after its system message."""
        rendered_prompt = self._prompts[draft.kind].render(**passage_values(passages), **self._values)
        messages = rendered_prompt.messages
        start = next((index for index, message in enumerate(messages) if message.role != "system"), 0)
        return replace(rendered_prompt, messages=(*messages[:start], *self._turns[draft.kind], *messages[start:]))


EVOLVING_KINDS: tuple[Kind, ...] = tuple(kind for kind, question_type in TYPES.items() if question_type.has_levels)
"""Kinds of questions that can be evolved, because they have several levels."""


class Evolver(_QuestionWriter):
    """Model that evolves base questions into questions that need several steps of reasoning or pose a hypothetical.

    As in ClimaQA, this is a second request, with the base question and its passages.

    The prompt templates are ``evolve_mcq`` and ``evolve_freeform``. In addition to the variables of the writer's
    prompts they have ``level``, ``base`` (``question``, ``answer`` and ``distractors``) and ``examples`` (answers of
    the requested level). Examples are part of the prompt rather than turns of the chat, because their base questions
    are unknown.
    """

    step = "evolve"
    prompt_prefix = "evolve"
    kinds = EVOLVING_KINDS

    def _set_examples(self, examples: Examples) -> None:
        self._examples: dict[tuple[Kind, Level | None], list[str]] = {}
        for kind in EVOLVING_KINDS:
            for example in examples.get(kind, ()):
                self._examples.setdefault((kind, example.level), []).append(example_answer(example))

    def evolve(self, drafts: Sequence[Draft], level: Level, seeds: Sequence[int]) -> list[Draft]:
        """Evolve drafts to a level, and return them in the same order.

        An evolved draft keeps its id, passages and decisions; its origin names the base question and both prompts.
        Drafts with an ``error`` are unchanged. If the model repeats the base question, the draft is rejected as ``not
        evolved``.

        Args:
            drafts: Drafts of :data:`EVOLVING_KINDS`, of any level.
            level: ``reasoning`` or ``hypothetical``.
            seeds: Sampling seed for each draft.

        Raises:
            InputError: The level is ``base``, a draft cannot be evolved, or the numbers of drafts and seeds differ.
        """
        if level == "base":
            raise InputError("A base question is evolved to reasoning or hypothetical, not to base.")
        if len(seeds) != len(drafts):
            raise InputError(f"{len(drafts)} drafts need as many seeds, not {len(seeds)}.")
        if any(draft.kind not in EVOLVING_KINDS for draft in drafts):
            raise InputError("Cloze statements are always base: only mcq and freeform questions can be evolved.")
        base_drafts = {}
        for index, (draft, seed) in enumerate(zip(drafts, seeds, strict=True)):
            if draft.error is None:
                origin = self._origin(draft.kind, seed)
                prompts = (*draft.origin.prompts, *origin.prompts)
                origin = replace(origin, prompts=prompts, evolved_from=draft.wording)
                base_drafts[index] = replace(draft, level=level, origin=origin)
        results = list(drafts)
        for index, draft in zip(base_drafts, self._request_wordings([*base_drafts.values()]), strict=True):
            results[index] = draft
            question = draft.wording.question
            if question and _split_words(question) == _split_words(drafts[index].wording.question):
                detail = "The model repeated the base question."
                decision = Decision("evolve", self._model.name, False, "not evolved", detail)
                results[index] = draft.with_decisions(decision)
        return results

    def _render_prompt(self, draft: Draft, passages: Sequence[SourcePassage]) -> RenderedPrompt:
        base_wording = draft.origin.evolved_from
        assert base_wording is not None
        distractors = [option for index, option in enumerate(base_wording.options) if index != base_wording.correct]
        return self._prompts[draft.kind].render(
            **passage_values(passages),
            subject=self._subject,
            level=draft.level,
            base={"question": base_wording.question, "answer": base_wording.answer, "distractors": distractors},
            examples=self._examples.get((draft.kind, draft.level), []),
        )


def _split_words(text: str) -> list[str]:
    return "".join(character if character.isalnum() else " " for character in text.casefold()).split()
