"""Moves for a limiter where no finding says more: what can help, chosen by the unit that is full.

No move asks a chip for what it lacks: moves that need a feature name its first compute capability.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import percent, si, significant
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.failed import ALL_NAN, is_bug
from rooflens.model.records import Bottleneck, Kernel, Move, MoveKind, ratio
from rooflens.model.roofline.datasheets import memory_label
from rooflens.model.roofline.levels import works_in_shared_memory
from rooflens.model.roofline.opcodes import COPIES, WIDEST_BYTES, WORD_BYTES, executed, opcode_group, thread_flop
from rooflens.model.verdict.collecting import collect_command, not_profiled
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.spelling import Step, spelling_of

_WORDS_AT_ONCE = WIDEST_BYTES // WORD_BYTES
_READS = frozenset(
    {
        *("LDG", "LD", "LDS", "LDSM", "LDL", *COPIES, "TEX", "TLD", "TLD4", "SULD"),
        *("ATOM", "ATOMG", "ATOMS", "RED", "REDG"),
    }
)


class _Move(Struct, frozen=True):
    """One move.

    Attributes:
        kind: What it changes, in one word.
        since: The first compute capability that has what it asks for.
        until: The first one that has it no longer.
        unless: What a kernel does where the move is not for it.
        only_if: What it does where it is.
        step: Which step of the ladder of tensor kernels it is, where its kind does not tell.
    """

    text: str
    kind: MoveKind
    since: tuple[int, int] = (0, 0)
    until: tuple[int, int] = (99, 0)
    unless: Callable[[Facts], bool] | None = None
    only_if: Callable[[Facts], bool] | None = None
    step: Step | None = None

    def suits(self, facts: Facts) -> bool:
        """Return whether a kernel and its chip can make the move."""
        if not self.since <= facts.kernel.capability < self.until or (self.unless and self.unless(facts)):
            return False
        return self.only_if is None or self.only_if(facts)

    def made(self) -> Move:
        """Return it as a move of a kernel that it suits."""
        spelling = None if self.step is None else spelling_of(self.step, self.since)
        return Move(self.text, self.kind, spelling=spelling)


_BIT_WORK = frozenset({"LOP3", "LOP", "SHF", "SHL", "SHR", "PRMT", "BFE", "BFI", "BMSK", "SGXT", "I2IP"})
_INDEX_WORK = frozenset({"IADD3", "IADD", "ISETP", "IMNMX", "VIMNMX", "LEA", "ISCADD", "IABS", "SEL"})


def _has_bit_work(facts: Facts) -> bool:
    """Return whether logic, shifts and packing outnumber integer additions and comparisons, where opcodes tell."""
    opcodes = facts.kernel.warp_opcodes
    return executed(opcodes, _BIT_WORK) > executed(opcodes, _INDEX_WORK)


def _lacks(is_kind: Callable[[str], object]) -> Callable[[Facts], bool]:
    """Return a test whether opcodes are counted and none is of a kind."""
    return lambda facts: bool(facts.kernel.warp_opcodes) and not any(map(is_kind, facts.kernel.warp_opcodes))


def _is_integer_product(opcode: str) -> bool:
    return opcode.startswith(("IMAD", "IMUL", "XMAD", "IDP")) and opcode_group(opcode) == "integer"


# What refines a reciprocal or a root of fp64 is known where modifiers tell.
_has_no_fp64_division = _lacks(lambda opcode: opcode == "MUFU" or (opcode.startswith("MUFU") and "64H" in opcode))
_has_no_flop = _lacks(thread_flop)
_has_no_exponential = _lacks(lambda opcode: opcode == "MUFU" or opcode.startswith("MUFU.EX2"))
_has_no_reciprocal = _lacks(lambda opcode: opcode == "MUFU" or opcode.startswith(("MUFU.RCP", "MUFU.RSQ")))
_has_no_conversion = _lacks(lambda opcode: opcode_group(opcode) == "conversions")


def _has_no_usual_function(facts: Facts) -> bool:
    return _has_no_exponential(facts) and _has_no_reciprocal(facts) and _has_no_conversion(facts)


def _multiplies_matrices(facts: Facts) -> bool:
    return facts.does.uses_tensor_cores


def _computes_fp64(facts: Facts) -> bool:
    """Return whether most of its arithmetic is fp64, so that its values have eight bytes and fp32 halves them."""
    flop: Counter[str] = Counter()
    for opcode, count in facts.kernel.warp_opcodes.items():
        if (counted := thread_flop(opcode)) is not None:
            flop[counted[0]] += counted[1] * count
    return 2 * flop["fp64"] > flop.total()


def _loads_nothing(facts: Facts) -> bool:
    """Return whether hardly any instruction loads, or no access where opcodes do not tell."""
    if opcodes := facts.kernel.warp_opcodes:
        return executed(opcodes, _READS) < facts.limits.trace_share * sum(opcodes.values())
    loads = map(facts.counter, ("global_load_sectors", "smem_load_wavefronts", "atomic_inst"))
    return [*loads] == [0.0, 0.0, 0.0] and not facts.counter("tex_inst")


def _is_coalesced(facts: Facts) -> bool:
    """Return whether global accesses touch hardly more sectors than their bytes fill; False if not measured."""
    totals, most = facts.kernel.code_totals, facts.limits.little_share
    sectors, excess = (sum(totals.get(f"{side}_{what}", 0.0) for side in ("load", "store")) for what in _SECTORS)
    is_filled = (facts.counter("global_load_bytes_per_sector") or 0.0) >= SECTOR_BYTES * (1 - most)
    return is_filled or (bool(sectors) and excess < most * sectors)


_SECTORS = ("sectors", "excess_sectors")


def _re_reads(facts: Facts) -> bool:
    """Return whether DRAM may move bytes twice: far more or fewer than are asked for, or that is not known.

    Where accesses ask for far more, caches serve most of it, and what is moved may be moved again all the same.
    """
    most = 1 + facts.limits.limiting_waste_share
    moved = ratio(facts.counter("dram_bytes"), (facts.counter("global_ideal_sectors") or 0.0) * SECTOR_BYTES)
    return not _loads_nothing(facts) and (moved is None or not 1 / most <= moved <= most)


def _may_copy_tiles(facts: Facts) -> bool:
    """Return whether a kernel works without shared memory and without asynchronous copies into it."""
    copies = facts.does.copies or facts.counter("smem_async_bytes")
    return not copies and works_in_shared_memory(facts.kernel) is False


_STORE_LESS = Move("write fewer bytes: fuse it with the kernel that reads them, or store fp16 or bf16", "fuse")
_STORE_WIDER = Move("store wider: one 16-byte access instead of four", "wide")

_MEMORY: Mapping[str, tuple[_Move, ...]] = {
    "dram": (
        _Move(
            "halve the bytes, in a narrower type if accuracy allows, or use a larger batch where weights are re-read",
            "precision",
            only_if=_multiplies_matrices,
        ),
        _Move(
            "halve the bytes: fp16 or bf16, if accuracy allows",
            "precision",
            unless=lambda facts: _multiplies_matrices(facts) or _has_no_flop(facts) or _computes_fp64(facts),
        ),
        _Move("halve the bytes: fp32, if accuracy allows", "precision", only_if=_computes_fp64),
        _Move(
            "if it moves far more than its inputs and outputs, tile it so that re-reads hit L2",
            "tile",
            only_if=_re_reads,
        ),
    ),
    "l2": (
        _Move("reorder the blocks for locality", "cache"),
        _Move("share tiles across a cluster with TMA multicast", "tile", (9, 0), step="clusters"),
    ),
    "l1": (
        _Move(
            "load wider and coalesced: vector loads, neighbouring threads on neighbouring addresses",
            "coalesce",
            unless=_is_coalesced,
        ),
        _Move("load wider: vector loads", "wide", only_if=_is_coalesced),
        _Move("copy tiles to shared memory with cp.async", "tile", (8, 0), only_if=_may_copy_tiles),
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
        _Move("use warpgroup matrix instructions (wgmma) if it does not yet", "tensor", (9, 0), (10, 0)),
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
            unless=_lacks(_is_integer_product),
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
    "tmem": (
        _Move(
            "load sums from tensor memory once, in the widest shape of `tcgen05.ld`, and rescale them there less often",
            "instructions",
        ),
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
_OPCODES_NAMED = 3
"""Opcodes that a move names."""
_AT_COMPUTE_ROOF = "do fewer operations{}: this pipe is saturated ({})"


def memory_moves(facts: Facts, level: str | None) -> tuple[Move, ...]:
    """Choose the moves for a kernel bound by a level; `lsu` is L1 where load and store instructions fill its input."""
    kernel, levels = facts.kernel, facts.levels
    if level in {"l2", "l1"} and _loads_nothing(facts):
        return (_STORE_LESS,) if level == "l2" else (_STORE_WIDER, _STORE_LESS)
    rows = _MEMORY.get(
        level or "", (_Move("reduce traffic at the busiest memory unit, such as by tiles that are read once", "tile"),)
    )
    others = tuple(move.made() for move in rows if move.suits(facts))
    match level:
        case "dram":
            dram_bytes = levels["dram"].amount_bytes
            moved = f"less than today's {si(dram_bytes, 'B')}" if dram_bytes else "fewer bytes"
            asked_bytes = None if "atomics_cross_twice" in facts.flags else levels["l2"].amount_bytes
            asked = ratio(asked_bytes, dram_bytes)
            if asked and asked <= 1 - facts.limits.little_share:
                moved += f" (the SMs asked for {si(asked_bytes, 'B')})"
            share = levels["dram"].share
            full = f"{memory_label(kernel.gpu)} is saturated" + (f" ({percent(share)})" if share else "")
            is_first = facts.limiter is None or facts.limiter.resource == "dram"
            why = f"; {full}" if facts.at_roof and is_first else ""
            first = Move(f"move {moved}: fuse with a neighbour so that intermediates stay on chip{why}", "fuse")
        case "l2":
            if (order := _order_of_blocks(facts)) is not None:
                return (order, *(move for move in others if move.kind not in {order.kind, "cache"}))
            first = _at_l2(facts)
        case "l1" | "lsu" if works_in_shared_memory(kernel):
            used = percent(levels["l1"].share or 0.0)
            busy = f": {used} of load/store slots used" if level == "lsu" else f": L1 is {used} busy"
            first = Move(f"let each thread compute several results, such as 2 x 2, from what it loads{busy}", "results")
        case "l1":
            keep = "keep reused values in registers or shared memory"
            again = ratio(levels["l1"].amount_bytes, levels["l2"].amount_bytes)
            first = Move(_fewer_reloads(keep, "l1", again), "tile")
        case "lsu":
            return _moves_of_loads_and_stores(facts, others)
        case "smem":
            intensity = levels["smem"].intensity_flop_per_byte
            now = f": now {significant(intensity)} FLOP per byte" if intensity else ""
            first = Move(f"reuse each loaded value more often in registers{now}", "results")
        case _:
            return others
    return (first, *others)


def _at_l2(facts: Facts) -> Move:
    """Choose the move for a full L2: a tile, where there is one a larger one, and L1 where loads go past it."""
    kernel, levels = facts.kernel, facts.levels
    again = ratio(levels["l2"].amount_bytes, levels["dram"].amount_bytes)
    if kernel.program_smem_bytes and _passes_l1_by(facts):
        of_l1, of_l2 = (percent(kernel.counters[name]) for name in ("l1_hit_rate", "l2_hit_rate"))
        keep = "let L1 keep what the blocks of an SM share, by plain loads or `cp.async.ca` in place of `.cg`"
        return Move(f"{keep}: L1 serves {of_l1} of its sectors, L2 {of_l2} of those that reach it", "cache")
    if kernel.program_smem_bytes:
        larger = "use larger tiles, with more results per thread, so that blocks load each byte less often"
        return Move(_fewer_reloads(larger, "l2", again), "results")
    return Move(_fewer_reloads("tile into shared memory so that a block loads each byte once", "l2", again), "tile")


def _order_of_blocks(facts: Facts) -> Move | None:
    """Choose what makes L2 serve more at once where it is full: the order of blocks while it misses, then multicast.

    While L2 misses much of what many blocks ask for, those that run together do not share it; once it hits, one fetch
    can serve a cluster.
    """
    kernel, levels = facts.kernel, facts.levels
    hits, full, dram = kernel.counters.get("l2_hit_rate"), levels["l2"].share or 0.0, levels["dram"].share or 0.0
    if hits is None or full < facts.limits.nearly_all_share:
        return None
    said = f"L2 is {percent(full)} busy and hits {percent(hits)}, DRAM is {percent(dram)} busy"
    if hits < facts.limits.bound_share and dram >= facts.limits.bound_share:
        return Move(
            f"order the blocks so that those that run together share tiles (grouped or Hilbert): {said}", "cache"
        )
    if hits >= facts.limits.bound_share and kernel.capability >= (9, 0):
        multicast = f"let a cluster fetch each tile once, by TMA multicast: {said}"
        return Move(multicast, "tile", spelling=spelling_of("clusters", kernel.capability))
    return None


def _passes_l1_by(facts: Facts) -> bool:
    """Return whether L1 serves next to none of the sectors that L2 serves again and again."""
    of_l1, of_l2 = map(facts.counter, ("l1_hit_rate", "l2_hit_rate"))
    return (
        of_l1 is not None
        and of_l2 is not None
        and of_l1 < facts.limits.negligible_share
        and of_l2 >= facts.limits.nearly_all_share
    )


def _moves_of_loads_and_stores(facts: Facts, others: tuple[Move, ...]) -> tuple[Move, ...]:
    """Put reuse before wider accesses where it spares more of them: where L1 hands out often what reaches it."""
    tile = "tile, so that reused values stay in shared memory or registers"
    levels, hits = facts.levels, facts.counter("l1_hit_rate") or 0.0
    from_l1, from_smem = (levels[name].amount_bytes or 0.0 for name in ("l1", "smem"))
    if not from_l1 and hits > 1 - 1 / _WORDS_AT_ONCE:
        return (Move(f"{tile}: L1 serves {percent(hits)} of its sectors itself", "tile"), *others)
    if not from_l1 and not from_smem:  # and none of its own, or nothing tells
        is_told = works_in_shared_memory(facts.kernel) is not None
        return (Move(tile, "tile"), *others) if is_told else _by_registers(facts, tile, others)
    again = ratio(from_l1, levels["l2"].amount_bytes) or 0.0
    if from_smem > from_l1 or again <= _WORDS_AT_ONCE:
        return (*others, Move("keep reused values in registers", "results"))
    return (Move(_fewer_reloads(tile, "l1", again), "tile"), *others)


def _by_registers(facts: Facts, tile: str, others: tuple[Move, ...]) -> tuple[Move, ...]:
    """Order the steps of reuse where nothing tells which were made, but the registers of a thread may."""
    results = Move("let each thread compute several results, such as 2 x 2, from what it loads", "results")
    if (facts.does.registers or 0.0) >= facts.limits.tile_registers:
        return (*others, results)
    return (Move(tile, "tile"), results, *others)


def _fewer_reloads(move: str, level: str, times: float | None) -> str:
    """Add how often a level delivers each byte that reaches it, if that was measured and is more than once."""
    if times is None or times <= 1:
        return move
    return f"{move}: {level.upper()} delivers {significant(times)}x the bytes that reach it"


def compute_moves(facts: Facts, limiter: Bottleneck) -> tuple[Move, ...]:
    """Choose the moves for a kernel bound by a pipe."""
    kernel, pipe, busy = facts.kernel, limiter.resource, limiter.share
    key = "tensor" if pipe and pipe.startswith("tensor") else (pipe or "").removesuffix("_pipe")
    rows = _COMPUTE.get(key, ())
    moves = tuple(move.made() for move in rows if move.suits(facts))
    if key not in _COMPUTE:
        command = collect_command(kernel.function_name, None)
        find = f"find the pipe that keeps the SM {percent(busy)} busy, which was not measured: `{command}`"
        moves = (Move(find, "collect"),)
    if facts.at_roof and key in _ARITHMETIC:
        # CUDA cores compute narrow types in fp32, and products that tensor cores could do have a finding.
        narrower = key in {"tensor", "fp64"}
        full = _AT_COMPUTE_ROOF.format(" or narrower ones" if narrower else "", percent(busy))
        return (Move(full, "precision" if narrower else "algorithm"), *moves[-1:])
    counts: Counter[str] = Counter()
    for opcode, count in kernel.warp_opcodes.items() if key in _BY_OPCODE else ():
        counts[opcode.partition(".")[0]] += count
    most = [
        f"{opcode} {percent(count / counts.total())}" for opcode, count in counts.most_common(_OPCODES_NAMED) if count
    ]
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
