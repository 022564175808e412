import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation import Wording
from climassay.generation.annotation import Label, check_label
from climassay.generation.annotation.labels import check_name
from climassay.generation.draft import mask_term
from generated_drafts import draft

MCQ, FREEFORM, CLOZE = (draft(1, kind) for kind in ("mcq", "freeform", "cloze"))
OPTIONS = ("the albedo", "the emissivity", "the optical depth", "the insolation")


def checked(draft, **said):
    return check_label(draft, Label(draft.id, "ann", **said))


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"accepted": False}, "Say why"),
        ({"accepted": False, "reasons": ["dull"]}, "no reason 'dull'"),
        ({"accepted": False, "reasons": ["other"], "remark": "  "}, "needs a remark"),
        ({"accepted": True, "reasons": ["bad context"]}, "leave them out"),
        ({"accepted": False, "reasons": ["bad context"], "wording": Wording("Other?", "It grows.")}, "accept it with"),
        ({"accepted": True, "wording": Wording("", "It grows.")}, "both a question and an answer"),
        ({"accepted": True, "wording": Wording("What?", " ")}, "both a question and an answer"),
        ({"accepted": True, "remark": "x" * 10_001}, "10001 characters"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_said(said, sentence):
    with pytest.raises(InputError, match=sentence):
        checked(FREEFORM, **said)


@pytest.mark.parametrize(
    ("wording", "sentence"),
    [
        (Wording("Which?", "", ("a",), 0), "at least two options"),
        (Wording("Which?", "", ("a", " "), 0), "at least two options"),
        (Wording("Which?", "", ("An answer", "An  answer"), 0), "are the same"),
        (Wording("Which?", "", ("a", "b"), 2), "Mark one of the 2"),
        (Wording("Which?", "", ("a", "b"), None), "Mark one of the 2"),
        (Wording("", "", OPTIONS, 0), "question is empty"),
    ],
    ids=["one option", "an empty one", "two alike", "outside", "none marked", "no question"],
)
def test_an_edit_must_leave_a_multiple_choice_question(wording, sentence):
    with pytest.raises(InputError, match=sentence):
        checked(MCQ, accepted=True, wording=wording)


def test_the_answer_of_an_edited_question_is_its_marked_option():
    found = checked(MCQ, accepted=True, wording=Wording("Which?", "what a browser sent", ("a", "b"), 1))
    assert found.wording == Wording("Which?", "b", ("a", "b"), 1)


def test_words_that_stay_as_they_are_are_no_edit():
    spaced = Wording(f" {MCQ.wording.question}\r\n", "", MCQ.wording.options, MCQ.wording.correct)
    assert checked(MCQ, accepted=True, wording=spaced).wording is None
    assert checked(MCQ, accepted=True).wording is None
    assert checked(CLOZE, accepted=True, wording=CLOZE.wording).wording is None
    assert checked(MCQ, accepted=False, reasons=["wrong answer"], wording=spaced).wording is None


def test_a_term_must_be_a_word_of_the_statement():
    for term in ("bedo", "sun", "albed"):
        with pytest.raises(InputError, match="not a word of the statement"):
            checked(CLOZE, accepted=True, wording=Wording(CLOZE.wording.question, term))
    found = checked(CLOZE, accepted=True, wording=Wording(CLOZE.wording.question, "planets"))
    assert found.wording.answer == "planets"


@pytest.mark.parametrize("name", ["", "  ", "x" * 121, "a\x00b", "\ud83d"])
def test_names_that_no_database_holds(name):
    with pytest.raises(InputError, match="1 to 120 characters"):
        check_name(name, "The key of a label")


@given(st.sampled_from([MCQ, FREEFORM, CLOZE]), st.builds(Wording, *[st.text(max_size=12)] * 2))
def test_whatever_is_accepted_makes_a_question(one, wording):
    try:
        found = checked(one, accepted=True, wording=wording)
    except InputError:
        return
    words = found.wording or one.wording
    assert words.question
    assert words.answer
    if one.kind == "cloze":
        mask_term(words.question, words.answer)
    if one.kind == "mcq":
        assert words.options[words.correct] == words.answer
