"""Labels of the records' keys on the page: levels, pipes, verdicts, stalls, flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rooflens import format as fmt
from rooflens.model.counters.balance import STALLS
from rooflens.model.hotspots import caller_of, places
from rooflens.model.knowledge.items import find_item
from rooflens.model.records import Analysis, Evidence, Hotspot, Inside, JudgedLoop, Place
from rooflens.model.verdict_classes import SHOWN_CLASSES, bound_of, is_open

UNITS: Mapping[str, str] = {"FLOP": "FLOP", "op": "OP"}
"""Unit of the main work -> what people read."""

_BOUND_LABELS = {
    "memory": "memory-bound",
    "compute": "compute-bound",
    "latency": "latency-bound",
    "overhead": "overhead-bound",
    "balanced": "balanced",
    "unknown": "unknown",
    "communication": "communication-bound",
}
BOUND_LABELS: Mapping[str, str] = {
    **_BOUND_LABELS,
    **{shown: f"{_BOUND_LABELS[bound_of(shown)]}?" for shown in SHOWN_CLASSES if is_open(shown)},
}
"""By verdict, open ones too, and by regime of a forecast."""

_SEPARATORS = re.compile(r"[/\\]")
"""What stands between the folders of a path, on the machine where the report was made."""

_ISSUING = {"selected": "issuing"}
"""Warp states other than stalls."""


def stall_label(reason: str) -> str:
    """Say what a warp waits for; an unknown reason keeps NVIDIA's name."""
    return STALLS.get(reason) or _ISSUING.get(reason, reason.replace("_", " "))


def file_label(file: str) -> str:
    """Name a source file without its folders."""
    return _SEPARATORS.split(file)[-1]


def place_label(hotspot: Hotspot, inside: Inside | None) -> str:
    """Name a place in the code: `adamw.cu:95`, the function, or the offset of an instruction in it: `+0x1a0`.

    A line of a library is named by the program's own that calls it, if one looked inside: `gemm.cu:74, in mma.hpp:91`.
    """
    is_called = caller_of(inside, hotspot) is not None
    if (hotspot.by == "line" or is_called) and (line := line_label(hotspot, inside)):
        return line
    if hotspot.pc is not None:
        return f"+{hotspot.pc:#x}"
    return hotspot.function or ""


def line_label(hotspot: Hotspot, inside: Inside | None) -> str:
    """Name the line of a place as `place_label` does, also of an instruction; empty without line information."""
    if not hotspot.file or hotspot.line is None:
        return ""
    line = f"{file_label(hotspot.file)}:{hotspot.line}"
    caller = caller_of(inside, hotspot)
    return line if caller is None else f"{file_label(caller[0])}:{caller[1]}, in {line}"


def label_of_first(places: Iterable[Place], inside: Inside | None) -> str:
    """Name the line of the first place that has one; empty if none has."""
    return next(filter(None, (line_label(place.hotspot, inside) for place in places)), "")


def label_of_move(analysis: Analysis) -> str:
    """Name the line that the first move of a kernel is about; empty if unknown."""
    best = analysis.verdict.best
    return label_of_first(best.where if best else (), analysis.kernel.inside)


LEAST_SHARE = 0.05
"""Loops with less of the warps' time are not shown."""


def loop_place(judged: JudgedLoop) -> str:
    """Name the place of a loop: `gemm.cu:138`, `gemm.cu:138, in mma.hpp:91`, or the offset of its first instruction."""
    loop = judged.loop
    if not loop.file or not loop.line:
        return f"+{loop.start:#x}"
    behind = f", in {file_label(loop.library_file)}:{loop.library_line}" if loop.library_file else ""
    return f"{file_label(loop.file)}:{loop.line}{behind}"


def hottest_loop(analysis: Analysis) -> JudgedLoop | None:
    """Return the loop in which warps spend most of their time, those inside it left out; None if none stands out."""
    hot = [one for one in analysis.loops if one.loop.kind == "loop" and (one.share_self or 0.0) >= LEAST_SHARE]
    return max(hot, key=lambda one: one.share_self or 0.0, default=None)


def place_of(analysis: Analysis) -> str:
    """Name the source line to go to: that of the best move, else the hottest loop's or line's; empty if unknown."""
    loop, hot = hottest_loop(analysis), next(iter(places(analysis.kernel, "samples", 1)), None)
    in_loop = loop_place(loop) if loop is not None and loop.loop.file else ""
    return label_of_move(analysis) or in_loop or (line_label(hot.hotspot, analysis.kernel.inside) if hot else "")


_EVIDENCE_NAMES: Mapping[str, str] = {
    "warp_latency_cycles": "cycles between two instructions",
    "threads_per_inst": "threads per instruction",
    "sparable_share": "instructions that fusing saves",
    "load_sectors": "sectors of loads",
    "store_sectors": "sectors of stores",
    "load_excess_share": "excess sectors of loads",
    "store_excess_share": "excess sectors of stores",
    "warp_fill": "lanes in use",
    "local_share": "local memory",
    "division_share": "divisions in all arithmetic",
    "fp64_slower": "fp32 rate over fp64",
    "registers_per_thread": "registers per thread",
}
"""Numbers whose own names are not words -> what they are."""

_STALLED = re.compile(r"stall_\w+_cycles")


def evidence_name(evidence: Evidence) -> str:
    """Name in words a number that supports a finding."""
    if _STALLED.fullmatch(evidence.name):
        return "cycles stalled"
    if (reason := evidence.name.removesuffix(" stalls")) in STALLS:
        return STALLS[reason]
    return _EVIDENCE_NAMES.get(evidence.name) or evidence.name.removesuffix("_ns").replace("_", " ")


def evidence_words(evidence: Evidence) -> str:
    """Write a number that supports a finding: `registers now 188`, `grid size 64 blocks`."""
    name = evidence_name(evidence)
    if evidence.name.endswith(" stalls"):
        return f"{name} {fmt.quantity(evidence.value, evidence.unit)} of warps' time"
    is_named = evidence.unit != "share" and f" {evidence.unit.replace('/', ' per ')} " in f" {name} "
    return f"{name} {fmt.quantity(evidence.value, '' if is_named else evidence.unit)}"


def flag_name(flag: str) -> str:
    """Name a flag in a few words; an unknown flag is shown by its key."""
    known = find_item("flags", flag)
    return known.title if known else flag.replace("_", " ")


def flag_label(flag: str) -> str:
    """Explain a flag in a sentence; an unknown flag is shown by its key."""
    known = find_item("flags", flag)
    return known.sentence if known else flag_name(flag)
