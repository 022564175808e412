"""Annotation: experts' labels of drafts, stored so that no acknowledged label is lost or duplicated.

Manivannan et al. 2025 (ClimaQA), section 4.3 and appendix A.5. See docs/annotation.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
