"""Durable store of requests, runs and results: kill the process anywhere, and only what is missing is asked again."""

from typing import TYPE_CHECKING

from climassay.registry import export_lazily

if TYPE_CHECKING:
    from climassay.records.recorded import RecordedModel as RecordedModel, RequestCounts as RequestCounts
    from climassay.records.store import Records as Records, Run as Run

export_lazily(__name__)
