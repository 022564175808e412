"""The same work on more than one machine: models and encoders whose weights are in the workers of a Ray cluster."""

from climassay.distributed.cluster import ClusterOptions
from climassay.distributed.pool import Windows, WorkerPool, open_pool
from climassay.distributed.remote import DistributedEncoder, DistributedModel

__all__ = ["ClusterOptions", "DistributedEncoder", "DistributedModel", "Windows", "WorkerPool", "open_pool"]
