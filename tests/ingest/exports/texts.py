"""Texts as ncu prints them, for tests: no recording."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

IDENTITY = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC",
)  # fmt: skip
LONG = (*IDENTITY, "Section Name", "Metric Name", "Metric Unit", "Metric Value")
RULES = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
SAXPY = "void saxpy<float, 4>(T1 *, const T1 *, int)"
SECTION = "Command line profiler metrics"

TIME, SHARE = "gpu__time_duration.sum", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"


def launch(number: int = 0, **given: str) -> dict[str, str]:
    """Make the columns that say which launch a row is of."""
    values = (str(number), "4711", "a.out", "127.0.0.1", SAXPY, "1", "7", "(256, 1, 1)", "(1024, 2, 1)", "0", "8.6")
    return {**dict(zip(IDENTITY, values, strict=True)), **given}


def metric(name: str, unit: str, value: str, section: str = SECTION) -> dict[str, str]:
    """Make the columns of one metric."""
    return {"Section Name": section, "Metric Name": name, "Metric Unit": unit, "Metric Value": value}


def text(columns: Sequence[str], rows: Sequence[Mapping[str, str]], delimiter: str = ",") -> str:
    """Write a table, every cell quoted."""
    stream = io.StringIO()
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n", delimiter=delimiter)
    writer.writerow(columns)
    writer.writerows([row.get(name, "") for name in columns] for row in rows)
    return stream.getvalue()


def long_text(*metrics: Mapping[str, str], launches: int = 1, delimiter: str = ",") -> str:
    """Write a long table with these metrics for each launch."""
    rows = [{**launch(number), **one} for number in range(launches) for one in metrics]
    return text(LONG, rows, delimiter)


def wide_text(metrics: Mapping[str, tuple[str, str]], launches: int = 1, delimiter: str = ",") -> str:
    """Write a raw page: metric -> unit and value, the same for each launch."""
    units = {name: unit for name, (unit, _) in metrics.items()}
    values = {name: value for name, (_, value) in metrics.items()}
    rows = [units, *({**launch(number), **values} for number in range(launches))]
    return text((*IDENTITY, *metrics), rows, delimiter)


BOTH = (metric(TIME, "us", "28.13"), metric(SHARE, "%", "61.84"))
WIDE = {TIME: ("usecond", "28.128000"), SHARE: ("%", "61.843210")}
