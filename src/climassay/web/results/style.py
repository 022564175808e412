"""The style and the script of blocks, which are those of the self-contained reports."""

import hashlib
from functools import cache
from typing import Any

from fastapi import APIRouter, Response

from climassay.reporting.html import block_script, block_style

router = APIRouter(include_in_schema=False)
_KEEP = {"Cache-Control": "public, max-age=31536000, immutable"}


@router.get("/results/blocks.css")
def show_style() -> Response:
    """The style of tables and figures."""
    return Response(block_style(), media_type="text/css", headers=_KEEP)


@router.get("/results/blocks.js")
def show_script() -> Response:
    """The filter of answers."""
    return Response(block_script(), media_type="text/javascript", headers=_KEEP)


@cache
def block_assets() -> dict[str, Any]:
    """Addresses of style and script, which change with their content."""
    files = {"blocks_css": ("blocks.css", block_style()), "blocks_js": ("blocks.js", block_script())}
    return {
        name: f"/results/{file}?v={hashlib.sha256(text.encode()).hexdigest()[:12]}"
        for name, (file, text) in files.items()
    }
