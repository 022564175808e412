"""Generation: from books to a published benchmark, with a validator that learns from experts (ClimaGen).

Manivannan et al. 2025 (ClimaQA), section 4 and appendices A.4 and A.5. See docs/generation.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
