"""Timelines as a page draws them: the streams of each program as lanes, ranges above, what ran in short names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

from msgspec import Struct

from rooflens.format import count, cut_name, duration, plain_name
from rooflens.model.program.kernels import ProgramKernel
from rooflens.model.program.lanes import MOST_SPANS, Lane, TimelineLanes
from rooflens.model.program.program import Program
from rooflens.model.program.ranks import Joined
from rooflens.model.verdict_classes import SHOWN_CLASSES, bound_of
from rooflens.report import document
from rooflens.report.document import Block
from rooflens.report.program.idle import step_name
from rooflens.report.program.words import cut, file_name, plain_range
from rooflens.report.words.labels import BOUND_LABELS

MOST_MARKS = 20_000
"""Marks that a page draws, of all its programs: about half a megabyte."""

MOST_SIDES = 8
"""Programs that a page draws one below the other."""

_LANE_NAME_WIDTH = 80

_STEP_LEVEL = -1
"""Steps stand above all ranges."""

_LEGEND: Mapping[str, tuple[str, str]] = {
    **{kind: (bound_of(kind), BOUND_LABELS[bound_of(kind)]) for kind in SHOWN_CLASSES},
    "unknown": ("unknown", "what limits it is unknown"),
    "communication": ("communication", "communication"),
    "graph": ("unknown", "graph"),
    "copy": ("copies", "copy or memset"),
    "memset": ("copies", "copy or memset"),
}
"""What marks may show -> the colour that stands for it, and words."""


class DrawnProgram(Struct, frozen=True):
    """One of the programs that a page draws one below the other.

    Attributes:
        name: What it is called; empty for the only one.
        program: The program.
        lanes: What is drawn of it.
    """

    name: str
    program: Program
    lanes: TimelineLanes

    def lane_name(self, lane: Lane) -> str:
        """Return what a stream is called."""
        has_gpus = len({one.device for one in self.lanes.lanes}) > 1
        return f"{f'GPU {lane.device} ' if has_gpus else ''}stream {lane.stream}"


def mark_of(*identity: str | None) -> str:
    """Return what a page calls a kernel, in digits: the same in all of its programs, as its identity is."""
    return str(crc32("\0".join(part or "" for part in identity).encode(errors="backslashreplace")))


def name_of(program: Program) -> str:
    """Return what a program is called beside others."""
    return file_name(program) if program.rank is None else f"rank {program.rank}"


def sides_of_ranks(whole: Joined) -> tuple[DrawnProgram, ...]:
    """Choose what is drawn of one or more programs: of many the one that the others wait for, and the longest."""
    if len(whole.programs) == 1:
        return sides_of([("", whole.programs[0])])
    late = whole.waited_for.rank.program if whole.waited_for else None
    drawn = [one.program for one in whole.ranks] or [*whole.programs]
    longest = sorted(drawn, key=lambda one: (one is not late, -one.parts.wall_ns))[:MOST_SIDES]
    return sides_of([(name_of(one), one) for one in drawn if any(one is chosen for chosen in longest)])


def sides_of(named: Sequence[tuple[str, Program]]) -> tuple[DrawnProgram, ...]:
    """Leave out programs without lanes, and merge launches of the others until a page has room for all."""
    drawn = [(name, one, one.lanes) for name, one in named if one.lanes is not None and one.lanes.marks]
    return tuple(DrawnProgram(cut(name), one, lanes.within(MOST_MARKS // len(drawn))) for name, one, lanes in drawn)


def streams_of(sides: Sequence[DrawnProgram]) -> dict[str, tuple[str, ...]]:
    """Map each kernel to the streams that it ran on."""
    found: dict[str, dict[str, None]] = {}
    for side in sides:
        marks = _marks_of_kernels(side.program)
        for lane in side.lanes.lanes:
            name = side.lane_name(lane)
            for number in lane.numbers:
                if number in marks:
                    found.setdefault(marks[number], {})[name] = None
    return {mark: tuple(names) for mark, names in found.items()}


def lanes_block(sides: Sequence[DrawnProgram], names: Mapping[str, str], note: str = "") -> Iterator[Block]:
    """Draw programs one below the other, on one scale.

    Args:
        sides: The programs; nothing is drawn of none.
        names: Short names of their kernels.
        note: What is to be said of them.
    """
    if not sides:
        return
    merged_ns = max(one.lanes.merged_ns for one in sides)
    merged = f"Launches within {duration(merged_ns)} are drawn as one." if merged_ns else ""
    data = _data(sides, names)
    streams = count(sum(len(one.lanes.lanes) for one in sides), "stream")
    kinds = {subject[1] for subject in data["subjects"]}
    yield document.Lanes(
        data,
        f"{streams} over {duration(data['wall'])}; the tables have the same.",
        " ".join(filter(None, (note, merged))),
        tuple(dict.fromkeys(_LEGEND[kind] for kind in _LEGEND if kind in kinds)),
    )


def _marks_of_kernels(program: Program) -> dict[int, str]:
    """Map the numbers that lanes have for kernels to what pages call them."""
    return {number: mark_of(*one.identity) for one in program.every for number in one.numbers}


class _Subjects:
    """What marks show, each once: name, kind, operator, and what its row is called."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._places: dict[str, int] = {}
        self.rows: list[tuple[str, str, int, str]] = []
        self.operators: dict[str, int] = {}

    def kernel(self, kernel: ProgramKernel) -> int:
        """Return the place of a kernel."""
        kind = "communication" if kernel.is_communication else kernel.shown_class
        operator = self.operators.setdefault(cut(kernel.operator or ""), len(self.operators))
        return self.place(mark_of(*kernel.identity), self._names[kernel.name], kind, operator)

    def place(self, mark: str, name: str, kind: str, operator: int = -1) -> int:
        """Return the place of what may be drawn."""
        if mark not in self._places:
            self._places[mark] = len(self.rows)
            self.rows.append((cut_name(name, _LANE_NAME_WIDTH), kind, operator, mark))
        return self._places[mark]


def _data(sides: Sequence[DrawnProgram], names: Mapping[str, str]) -> dict[str, Any]:
    """Write columns, starts as differences; each kernel, operator and range once for all programs."""
    subjects, texts = _Subjects(names), dict[str, int]()
    parts = []
    for side in sides:
        shown = side.lanes
        places = {number: subjects.kernel(one) for one in side.program.every for number in one.numbers}
        others = [subjects.place(mark_of(one.kind, one.name), one.name or one.kind, one.kind) for one in shown.subjects]
        begin_ns = shown.launched_ns
        steps = (
            (_STEP_LEVEL, step_name(side.program, one.index), begin_ns + one.begin_ns, begin_ns + one.end_ns)
            for one in (side.program.steps if len(side.program.steps) <= MOST_SPANS else ())
        )
        spans = ((one.level, _range_name(one.name), one.start_ns, one.end_ns) for one in shown.spans)
        ranges = [(level, texts.setdefault(name, len(texts)), *ends) for level, name, *ends in (*steps, *spans)]
        lanes = [_lane(one, side.lane_name(one), places, others) for one in shown.lanes]
        parts.append({"name": side.name, "lanes": lanes, "spans": ranges})
    return {
        "wall": max(one.lanes.wall_ns for one in sides),
        "subjects": subjects.rows,
        "operators": list(subjects.operators),
        "parts": parts,
        "texts": list(texts),
    }


def _range_name(name: str) -> str:
    return cut_name(plain_name(plain_range(name)), _LANE_NAME_WIDTH)


def _lane(lane: Lane, name: str, places: Mapping[int, int], others: Sequence[int]) -> dict[str, Any]:
    starts = lane.starts
    return {
        "name": name,
        "starts": [start - before for before, start in zip((0, *starts), starts, strict=False)],
        "lengths": list(lane.lengths),
        "subjects": [places.get(number, -1) if number >= 0 else others[-1 - number] for number in lane.subjects],
    }
