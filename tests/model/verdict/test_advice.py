from __future__ import annotations

from dataclasses import replace

import pytest
from support.kernels import make_kernel

from rooflens.model.records import LEVELS
from rooflens.model.roofline.pipes import PIPE_ROWS
from rooflens.model.verdict import advice
from rooflens.model.verdict.thresholds import default_thresholds

LIMITS = default_thresholds()
SCATTERED = {"global_load_sectors": 320.0, "global_load_requests": 10.0}
CONFLICTS = {"smem_bytes": 1000.0, "smem_conflict_bytes": 400.0}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("at_roof", [False, True])
def test_every_level_has_moves(level: str, *, at_roof: bool) -> None:
    """A memory verdict always says what can help."""
    moves = advice.memory_moves(make_kernel(), level, LIMITS, at_roof=at_roof)
    assert moves
    assert len(set(moves)) == len(moves)


def test_an_unnamed_level_has_a_general_move() -> None:
    """Where only NVIDIA's summary is known, the move is general."""
    assert advice.memory_moves(make_kernel(), None, LIMITS, at_roof=False) == (
        "cut traffic at the busiest memory unit",
    )


def test_at_the_hbm_roof_only_fewer_bytes_help() -> None:
    """At 80 % of the bandwidth the search for a better access pattern is over."""
    first = advice.memory_moves(make_kernel(SCATTERED), "dram", LIMITS, at_roof=True)[0]
    assert first.startswith("nothing left at this level")
    assert not advice.memory_moves(make_kernel(), "dram", LIMITS, at_roof=False)[0].startswith("nothing left")


@pytest.mark.parametrize(("level", "first"), [("dram", True), ("l2", True), ("l1", True), ("smem", False)])
def test_scattered_loads_are_named_first(level: str, *, first: bool) -> None:
    """320 sectors in 10 requests are 32 a request, twice what a coalesced load needs; shared memory has no sectors."""
    moves = advice.memory_moves(make_kernel(SCATTERED), level, LIMITS, at_roof=False)
    assert moves[0].startswith("coalesce: 32.0 sectors") is first


@pytest.mark.parametrize(
    "counters",
    [
        {"global_load_sectors": 160.0, "global_load_requests": 10.0},
        {"global_load_sectors": 320.0},
        {"global_load_requests": 0.0, "global_load_sectors": 0.0},
    ],
)
def test_coalesced_or_uncounted_loads_are_not_named(counters: dict[str, float]) -> None:
    """16 sectors a request are the widest coalesced load, and nothing counted proves nothing."""
    assert not any(
        "coalesce:" in move for move in advice.memory_moves(make_kernel(counters), "l1", LIMITS, at_roof=False)
    )


@pytest.mark.parametrize(("level", "first"), [("smem", True), ("l1", True), ("dram", False), ("l2", False)])
def test_bank_conflicts_are_named_first(level: str, *, first: bool) -> None:
    """400 of 1,000 bytes are replays: 40 %, twice the limit."""
    moves = advice.memory_moves(make_kernel(CONFLICTS), level, LIMITS, at_roof=False)
    assert moves[0].startswith("pad or swizzle shared memory: 40 %") is first


def test_few_bank_conflicts_are_not_named() -> None:
    """200 of 1,000 are at the limit and not above."""
    kernel = make_kernel({**CONFLICTS, "smem_conflict_bytes": 200.0})
    assert not any("swizzle" in move for move in advice.memory_moves(kernel, "smem", LIMITS, at_roof=False))
    stricter = replace(LIMITS, conflict_share=0.1)
    assert any("swizzle" in move for move in advice.memory_moves(kernel, "smem", stricter, at_roof=False))


@pytest.mark.parametrize(
    ("pipe", "word"),
    [
        ("tensor_bf16", "overlap loads"),
        ("tensor_fp8_acc16_tcgen05", "overlap loads"),
        ("tensor_pipe", "overlap loads"),
        ("fp64", "divisions"),
        ("fp64_pipe", "divisions"),
        ("fp32", "tensor cores"),
        ("fp16_pipe", "tensor cores"),
        ("fma", "index arithmetic"),
        ("alu", "index arithmetic"),
        ("xu", "exp2"),
        ("issue", "fewer instructions"),
        ("mio", "fewer instructions"),
        (None, "fewer instructions"),
    ],
)
def test_every_pipe_has_its_move(pipe: str | None, word: str) -> None:
    """The move follows the pipe, by family, and an unnamed one has a general move."""
    assert word in advice.compute_moves(pipe, at_roof=False)[0]


@pytest.mark.parametrize("row", PIPE_ROWS, ids=lambda row: row.key)
@pytest.mark.parametrize("at_roof", [False, True])
def test_no_pipe_is_without_a_move(row: object, *, at_roof: bool) -> None:
    """Every pipe of the table leads to at least one move."""
    assert advice.compute_moves(row.key, at_roof=at_roof)


@pytest.mark.parametrize(
    ("pipe", "ends"),
    [("tensor_bf16", True), ("fp64_pipe", True), ("fp32", True), ("alu", False), ("issue", False)],
)
def test_a_full_arithmetic_pipe_is_a_good_end(pipe: str, *, ends: bool) -> None:
    """At the roof of a FLOP pipe nothing is left; a full ALU or issue slot is still to be relieved."""
    assert advice.compute_moves(pipe, at_roof=True)[0].startswith("nothing left on this pipe") is ends


def test_collecting_is_a_command() -> None:
    """The advice about missing counters, and about a failed kernel, can be pasted into a shell."""
    kernel, command = make_kernel(function_name="gemm"), "ncu --set basic ./app 7"
    pasted = "`rooflens profile --kernel gemm --launch-count 1 -- ./app 7`"
    assert pasted in advice.collect_moves(kernel, command)[0]
    assert pasted in advice.failed_moves(kernel, command)[0]


def test_old_chips_are_not_told_to_collect() -> None:
    """Today's ncu cannot profile a Pascal: no command is given that must fail."""
    kernel = make_kernel(compute_capability="6.1")
    for moves in (advice.collect_moves(kernel, "ncu ./app"), advice.failed_moves(kernel, "ncu ./app")):
        assert "no longer profiles compute capability 6.1" in moves[0]
        assert "`rooflens profile" not in moves[0]


@pytest.mark.parametrize(
    ("busy", "flop_share", "fuses"), [(0.70, 0.52, True), (0.70, 0.60, False), (0.70, None, False)]
)
def test_a_pipe_busier_than_its_flops_is_told_to_fuse(busy: float, flop_share: float | None, *, fuses: bool) -> None:
    """An FP64 pipe 70 % busy for 52 % of its FLOPs runs adds and multiplications apart."""
    move = advice.compute_moves("fp64", busy, flop_share, at_roof=False)[0]
    assert move.startswith("fuse adds and multiplications") is fuses
