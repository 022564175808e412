import json

import pytest
from hypothesis import given

from climassay.errors import InputError
from climassay.generation import Decision, read_drafts, write_drafts
from climassay.generation.draft import draft_from_row, draft_row, gapped
from drafts import make_draft, rejected
from generated_drafts import drafts


@given(drafts())
def test_a_draft_comes_back_from_json_as_it_was(made):
    for one in made:
        assert draft_from_row(json.loads(json.dumps(draft_row(one)))) == one


def test_drafts_come_back_from_a_file_in_their_order(tmp_path):
    made = [make_draft("b", question="Strange\u2028line\n breaks?"), make_draft("a", decisions=(rejected(),))]
    write_drafts(tmp_path / "new" / "drafts.jsonl", made)
    assert list(read_drafts(tmp_path / "new" / "drafts.jsonl")) == made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}\n", "line 1: This is not a draft"),
        ("[1]\n", "line 1: it is not an object"),
        ("\nno\n", "line 2: Expecting value"),
    ],
)
def test_a_line_that_is_no_draft_is_named(tmp_path, text, said):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(InputError, match=said):
        list(read_drafts(tmp_path / "x.jsonl"))


def test_the_first_rejection_stands_and_the_last_word_of_an_expert_stands_above_it():
    first, second = rejected("no question mark"), rejected("figure")
    draft = make_draft(decisions=(first, second))
    assert draft.rejection == first
    kept = draft.decided(Decision("expert", "ann", True))
    assert kept.usable
    against = Decision("expert", "bea", False, "wrong answer")
    assert kept.decided(against).rejection == against
    assert kept.decided(against, Decision("expert", "ann", None)).rejection == against


def test_a_failed_draft_is_not_usable_and_no_question():
    draft = make_draft(error="The answer was cut off.")
    assert not draft.usable
    with pytest.raises(InputError, match="cut off"):
        draft.as_question()


def test_a_cloze_statement_gets_its_gap_at_the_whole_word():
    draft = make_draft(kind="cloze", question="Clouds cloud the cloud question.", answer="cloud")
    assert draft.as_question().question == "Clouds <MASK> the cloud question."
    assert gapped("The CO2-rich air warms.", "CO2-rich") == "The <MASK> air warms."
    for term in ("", "louds", "rain"):
        with pytest.raises(InputError, match="not a word"):
            gapped("Clouds form.", term)
