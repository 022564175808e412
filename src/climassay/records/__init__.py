"""Database of requests, answers, runs and results. After an interruption, only unanswered requests are sent again."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
