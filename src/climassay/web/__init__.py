"""Web application: experts annotate drafts, users check claims and ask questions, visitors see results.

See docs/web.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
