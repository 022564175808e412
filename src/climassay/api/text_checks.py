"""A text checked sentence by sentence against collections: what bears it, what contradicts it, what nothing bears."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.models.contract import Generator, Usage
from climassay.reporting import Table
from climassay.reporting.results import Result
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from rich.text import Text

    from climassay.grounding.text_check import CheckedSentence, Evidence

WORTH = (
    "Measured on 60 errors planted in answers that were never looked at while thresholds were chosen: 48 are marked"
    " (80%, 95% interval 68 to 88), and 7 of 90 untouched sentences (8%, 4 to 15); where both are as frequent as there,"
    " 48 of 55 marks are right (87%, 76 to 94). A sentence without a mark may still be wrong."
)
"""What marks are worth by default; see docs/results/check_text.md."""
_STYLES = {"supported": "green", "contradicted": "bold red", "unsupported": "yellow", "no claim": "dim"}
_PLAIN_SUFFIXES = (".txt", ".md", ".markdown", "")


@dataclass(frozen=True, slots=True)
class TextCheck(Result):
    """A text with what was found about each of its sentences."""

    name: str
    """The file's name, or "text"."""
    collections: tuple[str, ...]
    sentences: "tuple[CheckedSentence, ...]"
    scorer: str
    """Who tells what a passage does to a sentence."""
    judge: str = ""
    """Model that judged support; empty for none."""
    usage: Usage = field(default_factory=Usage)
    """What the judge was asked for."""

    @property
    def marked(self) -> "tuple[CheckedSentence, ...]":
        """Sentences that a reader should look at."""
        return tuple(one for one in self.sentences if one.marked)

    @property
    def judge_failures(self) -> int:
        """Sentences that the judge gave no usable answer on, so that the scorer decides."""
        return sum(one.judgement is not None and one.judgement.relation is None for one in self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Counts, and every sentence."""
        from climassay.grounding.text_check import sentence_data, status_counts

        return {
            "name": self.name,
            "collections": list(self.collections),
            "scorer": self.scorer,
            "judge": self.judge or None,
            "judge_failures": self.judge_failures,
            "counts": status_counts(self.sentences),
            "marked": len(self.marked),
            "references": Counter(reference.status for one in self.sentences for reference in one.references),
            "sentences": [sentence_data(one) for one in self.sentences],
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row per sentence."""
        return [
            {
                "sentence": one.text,
                "status": one.status,
                "marked": one.marked,
                "support": round(one.support, 3),
                "reason": one.reason,
                "passage": one.evidence.citation if one.evidence else "",
                "quotation": one.evidence.quotation if one.evidence else "",
                "differing": "; ".join(f"{each.said} / {each.source or 'not there'}" for each in one.differing),
                "overstated": one.overstated or "",
                "references": "; ".join(f"{each.text}: {each.status}" for each in one.references),
            }
            for one in self.sentences
        ]

    def lines(self) -> "Iterator[Text]":
        """The text, coloured by status."""
        from rich.text import Text

        for paragraph in dict.fromkeys(one.paragraph for one in self.sentences):
            own = [one for one in self.sentences if one.paragraph == paragraph]
            yield Text(" ").join(Text(one.text, style=_STYLES[one.status]) for one in own)

    def tables(self) -> tuple[Table, ...]:
        """How many sentences have each status, what is marked and why, and references that are not at hand."""
        from climassay.grounding.text_check import status_counts

        counts = [(status, str(count)) for status, count in status_counts(self.sentences).items()]
        marks = [
            (one.text, one.status, problem, one.evidence.citation if one.evidence else "-")
            for one in self.marked
            for problem in problems(one)
        ]
        references = [
            (each.text, each.status, each.reason)
            for one in self.sentences
            for each in one.references
            if each.status != "exists"
        ]
        columns = (("sentence", "status", "what is the matter", "passage"), ("reference", "status", "why"))
        return (
            Table.of("Sentences", ("status", "sentences"), counts),
            Table.of("To be looked at", columns[0], marks, left=4),
            *([Table.of("References that are not at hand", columns[1], references, left=3)] if references else []),
        )

    def title(self) -> str:
        """Heading of the report."""
        return f"{self.name}, sentence by sentence"

    def notes(self) -> Iterator[str]:
        """What a mark is worth, and what the judge did not answer."""
        yield (
            WORTH if not self.judge and self.scorer == "bundled" else "How often these marks are right is not measured."
        )
        if self.judge_failures:
            yield f"{self.judge} gave no usable answer on {self.judge_failures} sentences; the scorer decides there."

    def page(self) -> str:
        """The text with every sentence coloured by its support, and what was found about it."""
        return self._rendered("check_text.html.j2", lambda _evidence: None)

    def sentences_html(self, places: "Callable[[Evidence], Any]") -> str:
        """The coloured text and its sentences as safe HTML, for a page that is made elsewhere.

        Args:
            places: Where the evidence of a sentence can be looked at: addresses ``passage`` and ``page``, and the words
                ``page_words``; None for nowhere, where only the citation is shown.
        """
        return self._rendered("check_text_sentences.html.j2", places)

    def _rendered(self, template: str, places: "Callable[[Evidence], Any]") -> str:
        from climassay.grounding.text_check import status_counts
        from climassay.reporting.html import render_page

        counts = status_counts(self.sentences)
        return render_page(template, check=self, counts=counts, problems=problems, places=places)


def problems(sentence: "CheckedSentence") -> list[str]:
    """Why a sentence is marked, each reason in a sentence of its own."""
    found = [sentence.reason] if sentence.status in ("contradicted", "unsupported") else []
    if sentence.status == "supported" and sentence.differing:
        told = ", ".join(one.said for one in sentence.differing)
        found.append(f"The passage has something else than {told}.")
    found += [sentence.overstated] if sentence.overstated else []
    return found + [f"{one.text}: {one.reason}" for one in sentence.wrong_references]


def read_text_to_check(file: Path) -> str:
    """The text of a file: plain text and Markdown as they are, of all other files the paragraphs.

    Raises:
        InputError: It cannot be read, or has no text.
    """
    if file.suffix.lower() in _PLAIN_SUFFIXES:
        from climassay.io import read_text

        try:
            return read_text(file)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise InputError(f"{file} cannot be read: {reason}.") from None
    from climassay.corpus.readers.file_types import read

    result = read(file)
    if not result.documents:
        raise InputError(result.skipped[0].reason if result.skipped else f"{file} has no text to check.")
    return "\n".join(block.text for document in result.documents for block in document.blocks)


def check_text(
    text: str | Path,
    collections: str | Sequence[str],
    *,
    entailment: str = "bundled",
    judge: Generator | str | None = None,
    passages: int = 5,
    network: bool = False,
    workspace: Place = None,
) -> TextCheck:
    """Check a text sentence by sentence: what bears it, what contradicts it, what nothing bears.

    Every sentence gets the passage that bears it best or contradicts it, quantities and words that differ from it,
    references that point to nothing, and words that are surer than the source.

    Args:
        text: Text, Markdown, Word, HTML or PDF; - reads stdin.
        collections: Names of collections to compare it with.
        entailment: Scorer: bundled, prompted:MODEL, supports:MODEL, nli:MODEL, or a trained head's file.
        judge: Model that judges support; by default none is asked.
        passages: Passages looked at for each sentence.
        network: Ask whether DOIs and web addresses exist; nothing is asked otherwise.
        workspace: Where collections and records lie.

    Raises:
        InputError: The text is empty or too long, or there is no such collection.
        ModelError: The model cannot be loaded.
    """
    from climassay.confidence.overstatement import overstatement
    from climassay.grounding.references import address_answers
    from climassay.grounding.text_check import LONGEST_TEXT, SupportJudge, check_sentences, sentence_data
    from climassay.metrics.entailment_loading import load_entailment
    from climassay.prompts import load_prompt

    if passages < 1:
        raise InputError(f"At least one passage is looked at for each sentence, not {passages}.")
    name, words = (text.name, read_text_to_check(text)) if isinstance(text, Path) else ("text", text)
    if not words.strip() or len(words) > LONGEST_TEXT:
        raise InputError(f"A text to check has between 1 and {LONGEST_TEXT:,} characters, not {len(words.strip()):,}.")
    with Session.opened(workspace) as session:
        group = session.collections(collections)
        prompt = load_prompt("check_text", session.options.prompts)
        asked = None if judge is None else session.model(judge)
        config = {
            "text": words,
            "collections": one_or_several(collections),
            "entailment": entailment,
            "judge": asked.name if asked else None,
            "passages": passages,
            "network": network,
            "prompt_sha256": prompt.sha256,
        }
        with session.run("check-text", config) as run, session.progress.task("Sentences") as task:
            scorer = load_entailment(
                entailment,
                encoder=session.encoder() if entailment == "bundled" else None,
                load=lambda model: session.recorded(session.model(model), run),
            )
            support = None if asked is None else SupportJudge(session.recorded(asked, run), prompt)
            found = check_sentences(
                words,
                group,
                scorer=scorer,
                judge=support,
                overstated=overstatement,
                ask=address_answers if network else None,
                k=passages,
                on_progress=task.advance,
            )
            run.save_results("sentences", [sentence_data(one) for one in found])
        usage = Usage() if support is None else support.usage
        return TextCheck(name, one_or_several(collections), found, scorer.name, asked.name if asked else "", usage)
