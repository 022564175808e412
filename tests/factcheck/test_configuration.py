"""Debates as TOML files and flags: what is written holds, and what does not fit is said in one sentence."""

import re
import tomllib
from dataclasses import replace

import pytest

from climassay.cli.factcheck import DebateOptions
from climassay.errors import InputError
from climassay.factcheck import AdvocateSettings, DebateSettings, advocates_from_names, load_settings
from climassay.factcheck.configuration import COMMENTED, parse_settings
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


def test_the_commented_file_says_the_defaults(tmp_path):
    path = tmp_path / "debate.toml"
    path.write_text(COMMENTED, encoding="utf-8")
    settings = load_settings(path)
    assert replace(settings, advocates=()) == DebateSettings()
    assert settings.advocates == (
        replace(IPCC, weight=1.0),
        AdvocateSettings("abstracts", collections=("abstracts",), weight=0.4),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("round = 3", "no entry 'round'; there are .*rounds"), ("rounds = 0", "rounds must be at least 1"),
        ("[profile]\ntext_tokens = 0", "text_tokens must be at least 1"), ("temperature = -0.5", "temperature"),
        ('split = "sentences"', 'must be one of "model", "rules", "whole"'),
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
        ('[[advocate]]\nname = "A"\nkind = "plain"\nweight = 0', "weight must be above 0"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nweight = nan', "weight must be above 0"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nweight = inf', "weight must be"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\npassages = 0', "passages must be at least 1"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nexcerpt_words = -1', "excerpt_words cannot be negative"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nmin_cosine = "low"', "must be a number"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nmin_cosine = 1.5', "min_cosine"),
        ('[[advocate]]\nname = "A"\nkind = "plain"\nmin_cosine = nan', "min_cosine"),
    ],
)  # fmt: skip
def test_an_entry_that_does_not_fit_is_named_in_one_sentence(text, words):
    assert re.search(words, refused(text))


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
    path.write_text('rounds = 2\nseed = 5\ntemperature = 0.5\n[mediator]\nstyle = "neutral"\n[profile]\nqueries = 1\n'
                    '[[advocate]]\nname = "IPCC"\ncollections = ["ipcc"]\nweight = 0.9\npassages = 7\n')  # fmt: skip
    as_written = DebateOptions(config=path).settings()
    assert as_written == load_settings(path)
    flags = DebateOptions(config=path, rounds=1, split="rules", passages=2, text_tokens=9)
    assert flags.settings() == replace(
        as_written, rounds=1, split="rules", profile=ProfileSettings(queries=1, text_tokens=9),
        advocates=(replace(as_written.advocates[0], passages=2),),
    )  # fmt: skip
    others = DebateOptions(config=path, collection=["wmo"], plain=True).settings()
    assert [advocate.name for advocate in others.advocates] == ["wmo", "model"]
    assert (others.mediator.style, others.profile.queries) == ("neutral", 1)


def test_a_debate_without_advocates_says_how_to_name_some():
    with pytest.raises(InputError, match="--collection NAME"):
        DebateOptions().settings()
