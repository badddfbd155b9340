"""Names of a trace as they are shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooflens.format import cut_middle
from rooflens.model.knowledge.items import column_heads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.program.parts import Subject
    from rooflens.model.program.program import Program
    from rooflens.model.program.ranks import Joined

SHARES = OF_WALL, OF_KERNEL_TIME = "of wall", "of kernel time"
"""Heads of shares: of the program's time; of printed summaries, which do not tell that, of the time of all kernels."""

PART_NAMES: Mapping[Subject, str] = {
    "kernels": "compute kernels",
    "communication": "exposed communication",
    "copies": "exposed copies",
    "graphs": "CUDA graphs without their kernels",
    "unknown": "CUDA graphs of which nothing was recorded",
    "idle": "idle",
}
"""The parts of a program's time."""

LEAST_PART = 0.02
"""A part of the time that is smaller is no part of the answer."""

LONGEST = 300
"""Characters of a name in a sentence or a cell: a trace may hold any text."""

_HASHES = re.compile(r"#{2,} *([^#/]*?) *#{2,}")
"""What programs set their ranges off with: `## forward ##`."""

_STEP_PREFIX = re.compile(r"^ProfilerStep#(?:\d+|\*)(?:/|$)")


def part_title(subject: Subject) -> str:
    """Begin a sentence with the name of a part."""
    name = PART_NAMES[subject]
    return f"{name[0].upper()}{name[1:]}"


def heads_note(*heads: str) -> str:
    """Say what the heads of columns mean."""
    about = column_heads()["analyze TRACE"]
    return "; ".join(f"{head}: {about[head]}" for head in heads)


def share_head(whole: Joined) -> str:
    """Return the head of the one share that tables of timelines have."""
    return OF_WALL if whole.parts.wall_ns else OF_KERNEL_TIME


def without_step(nvtx_range: str | None) -> str:
    """Leave out the range that PyTorch's profiler opens around each step, which says nothing of the place."""
    return plain_range(_STEP_PREFIX.sub("", nvtx_range or ""))


def plain_range(name: str) -> str:
    """Leave out what only sets the name of a range off: of `## forward ##` its `forward`."""
    return _HASHES.sub(r"\1", name)


def file_name(program: Program) -> str:
    """Return the name of a program's timeline, without its folder."""
    return program.source.replace("\\", "/").rpartition("/")[2]


def cut(text: str) -> str:
    """Cut a text of a trace to the length of a name."""
    return cut_middle(text, LONGEST)
