"""Print a details export as ncu prints it for people: column widths, lines of dashes, rules at 120 columns."""

from __future__ import annotations

import csv
import io
import textwrap
from itertools import groupby

_WIDTH = 120
_HEADINGS = ("Metric Name", "Metric Unit", "Metric Value")
_DISPLAYED = {
    "SpeedOfLight": "GPU Speed Of Light Throughput",
    "SpeedOfLight_RooflineChart": "GPU Speed Of Light Roofline Chart",
    "ComputeWorkloadAnalysis": "Compute Workload Analysis",
    "MemoryWorkloadAnalysis_Chart": "Memory Workload Analysis Chart",
    "MemoryWorkloadAnalysis_Tables": "Memory Workload Analysis Tables",
    "SchedulerStats": "Scheduler Statistics",
    "WarpStateStats": "Warp State Statistics",
    "InstructionStats": "Instruction Statistics",
    "LaunchStats": "Launch Statistics",
    "SourceCounters": "Source Counters",
    "WorkloadDistribution": "GPU and Memory Workload Distribution",
    "Occupancy": "Occupancy",
}
"""Section of a rule -> its name on the page; a rule follows the table of its section."""


def printed(export: str, *, is_plain: bool = False) -> str:
    """Return the text of a details export.

    Args:
        export: As `ncu --page details --csv` printed it.
        is_plain: Print the layout of 2019 and 2020: no headings, fixed columns.
    """
    lines = []
    rows = list(csv.DictReader(io.StringIO(export)))
    process = None
    for _, group in groupby(rows, key=lambda row: row["ID"]):
        own = list(group)
        first = own[0]
        if process != first["Process ID"]:
            process = first["Process ID"]
            lines.append(f"[{process}] {first['Process Name']}@{first['Host Name']}")
        where = f"Context {first['Context']}, Stream {first['Stream']}"
        if is_plain:
            lines.append(f"  {first['Kernel Name']}, 2020-Jul-28 06:48:36, {where}")
        else:
            sizes = f"{first['Grid Size']}x{first['Block Size']}"
            lines.append(f"  {first['Kernel Name']} {sizes}, {where}, Device {first['Device']}, CC {first['CC']}")
        for section, part in groupby(own, key=lambda row: _DISPLAYED.get(row["Section Name"], row["Section Name"])):
            lines += [f"    Section: {section}", *_section(list(part), is_plain=is_plain), ""]
        lines.append("")
    return "\n".join(lines)


def _section(rows: list[dict[str, str]], *, is_plain: bool) -> list[str]:
    metrics = [tuple(row[name] or "" for name in _HEADINGS) for row in rows if row["Metric Name"]]
    lines = _table(metrics, is_plain=is_plain) if metrics else []
    rules = [row for row in rows if row.get("Rule Name")]
    for place, row in enumerate(rules):
        lines += [f"    {'-' * 5} {'-' * 110}"] if place else [""] if metrics and not is_plain else []
        lines += _rule(row)
    return lines


def _table(metrics: list[tuple[str, ...]], *, is_plain: bool) -> list[str]:
    widths = [70, 15, 30] if is_plain else [max(map(len, column)) for column in zip(_HEADINGS, *metrics, strict=True)]
    rule = "    " + " ".join("-" * width for width in widths)
    body = [f"    {name:<{widths[0]}} {unit:>{widths[1]}} {value:>{widths[2]}}" for name, unit, value in metrics]
    head = "    {:<{}} {:>{}} {:>{}}".format(*(x for pair in zip(_HEADINGS, widths, strict=True) for x in pair))
    return [rule, *body, rule] if is_plain else [rule, head, rule, *body, rule]


def _rule(row: dict[str, str]) -> list[str]:
    speedup = row.get("Estimated Speedup")
    local = "Local " if row.get("Estimated Speedup Type") == "local" else ""
    first = [f"Est. {local}Speedup: {speedup}%"] if speedup else []
    wrapped = textwrap.wrap(row["Rule Description"], _WIDTH - 10, break_long_words=False, break_on_hyphens=False)
    lines = [*first, *wrapped]
    tags = [row["Rule Type"] or "OK", *[""] * (len(lines) - 1)]
    return [f"    {tag:<6}{line:<110}" for tag, line in zip(tags, lines, strict=True)]
