"""Where the numbers of a level and of a pipe come from: the stored metrics behind amount, peak and share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.model.roofline.flops import SCALAR_DTYPES
from rooflens.model.roofline.levels import ROOFS, STAGES, leading_stage
from rooflens.model.roofline.pipes import PIPE_ROWS

if TYPE_CHECKING:
    from rooflens.model.records import Analysis, Kernel, Pipe
    from rooflens.model.roofline.pipes import PipeRow

PUBLISHED = "published peak, scaled to the profiled clock"
_TENSOR_PEAK = "sm__ops_path_tensor_*.sum.peak_sustained x f"
_COUNTED_BY = {
    "opcode": "opcode table of the report: sass__{}_per_opcode_with_modifier_all",
    "tensor_ops": "sm__ops_path_tensor_*.sum",
    "upper_bound": "counted with the constants that HFMA2 loads: an upper bound",
    "estimated": "estimated from what kept the pipe busy",
}


class Sources(Struct, frozen=True):
    """Stored metrics or formulas; None where there is no such number.

    Attributes:
        share: None where the share is amount over peak.
    """

    amount: str | None = None
    peak: str | None = None
    share: str | None = None


def level_sources(analysis: Analysis, name: str) -> Sources:
    """Say where the bytes, the roof and the share of one memory level come from."""
    level, known = analysis.levels[name], analysis.kernel.counter_sources
    peak = next((known[counter] for counter in ROOFS[name] if counter in known), None)
    busiest = leading_stage(level)
    if busiest is None:
        return Sources(level.source, peak)
    share = _stage_source(analysis.kernel, name, busiest)
    both = f"{level.source} / ({peak} x t)"
    return Sources(level.source, peak, None if share == both else share)


def _stage_source(kernel: Kernel, level: str, name: str) -> str | None:
    """Say where a stage's share comes from: its bytes over its peak, or a stored per cent."""
    known = kernel.counter_sources
    stage = next((one for one in STAGES if (one.level, one.name) == (level, name)), None)
    if stage is None:
        return None
    amount, peak = known.get(stage.amount or ""), known.get(stage.peak or "")
    if amount and peak:
        return f"{amount} / ({peak} x t)"
    return known.get(stage.share)


def pipe_sources(analysis: Analysis, name: str) -> Sources:
    """Say where the work, the roof and the share of one pipe come from."""
    pipe, row = analysis.pipes[name], next((row for row in PIPE_ROWS if row.key == name), None)
    return _work_sources(analysis.kernel, name, pipe) if row is None else _row_sources(analysis.kernel, row, pipe)


def _work_sources(kernel: Kernel, name: str, pipe: Pipe) -> Sources:
    letter, _ = SCALAR_DTYPES.get(name, ("", 0.0))
    known = kernel.counter_sources
    amount = _COUNTED_BY.get(pipe.source, "").format("thread_inst_executed_true" if letter else "inst_executed") or None
    if pipe.source == "sass":
        amount = f"{known.get(f'{letter}fma_threads', '')}, with its add and mul"
    if pipe.peak_source == "datasheet":
        return Sources(amount, PUBLISHED)
    peak = known.get(f"{letter}fma_peak_threads_per_s") if letter else _TENSOR_PEAK
    return Sources(amount, peak if pipe.peak_per_s else None)


def _row_sources(kernel: Kernel, row: PipeRow, pipe: Pipe) -> Sources:
    """Take the stored per cent that is the share; where none is, the share is amount over peak."""
    known = kernel.counter_sources
    share = next((known.get(name) for name in row.shares if kernel.counters.get(name) == pipe.share), None)
    amount = known.get(row.amount or "") if pipe.amount is not None else None
    return Sources(amount, known.get(row.peak or "") if pipe.peak_per_s else None, share)
