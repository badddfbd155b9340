"""Map NVIDIA's rule results to our findings of the same topic, or to the reason why there is none.

The table is keyed by rule identifier and title, as stored in reports. Where the title does not say enough (whether
uncoalesced accesses load or store, whether a tail was idle, what fp64 costs on the chip), the result itself is used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nvidia_results import NvidiaKernel, NvidiaResult

LOAD, STORE = "uncoalesced_global_load", "uncoalesced_global_store"

MEASURED_IDLE = 0.10
"""A computed tail counts only where the SMs are measured idle for at least this part of the time."""

_CHEAP_FP64 = 2.0
"""A chip that does fp64 at half the rate of fp32 is not slow at it."""

_RATIO = re.compile(r"float \(fp32\) to double \(fp64\) performance on this device is (\d+):1", re.IGNORECASE)

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")

_SYNONYMS = {"no_instructions": "no_instruction", "no_inst": "no_instruction"}
"""Spellings of a stall reason in NVIDIA's titles and counters -> the one in our ids."""


class Excluded(Struct, frozen=True):
    """A result that none of our findings has to match, and the reason."""

    reason: str


Choice = str | Excluded


_POSITION = Excluded("says which unit is busiest, which is the verdict's matter and is held in test_oracles")
_PIPES = Excluded("says how busy the pipes are, which is the verdict's matter")
_ISSUE = Excluded("says that issue slots are empty; why they are is said by the stalls and the occupancy")
_FAR_CACHE = Excluded("the same access is judged once, at L1; L2 and DRAM patterns follow from it")
_COMPRESSION = Excluded("compression of memory is chosen by the allocation, not by the kernel")
_COLLECTING = Excluded("speaks of how the report was collected, not of the kernel")
_POINTER = Excluded("points to another section and says nothing of the kernel")
_FAILED = Excluded("the rule failed and said nothing")
_SLOW_PIPE = Excluded("says that some pipe is slow without naming it")
_CHEAP = Excluded("on a chip with fp64 at half the rate of fp32, fp64 is not slow")
_SHORT_TAIL = Excluded("a computed tail, but the SMs are measured idle for under 10 % of the time, or it is unknown")
_NO_SIDE = Excluded("the report does not tell which instructions are uncoalesced")


def choice_of(result: NvidiaResult, kernel: NvidiaKernel) -> Choice | None:
    """Return the ID of the matching finding, or the reason why there is none; None if the table lacks the pair."""
    if result.kind == "error":
        return _FAILED
    for pattern, choose in TABLE:
        if pattern.fullmatch(f"{result.identifier}/{result.title}"):
            return choose if isinstance(choose, str | Excluded) else choose(result, kernel)
    return None


def stall_id(reason: str) -> str:
    """Make the ID of a stall's finding from NVIDIA's spelling: `Long Scoreboard Stalls`, `imc_miss`."""
    words = re.sub(r"\s+stalls?$", "", reason.strip(), flags=re.IGNORECASE)
    key = re.sub(r"[\s_]+", "_", words).lower()
    return f"stall_{_SYNONYMS.get(key, key)}"


def _stall_of_title(result: NvidiaResult, _kernel: NvidiaKernel) -> Choice:
    return stall_id(result.title) if result.title else _POINTER


def _stall_of_identifier(result: NvidiaResult, _kernel: NvidiaKernel) -> Choice:
    return stall_id(_CAMEL.sub(" ", result.identifier.removeprefix("CPIStall")))


def _uncoalesced(_result: NvidiaResult, kernel: NvidiaKernel) -> Choice:
    """Choose the side, loads or stores, with more excess sectors."""
    excess = kernel.excess_sectors
    return max(excess, key=lambda side: excess[side]) if excess else _NO_SIDE


def _tail(_result: NvidiaResult, kernel: NvidiaKernel) -> Choice:
    idle = kernel.idle_share
    return "tail_wave" if idle is not None and idle >= MEASURED_IDLE else _SHORT_TAIL


def _fp64(result: NvidiaResult, _kernel: NvidiaKernel) -> Choice:
    match = _RATIO.search(result.message)
    if match is None:
        return _POINTER
    return "slow_fp64" if float(match[1]) > _CHEAP_FP64 else _CHEAP


def _rows(rows: Mapping[str, Choice | Callable[[NvidiaResult, NvidiaKernel], Choice]]) -> tuple[_Row, ...]:
    return tuple((re.compile(pattern), choose) for pattern, choose in rows.items())


_Row = tuple[re.Pattern[str], "Choice | Callable[[NvidiaResult, NvidiaKernel], Choice]"]

TABLE: tuple[_Row, ...] = _rows(
    {
        "UncoalescedGlobalAccess/.*": _uncoalesced,
        "UncoalescedSharedAccess/.*": "bank_conflicts",
        "SharedMemoryConflicts/.*": "bank_conflicts",
        "MemoryCacheAccessPattern/L1TEX Global Load Access Pattern": LOAD,
        "MemoryCacheAccessPattern/L1TEX Global Store Access Pattern": STORE,
        "MemoryCacheAccessPattern/L1TEX Local (Load|Store) Access Pattern": "local_memory",
        "MemoryCacheAccessPattern/(L2|DRAM) .*": _FAR_CACHE,
        "ThreadDivergence/.*": "thread_divergence",
        "LaunchConfiguration/Block Size": "partial_warps",
        "LaunchConfiguration/Small Grid": "small_grid",
        "LaunchConfiguration/Tail Effect": _tail,
        "TheoreticalOccupancy/.*": "low_occupancy",
        "Occupancy/.*": "low_occupancy",
        "AchievedOccupancy/.*": "achieved_occupancy_gap",
        "WorkloadImbalance/(SMs|SMSPs|TPCs|GPCs|L1 Slices|L1TEXs?) Workload Imbalance": "load_imbalance",
        "WorkloadImbalance/(L2 Slices|LTSs?|DRAM .*|FBPAs?) Workload Imbalance": "partition_imbalance",
        "CPIStall/.*": _stall_of_title,
        "CPIStall[A-Z].*/.*": _stall_of_identifier,
        "FPInstructions/.*": "unfused_arithmetic",
        "SOLFPRoofline/FP64/32 Utilization": _fp64,
        "SOLFPRoofline/.*": _POSITION,
        "SOLBottleneck/.*": _POSITION,
        "HighPipeUtilization/.*": _PIPES,
        "SlowPipeLimiter/.*": _SLOW_PIPE,
        "IssueSlotUtilization/.*": _ISSUE,
        "MemoryL2Compression/.*": _COMPRESSION,
        "PCSamplingData/.*": _COLLECTING,
        "PMSamplingData/.*": _COLLECTING,
    }
)
"""`identifier/title` as a regular expression -> finding, exclusion, or what decides between them; the first match."""
