"""Run every comparison in turn: ``python -m bench``, or some of them: ``python -m bench noise``.

Each prints ratios measured in one run. All of them together take the better part of an hour;
other tools are compared with where they are installed and left out, with a word, where not.
"""

import subprocess
import sys
from pathlib import Path

NAMES = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))


def main():
    chosen = sys.argv[1:] or NAMES
    unknown = set(chosen) - set(NAMES)
    if unknown:
        sys.exit(f"no comparison called {', '.join(sorted(unknown))}; there are: {' '.join(NAMES)}")
    failed = []
    for name in chosen:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
