"""Entailment as a test tells it, for tests of what is done with relations."""


class ScriptedEntailment:
    """Relations by a function of premise and statement, which gives None for a call that failed."""

    name = "scripted"

    def __init__(self, relation):
        self.relation, self.calls = relation, 0

    def relations(self, pairs):
        self.calls += 1
        return [self.relation(*pair) for pair in pairs]

    def score(self, pairs):
        return [None if one is None else one.confirms for one in self.relations(pairs)]
