"""Where the numbers of a level and of a pipe come from: the stored metrics behind amount, peak and share."""

from __future__ import annotations

from msgspec import Struct

from rooflens.model.records import Analysis
from rooflens.model.roofline.flops import SCALAR_DTYPES
from rooflens.model.roofline.levels import ROOFS, STAGES, leading_stage
from rooflens.model.roofline.pipes import PIPE_ROWS

PUBLISHED = "published peak, scaled to the profiled clock"
_TENSOR_PEAK = "sm__ops_path_tensor_*.sum.peak_sustained x f"
_COUNTED_BY = {
    "opcode": "opcode table of the report: sass__{}_per_opcode_with_modifier_all",
    "tensor_ops": "sm__ops_path_tensor_*.sum",
    "upper_bound": "counted with the constants that HFMA2 loads: an upper bound",
    "estimated": "estimated from what kept the pipe busy",
}


class Sources(Struct, frozen=True):
    """Stored metrics or formulas; None if there is no such number.

    Attributes:
        share: None if the share is amount over peak.
    """

    amount: str | None = None
    peak: str | None = None
    share: str | None = None


def level_sources(analysis: Analysis, name: str) -> Sources:
    """Say where the bytes, the roof and the share of one memory level come from."""
    level, known = analysis.levels[name], analysis.kernel.counter_sources
    peak = next((known[counter] for counter in ROOFS[name] if counter in known), None)
    name_of_stage = leading_stage(level)
    stage = next((stage for stage in STAGES if (stage.level, stage.name) == (name, name_of_stage)), None)
    if stage is None:
        return Sources(level.source, peak)
    stage_amount, stage_peak = known.get(stage.amount or ""), known.get(stage.peak or "")
    share = f"{stage_amount} / ({stage_peak} x t)" if stage_amount and stage_peak else known.get(stage.share)
    return Sources(level.source, peak, None if share == f"{level.source} / ({peak} x t)" else share)


def pipe_sources(analysis: Analysis, name: str) -> Sources:
    """Say where the work, the roof and the share of a pipe come from.

    The stored per cent that is the share comes first; where none is, the share is amount over peak.
    """
    pipe, row = analysis.pipes[name], next((row for row in PIPE_ROWS if row.key == name), None)
    known, counters = analysis.kernel.counter_sources, analysis.kernel.counters
    if row is not None:
        share = next((known.get(stored) for stored in row.shares if counters.get(stored) == pipe.share), None)
        amount = known.get(row.amount or "") if pipe.amount is not None else None
        return Sources(amount, known.get(row.peak or "") if pipe.peak_per_s else None, share)
    letter, _ = SCALAR_DTYPES.get(name, ("", 0.0))
    amount = _COUNTED_BY.get(pipe.source, "").format("thread_inst_executed_true" if letter else "inst_executed") or None
    if pipe.source == "sass":
        amount = f"{known.get(f'{letter}fma_threads', '')}, with its add and mul"
    if pipe.peak_source == "datasheet":
        return Sources(amount, PUBLISHED)
    peak = known.get(f"{letter}fma_peak_threads_per_s") if letter else _TENSOR_PEAK
    return Sources(amount, peak if pipe.peak_per_s else None)
