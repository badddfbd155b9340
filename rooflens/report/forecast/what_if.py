"""Measured kernels on another GPU or in another type: the lower bound of their time, as text and as data."""

from __future__ import annotations

from collections.abc import Sequence

from rooflens.format import duration, factor
from rooflens.model.predict.other_gpu import WhatIf
from rooflens.report.data import json_text
from rooflens.report.document import SPARE, Column, Document, Table, Words, bullets, code, few, paragraph
from rooflens.report.words.worth import worth_words

_WHAT_IF_COLUMNS = (
    Column("kernel", fit="name", least=18, most=48),
    Column("on"),
    Column("type", worth=SPARE),
    Column("measured", right=True),
    Column("about", right=True),
    Column("gain", right=True),
    Column("limited by"),
)
_KERNELS_NAMED = 5
"""Most kernels to name with a reason why nothing can be said."""

_WHAT_IF_NOTE = (
    "FLOPs and DRAM bytes are those measured; GPUs are represented by their datasheets: dense peaks at the boost "
    "clock. The estimate keeps the kernel's distance from the longer of FLOP / peak and bytes / bandwidth. Caches may "
    "change the bytes, and a kernel built for another GPU may not reach its peak."
)
_TYPES = (
    "Another type is the best case: all bytes that DRAM moves are taken to be of the type that does most arithmetic. "
    "Results are less exact, and conversions cost instructions."
)


def what_if_document(answers: Sequence[WhatIf]) -> Document:
    """Tabulate the answers, say why some kernels have none, and how they are worked out."""
    rows: list[tuple[Words, ...]] = [
        (
            _kernel_words(one),
            one.gpu.id,
            one.dtype or "as measured",
            duration(one.measured_ns),
            duration(one.about_ns) if one.about_ns is not None else "-",
            factor(one.factor) if one.factor is not None else "-",
            one.side or "-",
        )
        for one in answers
    ]
    unsaid: dict[str, dict[str, None]] = {}
    for one in answers:
        if one.reason:
            unsaid.setdefault(one.reason, {})[one.kernel.shown] = None
    worth: dict[str, dict[str, None]] = {}
    for one in answers:
        if words := worth_words(one):
            worth.setdefault(words, {})[one.kernel.shown] = None
    answered = bullets([(*few([*map(code, names)], _KERNELS_NAMED), f": {words}") for words, names in worth.items()])
    said = bullets([(*few([*map(code, names)], _KERNELS_NAMED), f": {reason}") for reason, names in unsaid.items()])
    how = paragraph(_WHAT_IF_NOTE, *([_TYPES] if any(one.dtype for one in answers) else []))
    return (Table(_WHAT_IF_COLUMNS, tuple(rows)), *((answered,) if worth else ()), *((said,) if unsaid else ()), how)


def _kernel_words(what_if: WhatIf) -> Words:
    launches = what_if.kernel.launch_count
    return code(what_if.kernel.shown), f" x{launches:,}" if launches > 1 else ""


def what_if_json(answers: Sequence[WhatIf]) -> str:
    """Write the answers as JSON; null where nothing can be said."""
    rows = [
        {
            "kernel": one.kernel.name,
            "key": one.kernel.analysis.key,
            "gpu": one.gpu.id,
            "dtype": one.dtype,
            "measured_ns": one.measured_ns,
            "lower_ns": one.lower_ns,
            "about_ns": one.about_ns,
            "factor": one.factor,
            "worth": one.worth,
            "pipe": one.pipe,
            "limited_by": one.side,
            "reason": one.reason or None,
        }
        for one in answers
    ]
    return json_text({"kernels": rows})
