"""No file that is read can run code: every load in the sources is looked at, as syntax, not as text."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import climassay

ROOT = Path(climassay.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
RUNNING_MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "imp", "runpy"}
FETCHING_MODULES = {"urllib.request", "requests", "httpx", "http.client", "ftplib", "webbrowser"}
FETCHING_FILES = {
    "corpus/readers/download.py": "fetches the document whose address the user names in place of a file",
    "doctor.py": "asks the server that the user names, and only with --online",
    "grounding/references.py": "asks for the head of an address that a text names, and only with --network",
}
IMPORTING_FILES = {
    "cli/commands.py": "gives its own constants, the modules of the settings that the init commands write",
    "confidence/topics/modelling.py": "gives its own constants, to say which package is missing",
    "io/sandbox.py": "gives the modules of functions that climassay itself calls in a process with limits",
    "registry.py": "gives its own constants, and the modules that a package of climassay itself imports its public "
    "names from; beyond them only entry points of installed packages are loaded",
    "web/application.py": "gives its own constants, the areas of the application",
}
MESSAGING_FILES = {
    "distributed/pool.py": "jobs and answers between the processes of one Ray cluster, which trust each other "
    "by Ray's own design; nothing of it is read from a file (docs/security.md)"
}
MODEL_CLASSES = ("AutoModel", "AutoModelForCausalLM", "AutoModelForSequenceClassification")


def called(node: ast.Call) -> str:
    """The dotted name of what is called, as far as it is written there: ``numpy.load``, ``.from_pretrained``."""
    parts: list[str] = []
    target: ast.expr = node.func
    while isinstance(target, ast.Attribute):
        parts.append(target.attr)
        target = target.value
    parts.append(target.id if isinstance(target, ast.Name) else "")
    return ".".join(reversed(parts))


def given(node: ast.Call, name: str) -> object:
    """A keyword's constant value; ``...`` where it is missing or no constant."""
    values = [keyword.value for keyword in node.keywords if keyword.arg == name]
    return values[0].value if values and isinstance(values[0], ast.Constant) else ...


def own_module(node: ast.Call) -> bool:
    """Whether a module is named by a constant, or is one of the package that asks (lazy names of a room)."""
    first = node.args[0] if node.args else None
    if isinstance(first, ast.JoinedStr) and isinstance(first.values[0], ast.FormattedValue):
        return getattr(first.values[0].value, "id", None) == "__name__"
    return isinstance(first, ast.Constant)


def faults_of_import(names: list[str], place: str) -> Iterator[str]:
    for name in names:
        if name.split(".")[0] in RUNNING_MODULES and place not in MESSAGING_FILES:
            yield f"imports {name}"
        if any(name == one or name.startswith(f"{one}.") for one in FETCHING_MODULES) and place not in FETCHING_FILES:
            yield f"imports {name}, which fetches addresses"


def faults_of_call(node: ast.Call, place: str) -> Iterator[str]:
    name = called(node)
    last = name.rsplit(".", 1)[-1]
    if name in ("eval", "exec", "compile", "__import__", "os.system", "os.popen") or given(node, "shell") not in (
        ...,
        False,
    ):
        yield f"runs text ({name})"
    if last == "import_module" and not own_module(node) and place not in IMPORTING_FILES:
        yield "imports a module by a name that it is given"
    if (last != name and last in ("extract", "extractall")) or name in (
        "shutil.unpack_archive",
        "BERTopic.load",
        "torch.hub.load",
    ):
        yield f"unpacks or loads with {name}"
    if name in ("torch.load", "pandas.read_pickle", "pd.read_pickle"):
        yield f"reads a pickle ({name})"
    if name in ("np.load", "numpy.load") and given(node, "allow_pickle") is not False:
        yield "np.load without allow_pickle=False"
    if name.startswith("yaml.") and last in ("load", "load_all", "full_load", "unsafe_load"):
        yield f"{name} instead of safe_load"
    if any(keyword.arg == "trust_remote_code" for keyword in node.keywords) and given(node, "trust_remote_code"):
        yield "trust_remote_code is not False"
    remote = last == "SentenceTransformer" or (last == "from_pretrained" and "PeftModel" not in name)
    if remote and given(node, "trust_remote_code") is not False:
        yield f"{name} without trust_remote_code=False"
    if (
        last == "from_pretrained"
        and name.split(".")[-2] in MODEL_CLASSES
        and given(node, "use_safetensors") is not True
    ):
        yield f"{name} without use_safetensors=True"
    if last == "snapshot_download" and not any(keyword.arg == "allow_patterns" for keyword in node.keywords):
        yield "snapshot_download of whatever there is"
    if last == "load_dataset" and not (
        node.args and getattr(node.args[0], "value", None) in ("json", "csv", "parquet")
    ):
        yield "load_dataset of a repository, which may bring a script"
    if (
        last in ("Environment", "SandboxedEnvironment")
        and last == "Environment"
        and given(node, "autoescape") is not True
    ):
        yield "an Environment of templates without autoescape=True"


def faults(source: str, place: str = "") -> list[str]:
    """What in a source could run code of strangers, or fetch an address of theirs."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += faults_of_import([alias.name for alias in node.names], place)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += faults_of_import([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)], place)
        elif isinstance(node, ast.Call):
            found += faults_of_call(node, place)
        elif isinstance(node, ast.Dict):
            keys = zip(node.keys, node.values, strict=True)
            found += [
                "trust_remote_code is not False"
                for key, value in keys
                if getattr(key, "value", None) == "trust_remote_code" and getattr(value, "value", True) is not False
            ]
    return found


def test_no_load_in_the_sources_runs_code():
    assert len(SOURCES) > 300
    found = {}
    for file in SOURCES:
        place = file.relative_to(ROOT).as_posix()
        if wrong := faults(file.read_text(encoding="utf-8"), place):
            found[place] = wrong
    assert found == {}


BAD = {
    "pickle": "import pickle", "from": "from joblib import load", "inner": "def f():\n    import cloudpickle as c",
    "torch": "import torch\ntorch.load(path, weights_only=True)", "numpy": "np.load(path)",
    "numpy-true": "np.load(path, allow_pickle=True)", "yaml": "yaml.load(text, Loader=yaml.Loader)",
    "eval": "eval(text)", "shell": "subprocess.run(text, shell=True)",
    "import": "importlib.import_module(config['class'])", "zip": "zipfile.ZipFile(path).extractall(folder)",
    "code": "AutoModel.from_pretrained(name, trust_remote_code=True, use_safetensors=True)",
    "code-unsaid": "AutoTokenizer.from_pretrained(name)",
    "code-variable": "AutoTokenizer.from_pretrained(name, trust_remote_code=wanted)",
    "code-in-options": "options = {'trust_remote_code': True}",
    "bin": "AutoModelForCausalLM.from_pretrained(name, trust_remote_code=False)",
    "encoder": "SentenceTransformer(name)", "hub": "snapshot_download(name)",
    "dataset": "datasets.load_dataset(name)", "fetch": "from urllib.request import urlopen",
    "fetch-2": "import requests", "fetch-3": "from urllib import request", "page": "Environment(loader=loader)",
}  # fmt: skip


@pytest.mark.parametrize("source", BAD.values(), ids=BAD)
def test_the_look_at_the_sources_would_notice(source):
    assert faults(source)


def test_templates_of_prompts_run_in_a_sandbox():
    from climassay.errors import InputError
    from climassay.prompts import Prompt

    for attack in (
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ text.format_map({'a': 1}.__class__) and text.__init__.__globals__ }}",
    ):
        with pytest.raises(InputError):
            Prompt("own", f"[user]\n{attack}", "own").render(text="x")
