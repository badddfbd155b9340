from __future__ import annotations

import pytest
from support.kernels import make_kernel, place
from support.loops import for_all

from rooflens.model.roofline.units import PIPE_ROWS


def test_a_flop_pipe_has_rate_peak_and_share() -> None:
    """1e9 FLOPs in 1 ms are 1e12 FLOP/s, a quarter of 4e12."""
    kernel = make_kernel({"ffma_peak_threads_per_s": 2e12}, thread_opcodes={"FFMA": 500_000_000})
    pipe = place(kernel).pipes["fp32"]
    assert (pipe.amount, pipe.unit, pipe.source, pipe.peak_source) == (1e9, "FLOP", "opcode", "report")
    assert (pipe.amount_per_s, pipe.peak_per_s, pipe.share) == pytest.approx((1e12, 4e12, 0.25))


def test_a_flop_pipe_without_peak_has_a_rate_and_no_share() -> None:
    """An unknown peak leaves the share unknown."""
    pipe = place(make_kernel(thread_opcodes={"FFMA": 500_000_000})).pipes["fp32"]
    assert (pipe.amount_per_s, pipe.peak_per_s, pipe.share) == (pytest.approx(1e12), None, None)


def test_a_share_scaled_from_active_cycles_is_nvidia_s_where_it_is_as_near_as_two_passes() -> None:
    """80.3 % by other cycles is the 80.6 % that NVIDIA has of the busiest; 70 % is another, and so is a stored one."""
    scaled = {"counter_sources": {"issue_active_share": "sm__inst_issued.avg.pct x active / elapsed cycles"}}
    for share, fields, shown in ((0.803, scaled, 0.806), (0.7, scaled, 0.7), (0.803, {}, 0.803)):
        pipes = place(make_kernel({"issue_active_share": share, "sol_compute": 0.806}, **fields)).pipes
        assert pipes["issue"].share == shown


def test_a_flop_pipe_without_duration_keeps_its_amount() -> None:
    """Work without a time has no rate and no share."""
    pipe = place(make_kernel({"duration_ns": None, "ffma_peak_threads_per_s": 2e12}, thread_opcodes={"FFMA": 5})).pipes[
        "fp32"
    ]
    assert (pipe.amount, pipe.amount_per_s, pipe.share) == (10, None, None)


def test_integer_tensor_work_is_in_operations() -> None:
    """int8 is a pipe with a share, in operations rather than FLOPs."""
    kernel = make_kernel(
        warp_opcodes={"IMMA.16832.S8.S8.SAT": 1_000_000},
        tensor_peaks_per_s={"op_imma_src_int8_sparsity_off": 16.384e12},
    )
    pipe = place(kernel).pipes["tensor_int8"]
    assert (pipe.unit, pipe.amount, pipe.share) == ("op", 8.192e9, pytest.approx(0.5))


@for_all("row", [row for row in PIPE_ROWS if row.amount], lambda row: row.key)
def test_an_instruction_pipe_divides_its_instructions_by_its_peak(row: object) -> None:
    """3e6 warp instructions in 1 ms are 3e9 a second, 60 % of 5e9."""
    pipe = place(make_kernel({row.amount: 3e6, row.peak: 5e9})).pipes[row.key]
    assert (pipe.unit, pipe.source, pipe.peak_source) == ("inst", "counter", "report")
    assert (pipe.amount_per_s, pipe.peak_per_s, pipe.share) == pytest.approx((3e9, 5e9, 0.6))


@pytest.mark.parametrize(
    ("row", "share"),
    [(row, share) for row in PIPE_ROWS for share in row.shares],
    ids=lambda item: getattr(item, "key", item),
)
def test_a_stored_share_places_a_pipe(row: object, share: str) -> None:
    """Each of a pipe's stored shares is enough to place it."""
    pipe = place(make_kernel({share: 0.42})).pipes[row.key]
    assert (pipe.share, pipe.amount, pipe.peak_per_s, pipe.peak_source) == (0.42, None, None, None)
    assert pipe.unit == row.unit


def test_the_largest_share_of_a_pipe_counts() -> None:
    """The ALU pipe is as busy as its busiest part: 20 % of its issue rate, 70 % of its cycles."""
    counters = {"alu_inst": 1e6, "alu_peak_inst_per_s": 5e9, "alu_busy_share": 0.7, "alu_heavy_busy_share": 0.3}
    assert place(make_kernel(counters)).pipes["alu"].share == 0.7


def test_a_pipe_nobody_measured_is_absent() -> None:
    """Without a counter there is no pipe, nor with an amount whose peak is unknown."""
    assert place(make_kernel()).pipes == {}
    assert place(make_kernel({"alu_inst": 1e6})).pipes == {}


def test_an_idle_pipe_is_there() -> None:
    """A measured zero is shown as zero."""
    assert place(make_kernel({"xu_inst_share": 0.0})).pipes["xu"].share == 0


def test_a_missing_peak_is_taken_from_the_datasheet_and_says_so() -> None:
    """A100's 312 TFLOP/s at half its boost clock: 78e9 FLOP in 1 ms are a half of 156 TFLOP/s."""
    kernel = make_kernel(
        {"sm_clock_hz": 0.705e9},
        gpu="NVIDIA A100-SXM4-40GB",
        compute_capability="8.0",
        tensor_ops={"src_bf16_dst_fp32": 7.8e10},
    )
    pipe = place(kernel).pipes["tensor_bf16"]
    assert (pipe.share, pipe.peak_source, pipe.source) == (pytest.approx(0.5), "datasheet", "tensor_ops")
