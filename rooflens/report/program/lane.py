"""The timeline of a program as a page draws it: its streams as lanes, ranges above, what ran in short names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rooflens.format import count, cut_name, duration, plain_name
from rooflens.model.program.kernels import ProgramKernel
from rooflens.model.program.lanes import Lane, Lanes
from rooflens.model.program.program import Program
from rooflens.model.program.ranks import Joined
from rooflens.report import document
from rooflens.report.document import Block
from rooflens.report.program.words import cut, file_name

MOST_MARKS = 20_000
"""Marks that a page draws: about half a megabyte."""

_NAME_WIDTH = 80


def mark_of(one: ProgramKernel) -> str:
    """Return what lanes call a kernel; empty if they were not collected."""
    return str(min(one.numbers)) if one.numbers else ""


def lanes_block(programs: Sequence[Program], whole: Joined, names: Mapping[str, str]) -> Iterator[Block]:
    """Draw one program: of several the rank that the others wait for, else the one that takes longest."""
    drawn = [one for one in programs if one.lanes is not None and one.lanes.marks]
    if not drawn:
        return
    late = whole.waited_for.rank.program if whole.waited_for else None
    program = next((one for one in drawn if one is late), max(drawn, key=lambda one: one.parts.wall_ns))
    found = program.lanes or Lanes()
    shown = found.within(MOST_MARKS)
    notes = []
    if len(programs) > 1:
        notes.append(f"Drawn: {file_name(program)}.")
    if shown.merged_ns:
        notes.append(f"Launches within {duration(shown.merged_ns)} are drawn as one.")
    label = f"{count(len(shown.lanes), 'stream')} over {duration(shown.wall_ns)}; the tables have the same."
    yield document.Lanes(_data(shown, program.every, names), label, " ".join(notes))


def _data(shown: Lanes, kernels: Iterable[ProgramKernel], names: Mapping[str, str]) -> dict[str, Any]:
    """Write columns, starts as differences; each kernel, operator and range once."""
    operators: dict[str, int] = {}
    subjects: list[tuple[str, str, int, str]] = []
    place: dict[int, int] = {}
    for one in kernels:
        kind = "communication" if one.is_communication else one.shown_class
        operator = operators.setdefault(cut(one.operator or ""), len(operators))
        for number in one.numbers:
            place[number] = len(subjects)
        subjects.append((cut_name(names[one.name], _NAME_WIDTH), kind, operator, mark_of(one)))
    others = len(subjects)
    subjects += [(cut(one.name or one.kind), one.kind, -1, "") for one in shown.subjects]
    texts: dict[str, int] = {}
    ranges = [
        (span.level, texts.setdefault(cut_name(plain_name(span.name), _NAME_WIDTH), len(texts)), *span[3:])
        for span in shown.spans
    ]
    has_gpus = len({one.device for one in shown.lanes}) > 1
    return {
        "wall": shown.wall_ns,
        "subjects": subjects,
        "operators": list(operators),
        "lanes": [_lane(one, place, others, several=has_gpus) for one in shown.lanes],
        "spans": ranges,
        "texts": list(texts),
    }


def _lane(one: Lane, place: Mapping[int, int], others: int, *, several: bool) -> dict[str, Any]:
    starts = one.starts
    return {
        "label": f"{f'GPU {one.device} ' if several else ''}stream {one.stream}",
        "starts": [start - before for before, start in zip((0, *starts), starts, strict=False)],
        "lengths": list(one.lengths),
        "subjects": [place.get(number, -1) if number >= 0 else others - 1 - number for number in one.subjects],
    }
