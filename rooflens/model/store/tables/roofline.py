"""The rows of the table `roofline`: where each kernel stands at each level and pipe, with its verdict."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rooflens.model.store.tables.columns import packed, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflens.model.records import Analysis

_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()

ROOFLINE = pa.schema(
    [
        ("digest", _TEXT),
        ("kernel_index", _INT),
        ("kind", _TEXT),
        ("resource", _TEXT),
        ("unit", _TEXT),
        ("amount", _REAL),
        ("amount_per_s", _REAL),
        ("peak_per_s", _REAL),
        ("share", _REAL),
        ("intensity_flop_per_byte", _REAL),
        ("flop_total", _REAL),
        ("flop_per_s", _REAL),
        ("flop_peak_per_s", _REAL),
        ("bound", _TEXT),
        ("bound_resource", _TEXT),
        ("at_roof", pa.bool_()),
        ("cause", _TEXT),
        ("headroom", _REAL),
        ("confidence", _TEXT),
        ("sentence", _TEXT),
        ("flags", pa.list_(_TEXT)),
        ("model_version", _INT),
        ("thresholds_digest", _TEXT),
    ]
)

_PACKED = packed(ROOFLINE)

_PLACED = ("kind", "resource", "unit", "amount", "amount_per_s", "peak_per_s", "share", "intensity_flop_per_byte")
_Position = tuple[Any, ...]


def roofline_table(analyses: Sequence[Analysis], model_version: int, thresholds_digest: str) -> pa.Table:
    """Make the rows of `roofline`: one a kernel and level or pipe, the verdict repeated on each.

    A kernel that was placed nowhere has one row without a resource, so that it does not vanish. Texts are packed: most
    stand in each row of a kernel.
    """
    positions = [[*_positions(analysis)] or [(None,) * len(_PLACED)] for analysis in analyses]
    owner = pa.array([i for i, rows in enumerate(positions) for _ in rows], pa.int64())
    placed = zip(*chain.from_iterable(positions), strict=True)
    columns: dict[str, Any] = dict(zip(_PLACED, placed, strict=True)) if positions else dict.fromkeys(_PLACED, ())
    said = _verdicts(analyses) | {
        "model_version": [model_version] * len(analyses),
        "thresholds_digest": [thresholds_digest] * len(analyses),
    }
    columns |= {name: pa.array(values, _PACKED.field(name).type).take(owner) for name, values in said.items()}
    return table_of(columns, _PACKED)


def _verdicts(analyses: Sequence[Analysis]) -> dict[str, list[Any]]:
    """Return what is said once of a kernel, by column."""
    return {
        "digest": [analysis.kernel.digest for analysis in analyses],
        "kernel_index": [analysis.kernel.index for analysis in analyses],
        "flop_total": [analysis.flop_total for analysis in analyses],
        "flop_per_s": [analysis.flop_per_s for analysis in analyses],
        "flop_peak_per_s": [analysis.flop_peak_per_s for analysis in analyses],
        "bound": [analysis.verdict.bound for analysis in analyses],
        "bound_resource": [analysis.verdict.resource for analysis in analyses],
        "at_roof": [analysis.verdict.at_roof for analysis in analyses],
        "cause": [analysis.verdict.cause for analysis in analyses],
        "headroom": [analysis.verdict.distances.headroom for analysis in analyses],
        "confidence": [analysis.verdict.confidence for analysis in analyses],
        "sentence": [analysis.verdict.sentence for analysis in analyses],
        "flags": [list(analysis.flags) for analysis in analyses],
    }


def _positions(analysis: Analysis) -> Iterator[_Position]:
    """Give the values of the columns `_PLACED` for each level and pipe."""
    for name, level in analysis.levels.items():
        if level.amount_bytes is not None or level.share is not None:
            yield (
                "level",
                name,
                "byte",
                level.amount_bytes,
                level.bytes_per_s,
                level.peak_bytes_per_s,
                level.share,
                level.intensity_flop_per_byte,
            )
    for name, pipe in analysis.pipes.items():
        yield "pipe", name, pipe.unit, pipe.amount, pipe.amount_per_s, pipe.peak_per_s, pipe.share, None
