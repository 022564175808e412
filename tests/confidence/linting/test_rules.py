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


def test_every_rule_has_an_example_and_a_reason():
    assert all(rule.examples and rule.reason.endswith(".") and rule.summary for rule in RULES.values())


def test_good_style_has_no_findings_by_any_rule():
    text = (
        "# Sea level\n\nGlobal mean sea level will *very likely* rise by 0.5 m by 2100 (*high confidence*).{9.6} "
        "There is *medium confidence* that it accelerates (*robust evidence, medium agreement*).\n\n"
        "In *likely* ranges, storms will move north (*low confidence*)."
    )
    assert found(text, "-likelihood-and-confidence") == []


class TestLikelihood:
    @pytest.mark.parametrize("level", ["low", "very low"])
    def test_with_low_confidence(self, level):
        assert found(f"Rain will likely increase ({level} confidence).", "likelihood-low-confidence")

    @pytest.mark.parametrize("level", ["medium", "high", "very high"])
    def test_not_with_more(self, level):
        assert found(f"Rain will likely increase ({level} confidence).", "likelihood-low-confidence") == []

    def test_in_the_same_brackets_and_in_running_words(self):
        for text in (
            "Rain increases (low confidence, likely).",
            "There is low confidence that rain is likely to rise.",
        ):
            assert found(text, "likelihood-low-confidence") == [("likelihood-low-confidence", "likely")]

    def test_a_term_of_another_clause_is_let_be(self):
        text = "It is likely that rain increases, but changes of wind are small (low confidence)."
        assert found(text, "likelihood-low-confidence") == []
        text = "Rain very likely increases (high confidence) and wind weakens (low confidence)."
        assert found(text, "likelihood-low-confidence") == []

    def test_running_words_reach_to_the_end_of_their_clause(self):
        text = "While there is low confidence in past change, it is very likely that the current will weaken."
        assert found(text, "likelihood-low-confidence") == []

    def test_brackets_of_likelihood_end_a_statement(self):
        text = "Ocean acidification (virtually certain), ocean deoxygenation (high confidence) go on."
        assert found(text, "likelihood-and-confidence") == []

    def test_a_likely_range_is_an_interval(self):
        assert found("Values above the likely range remain possible (low confidence).", "all") == []


class TestStatedRange:
    @pytest.mark.parametrize("term", sorted(LIKELIHOOD_RANGES))
    def test_the_ranges_of_the_vocabulary_fit_their_terms(self, term):
        low, high = (f"{100 * bound:g}" for bound in LIKELIHOOD_RANGES[term])
        for text in (f"It is {term} ({low}–{high}%).", f"It is {term} ({low}-{high} % probability)."):
            assert found(text, "likelihood-range") == []

    @pytest.mark.parametrize("term", sorted(LIKELIHOOD_RANGES))
    def test_a_range_of_another_term_contradicts(self, term):
        other = "99–100%" if term != "virtually certain" else "66–100%"
        assert found(f"It is {term} ({other}).", "likelihood-range")

    def test_open_bounds(self):
        assert found("It is likely (>66%) and very unlikely (<10%).", "likelihood-range") == []
        assert found("It is likely (>90%).", "likelihood-range") == [("likelihood-range", "likely (>90%)")]
        assert found("It is likely (<66%).", "likelihood-range")

    def test_quantities_are_no_probabilities(self):
        assert found("A likely 20–30% reduction of rain. It will likely be 5–10% wetter.", "likelihood-range") == []

    def test_intervals_are_named_by_their_quantiles(self):
        assert found("The very likely range (5–95%) and the likely range (17–83%).", "likelihood-range") == []
        assert found("The very likely (5–95%) assessed range is given.", "likelihood-range") == []
        assert found("The very likely range (17–83%).", "likelihood-range")

    def test_the_footnote_that_explains_the_terms_has_no_findings(self):
        text = (
            "virtually certain 99–100% probability; very likely 90–100%; likely 66–100%; "
            "about as likely as not 33–66%; unlikely 0–33%; very unlikely 0–10%; and exceptionally unlikely 0–1%. "
            "Additional terms (extremely likely 95–100%; more likely than not >50–100%; and extremely unlikely 0–5%) "
            "are also used."
        )
        assert found(text, "likelihood-range") == []


class TestEvidence:
    @pytest.mark.parametrize(
        ("pair", "level", "fits"),
        [
            ("robust evidence, high agreement", "very high", True),
            ("robust evidence, high agreement", "high", True),
            ("robust evidence, high agreement", "medium", False),
            ("limited evidence, low agreement", "low", True),
            ("limited evidence, low agreement", "medium", False),
            ("limited evidence, high agreement", "medium", True),
            ("limited evidence, high agreement", "very high", False),
            ("medium evidence, medium agreement", "low", True),
            ("medium evidence, medium agreement", "very low", False),
            ("limited evidence", "high", True),
            ("limited evidence", "very high", False),
            ("robust evidence", "very low", False),
        ],
    )
    def test_pairs_and_levels(self, pair, level, fits):
        rules = "mismatched-evidence"
        for text in (f"Yields fall ({pair}; {level} confidence).", f"Yields fall ({level} confidence, {pair})."):
            assert (found(text, rules) == []) is fits

    @pytest.mark.parametrize(
        "text",
        [
            "There is robust evidence (medium agreement) that yields fall.",
            "There is low confidence (limited evidence) in falling yields.",
            "Yields fall (medium confidence: limited evidence).",
            "Yields fall (robust evidence, good agreement).",
        ],
    )
    def test_half_a_pair_beside_its_other_half_or_a_level_is_let_be(self, text):
        assert found(text, "incomplete-pair") == []

    def test_words_of_evidence_in_ordinary_english_are_let_be(self):
        text = "There is strong evidence of melting, and models are in good agreement with observations."
        assert found(text, "evidence-vocabulary") == []

    def test_the_calibrated_word_is_proposed(self):
        draft = draft_of("Yields fall (high evidence, strong agreement).")
        checked = check(draft, chosen_rules("evidence-vocabulary"))
        assert [one.suggestion for one in checked.findings] == ["robust evidence", "high agreement"]


class TestVocabulary:
    @pytest.mark.parametrize(
        "words",
        [
            "95% confidence interval",
            "high confidence",
            "confidence in institutions",
            "self-confidence",
            "no confidence statement",
        ],
    )
    def test_no_finding(self, words):
        assert found(f"The report gives {words} for rain.", "confidence-vocabulary") == []

    def test_longest_words_are_read_whole(self):
        assert found("Rain will very probably increase.", "likelihood-vocabulary") == [
            ("likelihood-vocabulary", "very probably")
        ]

    def test_comparisons_are_ordinary_english(self):
        assert found("Floods are more likely in winter, most likely in May.", "likelihood-vocabulary") == []

    def test_terms_across_a_line_end(self):
        assert found("Rain increases (moderate\nconfidence).", "confidence-vocabulary") == [
            ("confidence-vocabulary", "moderate confidence")
        ]


class TestTags:
    def test_brackets_of_several_regions_are_clear(self):
        text = "Droughts last longer (NES: high confidence; WAF: low confidence)."
        assert found(text, "ambiguous-level,repeated-tag") == []

    def test_a_range_is_either_wide_or_ambiguous(self):
        assert found("A (medium to high confidence).", "wide-range,ambiguous-level")[0][0] == "ambiguous-level"
        assert found("A (low to high confidence).", "wide-range,ambiguous-level")[0][0] == "wide-range"

    def test_ends_that_are_explained_or_two_classes_are_clear(self):
        for text in (
            "Species move (medium to high confidence, depending on region).",
            "All regions in which change has high or medium confidence are shown.",
        ):
            assert found(text, "ambiguous-level") == []

    def test_two_statements_of_a_sentence_are_not_one_tagged_twice(self):
        text = "There is high confidence that ice melts, and rain increases (medium confidence)."
        assert found(text, "repeated-tag") == []
        assert found("Ice melts (high confidence) and rain increases (high confidence).", "repeated-tag") == []

    def test_a_section_mark_between_two_tags_is_nothing(self):
        assert found("Ice melts (high confidence) {2.1} (low confidence).", "repeated-tag")

    def test_running_words_in_a_heading_may_name_a_level(self):
        assert found("# What low confidence means", "tag-in-heading") == []


class TestItalics:
    MANY = "It is *likely*. It is *very likely*. It is *unlikely*. "

    def test_only_where_the_text_sets_its_terms_so(self):
        assert found(self.MANY + "Rain is likely.", "unmarked-term") == [("unmarked-term", "likely")]
        assert found("It is *likely*. Rain is likely.", "unmarked-term") == []
        assert found("Rain is likely, wind unlikely.", "unmarked-term") == []

    def test_in_html_too_and_not_in_plain_text(self):
        page = "<p>It is <em>likely</em>. It is <i>very likely</i>. It is <em>unlikely</em>. Rain is likely.</p>"
        assert found(page, "unmarked-term", "html") == [("unmarked-term", "likely")]
        assert found(self.MANY + "Rain is likely.", "unmarked-term", "text") == []


class TestUntagged:
    @pytest.mark.parametrize(
        "text",
        [
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
        ],
    )
    def test_no_finding(self, text):
        assert found(text, "untagged-finding") == []

    def test_a_term_of_likelihood_is_enough(self):
        assert found("Rain will likely increase more than in the last century.", "untagged-finding") == []

    def test_a_hyphenated_level_tags_nothing(self):
        text = "Low-confidence processes will increase sea level more than in the last century."
        assert [rule for rule, _ in found(text, "untagged-finding")] == ["untagged-finding"]


class TestChoice:
    def test_names_alone_without_and_all(self):
        assert [rule.name for rule in chosen_rules("wide-range, repeated-tag")] == ["wide-range", "repeated-tag"]
        names = {rule.name for rule in chosen_rules("-wide-range")}
        assert names == {name for name, rule in RULES.items() if rule.default} - {"wide-range"}
        assert {rule.name for rule in chosen_rules("all")} == set(RULES)
        assert {rule.name for rule in chosen_rules("all,-wide-range")} == set(RULES) - {"wide-range"}

    @pytest.mark.parametrize("wanted", ["nonsense", "-nonsense", "wide-range,-wide-range"])
    def test_what_cannot_be_chosen(self, wanted):
        with pytest.raises(InputError):
            chosen_rules(wanted)
