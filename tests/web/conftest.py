"""Fixtures of the tests of the web application."""

import pytest

from api_parts import serving


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of the API with content, for a whole file."""
    with serving(tmp_path_factory.mktemp("api")) as made:
        yield made
