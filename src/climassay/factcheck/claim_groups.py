"""Which claims say the same, so that they never stand on both sides of a split; see :mod:`climassay.metrics`."""

from climassay.metrics.claim_groups import SIMILAR, claim_groups, group_folds, split_claims

__all__ = ["SIMILAR", "claim_groups", "group_folds", "split_claims"]
