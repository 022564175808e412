"""The web application: experts annotate, anyone checks a claim, everyone sees results. See docs/web.md."""

from typing import TYPE_CHECKING

from climassay.registry import export_lazily

if TYPE_CHECKING:
    from climassay.web.app_state import AppState as AppState
    from climassay.web.application import create_app as create_app
    from climassay.web.settings import ServerSettings as ServerSettings

export_lazily(__name__)
