"""Durable store of requests, runs and results: kill the process anywhere, and only what is missing is asked again."""

from climassay.records.recorded import RecordedModel, Tally
from climassay.records.store import Records, Run

__all__ = ["RecordedModel", "Records", "Run", "Tally"]
