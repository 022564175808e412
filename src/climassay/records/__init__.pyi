from .recorded import RecordedModel as RecordedModel, RequestCounts as RequestCounts
from .store import Records as Records, Run as Run
