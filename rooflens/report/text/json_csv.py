"""The JSON of `analyze --format json`: a contract that scripts and CI read. `analysis.schema.json` describes it."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflens.model.records import Analysis, Level, Pipe

SCHEMA_VERSION = 1


def to_json(analyses: Iterable[Analysis]) -> str:
    """Write the analyses as the JSON contract has them, in the order given."""
    return json.dumps(to_document(analyses), indent=2, ensure_ascii=False, allow_nan=False)


def to_document(analyses: Iterable[Analysis]) -> dict[str, Any]:
    """Build the JSON document: units in names, shares as fractions, what was not measured null."""
    return {"schema_version": SCHEMA_VERSION, "kernels": [_kernel(analysis) for analysis in analyses]}


def _kernel(analysis: Analysis) -> dict[str, Any]:
    kernel, counters, verdict = analysis.kernel, analysis.kernel.counters, analysis.verdict
    return {
        "source": kernel.source,
        "index": kernel.index,
        "name": kernel.function_name,
        "gpu": kernel.gpu,
        "compute_capability": kernel.compute_capability,
        "status": kernel.status,
        "duration_ns": _number(kernel.duration_ns),
        "grid_size": _number(counters.get("grid_size")),
        "block_size": _number(counters.get("block_size")),
        "bytes": {name: _number(level.amount_bytes) for name, level in analysis.levels.items()},
        "bytes_source": {name: level.source for name, level in analysis.levels.items()},
        "flop": _numbers(analysis.flop),
        "flop_source": dict(analysis.flop_source),
        "flop_total": _number(analysis.flop_total),
        "intensity": {name: _number(level.intensity_flop_per_byte) for name, level in analysis.levels.items()},
        "pipes": {name: _pipe(pipe) for name, pipe in analysis.pipes.items()},
        "levels": {name: _level(level) for name, level in analysis.levels.items()},
        "verdict": {
            "bound": verdict.bound,
            "resource": verdict.resource,
            "at_roof": verdict.at_roof,
            "cause": verdict.cause,
            "headroom": _number(verdict.headroom),
            "confidence": verdict.confidence,
            "evidence": list(verdict.evidence),
            "advice": list(verdict.advice),
        },
        "nvidia": {
            "bottleneck": analysis.nvidia.bottleneck,
            "fp32_pct_of_peak": analysis.nvidia.fp32_pct_of_peak,
            "fp64_pct_of_peak": analysis.nvidia.fp64_pct_of_peak,
        },
        "flags": list(analysis.flags),
    }


def _pipe(pipe: Pipe) -> dict[str, Any]:
    return {
        "amount_per_s": _number(pipe.amount_per_s),
        "peak_per_s": _number(pipe.peak_per_s),
        "unit": pipe.unit,
        "share": _number(pipe.share),
    }


def _level(level: Level) -> dict[str, Any]:
    return {
        "bytes_per_s": _number(level.bytes_per_s),
        "peak_bytes_per_s": _number(level.peak_bytes_per_s),
        "share": _number(level.share),
        "stages": _numbers(level.stages),
    }


def _numbers(values: Mapping[str, float]) -> dict[str, float | int | None]:
    return {name: _number(value) for name, value in values.items()}


def _number(value: float | None) -> float | int | None:
    """Write whole numbers as integers, so that counts stay exact to the digit; what is not finite is missing."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


CSV_COLUMNS = (
    "source",
    "index",
    "name",
    "gpu",
    "status",
    "duration_ns",
    "flop_total",
    "dram_bytes",
    "l2_bytes",
    "l1_bytes",
    "smem_bytes",
    "dram_intensity_flop_per_byte",
    "flop_per_s",
    "dram_share",
    "l2_share",
    "l1_share",
    "smem_share",
    "bound",
    "resource",
    "at_roof",
    "cause",
    "headroom",
    "confidence",
    "flags",
)


def to_csv(analyses: Iterable[Analysis]) -> str:
    """Write one line a kernel with the columns `CSV_COLUMNS`; missing values are empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_csv_row(analysis) for analysis in analyses)
    return stream.getvalue()


def _csv_row(analysis: Analysis) -> dict[str, Any]:
    kernel, verdict = analysis.kernel, analysis.verdict
    return {
        "source": kernel.source,
        "index": kernel.index,
        "name": kernel.function_name,
        "gpu": kernel.gpu,
        "status": kernel.status,
        "duration_ns": _number(kernel.duration_ns),
        "flop_total": _number(analysis.flop_total),
        "flop_per_s": _number(analysis.flop_per_s),
        "dram_intensity_flop_per_byte": _number(analysis.levels["dram"].intensity_flop_per_byte),
        **{f"{name}_bytes": _number(level.amount_bytes) for name, level in analysis.levels.items()},
        **{f"{name}_share": _number(level.share) for name, level in analysis.levels.items()},
        "bound": verdict.bound,
        "resource": verdict.resource,
        "at_roof": verdict.at_roof,
        "cause": verdict.cause,
        "headroom": _number(verdict.headroom),
        "confidence": verdict.confidence,
        "flags": " ".join(analysis.flags),
    }
