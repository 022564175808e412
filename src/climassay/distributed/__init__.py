"""Models and encoders whose weights are in the workers of a Ray cluster."""

from climassay.distributed.cluster import ClusterOptions as ClusterOptions
from climassay.distributed.pool import BatchSizes as BatchSizes, WorkerPool as WorkerPool, open_pool as open_pool
from climassay.distributed.remote import DistributedEncoder as DistributedEncoder, DistributedModel as DistributedModel
