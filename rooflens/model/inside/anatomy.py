"""What the body of a loop consists of: the facts from which reuse, width, overlap and unrolling are read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.hotspots import STALL
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.instruction import Instruction, kind_of_opcode, width_bytes
from rooflens.model.inside.waits import Waits
from rooflens.model.records import Anatomy
from rooflens.model.roofline.opcodes import BULK_COPIES, COPIES, opcode_group, tensor_op, thread_flop

_MULTIPLY_ADDS: Mapping[str, int] = {"FFMA": 1, "FFMA32I": 1, "FFMA2": 2, "DFMA": 1, "HFMA2": 2, "HFMA2_32I": 2}
"""Opcode -> multiply-adds of a thread instruction."""

_VALUE_BYTES: Mapping[str, float] = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "fp6": 0.75,
    "fp4": 0.5,
    "int4": 0.5,
    "int1": 0.125,
}
_LOAD_KINDS = {"global load": "global", "shared load": "shared"}
_MOVING = frozenset({"integer", "moves and selects", "control", "uniform data path", "constants"})
_MOST_UNROLLED = 128


class _Body:
    """Sums over the instructions of a loop, of all that ran them."""

    def __init__(self, instructions: Sequence[Instruction], code: MachineCode) -> None:
        executed, threads = code.amounts.get("warp_inst", {}), code.amounts.get("thread_inst", {})
        ran = [one for one in instructions if one.offset in executed]
        runs_of: dict[str, float] = defaultdict(float)
        threads_of: dict[str, float] = defaultdict(float)
        for one in ran:
            runs = executed[one.offset]
            runs_of[one.opcode] += runs
            threads_of[one.opcode] += threads.get(one.offset, runs * WARP_THREADS)
        self.groups: Counter[str] = Counter()
        self.widths: dict[str, Counter[int]] = {"global": Counter(), "shared": Counter()}
        self.loaded_bytes: dict[str, float] = defaultdict(float)
        self.multiply_adds: dict[str, float] = defaultdict(float)
        self.by_kind: dict[str, float] = defaultdict(float)
        self.is_matrix = False
        for opcode, runs in runs_of.items():
            self._add_opcode(opcode, runs, threads_of[opcode])
        self.sums = 0 if self.is_matrix or not self.multiply_adds else _sums(ran)

    def _add_opcode(self, opcode: str, runs: float, threads: float) -> None:
        base = opcode.partition(".")[0]
        kind = kind_of_opcode(base)
        self.groups[opcode_group(opcode)] += int(runs)
        self.by_kind["barrier" if base == "BAR" else "" if kind == "barrier" else kind] += runs
        # What TMA and bulk copies move stands in no modifier.
        if (where := _LOAD_KINDS.get(kind)) is not None and base not in BULK_COPIES:
            width = width_bytes(opcode)
            self.widths[where][width] += int(runs)
            self.loaded_bytes[where] += threads * width
        if (many := _multiply_adds(opcode)) is not None:
            self.multiply_adds[many[0]] += many[1] * threads
        elif (matrix := tensor_op(opcode)) is not None:
            self.multiply_adds[matrix.dtype] += matrix.ops / 2 * runs
            self.is_matrix = True


def _multiply_adds(opcode: str) -> tuple[str, int] | None:
    """Return type and number of the multiply-adds of a thread instruction; None if it does none."""
    many, flop = _MULTIPLY_ADDS.get(opcode.partition(".")[0]), thread_flop(opcode)
    return None if many is None or flop is None else (flop[0], many)


def _sums(ran: Iterable[Instruction]) -> int:
    """Count the sums that a thread keeps: they begin where what is added to was not made by another multiply-add."""
    count, summed = 0, set[int]()
    for one in ran:
        if one.base in _MULTIPLY_ADDS:
            count += one.adds_to is not None and one.adds_to not in summed
            summed |= one.writes
        else:
            summed -= one.writes
    return count


def longest_wait(instructions: Sequence[Instruction], code: MachineCode) -> int | None:
    """Return the offset at which most of a loop's samples wait for memory; None without any."""
    waits = code.amounts.get(f"{STALL}long_scoreboard", {})
    return max((one.offset for one in instructions if waits.get(one.offset)), key=waits.__getitem__, default=None)


def anatomy(  # noqa: PLR0913 - what is known of a loop comes from as many sources
    instructions: Sequence[Instruction],
    code: MachineCode,
    body_runs: float,
    in_flight: int | None,
    waits: Waits,
    *,
    tries: Sequence[Instruction],
) -> Anatomy | None:
    """Describe the body of a loop without inner loops; None if it never ran.

    Args:
        instructions: Its instructions in the order of their offsets.
        code: What was measured of them.
        body_runs: How often warps ran its body.
        in_flight: Global loads under way at its `longest_wait`; None if unknown.
        waits: What its waits leave under way.
        tries: Where it waits at mbarriers: its instructions, and those of inner loops that only try again.
    """
    body = _Body(instructions, code)
    warp_inst = float(body.groups.total())
    if body_runs <= 0 or not warp_inst:
        return None
    dtype = max(body.multiply_adds, key=body.multiply_adds.__getitem__, default=None)
    total = sum(body.multiply_adds.values())
    value_bytes = _VALUE_BYTES.get(dtype or "", 4.0)

    stages, left = _stages(tries, waits)

    def operands(where: str) -> float | None:
        return body.loaded_bytes[where] / value_bytes / total if total else None

    def a_trip(where: str) -> dict[int, float]:
        return {width: runs / body_runs for width, runs in sorted(body.widths[where].items())}

    return Anatomy(
        instructions=warp_inst / body_runs,
        by_kind={group: runs / body_runs for group, runs in body.groups.most_common()},
        global_loads=a_trip("global"),
        shared_loads=a_trip("shared"),
        stores=(body.by_kind["global store"] + body.by_kind["shared store"]) / body_runs,
        multiply_adds=total / WARP_THREADS / body_runs,
        dtype=dtype,
        is_matrix=body.is_matrix,
        global_operands=operands("global"),
        shared_operands=operands("shared"),
        results=body.sums or None,
        in_flight=in_flight,
        barriers=body.by_kind["barrier"] / body_runs,
        address_share=sum(runs for group, runs in body.groups.items() if group in _MOVING) / warp_inst,
        copies_asynchronously=any(one.base in COPIES for one in instructions),
        unroll=_unroll(instructions),
        stages=stages,
        groups_left=left,
        products_left=min(
            (waits.products[one.offset] for one in instructions if one.offset in waits.products), default=None
        ),
    )


def _stages(instructions: Sequence[Instruction], waits: Waits) -> tuple[int | None, int | None]:
    """Return how many tiles shared memory holds, and the most that stay under way behind a wait for copies.

    A wait at one of several barriers that go round leaves the other stages. A loop that waits for none has no stages.
    One that waits at a single barrier, by its own address, may have others in a loop around it.
    """
    tiles = waits.tiles
    waited: dict[int, set[int]] = defaultdict(set)
    for ring in (waits.rings[one.offset] for one in instructions if one.offset in waits.rings):
        waited[ring.first] |= ring.waited
    if (stages := max(map(len, waited.values()), default=0)) > 1:
        return stages, stages - 1
    left = max((tiles[one.offset] for one in instructions if one.leaves_groups is not None), default=None)
    held = (tiles[one.offset] for one in instructions if one.leaves_groups is None and one.offset in tiles)
    return max(held, default=None) if left is not None else None, left


def _unroll(instructions: Sequence[Instruction]) -> int | None:
    """Return by how much the loop counts on, where one register only does that and is compared; else None."""
    compared = {register for one in instructions if one.base in {"ISETP", "UISETP"} for register in one.reads}
    steps = {abs(one.step) for one in instructions if one.step is not None and one.writes & compared}
    found = {step for step in steps if 0 < step <= _MOST_UNROLLED}
    return found.pop() if len(found) == 1 else None
