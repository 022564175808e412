"""Names of topics: found again in a later run, kept where they were given by hand, safe in the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.topics import NamedTopic, match_names, read_names, write_names
from climassay.confidence.topics.naming import SKETCH, sketch_of, statement_hash, topic_overlaps
from climassay.errors import InputError


def named(name, texts, proposed=None):
    return NamedTopic(name, proposed or name, len(texts), sketch_of(texts))


def texts(letter, count):
    return [f"{letter} statement {number}" for number in range(count)]


def test_names_find_their_topics_whatever_the_new_numbers():
    earlier = [named("Sea level", texts("a", 40)), named("Forests", texts("b", 30)), named("Cities", texts("c", 20))]
    later = [[*texts("c", 20), *texts("x", 5)], texts("d", 30), texts("a", 35)]
    assert match_names(earlier, later) == {0: 2, 2: 0}


def test_overlap_is_the_dice_coefficient():
    # 20 of 40 statements in a new topic of 30: 2 * 20 / (40 + 30).
    found = topic_overlaps([named("A", texts("a", 40))], [[*texts("a", 20), *texts("x", 10)], texts("a", 40)[20:]])
    assert found[0] == pytest.approx([2 * 20 / 70, 2 * 20 / 60])


def test_overlap_of_large_topics_is_estimated_from_their_sketch():
    one = named("A", texts("a", 3000))
    assert len(one.sketch) == SKETCH
    found = topic_overlaps([one], [texts("a", 3000)[:1500], texts("a", 3000)[1500:]])
    assert found[0] == pytest.approx([2 / 3, 2 / 3], abs=0.1)


def test_statements_of_other_reports_do_not_count():
    found = topic_overlaps([named("A", [*texts("a", 20), *texts("gone", 20)])], [texts("a", 20)])
    assert found[0, 0] == pytest.approx(1.0)


def test_the_best_total_decides_where_two_names_want_one_topic():
    earlier = [named("Ice", texts("a", 20)), named("Snow", [*texts("a", 12), *texts("b", 8)])]
    assert match_names(earlier, [texts("a", 20), [*texts("a", 12)[:4], *texts("b", 8)]]) == {0: 0, 1: 1}


def test_hashes_do_not_depend_on_case_and_spacing():
    assert statement_hash("Sea  level\nrises") == statement_hash("sea level rises") != statement_hash("sea level falls")


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
        ("[names]\n0 = 3\n", "must be a text"),
        ('[names]\n0 = ""\n', "must be a text"),
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
