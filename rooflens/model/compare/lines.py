"""The source lines at which a kernel lost time: samples of the program counter on both sides, weighted by time.

A line is the same on both sides where its file's name and text are, repeated ones in their order. Where its text is on
one side only, as of a line that was edited, and without text in the report, it is the one of the same number. A
difference that chance in the samples explains does not count.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.compare.compare import Change
from rooflens.model.records import Analysis, Hotspot
from rooflens.model.verdict.thresholds import default_thresholds

SIGMAS = 3.0
"""Samples are counts: a difference of fewer standard deviations than this is chance."""


class SlowerLine(Struct, frozen=True):
    """A line that takes more of its kernel's time than it did.

    Attributes:
        hotspot: The line in the head's report.
        before_ns: What it took; None if the base's report has no such line among its hottest.
        after_ns: What it takes; both are parts of the times in the kernel's `Change.speed`.
        by_text: Both sides know the line's text; otherwise the base's line is the one of this number.
        share: Its part of what the kernel lost; of what all slower lines lost, where that is more as others got faster.
    """

    hotspot: Hotspot
    before_ns: float | None
    after_ns: float
    by_text: bool
    share: float = 0.0

    @property
    def lost_ns(self) -> float:
        """How much longer it takes."""
        return self.after_ns - (self.before_ns or 0.0)


def slower_lines(change: Change) -> tuple[SlowerLine, ...]:
    """Find the lines at which a kernel lost time, most lost first; empty if it lost none or samples are missing."""
    speed, base, head = change.speed, change.base, change.head
    before_ns, after_ns, lost_ns = speed.base.median_ns, speed.head.median_ns, speed.lost_ns
    if base is None or head is None or not before_ns or not after_ns or lost_ns <= 0:
        return ()
    by_text = all(map(_has_texts, (base, head)))
    known = _timed(base, before_ns, by_text=by_text)
    now = _timed(head, after_ns, by_text=by_text)
    # A line that was rewritten keeps its number more often than its text: it is what stood there before.
    edited = {_numbered(one[0]): one for key, one in known.items() if by_text and key not in now}
    found, slower_ns = [], 0.0
    for key, (line, time_ns, error_ns) in now.items():
        was = known.get(key) or edited.get(_numbered(line))
        slower = SlowerLine(line, was[1] if was else None, time_ns, by_text and (key in known or was is None))
        if not known or not (was or by_text):
            continue
        slower_ns += max(slower.lost_ns, 0.0)
        # Samples are counts: a difference within their own error is none.
        if slower.lost_ns > max(
            default_thresholds().little_share * lost_ns, SIGMAS * math.hypot(error_ns, was[2] if was else 0.0)
        ):
            found.append(slower)
    # Other lines may have become faster, so that the slower ones lost more than the kernel as a whole.
    whole_ns = max(lost_ns, slower_ns)
    return tuple(replace(one, share=one.lost_ns / whole_ns) for one in sorted(found, key=lambda one: -one.lost_ns))


def _has_texts(analysis: Analysis) -> bool:
    """Return whether lines have their text, none of it from a file that was changed since."""
    sources = analysis.kernel.sources.values()
    return any(line.text for line in _line_hotspots(analysis)) and not any(source.differs for source in sources)


def _numbered(line: Hotspot) -> Hashable:
    return PurePosixPath((line.file or "").replace("\\", "/")).name, line.line, line.function


def _line_hotspots(analysis: Analysis) -> list[Hotspot]:
    return [spot for spot in analysis.kernel.hotspots if spot.by == "line" and spot.file and spot.line]


def _timed(analysis: Analysis, time_ns: float, *, by_text: bool) -> dict[Hashable, tuple[Hotspot, float, float]]:
    """Give each line its part of a kernel's time, and what one standard deviation of its samples is worth."""
    total = analysis.kernel.code_totals.get("samples")
    if not total:
        return {}
    lines = [line for line in _line_hotspots(analysis) if line.measures.get("samples")]
    return {
        key: (line, time_ns * samples / total, time_ns * math.sqrt(samples) / total)
        for key, line in _keyed(lines, by_text=by_text)
        for samples in (line.measures["samples"],)
    }


def _keyed(lines: Iterable[Hotspot], *, by_text: bool) -> Iterable[tuple[Hashable, Hotspot]]:
    seen: defaultdict[Hashable, int] = defaultdict(int)
    for line in sorted(lines, key=lambda one: (one.file or "", one.line or 0)):
        name = PurePosixPath((line.file or "").replace("\\", "/")).name
        if not by_text:
            yield (name, line.line), line
            continue
        same = (name, (line.text or "").strip())
        seen[same] += 1
        yield (*same, seen[same]), line
