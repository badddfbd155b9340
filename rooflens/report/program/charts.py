"""What the page of a trace draws: what to look at first, and its kernels under the GPU's roofs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from rooflens.format import count, cut_middle, duration, factor, intensity, percent, si
from rooflens.model.program.kernels import ProgramKernel
from rooflens.model.program.ranks import Joined
from rooflens.model.roofline.datasheets import Datasheet, datasheet_of
from rooflens.report.document import Below, Chart, Fact, Opportunities, Opportunity, Words
from rooflens.report.program.kernel_rows import listed_kernels
from rooflens.report.program.words import share_head

KNOWN_SHOWN, OPEN_SHOWN = 8, 4
"""Rows of the list with something to win, and of those whose that is not known."""

DRAWN, NAMED = 40, 4
"""Kernels in the roofline, those with most to win, and those of them that have their name beside them."""

_CHART_NAME_WIDTH = 60


def opportunities(
    whole: Joined,
    names: Mapping[str, str],
    move_of: Callable[[ProgramKernel], Words],
    where_of: Callable[[ProgramKernel], str],
) -> Opportunities | None:
    """List what to look at first: what can be won, then what is not known yet; None if there is neither.

    Args:
        whole: The timelines.
        names: Short names.
        move_of: Says the first move of a kernel.
        where_of: Says where it is launched.
    """
    head = share_head(whole)
    known, unknown, _ = listed_kernels(whole)
    shown = known[: KNOWN_SHOWN if unknown else KNOWN_SHOWN + OPEN_SHOWN]
    listed = [*shown, *unknown[: KNOWN_SHOWN + OPEN_SHOWN - len(shown)]]
    if not listed:
        return None
    longest_ns = max(one.time_ns for one in listed) or 1
    rows = tuple(
        Opportunity(
            name=cut_middle(names[one.name], _CHART_NAME_WIDTH),
            figure=_figure(one),
            length=one.time_ns / longest_ns,
            style=one.shown_class,
            won=(one.gain_ns or 0.0) / one.time_ns if one.time_ns else 0.0,
            move=move_of(one),
            where=cut_middle(where_of(one), 2 * _CHART_NAME_WIDTH),
            why=tuple(map(Fact, _why(one, head))),
            rank=place + 1,
            divider="No known floor, by time" if place == len(shown) else "",
        )
        for place, one in enumerate(listed)
    )
    left_out = len(known) + len(unknown) - len(listed)
    rest = f"{count(left_out, 'more row')} in the table by operator above." if left_out else ""
    note = "bars: time today; hatched: what can be won at most" if known else "bars: time today"
    below = (Below(rest),) if rest else ()
    return Opportunities("Kernels, most to win first", rows, note, below=below, is_told=False)


def _figure(kernel: ProgramKernel) -> str:
    if kernel.gain_ns is None:
        return duration(kernel.time_ns)
    after = duration(kernel.time_ns - kernel.gain_ns)
    return f"{duration(kernel.time_ns)} -> {'about' if kernel.by == 'gain' else 'at best'} {after}"


def _why(kernel: ProgramKernel, head: str) -> Iterator[str]:
    yield "not profiled" if kernel.measured is None else kernel.shown_class
    yield f"x{kernel.count:,}, {percent(kernel.share)} {head}"
    if kernel.floor_ns:
        yield f"{factor(kernel.time_ns / kernel.floor_ns)} its {kernel.limited_by} floor"
    if kernel.operator:
        yield cut_middle(kernel.operator, _CHART_NAME_WIDTH)


def roofline(whole: Joined, names: Mapping[str, str]) -> Chart | None:
    """Draw kernels by the work that their sizes state under the roofs of their GPU; None for fewer than two."""
    gpus = {one.gpu for one in whole.programs}
    sheet = datasheet_of(gpus.pop()) if len(gpus) == 1 else None
    placed = [one for one in whole.kernels if one.flop and one.moved_bytes and one.calls and one.time_ns][:DRAWN]
    if sheet is None or len(placed) < 2:
        return None
    return Chart(
        "roofline",
        lambda: _spec(placed, names, sheet),
        f"Roofline of {count(len(placed), 'row')} by the FLOPs and bytes that the sizes of their operators state.",
        ("FLOPs and bytes are those of the operators' sizes: nothing was counted. Area is time.",),
    )


def _spec(placed: Sequence[ProgramKernel], names: Mapping[str, str], sheet: Datasheet) -> Mapping[str, Any]:
    from rooflens.report.plane.roofs import named_flat, named_slope  # noqa: PLC0415 - Altair: only where it draws
    from rooflens.report.plane.simple import Drawn, plane_spec  # noqa: PLC0415 - as above

    longest_ns = max(one.time_ns for one in placed)
    dots = [_kernel_dot(one, names, longest_ns) for one in placed]
    bandwidth = sheet.dram_bandwidth.value
    peaks = {one.peak: sheet.peaks[one.peak].value for one in placed if one.peak and one.peak in sheet.peaks}
    return plane_spec(
        Drawn(
            title="By the sizes of operators",
            dots=tuple(replace(dot, label=dot.name) if at < NAMED else dot for at, dot in enumerate(dots)),
            slopes=(named_slope(("dram",), bandwidth, None),),
            flats=tuple(named_flat((key,), value) for key, value in sorted(peaks.items(), key=lambda peak: -peak[1])),
        )
    )


def _kernel_dot(kernel: ProgramKernel, names: Mapping[str, str], longest_ns: int) -> Any:
    from rooflens.report.plane.simple import Dot  # noqa: PLC0415 - as above

    per_byte = (kernel.flop or 0.0) / (kernel.moved_bytes or 1.0)
    rate = (kernel.flop or 0.0) * (kernel.calls or 0.0) / kernel.time_ns * 1e9
    name = cut_middle(names[kernel.name], _CHART_NAME_WIDTH)
    facts = {
        "Time": duration(kernel.time_ns),
        "Floor": duration(kernel.floor_ns),
        "To win": duration(kernel.gain_ns),
        "Intensity": intensity(per_byte),
        "Rate": si(rate, "FLOP/s"),
    }
    return Dot(per_byte, rate, kernel.shown_class, name, part=kernel.time_ns / longest_ns, facts=facts)
