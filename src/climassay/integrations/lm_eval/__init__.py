"""Tasks for lm-evaluation-harness: YAML files from one template, and the functions that score what models write."""

from climassay.integrations.lm_eval.results import cloze_results, freeform_results, letter_results
from climassay.integrations.lm_eval.tasks import HarnessTask, harness_files, harness_tasks

__all__ = ["HarnessTask", "cloze_results", "freeform_results", "harness_files", "harness_tasks", "letter_results"]
