"""The words of a statement that can be left out."""

from hypothesis import given
from hypothesis import strategies as st

from climassay.questions import GAP
from climassay.web.annotate.views import statement_parts
from drafts import make_draft


def choosable(statement, **how):
    return [part.text for part in statement_parts(statement, **how) if part.choosable]


def test_each_word_can_be_chosen_where_it_stands_first():
    assert choosable("The ice melts the ice; it's well-known.") == ["The", "ice", "melts", "the", "it's", "well-known"]


def test_a_word_whose_gap_would_go_into_another_word_cannot_be_chosen():
    assert choosable("The sea-level of the sea rises.") == ["The", "sea-level", "of", "the", "rises"]


def test_the_suggestion_is_chosen_and_the_other_candidates_are_hinted():
    parts = statement_parts("Ice has a high albedo near Svalbard.", "albedo", ["Ice", "Svalbard", "tundra"])
    assert [part.text for part in parts if part.chosen] == ["albedo"]
    assert [part.text for part in parts if part.hinted] == ["Ice", "Svalbard"]


def test_a_chosen_term_of_several_words_is_one_part():
    parts = statement_parts("The optical depth of dust is small.", "optical depth")
    assert [part.text for part in parts if part.chosen] == ["optical depth"]
    assert [part.text for part in parts if part.choosable] == ["The", "optical depth", "of", "dust", "is", "small"]


@given(st.text(st.sampled_from("ab -'’.(é1\n"), max_size=30), st.text(st.sampled_from("ab -é1"), max_size=4))
def test_the_parts_are_the_statement_and_the_gap_goes_where_the_word_stands(statement, term):
    parts = statement_parts(statement, term)
    assert "".join(part.text for part in parts) == statement
    before = ""
    for part in parts:
        if part.choosable:
            question = make_draft(kind="cloze", question=statement, answer=part.text).as_question()
            assert question.question == before + GAP + statement[len(before) + len(part.text) :]
        before += part.text
