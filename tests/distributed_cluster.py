"""A Ray cluster of two nodes on this machine, with stores so small that any machine has room for them."""

import os
from contextlib import contextmanager
from pathlib import Path

STORE = 80 * 1024 * 1024


@contextmanager
def two_nodes():
    """The cluster; its workers find the modules of the tests."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_worker_niceness", "0")
    path, own = os.environ.get("PYTHONPATH"), str(Path(__file__).parent)
    os.environ["PYTHONPATH"] = own if path is None else f"{own}{os.pathsep}{path}"
    from ray.cluster_utils import Cluster

    cluster = _started(Cluster)
    try:
        yield cluster
    finally:
        cluster.shutdown()
        if path is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = path


def _started(make, attempts=3):
    """Both nodes; Ray gives each of them 30 seconds, which is not always enough on a machine that runs other tests."""
    node = {"num_cpus": 1, "object_store_memory": STORE}
    cluster = None
    try:
        cluster = make(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        cluster.add_node(**node)
    except Exception:
        if cluster is not None:
            cluster.shutdown()
        if attempts == 1:
            raise
        return _started(make, attempts - 1)
    return cluster
