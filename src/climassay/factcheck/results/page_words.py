"""What a fact-check's page calls things, for readers who know neither the IPCC's terms nor ours."""

from collections.abc import Mapping

from climassay.factcheck.transcript import (
    AdvocateProfile,
    AgreementLevel,
    CloseReason,
    Confidence,
    EvidenceLevel,
    Fallacy,
    Levels,
    Likelihood,
    OpenReason,
    Outcome,
    Placement,
    Side,
)

EVIDENCE: Mapping[EvidenceLevel, str] = {
    "limited": "few sources, or weak ones",
    "medium": "some sources of good quality",
    "robust": "many independent sources of good quality",
}
AGREEMENT: Mapping[AgreementLevel, str] = {
    "low": "the sources point in different directions",
    "medium": "most sources point the same way",
    "high": "the sources point the same way",
}
CONFIDENCE: Mapping[Confidence, str] = {
    "very low": "hardly any ground for the finding",
    "low": "the finding may well change",
    "medium": "the finding has some ground",
    "high": "the finding rests on good ground",
    "very high": "the finding rests on very good ground",
}
LIKELIHOOD: Mapping[Likelihood, str] = {
    "exceptionally unlikely": "0 to 1 per cent",
    "extremely unlikely": "0 to 5 per cent",
    "very unlikely": "0 to 10 per cent",
    "unlikely": "0 to 33 per cent",
    "about as likely as not": "33 to 66 per cent",
    "more likely than not": "50 to 100 per cent",
    "likely": "66 to 100 per cent",
    "very likely": "90 to 100 per cent",
    "extremely likely": "95 to 100 per cent",
    "virtually certain": "99 to 100 per cent",
}
PLACEMENT: Mapping[Placement, str] = {
    "consensus": "states the consensus view",
    "outlier": "is an outlier view, far from what most evidence says",
    "exaggerated": "exaggerates something that is true",
    "misleading": "presents something true in a misleading way",
}
REASON: Mapping[CloseReason | OpenReason, str] = {
    "close verdicts": "the informed advocates were at most one step apart",
    "no change": "no advocate changed its verdict any more",
    "mediator": "the mediator was satisfied, although the advocates differ",
    "round limit": "the limit of rounds was reached",
    "one informed advocate": "only one advocate had information",
    "not enough information": "no advocate had enough information",
    "contrast": "the informed advocates' verdicts were more than one step apart",
    "uncertain": "the mediator was not certain",
}
OUTCOME: Mapping[Outcome, str] = {
    "verdict": "Verdict",
    "not enough information": "Not enough information",
    "not checkable": "Nothing that can be checked",
    "not about climate": "Not about climate",
    "failed": "The check failed",
}
ENDING: Mapping[Outcome, str] = {
    "verdict": "",
    "not enough information": "No verdict: nothing in the sources bears one. That makes the claim neither right nor "
    "wrong; what was searched and found stands below.",
    "not checkable": "The text states nothing that evidence could confirm or refute: it may be a question, an opinion, "
    "a wish or a call to do something. It was not debated, and nothing was searched for it.",
    "not about climate": "The claim is not about climate, its causes, its consequences or what is done about it. It "
    "was not debated: the documents here could not tell.",
    "failed": "A model did not answer as it should, so that there is no verdict. Run the check again.",
}
DEMONSTRATION = (
    "A very small language model made this. It demonstrates how this works and is not to be relied on: for real "
    "work take a strong model."
)
SIDE: Mapping[Side | None, str] = {
    "for": "What speaks for the claim",
    "against": "What speaks against it",
    None: "What was found nearest to the claim",
}
KIND: Mapping[str, str] = {
    "collection": "judges by",
    "plain": "judges by what its model knows, without documents",
    "adversarial": "argues the stance of",
}


def level_lines(levels: Levels) -> tuple[tuple[str, str, str], ...]:
    """What is assessed, how it came out, and what that means; after the IPCC's guidance note on uncertainty."""
    lines: list[tuple[str, str, str]] = [
        ("Evidence", levels.evidence, EVIDENCE[levels.evidence]),
        ("Agreement", levels.agreement, AGREEMENT[levels.agreement]),
        ("Confidence", levels.confidence, CONFIDENCE[levels.confidence]),
    ]
    if levels.likelihood is not None:
        words = f"a probability of {LIKELIHOOD[levels.likelihood]}"
        lines.append(("Likelihood that the claim is true", levels.likelihood, words))
    return tuple(lines)


def role(profile: AdvocateProfile) -> str:
    """What an advocate judges by, in words."""
    collections = ", ".join(profile.collections)
    return f"{KIND[profile.kind]} {collections}".strip() if collections else KIND[profile.kind]


def fallacy_note(fallacy: Fallacy) -> str:
    """Who says how the claim misleads, and how often that is right."""
    return (
        "Named by a classifier that read the claim's words and nothing else. Of published climate misinformation of"
        f" which it is this sure, about {100 * fallacy.precision:.0f}% has the fallacy named; other texts may fare"
        " worse."
    )
