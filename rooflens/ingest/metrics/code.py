"""Read what a report says of single instructions: sums over the kernel, and its hottest lines and instructions.

Metrics of this kind have one instance for each instruction, with its address as correlation id. A kernel has thousands,
and text costs a tenth of a millisecond each: only the hottest get text, the rest only count in the sums.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.ingest.metrics import figures
from rooflens.ingest.metrics.stored import Kind, Metrics, Stored, Texts
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.hotspots import STALL
from rooflens.model.records import NO_VALUES, Grain, Hotspot, SourceFile

ByAddress: TypeAlias = "dict[int, float]"
"""Amount by address of an instruction, zeros left out."""

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
"""Samples in which the warp issued: they count as samples, but not as a stall."""

_ACCESS, _MEMORY = "memory_access_type", "memory_type"
FUNCTIONS = "launch__function_pcs"
_LAUNCH = ("launch__grid_size", "launch__block_size")
_OF_ONE_NAME = (_LOCAL, _SHARED, _IDEAL_SHARED, _SAMPLES)
_METRICS_READ = frozenset((*_EXECUTED.values(), *_GLOBAL, *_IDEAL_GLOBAL, *_OF_ONE_NAME, _ACCESS, _MEMORY))
_OF_MEMORY = ("local_sectors", "shared_wavefronts", "shared_excess_wavefronts")

_LOADS, _STORES, _OF_SHARED = 2, 4, 16
"""Bits of `memory_access_type`, and of `memory_type`: a copy from global to shared memory is a load and a store."""

_PACKED_FMA = "HFMA2"
_NO_TEXT = ("", "???")

_MOST_OF_OTHERS, _MOST_OF_A_STALL = 5, 3
"""How many lines, and instructions, are kept with the most of each measure but samples, and of a stall."""
_LEAST_STALL_SHARE = 0.05
_MOST_PER_GRAIN: Mapping[Grain, int] = {"line": 40, "sass": 40, "function": 8}
"""Half of them are those with the most samples."""
MOST_CHARACTERS = 400
"""How much is kept of a file's name, a source line or an instruction."""
_MOST_TEXT = 1 << 20
"""Characters kept of all source files of a kernel: an agent's or a person's own files are a tenth of that."""
_INSTRUCTION_BYTES = 16
_MOST_EVENTS = 2.0**62
"""No kernel does more of anything: a larger count is damage."""


class Code(Struct, frozen=True):
    """The data of a kernel's instructions.

    Attributes:
        hotspots: The hottest lines, instructions and functions, each with all its amounts.
        totals: Sum over all instructions by measure; 0 where measured and nothing was counted.
        needs_kinds: Whether a measure is missing that the kinds of the instructions would give.
        start: Address that the offsets of hot spots count from.
        sources: What is known of the files of the hottest lines, by name.
    """

    hotspots: tuple[Hotspot, ...] = ()
    totals: Mapping[str, float] = field(default_factory=dict)
    needs_kinds: bool = False
    start: int = 0
    sources: Mapping[str, SourceFile] = NO_VALUES


class Instructions(Struct, frozen=True):
    """What a report stores by instruction of a kernel, zeros left out.

    Attributes:
        amounts: Amount by address, by measure.
        sectors: Sectors of global memory, of loads and stores together; None if they are not stored.
        excess_sectors: The sectors beyond what ideal access patterns would need; None if not stored.
        access: Bits that tell loads from stores, by address.
        memory: Bits that tell the kinds of memory, by address.
        opcodes: Executed opcodes with their counts; empty where unknown.
        function_name: Name of the kernel's function.
        starts: Address of the first instruction of each function, sorted.
        warps: How many warps were launched; None where unknown.
        figures: What published figures say of the instructions; None for every other report.
    """

    amounts: Mapping[str, ByAddress]
    sectors: ByAddress | None
    excess_sectors: ByAddress | None
    access: ByAddress
    memory: ByAddress
    opcodes: Mapping[str, int]
    function_name: str
    starts: Sequence[int]
    warps: float | None
    figures: figures.Figures | None = None

    @property
    def start(self) -> int | None:
        """Address of the kernel's first instruction; None if several functions leave it open."""
        if len(self.starts) == 1:
            return self.starts[0]
        return None if self.starts else min(self.amounts.get("warp_inst", ()), default=None)


class _FunctionStart(Struct, frozen=True):
    """One function's place in the kernel's code."""

    start: int
    name: str


def uses(name: str) -> bool:
    """Return whether the instances of this metric are read."""
    return name in _METRICS_READ or figures.uses(name) or _STALLED.match(name) is not None


def needs(name: str) -> bool:
    """Return whether this metric is read besides those with instances."""
    return name in _LAUNCH or name == FUNCTIONS


def gather(metrics: Metrics, opcodes: Mapping[str, int], function_name: str) -> Instructions | None:
    """Collect the data stored by instruction; None without any.

    Args:
        metrics: The result's metrics.
        opcodes: Its executed opcodes with their counts; empty where unknown.
        function_name: Name of the kernel's function.
    """
    shared = _amounts(metrics, _SHARED)
    sectors = _amounts(metrics, *_GLOBAL)
    found: dict[str, ByAddress | None] = {
        **_samples(metrics),
        **{measure: _amounts(metrics, name) for measure, name in _EXECUTED.items()},
        "local_sectors": _amounts(metrics, _LOCAL),
        "shared_wavefronts": shared,
        "shared_excess_wavefronts": _excess_amounts(shared, _amounts(metrics, _IDEAL_SHARED)),
    }
    amounts = {measure: by_address for measure, by_address in found.items() if by_address is not None}
    if not amounts and sectors is None:
        return None
    starts = metrics.metric(FUNCTIONS)
    return Instructions(
        amounts=amounts,
        sectors=sectors,
        excess_sectors=_excess_amounts(sectors, _amounts(metrics, *_IDEAL_GLOBAL)),
        access=_amounts(metrics, _ACCESS) or {},
        memory=_amounts(metrics, _MEMORY) or {},
        opcodes=opcodes,
        function_name=function_name,
        starts=sorted({int(start) for start in starts.values if not isinstance(start, str)}) if starts else (),
        warps=_warps(metrics),
        figures=figures.read_figures(metrics),
    )


def read_code(instructions: Instructions, texts: Texts | None) -> Code:
    """Sum a kernel's instructions and find the hottest ones.

    Args:
        instructions: Their stored data.
        texts: Their kinds and source lines; None where only a published report's own figures can tell.
    """
    reader = _InstructionReader(instructions, instructions.figures or texts)
    measured = reader.measured()
    if not measured:
        return Code(needs_kinds=reader.needs_kinds)
    totals = {measure: sum(amounts.values(), 0.0) for measure, amounts in measured.items()}
    executed = measured.get("warp_inst") or {}
    known = executed.keys() or set().union(*measured.values())
    if not known:
        return Code((), totals, reader.needs_kinds)
    functions = reader.functions(min(known), executed)
    # A few samples are of what ran before or beside the kernel; one may lie right after its last instruction.
    start, end = functions[0].start, max(known) + _INSTRUCTION_BYTES
    inside = {pc for amounts in measured.values() for pc in amounts if start <= pc <= end}
    hotspots = tuple(_hotspots(reader, measured, totals, functions, inside))
    return Code(hotspots, totals, reader.needs_kinds, start, reader.sources(hotspots))


def line_text(lines: Sequence[str], line: int) -> str | None:
    """Return the text of a line, from 1, as hot spots hold it; None where there is none."""
    return lines[line - 1].strip()[:MOST_CHARACTERS] or None if 0 < line <= len(lines) else None


def clean_text(text: str | None) -> str | None:
    """Cut the text of an instruction; None for what the disassembler says where it knows none."""
    text = (text or "").strip()
    return None if text in _NO_TEXT else text[:MOST_CHARACTERS]


class _InstructionReader(Struct):
    """Access to the instructions of a result."""

    stored: Instructions
    texts: Texts | None
    needs_kinds: bool = False
    _lines: dict[str, list[str]] = field(default_factory=dict)

    def measured(self) -> dict[str, ByAddress]:
        """Find every measure that the report holds by instruction."""
        amounts = self.stored.amounts
        found = {measure: amounts[measure] for measure in amounts if measure == "samples" or measure.startswith(STALL)}
        found |= {measure: amounts[measure] for measure in _EXECUTED if measure in amounts}
        found |= self._global()
        found |= {measure: amounts[measure] for measure in _OF_MEMORY if measure in amounts}
        constants = self._fp16_constants(amounts.get("thread_inst"))
        return found if constants is None else {**found, "fp16_constant_threads": constants}

    def _global(self) -> dict[str, ByAddress]:
        """Divide the sectors of global memory into those of loads and those of stores."""
        sectors, excess = self.stored.sectors, self.stored.excess_sectors
        is_load = None if sectors is None else self._loads(sectors)
        if sectors is None or is_load is None:
            return {}
        divided: dict[str, ByAddress] = {}
        for what, wanted in (("load", True), ("store", False)):
            divided[f"{what}_sectors"] = {pc: n for pc, n in sectors.items() if is_load[pc] is wanted}
            if excess is not None:
                divided[f"{what}_excess_sectors"] = {pc: n for pc, n in excess.items() if is_load[pc] is wanted}
        return divided

    def _loads(self, addresses: Iterable[int]) -> dict[int, bool] | None:
        """Tell loads from stores; None if an instruction's kind is unknown.

        Copies to shared memory are loads. Atomics and reductions are stores: they write.
        """
        loads: dict[int, bool] = {}
        for address in addresses:
            bits = int(self.stored.access.get(address, 0))
            if bits & (_LOADS | _STORES):
                is_copy = bits & _STORES and int(self.stored.memory.get(address, 0)) & _OF_SHARED
                loads[address] = bool(bits & _LOADS and (is_copy or not bits & _STORES))
            elif kind := self.kind(address):
                loads[address] = kind == "load"
            else:
                return None
        return loads

    def _fp16_constants(self, threads: ByAddress | None) -> ByAddress | None:
        """Find the packed fp16 multiply-adds that only load a constant; None where a kind is unknown."""
        if threads is None:
            return None
        opcodes = self.stored.opcodes
        unseen: float = sum(count for opcode, count in opcodes.items() if opcode.startswith(_PACKED_FMA))
        found: ByAddress = {}
        for address, count in threads.items():
            if opcodes and not unseen:
                break
            if opcodes and count > unseen:
                continue
            kind = self.kind(address)
            if kind is None:
                return None
            if kind in {"computes", "constant"}:
                unseen -= count
                if kind == "constant":
                    found[address] = count
        return found

    def kind(self, address: int) -> Kind | None:
        """Return the kind of an instruction; None if it is unknown, which is then noted."""
        known = self.texts.kind(address) if self.texts else None
        self.needs_kinds = self.needs_kinds or known is None
        return known

    def line(self, address: int) -> tuple[str, int] | None:
        """Return the file and the line an instruction was compiled from; None if unknown."""
        place = self.texts.line(address) if self.texts else None
        return (place[0][:MOST_CHARACTERS], place[1]) if place and place[0] and place[1] > 0 else None

    def source_line(self, place: tuple[str, int] | None) -> str | None:
        """Return the text of a line; None if its file is not embedded, or has no text there."""
        if place is None or self.texts is None:
            return None
        if place[0] not in self._lines:
            self._lines[place[0]] = (self.texts.source(place[0]).text or "").splitlines()
        return line_text(self._lines[place[0]], place[1])

    def sources(self, hotspots: Iterable[Hotspot]) -> Mapping[str, SourceFile]:
        """Return what is known of the files of hot lines, without the text of those that are too large to keep."""
        if self.texts is None:
            return NO_VALUES
        left, found = _MOST_TEXT, {}
        for name in dict.fromkeys(spot.file for spot in hotspots if spot.file is not None):
            source = self.texts.source(name)
            if source.text is not None and len(source.text) > left:
                source = replace(source, text=None)
            left -= len(source.text or "")
            if source != SourceFile():
                found[name] = source
        return found or NO_VALUES

    def functions(self, lowest: int, entered: Mapping[int, float]) -> tuple[_FunctionStart, ...]:
        """Find the functions of the kernel's code by address; only the kernel's own has a known name.

        With several, that is the one which each warp of the launch entered once.

        Args:
            lowest: Address of the kernel's lowest instruction.
            entered: Warp instructions executed by address.
        """
        starts, warps = self.stored.starts, self.stored.warps
        if not starts or starts[0] > lowest:
            starts = [lowest]
        entries = [start for start in starts if warps and entered.get(start) == warps]
        own = starts if len(starts) == 1 else entries if len(entries) == 1 else []
        name = self.stored.function_name
        return tuple(
            _FunctionStart(start, name if start in own else f"function at +0x{start - starts[0]:x}") for start in starts
        )


def _samples(metrics: Metrics) -> dict[str, ByAddress | None]:
    """Read the samples and the stalls among them; if only reasons are stored, sum them up."""
    reasons: dict[str, ByAddress] = {}
    for name in metrics.names():
        match = _STALLED.match(name)
        if match and not match[1].endswith("_not_issued") and match[1] not in reasons:
            amounts = _amounts(metrics, name)
            if amounts is not None:
                reasons[match[1]] = amounts
    samples = _amounts(metrics, _SAMPLES)
    if samples is None and reasons:
        samples = _summed_amounts(reasons.values())
    stalls = {f"{STALL}{reason}": amounts for reason, amounts in reasons.items() if reason != _ISSUED}
    return {"samples": samples, **stalls}


def _amounts(metrics: Metrics, *names: str) -> ByAddress | None:
    """Read the first of these metrics that is stored by instruction, or as 0 in all; None if none is."""
    for name in names:
        stored = metrics.metric(name)
        if stored is not None and _is_by_address(stored):
            return _by_address(stored)
        if stored is not None and stored.is_zero:
            return {}
    return None


def _warps(metrics: Metrics) -> float | None:
    """Return how many warps were launched; None if the launch size is not stored."""
    stored = [metrics.metric(name) for name in _LAUNCH]
    blocks, threads = (found.value if found else None for found in stored)
    if not isinstance(blocks, (int, float)) or not isinstance(threads, (int, float)):
        return None
    return float(blocks * math.ceil(threads / WARP_THREADS)) if math.isfinite(threads) else None


def _is_by_address(stored: Stored) -> bool:
    if not stored.values or not stored.keys:
        return False
    return isinstance(stored.keys[0], int) and not isinstance(stored.values[0], str)


def _by_address(stored: Stored) -> ByAddress:
    """Read the instances, without amounts that no counter can reach."""
    amounts: ByAddress = defaultdict(float)
    for address, amount in zip(stored.keys or (), stored.values, strict=True):
        if 0 < amount <= _MOST_EVENTS:  # type: ignore[operator]  # the first is a number, and so are the others
            amounts[address] += amount  # type: ignore[index, operator]  # as above
    return dict(amounts)


def _excess_amounts(amounts: ByAddress | None, ideal: ByAddress | None) -> ByAddress | None:
    if amounts is None or ideal is None:
        return None
    return {pc: n - ideal.get(pc, 0.0) for pc, n in amounts.items() if n > ideal.get(pc, 0.0)}


def _summed_amounts(parts: Iterable[ByAddress]) -> ByAddress:
    total: ByAddress = defaultdict(float)
    for part in parts:
        for address, amount in part.items():
            total[address] += amount
    return dict(total)


def _hotspots(
    reader: _InstructionReader,
    measured: Mapping[str, ByAddress],
    totals: Mapping[str, float],
    functions: Sequence[_FunctionStart],
    inside: Collection[int],
) -> Iterator[Hotspot]:
    """Yield the hottest lines, instructions and functions, of addresses inside the kernel only."""
    starts = [function.start for function in functions]
    function_of = {pc: functions[bisect_right(starts, pc) - 1].name for pc in inside}
    line_of = {pc: place for pc in inside if (place := reader.line(pc))}
    for (file, line), amounts in _hottest(_grouped(measured, line_of), "line", totals):
        names = {function_of[pc] for pc, place in line_of.items() if place == (file, line)}
        name = names.pop() if len(names) == 1 else None
        yield Hotspot("line", file, line, name, text=reader.source_line((file, line)), measures=amounts)
    of_instructions = {
        measure: {pc: amount for pc, amount in amounts.items() if pc in inside} for measure, amounts in measured.items()
    }
    for pc, amounts in _hottest(of_instructions, "sass", totals):
        at = line_of.get(pc)
        yield Hotspot(
            by="sass",
            file=at[0] if at else None,
            line=at[1] if at else None,
            function=function_of[pc],
            pc=pc - starts[0],
            sass=clean_text(reader.texts.sass(pc)) if reader.texts else None,
            text=reader.source_line(at),
            measures=amounts,
        )
    for name, amounts in _hottest(_grouped(measured, function_of), "function", totals):
        yield Hotspot("function", function=name, measures=amounts)


def _grouped(measured: Mapping[str, ByAddress], key_of: Mapping[int, Key]) -> dict[str, dict[Key, float]]:
    """Sum each measure over the instructions of each line or function; those without one are left out."""
    columns: dict[str, dict[Key, float]] = {}
    for measure, amounts in measured.items() if key_of else ():
        column: dict[Key, float] = defaultdict(float)
        for pc, amount in amounts.items():
            if pc in key_of:
                column[key_of[pc]] += amount
        columns[measure] = column
    return columns


def _hottest(
    columns: Mapping[str, Mapping[Key, float]], grain: Grain, totals: Mapping[str, float]
) -> list[tuple[Key, dict[str, float]]]:
    """Choose the hottest by samples, and then by all other measures in turn, first the top of each; sort by samples.

    None is left out between the first half of what is kept: they are the hottest there are.
    """
    if not any(columns.values()):
        return []
    stalled = sum(total for measure, total in totals.items() if measure.startswith(STALL))
    most = _MOST_PER_GRAIN[grain]
    sampled = _ranking(columns.get("samples", {}), most // 2)
    rankings = [_ranking(_idle_threads(columns), _MOST_OF_OTHERS)]
    for measure, column in columns.items():
        if measure == "samples":
            continue
        if not measure.startswith(STALL):
            rankings.append(_ranking(column, _MOST_OF_OTHERS))
        elif totals[measure] > _LEAST_STALL_SHARE * stalled:
            rankings.append(_ranking(column, _MOST_OF_A_STALL))
    ranked = (key for key in chain.from_iterable(zip_longest(*rankings)) if key is not None)
    chosen = list(dict.fromkeys(chain(sampled, ranked)))[:most]
    rows = [(key, {m: column[key] for m, column in columns.items() if column.get(key)}) for key in chosen]
    return sorted(rows, key=lambda row: (-row[1].get("samples", 0), -row[1].get("warp_inst", 0), row[0]))


def _ranking(column: Mapping[Key, float], count: int) -> list[Key]:
    """Return the keys of the `count` largest amounts above zero; ties go to the last keys."""
    least = min(sorted(column.values())[-count:]) if len(column) > count else 0.0
    largest = sorted(((n, key) for key, n in column.items() if n >= least and n > 0), reverse=True)
    return [key for _, key in largest[:count]]


def _idle_threads(columns: Mapping[str, Mapping[Key, float]]) -> dict[Key, float]:
    """Return how many threads of the executed warps were inactive."""
    if "thread_inst" not in columns:
        return {}
    threads = columns["thread_inst"]
    return {key: WARP_THREADS * warps - threads.get(key, 0.0) for key, warps in columns.get("warp_inst", {}).items()}
