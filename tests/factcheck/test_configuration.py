"""Debates as TOML files and flags: what is written holds, and what does not fit is said in one sentence."""

import re
import tomllib
from dataclasses import MISSING, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.cli.factcheck import DebateOptions
from climassay.errors import InputError
from climassay.factcheck.configuration import (
    COMMENTED,
    AdvocateSettings,
    DebateSettings,
    MediatorSettings,
    advocates_from_names,
    load_settings,
    parse_settings,
)
from climassay.prompts import ProfileSettings

IPCC = AdvocateSettings("IPCC", collections=("ipcc",))


def refused(text):
    """The sentence with which settings are refused."""
    with pytest.raises(InputError) as raised:
        parse_settings(tomllib.loads(text), where="debate.toml")
    sentence = str(raised.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


# ---------------------------------------------------------------------------------------------- the commented file


def test_the_commented_file_says_the_defaults(tmp_path):
    path = tmp_path / "debate.toml"
    path.write_text(COMMENTED, encoding="utf-8")
    settings = load_settings(path)
    assert replace(settings, advocates=()) == DebateSettings()
    assert settings.advocates == (
        replace(IPCC, weight=1.0),
        AdvocateSettings("abstracts", collections=("abstracts",), weight=0.4),
    )


def test_the_commented_file_shows_every_entry():
    def entries(text):
        return set(re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE))

    top, mediator, profile, advocates = re.split(r"\[mediator\]|\[profile\]|# One table for each advocate", COMMENTED)
    tables, earlier = {"advocates", "mediator", "profile"}, {"elicitation", "wording", "calibrated", "text_tokens"}
    assert entries(top) == {field.name for field in fields(DebateSettings)} - tables - earlier
    assert entries(mediator) == {field.name for field in fields(MediatorSettings)}
    assert entries(profile) == {field.name for field in fields(ProfileSettings)}
    assert entries(advocates) == {field.name for field in fields(AdvocateSettings)}


# ------------------------------------------------------------------------------------------------ entries of a file

VALUES = {
    str: st.text(max_size=5),
    bool: st.booleans(),
    int: st.integers(1, 99),
    float: st.floats(0.01, 2) | st.integers(1, 2),
}


@given(st.data())
def test_every_entry_of_the_right_type_is_taken(data):
    given_entries = {}
    for field in fields(DebateSettings):
        if (
            field.default is not MISSING
            and type(field.default) in VALUES
            and field.name not in ("split", "elicitation", "wording")
        ):
            given_entries[field.name] = data.draw(VALUES[type(field.default)], field.name)
    settings = parse_settings(given_entries, where="debate.toml")
    assert {name: getattr(settings, name) for name in given_entries} == given_entries


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("round = 3", "no entry 'round'; there are .*rounds"), ("rounds = 0", "at least one round"),
        ("rounds = 2.5", "rounds = 2.5, but it must be a whole number"),
        ("rounds = true", "rounds = True, but it must be a whole number"),
        ("text_tokens = 0", "text_tokens must be at least 1"), ('temperature = "hot"', "must be a number"),
        ("temperature = true", "must be a number"), ("temperature = -0.5", "temperature"),
        ("temperature = nan", "temperature"), ("verdict_first = 1", "must be true or false"),
        ("scale = 7", "must be a text in quotes"), ('split = "sentences"', 'must be one of "model", "rules", "none"'),
        ("split = [1]", "must be one of"), ("model = 2023-05-15", "must be a text in quotes"),
        ("mediator = 1", r"begins with \[mediator\]"),
        ('[mediator]\nstyle = "kind"', r'\[mediator\] has style = .* one of "auto", "expert", "neutral"'),
        ("[mediator]\nweight = 1.0", r"\[mediator\] has no entry 'weight'"),
        ("advocate = 1", r"begin with \[\[advocate\]\]"), ("advocate = [1]", r"begin with \[\[advocate\]\]"),
        ('[advocate]\nname = "IPCC"', r"begin with \[\[advocate\]\]"),
        ('[[advocates]]\nname = "IPCC"\ncollections = ["ipcc"]', r"begin with \[\[advocate\]\]"),
        ("advocates = []", r"begin with \[\[advocate\]\]"),
        ("[[advocate]]\nweight = 1.0", r"\[\[advocate\]\] needs an entry 'name'"),
        ('[[advocate]]\nname = ""\nkind = "plain"', "cannot be called ''"),
        ('[[advocate]]\nname = "Mediator"\nkind = "plain"', "cannot be called 'Mediator'"),
        ('[[advocate]]\nname = "IPCC"', r'IPCC needs collections = \["NAME"\], or kind = "plain"'),
        ('[[advocate]]\nname = "IPCC"\ncollections = "ipcc"', "must be a list of texts"),
        ('[[advocate]]\nname = "IPCC"\ncollections = [1]', "must be a list of texts"),
        ('[[advocate]]\nname = "IPCC"\ncollections = ["a", "b", "a"]', "IPCC .* more than once"),
        ('[[advocate]]\nname = "IPCC"\nkind = "plain"\ncollections = ["ipcc"]', "IPCC has no collections"),
        ('[[advocate]]\nname = "A"\nkind = "adversarial"', "A needs collections"),
        ('[[advocate]]\nname = "A"\nkind = "lawyer"', 'one of "collection", "plain", "adversarial"'),
        ('[[advocate]]\nname = "A"\nkind = "plain"\n[[advocate]]\nname = "a"\nkind = "plain"', "a name of its own"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nweight = 0', "weight of A"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nweight = nan', "weight of A"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nweight = inf', "weight of A"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\npassages = 0', "at least one passage"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nexcerpt_words = -1', "excerpt_words of 0 or more"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nmin_cosine = "low"', "must be a number"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nmin_cosine = 1.5', "min_cosine"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nmin_cosine = nan', "min_cosine"),
    ],
)  # fmt: skip
def test_an_entry_that_does_not_fit_is_named_in_one_sentence(text, words):
    assert re.search(words, refused(text))


def test_what_is_listed_as_possible_is_possible():
    listed = re.search(r"there are (.*)\.", refused("nonsense = 1"))[1].split(", ")
    assert {"advocate", "mediator", "rounds"} <= set(listed)
    for name in listed:
        with pytest.raises(InputError) as raised:
            parse_settings({name: object()}, where="debate.toml")
        assert "no entry" not in str(raised.value)


# ------------------------------------------------------------------------------------------------------------- flags


def test_advocates_are_named_after_their_collections():
    assert advocates_from_names(["ar6", "wmo=0.9", "a+b=0.5"], plain=True, adversaries=["nipcc=0.1"]) == (
        AdvocateSettings("ar6", collections=("ar6",)),
        AdvocateSettings("wmo", collections=("wmo",), weight=0.9),
        AdvocateSettings("a+b", collections=("a", "b"), weight=0.5),
        AdvocateSettings("nipcc", "adversarial", ("nipcc",), 0.1),
        AdvocateSettings("model", "plain"),
    )


@pytest.mark.parametrize("entry", ["ar6=high", "ar6=1=2", "ar6=0,5"])
def test_a_weight_that_is_no_number_is_refused(entry):
    with pytest.raises(InputError, match="must be a number, for example"):
        advocates_from_names([entry])


@pytest.mark.parametrize("entry", ["ar6=0", "ar6=-1", "ar6=nan", "ar6=inf", "ar6+ar6", "", "=0.5"])
def test_flags_are_held_to_the_same_rules(entry):
    with pytest.raises(InputError):
        DebateOptions(collection=[entry]).settings()


def test_flags_override_the_file_and_leave_the_rest(tmp_path):
    path = tmp_path / "debate.toml"
    path.write_text('rounds = 2\nseed = 5\ntemperature = 0.5\n[mediator]\ndecide = "pool"\n'
                    '[[advocate]]\nname = "IPCC"\ncollections = ["ipcc"]\nweight = 0.9\npassages = 7\n')  # fmt: skip
    as_written = DebateOptions(config=path).settings()
    assert as_written == load_settings(path)
    flags = DebateOptions(config=path, rounds=1, split="rules", passages=2, verdict_first=True, calibrated=False)
    assert flags.settings() == replace(
        as_written, rounds=1, split="rules", verdict_first=True, calibrated=False,
        advocates=(replace(as_written.advocates[0], passages=2),),
    )  # fmt: skip
    others = DebateOptions(config=path, collection=["wmo"], plain=True).settings()
    assert [advocate.name for advocate in others.advocates] == ["wmo", "model"]
    assert others.mediator.decide == "pool"


def test_a_debate_without_advocates_says_how_to_name_some():
    with pytest.raises(InputError, match="--collection NAME"):
        DebateOptions().settings()
