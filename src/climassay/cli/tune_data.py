"""From what a user names to what ``climassay tune`` learns from: collections to documents, questions to examples."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.evaluation import ReadDocument
    from climassay.questions import Question, QuestionSet
    from climassay.tuning import ChatData, ContinuedPretrainingData, TextDocument, ValidateOn
    from climassay.workspace import Workspace


def pretraining_data(
    workspace: "Workspace",
    collections: Sequence[str],
    *,
    validation: Sequence[str],
    validation_documents: Sequence[str],
    source: Sequence[str],
    questions: Sequence[str],
    validate_on: "ValidateOn",
) -> "ContinuedPretrainingData":
    """Documents to read and to validate on.

    Args:
        workspace: Where the collections lie.
        collections: To read.
        validation: Collections to validate on.
        validation_documents: Documents of ``collections``, by id, title or file name, to validate on and not read.
        source: Collections that the benchmark's questions come from.
        questions: Question files; the documents they name are taken out of what is read.
        validate_on: ``held-out`` or ``source``.

    Raises:
        InputError: A name is unknown, a set is empty, or two share a document.
    """
    from climassay.evaluation import collection_documents
    from climassay.tuning import ContinuedPretrainingData, TextData

    pool = collection_documents(workspace, collections)
    asked_about = _documents_asked_about(questions)
    asked = [one for one in pool if asked_about & set(_names(one))]
    held = _chosen(pool, validation_documents)
    read = tuple(one.text for one in pool if one not in asked and one not in held)
    if not read:
        raise InputError(f"Nothing is left to read of {', '.join(collections)}: all of it is held out.")
    sources = _texts([*collection_documents(workspace, source), *asked])
    validated = _texts([*collection_documents(workspace, validation), *held])
    return ContinuedPretrainingData.assemble(
        TextData("+".join(collections), read),
        source=TextData("+".join([*source, *(Path(file).name for file in questions)]), sources) if sources else None,
        validation=TextData("+".join([*validation, *validation_documents]), validated) if validated else None,
        validate_on=validate_on,
    )


def _names(one: "ReadDocument") -> tuple[str, ...]:
    """By which users and questions may know a document: its file's name among them."""
    return one.stored.id, one.stored.title, one.stored.source, Path(one.stored.source).stem


def _texts(documents: "Iterable[ReadDocument]") -> "tuple[TextDocument, ...]":
    return tuple({one.stored.id: one.text for one in documents}.values())


def _chosen(pool: "Sequence[ReadDocument]", names: Sequence[str]) -> "list[ReadDocument]":
    """The documents of these names.

    Raises:
        InputError: There is none of a name.
    """
    chosen = []
    for name in names:
        found = [one for one in pool if name in _names(one)]
        if not found:
            raise InputError(f"No document to validate on is called {name!r}: see `climassay corpus show COLLECTION`.")
        chosen += found
    return chosen


def _documents_asked_about(files: Sequence[str]) -> set[str]:
    """Names of documents in question files.

    Raises:
        InputError: A file cannot be read, or names no document.
    """
    names: set[str] = set()
    for file in files:
        named = {question.document for question in question_set(file).questions if question.document}
        if not named:
            raise InputError(f"The questions of {file} name no documents: name the books' collection with --source.")
        names |= named
    return names


def question_set(file: str) -> "QuestionSet":
    """Questions of a file, or of the primer.

    Raises:
        InputError: The file cannot be read.
    """
    from climassay.primer import named_questions

    return named_questions(file)


def finetuning_data(
    file: str,
    *,
    validation: str | None,
    validation_share: float,
    limit: int | None,
    contexts: bool,
    prompts: Path | None,
    seed: int,
) -> "tuple[ChatData, ChatData]":
    """Examples to learn and to validate on, in the prompts of the evaluation.

    Without a file of its own the validation takes a share of the questions; questions of one text stay together.

    Args:
        file: Questions of any kinds, or ``primer``.
        validation: Likewise; None: a share of ``file``.
        validation_share: Between 0 and 1.
        limit: Use only so many questions of each file, drawn by seed.
        contexts: Put the text that a question was made from before it, where the file has it.
        prompts: Folder of the user's own templates.
        seed: Of the draws.

    Raises:
        InputError: A file cannot be read, or cannot be split.
    """
    from climassay.evaluation import TaskPrompts, question_data, split_questions

    templates = TaskPrompts.load(prompts)
    given = question_set(file)
    learned: Sequence[Question] = _drawn(given, limit, seed)
    held_out: Sequence[Question]
    if validation is not None:
        other = question_set(validation)
        held_out, name = _drawn(other, limit, seed), other.name
    else:
        learned, held_out = split_questions(learned, validation_share, seed=seed)
        name = f"{given.name}, held out"
    return (
        question_data(given.name, learned, templates, with_contexts=contexts),
        question_data(name, held_out, templates, with_contexts=contexts),
    )


def _drawn(questions: "QuestionSet", limit: int | None, seed: int) -> "tuple[Question, ...]":
    import random

    if limit is None or limit >= len(questions.questions):
        return questions.questions
    places = random.Random(seed).sample(range(len(questions.questions)), limit)
    return tuple(questions.questions[place] for place in sorted(places))
