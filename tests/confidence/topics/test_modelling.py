"""From statements to named topics, and again with the names kept."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from climassay.confidence.topics import NamedTopic, TopicSettings, fit_topics, name_topics, report_table, topic_table
from climassay.errors import InputError
from planted_statements import NoisyTopicEncoder, planted, statement
from scripted_model import ScriptedModel

pytestmark = pytest.mark.model

pytest.importorskip("hdbscan", reason="needs the extra topics")
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
SUBJECTS = (
    "sea level", "precipitation", "glacier", "crop", "health", "fisher", "coral", "ozone", "aerosol", "forest", "ocean",
    "ice sheet", "heat",
)  # fmt: skip
UNTAGGED = statement(90, "ocean", id="untagged", tag=None)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLIMASSAY_CACHE", str(tmp_path_factory.mktemp("cache")))
        copy = replace(statement(0, "cloud"), id="zz-copy", duplicate_of="cloud-000")
        statements = [*planted(), copy, UNTAGGED]
        encoder = NoisyTopicEncoder()
        found = fit_topics(statements, encoder, assign_untagged=True)
        again = fit_topics(statements[::-1], encoder, assign_untagged=True)
    return statements, encoder, found, again


def number_of(fitted, topic):
    return fitted.model.topic_of(f"{topic}-000")


def test_duplicates_are_left_out_and_untagged_statements_placed(fitted):
    statements, _, found, _ = fitted
    assert len(found.model.statements) == len(statements) - 1
    assert found.model.topic_of("zz-copy") is None
    assert found.model.topic_of("untagged") == number_of(found, "ocean")
    assert found.model.by_id["untagged"].x is None
    assert sum(topic.size for topic in found.model.topics) == 180


def test_the_order_of_the_file_changes_nothing(fitted):
    _, _, found, again = fitted
    assert found.model == again.model
    assert np.array_equal(found.centres, again.centres)


def test_examples_are_of_their_topic(fitted):
    _, _, found, _ = fitted
    for topic in found.model.topics:
        assert len(topic.examples) == 8
        assert {found.model.topic_of(one) for one in topic.examples} == {topic.number}


def test_a_model_names_what_it_can_and_words_the_rest(fitted):
    statements, encoder, found, _ = fitted
    ocean = number_of(found, "ocean")
    names = {
        topic.number: "Ocean warming" if topic.number == ocean else "Climate change" for topic in found.model.topics
    }
    answers = iter(names.values())
    model = ScriptedModel(write=lambda *_: json.dumps({"name": next(answers)}))
    named = name_topics(found, statements, encoder, generator=model)
    assert [topic.named_by for topic in named.model.topics].count("model") == 1
    assert named.model.name(ocean) == "Ocean warming"
    assert named.proposals[(ocean + 1) % 6].fault
    assert named.model.topics[(ocean + 1) % 6].name == found.model.topics[(ocean + 1) % 6].name


def test_names_given_by_hand_are_kept_and_others_are_not_asked_for_again(fitted):
    statements, encoder, found, _ = fitted
    first = name_topics(found, statements, encoder)
    glacier = number_of(found, "glacier")
    edited = [replace(one, name="Melting ice") if n == glacier else one for n, one in enumerate(first.named)]
    lost = NamedTopic("Whales", "fish", 9, ("0123456789",))
    later = name_topics(found, statements, encoder, earlier=[*reversed(edited), lost])
    assert later.model.topics[glacier].name == "Melting ice"
    assert later.model.topics[glacier].named_by == "hand"
    assert {topic.named_by for topic in later.model.topics} == {"hand", "earlier"}
    assert later.unused == (lost,)
    assert later.named[glacier].proposed == first.named[glacier].name


def test_tables_count_every_statement_once(fitted):
    statements, _, found, _ = fitted
    table = report_table(found.model, statements)
    assert [column.label for column in table.columns] == ["topic", "AR6 WG1", "AR6 WG2", "all"]
    assert table.rows[-1] == ("all", "90", "90", "180")
    assert "180 tagged statements in 6 clusters, joined to 6 topics" in topic_table(found.model).note


def test_two_statements_of_one_id_are_refused(fitted):
    statements, encoder, _, _ = fitted
    with pytest.raises(InputError, match="'ocean-000'"):
        fit_topics([*statements, statement(0, "ocean")], encoder)


@pytest.mark.skipif(not (DATA / "climatex_train.tsv").is_file(), reason="needs ../shared/data")
def test_five_hundred_real_statements_give_the_same_topics_every_time(tmp_path, monkeypatch):
    import csv

    from climassay import load_encoder
    from climassay.confidence.statement import Statement

    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path))
    with (DATA / "climatex_train.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))[::15][:500]
    statements = [
        Statement(f"{place:03}", row["statement"], row["confidence"], row["report"], "d", "d")
        for place, row in enumerate(rows)
    ]
    settings = TopicSettings(topics=8, min_cluster_size=5)
    first, again = (fit_topics(statements, load_encoder(), settings) for _ in range(2))
    assert first.model == again.model
    assert len(first.model.topics) == 8
    assert first.model.clusters > 8
    # Two statements on one subject meet in one topic far more often than any two do: 2.2 to 2.6 times as often over six
    # seeds, which move the topics as much as the rounding of another processor does. Topics at random give 1.
    chosen = {one.id: next(iter(first.model.counts([one.id]))) for one in statements}
    same = [[one.id for one in statements if subject in one.text.lower()] for subject in SUBJECTS]
    assert meetings(same, chosen) > 1.5 * meetings([list(chosen)], chosen)


def meetings(groups, chosen):
    """Share of the pairs within groups that have one topic."""
    pairs = [pair for group in groups for pair in combinations(group, 2)]
    return sum(chosen[one] == chosen[other] for one, other in pairs) / len(pairs)
