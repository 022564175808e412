"""The same work on more than one machine: models and encoders whose weights are in the workers of a Ray cluster."""

from climassay.distributed.cluster import ClusterOptions
from climassay.distributed.encoder import DistributedEncoder
from climassay.distributed.model import DistributedModel
from climassay.distributed.pool import Windows, WorkerPool, open_pool

__all__ = ["ClusterOptions", "DistributedEncoder", "DistributedModel", "Windows", "WorkerPool", "open_pool"]
