"""Words of a statement, and the candidates for masking; lists of English words exclude words that are no terms."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from climassay.errors import InputError
from climassay.generation.draft import has_term
from climassay.io import describe_error, read_text


def word_set(text: str) -> frozenset[str]:
    """Return the distinct words of a text, split at white space."""
    return frozenset(text.split())


UNITS = word_set(
    """
    km cm mm nm µm μm hpa kpa mpa kwh twh gwh ppm ppb ppt ppmv gtc gtco2 pgc kg mol sec hrs yr dobson
    """
)
"""Abbreviated units of measurement."""

NUMBER_WORDS = word_set(
    """
    zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy
    eighty ninety hundred thousand million billion trillion half third quarter first second once twice double per
    cent percent
    """
)
"""Words for numbers and fractions."""

FUNCTION_WORDS = word_set(
    """
    a about above across after again against all almost along already also although always am among an and another
    any are aren't around as at away back be became because become becomes been before behind being below beneath
    beside besides between beyond both but by called came can cannot come could despite did do does doing done down due
    during each either else enough especially etc even ever every few for from further furthermore gave get give
    given gives go goes had has have having he hence her here him his how however i if in indeed inside instead into
    is it its itself just kept known largely least less let like likely made mainly make makes many may me might
    more moreover most mostly much must my named near nearly neither never nevertheless no nor not nothing now of off
    often on only onto or other others our out outside over own quite rather really same see seen several shall she
    should since so some somewhat soon still such termed than that the their them themselves then thence there thereby
    therefore these they this those though through throughout thus till to together too toward towards under unless
    unlike until up upon us usually very via was we well were what when whenever where whereas whereby wherever
    whether which while who whole whom whose why will with within without would yet you your
    """
)
"""English function words and the most frequent adverbs, none of which is a scientific term."""

GENERIC = word_set(
    """
    ability able access account act action actual add additional adds aim amount amounts analysis annual answer apparent
    appear appears approach area areas arise arises aspect aspects associated assume assumed author authors available
    average background bad base based basis begin begins behaviour behavior benefit big body bring brings broad build
    builds case cases categories category cause caused causes central century centuries certain chance change changed
    changes changing chapter character choice clear close collection combination common compare compared comparison
    complete complex component components concept conclusion condition conditions connection consequence consequences
    consider considerable consist consists constant contain contains context contrast contribute contributes
    contribution control correct count countries country create current daily data date day days decade decades decrease
    decreases deep define degree degrees depend dependent depends derive describe described design detail details
    determine determined determines develop development difference differences different difficult direct direction
    directly distance distinct early easily easy effect effective effects element elements end ends ensure entire
    essential estimate estimated estimates event events evidence evident exact example examples exceed exist existing
    exists expect expected experience explain explained explains extent extreme fact factor factors facts fall falls
    fast faster features few field final find finding findings first focus follow following follows form formed forms
    found fraction full function further future general generally global good great greater greatest group groups grow
    growing growth half happen happens hard help helps high higher highest history hold holds home human idea identified
    identify impact impacts importance important include included includes including increase increased increases
    increasing indicate indicates individual industry influence influenced influences information initial instance
    international introduce introduced issue issues item items kind kinds knowledge label lack large larger largest last
    late later latter lead leading leads least length level levels light line list local located location locations
    long longer longest loss lost lot low lower lowest main maintain major majority makes manner material materials
    matter maximum mean means measure measured measures mechanism mechanisms member members method methods middle
    million minimum minor moderate modern month months move moves multiple name names natural nature near need needed
    needs negative new next normal number numbers observe observed obtain occur occurred occurring occurs old open
    order original overall own page paper parameters parts part particular past pattern patterns people period periods
    person phase phenomenon place places play plays point points poor position positions possible potential practice
    presence present primary principle probably problem problems process processes produce produced produces product
    production project projected projections property properties proportion provide provided provides public purpose
    quality quantity question questions quick rapid rapidly rare rate rates ratio reach reached reaches real reason
    reasons recent recently reduce reduced reduces reference region regional regions related relation relationship
    relative relatively relevant remain remains remove report reports represent represented represents require required
    requires research researchers respect respectively response rest result resulting results rise rises rising role
    rule sample scale scales science scientific scientists section sector see selected sense separate serious set
    several severe shape share short shorter show showed shown shows significant significantly similar simple single
    site sites situation size slow slower slowly small smaller smallest society solid source sources space special
    specific stage standard start starts state states station stations status step steps strong stronger structure
    studied studies study subject substantial success suggest suggests sum support system systems table take takes task
    technique techniques tend tendency tends term terms text theory thing things time times top topic total trend
    trends true type types typical typically unit units use used useful user uses using usual value values variable
    various vary version view way ways weak weaker week weeks well wide widely word words work world worldwide year
    years yield young
    """
)
"""Words that are common in scientific texts of any field; masking them would not test knowledge of the field."""

_WORD = re.compile(
    r"(?<!\w)(?:[^\W_][\u0300-\u036f]*)+(?:(?:[-‐‑–’']|(?<=\d)\.(?=\d))(?:[^\W_][\u0300-\u036f]*)+)*(?!\w)"
)
"""Pattern of a word; a point between digits belongs to it, as in PM2.5."""
_JOINER = re.compile(r"[-‐‑–’']")
_LETTER = re.compile(r"[^\W\d_]")
_MIN_LETTERS = 3
"""Minimum number of letters of a word to mask; shorter words are units, symbols and function words."""


@dataclass(frozen=True, slots=True)
class TermCandidate:
    """Word of a statement."""

    term: str
    """Word as it appears in the statement."""
    start: int
    """Character index of the word's beginning in the statement."""
    number: int
    """Index of the word among all words of the statement."""

    @property
    def end(self) -> int:
        """Character index of the word's end (exclusive)."""
        return self.start + len(self.term)


def words(statement: str) -> list[TermCandidate]:
    """Return all words of a statement; parts joined by hyphens, dashes or apostrophes are one word."""
    return [TermCandidate(match[0], match.start(), index) for index, match in enumerate(_WORD.finditer(statement))]


def candidates(statement: str) -> list[TermCandidate]:
    """Return the words of a statement that can be masked, in order.

    A candidate occurs only once, so that the rest of the statement does not reveal it. Parts of hyphenated words count
    as occurrences, and case is ignored. It has three letters or more, or is a symbol such as CO2. Function words,
    numbers, units and truncated compounds, as in "short- and long-term", are excluded.
    """
    all_words = words(statement)
    folded_words = [word.term.casefold() for word in all_words]
    counts = Counter(part for term in folded_words for part in {term, *_JOINER.split(term)})
    results = []
    for word, term in zip(all_words, folded_words, strict=True):
        n_letters = len(_LETTER.findall(word.term))
        is_symbol = n_letters >= 2 and any(sign.isdigit() for sign in word.term) and word.term[0].isupper()
        is_long = n_letters >= _MIN_LETTERS and not word.term[0].isdigit()
        is_excluded = term in FUNCTION_WORDS or term in UNITS or term in NUMBER_WORDS
        if counts[term] == 1 and (is_long or is_symbol) and not is_excluded and has_term(statement, word.term):
            results.append(word)
    return results


def read_glossary(path: Path) -> tuple[str, ...]:
    """Read the terms of a glossary file, one per line; empty lines and lines that begin with ``#`` are skipped.

    Raises:
        InputError: The file cannot be read or has no terms.
    """
    try:
        lines = [line.strip() for line in read_text(path, "utf-8-sig").split("\n")]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The glossary {path} cannot be read: {describe_error(error)}.") from None
    terms = tuple(line for line in lines if line and not line.startswith("#"))
    if not terms:
        raise InputError(f"The glossary {path} lists no terms: write one per line.")
    return terms
