"""The document of the API, and the page that shows it to people."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from climassay.web.api.document import api_document
from climassay.web.api.explained import explained
from climassay.web.api.routing import WHY
from climassay.web.pages import page
from climassay.web.place import Place, PlaceHere

router = APIRouter(prefix="/api", include_in_schema=False)


@router.get("/openapi.json")
def show_document(place: PlaceHere) -> Response:
    """OpenAPI 3.1; open to everybody, for it holds no data."""
    return JSONResponse(document_of(place))


@router.get("/docs")
def show_reference(request: Request, place: PlaceHere) -> Response:
    """The same for people: every operation with its fields and examples."""
    made = place.shared("api:explained", lambda: explained(document_of(place)))
    return page(request, "api/reference.html.j2", api=made, failures=sorted(WHY.items()))


def document_of(place: Place) -> dict[str, Any]:
    """The document of a server, made once."""
    from climassay.web.api import OPERATIONS

    return place.shared("api:document", lambda: api_document(OPERATIONS, place.settings.root))
