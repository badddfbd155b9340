"""Time rooflens over reports of 1 to 100,000 kernels beside a loop over NVIDIA's `ncu_report`, and `ncu --import`.

    python benchmarks/ingest.py [--like REPORT]... [--sizes 1,154,10000] [--runs 3]

Each line is one way to read one file, in a process of its own: CPU seconds of it and its children, the least of the
runs; kernels per CPU second; peak memory of the largest process; and the ratio to `ncu_report` reading every value.
The ways take turns, so that other load affects all of them: quote the ratios. If `ncu` is installed and opens the
file, its output is compared with what we read, value by value; the exit status is 1 if they differ.

Large files are made from a report by repeating its blocks of results, byte by byte. Without `--like`, reports contain
what the standard tier stores for a kernel.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.ncu_rep_writer import KernelSpec, ReportSpec, encode_report
from support.tier_metrics import stored_metrics

from rooflens.ingest.messages.messages import message
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NUMBER = re.compile(r"-?[\d,]+(?:\.\d+)?")

MAGIC_BYTES, LENGTH_BYTES = 4, 4

VALUES = """
import sys, ncu_report
context = ncu_report.load_report(sys.argv[1])
for of in range(context.num_ranges()):
    for kernel in range(context.range_by_idx(of).num_actions()):
        action = context.range_by_idx(of).action_by_idx(kernel)
        for name in action.metric_names():
            metric = action.metric_by_name(name)
            metric.value()
"""
"""Every value of a report, as a script of a user would read them."""

INSTANCES = """            for i in range(metric.num_instances()):
                metric.value(i)
"""

BASE = "ncu_report, values"


class Way(Struct, frozen=True):
    """A way to read a report; `{report}`, `{store}` and `{page}` in its command are replaced.

    Attributes:
        reads_store: It reads the store that the way before it made.
    """

    name: str
    command: tuple[str, ...]
    reads_store: bool = False


ROOFLENS = (sys.executable, "-m", "rooflens")

WAYS = (
    Way(BASE, (sys.executable, "-c", VALUES, "{report}")),
    Way("ncu_report, + instances", (sys.executable, "-c", VALUES + INSTANCES, "{report}")),
    Way("ncu --page raw --csv", ("ncu", "--import", "{report}", "--page", "raw", "--csv")),
    Way("analyze --format json", (*ROOFLENS, "analyze", "--format", "json", "{report}")),
    Way("ingest", (*ROOFLENS, "ingest", "{report}", "--store", "{store}")),
    Way("analyze --store", (*ROOFLENS, "analyze", "--format", "json", "--store", "{store}"), reads_store=True),
    Way("report", (*ROOFLENS, "report", "{report}", "--output", "{page}", "--force")),
)


class Cost(Struct, frozen=True):
    """The cost of one run."""

    cpu_s: float
    peak_bytes: int


def main() -> int:
    """Make the files and print a line for each way over each of them; return 1 if ncu prints other values."""
    options = _options()
    ways = [way for way in WAYS if shutil.which(way.command[0])]
    if len(ways) < len(WAYS):
        print("ncu is not installed: its own export is left out\n")
    differ = 0
    sources = {path.name: path.read_bytes() for path in options.like} or {"standard tier": standard_report()}
    print(f"{'kernels':>9} {'MB':>8}  {'way':<24} {'CPU':>9} {'kernels/s':>10} {'peak':>9} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as name:
        for title, source in sources.items():
            print(title)
            for size in options.sizes:
                folder = Path(tempfile.mkdtemp(dir=name))
                report = folder / "report.ncu-rep"
                kernels = write_repeated(report, source, size)
                printed = printed_by_ncu(report) if len(ways) == len(WAYS) else None
                opens = [way for way in ways if printed is not None or way.command[0] != "ncu"]
                show(kernels, report, measure(opens, folder, options.runs))
                if printed is not None:
                    differ += compare_values(report, printed)
                shutil.rmtree(folder)
    return 1 if differ else 0


def printed_by_ncu(report: Path) -> str | None:
    """Return NVIDIA's own export of a report in base units; None if its version does not open it."""
    command = ["ncu", "--import", report, "--page", "raw", "--csv", "--print-units", "base"]
    done = subprocess.run(command, capture_output=True, check=False, text=True, errors="replace")
    return None if done.returncode else done.stdout


def compare_values(report: Path, printed: str) -> int:
    """Compare each number printed by ncu with the one we read, to half of its last digit; count the differences."""
    ours: dict[tuple[int, str], float] = {}
    table = read_report(report, "report", ReadOptions(reader="direct", raw="values")).raw
    for row in table.to_pylist() if table is not None else ():
        number = row["value_double"] if row["value_double"] is not None else row["value_uint64"]
        if number is not None:
            ours[row["kernel_index"], row["name"]] = float(number)
    header, _, *rows = csv.reader(printed.splitlines())
    compared, unknown, different = 0, 0, list[str]()
    for row in rows:
        for name, text in zip(header, row, strict=True):
            if "__" not in name or not _NUMBER.fullmatch(text):
                continue
            value = ours.get((int(row[0]), name))
            unknown += value is None
            if value is not None:
                compared += 1
                digits = len(text.partition(".")[2])
                apart = abs(value - float(text.replace(",", "")))
                if apart > 0.5 * 10.0**-digits + 1e-15 * abs(value):  # a half may be rounded either way
                    different.append(f"{name} of {row[0]}: ncu prints {text}, we read {value!r}")
    print(f"{'':20}{compared:,} values as ncu prints them, {len(different)} other ones, {unknown} that we do not read")
    for line in different[:10]:
        print(f"{'':20}{line}")
    return len(different)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--like", type=Path, action="append", default=[], metavar="REPORT", help="report to repeat")
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=[1, 154, 10_000])
    parser.add_argument("--runs", type=int, default=3)
    return parser.parse_args()


def standard_report(kernels: int = 154) -> bytes:
    """Make a report with what the standard tier stores for a kernel, each kernel with other values."""
    stored = stored_metrics("gh100", "standard")
    specs = [
        KernelSpec(
            f"void kernel_{i % 20}<{i}>(float*, int)",
            {name: value * (1 + i / 1000) if isinstance(value, float) else value for name, value in stored.items()},
        )
        for i in range(kernels)
    ]
    return encode_report(ReportSpec(specs))


def write_repeated(path: Path, source: bytes, kernels: int) -> int:
    """Write a report of this many kernels, or more, up to the last block of results; return how many."""
    blocks = list(_blocks(source))
    repeated = [block for block in blocks if block[1]]
    found = 0
    with path.open("wb") as file:
        file.write(source[: len(source) - sum(len(block) for block, _ in blocks)])
        for block, results in blocks:
            if not results or found < kernels:
                file.write(block)
                found += results
        for block, results in cycle(repeated):
            if found >= kernels:
                break
            file.write(block)
            found += results
    return found


def _blocks(source: bytes) -> Iterator[tuple[bytes, int]]:
    """Cut a report into its blocks, each with its number of kernels."""
    begin = MAGIC_BYTES + LENGTH_BYTES + _length_at(source, MAGIC_BYTES)
    while begin < len(source):
        end = begin + LENGTH_BYTES + _length_at(source, begin)
        header = message("BlockHeader").FromString(source[begin + LENGTH_BYTES : end])
        end += header.PayloadSize
        yield source[begin:end], header.NumResults
        begin = end


def _length_at(source: bytes, offset: int) -> int:
    return int.from_bytes(source[offset : offset + LENGTH_BYTES], "little")


def measure(ways: Sequence[Way], folder: Path, runs: int) -> dict[str, Cost]:
    """Run the ways in turn; keep the least CPU time and the most memory of each."""
    best: dict[str, Cost] = {}
    for _ in range(runs):
        for way in ways:
            cost = run(way, folder)
            known = best.get(way.name, cost)
            best[way.name] = Cost(min(known.cpu_s, cost.cpu_s), max(known.peak_bytes, cost.peak_bytes))
    return best


def run(way: Way, folder: Path) -> Cost:
    """Run a way once in a process of its own."""
    store, places = folder / "store", {"{report}": folder / "report.ncu-rep", "{page}": folder / "page.html"}
    if not way.reads_store:
        shutil.rmtree(store, ignore_errors=True)
    command = [str({**places, "{store}": store}.get(part, part)) for part in way.command]
    return Cost(*cpu_and_peak(command))


def cpu_and_peak(command: Sequence[str], **options: Any) -> tuple[float, int]:
    """Run a command; return the CPU seconds of it and its children, and the peak bytes of its largest process.

    Raises:
        SystemExit: It failed.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed with {process.returncode}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def show(kernels: int, path: Path, costs: dict[str, Cost]) -> None:
    """Print a line for each way."""
    base = costs[BASE].cpu_s
    for name, cost in costs.items():
        print(
            f"{kernels:9,} {path.stat().st_size / 1e6:8.1f}  {name:<24} {cost.cpu_s:7.2f} s "
            f"{kernels / cost.cpu_s:10,.0f} {cost.peak_bytes / 1e6:6.0f} MB {cost.cpu_s / base:6.2f}x"
        )


if __name__ == "__main__":
    sys.exit(main())
