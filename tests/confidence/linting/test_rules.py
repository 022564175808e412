"""Every rule on its own examples, and on the cases that decide where it ends."""

import pytest

from climassay.confidence.linting import RULES, check, chosen_rules, draft_of
from climassay.confidence.vocabulary import LIKELIHOOD_RANGES
from climassay.errors import InputError

EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.name}-{number}")
    for rule in RULES.values()
    for number, example in enumerate(rule.examples)
]


def found(text, rules="all", kind="markdown"):
    return [(one.rule, one.words) for one in check(draft_of(text, kind), chosen_rules(rules)).findings]


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_a_rule_complains_of_its_bad_example_and_lets_the_good_one_pass(rule, example):
    assert found(example.bad, rule.name)
    assert found(example.good, rule.name) == []


def test_good_style_has_no_findings_by_any_rule():
    text = (
        "# Sea level\n\nGlobal mean sea level will *very likely* rise by 0.5 m by 2100 (*high confidence*).{9.6} "
        "There is *medium confidence* that it accelerates (*robust evidence, medium agreement*).\n\n"
        "In *likely* ranges, storms will move north (*low confidence*)."
    )
    assert found(text, "-likelihood-and-confidence") == []


MANY = "It is *likely*. It is *very likely*. It is *unlikely*. "
LOW, RANGE, BOTH = "likelihood-low-confidence", "likelihood-range", "likelihood-and-confidence"
PASSES = {
    "likelihood with medium confidence": (LOW, "Rain will likely increase (medium confidence)."),
    "likelihood with high confidence": (LOW, "Rain will likely increase (high confidence)."),
    "likelihood with very high confidence": (LOW, "Rain will likely increase (very high confidence)."),
    "term of a clause before": (LOW, "It is likely that rain rises, but changes of wind are small (low confidence)."),
    "term behind another tag": (LOW, "Rain very likely increases (high confidence) and wind weakens (low confidence)."),
    "term behind the clause": (
        LOW,
        "While there is low confidence in past change, it is very likely that the current will weaken.",
    ),
    "likelihood in brackets ends a statement": (
        BOTH,
        "Ocean acidification (virtually certain), ocean deoxygenation (high confidence) go on.",
    ),
    "a likely range is an interval": ("all", "Values above the likely range remain possible (low confidence)."),
    "open bounds": (RANGE, "It is likely (>66%) and very unlikely (<10%)."),
    "quantities": (RANGE, "A likely 20–30% reduction of rain. It will likely be 5–10% wetter."),
    "quantiles": (RANGE, "The very likely range (5–95%) and the likely range (17–83%)."),
    "quantiles before range": (RANGE, "The very likely (5–95%) assessed range is given."),
    "footnote that explains the terms": (
        RANGE,
        "virtually certain 99–100% probability; very likely 90–100%; likely 66–100%; about as likely as not 33–66%; "
        "unlikely 0–33%; very unlikely 0–10%; and exceptionally unlikely 0–1%. Additional terms (extremely likely "
        "95–100%; more likely than not >50–100%; and extremely unlikely 0–5%) are also used.",
    ),
    "agreement in brackets": ("incomplete-pair", "There is robust evidence (medium agreement) that yields fall."),
    "level before evidence": ("incomplete-pair", "There is low confidence (limited evidence) in falling yields."),
    "level and evidence": ("incomplete-pair", "Yields fall (medium confidence: limited evidence)."),
    "other half off the scale": ("incomplete-pair", "Yields fall (robust evidence, good agreement)."),
    "evidence in ordinary English": (
        "evidence-vocabulary",
        "There is strong evidence of melting, and models are in good agreement with observations.",
    ),
    "confidence interval": ("confidence-vocabulary", "The report gives 95% confidence interval for rain."),
    "level": ("confidence-vocabulary", "The report gives high confidence for rain."),
    "trust": ("confidence-vocabulary", "The report gives confidence in institutions for rain."),
    "self-confidence": ("confidence-vocabulary", "The report gives self-confidence for rain."),
    "no statement": ("confidence-vocabulary", "The report gives no confidence statement for rain."),
    "comparisons": ("likelihood-vocabulary", "Floods are more likely in winter, most likely in May."),
    "several regions": (
        "ambiguous-level,repeated-tag",
        "Droughts last longer (NES: high confidence; WAF: low confidence).",
    ),
    "explained ends": ("ambiguous-level", "Species move (medium to high confidence, depending on region)."),
    "two classes": ("ambiguous-level", "All regions in which change has high or medium confidence are shown."),
    "two statements": ("repeated-tag", "There is high confidence that ice melts, and rain rises (medium confidence)."),
    "two clauses": ("repeated-tag", "Ice melts (high confidence) and rain increases (high confidence)."),
    "heading that names a level": ("tag-in-heading", "# What low confidence means"),
    "few italics": ("unmarked-term", "It is *likely*. Rain is likely."),
    "no italics": ("unmarked-term", "Rain is likely, wind unlikely."),
    **{
        f"no finding {number}": ("untagged-finding", text)
        for number, text in enumerate([
            "This chapter assesses how rain has increased and why floods cause more damage.",
            "Figure 3 shows that rain has increased more than in the last century.",
            "Smith et al. (2019) found that rain has increased more than in the last century.",
            "Rain should be measured more often than it was in the last century.",
            "Whether rain has increased more than wind remains unknown.",
            "Does rain increase more than in the last century?",
            "It is unequivocal that human influence has warmed the atmosphere more than the sun.",
            "# Rain has increased more than in the last century.",
            "| Rain has increased more than in the last century. |",
            "It rains.",
            "Sager (2019) finds that equal incomes would increase emissions by 2.3% more than before.",
            "Some papers show that rain has increased more than in the last century.",
            "Risk: The potential for damage that increases with warming more than before.",
            "Rain will likely increase more than in the last century.",
        ])
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PASSES)
def test_what_a_rule_lets_pass(name):
    rules, text = PASSES[name]
    assert found(text, rules) == []


LONG_SLIP = "Low-confidence processes will increase sea level more than in the last century."
COMPLAINTS = {
    "low confidence": ("Rain will likely increase (low confidence).", LOW, "likely increase (low confidence)"),
    "very low confidence": (
        "Rain will likely increase (very low confidence).",
        LOW,
        "likely increase (very low confidence)",
    ),
    "in the same brackets": ("Rain increases (low confidence, likely).", LOW, "low confidence, likely"),
    "in running words": (
        "There is low confidence that rain is likely to rise.",
        LOW,
        "low confidence that rain is likely",
    ),
    "wrong lower bound": ("It is likely (>90%).", RANGE, "likely (>90%)"),
    "wrong upper bound": ("It is likely (<66%).", RANGE, "likely (<66%)"),
    "wrong quantiles": ("The very likely range (17–83%).", RANGE, "very likely range (17–83%)"),
    "longest words": ("Rain will very probably increase.", "likelihood-vocabulary", "very probably"),
    "across a line end": ("Rain rises (moderate\nconfidence).", "confidence-vocabulary", "moderate confidence"),
    "ambiguous range": ("A (medium to high confidence).", "ambiguous-level", "medium to high confidence"),
    "wide range": ("A (low to high confidence).", "wide-range", "low to high confidence"),
    "section mark between tags": (
        "Ice melts (high confidence) {2.1} (low confidence).",
        "repeated-tag",
        "low confidence",
    ),
    "not in italics": (MANY + "Rain is likely.", "unmarked-term", "likely"),
    "a hyphenated level tags nothing": (LONG_SLIP, "untagged-finding", LONG_SLIP),
}


@pytest.mark.parametrize("name", COMPLAINTS)
def test_what_a_rule_complains_of(name):
    text, rule, words = COMPLAINTS[name]
    rules = "wide-range,ambiguous-level" if rule in ("wide-range", "ambiguous-level") else rule
    assert found(text, rules) == [(rule, words)]


@pytest.mark.parametrize("term", sorted(LIKELIHOOD_RANGES))
def test_a_term_goes_with_its_own_range_and_with_no_other(term):
    low, high = (f"{100 * bound:g}" for bound in LIKELIHOOD_RANGES[term])
    for text in (f"It is {term} ({low}–{high}%).", f"It is {term} ({low}-{high} % probability)."):
        assert found(text, RANGE) == []
    other = "99–100%" if term != "virtually certain" else "66–100%"
    assert found(f"It is {term} ({other}).", RANGE)


@pytest.mark.parametrize(
    ("pair", "level", "fits"),
    [
        ("robust evidence, high agreement", "very high", True), ("robust evidence, high agreement", "high", True),
        ("robust evidence, high agreement", "medium", False), ("limited evidence, low agreement", "low", True),
        ("limited evidence, low agreement", "medium", False), ("limited evidence, high agreement", "medium", True),
        ("limited evidence, high agreement", "very high", False), ("medium evidence, medium agreement", "low", True),
        ("medium evidence, medium agreement", "very low", False), ("limited evidence", "high", True),
        ("limited evidence", "very high", False), ("robust evidence", "very low", False),
    ],
)  # fmt: skip
def test_pairs_of_evidence_and_agreement_fit_some_levels(pair, level, fits):
    for text in (f"Yields fall ({pair}; {level} confidence).", f"Yields fall ({level} confidence, {pair})."):
        assert (found(text, "mismatched-evidence") == []) is fits


def test_the_calibrated_word_is_proposed():
    draft = draft_of("Yields fall (high evidence, strong agreement).")
    checked = check(draft, chosen_rules("evidence-vocabulary"))
    assert [one.suggestion for one in checked.findings] == ["robust evidence", "high agreement"]


def test_italics_are_read_in_html_too_and_not_in_plain_text():
    page = "<p>It is <em>likely</em>. It is <i>very likely</i>. It is <em>unlikely</em>. Rain is likely.</p>"
    assert found(page, "unmarked-term", "html") == [("unmarked-term", "likely")]
    assert found(MANY + "Rain is likely.", "unmarked-term", "text") == []


def test_rules_are_chosen_by_name_all_but_some_or_all():
    assert [rule.name for rule in chosen_rules("wide-range, repeated-tag")] == ["wide-range", "repeated-tag"]
    names = {rule.name for rule in chosen_rules("-wide-range")}
    assert names == {name for name, rule in RULES.items() if rule.default} - {"wide-range"}
    assert {rule.name for rule in chosen_rules("all")} == set(RULES)
    assert {rule.name for rule in chosen_rules("all,-wide-range")} == set(RULES) - {"wide-range"}


@pytest.mark.parametrize("wanted", ["nonsense", "-nonsense", "wide-range,-wide-range"])
def test_what_cannot_be_chosen(wanted):
    with pytest.raises(InputError):
        chosen_rules(wanted)
