"""Result of checking a text: its sentences with status, reasons and evidence, as tables, rows and a page."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from climassay.models.contract import Usage
from climassay.reporting import Table, counted
from climassay.reporting.results import Result

if TYPE_CHECKING:
    from rich.text import Text

    from climassay.grounding.text_check import CheckedSentence, PassageEvidence, Relation


NOT_JUDGED_NOTE = (
    "No model has read the text: without one, no sentence is called supported. “Similar” says that a passage speaks"
    " about the same. A sentence may be false without being marked, and right although it is marked."
)
"""Note on checks without a judge."""

RELATIONS: "Mapping[Relation, str]" = {"contradicts": "Says otherwise", "supports": "Supports it", "nearest": "Nearest"}
"""Label shown to readers for each relation of a quotation to the checked sentence."""

_STYLES = {
    "supported": "green", "contradicted": "bold red", "similar": "default", "unsupported": "yellow", "no claim": "dim",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TextCheck(Result):
    """Text with the status and evidence of each of its sentences."""

    rests_on_calls = False

    name: str
    """Name of the file, or "text"."""
    collections: tuple[str, ...]
    sentences: "tuple[CheckedSentence, ...]"
    judge: str = ""
    """Name of the model that judged the sentences; empty if there was none."""
    usage: Usage = field(default_factory=Usage)
    """Tokens and cost of the judge's calls."""

    @property
    def marked(self) -> "tuple[CheckedSentence, ...]":
        """Sentences that a reader should check."""
        return tuple(sentence for sentence in self.sentences if sentence.marked)

    @property
    def judge_failures(self) -> int:
        """Number of sentences for which the judge gave no usable answer."""
        return sum(
            sentence.judgement is not None and sentence.judgement.relation is None for sentence in self.sentences
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts by status, and every sentence with its evidence, as JSON-serialisable values."""
        from climassay.grounding.text_check import count_statuses, sentence_to_dict

        return {
            "name": self.name,
            "collections": list(self.collections),
            "judge": self.judge or None,
            "judge_failures": self.judge_failures,
            "counts": count_statuses(self.sentences),
            "marked": len(self.marked),
            "references": Counter(reference.status for sentence in self.sentences for reference in sentence.references),
            "sentences": [sentence_to_dict(sentence) for sentence in self.sentences],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per sentence."""
        return [
            {
                "sentence": sentence.text,
                "status": sentence.status,
                "marked": sentence.marked,
                "reason": sentence.reason,
                **_evidence_cells(sentence),
                "differing": "; ".join(f"{item.text} / {item.source or 'not there'}" for item in sentence.differing),
                "overstated": sentence.overstated or "",
                "references": "; ".join(f"{item.text}: {item.status}" for item in sentence.references),
            }
            for sentence in self.sentences
        ]

    def lines(self) -> "Iterator[Text]":
        """Yield the paragraphs of the text, coloured by status."""
        from rich.text import Text

        for paragraph in dict.fromkeys(sentence.paragraph for sentence in self.sentences):
            paragraph_sentences = [sentence for sentence in self.sentences if sentence.paragraph == paragraph]
            yield Text(" ").join(Text(part.text, style=_STYLES[part.status]) for part in paragraph_sentences)

    def tables(self) -> tuple[Table, ...]:
        """Return tables of counts by status, marked sentences with reasons, and references that were not found."""
        from climassay.grounding.text_check import count_statuses

        counts = [(status, str(count)) for status, count in count_statuses(self.sentences).items()]
        marks = [
            (sentence.text, sentence.status, problem, *_quotation_cells(sentence))
            for sentence in self.marked
            for problem in list_problems(sentence)
        ]
        references = [
            (reference.text, reference.status, reference.reason)
            for sentence in self.sentences
            for reference in sentence.references
            if reference.status != "exists"
        ]
        columns = (("sentence", "status", "what is the matter", "quotation", "passage"), ("reference", "status", "why"))
        return (
            Table.of("Sentences", ("status", "sentences"), counts),
            Table.of("To be looked at", columns[0], marks, left_columns=5),
            *(
                [Table.of("References that are not at hand", columns[1], references, left_columns=3)]
                if references
                else []
            ),
        )

    def title(self) -> str:
        """Return the heading of the report."""
        return f"{self.name}, sentence by sentence"

    def notes(self) -> Iterator[str]:
        """Yield notes on the reliability of statuses and marks, and on the judge's failures."""
        if not self.judge:
            yield NOT_JUDGED_NOTE
        else:
            yield f"{self.judge} read each sentence with its passages. How often it is right is not measured here."
        if self.judge_failures:
            failure_count = counted(self.judge_failures, "sentence")
            yield f"{self.judge} gave no usable answer on {failure_count}, which no model has read."

    def page(self) -> str:
        """Return an HTML page of the text, with sentences coloured by status and listed with their evidence."""
        return self._render("check_text.html.j2", lambda _evidence: None)

    def sentences_html(self, evidence_links: "Callable[[PassageEvidence], Any]") -> str:
        """Return the coloured text and its sentences as safe HTML, to be embedded in another page.

        Args:
            evidence_links: Function that returns the links of a sentence's evidence, with the attributes ``passage``
                and ``page`` (addresses) and ``page_words`` (link text). If it returns None, only the citation is shown.
        """
        return self._render("check_text_sentences.html.j2", evidence_links)

    def _render(self, template: str, evidence_links: "Callable[[PassageEvidence], Any]") -> str:
        from climassay.grounding.text_check import count_statuses
        from climassay.reporting.html import render_page

        counts = count_statuses(self.sentences)
        return render_page(
            template,
            check=self,
            counts=counts,
            problems=list_problems,
            relations=RELATIONS,
            evidence_links=evidence_links,
        )


def _evidence_cells(sentence: "CheckedSentence") -> dict[str, Any]:
    """Return the row's values for the decisive quotation and, if it differs, for the most similar sentence."""
    decisive_evidence, *other_evidence = sentence.evidence or (None,)
    return {
        "relation": decisive_evidence.relation if decisive_evidence else "",
        "passage": decisive_evidence.citation if decisive_evidence else "",
        "quotation": decisive_evidence.quotation if decisive_evidence else "",
        "similarity": round(decisive_evidence.similarity, 3) if decisive_evidence else "",
        "nearest": "; ".join(f"{evidence.quotation} ({evidence.citation})" for evidence in other_evidence),
    }


def _quotation_cells(sentence: "CheckedSentence") -> tuple[str, str]:
    """Return the decisive quotation with its relation, and its citation; dashes if there is no evidence."""
    if not sentence.evidence:
        return "-", "-"
    decisive_evidence = sentence.evidence[0]
    return f"{RELATIONS[decisive_evidence.relation]}: {decisive_evidence.quotation}", decisive_evidence.citation


def list_problems(sentence: "CheckedSentence") -> list[str]:
    """Return the reasons for marking a sentence, one sentence per reason."""
    is_doubtful = sentence.status in ("contradicted", "unsupported") or (
        sentence.status == "similar" and sentence.differing
    )
    reasons = [sentence.reason] if is_doubtful else []
    if sentence.status == "supported" and sentence.differing:
        differing_words = ", ".join(word.text for word in sentence.differing)
        reasons.append(f"The judge finds it supported, but a passage has something else than {differing_words}.")
    reasons += [sentence.overstated] if sentence.overstated else []
    return reasons + [f"{reference.text}: {reference.reason}" for reference in sentence.wrong_references]
