import subprocess
import sys

CODE = """
import sys
from climassay import evaluation
early = sorted({"sqlalchemy", "torch", "lancedb", "rich"} & set(sys.modules))
import climassay.evaluation.report, climassay.evaluation.contamination
missing = [name for name in evaluation.__all__ if getattr(evaluation, name, None) is None]
modules = [name for name in evaluation.__all__ if type(getattr(evaluation, name)).__name__ == "module"]
heavy = sorted({"torch", "transformers", "lancedb", "onnxruntime", "sklearn", "rich"} & set(sys.modules))
print(early, missing, modules, heavy)
"""


def test_every_public_name_is_there_and_none_is_hidden_by_its_module_or_costs_a_heavy_import():
    # A process of its own: what other tests have imported would hide what this import costs.
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] [] [] []"
