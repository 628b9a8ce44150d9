"""Draw every figure, one after another, or those that are named.

python -m experiments [NAME ...] [--quick] [--trials N]
python -m experiments NAME --help                        every option
"""

from __future__ import annotations

import subprocess
import sys
from time import monotonic

FIGURES = (
    "theory_entrywise",
    "theory_topk",
    "theory_fixed_items",
    "synthetic",
    "lsat",
    "three_grades",
    "uci",
    "films",
    "ten_items",
    "edge_probability",
    "time_complexity",
    "private_entrywise",
    "high_privacy",
    "graph_amplification",
    "comparisons",
    "steps",
    "ablation",
    "authors",
    "random_pairing",
)
"""One script each. To add a figure: a script and a line here and in the README."""


def main() -> int:
    words = sys.argv[1:]
    first = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    named, options = words[:first], words[first:]
    if not named and {"-h", "--help"} & set(options):
        print(f"{__doc__}\nFigures: {', '.join(FIGURES)}")
        return 0
    unknown = [name for name in named if name not in FIGURES]
    if unknown:
        print(f"there is no figure {unknown[0]!r}; choose from: {', '.join(FIGURES)}",
              file=sys.stderr)  # fmt: skip
        return 2
    failed = []
    for name in named or FIGURES:
        print(f"--- {name}", flush=True)
        started = monotonic()
        # Each in a process of its own, so that one that fails does not take the others along.
        command = [sys.executable, "-m", f"experiments.{name}", *options]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
        print(f"    {monotonic() - started:.0f} s", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
