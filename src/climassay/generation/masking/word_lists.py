"""Lists of English words that a masker knows: those that are never a term, and names of places and months."""


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNITS = _listed(
    """
    km cm mm nm µm μm hpa kpa mpa kwh twh gwh ppm ppb ppt ppmv gtc gtco2 pgc kg mol sec hrs yr dobson
    """
)
"""Of measurement, as they stand behind a number."""

NUMBER_WORDS = _listed(
    """
    zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy
    eighty ninety hundred thousand million billion trillion half third quarter first second once twice double per
    cent percent
    """
)
"""Numbers and shares in words."""

FUNCTION_WORDS = _listed(
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
"""Closed classes of English words and the commonest adverbs: none is ever a scientific term."""

PLACES = _listed(
    """
    africa african america american antarctic antarctica arctic asia asian atlantic australia australian brazil
    britain british california canada canadian china chinese earth europe european france french germany german
    greenland iceland india indian indonesia japan japanese mediterranean mexico northern pacific russia russian
    sahara saharan siberia siberian southern amazon alps andes himalaya himalayan tibet tibetan el niño la niña
    january february march april may june july august september october november december
    """
)
"""Parts of the world that climate texts name, adjectives included, and months."""
