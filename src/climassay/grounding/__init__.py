"""Answers that rest on retrieved passages: citations that exist, in-house knowledge marked, or an honest no."""

from climassay.grounding.answer import GroundedAnswer, Source, answer_card, answer_data, answer_question, answer_report
from climassay.grounding.citing import IN_HOUSE_MARK, AnswerSentence, ground_text, written
from climassay.grounding.retrieval import CollectionGroup, open_collections

__all__ = [
    "IN_HOUSE_MARK",
    "AnswerSentence",
    "CollectionGroup",
    "GroundedAnswer",
    "Source",
    "answer_card",
    "answer_data",
    "answer_question",
    "answer_report",
    "ground_text",
    "open_collections",
    "written",
]
