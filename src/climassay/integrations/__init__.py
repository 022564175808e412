"""Publish benchmarks for Inspect and lm-evaluation-harness, and evaluate climassay's models in both.

All frameworks get the same questions, prompt templates and parsers. See docs/integrations.md.
"""

from climassay.integrations.benchmark import Benchmark, open_benchmark
from climassay.integrations.publishing import PublishedBenchmark, publish_benchmark

__all__ = ["Benchmark", "PublishedBenchmark", "open_benchmark", "publish_benchmark"]
