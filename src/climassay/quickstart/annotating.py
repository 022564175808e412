"""Annotating on the terminal: a question with its passage, and a word about it, which is kept as the web keeps it."""

import textwrap
import uuid

from climassay.errors import InputError
from climassay.generation import Draft
from climassay.generation.annotation import ANNOTATION_REASONS, AnnotationStore, Item
from climassay.questions import option_letter
from climassay.quickstart.step import Dialog

PASSAGE_CHARACTERS = 700
YES, NO = ("y", "yes"), ("n", "no")
OTHER = "other"


def annotate(store: AnnotationStore, dataset: str, annotator: str, count: int, dialog: Dialog) -> tuple[int, int]:
    """Put items before the user until so many are labelled, or nothing is left.

    Returns:
        Accepted and rejected items of this call.

    Raises:
        InputError: There is no such dataset, or an answer is of no use and may not be asked for again.
    """
    said = [0, 0]
    while sum(said) < count and (item := store.next(dataset, annotator)) is not None:
        dialog.say(shown(item))
        verdict = _verdict(dialog)
        if verdict is None:
            store.skip(dataset, item.draft.id, annotator)
            continue
        reasons, remark = ((), "") if verdict else _reason(dialog)
        store.label(
            dataset,
            item.draft.id,
            annotator,
            accepted=verdict,
            reasons=reasons,
            remark=remark,
            key=uuid.uuid4().hex,
        )
        said[0 if verdict else 1] += 1
    return said[0], said[1]


def shown(item: Item) -> str:
    """An item as text: the question, what is said to be right, and the passage that it was written from."""
    draft = item.draft
    passage = textwrap.shorten(draft.main.text, PASSAGE_CHARACTERS, placeholder=" ...")
    lines = [*_question(draft), "", f"Passage ({draft.main.document}):", textwrap.fill(passage, 96)]
    return "\n".join(lines)


def _question(draft: Draft) -> list[str]:
    wording = draft.wording
    if draft.kind == "mcq":
        options = [
            f"  {option_letter(place)}. {text}{'   <- marked as right' if place == wording.correct else ''}"
            for place, text in enumerate(wording.options)
        ]
        return [f"Question: {wording.question}", *options]
    if draft.kind == "cloze":
        return [f"Statement: {wording.question}", f"Masked term: {wording.answer}"]
    return [f"Question: {wording.question}", f"Answer: {wording.answer}"]


def _verdict(dialog: Dialog) -> bool | None:
    while True:
        said = dialog.answer("Is it right and fit for a benchmark? y or n", YES[0])
        word = None if said is None else said.strip().lower()
        if word is None or word in YES or word in NO:
            return None if word is None else word in YES
        _refuse(dialog, "Answer y or n.")


def _reason(dialog: Dialog) -> tuple[tuple[str, ...], str]:
    for reason in ANNOTATION_REASONS:
        dialog.say(f"  {reason.key}  {reason.words}")
    by_key = {reason.key: reason.name for reason in ANNOTATION_REASONS}
    while True:
        said = dialog.answer("Why not? A number, or the reason in your own words", "4")
        name = by_key.get((said or "").strip())
        if name == OTHER:
            said = dialog.answer("In words", "")
        if name is not None and name != OTHER:
            return (name,), ""
        if said and said.strip() not in by_key:
            return (OTHER,), said.strip()
        _refuse(dialog, "A rejected question needs a reason.")


def _refuse(dialog: Dialog, sentence: str) -> None:
    if not dialog.patient:
        raise InputError(sentence)
    dialog.say(sentence)
