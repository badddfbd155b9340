"""From a trace to a line of code: which kernel can save most time, where it is launched, and where its time goes.

python examples/trace_to_line.py step.json.gz                    # before anything is profiled
python examples/trace_to_line.py step.json.gz kernels.ncu-rep    # with the report that the first run asked for
"""

# ruff: noqa: INP001, T201 - a script of a user's, no package, and it prints

from __future__ import annotations

import sys

import rooflens as rl

SHOWN = 3
LINES = 2


def tell(trace: str, reports: list[str]) -> None:
    """Print the kernels that can save most; for those in a report also what to do, and the lines that wait most."""
    opened = rl.open(*reports) if reports else None
    program = rl.trace(trace, opened or ())
    for kernel in program.kernels[:SHOWN]:
        won = "nobody knows how much" if kernel.gain_ns is None else f"{kernel.gain_ns / 1e3:.0f} us"
        print(f"{kernel.function}: {kernel.time_ns / 1e3:.0f} us, to win {won}")
        print(f"  launched by {kernel.operator} in {kernel.module} at {kernel.code}")
        if opened is None or kernel.measured is None:
            print("  not profiled yet")
            continue
        profiled = opened[kernel.measured.key][0]
        for move in profiled.moves[:1]:
            print(f"  first: {move.text}")
        for spot in profiled.hotspots(by="line")[:LINES]:
            print(f"  line: {spot.file}:{spot.line}")
    for kernel in program.next:
        print(f"next: rooflens profile --kernel {kernel.function} -- PROGRAM")


if __name__ == "__main__":
    tell(sys.argv[1], sys.argv[2:])
