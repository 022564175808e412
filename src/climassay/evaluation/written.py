"""Freeform and cloze: asking a model to write, and checking what it was asked to keep to."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from climassay.corpus.sentences import split_sentences
from climassay.evaluation.examples import TaskPrompts, example_values
from climassay.evaluation.settings import Prepared, Setting
from climassay.models.contract import Completion, GenerationRequest, Generator, Sampling
from climassay.models.profiles import profile_of
from climassay.questions import Question

FREEFORM_SENTENCES = 2
FREEFORM_TOKENS = 160
"""Room for two long sentences."""
CLOZE_TOKENS = 12
"""Room for one scientific word, and for seeing that it was not one."""
_CLOZE_WRAPPING = "*_`\"'“”‘’ "


@dataclass(frozen=True, slots=True)
class Written:
    """One question answered in words."""

    question: str
    """Id of the question."""
    text: str
    """The first paragraph (freeform) or first line (cloze) of what the model wrote; empty on failure."""
    prepared: Prepared
    """What the prompt had beside the question."""
    violations: tuple[str, ...] = ()
    """Constraints that the answer does not keep."""
    error: str | None = None


def ask_written(
    questions: Sequence[Question],
    model: Generator,
    setting: Setting,
    prompts: TaskPrompts,
    *,
    on_progress: Callable[[int], None] | None = None,
) -> list[Written]:
    """Ask freeform or cloze questions in one setting, greedily.

    The prompt asks for at most two sentences (freeform) or one scientific word (cloze). What the model writes beyond is
    kept and scored as it is, and the violation recorded; only what follows the first paragraph or line is left out,
    for small models go on with questions of their own.

    Args:
        questions: All freeform, or all cloze.
        model: Any generator.
        setting: What the model is given besides.
        prompts: Templates.
        on_progress: Called with the number of answers that came in.

    Returns:
        One answer a question, in order.

    References:
        Manivannan et al. (2025), ClimaQA, section 5.1 (the constraints).
    """
    prepared = setting.prepare(questions, model)
    profile = profile_of(model)
    room = {"freeform": profile.room(FREEFORM_TOKENS), "cloze": profile.room(CLOZE_TOKENS)}
    requests = []
    for question, given in zip(questions, prepared, strict=True):
        examples = [example_values(example) for example in given.examples]
        rendered = prompts.render(question, given.passages, examples)
        sampling = Sampling(max_tokens=room[question.kind])
        requests.append(GenerationRequest(rendered.messages, sampling, assistant_prefix=rendered.assistant_prefix))
    told = None if on_progress is None else lambda _index, _answer: on_progress(1)
    answers = model.generate(requests, on_result=told)
    return [
        _written(question, given, answer, room[question.kind])
        for question, given, answer in zip(questions, prepared, answers, strict=True)
    ]


def _written(question: Question, given: Prepared, answer: Completion, room: int) -> Written:
    if answer.error is not None:
        return Written(question.id, "", given, error=answer.error)
    text = freeform_answer(answer.text) if question.kind == "freeform" else cloze_answer(answer.text)
    broken = (freeform_violations if question.kind == "freeform" else cloze_violations)(text)
    if question.kind == "freeform" and answer.finish_reason == "length":
        broken = (*broken, f"cut at {room} tokens")
    return Written(question.id, text, given, broken)


def freeform_answer(text: str) -> str:
    """The first paragraph of what a model wrote, white space made single."""
    return " ".join(text.strip().partition("\n\n")[0].split())


def cloze_answer(text: str) -> str:
    """The first line of what a model wrote, without quotation marks, emphasis and a final full stop around it."""
    line = text.strip().partition("\n")[0].strip(_CLOZE_WRAPPING)
    return line.removesuffix(".").strip(_CLOZE_WRAPPING)


def freeform_violations(text: str) -> tuple[str, ...]:
    """What a freeform answer does not keep to."""
    if not text:
        return ("empty",)
    return ("more than two sentences",) if len(split_sentences(text)) > FREEFORM_SENTENCES else ()


def cloze_violations(text: str) -> tuple[str, ...]:
    """What a cloze answer does not keep to; a hyphen or a formula's subscript makes no second word."""
    if not text:
        return ("empty",)
    return ("more than one word",) if len(re.findall(r"\S+", text)) > 1 else ()
