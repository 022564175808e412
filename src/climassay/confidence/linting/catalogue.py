"""All rules by name, and which of them are wanted."""

from climassay.confidence.linting.finding import Rule
from climassay.confidence.linting.finding_rules import UNTAGGED_FINDING
from climassay.confidence.linting.level_rules import LEVEL_RULES
from climassay.confidence.linting.likelihood_rules import LIKELIHOOD_RULES
from climassay.confidence.linting.probability_rules import PROBABILITY_RULES
from climassay.confidence.linting.spelling_rule import MISSPELT_TERM
from climassay.confidence.linting.vocabulary_rules import VOCABULARY_RULES
from climassay.errors import InputError
from climassay.registry import Registry

RULES: Registry[Rule] = Registry("rule", "climassay.lint_rules")
"""All that need nothing but the text; a package adds another by ``RULES.add(rule.name, rule)``."""
for _rule in (
    UNTAGGED_FINDING,
    *VOCABULARY_RULES,
    MISSPELT_TERM,
    *LEVEL_RULES,
    *LIKELIHOOD_RULES,
    *PROBABILITY_RULES,
):
    RULES.add(_rule.name, _rule)
ALL = "all"


def chosen_rules(wanted: str = "") -> tuple[Rule, ...]:
    """The rules of a list such as ``wide-range,repeated-tag`` or ``-untagged-finding``.

    Args:
        wanted: Names divided by commas. Those alone; with only names that begin with ``-``, the default ones without
            them; ``all`` stands for every rule. Empty: the default ones.

    Raises:
        InputError: There is no such rule, or none is left.
    """
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    without = {name[1:] for name in names if name.startswith("-")}
    only = [name for name in names if not name.startswith("-")]
    unknown = sorted({*without, *only} - {*RULES, ALL})
    if unknown:
        raise InputError(f"There is no rule {unknown[0]!r}: the rules are {', '.join(RULES)}.")
    if not only:
        taken = {rule.name for rule in RULES.values() if rule.default}
    else:
        taken = set(RULES) if ALL in only else set(only)
    found = tuple(rule for rule in RULES.values() if rule.name in taken - without)
    if not found:
        raise InputError("No rule is left to check: name at least one.")
    return found
