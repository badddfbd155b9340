"""The map of a page: its programs or ranges, in each the kernels as wide as their time, and gaps of a timeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.records import ratio
from rooflens.model.summary import KernelSummary, Launch
from rooflens.model.unprofiled import Unprofiled
from rooflens.report.content import Content
from rooflens.report.summary import own_reports
from rooflens.report.templates import render
from rooflens.report.words.program import place_of

MOST_STRIPS = 24
LEAST_PART = 0.002
"""Kernels with less of the map's time are left out: nobody would see them."""

WORTH_WORDS = 0.04
"""A strip or cell with less of the map has no room for its name."""

OUTSIDE = "outside of any range"


class Cell(Struct, frozen=True):
    """A kernel within a strip, or a gap.

    Attributes:
        name: Empty where no kernel ran.
        key: Of its median launch; empty where it is no kernel of the page.
        group: Key of the kernel.
        part: Its part of the map's time.
        won: The part of its own time that its first move wins, 0 to 1; 0 where that is unknown.
        bound: Its class; empty where it is no kernel of the page.
    """

    name: str
    key: str
    group: str
    time_ns: float
    part: float
    won: float
    bound: str

    @property
    def has_words(self) -> bool:
        """Whether there is room for its name."""
        return self.part >= WORTH_WORDS


class Strip(Struct, frozen=True):
    """One range or module of a program, or one program, with its kernels, the longest first.

    Attributes:
        choice: The filter that a click sets: `range` or `report`; empty for what the page holds no kernel of.
        value: What that filter takes.
    """

    label: str
    choice: str
    value: str
    time_ns: float
    part: float
    cells: tuple[Cell, ...]


def program_map(content: Content) -> Markup:
    """Draw where the time goes as one strip; nothing for one kernel, for versions of one program, or without times."""
    several = len(content.kernels) > 1
    if not several or not content.total_ns or content.ladder or own_reports(content):
        return Markup()
    strips = list(_strips(content))
    longest = sorted(range(len(strips)), key=lambda place: -strips[place].time_ns)
    return render(
        "report/program_map",
        strips=[strips[place] for place in sorted(longest[:MOST_STRIPS])],
        rest=[strips[place].part for place in longest[MOST_STRIPS:]],
        what={"report": "report", "range": "range"}[_choice(content)],
        won=any(cell.won for strip in strips for cell in strip.cells),
        gaps=any(not strip.choice or not cell.key for strip in strips for cell in strip.cells),
    )


def _choice(content: Content) -> str:
    """Say what the strips are: the programs of several reports, else the ranges of one."""
    return "report" if len(content.runs) > 1 else "range"


def _strips(content: Content) -> Iterator[Strip]:
    """Part the time by program or range, in the order of their first launches, then by kernel; gaps stand last."""
    choice = _choice(content)
    program = _program(content)
    held: dict[str, defaultdict[str, list[Launch]]] = {}
    for launch in sorted(content.counted, key=lambda one: int(one.key[1:])):
        report = content.report_labels.get(launch.analysis.kernel.digest, "")
        place = report if choice == "report" else place_of(launch.analysis)
        held.setdefault(place, defaultdict(list))[launch.group_key].append(launch)
    busy_ns = content.total_ns
    idle_ns, others_ns = _idle_ns(program), _others_ns(program, busy_ns)
    whole_ns = busy_ns + idle_ns + others_ns
    groups = {group.key: group for group in content.kernels}
    for value, by_kernel in held.items():
        cells = [_cell(groups[key], own, whole_ns) for key, own in by_kernel.items()]
        time_ns = sum(cell.time_ns for cell in cells)
        seen = tuple(sorted((one for one in cells if one.part >= LEAST_PART), key=lambda one: -one.time_ns))
        label = "" if len(held) == 1 and not value else fmt.cut_middle(value or OUTSIDE, 60)
        if seen:
            yield Strip(label, choice, value, time_ns, time_ns / whole_ns, seen)
    for label, time_ns in (("kernels that the report lacks", others_ns), ("no kernel ran", idle_ns)):
        if time_ns / whole_ns >= LEAST_PART:
            bound = "" if label == "no kernel ran" else "unknown"
            yield Strip(label, "", "", time_ns, time_ns / whole_ns, (_blank(label, time_ns, whole_ns, bound),))


def _program(content: Content) -> Unprofiled | None:
    """Return what a timeline says of the only program; None where there are several, or none was looked at."""
    return content.reports[0].unprofiled if len(content.reports) == 1 else None


def _idle_ns(program: Unprofiled | None) -> float:
    return max(program.wall_ns - program.kernel_ns, 0.0) if program and program.kernel_ns else 0.0


def _others_ns(program: Unprofiled | None, busy_ns: float) -> float:
    """Return how long kernels and copies ran that the page does not hold."""
    return max(program.kernel_ns - busy_ns, 0.0) if program and program.kernel_ns else 0.0


def _cell(group: KernelSummary, launches: list[Launch], whole_ns: float) -> Cell:
    time_ns = sum(launch.duration_ns or 0.0 for launch in launches)
    won_ns = sum(launch.winnable_ns or 0.0 for launch in launches if launch.analysis.verdict.gain)
    won = ratio(won_ns, time_ns) or 0.0
    key = group.representative.key
    return Cell(group.shown, key, group.key, time_ns, time_ns / whole_ns, won, launches[0].shown_class)


def _blank(label: str, time_ns: float, whole_ns: float, bound: str) -> Cell:
    return Cell(label, "", "", time_ns, time_ns / whole_ns, 0.0, bound)
