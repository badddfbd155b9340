"""A program by its printed totals: kernels by time, floors by the sizes of operators; gaps and order stay unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import count
from rooflens.model.keys import bare_name, function_of
from rooflens.model.knowledge.roles import waits_for_ranks
from rooflens.model.program.communication import Communication
from rooflens.model.program.floors import LAUNCH_NS, ROUNDED_NS, Floors, floor_of, limit_of
from rooflens.model.program.kernels import OfShape, ProgramKernel, in_order
from rooflens.model.program.occupancy import TimelineOccupancy
from rooflens.model.program.operators import OddOperandsError, work_of_call
from rooflens.model.program.program import Program
from rooflens.model.program.rows import AT_FLOOR, shape_text
from rooflens.model.roofline.datasheets import the_datasheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.predict.forecast import Forecast
    from rooflens.model.program.totals import KernelTotal, Totals
    from rooflens.model.selecting import Chooser
    from rooflens.model.verdict_classes import Bound


def summed_program(totals: Totals, gpu: str | None = None, chooser: Chooser | None = None) -> Program:
    """Rank the kernels of a printed summary by what can be won.

    Args:
        totals: What was printed.
        gpu: Name of the GPU, which no summary has.
        chooser: Selects kernels by name and NVTX range; all by default.

    Raises:
        UsageError: No GPU has that name, or several do.
    """
    sheet = None if gpu is None else the_datasheet(gpu)
    total_ns = sum(one.time_ns for one in totals.kernels)
    floors = Floors(sheet)
    odd_count = impossible_count = 0
    kernels: list[ProgramKernel] = []
    for one in totals.kernels:
        found, is_odd = _forecast(one, floors)
        row = _summed_kernel(one, found, total_ns)
        odd_count += is_odd
        impossible_count += found is not None and row.floor_ns is None
        kernels.append(row)
    notes = [*totals.notes]
    if sheet is None and any(one.operands for one in totals.kernels):
        notes.append("it does not name the GPU, so that no kernel has a floor: `--gpu NAME` gives it")
    if odd_count:
        notes.append(f"{count(odd_count, 'row')} with sizes that PyTorch does not print, and without a floor")
    if impossible_count and sheet is not None:
        notes.append(
            f"{count(impossible_count, 'row')} took less than the peaks of {sheet.name} allow, and have no floor: it "
            "ran on another GPU, or the operator does less than its sizes say"
        )
    return Program(
        source=totals.source,
        kind=totals.kind,
        gpu=None if sheet is None else sheet.name,
        has_datasheet=sheet is not None,
        unprofiled=totals.unprofiled(),
        occupancy=TimelineOccupancy(),
        kernels=in_order(_chosen_kernels(kernels, chooser)),
        every=in_order(kernels),
        stretches=(),
        communication=_communication(kernels, total_ns),
        notes=tuple(notes),
        totals=totals.others,
    )


def _chosen_kernels(kernels: Sequence[ProgramKernel], chooser: Chooser | None) -> Sequence[ProgramKernel]:
    if chooser is None:
        return kernels
    in_range = [one for one in kernels if chooser.is_in_range(one.nvtx_range or "")]
    names = chooser.named(one.name for one in in_range)
    return [one for one in in_range if one.name in names]


def _forecast(total: KernelTotal, floors: Floors) -> tuple[Forecast | None, bool]:
    """Forecast a call of the operator, and say whether its operands are odd; None if its work or the GPU is unknown."""
    try:
        work = work_of_call(total.operator, total.operands)
        return (None if work is None else floors.of(work, total.name)), False
    except (OddOperandsError, ArithmeticError):
        return None, True


def _summed_kernel(total: KernelTotal, forecast: Forecast | None, total_ns: int) -> ProgramKernel:
    calls = float(total.calls or total.launches)
    floor = None if forecast is None else floor_of(forecast, calls, total.time_ns, round(ROUNDED_NS * calls))
    if floor is None:
        forecast = None
    cold_ns = forecast.t_lower_s * 1e9 * calls if forecast else None
    bound: tuple[Bound, ...] = ("memory", "compute", "latency")
    if forecast and cold_ns and total.time_ns <= AT_FLOOR * cold_ns:
        bound = ("memory",) if limit_of(forecast) == "memory" else ("compute",)
    return ProgramKernel(
        name=total.name,
        count=total.launches,
        time_ns=total.time_ns,
        share=total.time_ns / total_ns if total_ns else 0.0,
        launch_ns=total.launch_ns,
        gap_ns=None,
        grid=total.grid,
        block=total.block,
        operator=total.operator,
        shape=shape_text(total.operands),
        dtype=None,  # printed sizes have no types
        module=None,
        code=total.code,
        nvtx_range=total.nvtx_range,
        flop=forecast.flop if forecast else None,
        moved_bytes=forecast.moved_bytes if forecast else None,
        limited_by=limit_of(forecast) if forecast else None,
        floor_ns=floor[1] if floor else None,
        floor_cold_ns=cold_ns,
        caches=floor[0] if floor else None,
        gain_ns=None if cold_ns is None else max(0.0, total.time_ns - max(cold_ns, LAUNCH_NS * calls)),
        bound="unknown",
        or_bound=bound,
        launch=None,
        is_communication=waits_for_ranks(function_of(bare_name(total.name))),
        calls=calls if forecast else None,
        peak=forecast.peak if forecast else None,
        wall_ns=None,
        shapes=(OfShape(total.grid, total.block, total.launches, total.time_ns),),
    )


def _communication(kernels: Sequence[ProgramKernel], total_ns: int) -> Communication | None:
    """Sum up the kernels that wait for other GPUs; how much of it others hide, totals do not say."""
    own = [one for one in kernels if one.is_communication]
    if not own:
        return None
    time_ns = sum(one.time_ns for one in own)
    return Communication(sum(one.count for one in own), time_ns, time_ns / total_ns if total_ns else 0.0, None)
