"""Findings of files with pages, and names that would break a format."""

import pytest

from climassay.confidence.linting import check, chosen_rules, draft_of
from climassay.confidence.linting.draft import paged_draft
from climassay.confidence.linting.presentation import data, github_lines, lint_page, sarif, text_lines
from climassay.corpus.documents import Block, Document


@pytest.fixture
def paged():
    blocks = (Block("Ice melts.", page=3), Block("Rain is so (moderate confidence).", page=3))
    draft = paged_draft(Document("id", "title", "a.pdf", blocks), "a.pdf")
    return check(draft, chosen_rules("confidence-vocabulary"))


def test_pages_and_paragraphs_in_every_form(paged):
    assert text_lines(paged)[0].startswith("a.pdf:p3:2:13: warning [confidence-vocabulary]")
    assert github_lines(paged)[0].startswith("::warning file=a.pdf,title=confidence-vocabulary::Page 3, paragraph 2: ")
    (location,) = sarif([paged])["runs"][0]["results"][0]["locations"]
    assert "region" not in location["physicalLocation"]
    assert location["message"]["text"] == "Page 3, paragraph 2."
    (finding,) = data(paged)["findings"]
    assert (finding["page"], finding["line"], finding["column"]) == (3, 2, 13)
    assert "page 3, paragraph 2" in lint_page([paged])


def test_names_of_files_are_escaped():
    checked = check(draft_of("It is so (moderate confidence).", name="a,b:c %\n.md"))
    assert github_lines(checked)[0].startswith("::warning file=a%2Cb%3Ac %25%0A.md,title=")
    uri = sarif([checked])["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%2Cb%3Ac%20%25%0A.md"


def test_one_log_for_many_files_names_each_rule_once():
    drafts = [draft_of("It is so (moderate confidence).", name=name) for name in ("a.md", "b.md")]
    (run,) = sarif([check(draft) for draft in drafts])["runs"]
    names = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(names) == len(set(names))
    assert len(run["results"]) == 2


def test_a_comment_with_an_unknown_rule_has_a_rule_of_its_own_in_the_log():
    (run,) = sarif([check(draft_of("Ice. <!-- climassay: ignore nonsense -->"))])["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "unknown-ignore"


def test_a_page_holds_the_measured_accuracy_and_counts(paged):
    page = lint_page([paged, paged], "47% of 300 statements")
    assert "2 findings in 2 files" in page
    assert "47% of 300 statements" in page


GERMAN = "Die Hitzewellen werden mit der Erwärmung in Zukunft zunehmen, und das ist von der Wissenschaft belegt. " * 8


@pytest.mark.parametrize(
    ("text", "holds", "english"),
    [
        ("Ice melts (high confidence).", True, True),
        ("Glaciers will lose more mass than in the last century (very likely).", True, True),
        ("Whisk the eggs. Bake for an hour.", False, True),
        ("See low-confidence processes in the annex.", False, True),
        (GERMAN, False, False),
        ("Le niveau de la mer montera (confiance élevée).", True, False),
    ],
)
def test_no_findings_comfort_only_where_there_was_something_to_check(text, holds, english):
    checked = check(draft_of(text))
    assert checked.findings == ()
    assert (checked.examined.holds_assessment, checked.examined.is_english) == (holds, english)
    told = data(checked)
    assert told["holds_assessment"] is holds
    assert told["conclusion"] == checked.conclusion
    assert ("nothing" in checked.conclusion) is not (holds and english)
    page = lint_page([checked])
    for words in (checked.conclusion, checked.examined.looked_at, *checked.examined.not_looked_at):
        assert words in page


def test_what_was_looked_at_is_counted_by_sentence():
    text = (
        "# Ice (high confidence)\n\nIce melts (high confidence). Rain is likely. "
        "Glaciers will lose more mass than in the last century.\n\n| a |"
    )
    examined = check(draft_of(text), chosen_rules("wide-range")).examined
    assert (examined.sentences, examined.with_terms, examined.stating_findings) == (5, 3, 1)
    assert examined.kinds_passed_over == ("headings", "cells of tables")
    assert "wide-range" not in examined.rules_off
    assert "untagged-finding" in examined.rules_off
