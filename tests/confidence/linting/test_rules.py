"""Every rule on its own examples, and on the cases that decide where it ends."""

import pytest

from climassay.confidence.linting import RULES, check, draft_of, select_rules
from climassay.confidence.vocabulary import LEVELS, LIKELIHOOD_RANGES, LIKELIHOODS
from climassay.errors import InputError

EXAMPLES = [
    pytest.param(rule.name, *example, id=f"{rule.name}-{number}")
    for rule in RULES.values()
    for number, example in enumerate(rule.examples)
]
LEVEL, LIKELY, EVIDENCE, SLIP, RANGE, PROBABILITY, TWO, PAIR, LOW = RULES


def found(text, rules=""):
    return [(one.rule, one.words) for one in check(draft_of(text, "text"), select_rules(rules)).findings]


def test_there_are_at_most_a_dozen_rules():
    assert len(RULES) <= 12


@pytest.mark.parametrize(("name", "bad", "good"), EXAMPLES)
def test_a_rule_objects_to_its_bad_example_and_no_rule_to_the_good_one(name, bad, good):
    assert found(bad, name)
    assert found(good) == []


GOOD = [
    "Global mean sea level will very likely rise by 0.5 m by 2100 (high confidence).{9.6}",
    "There is medium confidence that it accelerates (robust evidence, medium agreement).",
    "The report gives a 95% confidence interval, confidence bounds, and high confidence for rain.",
    "Public confidence in banks is limited, and farmers report strong confidence in forecasts.",
    "Floods are more likely in winter, most likely in May, and equally likely elsewhere.",
    "'Highly likely' is no term, and a reviewer asked for “moderate confidence” here.",
    "The high-level conference was very lively, with a high level of agreements.",
    "A likely 20–30% reduction of rain. It will likely be 5–10% wetter.",
    "The very likely range (5–95%) and the likely range (17–83%), and the very likely (5–95%) assessed range.",
    "virtually certain 99–100% probability; very likely 90–100%; likely 66–100%; about as likely as not 33–66%.",
    "It is likely (>66%) and very unlikely (<10%).",
    "Ice melts (high confidence), and yields fall by 20% (medium confidence).",
    "Ice melts (NES: high confidence; WAF: low confidence).",
    "Species move (medium to high confidence, depending on region).",
    "Ice melts (high confidence) and rain increases (high confidence).",
    "There is high confidence that ice melts, and rain rises (medium confidence).",
    "It is likely that rain rises, but changes of wind are small (low confidence).",
    "Rain very likely increases (high confidence) and wind weakens (low confidence).",
    "Values above the likely range remain possible (low confidence).",
    "There is strong evidence of melting, and models are in good agreement with observations.",
    "The tailings dam failed near Likely. The lower confidence limit lies at 0.12 m.",
    "Rain will rise with virtual certainty.",
]


@pytest.mark.parametrize("text", GOOD)
def test_correct_uses_have_no_finding(text):
    assert found(text) == []


COMPLAINTS = [
    ("Rain rises (strong confidence).", LEVEL, "(strong confidence)"),
    ("Rain rises (mild confidence).", LEVEL, "(mild confidence)"),
    ("Rain rises (very likely confidence).", LEVEL, "very likely confidence"),
    ("Rain rises (confidence: high).", LEVEL, "(confidence: high)"),
    ("Rain rises (high certainty).", LEVEL, "(high certainty)"),
    ("Rain is highly likely to increase.", LIKELY, "highly likely"),
    ("Rain will increase (probable).", LIKELY, "(probable)"),
    ("Yields fall (medium evidence, strong agreement).", EVIDENCE, "strong agreement"),
    ("Yields fall (very robust evidence, high agreement).", EVIDENCE, "very robust evidence"),
    ("Rain rises (hgih confidence).", SLIP, "hgih confidence"),
    ("Rain rises (high confidnce).", SLIP, "high confidnce"),
    ("Rain is very likley to rise.", SLIP, "very likley"),
    ("Rain rises (meduim evidence, high agreement).", SLIP, "meduim evidence"),
    ("It is likely (>90%).", RANGE, "likely (>90%)"),
    ("It is likely (<66%).", RANGE, "likely (<66%)"),
    ("It is very likely (probability of 0.5).", RANGE, "very likely (probability of 0.5)"),
    ("It is very likely (a 1 in 2 chance).", RANGE, "very likely (a 1 in 2 chance)"),
    ("The very likely range (17–83%).", RANGE, "very likely range (17–83%)"),
    (
        "Ice melts (high confidence, that is, 80% probability).",
        PROBABILITY,
        "high confidence, that is, 80% probability",
    ),
    ("A (medium to high confidence).", TWO, "medium to high confidence"),
    ("A (low to high confidence).", TWO, "low to high confidence"),
    ("Ice melts (high confidence) {2.1} (low confidence).", TWO, "low confidence"),
    ("Rain will likely increase (very low confidence).", LOW, "likely increase (very low confidence"),
]


@pytest.mark.parametrize(("text", "rule", "words"), COMPLAINTS)
def test_a_fault_is_found_once_where_it_is(text, rule, words):
    ((name, where),) = found(text)
    assert name == rule
    assert where.strip(")., ") == words.strip(")., ")


@pytest.mark.parametrize("term", LIKELIHOODS)
def test_a_term_goes_with_its_own_range_and_with_no_other(term):
    low, high = (f"{100 * bound:g}" for bound in LIKELIHOOD_RANGES[term])
    for text in (f"It is {term} ({low}–{high}%).", f"It is {term} ({low}-{high} % probability)."):
        assert found(text, RANGE) == []
    other = "99–100%" if term != "virtually certain" else "66–100%"
    assert found(f"It is {term} ({other}).", RANGE)


@pytest.mark.parametrize("tag", LEVELS)
def test_every_level_is_accepted_and_every_slip_in_it_named(tag):
    assert found(f"Rain rises ({tag} confidence).") == []
    for place in range(1, len("confidence") - 1):
        slip = "confidence"[:place] + "confidence"[place + 1 :]
        assert [name for name, _ in found(f"Rain rises ({tag} {slip}).", SLIP)] == [SLIP]


@pytest.mark.parametrize(
    ("pair", "level", "fits"),
    [
        ("robust evidence, high agreement", "very high", True), ("robust evidence, high agreement", "high", True),
        ("robust evidence, high agreement", "medium", False), ("limited evidence, low agreement", "low", True),
        ("limited evidence, low agreement", "medium", False), ("limited evidence, high agreement", "medium", True),
        ("limited evidence, high agreement", "very high", False), ("medium evidence, medium agreement", "low", True),
        ("medium evidence, medium agreement", "very low", False),
    ],
)  # fmt: skip
def test_pairs_of_evidence_and_agreement_fit_some_levels(pair, level, fits):
    for text in (f"Yields fall ({pair}; {level} confidence).", f"Yields fall ({level} confidence, {pair})."):
        assert (found(text, PAIR) == []) is fits


def test_rules_are_chosen_by_name_or_all_but_some():
    assert [rule.name for rule in select_rules(f"{RANGE}, {LEVEL}")] == [LEVEL, RANGE]
    assert {rule.name for rule in select_rules(f"-{RANGE}")} == set(RULES) - {RANGE}
    assert {rule.name for rule in select_rules()} == set(RULES)


@pytest.mark.parametrize("names", ["nonsense", "-nonsense", f"{RANGE},-{RANGE}"])
def test_what_cannot_be_chosen(names):
    with pytest.raises(InputError):
        select_rules(names)
