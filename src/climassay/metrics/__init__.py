"""Metrics of an answer, most of them relative to a reference: BLEU, BERTScore, exact match, phrases, entailment, facts.

ClimaQA, section 3.2, with additions of our own. See docs/metrics.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
