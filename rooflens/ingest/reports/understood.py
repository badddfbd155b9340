"""Account for the stored names: the quantities read from them, and the names that nothing reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import Struct

from rooflens.ingest.metrics import code, series
from rooflens.ingest.metrics.stored import THREAD_TABLES, WARP_TABLE
from rooflens.ingest.reports.report import ReadReport
from rooflens.ingest.reports.resolve import plan_for
from rooflens.ingest.reports.results import stall_names

_BESIDE: Mapping[str, Callable[[str], bool]] = {
    "thread instructions by opcode": lambda name: name in THREAD_TABLES,
    "warp instructions by opcode": lambda name: name == WARP_TABLE,
    "operations of the tensor cores": lambda name: name.startswith("sm__ops_path_tensor_"),
    "samples of waiting warps": lambda name: bool(stall_names((name,))),
    "hot lines of the code": lambda name: code.uses(name) or code.needs(name),
    "the run over time": series.uses,
}
"""What is read outside the table of counters -> whether it uses a name."""
_UNASKED = re.compile(
    r"(device|launch|profiler|numa|nvlink|c2clink)__|smsp__pcsamp_|pmsampling:|breakdown:|group:|(\w+\.)?Triage"
)
"""Metrics that ncu always stores, and its lists of other names: users did not ask for these."""


class Understood(Struct, frozen=True):
    """The stored names of a report.

    Attributes:
        used: Quantity -> the names or formulas that it was read from, over all kernels.
        unread: Names that the user collected but nothing reads.
    """

    used: Mapping[str, tuple[str, ...]]
    unread: tuple[str, ...]


def understood(report: ReadReport) -> Understood:
    """Sort the stored names of a report that was read with all raw values."""
    tables = [table for table in (report.raw, report.instances) if table is not None]
    names = tuple(sorted({name for table in tables for name in table["name"].unique().to_pylist()}))
    used: dict[str, dict[str, None]] = {}
    for kernel in report.kernels:
        for quantity, source in kernel.counter_sources.items():
            used.setdefault(quantity, {})[source] = None
    for what, is_read in _BESIDE.items():
        if found := dict.fromkeys(filter(is_read, names)):
            used[what] = found
    words = {word.strip("()") for sources in used.values() for source in sources for word in source.split()}
    readable = {need for step in plan_for(names)[0] for way in step.ways for need in (*way.needs, *way.by)}
    unread = (name for name in names if name not in words and name not in readable)
    return Understood(
        used={quantity: tuple(sources) for quantity, sources in used.items()},
        unread=tuple(name for name in unread if not _UNASKED.match(name)),
    )
