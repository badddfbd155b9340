"""Suggestions for a name that an object lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.errors import any_of, meant_names

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


MEANT: Mapping[str, Mapping[str, str]] = {
    "Kernel": {
        "advice": "kernel.moves",
        "ai": 'kernel.intensity["dram"]',
        "arithmetic_intensity": 'kernel.intensity["dram"]',
        "bottleneck": "kernel.verdict.resource",
        "bound": "kernel.verdict.bound",
        "bytes": 'kernel.levels["dram"].amount_bytes',
        "limiter": "kernel.verdict.resource",
        "speedup": "kernel.gain",
        "summary": "kernel.verdict.sentence",
        "time": "kernel.duration_ns",
        "time_ms": "kernel.duration_ns",
    },
    "Report": {
        "compare": "rl.compare(report, other)",
        "df": "report.to_pandas()",
        "names": "[kernel.name for kernel in report]",
        "plot": "report.chart()",
        "summary": "report.digest()",
        "table": "report.to_pandas()",
        "to_csv": 'report.save("kernels.csv")',
        "to_html": 'report.save("page.html")',
        "to_json": 'report.save("kernels.json")',
        "to_markdown": 'report.save("kernels.md")',
        "top": "report[:3]",
    },
    "Comparison": {"speedup": "comparison.factor", "kernels": "comparison.changes", "to_csv": "comparison.to_pandas()"},
    "rooflens": {
        "about": "rooflens about NAME",
        "analyze": "rl.open(path)",
        "explain": "rl.open(path)[0].explain()",
        "gpu": "rl.gpus(name)",
        "hotspots": "rl.open(path)[0].hotspots()",
        "load": "rl.open(path)",
        "read": "rl.open(path)",
    },
}
"""Names that people try for something named otherwise or found elsewhere, by object -> how to write it."""


def lacking(thing: object, name: str, known: Collection[str], also: str = "") -> AttributeError:
    """Make the error for a name that an object lacks, with suggestions.

    Args:
        thing: The object.
        name: The requested name.
        known: The existing names.
        also: Where the name exists instead, said first.
    """
    near = () if name.startswith("_") else meant_names(name, known)
    meant = MEANT.get(type(thing).__name__, {}).get(name)
    if meant:
        near, also = (), f"here it is `{meant}`"
    hints = [*([also] if also else []), *([f"did you mean {any_of(near)}?"] if near else [])]
    error = AttributeError(f"a {type(thing).__name__} has no `{name}`" + (f": {'; '.join(hints)}" if hints else ""))
    error.name, error.obj = (None, None) if hints else (name, thing)  # else Python adds a guess of its own
    return error
