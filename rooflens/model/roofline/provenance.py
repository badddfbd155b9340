"""Where the numbers of a level and of a pipe come from: the stored metrics behind amount, peak and share."""

from __future__ import annotations

from msgspec import Struct

from rooflens.model.records import Analysis, Roof
from rooflens.model.roofline.roof import SCALAR_DTYPES
from rooflens.model.roofline.units import PIPE_ROWS, STAGES

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


def _roof_words(roof: Roof | None) -> str | None:
    """Say where a roof comes from and, unless this run measured it, at which clock it holds."""
    if roof is None or not roof.of:
        return None
    clock = "scaled to the profiled clock" if roof.clock == "profiled" else "at its rated clock"
    return roof.of if roof.is_measured else f"{roof.of}, {clock}"


def level_sources(analysis: Analysis, name: str) -> Sources:
    """Say where the bytes, the roof and the share of one memory level come from."""
    level, known = analysis.levels[name], analysis.kernel.counter_sources
    peak, name_of_stage = _roof_words(level.roof), level.leading_stage
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
    peak = _roof_words(pipe.roof)
    if row is not None:
        share = next((known.get(stored) for stored in row.shares if counters.get(stored) == pipe.share), None)
        amount = known.get(row.amount or "") if pipe.amount is not None else None
        return Sources(amount, peak, share)
    letter, _ = SCALAR_DTYPES.get(name, ("", 0.0))
    amount = _COUNTED_BY.get(pipe.source, "").format("thread_inst_executed_true" if letter else "inst_executed") or None
    if pipe.source == "sass":
        amount = f"{known.get(f'{letter}fma_threads', '')}, with its add and mul"
    return Sources(amount, peak)
