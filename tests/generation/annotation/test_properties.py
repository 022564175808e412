"""Any interleaving of what annotators do gives the outcome that the labels alone give, and nothing is stored twice."""

import itertools
import tempfile
import time

import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from annotated_drafts import EDITED, VALID, WRONG, begin, plain
from climassay.errors import InputError
from climassay.generation.annotation import AnnotationSettings, AnnotationStore, Label, decide_outcome
from climassay.generation.annotation.tables import leases
from climassay.records import Records

PEOPLE = ("ann", "bob", "cid")
BASES = {one.id: one for one in plain(2)}
WORDS = (VALID, WRONG, EDITED, {"accepted": False, "reasons": ("other",), "remark": "No."})
people, drafts, words = st.sampled_from(PEOPLE), st.sampled_from(list(BASES)), st.sampled_from(WORDS)


class Annotating(RuleBasedStateMachine):
    """What was said is kept beside the store, in plain lists, and compared after every step."""

    names = itertools.count()

    @classmethod
    def open_records(cls):
        # One database for all examples, each with a dataset of its own: making tables takes longer than an example.
        cls.folder = tempfile.TemporaryDirectory(prefix="climassay-")
        cls.records = Records(f"sqlite:///{cls.folder.name}/records.sqlite")

    @initialize(overlap=st.integers(1, 3))
    def start(self, overlap):
        self.dataset = f"silver-{next(self.names)}"
        self.datasets = begin(self.records, list(BASES.values()), dataset=self.dataset)
        self.store = AnnotationStore(self.records)
        self.numbers = itertools.count()
        self.said = []  # (number, key, draft, who, adjudicates) of what still counts
        self.skipped = []  # (number, draft, who)
        self.keys = set()
        self.configure(overlap)

    def note(self, key, draft, who, adjudicates):
        self.said = [one for one in self.said if one[2:] != (draft, who, adjudicates)]
        self.said.append((next(self.numbers), key, draft, who, adjudicates))
        self.skipped = [one for one in self.skipped if one[1:] != (draft, who)]
        self.keys.add(key)

    @rule(who=people)
    def ask(self, who):
        item = self.store.next(self.dataset, who)
        if item is not None:
            assert item.state == "open"
            assert (item.draft.id, who) not in [one[1:] for one in self.skipped]
            assert who not in [label.annotator for label in item.labels]

    @rule(who=people, draft=drafts, verdict=words, again=st.booleans())
    def label(self, who, draft, verdict, again):
        key = f"{who}-{len(self.keys)}"
        try:
            stored = self.store.label(self.dataset, Label(draft, who, key=key, **verdict))
        except InputError as error:
            if "reserved for others" in str(error):
                return
            raise
        assert stored
        self.note(key, draft, who, False)
        if again:
            assert not self.store.label(self.dataset, Label(draft, who, key=key, **VALID))

    @rule(who=people, draft=drafts, verdict=words)
    def adjudicate(self, who, draft, verdict):
        key = f"decided-{len(self.keys)}"
        if self.store.item(self.dataset, draft).state != "open":
            assert self.store.label(self.dataset, Label(draft, who, key=key, **verdict, adjudicates=True))
            self.note(key, draft, who, True)

    @rule(who=people, draft=drafts)
    def skip(self, who, draft):
        if not any(one[2:4] == (draft, who) for one in self.said):
            self.store.skip(self.dataset, draft, who)
            self.skipped = [one for one in self.skipped if one[1:] != (draft, who)]
            self.skipped.append((next(self.numbers), draft, who))

    @rule(who=people)
    def undo(self, who):
        mine = [(one[0], one[2], one) for one in self.said if one[3] == who]
        mine += [(one[0], one[1], one) for one in self.skipped if one[2] == who]
        _, draft, last = max(mine, default=(0, None, None))
        assert self.store.undo(self.dataset, who) == draft
        self.said = [one for one in self.said if one is not last]
        self.skipped = [one for one in self.skipped if one is not last]

    @rule(overlap=st.integers(1, 3))
    def configure(self, overlap):
        self.overlap = overlap
        self.store.configure(self.dataset, AnnotationSettings(overlap=overlap))

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def the_labels_alone_decide(self):
        everything = self.store.labels(self.dataset, current=False)
        assert sorted(label.key for label in everything) == sorted(self.keys)
        current = [label for label in everything if label.withdrawn_at is None]
        assert [label.key for label in current] == [one[1] for one in self.said]
        outcomes = {
            name: decide_outcome([label for label in current if label.draft == name], self.overlap, base.wording)
            for name, base in BASES.items()
        }
        for draft in self.datasets.drafts(self.dataset):
            outcome = outcomes[draft.id]
            assert draft.decisions == (() if outcome.decision is None else (outcome.decision,))
            assert draft.wording == (outcome.wording or BASES[draft.id].wording)
        states = {item.draft.id: item.state for item in self.store.items(self.dataset)}
        assert states == {name: outcome.state for name, outcome in outcomes.items()}
        self.nobody_is_given_what_enough_others_have(states)

    def nobody_is_given_what_enough_others_have(self, states):
        kept = (
            sa.select(leases.c.draft, sa.func.count())
            .where(leases.c.dataset == self.dataset, leases.c.expires_at > time.time())
            .group_by(leases.c.draft)
        )
        with self.records.database.read() as connection:
            counts = connection.execute(kept).tuples().all()
        for draft, count in counts:
            if states[draft] == "open":
                assert count + sum(one[2] == draft and not one[4] for one in self.said) <= self.overlap


Annotating.TestCase.settings = settings(stateful_step_count=12)


class TestAnnotating(Annotating.TestCase):
    """The machine, on a database that is made once."""

    @classmethod
    def setUpClass(cls):
        Annotating.open_records()

    @classmethod
    def tearDownClass(cls):
        Annotating.records.close()
        Annotating.folder.cleanup()
