from .app_state import AppState as AppState
from .application import create_app as create_app
from .settings import ServerSettings as ServerSettings
