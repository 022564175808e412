"""What the participants of a debate share: numbered passages, prompts, and texts that are fit to be shown."""

from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus import Passage
from climassay.factcheck.debate.context import PassageRegistry, format_explanation
from climassay.factcheck.debate.requests import FoundPassage
from climassay.grounding import AnswerSentence


def passage(name, text="Arctic ice melts. Cows graze."):
    return Passage(name, text, "d", "A book", "book.md", 0)


def found(name, cosine=0.5, collection="ar6", text="Arctic ice melts. Cows graze."):
    return FoundPassage(passage(name, text), collection, cosine, text.partition(".")[0] + ".")


FINDS = st.lists(
    st.tuples(
        st.lists(
            st.builds(found, st.sampled_from("abcde"), st.none() | st.floats(0, 1), st.sampled_from(["ar6", "wmo"])),
            max_size=4,
        ),
        st.sampled_from(["IPCC", "WMO"]),
    ),
    max_size=6,
)


@given(FINDS)
def test_numbers_are_whole_and_a_passage_keeps_its_own(finds):
    book, numbers = PassageRegistry(), {}
    for some, advocate in finds:
        for one, exhibit in zip(some, book.add(some, advocate), strict=True):
            assert numbers.setdefault((one.collection, one.passage.id), exhibit.number) == exhibit.number
    citations = book.citations()
    assert [one.number for one in citations] == list(range(1, len(numbers) + 1))
    for one in citations:
        seen = [
            (f.cosine, who)
            for some, who in finds
            for f in some
            if (f.collection, f.passage.id) == (one.collection, one.passage.id)
        ]
        assert one.cosine == max((cosine for cosine, _ in seen if cosine is not None), default=None)
        assert one.advocates == tuple(dict.fromkeys(who for _, who in seen))


def test_what_others_said_is_told_whole_with_citations_on_one_line():
    sentences = [
        AnswerSentence("Ice\nmelts.", (1, 2), "model", False, 1.0),
        AnswerSentence("So.", (), "none", True, 0.0),
    ]
    assert format_explanation(sentences) == "Ice melts [1] [2]. So (In-house knowledge)."
    assert format_explanation([]) == ""
    assert len(format_explanation([AnswerSentence("word " * 200, (), "none", False, 0.0)]).split()) == 200
