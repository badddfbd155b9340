"""Read the results of NVIDIA's rules for each kernel, with NVIDIA's module and none of our code."""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from nvidia_topics import LOAD, STORE

Kind = Literal["none", "ok", "optimization", "warning", "error"]

KINDS: tuple[Kind, ...] = ("none", "ok", "optimization", "warning", "error")
"""In the order of NVIDIA's numbers."""

SCOPES = ("unknown", "local", "global")
"""What an estimate is a part of, in the order of NVIDIA's numbers: nothing said, its unit's time, the kernel's."""

_SECTORS, _IDEAL = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
_PER_PC = ("inst_executed", "smsp__pcsamp_sample_count")
"""Metrics whose instances are the instructions, the kernel's first one among them."""

_ACCESS_TYPE = "memory_access_type"
_LOADS, _STORES = 2, 4
"""Bits of the access type; `LDGSTS` has both, and of global memory it loads."""

_ACTIVE = "sm__cycles_active.avg"
_ELAPSED = ("sm__cycles_elapsed.avg", "sm__cycles_elapsed.max", "gpc__cycles_elapsed.max")
_SIDES = ((LOAD, re.compile(r"\b(LDG|LDGSTS|LD)\b")), (STORE, re.compile(r"\b(STG|ST)\b")))


class NvidiaResult(Struct, frozen=True):
    """One rule result.

    Attributes:
        estimate_pct: Share of the time that NVIDIA expects to save, in per cent; None if not given.
        scope: `global` for a share of the kernel's time, `local` for a share of the unit's.
    """

    identifier: str
    section: str
    title: str
    message: str
    kind: Kind
    estimate_pct: float | None = None
    scope: str | None = None


class Marker(Struct, frozen=True):
    """One place that NVIDIA's rules mark.

    Attributes:
        pc: Offset of the instruction from the kernel's start, in bytes; None for a source line.
        line: Line in `file`; None for an instruction.
        source: File and line of the instruction, if the report has them.
    """

    identifier: str
    message: str
    pc: int | None = None
    file: str | None = None
    line: int | None = None
    source: tuple[str, int] | None = None


class NvidiaKernel(Struct, frozen=True):
    """All that NVIDIA's rules say about one kernel.

    Attributes:
        index: Position in the report, from 0, over all its results.
        sections: Identifiers of the sections that were collected.
        excess_sectors: Sectors beyond the ideal by side: loads, stores; sides without any are absent.
        idle_share: 1 - active / elapsed cycles of the SMs, 0 to 1; None if it is not measured.
    """

    report: str
    index: int
    name: str
    sections: frozenset[str]
    results: tuple[NvidiaResult, ...]
    markers: tuple[Marker, ...] = ()
    excess_sectors: Mapping[str, int] = field(default_factory=dict)
    idle_share: float | None = None


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_nvidia_kernels(path: Path) -> tuple[NvidiaKernel, ...]:
    """Read the rule results of every kernel of a report; nothing if NVIDIA's module cannot open it."""
    return tuple(_kernel(path.name, index, action) for index, action in enumerate(_actions(path)))


def _actions(path: Path) -> Iterator[Any]:
    import ncu_report  # noqa: PLC0415 - a native library: only where a report is read

    with contextlib.redirect_stdout(io.StringIO()):
        context = ncu_report.load_report(str(path))
    for profiled_range in (context.range_by_idx(index) for index in range(context.num_ranges() if context else 0)):
        for index in range(profiled_range.num_actions()):
            yield profiled_range.action_by_idx(index)


def _kernel(report: str, index: int, action: Any) -> NvidiaKernel:
    return NvidiaKernel(
        report=report,
        index=index,
        name=action.name(),
        sections=frozenset(section.identifier() for section in action.sections()),
        results=tuple(_result(values) for values in action.rule_results_as_dicts()),
        markers=tuple(_markers(action)),
        excess_sectors=_excess_sectors(action),
        idle_share=_idle_share(action),
    )


def _result(values: Mapping[str, Any]) -> NvidiaResult:
    message = values.get("rule_message") or {}
    estimate = values.get("speedup_estimation") or {}
    return NvidiaResult(
        identifier=values["rule_identifier"],
        section=values["section_identifier"],
        title=message.get("title", ""),
        message=message.get("message", ""),
        kind=KINDS[int(message.get("type", 0))],
        estimate_pct=estimate.get("speedup"),
        scope=SCOPES[int(estimate["type"])] if estimate else None,
    )


def _markers(action: Any) -> Iterator[Marker]:
    marked = action.source_markers()
    start = min((pc for name in _PER_PC for pc in _by_pc(action, name)), default=0) if marked else 0
    for values in marked:
        yield _marker(values, action, start)


def _marker(values: Mapping[str, Any], action: Any, start: int) -> Marker:
    place = values.get("source_location") or {}
    address = values.get("source_address")
    info = action.source_info(address) if address is not None else None
    return Marker(
        identifier=values["rule_identifier"],
        message=values["message"],
        pc=None if address is None else address - start,
        file=place.get("file_name"),
        line=place.get("line"),
        source=(info.file_name(), info.line()) if info else None,
    )


def _excess_sectors(action: Any) -> dict[str, int]:
    sectors, ideal, kinds = (_by_pc(action, name) for name in (_SECTORS, _IDEAL, _ACCESS_TYPE))
    excess: dict[str, int] = {}
    for pc, count in sectors.items():
        side = _side(action.sass_by_pc(pc) or "", kinds.get(pc, 0))
        if side and count > ideal.get(pc, count):
            excess[side] = excess.get(side, 0) + count - ideal[pc]
    return excess


def _side(instruction: str, access_type: int) -> str | None:
    """Tell loads from stores by the opcode, or by the type of access if the report has no SASS."""
    known = next((side for side, pattern in _SIDES if pattern.search(instruction)), None)
    by_type = LOAD if access_type & _LOADS else STORE if access_type & _STORES else None
    return known or by_type


def _by_pc(action: Any, name: str) -> dict[int, int]:
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_correlation_ids():
        return {}
    keys = metric.correlation_ids()
    return {keys.as_uint64(i): metric.as_uint64(i) for i in range(metric.num_instances())}


def _idle_share(action: Any) -> float | None:
    active = _number(action, _ACTIVE)
    elapsed = next((value for name in _ELAPSED if (value := _number(action, name))), None)
    return max(0.0, 1 - active / elapsed) if active is not None and elapsed else None


def _number(action: Any, name: str) -> float | None:
    metric = action.metric_by_name(name)
    value = metric.value() if metric is not None and metric.has_value() else None
    return float(value) if isinstance(value, float | int) and value == value else None  # noqa: PLR0124 - NaN
