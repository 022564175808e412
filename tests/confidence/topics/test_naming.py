"""Names of topics: proposed by a model, phrases of the statements, kept by hand and safe in the file."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.topics import (
    OUTSIDE,
    NamedTopic,
    judge_names,
    match_names,
    propose_names,
    read_names,
    read_topics,
    write_names,
    write_topics,
)
from climassay.confidence.topics.naming import (
    SKETCH_SIZE,
    compute_overlaps,
    find_noun_phrases,
    join_phrases,
    make_sketch,
    normalise_formulas,
    spell_terms,
    split_terms,
)
from climassay.errors import InputError
from planted_statements import planted, topics_of
from scripted_model import ScriptedModel
from topic_encoder import TopicEncoder

CENTRES = TopicEncoder().encode(["ocean", "glacier", "cloud aerosol", "carbon"])


def faults(*names, taken=()):
    return [one.fault for one in judge_names(names, CENTRES, TopicEncoder(), taken)]


def test_a_name_must_find_its_topic():
    assert faults("Ocean heat", "Glacier retreat", "Clouds and aerosols", "Carbon sinks") == ["", "", "", ""]


def test_a_name_that_fits_several_other_topics_better_is_refused():
    centres = TopicEncoder().encode(["ocean", "ocean glacier", "ocean glacier glacier", "carbon"])
    found = judge_names(["Glacier", "Ocean", "Ice and glacier", "Ocean depth"], centres, TopicEncoder())
    # "Glacier" is nearer to the second and the third topic than to the first; the second is next to best for "Ocean".
    assert [one.fault for one in found] == [
        "it fits 2 other topics better",
        "",
        "",
        "it fits 3 other topics better",
    ]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "no answer"),
        ("2020", "no answer"),
        ("Climate change impacts", "every topic"),
        ("Ocean heat in the deep southern sea now", "too long"),
        ("Ocean ocean", "repeats"),
        ("Ocean heat in the", "incomplete"),
        ("Ocean heat that limits warming", "sentence"),
    ],
    ids=["empty", "number", "general", "long", "twice", "stub", "sentence"],
)
def test_poor_names_are_refused(name, fault):
    assert fault in faults(name, "Glacier", "Cloud", "Carbon")[0]


def test_no_name_is_given_twice():
    centres = np.repeat(CENTRES[:1], 2, axis=0)
    found = judge_names(["Ocean", "ocean"], centres, TopicEncoder())
    assert [one.fault for one in found] == ["", "another topic has this name"]
    assert "another topic" in faults("Ocean", "Glacier", "Cloud", "Carbon", taken=["OCEAN"])[0]


def test_a_name_must_be_borne_by_most_statements():
    encoder = TopicEncoder()
    ocean = encoder.encode(["ocean"] * 2 + ["ocean carbon"] * 6)
    members = [ocean, *(encoder.encode([one] * 8) for one in ("glacier", "cloud aerosol", "carbon"))]
    centres = np.stack([vectors.mean(axis=0) / np.linalg.norm(vectors.mean(axis=0)) for vectors in members])
    found = judge_names(["Ocean and carbon", "Glacier", "Cloud", "Albedo"], centres, encoder, members=members)
    assert [one.fault for one in found[:3]] == ["", "", ""]
    assert found[0].support == 0.75
    # The albedo is named by no statement of the last topic.
    assert found[3].fault
    assert found[3].support == 0
    mixed = [encoder.encode(["ocean"] * 3 + ["albedo"] * 5), *members[1:]]
    (first, *_) = judge_names(["Ocean", "Glacier", "Cloud", "Carbon"], centres, encoder, members=mixed)
    assert "38%" in first.fault


def test_a_model_sees_statements_and_words_and_answers_under_a_schema():
    model = ScriptedModel(write=lambda prompt, schema: json.dumps({"name": ' "ocean  heat." '}) if schema else "no")
    names = propose_names(
        ["Ocean heat", "Ice"], [["ocean", "heat"], ["ice"]], [["The ocean warms."], ["Ice melts."]], model
    )
    assert names == ["Ocean heat", "Ocean heat"]
    assert "The ocean warms." in model.texts[0]
    assert "Ice" in model.texts[0]
    assert "ocean, heat" in model.texts[0]


@pytest.mark.parametrize("answer", [ValueError("down"), "not JSON", "[1]"], ids=["failed", "text", "list"])
def test_answers_that_cannot_be_read_are_no_names(answer):
    assert propose_names(["A"], [["a"]], [["b"]], ScriptedModel(write=lambda *_: answer)) == [""]


def test_own_prompts_are_used(tmp_path):
    (tmp_path / "topic_name.prompt").write_text("[user]\nMy words: {{ words | join(' ') }}")
    model = ScriptedModel(write=lambda *_: '{"name": "Ice"}')
    propose_names(["Floes"], [["floe", "berg"]], [[]], model, prompts=tmp_path)
    assert "My words: floe berg" in model.texts[0]
    with pytest.raises(InputError, match="does not exist"):
        propose_names(["A"], [["a"]], [[]], model, prompts=tmp_path / "nowhere")


def named(name, texts, proposed=None):
    return NamedTopic(name, proposed or name, len(texts), make_sketch(texts))


def texts(letter, count):
    return [f"{letter} statement {number}" for number in range(count)]


def test_names_find_their_topics_whatever_the_new_numbers():
    earlier = [named("Sea level", texts("a", 40)), named("Forests", texts("b", 30)), named("Cities", texts("c", 20))]
    later = [[*texts("c", 20), *texts("x", 5)], texts("d", 30), texts("a", 35)]
    assert match_names(earlier, later) == {0: 2, 2: 0}


def test_overlap_is_the_dice_coefficient():
    # 20 of 40 statements in a new topic of 30: 2 * 20 / (40 + 30).
    found = compute_overlaps([named("A", texts("a", 40))], [[*texts("a", 20), *texts("x", 10)], texts("a", 40)[20:]])
    assert found[0] == pytest.approx([2 * 20 / 70, 2 * 20 / 60])


def test_overlap_of_large_topics_is_estimated_from_their_sketch():
    one = named("A", texts("a", 3000))
    assert len(one.sketch) == SKETCH_SIZE
    found = compute_overlaps([one], [texts("a", 3000)[:1500], texts("a", 3000)[1500:]])
    assert found[0] == pytest.approx([2 / 3, 2 / 3], abs=0.1)


def test_statements_of_other_reports_do_not_count():
    found = compute_overlaps([named("A", [*texts("a", 20), *texts("gone", 20)])], [texts("a", 20)])
    assert found[0, 0] == pytest.approx(1.0)


def test_the_best_total_decides_where_two_names_want_one_topic():
    earlier = [named("Ice", texts("a", 20)), named("Snow", [*texts("a", 12), *texts("b", 8)])]
    assert match_names(earlier, [texts("a", 20), [*texts("a", 12)[:4], *texts("b", 8)]]) == {0: 0, 1: 1}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip), max_size=5))
def test_names_survive_the_file(tmp_path_factory, names):
    file = tmp_path_factory.mktemp("names") / "names.toml"
    wanted = [named(" ".join(name.split()), texts(str(place), 3), "proposed") for place, name in enumerate(names)]
    write_names(file, wanted, wanted[:1])
    assert read_names(file) == (*wanted, *wanted[:1])


def test_no_file_has_no_names(tmp_path):
    assert read_names(tmp_path / "names.toml") == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[names\n", "not valid TOML"),
        ("[names]\n0 = 3\n", "must be a non-empty text"),
        ('[names]\n0 = ""\n', "must be a non-empty text"),
        ('[names]\n0 = "Ice"\n', "damaged"),
        ("names = 3\n", "damaged"),
        ('[names]\n0 = "Ice"\n[proposed]\n0 = "Ice"\n[sizes]\n0 = inf\n[statements]\n0 = "a"\n', "damaged"),
    ],
    ids=["toml", "number", "empty", "forgotten", "table", "endless"],
)
def test_damaged_files_are_refused_in_a_sentence(tmp_path, content, words):
    file = tmp_path / "names.toml"
    file.write_text(content)
    with pytest.raises(InputError, match=words):
        read_names(file)


EMISSIONS = [
    "Net greenhouse gas emissions were 59 GtCO2-eq yr⁻¹ in 2019.",
    "Greenhouse gas emissions of all sectors rose by 1.3% yr–1 and CO 2 emissions by 0.8 GtCO2 yr-1.",
    "Emissions of CO2 and N 2 O, of which agriculture emits most, fell by 2 MtCO2-eq.",
    "Deep cuts of greenhouse gas emissions, CO2 in particular, are needed for pH to recover.",
    "Heat-related mortality is projected to rise with emissions and CO2.",
]


def test_units_are_no_terms_and_formulas_are():
    found = set(
        split_terms("CO 2, CH4 and N 2 O: 59 ± 6.6 GtCO2-eq yr⁻¹, 0.7 W m–2, 3.2 mm yr-1, 12 ppm, 5 EJ, 1.5°C; PM 2.5")
    )
    assert found == {"co2", "ch4", "n2o", "pm2.5"}
    assert normalise_formulas("CO 2 from 2 5 plants") == "CO2 from 2 5 plants"


def test_pairs_stand_side_by_side_in_the_text():
    found = set(split_terms("Emissions, methane and ocean heat content of the sea"))
    assert "ocean heat" in found
    assert not {"emissions methane", "methane ocean", "content sea"} & found


def test_phrases_have_the_number_and_the_case_of_the_text():
    found = find_noun_phrases(["greenhouse", "gas", "co2", "projected", "n2o", "ph"], EMISSIONS)
    assert found == ("greenhouse gas emissions", "CO2", "N2O", "pH")
    assert spell_terms(["co2", "greenhouse gas", "ph"], EMISSIONS) == ("CO2", "greenhouse gas", "pH")


@pytest.mark.parametrize(
    ("texts", "word", "phrase"),
    [
        ("The greenhouse gases are mixed. Other greenhouse gases, too. A greenhouse gas.", "gas", "greenhouse gases"),
        ("The coastal zone floods. Coastal towns flood. Many coastal people move.", "coastal", ""),
        ("Risks are increasing. Losses have increased, too.", "increased", ""),
        ("Marine heatwaves in the sea. A marine heatwave of 2013. Marine heatwaves.", "heatwave", "marine heatwaves"),
        ("In the West African monsoon, rain falls. A West African monsoon.", "african", "West African monsoon"),
        ("The model phase 6 runs. A model phase 5 ran. Some model phase 6, too.", "model", "model"),
        ("The ice model phase 6 runs. An ice model phase 5 ran. See ice model phase 6.", "phase", "ice model"),
        ("See Tier 1 and Tier 2, then Tier 3.", "tier", ""),
        ("The risks associated with heat. All risks associated with it.", "risks associated", ""),
        ("A watershed of rivers, and a watershed with lakes, by law.", "watershed", "watershed"),
        ("Biochar increases crop yield. Lime increases crop yield, too.", "crop yield", "crop yield"),
    ],
    ids=["plural", "adjective", "verb", "neighbour", "proper name", "word of a number", "grown to it", "number alone",
        "participle", "noun in -ed", "verb before it",
    ],
)  # fmt: skip
def test_only_noun_phrases_name(texts, word, phrase):
    assert find_noun_phrases([word], [texts]) == ((phrase,) if phrase else ())


@pytest.mark.parametrize(
    ("pieces", "name"),
    [
        (["emissions", "CO2", "greenhouse gases"], "Emissions, CO2 and greenhouse gases"),
        (["sea level", "sea", "level rise", "coasts", "coastal towns"], "Sea level and coasts"),
        (["climate change", "pH", "corals"], "pH and corals"),
        (["risks"], "Risks"),
        ([], "Unnamed"),
    ],
    ids=["three", "new words only", "general", "only a general one", "none"],
)
def test_a_name_joins_what_is_new(pieces, name):
    assert join_phrases(pieces) == name


def test_a_name_stays_short():
    pieces = ["climate-resilient development pathways", "integrated water resources management", "dams"]
    assert join_phrases(pieces) == "Climate-resilient development pathways and dams"


@pytest.mark.parametrize(
    ("text", "word", "phrase"),
    [
        ("An ice sheet of old. The Greenland Ice Sheet is large; the East Ice Sheet, too.", "ice sheet", "ice sheet"),
        ("Hadley circulation is wide. The Hadley circulation of Mars.", "hadley", "Hadley circulation"),
        ("Emissions increased by much, as emissions increased in towns. Emissions fall.", "emissions increased", ""),
    ],
    ids=["part of names", "name at the beginning", "participle"],
)  # fmt: skip
def test_capitals_are_those_of_the_phrase_itself(text, word, phrase):
    assert find_noun_phrases([word], [text]) == ((phrase,) if phrase else ())


@pytest.fixture
def model():
    statements = planted(2)
    return topics_of(statements, [place % 3 for place in range(len(statements))])


def test_what_is_written_is_read(tmp_path, model):
    write_topics(model, tmp_path / "sub" / "topics.json")
    assert read_topics(tmp_path / "sub" / "topics.json") == model


def test_topics_of_statements(model):
    known = model.statements[4].id
    assert model.topic_of(known) == 1
    assert model.topic_of("unknown") is None
    assert model.counts([known, "unknown", model.statements[1].id]) == {1: 2}
    assert model.name(2) == "Topic 2"
    assert model.name(OUTSIDE) == "no topic"


def test_files_that_are_no_topics_are_refused(tmp_path, model):
    file = tmp_path / "topics.json"
    with pytest.raises(InputError, match="cannot be read"):
        read_topics(file)
    file.write_text("{")
    with pytest.raises(InputError, match="not a file of topics"):
        read_topics(file)
    file.write_text('{"topics": "other"}')
    with pytest.raises(InputError, match="not a file of topics"):
        read_topics(file)
    write_topics(model, file)
    data = json.loads(file.read_text())
    data["statements"][0]["topic"] = 7
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match="a topic that does not exist"):
        read_topics(file)
    del data["topics"]
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match="damaged"):
        read_topics(file)
