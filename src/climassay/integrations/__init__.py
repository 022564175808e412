"""Publishing a benchmark to other evaluation frameworks: Inspect and lm-evaluation-harness.

One source for all routes: the questions, the prompt templates and the parsers of climassay. See docs/integrations.md.
"""

from climassay.integrations.benchmark import Benchmark, open_benchmark
from climassay.integrations.publishing import PublishedBenchmark, publish_benchmark

__all__ = ["Benchmark", "PublishedBenchmark", "open_benchmark", "publish_benchmark"]
