"""Time `rooflens report` of one small report against its start-up: the interpreter and the command's imports.

Run with `make bench`, or with the path of a report. All are whole processes, timed in turn on this machine: quote the
ratios, not the seconds. A user's first page, without compiled templates in the cache, is timed too.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from subprocess import DEVNULL, run

RUNS = 9
LIMIT_S = 1.0
BEYOND_S = 0.5
SMALL = Path(__file__).parent.parent / "fixtures" / "synthetic" / "sweep_gemm_bf16_1024.synthetic.ncu-rep"
IMPORTS = "import rooflens.analyzing, rooflens.cli.commands.report, rooflens.report.page.page, ncu_report"


def seconds(command: list[str], cache: Path) -> float:
    """Run a command once and return its wall time."""
    start = time.perf_counter()
    run(command, check=True, stdout=DEVNULL, stderr=DEVNULL, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    return time.perf_counter() - start


def main() -> None:
    """Print the median of each, and how much longer a page takes than its start-up."""
    report = Path(sys.argv[1]) if len(sys.argv) > 1 else SMALL
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "kept"
        page = [sys.executable, "-m", "rooflens", "report", str(report), "-o", f"{folder}/page.html", "--force"]
        start = [sys.executable, "-c", IMPORTS]
        for command in (start, page):
            seconds(command, kept)
        timings: dict[str, list[float]] = {"start-up": [], "page": [], "first page": []}
        for i in range(RUNS):
            timings["start-up"].append(seconds(start, kept))
            timings["page"].append(seconds(page, kept))
            timings["first page"].append(seconds(page, Path(folder) / str(i)))
    medians = {name: statistics.median(times) for name, times in timings.items()}
    for name, median in medians.items():
        print(f"{name:<11} {median:5.2f} s, {median / medians['start-up']:.2f}x the start-up")
    beyond_s = medians["page"] - medians["start-up"]
    print(f"beyond start-up {beyond_s:.2f} s (limit {BEYOND_S:g}, and {LIMIT_S:g} for the page, on a quiet machine)")


if __name__ == "__main__":
    main()
