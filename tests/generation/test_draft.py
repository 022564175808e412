import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation import Decision, Draft, Origin, SourcePassage, Wording, read_drafts, write_drafts
from climassay.generation.draft import draft_from_row, draft_row, gapped
from drafts import make_draft, rejected

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
numbers = st.none() | st.floats(0, 1)
wordings = st.builds(Wording, texts, texts, st.lists(texts, max_size=4).map(tuple), st.none() | st.integers(0, 3))
decisions = st.builds(
    Decision,
    st.sampled_from(["screen", "expert", "validate", "mask"]),
    texts,
    st.none() | st.booleans(),
    texts,
    texts,
    numbers,
    st.none() | wordings,
)
passages = st.builds(
    SourcePassage, texts, texts, texts, texts, texts, texts, st.none() | texts, st.none() | texts, numbers
)
origins = st.builds(
    Origin, texts, texts, st.lists(st.tuples(texts, texts), max_size=2).map(tuple), st.integers(), st.none() | wordings
)
drafts = st.builds(
    Draft,
    texts,
    st.sampled_from(["mcq", "freeform", "cloze"]),
    st.sampled_from(["base", "reasoning", "hypothetical"]),
    wordings,
    st.lists(passages, min_size=1, max_size=3).map(tuple),
    origins,
    st.lists(decisions, max_size=3).map(tuple),
    st.none() | texts,
)


@given(drafts)
def test_a_draft_comes_back_from_json_as_it_was(draft):
    assert draft_from_row(json.loads(json.dumps(draft_row(draft)))) == draft


def test_drafts_come_back_from_a_file_in_their_order(tmp_path):
    drafts = [make_draft("b", question="Strange\u2028line\n breaks?"), make_draft("a", decisions=(rejected(),))]
    write_drafts(tmp_path / "new" / "drafts.jsonl", drafts)
    assert list(read_drafts(tmp_path / "new" / "drafts.jsonl")) == drafts


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
