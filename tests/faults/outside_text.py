"""Functions that read what strangers write, and texts of repeated tokens that are hard for regular expressions."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climassay.claim_identity import claim_key
from climassay.confidence import overstatement, tags
from climassay.confidence.extraction import cleaning, dividing, extracting
from climassay.confidence.tagging import labelled
from climassay.confidence.topics import naming
from climassay.corpus import Passage, latex, read, search, sentences
from climassay.factcheck import claims
from climassay.factcheck.debate import context, reading
from climassay.generation import draft, terms
from climassay.generation.screening import passages, question_checks
from climassay.grounding import absence, citations, differences, numerals, quantities, quotations, references
from climassay.grounding.text_check import check_sentences
from climassay.io import delimited
from climassay.io import reading as files
from climassay.judging import item_tables
from climassay.metrics import cloze, facts, pair_features
from climassay.models import json_answers
from climassay.models.openai import replies
from climassay.questions import thoughts
from climassay.questions.types import longform
from climassay.questions.types.multiple_choice import answer_text, answers, keys
from climassay.redaction import without_key
from climassay.reporting import marking
from climassay.terminal import visible
from climassay.web import failures, text_checks
from climassay.web.library.evidence import nearest_sentence
from climassay.web.pages import clean_text


class ConstantEncoder:
    """An encoder for which all texts are alike."""

    name, fingerprint, width = "constant", "constant", 2

    def encode(self, texts, **_options):
        return np.full((len(texts), 2), np.sqrt(0.5), dtype=np.float32)


def _answer_nothing(question: str, argument: object) -> None:
    raise AssertionError(question, argument)


OPTIONS = ("warming of the ocean", "cooling", "none of these", "both")
ENGLISH = "The sea rises by 3 mm a year in the Arctic (high confidence) [1]."
PASSAGE = Passage("d-0", f"{ENGLISH} Glaciers melt.", "d", "A document", "document.txt", 0)
SOURCE = differences.SourceSentence(ENGLISH, 1.2)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "enum": ["b", "c"]}}, "required": ["a"]}


def _refused(function: Callable[[str], object]) -> Callable[[str], object]:
    """Return a function that ends without error for texts that it may refuse."""

    def call(text: str) -> object:
        try:
            return function(text)
        except ValueError:
            return None

    return call


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "answer_text.normalise_answer": answer_text.normalise_answer,
    "answer_text.find_repeated_option": lambda text: answer_text.find_repeated_option(text, OPTIONS),
    "answer_text.replace_boxes": lambda text: answer_text.replace_boxes(text, lambda _: None),
    "answer_text.replace_json": answer_text.replace_json,
    "answers.find_chosen_option": lambda text: answers.find_chosen_option(text, 4, OPTIONS),
    "absence.is_bare_answer": absence.is_bare_answer,
    "quotations.mark_quotations": lambda text: quotations.mark_quotations(text, [text[:200], text[5:300]]),
    "quotations.find_quoted_spans": lambda text: quotations.find_quoted_spans(text[1:200] + " x", text),
    "citations.read_citations": lambda text: citations.read_citations(text, [1, 2]),
    "absence.states_absence": absence.states_absence,
    "citations.extract_complete_sentences": lambda text: citations.extract_complete_sentences(text, []),
    "claim_key": claim_key,
    "claims.iso_date": _refused(claims.iso_date),
    "claims.make_claim": _refused(claims.make_claim),
    "claims.find_refusal": claims.find_refusal,
    "claims.find_years": claims.find_years,
    "cleaning.find_reference_brackets": cleaning.find_reference_brackets,
    "cleaning.clean_sentence": cleaning.clean_sentence,
    "cleaning.find_removable_spans": cleaning.find_removable_spans,
    "cleaning.find_definitions": lambda text: cleaning.find_definitions([text]),
    "cleaning.is_reference": cleaning.is_reference,
    "cleaning.find_paragraph_label": cleaning.find_paragraph_label,
    "cleaning.find_references": cleaning.find_references,
    "cloze.normalised_words": cloze.normalised_words,
    "cloze.terms": cloze.terms,
    "context.join_lines": context.join_lines,
    "delimited.read_delimited": _refused(delimited.read_delimited),
    "differences.find_differing_quantities": lambda text: differences.find_differing_quantities(text, [SOURCE], text),
    "differences.find_foreign_names": lambda text: differences.find_foreign_names(text, [ENGLISH]),
    "differences.find_opposed_words": lambda text: differences.find_opposed_words(text, ENGLISH),
    "differences.find_opposed_words of a source": lambda text: differences.find_opposed_words(ENGLISH, text),
    "differences.find_other_places": lambda text: differences.find_other_places(text, ENGLISH),
    "differences.find_swapped_names": lambda text: differences.find_swapped_names(text, ENGLISH),
    "differences.find_swapped_names of a source": lambda text: differences.find_swapped_names(ENGLISH, text),
    "dividing.are_words_of": lambda text: dividing.are_words_of(text, ENGLISH),
    "draft.find_term": lambda text: draft.find_term(text, "sea level"),
    "extracting.explains_terms": extracting.explains_terms,
    "extracting.detect_language": lambda text: extracting.detect_language([text]),
    "extracting.split_report_sentences": extracting.split_report_sentences,
    "facts.split_facts": facts.split_facts,
    "failures.explain": failures.explain,
    "files.parse_json": _refused(files.parse_json),
    "json_answers.extract_valid_json": _refused(lambda text: json_answers.extract_valid_json(text, SCHEMA)),
    "keys.find_named_options": lambda text: keys.find_named_options(text, keys.strip_labels(OPTIONS)),
    "latex.plain_latex": latex.plain_latex,
    "labelled.clean_statement": labelled.clean_statement,
    "item_tables.parse_rating": item_tables.parse_rating,
    "item_tables.parse_levels": item_tables.parse_levels,
    "json_answers.ends_in_loop": json_answers.ends_in_loop,
    "json_answers.repair_backslashes": json_answers.repair_backslashes,
    "longform.parse_ratings": lambda text: longform.parse_ratings(text, OPTIONS),
    "marking.highlight_words": lambda text: marking.highlight_words(text, ["sea", "ice"]),
    "marking.highlight_words by words": lambda text: marking.highlight_words(ENGLISH, [text]),
    "naming.split_terms": lambda text: list(naming.split_terms(text)),
    "pages.clean_text": lambda text: clean_text(text, len(text), "text"),
    "redaction.without_key": lambda text: without_key(text.encode(), "sk-abcdefgh12345"),
    "replies.parse_duration": replies.parse_duration,
    "replies.parse_wait": replies.parse_wait,
    "replies.parse_window": lambda text: replies.parse_window(text.encode(), "model"),
    "search.respell": lambda text: search.respell(text, lambda word: len(word) > 6),
    "terminal.visible": visible,
    "text_check": lambda text: check_sentences(
        text,
        None,
        encoder=ConstantEncoder(),
        passages={1: PASSAGE},
        find_overstatement=overstatement.describe_overstatement,
    ),
    "text_checks.find_in_draft": lambda text: text_checks.find_in_draft(text, _answer_nothing),
    "tags.find_likelihoods": tags.find_likelihoods,
    "tags.find_tags": tags.find_tags,
    "nearest_sentence": lambda text: nearest_sentence(text, ENGLISH),
    "numerals.detect_number_format": numerals.detect_number_format,
    "overstatement": lambda text: overstatement.describe_overstatement(text, ENGLISH),
    "pair_features.content_words": pair_features.content_words,
    "pair_features.resolve_negations": pair_features.resolve_negations,
    "passages.find_passage_fault": passages.find_passage_fault,
    "quantities.find_quantities": quantities.find_quantities,
    "quantities.find_foreign_quantities": lambda text: quantities.find_foreign_quantities(text, [ENGLISH]),
    "question_checks.detect_other_language": question_checks.detect_other_language,
    "reading.split_by_rules": reading.split_by_rules,
    "references.expand_links": references.expand_links,
    "references.ReferenceList": references.ReferenceList.split,
    "references.remove_addresses": references.remove_addresses,
    "sentences.locate_quotation": lambda text: sentences.locate_quotation(text, text[10:200] + "zz"),
    "sentences.split_sentences": sentences.split_sentences,
    "terms.candidates": terms.candidates,
    "thoughts.separate_thoughts": thoughts.separate_thoughts,
}
"""Functions by name, each with one argument: a text."""

READERS: dict[str, tuple[str, str, str]] = {
    "HTML": (".html", "<html><body><p>", "</p></body></html>"),
    "HTML of tokens": (".html", "", ""),
    "Markdown": (".md", "", ""),
    "plain text": (".txt", "", ""),
    "CSV": (".csv", "text,b\n", ",1\nx,2\n"),
}
"""Readers by name: the ending of a file, and what stands before and after the tokens in it."""


def reader(name: str, folder: Path) -> Callable[[str], object]:
    """Return a function that reads a text as a file of this kind in a folder."""
    ending, before, after = READERS[name]
    path = folder / f"tokens{ending}"

    def read_text(text: str) -> object:
        path.write_text(before + text + after)
        return read(path)

    return read_text


TOKENS = (
    "a", "A", "1", ".", "-", "(", "[", "<", "{", "\"", "“", "’", "&", "_", "*", "#", "\\", "$", "=", ",", ";", "1.",
    "1,", "a-", "(a", "[1", "[1]", "<a", "1–", "CO2", "a@a.", "```", "<p>", "http://a", "…", "²", "°", ":", "/", ")",
    "]", "}", ">", "www.a)", "http://a)", "doi:", "10.1000/", "!", "?", "%", "+", "~", " ", "\n", "\u00a0", "\n\n",
    "a ", "A ", "1 ", "a. ", "A. ", "- ", "1) ", "A) ", "= ", "1 000 ", "et al. ", "Fig. 1 ", "very ", "(high ",
    "high confidence ", "and ", "not ", "10% ", "°C ", "to ", "likely ", "A. B. ", "5 to 10 m ", "answer ", "not A ",
    "option A ", "Smith, J. ", "(Smith 2019) ", "The answer is A. ", "still ", "as likely as ", "in ", "there is ",
    "A-a ", "one ", "two ", "million ", "the ", "2019 ", "1.5 ", ", ", "( ", "Because ", "if ", "is ", "more than ",
    "in the ", "may ", "first ", "half ", "warms ", "rises ", "The ", "the sources ", "of ", "{\"a\": ", "[1, ",
    "<think>", "\\boxed{", "A, ", "! ", "? ", "; ", "|", "| ", "](", "(1", "(1,", "a_",
    "a.a", "[^\n", "\\begin{", "<td>", ":;.", "1;•", "&#1;", "\\u00",
    "\\(", "\\mathrm{", "^{", "$$", "10^", "word¹", "<sup>", "confidence: ",
    "connection to ", "The prompt has ", "memory of ",
)  # fmt: skip
"""Tokens that open, continue or nearly complete what the expressions look for."""


NESTED = (
    ("(", ")"), ("(", ""), ("[", "]"), ("{", "}"), ("( ", " )"), ("[a ", "b] "), ("(a)", "("), ("<b>", "</b>"),
    ("“", "”"), ("\"", "'"), ("*a", "a*"), ("{\"a\":", "}"), ("[1, ", "]"), ("<think>", "</think>"),
    ("high (", "confidence) "),
    ("high ", "confidence "), ("(high confidence", ")"), ("very ", "likely "), ("not ", "certain "), ("A or ", "B "),
    ("\\boxed{", "}"), ("$", "$ "), (" ", ")"), ("(1", "23)"), ("(see ", "2019)"), ("http://a/(", ")"), ("[a](", ")"),
    ("1 ", "%"), ("\n", "."), ("a", "@"), ("confidence in ", "is high "), ("“A", "”, he said. "), ("# ", "\n"),
    ("|", "\n|"),
)  # fmt: skip
"""Openings, all of which come before their closings."""


def repeated(token: str | tuple[str, str], length: int) -> str:
    """Return a token, or an opening and then its closing, repeated to a length, between letters that end no match."""
    if isinstance(token, tuple):
        opening, closing = (part * (length // len("".join(token))) for part in token)
        return f"a{opening}{closing}b"
    return f"a{(token * (length // len(token) + 1))[:length]}b"
