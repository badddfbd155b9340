"""Moves of kernels on tensor cores, and textbook moves that are kept from kernels that they do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs
from msgspec.structs import replace
from support.kernels import make_case, make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.records import Gain, Kernel, Move, Verdict
from rooflens.model.verdict.pipelined import each_once, with_tensor_moves
from rooflens.model.verdict.spelling import LADDER

_WAITS = {"warp_latency_cycles": 10.0, "issue_active_per_cycle": 0.3, "eligible_warps_per_cycle": 0.3}


def judged(counters: dict[str, float], **kernel: object) -> Verdict:
    """Judge a kernel of these counters."""
    made: Kernel = make_kernel(counters, compute_capability="8.6", **kernel)
    return analyze(made).verdict


def kinds(verdict: Verdict) -> list[str]:
    """List the kinds of the moves, in their order."""
    return [move.kind for move in verdict.moves]


def move(verdict: Verdict, kind: str) -> Move:
    """Return the move of a kind."""
    return next(one for one in verdict.moves if one.kind == kind)


def test_idle_tensor_cores_are_kept_fed_first() -> None:
    """Between a twentieth and nine tenths of the time at work, with no level full, overlap leads and says why."""
    verdict = judged({"tensor_active_share": 0.4, "dram_bus_share": 0.3, **_WAITS, "stall_long_scoreboard_cycles": 5.0})
    assert kinds(verdict)[0] == "overlap"
    assert "40" in verdict.moves[0].text
    for share in (0.03, 0.95):
        assert "overlap" not in kinds(judged({"tensor_active_share": share, "dram_bus_share": 0.3, **_WAITS}))
    assert "overlap" not in kinds(judged({"tensor_active_share": 0.4, "dram_bus_share": 0.9, "l2_share": 0.5}))


def test_moves_of_tensor_kernels_say_what_people_write() -> None:
    """Each but those for counters has its name in CUDA on the chip at hand; moves of other kernels have none."""
    waits = {**_WAITS, "stall_long_scoreboard_cycles": 5.0, "stall_barrier_cycles": 2.0}
    busy = {"tensor_active_share": 0.4, "dram_bus_share": 0.3, **waits}
    for chip, copies in (("8.6", "`cp.async` of 16 bytes"), ("9.0", "TMA: `cp.async.bulk.tensor` and an mbarrier")):
        verdict = analyze(make_kernel(busy, compute_capability=chip)).verdict
        assert not [one for one in verdict.moves if one.kind != "collect" and one.spelling is None]
        spelt = move(verdict, "inflight").spelling
        assert spelt is not None
        assert spelt.cuda == copies
    others = judged({"dram_bus_share": 0.3, **waits}).moves
    assert [one.spelling for one in others] == [None] * len(others)


def test_more_blocks_are_spelt_by_what_keeps_them_off_an_sm() -> None:
    """Where shared memory does, nobody is sent to registers, nor to `setmaxnreg`, which makes room for no block."""
    wave = {"waves": 1.5, "sm_cycles_active_avg": 7e4, "sm_cycles_elapsed_avg": 1e5, "sm_count": 100.0}
    wave |= {"tensor_active_share": 0.4, "dram_bus_share": 0.3, "block_size": 128.0, "grid_size": 300.0, **_WAITS}
    limits = {"theoretical_occupancy": 0.17, "blocks_limit_warps": 12.0, "blocks_limit_blocks": 24.0}
    few = {"blocks_limit_registers": 2.0, "registers_per_thread": 255.0}
    held = {"blocks_limit_smem": 2.0, "smem_per_block_bytes": 4.2e4, "sm_smem_bytes": 1e5}
    cases = {
        "`num_stages`, `BLOCK_K`": held | {"blocks_limit_registers": 4.0, "registers_per_thread": 128.0},
        "`maxnreg`": few | {"blocks_limit_smem": 8.0},
    }
    for triton, launch in cases.items():
        spelt = move(judged({**wave, **limits, **launch}), "occupancy").spelling
        assert spelt is not None
        assert spelt.triton == triton
        assert "setmaxnreg" not in (spelt.cuda or "")


def test_the_page_of_tensor_kernels_holds_the_table_of_the_code() -> None:
    """Steps, chips and what they are called on the page are those that moves say."""
    page = (Path(__file__).parents[3] / "docs" / "kernels" / "tensor-cores.md").read_text(encoding="utf-8")
    table = page[page.index("| step | due where") :].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    told = []
    for rung in LADDER:
        for at, (capability, spelling) in enumerate(rung.spellings.items()):
            since = "" if capability == (7, 0) else ".".join(map(str, capability))
            told.append(["" if at else rung.name, since, *(words or "" for words in structs.astuple(spelling))])
    assert [[row[0], *row[2:]] for row in rows] == told


def test_occupancy_of_a_large_tile_is_no_move() -> None:
    """A block of 70 kB is alone on its SM by design, and its occupancy a note."""
    launch = {
        "theoretical_occupancy": 0.33,
        "achieved_occupancy": 0.3,
        "registers_per_thread": 64.0,
        "block_size": 128.0,
        **_WAITS,
        "dram_bus_share": 0.2,
    }
    assert "occupancy" in kinds(judged(launch))
    assert "occupancy" not in kinds(judged({**launch, "smem_dynamic_per_block_bytes": 7e4}))
    assert "occupancy" not in kinds(judged({**launch, "registers_per_thread": 128.0, "block_size": 256.0}))


def test_wider_loads_stand_beside_more_of_them() -> None:
    """Where 80 % of the waiting is for memory that is not busy, both bring more bytes under way."""
    verdict = judged({**_WAITS, "stall_long_scoreboard_cycles": 8.0, "dram_bus_share": 0.2, "waves": 10.0})
    assert "80" in move(verdict, "wide").text
    wide = judged(
        {**_WAITS, "stall_long_scoreboard_cycles": 8.0, "dram_bus_share": 0.2, "waves": 10.0},
        warp_opcodes={"LDG.E.128": 1000, "FFMA": 1000},
    )
    assert "wide" not in kinds(wide)
    assert wide.does.load_bytes == 16


def test_spills_are_told_from_instructions_alone() -> None:
    """A tenth of all instructions on local memory, with 255 registers, go before what is to be collected."""
    spills = {"local_load_inst": 6e6, "local_store_inst": 4e6, "executed_inst": 1e8, "registers_per_thread": 255.0}
    spills |= {"warp_latency_cycles": 6.0, "stall_long_scoreboard_cycles": 3.0}
    assert kinds(judged(spills))[0] == "spill"
    assert "spill" not in kinds(
        judged({**spills, "local_load_inst": 1e6, "local_store_inst": 0.0, "registers_per_thread": 64.0})
    )


def test_a_full_l2_is_relieved_by_order_or_by_multicast() -> None:
    """While it misses, blocks that run together share too little; once it hits, a cluster fetches a tile once."""
    full = {"l2_internal_share": 0.95, "sol_l2_share": 0.95, "tensor_active_share": 0.5}
    missing = analyze(
        make_kernel({**full, "dram_bus_share": 0.8, "l2_hit_rate": 0.5}, compute_capability="9.0")
    ).verdict
    hitting = analyze(
        make_kernel({**full, "dram_bus_share": 0.5, "l2_hit_rate": 0.7}, compute_capability="9.0")
    ).verdict
    assert kinds(missing)[0] == "cache"
    assert "multicast" in hitting.moves[0].text


def test_a_larger_known_gain_goes_before_a_smaller_one() -> None:
    """A move of a tensor kernel with 1.2x stands behind one with 2.0x, and one without a gain keeps its place."""
    facts = make_case({"tensor_pipe": 0.2, "l2": 0.2}, {"stall_long_scoreboard_share": 0.5})
    facts = replace(facts, stall_shares={"long_scoreboard": 0.5})
    moves = (Move("more tiles", "inflight", gain=Gain(1.2)), Move("more warps", "occupancy", gain=Gain(2.0)))
    kinds = [(move.kind, move.gain and move.gain.factor) for move in with_tensor_moves(facts, moves)]
    assert kinds.index(("occupancy", 2.0)) < kinds.index(("inflight", 1.2))
    assert kinds[0] == ("overlap", None)


def test_one_piece_of_advice_is_given_once() -> None:
    """A tail and a low occupancy both ask for one block more; loads and stores for one block shape."""
    moves = (
        Move("turn the block shape: global loads waste 87 %", "shape"),
        Move("turn the block shape: global stores waste 88 %", "shape"),
        Move("make the block size a multiple of 32 threads: blocks of 9", "shape"),
        Move("let SMs hold 3 blocks at once: of 1.1 waves the last is 10 % full", "occupancy"),
        Move("raise occupancy, now at most 33 %: 33 kB would allow 3", "occupancy"),
        Move("let neighbouring threads read neighbouring addresses: loads", "coalesce"),
        Move("let neighbouring threads write neighbouring addresses: stores", "coalesce"),
    )
    assert [moves.index(move) for move in each_once(moves)] == [0, 2, 3, 5, 6]


def test_of_two_ways_the_one_that_was_said_is_left_out() -> None:
    """Where several results are advised already, low occupancy asks for more warps alone."""
    two = Move("let each thread compute more results, as L1 is busy; or raise occupancy, now at most 67 %", "results")
    first, second = each_once((Move("compute several results: L1 is 65 % busy", "results"), two))
    assert (second.text, second.kind) == ("raise occupancy, now at most 67 %", "occupancy")
    assert next(each_once((two,))) == two
    assert first.kind == "results"


def test_wider_loads_have_one_gain() -> None:
    """They leave the moves that have them among their ways where another move is for them, and only there."""
    flight = Move(
        "keep more bytes in flight, with wider loads and several per thread, as DRAM is 60 % busy", "inflight"
    )
    apart = Move("let neighbouring threads read on; or load 16 bytes at once per thread, as L1 serves 90 %", "coalesce")
    queue = Move("issue fewer and wider global and local accesses: the queue is full", "wide", gain=Gain(1.3))
    shared = Move("load 16 bytes at once from shared memory: 4.00 bytes fetched", "wide")
    assert [move.text for move in each_once((flight, apart, queue))] == [
        "keep more bytes in flight, with several loads per thread, as DRAM is 60 % busy",
        "let neighbouring threads read on",
        queue.text,
    ]
    assert [*each_once((flight, apart, shared))] == [flight, apart, shared]


@pytest.mark.parametrize(
    ("capability", "opcodes", "through_registers"),
    [
        ("10.3", {}, False),
        ("9.0", {"HGMMA.64x128x16.F32.BF16": 10, "FFMA": 1}, False),
        ("9.0", {"HMMA.16816.F32.BF16": 10, "FFMA": 1}, True),
        ("8.6", {}, True),
        ("12.0", {}, True),
    ],
)
def test_products_that_read_shared_memory_need_no_ldmatrix(
    capability: str, opcodes: dict[str, int], *, through_registers: bool
) -> None:
    """Operands of wgmma and tcgen05 come from shared memory directly; mma takes them from registers."""
    counters = {"tensor_active_share": 0.4, "dram_bus_share": 0.3}
    moves = analyze(make_kernel(counters, compute_capability=capability, warp_opcodes=opcodes)).verdict.moves
    wide = next(one for one in moves if one.kind == "wide")
    assert ("ldmatrix" in wide.text) is through_registers
    assert ("TMA" in wide.text) is not through_registers


@pytest.mark.parametrize(("blocks", "first"), [(80.0, "blocks"), (96.0, "overlap"), (150.0, "overlap")])
def test_sms_without_a_block_come_before_what_hides_waits(blocks: float, first: str) -> None:
    """A fifth of the SMs idles for certain; what more overlap brings nobody knows."""
    grid = {"grid_size": blocks, "sm_count": 100.0, "waves": blocks / 200, "block_size": 128.0, "sm_warps": 64.0}
    busy = {"tensor_active_share": 0.2, "dram_bus_share": 0.1, **_WAITS, "stall_long_scoreboard_cycles": 5.0}
    assert kinds(judged(grid | busy))[0] == first
