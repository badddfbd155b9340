"""Read what a report says of single instructions: sums over the kernel, and its hottest lines and instructions.

Metrics of this kind have one instance an instruction, with its address as correlation id. A kernel has thousands, and
text costs a tenth of a millisecond each: only what is among the hottest is named, the rest is in the sums.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.hotspots import STALL
from rooflens.model.records import Hotspot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rooflens.model.records import Grain

ByAddress: TypeAlias = "dict[int, float]"
"""Amount by address of the instruction, zeros left out."""

Key = TypeVar("Key", tuple[str, int], int, str)
"""A line, the address of an instruction, or a function."""


_EXECUTED = {"warp_inst": "inst_executed", "thread_inst": "thread_inst_executed_true"}
_GLOBAL = ("memory_l2_theoretical_sectors_global", "memory_l2_sectors_global")
_IDEAL_GLOBAL = ("memory_l2_theoretical_sectors_global_ideal", "memory_l2_sectors_global_ideal")
"""The second name is that of ncu 2020.1 and before."""
_LOCAL = "memory_l2_theoretical_sectors_local"
_SHARED, _IDEAL_SHARED = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"

_SAMPLES = "smsp__pcsamp_sample_count"
_STALLED = re.compile(r"(?:warpsampling:)?smsp__pcsamp_warps_issue_stalled_(\w+?)$")
_ISSUED = "selected"
"""Samples in which the warp issued: part of the samples, and no stall."""

_LOADS, _STORES, _OF_SHARED = 2, 4, 16
"""Bits of `memory_access_type`, and of `memory_type`: a copy from global to shared memory is a load and a store."""

_PACKED = "HFMA2"
_CONSTANT_LOAD = re.compile(r"HFMA2\S*\s+\w+,(?:[^,]*,)?\s*[-|]*RZ\b")
"""A packed multiply-add with the zero register as a factor: it computes nothing, compilers load constants with it."""
_NO_TEXT = ("", "???")

_MOST_SAMPLED, _MOST_OF_OTHERS, _MOST_OF_A_STALL = 20, 5, 3
"""So many lines and so many instructions are kept with most samples, and with most of each other measure."""
_LEAST_STALL_SHARE = 0.05
_MOST_PER_GRAIN: Mapping[Grain, int] = {"line": 28, "sass": 28, "function": 8}
_MOST_CHARACTERS = 400
_INSTRUCTION_BYTES = 16
_MOST_EVENTS = 2.0**62
"""No kernel does more of anything: a larger count is damage."""


@dataclass(frozen=True, slots=True)
class Code:
    """What is known of a kernel's instructions.

    Attributes:
        hotspots: The hottest lines, instructions and functions, each with its whole amounts.
        totals: Sum over all instructions by measure, 0 where measured and none found.
    """

    hotspots: tuple[Hotspot, ...] = ()
    totals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Function:
    """One function's place in the kernel's code."""

    start: int
    name: str


def read_code(action: Any, opcodes: Mapping[str, int], clean: Callable[[str], str]) -> Code:
    """Read one result's instructions.

    Args:
        action: The result, as NVIDIA's reader gives it.
        opcodes: Its executed opcodes with their counts; empty where unknown.
        clean: Makes text of a report valid.
    """
    reader = _Reader(action, clean)
    measured = reader.measured(opcodes)
    if not measured:
        return Code()
    totals = {measure: sum(amounts.values(), 0.0) for measure, amounts in measured.items()}
    return Code(tuple(_hotspots(reader, measured, totals)), totals)


@dataclass(slots=True)
class _Reader:
    """Access to the instructions of one result."""

    action: Any
    clean: Callable[[str], str]
    _texts: dict[int, str | None] = field(default_factory=dict)

    def measured(self, opcodes: Mapping[str, int]) -> dict[str, ByAddress]:
        """Read every measure the report holds by instruction."""
        found: dict[str, ByAddress | None] = {**self._samples()}
        found |= {measure: self.amounts(name) for measure, name in _EXECUTED.items()}
        found |= self._global()
        found["local_sectors"] = self.amounts(_LOCAL)
        found["shared_wavefronts"] = shared = self.amounts(_SHARED)
        found["shared_excess_wavefronts"] = _excess(shared, self.amounts(_IDEAL_SHARED))
        found["fp16_constant_threads"] = self._fp16_constants(found["thread_inst"], opcodes)
        return {measure: amounts for measure, amounts in found.items() if amounts is not None}

    def amounts(self, *names: str) -> ByAddress | None:
        """Read the first of some metrics that is stored by instruction, or as 0 for all of them; None where none is."""
        for name in names:
            metric = self.action.metric_by_name(name)
            if metric is not None and _is_by_address(metric):
                return _by_address(metric)
            if metric is not None and _is_zero(metric):
                return {}
        return None

    def _samples(self) -> dict[str, ByAddress]:
        """Read the samples and the stalls among them; where only reasons are stored, their sum are the samples."""
        reasons: dict[str, ByAddress] = {}
        for name in self.action.metric_names():
            if (match := _STALLED.match(name)) and not match[1].endswith("_not_issued") and match[1] not in reasons:
                metric = self.action.metric_by_name(name)
                if _is_zero(metric):
                    reasons[match[1]] = {}
                elif _is_by_address(metric):
                    reasons[match[1]] = _by_address(metric)
        samples = self.amounts(_SAMPLES)
        if samples is None and reasons:
            samples = _summed(reasons.values())
        stalls = {f"{STALL}{reason}": amounts for reason, amounts in reasons.items() if reason != _ISSUED}
        return stalls if samples is None else {"samples": samples, **stalls}

    def _global(self) -> dict[str, ByAddress | None]:
        """Divide the sectors of global memory into those of loads and those of stores."""
        sectors = self.amounts(*_GLOBAL)
        if sectors is None:
            return {}
        excess = _excess(sectors, self.amounts(*_IDEAL_GLOBAL))
        is_load = self._loads(sectors)
        if is_load is None:
            return {}
        divided: dict[str, ByAddress | None] = {}
        for what, wanted in (("load", True), ("store", False)):
            divided[f"{what}_sectors"] = {pc: n for pc, n in sectors.items() if is_load[pc] is wanted}
            divided[f"{what}_excess_sectors"] = (
                None if excess is None else {pc: n for pc, n in excess.items() if is_load[pc] is wanted}
            )
        return divided

    def _loads(self, addresses: Iterable[int]) -> dict[int, bool] | None:
        """Tell loads from stores; None where an instruction's kind is unknown.

        Copies to shared memory are loads. Atomics and reductions are stores: they write.
        """
        access, kind = self.amounts("memory_access_type"), self.amounts("memory_type") or {}
        loads: dict[int, bool] = {}
        for address in addresses:
            bits = int((access or {}).get(address, 0))
            if bits & (_LOADS | _STORES):
                loads[address] = bool(bits & _LOADS) and not (
                    bits & _STORES and not int(kind.get(address, 0)) & _OF_SHARED
                )
            elif text := self.text(address):
                loads[address] = re.search(r"(?:^|\s)LD", text) is not None
            else:
                return None
        return loads

    def _fp16_constants(self, threads: ByAddress | None, opcodes: Mapping[str, int]) -> ByAddress | None:
        """Find the packed fp16 multiply-adds that only load a constant; None where their text is missing."""
        if threads is None:
            return None
        unseen: float = sum(count for opcode, count in opcodes.items() if opcode.startswith(_PACKED))
        found: ByAddress = {}
        for address, count in threads.items():
            if opcodes and not unseen:
                break
            if opcodes and count > unseen:
                continue
            text = self.text(address)
            if text is None:
                return None
            if _PACKED in text:
                unseen -= count
                if _CONSTANT_LOAD.search(text):
                    found[address] = count
        return found

    def text(self, address: int) -> str | None:
        """Return the instruction at an address in text."""
        if address not in self._texts:
            text = (self.action.sass_by_pc(address) or "").strip()
            self._texts[address] = None if text in _NO_TEXT else self.clean(text)[:_MOST_CHARACTERS]
        return self._texts[address]

    def line(self, address: int) -> tuple[str, int] | None:
        """Return the file and the line an instruction was compiled from."""
        info = self.action.source_info(address)
        if info is None:
            return None
        file, line = info.file_name(), info.line()
        return (self.clean(file)[:_MOST_CHARACTERS], line) if file and line > 0 else None

    def source_lines(self) -> dict[str, list[str]]:
        """Return the embedded source files, divided into lines."""
        return {self.clean(name): text.splitlines() for name, text in self.action.source_files().items() if text}

    def functions(self, lowest: int, entered: Mapping[int, float]) -> tuple[_Function, ...]:
        """Find the functions of the kernel's code by address; only its own has a known name.

        With several, it is the one into which each warp of the launch went once.

        Args:
            lowest: Address of the kernel's lowest instruction.
            entered: Warp instructions executed by address.
        """
        starts = self._starts()
        if not starts or starts[0] > lowest:
            starts = [lowest]
        warps = self._warps()
        entries = [start for start in starts if warps and entered.get(start) == warps]
        own = starts if len(starts) == 1 else entries if len(entries) == 1 else []
        name = self.clean(self.action.name())
        return tuple(
            _Function(start, name if start in own else f"function at +0x{start - starts[0]:x}") for start in starts
        )

    def _starts(self) -> list[int]:
        metric = self.action.metric_by_name("launch__function_pcs")
        if metric is None:
            return []
        return sorted({metric.as_uint64(instance) for instance in range(metric.num_instances())})

    def _warps(self) -> float | None:
        """Return how many warps were launched."""
        blocks, threads = (self.action.metric_by_name(f"launch__{what}_size") for what in ("grid", "block"))
        if blocks is None or threads is None:
            return None
        return float(blocks.as_double() * math.ceil(threads.as_double() / WARP_THREADS))


def _numbers(metric: Any) -> tuple[int, ...]:
    return metric.ValueKind_UINT64, metric.ValueKind_UINT32, metric.ValueKind_DOUBLE, metric.ValueKind_FLOAT


def _is_zero(metric: Any) -> bool:
    """Return whether a metric says that it counted nothing: then its instances are zeros, or left out."""
    return bool(metric.has_value() and metric.kind() in _numbers(metric) and not metric.as_double())


def _is_by_address(metric: Any) -> bool:
    if not metric.num_instances() or not metric.has_correlation_ids():
        return False
    numbers = _numbers(metric)
    return metric.kind(0) in numbers and metric.correlation_ids().kind(0) in numbers[:2]


def _by_address(metric: Any) -> ByAddress:
    """Read the instances, leaving out what no count can be."""
    addresses = metric.correlation_ids()
    amounts: ByAddress = defaultdict(float)
    for instance in range(metric.num_instances()):
        amount = metric.as_double(instance)
        if 0 < amount <= _MOST_EVENTS:
            amounts[addresses.as_uint64(instance)] += amount
    return dict(amounts)


def _excess(amounts: ByAddress | None, ideal: ByAddress | None) -> ByAddress | None:
    if amounts is None or ideal is None:
        return None
    return {pc: n - ideal.get(pc, 0.0) for pc, n in amounts.items() if n > ideal.get(pc, 0.0)}


def _summed(parts: Iterable[ByAddress]) -> ByAddress:
    total: ByAddress = defaultdict(float)
    for part in parts:
        for address, amount in part.items():
            total[address] += amount
    return dict(total)


def _hotspots(reader: _Reader, measured: Mapping[str, ByAddress], totals: Mapping[str, float]) -> Iterator[Hotspot]:
    """Yield the hottest lines, instructions and functions."""
    executed = measured.get("warp_inst") or {}
    known = executed.keys() or set().union(*measured.values())
    if not known:
        return
    functions = reader.functions(min(known), executed)
    starts = [function.start for function in functions]
    # A few samples are of what ran before or beside the kernel. Behind its last instruction one may stand.
    end = max(known) + _INSTRUCTION_BYTES
    inside = {pc for amounts in measured.values() for pc in amounts if starts[0] <= pc <= end}
    function_of = {pc: functions[bisect_right(starts, pc) - 1].name for pc in inside}
    line_of = {pc: place for pc in inside if (place := reader.line(pc))}
    sources = reader.source_lines() if line_of else {}

    for (file, line), amounts in _hottest(_grouped(measured, line_of), "line", totals):
        names = {function_of[pc] for pc, place in line_of.items() if place == (file, line)}
        name = names.pop() if len(names) == 1 else None
        yield Hotspot("line", file, line, name, text=_text_at(sources, (file, line)), measures=amounts)
    for pc, amounts in _hottest(_grouped(measured, {pc: pc for pc in inside}), "sass", totals):
        at = line_of.get(pc)
        yield Hotspot(
            by="sass",
            file=at[0] if at else None,
            line=at[1] if at else None,
            function=function_of[pc],
            pc=pc - starts[0],
            sass=reader.text(pc),
            text=_text_at(sources, at),
            measures=amounts,
        )
    for name, amounts in _hottest(_grouped(measured, function_of), "function", totals):
        yield Hotspot("function", function=name, measures=amounts)


def _grouped(measured: Mapping[str, ByAddress], key_of: Mapping[int, Key]) -> dict[str, dict[Key, float]]:
    """Sum each measure over the instructions of a line or function; what has no key is left out."""
    columns: dict[str, dict[Key, float]] = {}
    for measure, amounts in measured.items():
        column: dict[Key, float] = defaultdict(float)
        for pc, amount in amounts.items():
            if pc in key_of:
                column[key_of[pc]] += amount
        columns[measure] = column
    return columns


def _hottest(
    columns: Mapping[str, Mapping[Key, float]], grain: Grain, totals: Mapping[str, float]
) -> list[tuple[Key, dict[str, float]]]:
    """Choose what is hottest by any measure, the first by each before the second by any; most samples first."""
    stalled = sum(total for measure, total in totals.items() if measure.startswith(STALL))
    rankings = [_ranking(_idle_threads(columns), _MOST_OF_OTHERS)]
    for measure, column in columns.items():
        if measure == "samples":
            rankings.append(_ranking(column, _MOST_SAMPLED))
        elif not measure.startswith(STALL):
            rankings.append(_ranking(column, _MOST_OF_OTHERS))
        elif totals[measure] > _LEAST_STALL_SHARE * stalled:
            rankings.append(_ranking(column, _MOST_OF_A_STALL))
    ranked = (key for key in chain.from_iterable(zip_longest(*rankings)) if key is not None)
    chosen = list(dict.fromkeys(ranked))[: _MOST_PER_GRAIN[grain]]
    rows = [(key, {m: column[key] for m, column in columns.items() if column.get(key)}) for key in chosen]
    return sorted(rows, key=lambda row: (-row[1].get("samples", 0), -row[1].get("warp_inst", 0), row[0]))


def _ranking(column: Mapping[Key, float], count: int) -> list[Key]:
    return [key for amount, key in nlargest(count, ((amount, key) for key, amount in column.items())) if amount > 0]


def _idle_threads(columns: Mapping[str, Mapping[Key, float]]) -> dict[Key, float]:
    """Return how many threads of the executed warps did nothing."""
    if "thread_inst" not in columns:
        return {}
    threads = columns["thread_inst"]
    return {key: WARP_THREADS * warps - threads.get(key, 0.0) for key, warps in columns.get("warp_inst", {}).items()}


def _text_at(sources: Mapping[str, Sequence[str]], place: tuple[str, int] | None) -> str | None:
    if place is None:
        return None
    lines = sources.get(place[0], ())
    return lines[place[1] - 1].strip()[:_MOST_CHARACTERS] or None if place[1] <= len(lines) else None
