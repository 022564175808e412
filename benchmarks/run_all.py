"""Run every benchmark one after the other; each prints its own table.

Usage: python benchmarks/run_all.py [NAME ...]
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> int:
    wanted = sys.argv[1:] or sorted(
        path.stem for path in FOLDER.glob("*.py") if path.stem not in {"run_all", "scaling_simulation"}
    )
    failed = []
    for name in wanted:
        print(f"\n=== {name} ===", flush=True)
        if subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
