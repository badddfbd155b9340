"""The rows of the table `roofline`: each kernel's position at each level and pipe, with its own quantities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from rooflens.model.catalogue import quantities
from rooflens.model.counters.table import COUNTERS
from rooflens.model.records import Analysis, Kernel
from rooflens.model.store.tables.columns import field_of, packed, table_of

_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()

_PLACED: tuple[tuple[str, pa.DataType], ...] = (
    ("kind", _TEXT),
    ("resource", _TEXT),
    ("unit", _TEXT),
    ("amount", _REAL),
    ("amount_per_s", _REAL),
    ("peak_per_s", _REAL),
    ("share", _REAL),
    ("intensity_flop_per_byte", _REAL),
)
_PLACED_NAMES = tuple(name for name, _ in _PLACED)

_IN_KERNELS = {*Kernel.__struct_fields__, "function", *(counter.name for counter in COUNTERS)}
_OF_KERNEL = tuple(
    quantity for quantity in quantities() if not quantity.is_of_item and quantity.name not in _IN_KERNELS
)
"""Quantities of a whole kernel, of no level or number type, that are not in the table `kernels`."""

ROOFLINE = pa.schema(
    [
        ("digest", _TEXT),
        ("kernel_index", _INT),
        *_PLACED,
        *map(field_of, _OF_KERNEL),
        ("model_version", _INT),
        ("thresholds_digest", _TEXT),
    ]
)

_PACKED = packed(ROOFLINE)


def roofline_table(analyses: Sequence[Analysis], model_version: int, thresholds_digest: str) -> pa.Table:
    """Make the rows of `roofline`: one a kernel and level or pipe, the kernel's own quantities repeated on each.

    A kernel that was placed nowhere has one row without a resource, so that it does not vanish. Texts are packed: most
    stand in each row of a kernel.
    """
    positions = [[*_positions(analysis)] or [(None,) * len(_PLACED)] for analysis in analyses]
    owner = pa.array([i for i, rows in enumerate(positions) for _ in rows], pa.int64())
    placed = zip(*chain.from_iterable(positions), strict=True)
    columns: dict[str, Any] = (
        dict(zip(_PLACED_NAMES, placed, strict=True)) if positions else dict.fromkeys(_PLACED_NAMES, ())
    )
    once = {
        "digest": [analysis.kernel.digest for analysis in analyses],
        "kernel_index": [analysis.kernel.index for analysis in analyses],
        "model_version": [model_version] * len(analyses),
        "thresholds_digest": [thresholds_digest] * len(analyses),
        **{quantity.name: [*map(quantity.value, analyses)] for quantity in _OF_KERNEL},
    }
    columns |= {name: pa.array(values, _PACKED.field(name).type).take(owner) for name, values in once.items()}
    return table_of(columns, _PACKED)


def _positions(analysis: Analysis) -> Iterator[tuple[Any, ...]]:
    """Yield the values of `_PLACED` for each level and pipe."""
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
