"""Moves for a limiter where no finding says more: what can help, chosen by the unit that is full.

No move asks a chip for what it lacks: moves that need a feature name its first compute capability.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import percent, si, significant
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.failed import ALL_NAN, is_bug
from rooflens.model.records import Kernel, Level, Move, MoveKind, ratio
from rooflens.model.roofline.datasheets import memory_label
from rooflens.model.roofline.flops import has_matrix_work
from rooflens.model.roofline.levels import works_in_shared_memory
from rooflens.model.roofline.opcodes import (
    copies_asynchronously,
    executed,
    opcode_group,
    thread_flop,
)
from rooflens.model.verdict.collecting import collect_command, not_profiled
from rooflens.model.verdict.thresholds import default_thresholds


class Doing(Struct, frozen=True):
    """What a kernel does, as far as moves ask for it.

    Attributes:
        is_coalesced: Global accesses touch hardly more sectors than their bytes fill; False if not measured.
        loads_nothing: Hardly any of its instructions load, or none of its accesses where opcodes do not tell.
        re_reads: DRAM may move bytes twice: far more or far fewer than global accesses ask for, or that is not known.
        may_copy_tiles: It works without shared memory, and does not yet copy there without waiting.
    """

    capability: tuple[int, int]
    opcodes: Mapping[str, int]
    has_matrix_work: bool
    is_coalesced: bool
    loads_nothing: bool
    re_reads: bool
    may_copy_tiles: bool

    def lacks(self, is_one: Callable[[str], bool]) -> bool:
        """Return whether opcodes are counted and none is of a kind."""
        return bool(self.opcodes) and not any(map(is_one, self.opcodes))


_WIDEST = 4
"""Number of four-byte accesses that one 16-byte access replaces, the widest that counts."""
_RE_READ = 1.2
"""DRAM that moves the bytes asked for, to within this factor, reads next to nothing twice."""
_READS = frozenset(
    {
        *("LDG", "LD", "LDS", "LDSM", "LDL", "LDGSTS", "UBLKCP", "UTMALDG", "TEX", "TLD", "TLD4", "SULD"),
        *("ATOM", "ATOMG", "ATOMS", "RED", "REDG"),
    }
)


def doing_of(kernel: Kernel) -> Doing:
    """Ask of a kernel what moves depend on."""
    counters, totals, opcodes, limits = kernel.counters, kernel.code_totals, kernel.warp_opcodes, default_thresholds()
    sectors, excess = (
        sum(totals.get(f"{side}_{what}", 0.0) for side in ("load", "store")) for what in ("sectors", "excess_sectors")
    )
    loads = [counters.get(name) for name in ("global_load_sectors", "smem_load_wavefronts", "atomic_inst")]
    loads_nothing = loads == [0.0, 0.0, 0.0] and not counters.get("tex_inst")
    if opcodes:
        loads_nothing = executed(opcodes, _READS) < limits.integer_flop_part * sum(opcodes.values())
    least = SECTOR_BYTES * (1 - limits.wasted_sector_share)
    is_filled = counters.get("global_load_bytes_per_sector", 0.0) >= least
    copies = copies_asynchronously(opcodes) or bool(counters.get("smem_async_bytes"))
    moved = ratio(counters.get("dram_bytes"), counters.get("global_ideal_sectors", 0.0) * SECTOR_BYTES)
    return Doing(
        kernel.capability,
        opcodes,
        has_matrix_work(kernel),
        is_coalesced=is_filled or (bool(sectors) and excess < limits.wasted_sector_share * sectors),
        loads_nothing=loads_nothing,
        # Where they ask for far more, caches serve most of it, and what is moved may be moved again all the same.
        re_reads=not loads_nothing and (moved is None or not 1 / _RE_READ <= moved <= _RE_READ),
        may_copy_tiles=not copies and works_in_shared_memory(kernel) is False,
    )


class _Move(Struct, frozen=True):
    """One move.

    Attributes:
        kind: What it changes, in one word.
        since: The first compute capability that has what it asks for.
        until: The first one that has it no longer.
        unless: What a kernel does where the move is not for it.
        only_if: What it does where it is.
    """

    text: str
    kind: MoveKind
    since: tuple[int, int] = (0, 0)
    until: tuple[int, int] = (99, 0)
    unless: Callable[[Doing], bool] | None = None
    only_if: Callable[[Doing], bool] | None = None

    def suits(self, kernel: Doing) -> bool:
        """Return whether a kernel and its chip can make the move."""
        if not self.since <= kernel.capability < self.until or (self.unless and self.unless(kernel)):
            return False
        return self.only_if is None or self.only_if(kernel)

    def made(self) -> Move:
        """Return it as a move of a kernel that it suits."""
        return Move(self.text, self.kind)


_BIT_WORK = frozenset({"LOP3", "LOP", "SHF", "SHL", "SHR", "PRMT", "BFE", "BFI", "BMSK", "SGXT", "I2IP"})
_INDEX_WORK = frozenset({"IADD3", "IADD", "ISETP", "IMNMX", "VIMNMX", "LEA", "ISCADD", "IABS", "SEL"})


def _has_bit_work(kernel: Doing) -> bool:
    """Return whether logic, shifts and packing outnumber integer additions and comparisons, where opcodes tell."""
    return executed(kernel.opcodes, _BIT_WORK) > executed(kernel.opcodes, _INDEX_WORK)


def _has_wgmma(kernel: Doing) -> bool:
    return any(opcode.partition(".")[0] in {"HGMMA", "IGMMA", "BGMMA", "QGMMA"} for opcode in kernel.opcodes)


def _has_no_fp64_division(kernel: Doing) -> bool:
    """Return whether no instruction refines a reciprocal or a root of fp64, where modifiers tell."""
    return kernel.lacks(lambda opcode: opcode == "MUFU" or (opcode.startswith("MUFU") and "64H" in opcode))


def _has_no_integer_product(kernel: Doing) -> bool:
    products = ("IMAD", "IMUL", "XMAD", "IDP")
    return kernel.lacks(lambda opcode: opcode.startswith(products) and opcode_group(opcode) == "integer")


def _has_no_flop(kernel: Doing) -> bool:
    return kernel.lacks(lambda opcode: thread_flop(opcode) is not None)


def _has_no_exponential(kernel: Doing) -> bool:
    return kernel.lacks(lambda opcode: opcode == "MUFU" or opcode.startswith("MUFU.EX2"))


def _has_no_reciprocal(kernel: Doing) -> bool:
    return kernel.lacks(lambda opcode: opcode == "MUFU" or opcode.startswith(("MUFU.RCP", "MUFU.RSQ")))


def _has_no_conversion(kernel: Doing) -> bool:
    return kernel.lacks(lambda opcode: opcode_group(opcode) == "conversions")


def _has_no_usual_function(kernel: Doing) -> bool:
    return _has_no_exponential(kernel) and _has_no_reciprocal(kernel) and _has_no_conversion(kernel)


_loads_nothing, _is_coalesced = attrgetter("loads_nothing"), attrgetter("is_coalesced")


def _computes_fp64(kernel: Doing) -> bool:
    """Return whether most of its arithmetic is fp64, so that its values have eight bytes and fp32 halves them."""
    flop: Counter[str] = Counter()
    for opcode, count in kernel.opcodes.items():
        if (counted := thread_flop(opcode)) is not None:
            flop[counted[0]] += counted[1] * count
    return 2 * flop["fp64"] > flop.total()


_STORE_LESS = Move("write fewer bytes: fuse it with the kernel that reads them, or store fp16 or bf16", "fuse")
_STORE_WIDER = Move("store wider: one 16-byte access instead of four", "wide")

_MEMORY: Mapping[str, tuple[_Move, ...]] = {
    "dram": (
        _Move(
            "halve the bytes, in a narrower type if accuracy allows, or use a larger batch where weights are re-read",
            "precision",
            only_if=attrgetter("has_matrix_work"),
        ),
        _Move(
            "halve the bytes: fp16 or bf16, if accuracy allows",
            "precision",
            unless=lambda kernel: kernel.has_matrix_work or _has_no_flop(kernel) or _computes_fp64(kernel),
        ),
        _Move("halve the bytes: fp32, if accuracy allows", "precision", only_if=_computes_fp64),
        _Move(
            "if it moves far more than its inputs and outputs, tile it so that re-reads hit L2",
            "tile",
            only_if=attrgetter("re_reads"),
        ),
    ),
    "l2": (
        _Move("reorder the blocks for locality", "cache"),
        _Move("share tiles across a cluster with TMA multicast", "tile", (9, 0)),
    ),
    "l1": (
        _Move(
            "load wider and coalesced: vector loads, neighbouring threads on neighbouring addresses",
            "coalesce",
            unless=_is_coalesced,
        ),
        _Move("load wider: vector loads", "wide", only_if=_is_coalesced),
        _Move("copy tiles to shared memory with cp.async", "tile", (8, 0), only_if=attrgetter("may_copy_tiles")),
    ),
    "lsu": (
        _Move("load wider: one 16-byte access instead of four", "wide", unless=_loads_nothing),
        _Move(_STORE_WIDER.text, "wide", only_if=_loads_nothing),
    ),
    "smem": (_Move("use larger tiles per warp, so that bytes per operation fall", "results"),),
}
"""Moves after the first, which has the kernel's own numbers."""

_FLOAT_PIPES = (_Move("do fewer operations: change the algorithm before tuning", "algorithm"),)
_COMPUTE: Mapping[str, tuple[_Move, ...]] = {
    "tensor": (
        _Move("overlap loads with matrix work: a deeper pipeline, warp specialisation", "overlap"),
        _Move("use warpgroup matrix instructions (wgmma) if it does not yet", "tensor", (9, 0), (10, 0), _has_wgmma),
        _Move("compute in a narrower type, if accuracy allows", "precision"),
    ),
    "fp32": _FLOAT_PIPES,
    "fp16": _FLOAT_PIPES,
    "fp64": (
        _Move("replace divisions by multiplications", "instructions", unless=_has_no_fp64_division),
        _Move("use fp32 where accuracy allows", "precision"),
    ),
    "fma": (
        _Move(
            "strength-reduce index arithmetic: integer multiplications run on this pipe too",
            "index",
            unless=_has_no_integer_product,
        ),
        *_FLOAT_PIPES,
    ),
    "alu": (
        _Move(
            "unpack and mask packed words once, not at each use, or use instructions that take them packed",
            "instructions",
            only_if=_has_bit_work,
        ),
        _Move(
            "strength-reduce index arithmetic and comparisons; hoist them out of the loop",
            "index",
            unless=_has_bit_work,
        ),
        _Move("process several elements per thread, so that addresses are computed once", "elements"),
    ),
    "xu": (
        _Move("use exp2 instead of exp", "instructions", unless=_has_no_exponential),
        _Move("share reciprocals, and multiply instead of dividing", "instructions", unless=_has_no_reciprocal),
        _Move("convert fewer values between types", "instructions", unless=_has_no_conversion),
        _Move(
            "compute some of the exponentials with a polynomial on the FMA pipe",
            "instructions",
            unless=_has_no_exponential,
        ),
        _Move("use fewer special functions, or approximate ones", "instructions", only_if=_has_no_usual_function),
    ),
    "issue": (
        _Move(
            "issue fewer instructions: vector loads, unrolled loops, less index arithmetic",
            "instructions",
            unless=_loads_nothing,
        ),
        _Move(
            "issue fewer instructions: unrolled loops, less index arithmetic", "instructions", only_if=_loads_nothing
        ),
        _Move("let each thread do more work on data it already holds", "results", unless=_loads_nothing),
        _Move(
            "let each thread compute several results that share intermediate values", "results", only_if=_loads_nothing
        ),
    ),
}
_ARITHMETIC = frozenset({"tensor", "fp32", "fp16", "fp64"})
"""Pipes whose work is the kernel's purpose: a full one is a good end. A full ALU or issue slot is not."""
_BY_OPCODE = frozenset({"alu", "issue", "fma", "xu"})
"""Units that many kinds of instructions fill: which ones they are says where to begin."""
_NAMED = 3
_AT_COMPUTE_ROOF = "do fewer operations{}: this pipe is saturated ({})"


def memory_moves(
    kernel: Kernel,
    levels: Mapping[str, Level],
    level: str | None,
    *,
    at_roof: bool,
    asked_bytes: float | None = None,
) -> tuple[Move, ...]:
    """Choose the moves for a memory-bound kernel.

    Args:
        kernel: What is bound.
        levels: Its memory levels.
        level: The one that limits; `lsu` is L1 where load and store instructions fill its input.
        at_roof: The level is full.
        asked_bytes: What the SMs asked L2 for; None if not all of it is counted.
    """
    doing = doing_of(kernel)
    if level in {"l2", "l1"} and doing.loads_nothing:
        return (_STORE_LESS,) if level == "l2" else (_STORE_WIDER, _STORE_LESS)
    rows = _MEMORY.get(
        level or "", (_Move("reduce traffic at the busiest memory unit, such as by tiles that are read once", "tile"),)
    )
    others = tuple(move.made() for move in rows if move.suits(doing))
    match level:
        case "dram":
            dram_bytes = levels["dram"].amount_bytes
            moved = f"less than today's {si(dram_bytes, 'B')}" if dram_bytes else "fewer bytes"
            asked = ratio(asked_bytes, dram_bytes)
            if asked and asked <= 1 - default_thresholds().wasted_sector_share:
                moved += f" (the SMs asked for {si(asked_bytes, 'B')})"
            share = levels["dram"].share
            full = f"{memory_label(kernel.gpu)} is saturated" + (f" ({percent(share)})" if share else "")
            why = f"; {full}" if at_roof else ""
            first = Move(f"move {moved}: fuse with a neighbour so that intermediates stay on chip{why}", "fuse")
        case "l2":
            first = _at_l2(kernel, levels)
        case "l1" | "lsu" if works_in_shared_memory(kernel):
            used = percent(levels["l1"].share or 0.0)
            busy = f": {used} of load/store slots used" if level == "lsu" else f": L1 is {used} busy"
            first = Move(f"let each thread compute several results, such as 2 x 2, from what it loads{busy}", "results")
        case "l1":
            keep = "keep reused values in registers or shared memory"
            again = ratio(levels["l1"].amount_bytes, levels["l2"].amount_bytes)
            first = Move(_fewer_reloads(keep, "l1", again), "tile")
        case "lsu":
            return _moves_of_loads_and_stores(kernel, levels, others)
        case "smem":
            intensity = levels["smem"].intensity_flop_per_byte
            now = f": now {significant(intensity)} FLOP per byte" if intensity else ""
            first = Move(f"reuse each loaded value more often in registers{now}", "results")
        case _:
            return others
    return (first, *others)


def _at_l2(kernel: Kernel, levels: Mapping[str, Level]) -> Move:
    """Choose the move for a full L2: a tile, where there is one a larger one, and L1 where loads go past it."""
    again = ratio(levels["l2"].amount_bytes, levels["dram"].amount_bytes)
    if (order := _order_of_blocks(kernel, levels)) is not None:
        return order
    if kernel.own_smem_bytes and _passes_l1_by(kernel):
        of_l1, of_l2 = (percent(kernel.counters[name]) for name in ("l1_hit_rate", "l2_hit_rate"))
        keep = "let L1 keep what the blocks of an SM share, by plain loads or `cp.async.ca` in place of `.cg`"
        return Move(f"{keep}: L1 serves {of_l1} of its sectors, L2 {of_l2} of those that reach it", "cache")
    if kernel.own_smem_bytes:
        larger = "use larger tiles, with more results per thread, so that blocks load each byte less often"
        return Move(_fewer_reloads(larger, "l2", again), "results")
    return Move(_fewer_reloads("tile into shared memory so that a block loads each byte once", "l2", again), "tile")


def _order_of_blocks(kernel: Kernel, levels: Mapping[str, Level]) -> Move | None:
    """Choose what makes L2 serve more at once where it is full: the order of blocks while it misses, then multicast.

    While L2 misses much of what many blocks ask for, those that run together do not share it; once it hits, one fetch
    can serve a cluster.
    """
    hits, full, dram = kernel.counters.get("l2_hit_rate"), levels["l2"].share or 0.0, levels["dram"].share or 0.0
    if hits is None or full < _FULL_L2:
        return None
    said = f"L2 is {percent(full)} busy and hits {percent(hits)}, DRAM is {percent(dram)} busy"
    if hits < _MISSED_HITS and dram >= _BUSY_DRAM:
        return Move(
            f"order the blocks so that those that run together share tiles (grouped or Hilbert): {said}", "cache"
        )
    if hits >= _SHARED_HITS and kernel.capability >= (9, 0):
        return Move(f"let a cluster fetch each tile once, by TMA multicast: {said}", "tile")
    return None


_FULL_L2, _BUSY_DRAM, _MISSED_HITS, _SHARED_HITS = 0.9, 0.6, 0.6, 0.65
"""Of L2 and DRAM busy, and of L2's hits below and above which its misses are the reason, or its requests are."""

_MISSES_L1, _HITS_L2 = 0.05, 0.9
"""Loads that hardly ever hit L1, and nearly always L2, go past L1 or are read by one SM each time."""


def _passes_l1_by(kernel: Kernel) -> bool:
    """Return whether L1 serves next to none of the sectors that L2 serves again and again."""
    of_l1, of_l2 = (kernel.counters.get(name) for name in ("l1_hit_rate", "l2_hit_rate"))
    return of_l1 is not None and of_l2 is not None and of_l1 < _MISSES_L1 and of_l2 >= _HITS_L2


def _moves_of_loads_and_stores(
    kernel: Kernel, levels: Mapping[str, Level], others: tuple[Move, ...]
) -> tuple[Move, ...]:
    """Put reuse before wider accesses where it spares more of them: where L1 hands out often what reaches it."""
    tile = "tile, so that reused values stay in shared memory or registers"
    from_l1, from_smem = (levels[name].amount_bytes or 0.0 for name in ("l1", "smem"))
    hits = kernel.counters.get("l1_hit_rate", 0.0)
    if not from_l1 and hits > 1 - 1 / _WIDEST:
        return (Move(f"{tile}: L1 serves {percent(hits)} of its sectors itself", "tile"), *others)
    if not from_l1 and not from_smem:  # and none of its own, or nothing tells
        is_told = works_in_shared_memory(kernel) is not None
        return (Move(tile, "tile"), *others) if is_told else _by_registers(kernel, tile, others)
    again = ratio(from_l1, levels["l2"].amount_bytes) or 0.0
    if from_smem > from_l1 or again <= _WIDEST:
        return (*others, Move("keep reused values in registers", "results"))
    return (Move(_fewer_reloads(tile, "l1", again), "tile"), *others)


def _by_registers(kernel: Kernel, tile: str, others: tuple[Move, ...]) -> tuple[Move, ...]:
    """Order the steps of reuse where nothing tells which were made, but the registers of a thread may."""
    results = Move("let each thread compute several results, such as 2 x 2, from what it loads", "results")
    if kernel.counters.get("registers_per_thread", 0.0) >= default_thresholds().tile_registers:
        return (*others, results)
    return (Move(tile, "tile"), results, *others)


def _fewer_reloads(move: str, level: str, times: float | None) -> str:
    """Add how often a level delivers each byte that reaches it, if that was measured and is more than once."""
    if times is None or times <= 1:
        return move
    return f"{move}: {level.upper()} delivers {significant(times)}x the bytes that reach it"


def compute_moves(kernel: Kernel, pipe: str | None, busy: float = 0.0, *, at_roof: bool) -> tuple[Move, ...]:
    """Choose the moves for a kernel bound by a pipe.

    Args:
        kernel: What is bound.
        pipe: Pipe or dtype that leads.
        busy: How full the pipe is, 0 to 1.
        at_roof: The pipe is full.
    """
    key = "tensor" if pipe and pipe.startswith("tensor") else (pipe or "").removesuffix("_pipe")
    rows = _COMPUTE.get(key, ())
    doing = doing_of(kernel)
    moves = tuple(move.made() for move in rows if move.suits(doing))
    if key not in _COMPUTE:
        command = collect_command(kernel.function_name, None)
        find = f"find the pipe that keeps the SM {percent(busy)} busy, which was not measured: `{command}`"
        moves = (Move(find, "collect"),)
    if at_roof and key in _ARITHMETIC:
        # CUDA cores compute narrow types in fp32, and products that tensor cores could do have a finding.
        narrower = key in {"tensor", "fp64"}
        full = _AT_COMPUTE_ROOF.format(" or narrower ones" if narrower else "", percent(busy))
        return (Move(full, "precision" if narrower else "algorithm"), *moves[-1:])
    counts: Counter[str] = Counter()
    for opcode, count in kernel.warp_opcodes.items() if key in _BY_OPCODE else ():
        counts[opcode.partition(".")[0]] += count
    most = [f"{opcode} {percent(count / counts.total())}" for opcode, count in counts.most_common(_NAMED) if count]
    first = replace(moves[0], text=f"{moves[0].text} ({', '.join(most)} of the instructions)") if most else moves[0]
    return (first, *moves[1:])


def collect_moves(function_name: str, compute_capability: str | None, command_line: str | None) -> tuple[Move, ...]:
    """Return the only move when counters are missing: how to collect them, or why that is impossible."""
    cannot = not_profiled(compute_capability)
    if cannot:
        return (Move(f"this report lacks counters, and {cannot}", "collect"),)
    command = collect_command(function_name, command_line)
    text = f"collect what this report lacks: `{command}`"
    return (Move(text, "collect", shared="collect", command=command),)


def failed_moves(kernel: Kernel, command_line: str | None) -> tuple[Move, ...]:
    """Return the moves when profiling a kernel failed, or what was recorded cannot be analyzed."""
    if is_bug(kernel):
        return (Move("report this bug in rooflens and attach the report: only this kernel is affected", "collect"),)
    if kernel.status_reason not in {None, ALL_NAN}:
        return (
            Move("copy the report again from where it was made, or record it again: this copy is damaged", "collect"),
        )
    again = (
        not_profiled(kernel.compute_capability)
        or f"profile it again, alone: `{collect_command(kernel.function_name, command_line)}`"
    )
    return (
        Move(again, "collect"),
        Move("kernels that wait for one another need `--replay-mode application`", "collect"),
    )
