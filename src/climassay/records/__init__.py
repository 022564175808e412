"""Durable store of requests, runs and results: kill the process anywhere, and only what is missing is asked again."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
