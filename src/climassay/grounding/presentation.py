"""A grounded answer as part of a report, and as data."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from climassay.grounding.answer import GroundedAnswer
from climassay.reporting import AnswerCard, Report, Section

if TYPE_CHECKING:
    from rich.text import Text


def removed_note(citations: int) -> str:
    """What is said of citations that were removed because their passages do not exist; empty where none was."""
    if citations == 1:
        return "1 citation of a passage that does not exist was removed."
    return f"{citations} citations of passages that do not exist were removed." if citations else ""


def unchecked_note(references: Iterable[str]) -> str:
    """What is said of references to works that no document at hand is; empty where there is none."""
    named = ", ".join(dict.fromkeys(references))
    return f"Not checked, because no document here is the work: {named}." if named else ""


def answer_lines(answer: GroundedAnswer) -> "Iterator[Text]":
    """The answer as a terminal shows it: nothing where the model gave none."""
    from rich.text import Text

    if answer.error is not None:
        return
    yield Text(answer.text)
    if not answer.enough_information:
        reason = "the passages found do not answer it" if answer.sources else "no passage is relevant"
        yield Text(f"({reason}; nothing was made up)", style="dim")
    if answer.sources:
        yield Text()
    for source in answer.sources:
        similarity = "" if source.cosine is None else f"  ({source.cosine:.2f})"
        yield Text(f"[{source.number}] {source.citation}{similarity}", style="dim")
    unchecked = unchecked_note(one for sentence in answer.sentences for one in sentence.unchecked_references)
    for note in filter(None, (removed_note(answer.removed_citations), unchecked)):
        yield Text(note, style="dim")


def answer_card(answer: GroundedAnswer) -> AnswerCard:
    """The answer with its sources, ready for a report."""
    sentences = (
        tuple((sentence.text, sentence.citations, sentence.in_house) for sentence in answer.sentences)
        if answer.sentences
        else ((answer.text, (), False),)
    )
    notes = []
    if not answer.sources:
        notes.append("No passage is relevant, so the model was not asked.")
    attributed = sum(sentence.origin == "attributed" for sentence in answer.sentences)
    if attributed:
        notes.append(f"{attributed} of {len(answer.sentences)} citations were found by comparing sentence and passage.")
    foreign = [number for sentence in answer.sentences for number in sentence.foreign_numbers]
    if foreign:
        notes.append(f"Numbers that the cited passages do not have: {', '.join(foreign)}.")
    notes.append(removed_note(answer.removed_citations))
    notes.append(unchecked_note(one for sentence in answer.sentences for one in sentence.unchecked_references))
    sources = tuple((source.number, source.citation, source.passage.text) for source in answer.sources)
    return AnswerCard(answer.question, sentences, sources, " ".join(filter(None, notes)))


def answer_report(answer: GroundedAnswer) -> Report:
    """A page with one answer."""
    return Report(
        title="A cited answer",
        lead=f"Written by {answer.model} from the passages below; unfold a source to read it.",
        sections=(Section("Answer", (answer_card(answer),)),),
        facts=(("Model fingerprint", answer.fingerprint), ("Number format", answer.dtype or "-")),
    )


def answer_data(answer: GroundedAnswer) -> dict[str, Any]:
    """The answer as JSON can write it, with its whole text and the citation of every source."""
    data = asdict(answer)
    data["text"] = answer.text
    for source, entry in zip(answer.sources, data["sources"], strict=True):
        entry["citation"] = source.citation
    return data
