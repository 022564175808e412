"""Judge which of two texts has more of a quality: PairS, probes on contrast pairs, sorting and insertion.

The methods of PairS (Liu et al. 2024) and PPairS (Maiya 2024) are computed with one pass over a tree of shared prompts
instead of two passes per pair, and with exact merges. They are evaluated on folds that share no item, and compared with
baselines. See docs/judging.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
