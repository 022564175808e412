"""Function words and scripts, which reveal the language of a text."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

_WORDS = {
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
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {code: frozenset(text.split()) for code, text in _WORDS.items()}
"""Function words by ISO 639-1 code of the language."""
LANGUAGE_NAMES: Mapping[str, str] = dict(
    zip(FUNCTION_WORDS, ("English", "German", "French", "Spanish", "Portuguese", "Italian", "Dutch"), strict=True)
)
OTHER_SCRIPT = "another script"
"""Value returned instead of a language name for texts that are not in Latin script."""
_OTHER_SCRIPT_SHARE = 0.3
"""Minimum fraction of non-Latin letters in a text of another script; texts with Greek symbols in formulae have a lower
fraction."""
_MIN_LETTERS = 10
"""The script of a text is determined only if the text has at least this number of letters."""
_WORD = re.compile(r"[^\W\d_]+")
_NOT_LATIN = re.compile(r"[^A-Za-z\u00aa-\u024f\u1e00-\u1eff]")


class FunctionWordCounts(NamedTuple):
    """Numbers of function words in a text by language code, and the number of all its words."""

    by_language: dict[str, int]
    n_words: int


def count_function_words(text: str) -> FunctionWordCounts:
    """Count the function words of each language in a text; a word that belongs to several languages counts for each."""
    counts = Counter(word.lower() for word in _WORD.findall(text))
    hits = {code: sum(counts[word] for word in function_words) for code, function_words in FUNCTION_WORDS.items()}
    return FunctionWordCounts(hits, counts.total())


def is_in_other_script(text: str) -> bool:
    """Return whether a text is mostly in a non-Latin script; False for texts with very few letters."""
    letters = "".join(_WORD.findall(text))
    return len(letters) >= _MIN_LETTERS and len(_NOT_LATIN.findall(letters)) >= _OTHER_SCRIPT_SHARE * len(letters)
