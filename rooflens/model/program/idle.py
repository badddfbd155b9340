"""Why a GPU was idle: what the host did in each gap, on the thread that launched what ended it.

A gap has one cause, by the first of these that holds:

- `unknown`: the timeline does not say which call launched the work that ended it.
- `queued`: that call returned before the gap began, or in its first half: the work was there, and waited for something
  that no event of its GPU shows, such as other GPUs, the host, or work that was not recorded.
- `synchronizing`: when the gap began, that thread was in a call that waits for the GPU, such as
  `cudaStreamSynchronize` or a blocking copy: so the host could launch nothing ahead. Not where something else that
  began after that took most of a gap that is longer than a launch.
- `launching`: the gap is no longer than a launch may take, or the call that launched took most of it.
- `host`: else. The host did something else.

The operator is what a thread had open for at least half of the time from the begin of the gap to the end of the call
that launched, or around the call that it waited in: the outermost that is registered by a library, as `aten::item`,
else the innermost. A gap without one is named by the innermost range that is open for as long, else by the line of
code, and else by the operator or kernel that ended it, as is one whose work was queued, unless it is as short as what
lies between any two kernels.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.program.timeline import NO_CALL, Call, HostSpan, Opened, waits_for_gpu

if TYPE_CHECKING:
    from rooflens.model.program.occupancy import Gaps
    from rooflens.model.program.steps import Step
    from rooflens.model.program.timeline import Host

IdleKind = Literal["launching", "synchronizing", "host", "queued", "unknown"]


LAUNCH_GAP_NS = 100_000
"""Launching never takes longer than this: in a longer gap the host did something else, or waited."""

NEXT_NS = 10_000
"""A GPU goes on from a kernel to the next in less, whatever waits in its queue."""

_LONGEST = 10
"""How many of the longest gaps are kept one by one."""

_REGISTERED = re.compile(r"(?!autograd::|torch::autograd)[a-z_]\w*::\w")
"""An operator of a library, as `aten::mm`, and no step of the engine that runs backward."""

_PROFILER_STEP = re.compile(r"ProfilerStep#\d+")


class IdleCause(Struct, frozen=True):
    """Why a GPU was idle, and what the thread that launched what ended the gap had open in most of it.

    Attributes:
        kind: What the host did.
        operator: The operator that it was in; this and what follows is None where nothing was recorded.
        call: The call of CUDA or of the system that it was in.
        nvtx_range: The innermost range.
        code: File and line of the program.
        before: The operator or kernel that ended the gap.
    """

    kind: IdleKind
    operator: str | None = None
    call: str | None = None
    nvtx_range: str | None = None
    code: str | None = None
    before: str | None = None


class Idle(Struct, frozen=True):
    """The gaps of one cause.

    Attributes:
        cause: The cause; what more it says than kind, operator and call is that of the longest gap.
        count: Gaps.
        gap_ns: Their time.
        longest_ns: The longest of them.
        share: Of the program's time.
    """

    cause: IdleCause
    count: int
    gap_ns: int
    longest_ns: int
    share: float = 0.0


class Gap(Struct, frozen=True):
    """One of the longest gaps of a program.

    Attributes:
        cause: Its cause; of work that was launched already, what the thread did meanwhile.
        start_ns: From the first launch of the program.
        gap_ns: How long it was.
        step: Index of the step in which it began; None if it began in none.
        into_step_ns: From the begin of that step; None without one.
    """

    cause: IdleCause
    start_ns: int
    gap_ns: int
    step: int | None = None
    into_step_ns: int | None = None

    def placed(self, first_ns: int, steps: Sequence[Step]) -> Gap:
        """Count its begin from the first launch, and from the begin of its step."""
        start_ns = max(0, self.start_ns - first_ns)
        step = next((one for one in steps if one.begin_ns <= start_ns < one.end_ns), None)
        if step is None:
            return replace(self, start_ns=start_ns)
        return replace(self, start_ns=start_ns, step=step.index, into_step_ns=start_ns - step.begin_ns)


_QUEUED, _UNKNOWN = IdleCause("queued"), IdleCause("unknown")


def causes_of(gaps: Iterable[Gaps], host: Host | None, wall_ns: int) -> tuple[tuple[Idle, ...], tuple[Gap, ...]]:
    """Find the cause of each gap; add up those with the same, and return the longest gaps, too, not yet placed.

    Args:
        gaps: The gaps of each GPU.
        host: What the host did; None if nothing of it was recorded.
        wall_ns: The time of the program.
    """
    sums = _Sums()
    longest: list[Gap] = []
    for one in gaps:
        lengths = array("q", (end - start for start, end in zip(one.starts, one.ends, strict=True)))
        long = {*nlargest(_LONGEST, range(len(lengths)), key=lengths.__getitem__)}
        for at, cause in _causes(one, host, long):
            gap_ns, before = lengths[at], one.before[at]
            if at in long:
                longest.append(Gap(replace(cause, before=before), one.starts[at], gap_ns))
            if cause.kind == "queued":
                # What the host did while launched work waited is not why it waited.
                sums.add(_QUEUED, None if gap_ns < NEXT_NS else before, 1, gap_ns, gap_ns)
            else:
                sums.add(cause, before, 1, gap_ns, gap_ns)
    return sums.idle(wall_ns), tuple(nlargest(_LONGEST, longest, key=lambda one: one.gap_ns))


def added(idle: Iterable[Idle], wall_ns: int) -> tuple[Idle, ...]:
    """Add up gaps of the same causes, as of several programs."""
    sums = _Sums()
    for one in idle:
        sums.add(one.cause, one.cause.before, one.count, one.gap_ns, one.longest_ns)
    return sums.idle(wall_ns)


class _Sums:
    """Adds up gaps of the same cause; where they say more than that, the longest gap says it."""

    def __init__(self) -> None:
        self._of: dict[tuple[str | None, ...], tuple[IdleCause, str | None, int, int, int]] = {}

    def add(self, cause: IdleCause, before: str | None, count: int, gap_ns: int, longest_ns: int) -> None:
        """Add gaps that `before` ended, whatever the cause says of that."""
        place = None if cause.operator or cause.call else cause.nvtx_range or cause.code or before
        key = cause.kind, cause.operator, cause.call, place
        if (known := self._of.get(key)) is not None:
            count, gap_ns = known[2] + count, known[3] + gap_ns
            if longest_ns <= known[4]:
                cause, before, longest_ns = known[0], known[1], known[4]
        self._of[key] = cause, before, count, gap_ns, longest_ns

    def idle(self, wall_ns: int) -> tuple[Idle, ...]:
        """Return them, most time first, with their share of a program's time."""
        every = [
            Idle(replace(cause, before=before), count, gap_ns, longest_ns, gap_ns / wall_ns if wall_ns else 0.0)
            for cause, before, count, gap_ns, longest_ns in self._of.values()
        ]
        return tuple(
            sorted(every, key=lambda one: (-one.gap_ns, one.cause.kind, one.cause.operator or "", one.cause.call or ""))
        )


def _causes(gaps: Gaps, host: Host | None, long: Container[int]) -> Iterator[tuple[int, IdleCause]]:
    """Yield the number of each gap with its cause; of long ones whose work was launched, what the host did, too."""
    if host is None:
        yield from ((at, _UNKNOWN) for at in range(len(gaps.starts)))
        return
    waiting: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))
    queued: set[int] = set()
    began, returned = array("q"), array("q")
    for at, call in enumerate(host.calls(gaps.calls)):
        began.append(call.start_ns)
        returned.append(call.end_ns)
        half_ns = gaps.starts[at] + (gaps.ends[at] - gaps.starts[at]) // 2
        if call.thread == NO_CALL:
            yield at, _UNKNOWN
            continue
        if call.end_ns <= half_ns:
            if at not in long:
                yield at, _QUEUED
                continue
            queued.add(at)
        waiting[call.thread].append(at)
    for thread, own in waiting.items():
        begins = array("q", (gaps.starts[at] for at in own))
        ends = array("q", (gaps.ends[at] if at in queued else min(returned[at], gaps.ends[at]) for at in own))
        middles = array("q", ((start + end) // 2 for start, end in zip(begins, ends, strict=True)))
        both = zip(host.opened(thread, begins), host.opened(thread, middles), strict=True)
        for at, window, (begin, middle) in zip(own, zip(begins, ends, strict=True), both, strict=True):
            if at in queued:
                yield at, _meanwhile(window, middle)
            else:
                yield at, _judged_cause(gaps.ends[at], window, Call(thread, began[at], returned[at]), begin, middle)


def _meanwhile(window: tuple[int, int], middle: Opened) -> IdleCause:
    """Say what the thread did while its work, launched before, waited."""
    calls = _long(middle.calls, window)
    operator, innermost = _operator(_long(middle.operators, window)), _innermost_range(_long(middle.ranges, window))
    return IdleCause("queued", operator, calls[-1].name if calls else None, innermost, middle.code)


def _judged_cause(end_ns: int, window: tuple[int, int], launch: Call, begin: Opened, middle: Opened) -> IdleCause:
    """Judge one gap whose launch came late.

    Args:
        end_ns: Its end.
        window: From its begin to the return of the call that launched.
        launch: That call.
        begin: What the thread had open at the begin of the window.
        middle: The same for its middle.
    """
    start_ns = window[0]
    operators, ranges = _long(middle.operators, window), _long(middle.ranges, window)
    calls = [one for one in _long(middle.calls, window) if one.start_ns != launch.start_ns]
    operator, innermost = _operator(operators), _innermost_range(ranges)
    is_long = end_ns - start_ns > LAUNCH_GAP_NS
    waited = [one for one in begin.calls if waits_for_gpu(one.name) and one.start_ns != launch.start_ns]
    does_other = is_long and any(one.start_ns > start_ns for one in (*operators, *ranges, *calls))
    if waited and not does_other:
        call = waited[-1]
        around = [one for one in begin.operators if one.start_ns <= call.start_ns and one.end_ns >= call.end_ns]
        return IdleCause("synchronizing", _operator(around), call.name, _innermost_range(begin.ranges), begin.code)
    took_ns = min(launch.end_ns, window[1]) - max(launch.start_ns, start_ns)
    kind: IdleKind = "host" if is_long and 2 * took_ns < window[1] - start_ns else "launching"
    call_name = calls[-1].name if calls and kind == "host" else None
    return IdleCause(kind, operator, call_name, innermost, middle.code)


def _long(spans: Sequence[HostSpan], window: tuple[int, int]) -> list[HostSpan]:
    """Return those that are open for at least half of a window."""
    start_ns, end_ns = window
    return [one for one in spans if 2 * (min(one.end_ns, end_ns) - max(one.start_ns, start_ns)) >= end_ns - start_ns]


def _operator(operators: Sequence[HostSpan]) -> str | None:
    """Return the outermost operator of a library, else the innermost one."""
    names = [one.name for one in operators]
    return next(filter(_REGISTERED.match, names), names[-1] if names else None)


def _innermost_range(ranges: Sequence[HostSpan]) -> str | None:
    """Return the innermost range that is no step of the profiler."""
    return next((one.name for one in reversed(ranges) if not _PROFILER_STEP.fullmatch(one.name)), None)
