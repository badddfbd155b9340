"""Families of counters: which quantities, and so which of ncu's counters, one page of the reference is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.model.counters.accesses import ATOMICS, CONFLICTS, HOST, LOCAL, USE
from rooflens.model.counters.balance import BALANCE, CAPACITY, WAITS
from rooflens.model.counters.execution import FLOPS, PIPES, REPORT, WARPS
from rooflens.model.counters.memory import CLOCKS, DRAM, L1, L2, SMEM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflens.model.counters.recipes import Counter

_ISSUE = ("issue", "executed_share")
_TENSOR = ("tensor_", "shared_pipe")
_OCCUPANCY_ENDS_AT = "stall_samples"


def _named(rows: Iterable[Counter], *starts: str) -> tuple[Counter, ...]:
    return tuple(row for row in rows if row.name.startswith(starts))


def _others(rows: Iterable[Counter], *known: Iterable[Counter]) -> tuple[Counter, ...]:
    taken = {row.name for group in known for row in group}
    return tuple(row for row in rows if row.name not in taken)


_GLOBAL = (*_named(L1, "global_"), *_named(USE, "global_"))
_ON_LOCAL = (*LOCAL, *_named(USE, "local_"))
_OF_ISSUE = (
    *_named(PIPES, *_ISSUE),
    *_named(WARPS, "eligible", "issue_active"),
    *_named(REPORT, "executed_inst"),
    *_others(USE, _GLOBAL, _ON_LOCAL),
)
_OF_TENSOR = _named(PIPES, *_TENSOR)
_SAMPLED = (*_named(WARPS, _OCCUPANCY_ENDS_AT), *WAITS)

FAMILIES: Mapping[str, tuple[Counter, ...]] = {
    "clocks": (*CLOCKS, *_named(REPORT, "passes")),
    "dram": DRAM,
    "l2": L2,
    "l1": _others(L1, _GLOBAL),
    "global-memory": _GLOBAL,
    "host-memory": HOST,
    "shared-memory": (*SMEM, *CONFLICTS),
    "local-memory": _ON_LOCAL,
    "atomics": ATOMICS,
    "flops": FLOPS,
    "tensor": _OF_TENSOR,
    "pipes": _others(PIPES, _OF_ISSUE, _OF_TENSOR),
    "issue": _OF_ISSUE,
    "waits": _SAMPLED,
    "occupancy": (*_others(WARPS, _OF_ISSUE, _SAMPLED), *CAPACITY),
    "balance": BALANCE,
    "speed-of-light": _others(REPORT, _OF_ISSUE, _named(REPORT, "passes")),
}
"""Page of docs/reference/counters -> the quantities it is about: each is on one."""

PAGE_OF_PART: tuple[tuple[str, str], ...] = (
    ("pmsampling:", "over-time"),
    ("breakdown:", "speed-of-light"),
    ("pcsamp", "waits"),
    ("issue_stalled", "waits"),
    ("tensor", "tensor"),
    ("op_atom", "atomics"),
    ("op_red", "atomics"),
    ("atomic", "atomics"),
    ("pipe_lsu_mem_global", "global-memory"),
    ("mem_global", "global-memory"),
    ("mem_local", "local-memory"),
    ("mem_shared", "shared-memory"),
    ("data_bank", "shared-memory"),
    ("sysmem", "host-memory"),
    ("c2clink", "host-memory"),
    ("dram__", "dram"),
    ("fbpa__", "dram"),
    ("cycles_elapsed", "clocks"),
    ("time_duration", "clocks"),
    ("lts__", "l2"),
    ("ltc__", "l2"),
    ("l1tex__", "l1"),
    ("throughput", "speed-of-light"),
    ("launch__", "occupancy"),
    ("device__", "occupancy"),
    ("warps_active", "occupancy"),
    ("thread_inst_executed_op", "flops"),
    ("per_opcode", "flops"),
    ("pipe_", "pipes"),
    ("sass__", "by-instruction"),
    ("_sass_", "by-instruction"),
    ("inst_", "issue"),
    ("issue_", "issue"),
    ("warps_eligible", "issue"),
    ("cycles_active", "balance"),
)
"""A part of a name -> the page of its family, for counters that no quantity is read from; the first counts."""


def family_of(base: str) -> str:
    """Return the page of docs/reference/counters that a counter without roll-up is nearest to; else `index`."""
    return next((page for part, page in PAGE_OF_PART if part in base), "index")
