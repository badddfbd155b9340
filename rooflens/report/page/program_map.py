"""The map of a page: its programs or ranges, in each the kernels as wide as their time, and gaps of a timeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from markupsafe import Markup

from rooflens import format as fmt
from rooflens.model.records import ratio
from rooflens.model.summary import KernelSummary, Launch
from rooflens.report.content import Content
from rooflens.report.document import Cell, Strip
from rooflens.report.summary import report_times
from rooflens.report.templates import write_blocks
from rooflens.report.words.program import place_of
from rooflens.report.words.strips import NO_KERNEL, blank, mapped, strip_of

OUTSIDE = "outside of any range"

NEARLY_ALL = 0.99
"""A map in which one kernel takes this part says nothing."""


def program_map(content: Content) -> Markup:
    """Draw where the time of kernels goes as one strip; nothing of versions, without times, or of one kernel."""
    most = max((kernel.time_share or 0.0 for kernel in content.kernels), default=0.0)
    if not content.total_ns or content.ladder or content.ladders_lead or report_times(content) or most >= NEARLY_ALL:
        return Markup()
    what = _choice(content)
    label = f"GPU time by {what} and kernel. The filters above the list and the kernels table do what a click does."
    return write_blocks((mapped([*_strips(content)], label, what),))


def _choice(content: Content) -> str:
    """Say what the strips are: the programs of several reports, else the ranges of one."""
    return "report" if len(content.runs) > 1 else "range"


def _strips(content: Content) -> Iterator[Strip]:
    """Part the time by program or range, in the order of their first launches, then by kernel; gaps stand last."""
    choice = _choice(content)
    held: dict[str, defaultdict[str, list[Launch]]] = {}
    for launch in sorted(content.counted, key=lambda one: int(one.key[1:])):
        report = content.report_labels.get(launch.analysis.kernel.digest, "")
        within = place_of(launch.analysis.kernel.nvtx_range, launch.analysis.in_program)
        place = report if choice == "report" else within
        held.setdefault(place, defaultdict(list))[launch.group_key].append(launch)
    program = content.reports[0].unprofiled if len(content.reports) == 1 else None
    kernel_ns = program.kernel_ns if program else None
    idle_ns = float(program.gap_ns or 0) if program and kernel_ns else 0.0
    others_ns = max(kernel_ns - content.total_ns, 0.0) if kernel_ns else 0.0  # kernels and copies of no report
    whole_ns = content.total_ns + idle_ns + others_ns
    groups = {group.key: group for group in content.kernels}
    for value, by_kernel in held.items():
        cells = [_map_cell(groups[key], own, whole_ns) for key, own in by_kernel.items()]
        label = "" if len(held) == 1 and not value else fmt.cut_middle(value or OUTSIDE, 60)
        if strip := strip_of(label, cells, whole_ns, choice, value):
            yield strip
    yield from blank("not in the report", others_ns, whole_ns, "elsewhere")
    yield from blank(NO_KERNEL, idle_ns, whole_ns, "gap")


def _map_cell(group: KernelSummary, launches: list[Launch], whole_ns: float) -> Cell:
    time_ns = sum(launch.duration_ns or 0.0 for launch in launches)
    won_ns = sum(launch.winnable_ns or 0.0 for launch in launches if launch.analysis.verdict.gain)
    median = group.representative
    shown = (median if median in launches else max(launches, key=lambda one: one.duration_ns or 0.0)).shown_class
    won = ratio(won_ns, time_ns) or 0.0
    told = f"{group.shown}, {fmt.duration(time_ns)}, {shown}"
    told += f", {fmt.percent(won)} can be won by its first move" if won else ""
    return Cell(group.shown, told, time_ns / whole_ns, won, shown, group.representative.key, group.key)
