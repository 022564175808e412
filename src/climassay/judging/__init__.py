"""Judging: which of two texts has more of a quality, by pairs, probes on contrast pairs, sorting and insertion.

PairS (Liu et al. 2024) and PPairS (Maiya 2024), computed without waste and measured honestly: one pass over a tree of
shared prompts instead of two passes per pair, exact merges, folds that share no item, and baselines that have to be
beaten. See docs/judging.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
