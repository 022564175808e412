"""What statements are about: topics found by clustering, named by words, by a model or by hand."""

from climassay.confidence.topics.clustering import Grouping, group_statements, map_of
from climassay.confidence.topics.modelling import FittedTopics, NamedTopics, context_sentences, fit_topics, name_topics
from climassay.confidence.topics.naming import (
    NamedTopic,
    NameProposal,
    judge_names,
    match_names,
    propose_names,
    read_names,
    write_names,
)
from climassay.confidence.topics.topic import (
    OUTSIDE,
    AssignedStatement,
    Topic,
    TopicModel,
    TopicSettings,
    read_topics,
    report_table,
    topic_table,
    write_topics,
)

__all__ = [
    "OUTSIDE",
    "AssignedStatement",
    "FittedTopics",
    "Grouping",
    "NameProposal",
    "NamedTopic",
    "NamedTopics",
    "Topic",
    "TopicModel",
    "TopicSettings",
    "context_sentences",
    "fit_topics",
    "group_statements",
    "judge_names",
    "map_of",
    "match_names",
    "name_topics",
    "propose_names",
    "read_names",
    "read_topics",
    "report_table",
    "topic_table",
    "write_names",
    "write_topics",
]
