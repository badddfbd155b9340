"""Measured kernels on another GPU or in another type: the lower bound of their time, as text and as data."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rooflens.format import duration, factor, plain_name
from rooflens.model.predict.other_gpu import WhatIf
from rooflens.report.document import Column, Document, Table, Words, bullets, code, paragraph

_COLUMNS = (
    Column("kernel", fit="name", least=18, most=48),
    Column("on", fit="wrap", least=12),
    Column("type"),
    Column("measured", right=True),
    Column("about", right=True),
    Column("gain", right=True),
    Column("limited by"),
)
_HOW = (
    "FLOPs and DRAM bytes are those measured; GPUs are represented by their datasheets: dense peaks at the boost "
    "clock. The estimate keeps the kernel's distance from the longer of FLOP / peak and bytes / bandwidth. Caches may "
    "change the bytes, and a kernel built for another GPU may not reach its peak."
)
_TYPES = (
    "Another type is the best case: all bytes that DRAM moves are taken to be of the type that does most arithmetic. "
    "Results are less exact, and conversions cost instructions."
)


def what_if_document(answers: Sequence[WhatIf]) -> Document:
    """Tabulate the answers, say of which kernels nothing can be said, and how it is worked out."""
    rows: list[tuple[Words, ...]] = [
        (
            code(plain_name(one.name)),
            one.gpu.name,
            one.dtype or "as measured",
            duration(one.measured_ns),
            duration(one.about_ns) if one.about_ns is not None else "-",
            factor(one.factor) if one.factor is not None else "-",
            one.side or "-",
        )
        for one in answers
    ]
    reasons = dict.fromkeys((plain_name(one.name), one.reason) for one in answers if one.reason)
    said = bullets([(code(name), f": {reason}") for name, reason in reasons])
    how = paragraph(_HOW, *([_TYPES] if any(one.dtype for one in answers) else []))
    return (Table(_COLUMNS, tuple(rows)), *((said,) if reasons else ()), how)


def what_if_json(answers: Sequence[WhatIf]) -> str:
    """Write the answers as JSON; null where nothing can be said."""
    rows = [
        {
            "kernel": one.name,
            "key": one.key,
            "gpu": one.gpu.id,
            "dtype": one.dtype,
            "measured_ns": one.measured_ns,
            "lower_ns": one.lower_ns,
            "about_ns": one.about_ns,
            "factor": one.factor,
            "limited_by": one.side,
            "reason": one.reason or None,
        }
        for one in answers
    ]
    return json.dumps({"kernels": rows}, indent=2, ensure_ascii=False)
