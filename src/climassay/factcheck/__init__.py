"""Fact-checking by debate: advocates with an authority each, a mediator, verdicts with citations (CLIMINATOR).

Leippold et al. (2024), arXiv 2401.12566. See docs/factcheck.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
