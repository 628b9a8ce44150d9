"""How long workbooks and SPSS files take to read, and what another reader of workbooks would take.

    python bench/workbooks.py [--persons 20000] [--items 60]

Writes the same answers as .csv, .xlsx and .sav into a temporary folder and reads each with
`discreet.read_responses`; then reads the workbook with python-calamine alone and, where it is
installed, with fastexcel. Each in a fresh process; prints seconds and peak memory (Linux).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import xlsxwriter

PEAK = """
import re, sys, time
from pathlib import Path
start = time.perf_counter()
{0}
took = time.perf_counter() - start
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1)) / 1024
print(f"{{took:8.2f}} s {{peak:8.0f}} MB")
"""
OURS = "import discreet; discreet.read_responses(sys.argv[1])"
CALAMINE = (
    "from python_calamine import load_workbook as load; "
    "load(sys.argv[1]).get_sheet_by_index(0).to_python()"
)
FASTEXCEL = (
    "import fastexcel; "
    "fastexcel.read_excel(sys.argv[1]).load_sheet(0, header_row=None, dtypes='string').to_arrow()"
)


def write_files(folder: Path, persons: int, items: int) -> None:
    cells = np.random.default_rng(1).integers(0, 2, (persons, items))
    frame = pd.DataFrame(cells.astype(float), columns=[f"Q{n}" for n in range(items)])
    frame.insert(0, "id", [f"p{n}" for n in range(persons)])
    frame.to_csv(folder / "answers.csv", index=False)
    pyreadstat.write_sav(frame, str(folder / "answers.sav"))
    with xlsxwriter.Workbook(folder / "answers.xlsx", {"constant_memory": True}) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, list(frame.columns))
        for number, row in enumerate(frame.itertuples(index=False), start=1):
            sheet.write_row(number, 0, row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=60)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        write_files(Path(place), asked.persons, asked.items)
        runs = [(f"discreet, {kind}", OURS, kind) for kind in ("csv", "xlsx", "sav")]
        runs += [
            ("python-calamine alone", CALAMINE, "xlsx"),
            ("fastexcel alone", FASTEXCEL, "xlsx"),
        ]
        for name, code, kind in runs:
            done = subprocess.run(
                [sys.executable, "-c", PEAK.format(code), f"{place}/answers.{kind}"],
                capture_output=True,
                text=True,
                check=False,
            )
            print(f"{name:24}{done.stdout.strip() or 'not installed'}")


if __name__ == "__main__":
    main()
