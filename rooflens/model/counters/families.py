"""Families of metrics: what the parts of a name mean, so that one row of the table reads every spelling of a quantity.

A metric is `unit__quantity.rollup.submetric`: `dram__bytes_read.sum.per_second` is what all instances of `dram` read, a
second (Kernel Profiling Guide, Metrics Structure). The roll-up adds up (`sum`) or averages (`avg`) over the
instances of the unit; the submetric sets the value against time, cycles or the peak. Two units may count the same:
sub-partitions (`smsp`) are parts of an SM (`sm`). And a sector is 32 bytes, whoever counts it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

SECTOR_BYTES = 32.0

OF_ACTIVE = " (of active cycles)"
"""End of the source of a share that is one of active cycles, where nobody knows for how much of the run these were."""

INSTANCES_PER_SM: Mapping[str, float] = {"sm": 1.0, "l1tex": 1.0, "smsp": 4.0}
"""Units of which every SM has the same number, on every chip from Volta on. Of others, their cycles tell."""

CLOCK_OF_UNIT: Mapping[str, str] = {
    "sm": "sm_clock_hz",
    "smsp": "sm_clock_hz",
    "l1tex": "l1_clock_hz",
    "lts": "l2_clock_hz",
    "dram": "dram_clock_hz",
}
"""Unit -> the counter of its clock."""

SM_CYCLES = ("sm", "gpc", "smsp")
"""Units that run at the clock of the SMs, and count its cycles."""

_TWIN = {"sm": "smsp", "smsp": "sm"}
_SUMS_UP = re.compile(r"(?:sass_)?(?:thread_)?inst_(?:executed|issued)|issue_active|sass_data_bytes|warps_launched")
"""Quantities of which an SM has as much as its sub-partitions together: instructions and threads, but no cycles."""

_BYTES_OR_SECTORS = re.compile(r"(?<=_)(bytes|sectors)(?=_|$)")
_IN_SECTORS = frozenset({"dram", "lts", "l1tex"})
"""Units that count bytes by the sector."""


def unit_of(name: str) -> str:
    """Return the unit of a metric: `sm` of `sm__inst_executed.sum`."""
    return name.partition("__")[0]


@lru_cache(maxsize=4096)
def spellings(base: str) -> tuple[str, ...]:
    """Return a metric without its roll-up, and the name under which its twin unit counts the same."""
    unit, _, quantity = base.partition("__")
    if unit in _TWIN and _SUMS_UP.match(quantity):
        return (base, f"{_TWIN[unit]}__{quantity}")
    return (base,)


@lru_cache(maxsize=4096)
def in_sectors(base: str) -> tuple[str, float] | None:
    """Return the metric that counts the sectors of these bytes, or the bytes of these sectors, and what one of it is.

    None where a unit counts no sectors.
    """
    unit, _, quantity = base.partition("__")
    found = _BYTES_OR_SECTORS.findall(f"_{quantity}")
    if unit not in _IN_SECTORS or len(found) != 1:
        return None
    other = "sectors" if found[0] == "bytes" else "bytes"
    renamed = _BYTES_OR_SECTORS.sub(other, f"_{quantity}")[1:]
    return f"{unit}__{renamed}", SECTOR_BYTES if other == "sectors" else 1 / SECTOR_BYTES


def family(base: str) -> tuple[str, ...]:
    """Return every name, without roll-up, that counts the same as this one."""
    own = spellings(base)
    other = in_sectors(base)
    return own if other is None else (*own, *spellings(other[0]))
