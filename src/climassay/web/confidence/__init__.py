"""Checking how a text states its certainty, in the browser; nothing that is sent is kept."""

from climassay.web.confidence.texts import router

__all__ = ["router"]
