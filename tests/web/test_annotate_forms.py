"""What an annotator's form says, and what an edit changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotated_dataset import DATASET, OPTIONS, WORDINGS, draft, fill
from climassay.errors import InputError
from climassay.generation import Wording
from climassay.questions import GAP
from climassay.web.annotate.views import LabelForm, list_changes, parse_label_form, statement_parts
from drafts import make_draft
from web_parts import post

MCQ, FREEFORM, CLOZE, OPEN_CLOZE = (draft(name) for name in ("q1", "q2", "q3", "q6"))


def said(about, **fields):
    return parse_label_form(LabelForm(**{"key": "k", "verdict": "valid"} | fields), about, "ann")


@pytest.mark.parametrize(
    ("about", "term", "expected"),
    [(CLOZE, "dust", None), (CLOZE, "Mineral", "Mineral"), (OPEN_CLOZE, "aerosol", "aerosol")],
    ids=["the masker's", "another", "the first"],
)
def test_a_chosen_term_is_a_wording_where_it_is_another_one(about, term, expected):
    wording = said(about, term=term).wording
    assert wording == (None if expected is None else Wording(about.wording.question, expected))


def test_an_edit_that_changes_nothing_is_no_edit():
    wording = WORDINGS["q1"][1]
    assert (
        said(MCQ, verdict="edit", question=f"{wording.question}\r\n", option=list(OPTIONS), correct="1").wording is None
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"key": ""}, "no key"),
        ({"verdict": "perhaps"}, "not 'perhaps'"),
        ({"verdict": "edit", "option": ["a", "b"], "correct": "2"}, "Mark the option"),
        ({"verdict": "edit", "option": ["a", "b"], "correct": "-1"}, "Mark the option"),
        ({"verdict": "edit", "option": ["a", "b"], "correct": "²"}, "Mark the option"),
        ({"seconds": "soon"}, "number of seconds"),
        ({"seconds": "-1"}, "number of seconds"),
        ({"seconds": "nan"}, "number of seconds"),
        ({"remark": "x" * 10_001}, "10001 characters"),
    ],
    ids=["key", "verdict", "no such option", "negative", "no digit", "words", "before it began", "nan", "long"],
)
def test_what_cannot_be_said_is_refused_in_one_sentence(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        said(MCQ, **fields)


def test_a_page_that_was_open_for_days_counts_a_day_at_most():
    assert said(MCQ, seconds="1e9").seconds == 86_400


def test_a_change_shows_which_words_differ():
    before = Wording("At which temperature do drops freeze?", "b", ("a", "b"), 1)
    found = list_changes(before, Wording("Near which temperature do droplets freeze?", "a", ("a", "b", "c"), 0))
    assert [change.part for change in found] == ["question", "option c", "correct option"]
    assert [text for text, marked in found[0].before if marked] == ["At", "drops"]
    assert [text for text, marked in found[0].after if marked] == ["Near", "droplets"]
    assert (found[1].before, found[1].after) == ((), (("c", True),))
    assert (found[2].before, found[2].after) == ((("b", True),), (("a", True),))


WORDS = st.text(st.sampled_from("ab .\n<é"), max_size=20)


@given(st.builds(Wording, WORDS, WORDS), st.builds(Wording, WORDS, WORDS))
def test_changes_give_both_wordings_whole(before, after):
    found = {change.part: change for change in list_changes(before, after)}
    assert set(found) == {part for part in ("question", "answer") if getattr(before, part) != getattr(after, part)}
    for part, change in found.items():
        assert "".join(text for text, _ in change.before) == getattr(before, part)
        assert "".join(text for text, _ in change.after) == getattr(after, part)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("The ice melts the ice; it's well-known.",), ["The", "ice", "melts", "the", "it's", "well-known"]),
        (("The sea-level of the sea rises.",), ["The", "sea-level", "of", "the", "sea", "rises"]),
        (
            ("The optical depth of dust is small.", "optical depth"),
            ["The", "optical depth", "of", "dust", "is", "small"],
        ),
    ],
    ids=["each where it stands first", "a hyphenated word is one word", "a chosen term is one part"],
)
def test_words_that_can_be_chosen(given, words):
    assert [part.text for part in statement_parts(*given) if part.is_selectable] == words


def test_the_suggestion_is_chosen_and_the_other_candidates_are_hinted():
    parts = statement_parts("Ice has a high albedo near Svalbard.", "albedo", ["Ice", "Svalbard", "tundra"])
    assert [part.text for part in parts if part.is_selected] == ["albedo"]
    assert [part.text for part in parts if part.is_suggested] == ["Ice", "Svalbard"]


@given(st.text(st.sampled_from("ab -'’.(é1\n"), max_size=30), st.text(st.sampled_from("ab -é1"), max_size=4))
def test_the_parts_are_the_statement_and_the_gap_goes_where_the_word_stands(statement, term):
    parts = statement_parts(statement, term)
    assert "".join(part.text for part in parts) == statement
    before = ""
    for part in parts:
        if part.is_selectable:
            question = make_draft(kind="cloze", question=statement, answer=part.text).as_question()
            assert question.question == before + GAP + statement[len(before) + len(part.text) :]
        before += part.text


STATEMENT = Wording("Adding aerosol lowers a cloud's albedo.", "False", ("True", "False"), 1)


def test_a_statement_is_shown_with_its_verdict_and_edited_by_marking_the_other(place, client_of):
    queue = fill(place, [draft("q1", kind="true_false", wording=STATEMENT)])
    annotator = client_of("annotator")
    page = annotator.get(f"/annotate/{DATASET}")
    assert "True or false" in page.text
    assert page.text.count("readonly") == 2  # the two words stay as they are
    fields = {"key": "k", "verdict": "edit", "question": "Adding aerosol raises a cloud's albedo.", "correct": "0"}
    answer = post(annotator, f"/annotate/{DATASET}/q1", {**fields, "option": ["True", "False"]})
    assert answer.status_code == 303
    (label,) = queue.labels(DATASET)
    assert label.wording == Wording("Adding aerosol raises a cloud's albedo.", "True", ("True", "False"), 0)
    refused = post(annotator, f"/annotate/{DATASET}/q1", {**fields, "key": "l", "question": " ", "option": ["True"]})
    assert refused.status_code == 400
