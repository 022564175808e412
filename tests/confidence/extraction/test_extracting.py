"""From paragraphs to statements: words, levels, context, duplicates, ids."""

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.extraction import ExtractOptions, extract, split_report_sentences
from climassay.confidence.marks import find_tags
from climassay.confidence.statement import Statement
from climassay.confidence.vocabulary import TAGS
from climassay.corpus.documents import Block, Document
from climassay.errors import InputError


def document(*paragraphs, headings=("A",), id="d1", title="Report", **fields):
    blocks = tuple(Block(text, page=number, headings=headings) for number, text in enumerate(paragraphs, start=1))
    return Document(id=id, title=title, source="report.pdf", blocks=blocks, **fields)


def statements(*paragraphs, **options):
    options.setdefault("acronyms", "none")
    return extract([document(*paragraphs)], ExtractOptions(**options))


def told(*paragraphs, **options):
    return [(one.tag, one.text) for one in statements(*paragraphs, **options)]


UNDIVIDED = "the whole sentence, because its division is not sure"
# One sentence each, hand-worked: what the levels are and which words they are about.
SENTENCES = {
    "brackets": ("Seas rise (high confidence).", [("high", "Seas rise.")]),
    "behind the full stop": ("Seas rise. (high confidence) {1.2, Figure SPM.1}", [("high", "Seas rise.")]),
    "before the statement": ("High confidence: seas rise.", [("high", "Seas rise.")]),
    "in brackets before it": ("(Medium confidence) Seas rise.", [("medium", "Seas rise.")]),
    "there is": ("There is only low confidence that seas fall.", [("low", "Seas fall.")]),
    "there is, in": ("There is low confidence in projected trends of hail.", [("low", "Projected trends of hail.")]),
    "with": ("Seas rise with very high confidence.", [("very high", "Seas rise.")]),
    "assessed with": (
        "The report assessed with medium confidence that seas rise.",
        [("medium", "The report assessed that seas rise.")],
    ),
    "range": ("Seas rise (medium to high confidence, depending on region).",
              [("high", "Seas rise (depending on region).")]),
    "a further clause": (
        "Seas will rise (high confidence), and the pace depends on emissions.",
        [("high", "Seas will rise.")],
    ),
    "two clauses": (
        "Warming will persist (high confidence), but these alone are unlikely to cause more (low confidence).",
        [("high", "Warming will persist."), ("low", "These alone are unlikely to cause more.")],
    ),
    "shared subject": (
        "Removals may be required to halt warming (medium confidence) and will be required to lower seas "
        "(high confidence).",
        [("medium", "Removals may be required to halt warming."),
         ("high", "Removals will be required to lower seas.")],
    ),
    "same preposition": (
        "Risks are lower for people (very high confidence) and for crops (high confidence).",
        [("very high", "Risks are lower for people."), ("high", "Risks are lower for crops.")],
    ),
    "list after a colon": (
        "Changes include increases in: heat on land (high confidence), and heavy rain in places (low confidence).",
        [("high", "Changes include increases in: heat on land."),
         ("low", "Changes include increases in heavy rain in places.")],
    ),
    "list after including": (
        "Several changes are expected, including hotter days in cities (high confidence), and more storms at sea "
        "(low confidence).",
        [("high", "Several changes are expected, including hotter days in cities."),
         ("low", UNDIVIDED)],
    ),
    "adding": (
        "Reefs will decline by 80% at 1.5°C (high confidence) with larger losses at 2°C (very high confidence).",
        [("high", "Reefs will decline by 80% at 1.5°C."),
         ("very high", "Reefs will decline by 80% at 1.5°C, with larger losses at 2°C.")],
    ),
    "shared predicate": (
        "Floods (high confidence) and landslides (medium confidence) are projected to increase.",
        [("high", "Floods are projected to increase."), ("medium", "Landslides are projected to increase.")],
    ),
    "two in running words": (
        "There is high confidence that seas rise and medium confidence that people caused it.",
        [("high", "Seas rise."), ("medium", "People caused it.")],
    ),
    "first clause without one": (
        "It is virtually certain that heat has grown, with high confidence that people are the cause.",
        [("high", "People are the cause.")],
    ),
    "likelihood in brackets": (
        "Stratification (virtually certain), and acidification (high confidence) will continue to increase.",
        [("high", "Acidification will continue to increase.")],
    ),
    "regions": (
        "Droughts increase (NES: high confidence; WAF: medium confidence).",
        [("high", "Droughts increase (NES)."), ("medium", "Droughts increase (WAF).")],
    ),
    "second infinitive": (
        "Warming may increase debts (high confidence) and contribute to limits of adaptation (medium confidence).",
        [("high", "Warming may increase debts."), ("medium", "Warming may contribute to limits of adaptation.")],
    ),
    "verbs of one form": (
        "Warming increases heat stress in cities (high confidence) and amplifies warm nights (medium confidence).",
        [("high", "Warming increases heat stress in cities."), ("medium", "Warming amplifies warm nights.")],
    ),
    "object of what is added": (
        "Seas will rise, contributing to flooding in low-lying areas (high confidence) and retreat along sandy coasts "
        "(medium confidence).",
        [("high", "Seas will rise, contributing to flooding in low-lying areas."),
         ("medium", "Seas will rise, contributing to retreat along sandy coasts.")],
    ),
    "list of short things": (
        "Warming has led to a reduction in snow cover (high confidence), permafrost (high confidence), and ice mass "
        "(low confidence).",
        [("high", "Warming has led to a reduction in snow cover."),
         ("high", "Warming has led to a reduction in permafrost."),
         ("low", "Warming has led to a reduction in ice mass.")],
    ),
    "noun of two adjectives": (
        "Emissions add to warming on both short (medium confidence) and long time scales (high confidence).",
        [("medium", UNDIVIDED), ("high", "Emissions add to warming on long time scales.")],
    ),
    "that, with a comma": (
        "There is high confidence that, by 2050, wells will run dry.",
        [("high", "By 2050, wells will run dry.")],
    ),
    "with, in brackets": ("Wells will run dry (with high confidence).", [("high", "Wells will run dry.")]),
    "interrupted subject": (
        "Droughts induced by El Niño (medium confidence) have led to hunger (high confidence).",
        [("medium", UNDIVIDED), ("high", "Droughts induced by El Niño have led to hunger.")],
    ),
    "concession": (
        "Although there is high confidence that glaciers melt, there is low confidence in quantification of loss.",
        [("high", "Glaciers melt."), ("low", "Quantification of loss.")],
    ),
    "who assessed": (
        "Section 11.4 assessed high confidence in observed increases in rain, but low confidence in trends of hail.",
        [("high", "Observed increases in rain."), ("low", "Trends of hail.")],
    ),
    "list of subjects": (
        "Heat has grown with high confidence, and SAM, NES and SCA are projected to dry with medium confidence.",
        [("high", "Heat has grown."), ("medium", "SAM, NES and SCA are projected to dry.")],
    ),
    "infinitive behind a level in brackets": (
        "AR5 concluded that the rise is likely (medium confidence) to be in the range of the models.",
        [("medium", "AR5 concluded that the rise is likely to be in the range of the models.")],
    ),
    "infinitive behind a level in words": (
        "The slowdown of warming was assessed with medium confidence to have been caused by the oceans.",
        [("medium", "The slowdown of warming was assessed to have been caused by the oceans.")],
    ),
    "level as a subject": (
        "The trend is likely unprecedented, although medium confidence arises due to few records.",
        [("medium", UNDIVIDED)],
    ),
    "level as a subject, after but": (
        "Storms will grow stronger in a warmer climate, but low confidence remains in their number.",
        [("low", UNDIVIDED)],
    ),
    "contrast with a verb": (
        "Methane levelled off in the 1990s, but started to increase again in 2007 (high confidence).",
        [("high", "Methane levelled off in the 1990s, but started to increase again in 2007.")],
    ),
    "conjunction before a level alone": (
        "Humidity has fallen over many land areas, although with only medium confidence.",
        [("medium", "Humidity has fallen over many land areas.")],
    ),
    "assessment without its content": (
        "Monsoons may change rapidly, but the assessment was reported with low confidence.",
        [("low", UNDIVIDED)],
    ),
    "time of the clause before": (
        "Satellites have improved estimates of snow since 1980, with medium confidence in the magnitudes of "
        "large-scale trends over that period.",
        [("medium", UNDIVIDED)],
    ),
    "role in what": (
        "The trend of winds is likely to be due to ozone loss, and there was medium confidence that greenhouse gases "
        "have also played a role.",
        [("medium", UNDIVIDED)],
    ),
    "increase of what": (
        "Droughts are projected to become longer on most land, with medium confidence of increase in the following "
        "regions: MED and SAU.",
        [("medium", UNDIVIDED)],
    ),
    "numbers": (
        "The range is between 2°C (high confidence) and 5°C (medium confidence).",
        [("high", UNDIVIDED), ("medium", UNDIVIDED)],
    ),
    "attributive": ("Low-confidence storylines are told.", []),
    "explanation": (
        "A level is expressed using five qualifiers, typeset in italics, for example, medium confidence.",
        [],
    ),
    "legend": ("A solid square indicates high confidence, and an outlined square indicates low confidence.", []),
    "none": ("Seas rise at a 95% confidence interval.", []),
}  # fmt: skip


@pytest.mark.parametrize("name", SENTENCES)
def test_levels_and_their_words(name):
    sentence, expected = SENTENCES[name]
    assert [(one.tag, one.text if one.sure else UNDIVIDED) for one in statements(sentence)] == expected


# Sentences that no rule divides rightly: all of their parts are marked, or those whose numbers are given.
UNSURE = {
    "neither, nor": ("Neither floods (low confidence) nor hail (medium confidence) show trends.", None),
    "respectively": (
        "Oxygen (medium confidence) and carbon (low confidence) are projected to fall by 3–4% and 9–14% respectively.",
        None,
    ),
    "shared head noun": (
        "Maladaptation is also minimized by planning that accounts for time (high confidence) and a wide range of "
        "potentially adverse consequences (medium confidence).",
        {1},
    ),
    "part of an object": (
        "Global warming has led to widespread shrinking of ice, with mass loss of glaciers (high confidence) and "
        "Arctic sea ice extent and thickness (very high confidence).",
        {1},
    ),
    "adjective that may be a verb": (
        "Ocean acidification (medium confidence) and reduced sea ice extent (low confidence) as well as other human "
        "activities (medium confidence) have the potential to harm ecosystems.",
        {1},
    ),
    "place of a level": ("Seas have risen everywhere with high confidence, but with low confidence in Asia.", {1}),
    "subordinate clause alone": (
        "Heavy rain, which will become more frequent (high confidence), is driving losses of soil (medium confidence).",
        {0},
    ),
    "end of a noun phrase": (
        "Climate change has increased rain (medium confidence) and waves (high confidence) associated with cyclones.",
        {0},
    ),
    "shared head": (
        "A shift of storms in the north (medium confidence) and the Pacific (low confidence) will bring rain.",
        {1},
    ),
    "shared end": (
        "Climate change has increased rain (medium confidence), winds (low confidence), and floods (high confidence) "
        "associated with cyclones, which has increased losses (high confidence).",
        None,
    ),
    "half of a noun": (
        "Changes are irreversible in some mountain (medium confidence) and Arctic ecosystems (high confidence).",
        {0},
    ),
    "exception": ("Rain will increase in cities (high confidence), except in deserts (low confidence).", {1}),
    "subject elsewhere": (
        "There is medium confidence that floods increase in Peru but low confidence of changes in Mexico.",
        {1},
    ),
    "magnitude of what": ("There is high confidence that seas rise, but low confidence in the magnitude.", {1}),
    "shared place": (
        "Warming has increased heat (high confidence) and drought (medium confidence) on land, and doubled fires "
        "(high confidence).",
        None,
    ),
    "verb behind": (
        "The transition to high risk is near 1°C (high confidence) and to very high risk at 2°C (low confidence).",
        {1},
    ),
    "page break": ("AMOC will not collapse abruptly before 2100 (medium confidence), but if it (low confidence).", {1}),
}


@pytest.mark.parametrize("name", UNSURE)
def test_a_division_that_is_not_sure_is_marked_and_the_sentence_counts_once(name):
    sentence, unsure = UNSURE[name]
    found = statements(sentence)
    assert {one.part for one in found if not one.sure} == (set(range(len(found))) if unsure is None else unsure)
    doubtful = [one for one in found if not one.sure]
    assert len({one.text for one in doubtful}) == 1
    assert find_tags(doubtful[0].text) == []
    counted = [one for one in doubtful if one.duplicate_of is None]
    assert [one.tag for one in counted] == [min((one.tag for one in doubtful), key=TAGS.index)]


def test_a_sentence_of_one_level_needs_no_division():
    sentence = "Neither floods (medium confidence) nor hail (medium confidence) show trends."
    whole, repeated = statements(sentence)
    assert (whole.text, whole.tag, whole.sure) == ("Neither floods nor hail show trends.", "medium", True)
    assert repeated.duplicate_of == whole.id
    for other in (
        "Neither floods (medium confidence) nor hail (medium to high confidence) show trends.",
        "Neither floods (medium confidence) nor hail, with medium confidence, show trends.",
        "Warming passes thresholds relevant for disease (medium confidence), allergens (medium confidence), and seas.",
    ):
        assert not [one for one in statements(other) if one.tag][-1].sure


def test_what_stands_in_no_clause_of_its_own_is_never_a_statement_that_is_sure():
    for text in ("We (high confidence).", "Seas rise (high confidence), and with low confidence."):
        assert all(len(one.text.split()) > 1 for one in statements(text) if one.sure)


def test_references_section_marks_and_footnotes_go():
    text = (
        "A.1.2 Ice ago13 shrank (Smith et al., 2013a,b; van der Meer and Doe, 2014) in the NAO (NAO; Hurrell 1995) by "
        "3 [2 to 4] m between 1901 and 1990 (1901–1990) (see Section 2.3; Figure 3.2a, Table 4) (high confidence)12. "
        "{3.2.1, Cross-Chapter Box 2}"
    )
    (one,) = statements(text)
    assert one.text == "Ice ago shrank in the NAO (NAO) by 3 [2 to 4] m between 1901 and 1990 (1901–1990)."
    assert (one.sentence, one.original) == (text, text)


def test_the_sentence_is_kept_with_the_span_of_each_tag():
    first, second = statements("Seas will rise (high confidence), but ice on land may stay (low confidence). {1.2}")
    assert first.sentence == second.sentence
    assert first.original == "Seas will rise (high confidence)"
    assert second.original.startswith(", but ice on land may stay (low confidence)")


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
        sentence="Seas very likely rise (high confidence; robust evidence, medium agreement).", end=75, page=4,
        headings=("A", "B"), paragraph_id="p1", chapter="3", cycle="AR6", working_group="WG1",
    )  # fmt: skip


PARAGRAPH = "Ice will melt. Seas will rise for long. Reefs will die soon. (high confidence) {3.2.1, Figure SPM.1}"


def test_a_level_behind_the_last_full_stop_holds_for_the_paragraph_where_the_report_means_it_so():
    found = statements("A.1.2 Clouds will change (low confidence).", PARAGRAPH)
    assert [(one.tag, one.whole_paragraph, one.label) for one in found] == [
        ("low", False, "A.1.2"),
        ("high", True, "A.1.2"),
        ("high", True, "A.1.2"),
    ]
    assert {one.references for one in found[1:]} == {("3.2.1", "Figure SPM.1")}
    assert {one.group for one in found} == {"A.1"}
    assert [one.text for one in found if one.whole_paragraph] == ["Seas will rise for long.", "Reefs will die soon."]
    (last,) = statements(PARAGRAPH, paragraph_tags="never")
    assert (last.text, last.whole_paragraph) == ("Reefs will die soon.", False)


def test_a_level_behind_every_full_stop_is_that_of_its_sentence():
    text = "Ice will melt away. (low confidence) Seas will rise for long. Reefs will die soon. (high confidence)"
    assert [one.whole_paragraph for one in statements(text)] == [False, False]
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
    found = extract([Document("d", "R", "r", tuple(blocks))], ExtractOptions(context=2, acronyms="none"))
    four = found[-1]
    assert (four.before, four.text, four.after) == (("Two is so.", "Three."), "Four is so.", ("Five.",))
    assert found[0].before == found[0].after == ()
    assert four.context == "Two is so. Three. Four is so. Five."


def test_untagged_sentences_on_request():
    text = "Seas will rise (high confidence), and the pace depends on emissions. Nobody has said how fast ice goes. So."
    assert told(text, untagged=True) == [
        ("high", "Seas will rise."),
        (None, "The pace depends on emissions."),
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
        ("none", "The ERF of GHGs, and ERF."),
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
MARKS = [f"({tag} confidence)" for tag in TAGS] + [
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
        st.tuples(st.sampled_from(["seas rise", "ice melts", "rain falls", "reefs die"]), st.sampled_from(TAGS)),
        min_size=1,
        max_size=4,
    )
)
def test_the_statements_of_a_sentence_cover_its_clauses(clauses):
    text = ", and ".join(f"{words} ({tag} confidence)" for words, tag in clauses) + "."
    found = statements(text)
    assert [one.tag for one in found] == [tag for _, tag in clauses]
    assert [one.part for one in found] == list(range(len(clauses)))
    assert {one.parts for one in found} == {len(clauses)}
    for (words, _), one in zip(clauses, found, strict=True):
        assert words in one.text.lower()
        assert one.sentence == text
    assert re.sub(r"\s", "", "".join(one.original for one in found)) == re.sub(r"\s", "", text)


@given(st.lists(sentences, max_size=3))
def test_tagged_statements_are_the_same_with_and_without_untagged_ones(texts):
    without_duplicates = [dataclasses.replace(one, duplicate_of=None) for one in statements(*texts)]
    every = [dataclasses.replace(one, duplicate_of=None) for one in statements(*texts, untagged=True)]
    assert without_duplicates == [one for one in every if one.tag is not None]


def test_a_part_without_level_counts_in_the_ids():
    text = "Seas will certainly rise for centuries, and ice will melt (high confidence), and many reefs will die soon."
    tagged, every = statements(text), statements(text, untagged=True)
    assert [one.id for one in tagged] == [one.id for one in every if one.tag == "high"]
    assert {one.parts for one in tagged} == {len(every)}


def test_a_noun_phrase_without_a_subject_of_its_own_is_not_sure():
    rise, magnitude = statements(
        "Rainfall over the Sahel has increased since 1990 (high confidence),"
        " but there is low confidence in the magnitude of this change."
    )
    assert rise.sure
    assert not magnitude.sure
    assert magnitude.text.startswith("Rainfall over the Sahel")
    _, named = statements(
        "Rainfall over the Sahel has increased since 1990 (high confidence),"
        " but there is low confidence in projected changes in river floods and hail across southern Europe."
    )
    assert named.sure
    assert named.text == "Projected changes in river floods and hail across southern Europe."


def test_things_after_a_participle_keep_its_preposition():
    found = statements(
        "Some diseases are associated with rising temperatures (high confidence), trauma from floods"
        " (medium confidence), and loss of livelihoods (low confidence)."
    )
    assert [one.text for one in found if one.sure][1:] == [
        "Some diseases are associated with trauma from floods.",
        "Some diseases are associated with loss of livelihoods.",
    ]


def test_the_verb_of_a_relative_clause_is_not_the_main_one():
    found = statements(
        "Examples of degradation that may exceed the limits of adaptation include erosion of coasts"
        " where land disappears (high confidence), and erosion of soils where crops fail (medium confidence)."
    )
    assert found[1].text.startswith("Examples of degradation that may exceed the limits of adaptation include")
