"""Answers from retrieved passages, with verified citations and marks on statements that no passage supports."""

from climassay.grounding.answer import (
    GroundedAnswer as GroundedAnswer,
    Source as Source,
    build_card as build_card,
    answer_question as answer_question,
    build_report as build_report,
)
from climassay.grounding.citations import (
    IN_HOUSE_MARK as IN_HOUSE_MARK,
    AnswerSentence as AnswerSentence,
    ground_text as ground_text,
    format_sentence as format_sentence,
)
from climassay.grounding.answer import CollectionGroup as CollectionGroup, open_collections as open_collections
