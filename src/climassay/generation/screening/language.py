"""Which language a short text is written in, by its function words and its script.

A question has ten to thirty words, and function words are a third to a half of them in any of these languages: counting
them needs no model, and says nothing where there is nothing to count (a formula, a list of names).
"""

import re
from collections import Counter
from collections.abc import Mapping

from climassay.errors import InputError
from climassay.generation.draft import Draft
from climassay.generation.screening.check import Check, stated_texts
from climassay.questions import KINDS

_LISTS = {
    "en": """the of and to in is that it for was on are as with be by at from this have or had not but what which when
        how why who where than then would could should does do did its their there been has into over between during
        after before these those if will can may more most such also about through under because while an""",
    "de": """der die das und in den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er
        hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis
        mehr durch man welche welcher warum wann wo wenn kein unter zwischen""",
    "fr": """le la les de des du et en un une est que qui dans pour par sur au aux il elle ce cette ces ne pas plus se
        avec sont son sa ses ou où mais comme leur leurs été être ont avait entre après avant quelle quel quelles
        pourquoi comment quand si sous dont lors""",
    "es": """el la los las de del y en un una es que se por con para su sus al lo como más pero sus le ya o este esta
        estos entre cuando muy sin sobre también me hasta hay donde quien desde qué cuál cuáles cómo son fue ha no
        durante según""",
    "pt": """o a os as de do da dos das e em um uma é que se por com para seu sua ao à no na nos nas como mais mas foi
        são pelo pela pelos pelas entre quando muito sem sobre também até há onde quem desde qual quais não ou isso este
        esta ser tem durante""",
    "it": """il lo la i gli le di del della dei delle e in un una è che si per con su al alla come più ma sono da dal
        dalla nel nella non anche o questo questa tra quando quale quali perché dove chi ha stato essere loro durante
        gli dopo prima""",
    "nl": """de het een en van in is dat op te zijn met voor niet aan er om ook als dan maar bij nog uit door over naar
        hij zij wordt werd kan deze dit die tot wat waarom wanneer hoe welke tussen onder tijdens meer heeft hebben
        geen of""",
}
LANGUAGES: Mapping[str, frozenset[str]] = {code: frozenset(text.split()) for code, text in _LISTS.items()}
"""Function words by ISO 639-1 code."""
LEAST_LEAD = 2
"""Another language must have so many function words more than the wanted one ..."""
LEAST_SHARE = 0.15
"""... and they must be this share of all words."""
FOREIGN_SCRIPT = 0.3
"""Share of letters of another script than Latin from which a text is not in any of these languages (Greek symbols are
single letters in a text of words)."""
_WORD = re.compile(r"[^\W\d_]+")
_NOT_LATIN = re.compile(r"[^A-Za-z\u00aa-\u024f\u1e00-\u1eff]")
_ET_AL = re.compile(r"\bet al\b")


def other_language(text: str, wanted: str = "en") -> str | None:
    """What a text is written in where it is not the wanted language.

    Args:
        text: A sentence or more.
        wanted: One of :data:`LANGUAGES`.

    Returns:
        A code of :data:`LANGUAGES`, ``another script``, or None where the text may be in the wanted language.

    Raises:
        InputError: The wanted language is not known.
    """
    check_language(wanted)
    found = [word.lower() for word in _WORD.findall(_ET_AL.sub(" ", text))]
    letters = "".join(found)
    if letters and len(_NOT_LATIN.findall(letters)) >= FOREIGN_SCRIPT * len(letters):
        return "another script" if len(letters) >= 10 else None
    counts = Counter(found)
    hits = {code: sum(counts[word] for word in known) for code, known in LANGUAGES.items()}
    best = max(hits, key=lambda code: (hits[code], code == wanted))
    if hits[best] - hits[wanted] < LEAST_LEAD or hits[best] < LEAST_SHARE * len(found):
        return None
    return best


def check_language(code: str) -> None:
    """Refuse a language whose function words are not known.

    Raises:
        InputError: It is none of :data:`LANGUAGES`.
    """
    if code not in LANGUAGES:
        raise InputError(f"The language {code!r} cannot be told from others: take one of {', '.join(LANGUAGES)}.")


def language_check(wanted: str = "en") -> Check:
    """The check that all that a reader is shown is in one language.

    Raises:
        InputError: The language is not known.
    """
    check_language(wanted)

    def examine(draft: Draft) -> str | None:
        found = other_language(" ".join(stated_texts(draft)), wanted)
        return None if found is None else f"It is written in {found}, not in {wanted}."

    return Check("other language", KINDS, "Is written in another language than the one asked for.", examine)
