from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from support.findings import at_limiter, make_facts
from support.kernels import make_case, make_kernel, reach
from support.loops import for_all

from rooflens.model.analyze import analyze
from rooflens.model.findings.does import find_what_it_does
from rooflens.model.records import LEVELS, Bottleneck, Finding, Gain, Kernel, Level, Limit, Move
from rooflens.model.roofline.units import PIPE_ROWS
from rooflens.model.verdict import advice
from rooflens.model.verdict.decide import _at_limiter
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.pipelined import fitting
from rooflens.model.verdict.thresholds import default_thresholds


def words_of(choose: Callable[..., tuple[Move, ...]], *args: Any, **choices: Any) -> tuple[str, ...]:
    """Return the words of the chosen moves."""
    return tuple(move.text for move in choose(*args, **choices))


def facts_of(kernel: Kernel, levels: Mapping[str, Level], *, at_roof: bool) -> Facts:
    """Return what moves ask for."""
    does = find_what_it_does(kernel)
    return Facts(kernel, levels, {}, {}, {}, default_thresholds(), at_roof=at_roof, does=does)


def memory_words(
    kernel: Kernel, levels: Mapping[str, Level], level: str | None, *, at_roof: bool = False
) -> tuple[str, ...]:
    """Return the words of the moves for a level."""
    return words_of(advice.memory_moves, facts_of(kernel, levels, at_roof=at_roof), level)


def compute_words(kernel: Kernel, pipe: str | None, *, at_roof: bool = False) -> tuple[str, ...]:
    """Return the words of the moves for a pipe."""
    facts = facts_of(kernel, {}, at_roof=at_roof)
    return tuple(move.text for move in fitting(facts, advice.compute_moves(facts, Bottleneck(pipe, 0.0))))


def levels(**amounts: float) -> dict[str, Level]:
    """Make levels, some of which have bytes."""
    return {name: Level(amount_bytes=amounts.get(name)) for name in LEVELS}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("at_roof", [False, True])
def test_every_level_has_moves(level: str, *, at_roof: bool) -> None:
    """A memory verdict always has a move that can help."""
    moves = memory_words(make_kernel(), levels(), level, at_roof=at_roof)
    assert moves
    assert len(set(moves)) == len(moves)


def test_an_unnamed_level_has_a_general_move() -> None:
    """If only NVIDIA's summary is known, the move is general."""
    moves = memory_words(make_kernel(), levels(), None)
    assert moves == ("reduce traffic at the busiest memory unit, such as by tiles that are read once",)


def test_at_the_roof_of_dram_only_fewer_bytes_help() -> None:
    """The move names the bytes; below the roof it does not say that nothing else helps."""
    first = memory_words(make_kernel(), levels(dram=3e9), "dram", at_roof=True)[0]
    assert first.startswith("move less than today's 3.00 GB: fuse with a neighbour")
    assert memory_words(make_kernel(), levels(), "dram")[0].startswith("move fewer bytes: fuse")


@pytest.mark.parametrize(("level", "far"), [("l2", "dram"), ("l1", "l2")])
def test_reloads_are_told_in_numbers(level: str, far: str) -> None:
    """A level that delivers four times what reaches it is named; a level that delivers less is not criticized."""
    often = memory_words(make_kernel(), levels(**{level: 4e9, far: 1e9}), level)[0]
    assert often.endswith(f"{level.upper()} delivers 4.00x the bytes that reach it")
    once = memory_words(make_kernel(), levels(**{level: 1e9, far: 1e9}), level)[0]
    assert "delivers" not in once


@for_all(
    "amounts, is_first",
    [
        ({"l1": 31e9, "l2": 1e9}, True),
        ({"l1": 31e9, "l2": 1e9, "smem": 30e9}, True),
        ({"l1": 31e9, "l2": 1e9, "smem": 32e9}, False),
        ({"l1": 4e9, "l2": 1e9}, False),
        ({"l1": 31e9}, False),
    ],
)
def test_tiles_go_before_wider_loads_where_they_spare_more(amounts: dict[str, float], *, is_first: bool) -> None:
    """A 16-byte access replaces at most four of 4 bytes, so a value that L1 delivers 31 times should be kept first.

    If most accesses are to shared memory, the kernel already has tiles.
    """
    first, second = memory_words(make_kernel(), levels(**amounts), "lsu", at_roof=True)
    assert first.startswith("tile, so that reused values stay" if is_first else "load wider")
    assert second.startswith("load wider" if is_first else "keep reused values in registers")


NO_SMEM = {"smem_static_per_block_bytes": 0.0, "smem_dynamic_per_block_bytes": 0.0}


@for_all(
    "counters, said",
    [
        ({}, ("tile, so", "let each thread compute several", "load wider")),
        ({"registers_per_thread": 32.0}, ("tile, so", "let each thread compute several", "load wider")),
        ({"registers_per_thread": 128.0}, ("load wider", "let each thread compute several")),
        (NO_SMEM, ("tile, so", "load wider")),
        ({"l1_hit_rate": 0.6, "registers_per_thread": 128.0}, ("tile, so", "load wider")),
        ({"l1_hit_rate": 0.01}, ("let each thread compute several", "load wider")),
        ({**NO_SMEM, "smem_static_per_block_bytes": 8192.0}, ("let each thread compute several", "load wider")),
    ],
)
def test_the_next_step_of_reuse_follows_from_what_a_print_shows(
    counters: dict[str, float], said: tuple[str, ...]
) -> None:
    """Where no bytes were counted, a tile comes first, results per thread once there is one, and wide loads last.

    Shared memory of a block shows the tile; where that was not printed, an L1 that is busy without hits does. Many
    registers hold several results.
    """
    moves = memory_words(make_kernel(counters), levels(), "lsu", at_roof=True)
    assert len(moves) >= len(said)
    assert [move for move, begin in zip(moves, said, strict=False) if not move.startswith(begin)] == []


@for_all(
    "counters, opcodes, told",
    [
        ({}, {}, False),
        ({}, {"FFMA": 9}, False),
        ({}, {"HMMA.16816.F32": 1, "FFMA": 9}, True),
        ({"tensor_busy_share": 0.04}, {}, False),
        ({"tensor_busy_share": 0.06}, {}, True),
        ({"tensor_busy_share": 0.06}, {"FFMA": 9}, False),
    ],
)
def test_weights_are_spoken_of_only_where_there_is_matrix_work(
    counters: dict[str, float], opcodes: dict[str, int], *, told: bool
) -> None:
    """An optimizer step has no weights that a larger batch would share, but halving the bytes still helps it."""
    kernel = make_kernel(counters, warp_opcodes=opcodes)
    moves = memory_words(kernel, levels(), "dram")
    assert any("weights" in move for move in moves) is told
    assert sum("halve the bytes" in move for move in moves) == 1


@for_all("opcodes, to", [({"DFMA": 9, "FFMA": 1}, "fp32"), ({"DADD": 1, "FFMA": 9}, "fp16 or bf16")])
def test_bytes_are_halved_by_the_next_narrower_type(opcodes: dict[str, int], to: str) -> None:
    """Values of a kernel that computes in fp64 have eight bytes: fp32 halves them, fp16 would quarter them."""
    moves = memory_words(make_kernel(warp_opcodes=opcodes), levels(), "dram")
    assert f"halve the bytes: {to}, if accuracy allows" in moves


@for_all(
    "counters, told",
    [
        ({}, True),
        ({"dram_bytes": 3200.0}, True),
        ({"dram_bytes": 2660.0, "global_ideal_sectors": 100.0}, True),
        ({"dram_bytes": 2680.0, "global_ideal_sectors": 100.0}, False),
        ({"dram_bytes": 3830.0, "global_ideal_sectors": 100.0}, False),
        ({"dram_bytes": 3850.0, "global_ideal_sectors": 100.0}, True),
    ],
)
def test_tiling_is_for_kernels_that_may_read_twice(counters: dict[str, float], *, told: bool) -> None:
    """If DRAM moves the 3,200 bytes of 100 sectors, to within 1.2 times, there are hardly any re-reads."""
    moves = memory_words(make_kernel(counters), levels(), "dram")
    assert any("tile" in move for move in moves) is told


@pytest.mark.parametrize(("excess", "told"), [(None, True), (0.0, False), (9.0, False), (11.0, True)])
def test_accesses_that_are_coalesced_are_not_told_to_be(excess: float | None, *, told: bool) -> None:
    """Of 100 sectors, ten are the least worth mentioning; without any measure coalescing may help."""
    totals = {} if excess is None else {"load_sectors": 60.0, "store_sectors": 40.0, "load_excess_sectors": excess}
    moves = memory_words(make_kernel(code_totals=totals), levels(), "l1")
    assert any("coalesced" in move for move in moves) is told
    assert sum("load wider" in move for move in moves) == 1


@pytest.mark.parametrize(
    ("level", "word", "capability", "told"),
    [
        ("l2", "TMA", "8.9", False),
        ("l2", "TMA", "9.0", True),
        ("l1", "cp.async", "7.5", False),
        ("l1", "cp.async", "8.0", True),
        ("l1", "cp.async", None, False),
    ],
)
def test_no_chip_is_told_to_use_what_it_lacks(level: str, word: str, capability: str | None, *, told: bool) -> None:
    """Asynchronous copies came with Ampere, TMA and clusters with Hopper; for an unknown chip nothing is assumed."""
    kernel = make_kernel(NO_SMEM, compute_capability=capability)
    assert any(word in move for move in memory_words(kernel, levels(), level)) is told


@pytest.mark.parametrize(("capability", "told"), [("8.0", False), ("9.0", True), ("10.0", False), ("12.0", False)])
def test_warpgroup_instructions_are_hopper_s_alone(capability: str, *, told: bool) -> None:
    """Blackwell has no wgmma."""
    moves = compute_words(make_kernel(compute_capability=capability), "tensor_bf16")
    assert any("wgmma" in move for move in moves) is told


@for_all(
    "pipe, word",
    [
        ("tensor_bf16", "overlap loads"),
        ("tensor_fp8_acc16_tcgen05", "overlap loads"),
        ("tensor_pipe", "overlap loads"),
        ("fp64", "divisions"),
        ("fp64_pipe", "divisions"),
        ("fp32", "fewer operations"),
        ("fp16_pipe", "fewer operations"),
        ("fma", "index arithmetic"),
        ("alu", "index arithmetic"),
        ("xu", "exp2"),
        ("issue", "fewer instructions"),
        ("mio", "which was not measured"),
        (None, "which was not measured"),
    ],
)
def test_every_pipe_has_its_move(pipe: str | None, word: str) -> None:
    """The move follows the pipe, by family, and an unnamed pipe has a general move."""
    assert word in compute_words(make_kernel(), pipe)[0]


@pytest.mark.parametrize(
    ("pipe", "named"), [("alu", True), ("issue", True), ("fma", True), ("xu", True), ("lsu", False)]
)
@pytest.mark.parametrize("at_roof", [False, True])
def test_what_fills_a_shared_unit_is_named_by_its_opcodes(pipe: str, *, named: bool, at_roof: bool) -> None:
    """The three opcodes with most warp instructions, without modifiers, with their shares of all."""
    opcodes = {"LOP3.LUT": 22, "IADD3": 12, "IADD3.X": 5, "IMAD.WIDE": 8, "BRA": 7, "MOV": 46}
    moves = compute_words(make_kernel(warp_opcodes=opcodes), pipe, at_roof=at_roof)
    assert ("MOV 46 %, LOP3 22 %, IADD3 17 % of the instructions" in moves[0]) is named
    assert "of the instructions" not in compute_words(make_kernel(), pipe, at_roof=at_roof)[0]


@pytest.mark.parametrize(
    ("opcodes", "word"),
    [
        ({"LOP3.LUT": 25.0, "SHF.R.U32.HI": 10.0, "IADD3": 16.0, "IMMA.8816.S8.S8.SAT": 24.0}, "unpack"),
        ({"LOP3.LUT": 10.0, "IADD3": 16.0, "ISETP.GE.AND": 4.0}, "index arithmetic"),
        ({}, "index arithmetic"),
    ],
)
def test_a_full_alu_is_told_apart_by_its_opcodes(opcodes: dict[str, float], word: str) -> None:
    """Logic and shifts that outnumber additions and comparisons are unpacking, not index arithmetic."""
    assert word in compute_words(make_kernel(warp_opcodes=opcodes), "alu")[0]


@pytest.mark.parametrize("row", PIPE_ROWS, ids=lambda row: row.key)
@pytest.mark.parametrize("at_roof", [False, True])
def test_no_pipe_is_without_a_move(row: object, *, at_roof: bool) -> None:
    """Every pipe of the table has at least one move."""
    assert compute_words(make_kernel(), row.key, at_roof=at_roof)


@pytest.mark.parametrize(
    ("pipe", "ends"),
    [("tensor_bf16", True), ("fp64_pipe", True), ("fp32", True), ("alu", False), ("issue", False)],
)
def test_a_full_arithmetic_pipe_is_a_good_end(pipe: str, *, ends: bool) -> None:
    """At the roof of a FLOP pipe nothing is left to do; a full ALU or issue slot should still be relieved."""
    assert compute_words(make_kernel(), pipe, at_roof=True)[0].startswith("do fewer operations") is (ends)


def test_collecting_is_a_command() -> None:
    """The advice about missing counters, and about a failed kernel, can be pasted into a shell."""
    kernel, command = make_kernel(function_name="gemm"), "ncu --set basic ./app 7"
    pasted = "`rooflens profile --kernel gemm --launch-count 1 -- ./app 7`"
    assert pasted in words_of(advice.collect_moves, "gemm", None, command)[0]
    assert pasted in words_of(advice.failed_moves, kernel, command)[0]


def test_old_chips_are_not_told_to_collect() -> None:
    """Today's ncu cannot profile Pascal, so no command is given that must fail."""
    kernel = make_kernel(compute_capability="6.1")
    for moves in (
        words_of(advice.collect_moves, "k", "6.1", "ncu ./app"),
        words_of(advice.failed_moves, kernel, "ncu ./app"),
    ):
        assert "no longer profiles compute capability 6.1" in moves[0]
        assert "`rooflens profile" not in moves[0]


GENERATOR = {"IMAD.WIDE.U32": 40, "LOP3.LUT": 30, "IADD3": 20, "STG.E": 9, "LDG.E": 0}
"""Of 99 instructions none loads."""


@for_all(
    "resource, named",
    [
        ("issue", "loads"),
        ("issue", "data it already holds"),
        ("lsu", "load wider"),
        ("l1", "load wider"),
        ("l1", "cp.async"),
        ("l2", "loads each byte once"),
        ("l2", "reorder"),
        ("dram", "re-reads"),
    ],
)
def test_a_kernel_without_loads_is_not_told_to_load_better(resource: str, named: str) -> None:
    """A fill only stores: vector loads, tiles and fewer re-reads are for kernels with at least one load in ten."""

    def said(opcodes: dict[str, int]) -> str:
        kernel = make_kernel(NO_SMEM, warp_opcodes=opcodes, compute_capability="9.0")
        moves = compute_words(kernel, resource) if resource == "issue" else memory_words(kernel, levels(), resource)
        assert moves
        return "; ".join(moves)

    assert named in said({})
    assert named in said({**GENERATOR, "LDG.E": 11})
    assert named not in said(GENERATOR)


def test_reductions_in_memory_count_as_reads() -> None:
    """A histogram of `RED` fills L2 with its own reads, and is not taken for a fill."""
    kernel = make_kernel(warp_opcodes={**GENERATOR, "RED.E.ADD": 20})
    assert "reorder the blocks for locality" in memory_words(kernel, levels(), "l2")


@pytest.mark.parametrize(
    ("counters", "told"), [({}, True), ({"atomic_inst": 0.0}, False), ({"atomic_inst": 2.0}, True)]
)
def test_without_opcodes_counted_accesses_prove_that_nothing_is_loaded(
    counters: dict[str, float], *, told: bool
) -> None:
    """No sector loaded, no shared-memory wavefront, no atomic; what was not counted proves nothing."""
    kernel = make_kernel({"global_load_sectors": 0.0, "smem_load_wavefronts": 0.0, **counters})
    assert ("vector loads" in compute_words(kernel, "issue")[0]) is told


@for_all(
    "pipe, named, with_it, without",
    [
        ("fp64", "divisions", {"DFMA": 9, "MUFU.RCP64H": 1}, {"DFMA": 9, "MUFU.EX2": 1}),
        ("fma", "integer multiplications", {"FFMA": 9, "IMAD": 1}, {"FFMA": 9, "IMAD.MOV.U32": 1}),
        ("xu", "exp2", {"MUFU.EX2": 1}, {"MUFU.RCP": 1}),
        ("xu", "polynomial", {"MUFU.EX2": 1}, {"MUFU.SIN": 1}),
        ("xu", "reciprocals", {"MUFU.RSQ": 1}, {"MUFU.EX2": 1}),
        ("xu", "convert", {"I2F.U32": 1}, {"MUFU.EX2": 1}),
        ("xu", "fewer special functions", {"MUFU.SIN": 1}, {"MUFU.EX2": 1}),
    ],
)
def test_no_move_names_what_the_opcodes_show_none_of(
    pipe: str, named: str, with_it: dict[str, int], without: dict[str, int]
) -> None:
    """Divisions, integer products, exponentials and conversions are named only if some were executed."""
    told, not_told = (compute_words(make_kernel(warp_opcodes=opcodes), pipe) for opcodes in (with_it, without))
    assert any(named in move for move in told)
    assert not_told
    assert not any(named in move for move in not_told)


def test_warpgroup_instructions_are_not_told_to_who_has_them() -> None:
    """A Hopper kernel of HGMMA already uses wgmma; a kernel of HMMA does not."""
    for opcode, told in (("HGMMA.64x128x16.F32.BF16", False), ("HMMA.16816.F32.BF16", True)):
        kernel = make_kernel(warp_opcodes={opcode: 9}, compute_capability="9.0")
        assert any("wgmma" in move for move in compute_words(kernel, "tensor_bf16")) is told


@pytest.mark.parametrize(
    ("asked_bytes", "said"),
    [(264.2e6, " (the SMs asked for 264 MB)"), (290e6, ""), (None, ""), (0.0, "")],
    ids=["13 % more is moved", "5 % more", "not all is counted", "nothing is"],
)
def test_bytes_that_nobody_asked_for_are_told_apart(asked_bytes: float | None, said: str) -> None:
    """A fill of 264.2 MB moves 303.7: fewer bytes help, and a tenth or more were not requested by the kernel."""
    found = {**levels(dram=303.7e6), "l2": Level(amount_bytes=asked_bytes)}
    first = memory_words(make_kernel(), found, "dram", at_roof=True)[0]
    assert first.startswith(f"move less than today's 304 MB{said}: fuse")


@pytest.mark.parametrize(("flags", "told"), [((), True), (("atomics_cross_twice",), False)])
def test_l2_bytes_that_leave_out_atomics_are_no_measure(flags: tuple[str, ...], *, told: bool) -> None:
    """Atomics cross to L2 and back but are looked up once: L2's bytes are too low to compare with."""
    case = make_case({"dram": 0.9, "l2": 0.3}, flags=flags)
    found = {name: Level(share=level.share, amount_bytes=5e8) for name, level in case.levels.items()}
    found["dram"] = Level(share=0.9, amount_bytes=1e9)
    verdict = reach(replace(case, levels=found))
    assert ("the SMs asked for 500 MB" in verdict.advice[0]) is told


@pytest.mark.parametrize(("queued", "is_shared"), [(0.43, True), (0.2, False)])
def test_a_full_memory_side_without_a_name_is_shared_memory_where_warps_queue_for_it(
    queued: float, *, is_shared: bool
) -> None:
    """A few counters have only NVIDIA's per cent for the side; 43 % of a warp's time in the queue names the unit."""
    counters = {"duration_ns": 1e6, "sol_memory": 0.88, "sol_compute": 0.64, "stall_mio_throttle_share": queued}
    move = analyze(make_kernel(counters)).verdict.moves[0].text
    assert move.startswith("take load off shared memory") == is_shared
    assert ("43 % of their time" in move.replace("\u00a0", " ")) == is_shared


@pytest.mark.parametrize(
    ("dram", "excess", "place"),
    [
        (0.74, 0.05, 2),  # of the bytes that are asked for 74 % of the peak: behind what fills the rest of it
        (0.70, 0.05, None),
        (0.74, 0.30, None),  # a third of the sectors in vain: these go first
    ],
)
def test_a_nearly_full_dram_needs_fewer_bytes(dram: float, excess: float, place: int | None) -> None:
    """From 72 % of DRAM's peak on, with its sectors used, one of the first three moves is to move less."""
    counters = {
        "dram_bus_share": dram,
        "l2_tag_share": 0.4,
        "l1_data_share": 0.3,
        "issue_active_share": 0.2,
        "global_touched_sectors": 1e6,
        "global_ideal_sectors": 1e6 * (1 - excess),
        "theoretical_occupancy": 0.75,
        "warp_latency_cycles": 50.0,
        "stall_long_scoreboard_cycles": 42.0,
        "achieved_occupancy": 0.74,
        "dram_bytes": 32e6,
    }
    kinds = [move.kind for move in analyze(make_kernel(counters)).verdict.moves][:3]
    assert (kinds.index("fuse") if "fuse" in kinds else None) == place, kinds


def test_a_full_pipe_and_the_wait_for_it_are_one_move() -> None:
    """What to do is the pipe's, what it costs the wait's: a reader is told once, with the gain."""
    counters = {
        "alu_inst_share": 0.68,
        "issue_active_share": 0.5,
        "dram_bus_share": 0.1,
        "l2_tag_share": 0.1,
        "warp_latency_cycles": 13.6,
        "stall_math_pipe_throttle_cycles": 4.4,
        "eligible_warps_per_cycle": 0.5,
        "issue_active_per_cycle": 0.5,
    }
    first, *others = analyze(make_kernel(counters)).verdict.moves
    assert (first.kind, first.finding) == ("index", "stall_math_pipe_throttle")
    assert first.gain is not None
    assert "68 % busy; warps spend 32 % of their time" in first.text.replace("\u00a0", " ")
    assert "math pipe" not in "".join(move.text for move in others)


def test_a_small_waste_at_a_full_unit_leaves_the_units_own_move() -> None:
    """Where 3x can be won, accesses that waste a tenth of L1 are not all that there is to do; of 1.6x they may be."""
    facts = make_facts({}, {"l1": 0.81}, **at_limiter("l1", 0.81))
    facts = replace(facts, bound="memory", limit=Limit(3.0, 1e6, "DRAM traffic"))
    for factor, left in ((1.1, ["tile"]), (1.6, [])):
        waste = Finding("uncoalesced_global_load", "loads", "limiter", (), "start rows", "coalesce", Gain(factor))
        assert [move.kind for move in _at_limiter(facts, [waste])] == left
