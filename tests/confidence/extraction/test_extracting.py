"""From paragraphs to statements: words, levels, context, duplicates, ids."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.extraction import ExtractOptions, extract, split_report_sentences
from climassay.confidence.statement import Statement
from climassay.confidence.tags import find_tags
from climassay.confidence.vocabulary import LEVELS
from climassay.corpus import Block, Document
from climassay.errors import InputError


def document(*paragraphs, headings=("A",), id="d1", title="Report", **fields):
    blocks = tuple(Block(text, page=number, headings=headings) for number, text in enumerate(paragraphs, start=1))
    return Document(id=id, title=title, source="report.pdf", blocks=blocks, **fields)


def statements(*paragraphs, **options):
    options.setdefault("acronyms", "never")
    return extract([document(*paragraphs)], ExtractOptions(**options))


def told(*paragraphs, **options):
    return [(one.tag, one.text) for one in statements(*paragraphs, **options)]


# One sentence each, hand-worked: its levels, and its words without them.
SENTENCES = {
    "brackets": ("Seas rise (high confidence).", ["high"], "Seas rise."),
    "behind the full stop": ("Seas rise. (high confidence) {1.2, Figure SPM.1}", ["high"], "Seas rise."),
    "before the statement": ("High confidence: seas rise.", ["high"], "Seas rise."),
    "in brackets before it": ("(Medium confidence) Seas rise.", ["medium"], "Seas rise."),
    "there is": ("There is only low confidence that seas fall.", ["low"], "Seas fall."),
    "there is, in": ("There is low confidence in trends of hail.", ["low"], "Trends of hail."),
    "with": ("Seas rise with very high confidence.", ["very high"], "Seas rise."),
    "with, in brackets": ("Wells will run dry (with high confidence).", ["high"], "Wells will run dry."),
    "assessed with": ("The report assessed with medium confidence that seas rise.", ["medium"],
                      "The report assessed that seas rise."),
    "range": ("Seas rise (medium to high confidence, depending on region).", ["high"],
              "Seas rise (depending on region)."),
    "a further clause": ("Seas will rise (high confidence), and the pace depends on emissions.", ["high"],
                         "Seas will rise, and the pace depends on emissions."),
    "two clauses": ("Warming will persist (high confidence), but rain may not change (low confidence).",
                    ["high", "low"], "Warming will persist, but rain may not change."),
    "two of one level": ("Neither floods (medium confidence) nor hail (medium confidence) show trends.",
                         ["medium", "medium"], "Neither floods nor hail show trends."),
    "two in running words": (
        "There is high confidence that seas rise and medium confidence that people caused it.", ["high", "medium"],
        "Seas rise and the assessment that people caused it."),
    "predicate, that": ("Confidence is high that lakes warmed.", ["high"], "Lakes warmed."),
    "predicate, in": ("Confidence in the cause of this drought is low.", ["low"], "The cause of this drought."),
    "predicate, level first": ("Confidence is medium in the future course of cyclones.", ["medium"],
                               "The future course of cyclones."),
    "predicate with an adverb": ("The confidence in such rates is therefore very low.", ["very low"], "Such rates."),
    "remains": ("Overall confidence in the wetting remains low, because gauges are few.", ["low"],
                "The wetting, because gauges are few."),
    "assessed to be": ("In Peru, confidence in observed floods is assessed to be low.", ["low"],
                       "In Peru, observed floods."),
    "has increased to": ("Confidence in the sign has increased from low to medium.", ["medium"], "The sign."),
    "confidence level": ("The confidence level is medium that glaciers vanish.", ["medium"], "Glaciers vanish."),
    "two predicates": ("Confidence in the sign is high, but confidence in its size is low.", ["high", "low"],
                       "The sign, but its size."),
    "one verb, two levels": ("Confidence is very high for heat and low for hail.", ["very high", "low"],
                             "Heat and the assessment of hail."),
    "range in a predicate": ("Lakes warmed, with confidence levels ranging from medium to high.", ["high"],
                             "Lakes warmed."),
    "highly confident": ("We are highly confident that lakes warmed.", ["high"], "Lakes warmed."),
    "predicate of a clause": ("Confidence that the drying is anthropogenic is medium, given few data.", ["medium"],
                              "The drying is anthropogenic, given few data."),
    "with a reference": ("Confidence in squalls (Section 3.2) remains low.", ["low"], "Squalls."),
    "being": ("Storms shift, with confidence being low.", ["low"], "Storms shift."),
    "between": ("The confidence in hail is between low and medium.", ["medium"], "Hail."),
    "with hyphens": ("The confidence in hail is low-to-medium.", ["medium"], "Hail."),
    "simple past": ("Confidence in hail increased from low to medium.", ["medium"], "Hail."),
    "earlier report": ("AR5 was highly confident that lakes warmed.", ["high"], "Lakes warmed."),
    "predicate behind a conjunction": ("Lakes warm, although confidence is low.", ["low"], "Lakes warm."),
    "attributive": ("Low-confidence storylines are told.", [], None),
    "row of a table": ("Region: NES; Trend: increase; Confidence: medium", ["medium"],
                       "Region: NES; Trend: increase."),
    "label in brackets": ("Lakes warmed (confidence: very high).", ["very high"], "Lakes warmed."),
    "explanation": ("A level is expressed using five qualifiers, typeset in italics, for example, medium confidence.",
                    [], None),
    "legend": ("A solid square indicates high confidence, and an outlined square indicates low confidence.", [], None),
    "none": ("Seas rise at a 95% confidence interval.", [], None),
    "not high": ("There is not high confidence that seas fall.", [], None),
    "not, in brackets": ("Seas fall (not high confidence).", [], None),
    "without": ("This can be said, although without high confidence.", [], None),
    "cannot be attributed with": ("The flood cannot be attributed with high confidence.", [], None),
    "denied behind": ("High confidence is not warranted for hail.", [], None),
    "denied in one clause": ("There is not high confidence in hail, but there is medium confidence in heat.",
                             ["medium"], "There is not high confidence in hail, but heat."),
    "no doubt": ("There is no doubt, and very high confidence, that seas rise.", ["very high"],
                 "There is no doubt, that seas rise."),
    "predicate denied": ("Confidence in the model is not high.", [], None),
    "condition": ("Where confidence is low, planners should wait.", [], None),
    "limited to": ("Confidence is limited to regions with long records.", [], None),
    "very confident": ("We are very confident that seas rise.", [], None),
    "trust": ("Public confidence in banks is low.", [], None),
    "trust of some": ("Confidence in the forecasts is high among farmers.", [], None),
    "about another noun": ("Confidence in projections where skill is high has grown.", [], None),
    "what a level means": ("This does not mean that confidence in its opposite is high.", [], None),
    "confidence that people have": ("There is confidence that the risk is high.", [], None),
    "not highly confident": ("We are not highly confident that lakes warmed.", [], None),
    "neither": ("Confidence was neither low nor high.", [], None),
    "possibly": ("Confidence may be low.", [], None),
    "consumers": ("Consumer confidence is very low this year.", [], None),
    "more of another noun": ("Confidence that the risk is high has grown.", [], None),
}  # fmt: skip


@pytest.mark.parametrize("name", SENTENCES)
def test_levels_and_the_words_of_their_sentence(name):
    sentence, levels, text = SENTENCES[name]
    found = statements(sentence)
    assert [one.tag for one in found] == levels
    assert {one.text for one in found} == ({text} if text else set())


def test_levels_of_one_pair_of_brackets_name_what_each_is_about():
    assert told("Droughts increase (NES: high confidence; WAF: medium confidence).") == [
        ("high", "Droughts increase (NES)."),
        ("medium", "Droughts increase (WAF)."),
    ]


def test_references_section_marks_and_footnotes_go():
    text = (
        "A.1.2 Ice ago13 shrank (Smith et al., 2013a,b; van der Meer and Doe, 2014) in the NAO (NAO; Hurrell 1995) by "
        "3 [2 to 4] m between 1901 and 1990 (1901–1990) (see Section 2.3; Figure 3.2a, Table 4) (high confidence)12. "
        "{3.2.1, Cross-Chapter Box 2}"
    )
    (one,) = statements(text)
    assert one.text == "Ice ago shrank in the NAO (NAO) by 3 [2 to 4] m between 1901 and 1990 (1901–1990)."
    assert one.sentence == text
    assert text[one.start : one.end].startswith("high confidence")


def test_the_sentence_is_kept_with_the_span_of_each_tag():
    first, second = statements("Seas will rise (high confidence), but ice on land may stay (low confidence). {1.2}")
    assert first.sentence == second.sentence
    assert first.sentence[first.start : first.end] == "high confidence"
    assert second.sentence[second.start : second.end] == "low confidence"
    assert (first.part, second.part, first.parts) == (0, 1, 2)


def test_fields_of_a_statement():
    report = Document(
        "d7",
        "Chapter 3: Seas | Climate Change 2021: The Physical Science Basis",
        "c3.html",
        (
            Block(
                "Seas very likely rise (high confidence; robust evidence, medium agreement).", 4, None, ("A", "B"),
                "p1", "3",
            ),
        ),
    )  # fmt: skip
    (one,) = extract([report])
    assert one == Statement(
        id="d7-0.0.0", text="Seas very likely rise.", tag="high", report="AR6 WG1", document_id="d7",
        document=report.title, likelihood=("very likely",), evidence="robust", agreement="medium",
        sentence="Seas very likely rise (high confidence; robust evidence, medium agreement).", start=23, end=38,
        page=4, headings=("A", "B"), paragraph_id="p1", chapter="3", cycle="AR6", working_group="WG1",
    )  # fmt: skip


PARAGRAPH = "Ice will melt. Seas will rise for long. Reefs will die soon. (high confidence) {3.2.1, Figure SPM.1}"


def test_a_level_behind_the_last_full_stop_holds_for_the_paragraph_where_the_report_means_it_so():
    found = statements("A.1.2 Clouds will change (low confidence).", PARAGRAPH)
    assert [(one.tag, one.is_paragraph_level, one.label) for one in found] == [
        ("low", False, "A.1.2"),
        ("high", True, "A.1.2"),
        ("high", True, "A.1.2"),
    ]
    assert {one.references for one in found[1:]} == {("3.2.1", "Figure SPM.1")}
    assert {one.group for one in found} == {"A.1"}
    assert [one.text for one in found if one.is_paragraph_level] == ["Seas will rise for long.", "Reefs will die soon."]
    (last,) = statements(PARAGRAPH, paragraph_tags="never")
    assert (last.text, last.is_paragraph_level) == ("Reefs will die soon.", False)


def test_a_level_behind_every_full_stop_is_that_of_its_sentence():
    text = "Ice will melt away. (low confidence) Seas will rise for long. Reefs will die soon. (high confidence)"
    assert [one.is_paragraph_level for one in statements(text)] == [False, False]
    assert [one.tag for one in statements(text, paragraph_tags="always")] == ["low", "high", "high"]


def test_links_of_web_pages_are_references():
    (one,) = statements("Seas will rise (high confidence). Expand Figure SPM.2 Links to longer report 3.1, Table 3.1")
    assert (one.text, one.references) == ("Seas will rise.", ("3.1", "Table 3.1"))


def test_context_stays_in_its_section_and_has_no_levels():
    blocks = [
        Block("Far above (low confidence).", headings=("A",)),
        Block("One. Two is so (low confidence). Three.", headings=("B",)),
        Block("Four is so (high confidence; {1.2}). Five (Doe, 2001).", headings=("B",)),
        Block("Far below.", headings=("C",)),
    ]
    found = extract([Document("d", "R", "r", tuple(blocks))], ExtractOptions(context=2, acronyms="never"))
    four = found[-1]
    assert (four.before, four.text, four.after) == (("Two is so.", "Three."), "Four is so.", ("Five.",))
    assert found[0].before == found[0].after == ()
    assert four.context == "Two is so. Three. Four is so. Five."


def test_untagged_sentences_on_request():
    text = "Seas will rise (high confidence), and the pace depends on emissions. Nobody has said how fast ice goes. So."
    assert told(text, untagged=True) == [
        ("high", "Seas will rise, and the pace depends on emissions."),
        (None, "Nobody has said how fast ice goes."),
    ]


def test_either_end_of_a_range():
    text = "Seas rise (low to high confidence)."
    assert [one.tag for one in statements(text)] == ["high"]
    assert [one.tag for one in statements(text, ranges="lower")] == ["low"]


def test_duplicates_within_a_report_and_across_reports():
    one = document(
        "Seas rise (high confidence).", "SEAS rise (high confidence)!", "Seas rise (low confidence).", id="a"
    )
    other = document("Seas rise (high confidence).", id="b", report="AR5 WG2")
    found = extract([one, other])
    assert [statement.duplicate_of for statement in found] == [None, "a-0.0.0", None, "a-0.0.0"]


def test_ids_do_not_depend_on_the_order_of_documents():
    one, other = (
        document("A rises (high confidence) and falls (low confidence).", id="a"),
        document("B (low confidence).", id="b"),
    )
    there = {statement.id: statement.text for statement in extract([one, other])}
    assert there == {statement.id: statement.text for statement in extract([other, one])}


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("every", "Effective radiative forcing of greenhouse gases, and effective radiative forcing."),
        ("first", "The effective radiative forcing (ERF) of greenhouse gases (GHGs), and ERF."),
        ("never", "The ERF of GHGs, and ERF."),
    ],
)
def test_acronyms(how, text):
    report = document(
        "The effective radiative forcing (ERF) is a measure.", "The ERF of GHGs, and ERF (high confidence)."
    )
    (one,) = extract([report], ExtractOptions(acronyms=how))
    assert one.text == text.replace("Effective", "The effective", 1)


@pytest.mark.parametrize(
    "wrong",
    [{"context": -1}, {"context": 51}, {"acronyms": "some"}, {"ranges": "middle"}],
    ids=["few", "many", "a", "r"],
)
def test_settings_that_are_not_possible(wrong):
    with pytest.raises(InputError):
        ExtractOptions(**wrong)


def test_sentences_keep_what_stands_behind_their_full_stop():
    text = "A is so. (high confidence) (Figure SPM.1) {1.2} B is so. (low confidence) {3}"
    assert split_report_sentences(text) == [
        "A is so. (high confidence) (Figure SPM.1) {1.2}",
        "B is so. (low confidence) {3}",
    ]


# Any text ----------------------------------------------------------------------------------------------------------

WORDS = [
    "seas", "rise", "are projected to", "and", "but", "in Africa", "ice", "the", "GHGs", "which", ", ", ". ", ": ",
    "; ", "(Smith et al., 2013)", "{3.2.1}", "There is", "that", "with", "(", ")", "12", "95%", "(Figure 3)", "is",
]  # fmt: skip
MARKS = [f"({tag} confidence)" for tag in LEVELS] + [
    "high confidence", "(low to medium confidence, by region)", "low-confidence", "(robust evidence, high agreement)",
    "(very likely)", "(NES: high confidence; WAF: low confidence)", "(hi gh confi dence)", "medium confi-",
]  # fmt: skip
sentences = st.lists(st.sampled_from([*WORDS, *MARKS]), max_size=30).map(" ".join)


@given(st.one_of(sentences, st.text(max_size=80)), st.booleans())
def test_no_level_is_left_anywhere(text, untagged):
    for one in statements(text, text, untagged=untagged):
        for words in (one.text, *one.before, *one.after):
            assert words.strip() == words != ""
            assert find_tags(words) == []


@given(st.one_of(sentences, st.text(max_size=80)))
def test_extracting_from_a_statement_changes_nothing(text):
    for one in statements(text):
        again = statements(one.text, untagged=True)
        assert [other.tag for other in again] in ([None], [])
        assert not again or again[0].text == one.text


@given(
    st.lists(
        st.tuples(st.sampled_from(["seas rise", "ice melts", "rain falls", "reefs die"]), st.sampled_from(LEVELS)),
        min_size=1,
        max_size=4,
    )
)
def test_a_sentence_gives_a_statement_for_each_of_its_levels(clauses):
    text = ", and ".join(f"{words} ({tag} confidence)" for words, tag in clauses) + "."
    found = statements(text)
    assert [one.tag for one in found] == [tag for _, tag in clauses]
    assert [one.part for one in found] == list(range(len(clauses)))
    assert {one.parts for one in found} == {len(clauses)}
    assert [one.sentence[one.start : one.end] for one in found] == [f"{tag} confidence" for _, tag in clauses]
    for one in found:
        assert one.sentence == text
        assert all(words in one.text.lower() for words, _ in clauses)


@given(st.lists(sentences, max_size=3))
def test_tagged_statements_are_the_same_with_and_without_untagged_ones(texts):
    without_duplicates = [dataclasses.replace(one, duplicate_of=None) for one in statements(*texts)]
    every = [dataclasses.replace(one, duplicate_of=None) for one in statements(*texts, untagged=True)]
    assert without_duplicates == [one for one in every if one.tag is not None]
