import subprocess
import sys

CODE = """
import sys
import climassay.metrics.cloze, climassay.metrics.factual_accuracy, climassay.metrics.overlap
from climassay import metrics
missing = [name for name in metrics.__all__ if getattr(metrics, name, None) is None]
modules = [name for name in metrics.__all__ if type(getattr(metrics, name)).__name__ == "module"]
heavy = sorted({"torch", "transformers", "nltk", "sacrebleu", "onnxruntime", "sklearn", "lancedb"} & set(sys.modules))
print(missing, modules, heavy)
"""


def test_every_public_name_is_there_and_none_is_hidden_by_its_module_or_costs_a_heavy_import():
    # A process of its own: what other tests have imported would hide what this import costs.
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] [] []"
