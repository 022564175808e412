"""The web application: experts annotate, anyone checks a claim, everyone sees results. See docs/web.md."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.web.app_state import AppState
    from climassay.web.application import create_app
    from climassay.web.settings import ServerSettings

_MODULE_OF = {"AppState": "app_state", "ServerSettings": "settings", "create_app": "application"}

__all__ = ["AppState", "ServerSettings", "create_app"]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
