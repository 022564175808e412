"""The web application over one workspace."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from climassay import __version__
from climassay.web.access import check_csrf
from climassay.web.failures import add_failures
from climassay.web.place import Place
from climassay.web.protection import BodyLimit, Frontage, SafeHeaders
from climassay.web.public_view import PublicView
from climassay.web.visitors import Turns

AREAS = (
    "annotate",
    "api",
    "checks",
    "confidence",
    "entrance",
    "working",
    "library",
    "results",
)
"""Packages of this room; each has a ``router`` and perhaps ``register(place)``."""


class _Assets(StaticFiles):
    """Files whose address changes with their content, so that browsers may keep them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        if scope["query_string"].startswith(b"v="):
            answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return answer


def create_app(place: Place) -> FastAPI:
    """The application.

    Args:
        place: The workspace and the settings; it is closed by whoever opened it, its jobs begin with the application.
    """

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        place.jobs.start(place)
        yield
        place.jobs.close()

    app = FastAPI(
        title="climassay",
        version=__version__,
        lifespan=life,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        routes=_routes(),
    )
    app.state.place = place
    for name in AREAS:
        area = import_module(f"climassay.web.{name}")
        if hasattr(area, "register"):
            area.register(place)
    app.mount("/static", _Assets(directory=Path(str(files("climassay.web") / "static"))), name="static")
    add_failures(app)
    app.add_middleware(PublicView, place=place)
    app.add_middleware(Turns, place=place)
    app.add_middleware(BodyLimit, place=place)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(place.settings.hosts))
    app.add_middleware(Frontage, prefix=place.settings.prefix)
    app.add_middleware(SafeHeaders, https=place.settings.https)
    return app


@cache
def _routes() -> list[BaseRoute]:
    """The routes of all areas, shared by the applications of a process: FastAPI takes 0.3 s to prepare them."""
    areas = APIRouter(dependencies=[Depends(check_csrf)])
    for name in AREAS:
        areas.include_router(import_module(f"climassay.web.{name}").router)
    return areas.routes
