"""The cluster that the tests of this folder share, as long as they run in one process and one after the other."""

import importlib.util

import pytest

from distributed_cluster import two_nodes


@pytest.fixture(scope="package")
def cluster():
    """Two nodes of one CPU each."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed (the extra ray brings it)")
    with two_nodes() as running:
        yield running


@pytest.fixture(scope="package")
def address(cluster):
    """What --ray takes."""
    return cluster.address
