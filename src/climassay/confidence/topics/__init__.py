"""Topics of statements, found by clustering and named by words, by a model or by hand."""

from climassay.confidence.settings import TopicSettings as TopicSettings
from climassay.confidence.topics.modelling import (
    Grouping as Grouping,
    group_statements as group_statements,
    project_vectors as project_vectors,
)
from climassay.confidence.topics.modelling import (
    FittedTopics as FittedTopics,
    NamedTopics as NamedTopics,
    context_sentences as context_sentences,
    fit_topics as fit_topics,
    name_topics as name_topics,
)
from climassay.confidence.topics.naming import (
    NamedTopic as NamedTopic,
    NameProposal as NameProposal,
    judge_names as judge_names,
    match_names as match_names,
    propose_names as propose_names,
    read_names as read_names,
    write_names as write_names,
)
from climassay.confidence.topics.topic import (
    OUTSIDE as OUTSIDE,
    AssignedStatement as AssignedStatement,
    Topic as Topic,
    TopicModel as TopicModel,
    read_topics as read_topics,
    report_table as report_table,
    topic_table as topic_table,
    write_topics as write_topics,
)
