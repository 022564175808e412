"""Commands as they run where some packages are not installed: their imports fail, and pip's records do not know them.

python tests/without_packages.py PACKAGES COMMANDS    both JSON: a list of names, a list of lists of arguments
prints a JSON list of [exit code, stdout, stderr]
"""

import contextlib
import io
import json
import sys
import traceback
from importlib import metadata
from importlib.abc import MetaPathFinder


class Blocked(MetaPathFinder):
    """Says of some packages that they are not there."""

    def __init__(self, names):
        self.names = {name.replace("-", "_").lower() for name in names}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0].lower() in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide(names):
    """Let nothing of these packages be imported or found."""
    blocked = Blocked(names)
    sys.meta_path.insert(0, blocked)
    real = metadata.distribution

    def distribution(name):
        if name.replace("-", "_").lower() in blocked.names:
            raise metadata.PackageNotFoundError(name)
        return real(name)

    metadata.distribution = distribution


def run(arguments):
    """Exit code, stdout and stderr of a command; an error that reaches nobody is a traceback on stderr, as always."""
    from climassay.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["climassay", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
    return code, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    hide(json.loads(sys.argv[1]))
    print(json.dumps([run(arguments) for arguments in json.loads(sys.argv[2])]))
