"""Time `rooflens --help` against importing click: the ratio shows the cost of the command line.

Run with `make bench`. Both are whole processes, timed in turn on this machine; quote the ratio, not the seconds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 15
LIMIT = 2.0
COMMANDS = {
    "rooflens --help": [sys.executable, "-m", "rooflens", "--help"],
    "import click": [sys.executable, "-c", "import click"],
}


def seconds(command: list[str]) -> float:
    """Run a command once and return its wall time."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Print the median of each command and their ratio."""
    timings: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(RUNS):
        for name, command in COMMANDS.items():
            timings[name].append(seconds(command))
    medians = {name: statistics.median(times) for name, times in timings.items()}
    for name, median in medians.items():
        print(f"{name:<16} {median * 1e3:6.1f} ms")
    ratio = medians["rooflens --help"] / medians["import click"]
    print(f"ratio            {ratio:6.2f}    (limit {LIMIT})")


if __name__ == "__main__":
    main()
