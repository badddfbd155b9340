"""Findings about arithmetic: fusing, divisions, double precision where it is slow, unused tensor cores."""

from __future__ import annotations

from typing import Any

import pytest
from support.findings import at_limiter, make_facts, unsaid

from rooflens.model.findings.arithmetic import fp64_divisions, slow_fp64, tensor_cores_unused, unfused_arithmetic
from rooflens.model.records import Pipe


def _opcodes(**threads: int) -> dict[str, Any]:
    return {"thread_opcodes": threads}


@pytest.mark.parametrize(("apart", "said"), [(10, False), (12, True)])
def test_unfused_is_said_where_fusing_half_would_spare_a_tenth(apart: int, *, said: bool) -> None:
    """NVIDIA's limit: over a fifth of additions, multiplications and both stand apart."""
    found = unfused_arithmetic(make_facts(kernel=_opcodes(DADD=apart, DMUL=apart, DFMA=100 - 2 * apart)))
    assert (found is not None) is said
    if found is not None:
        assert "24 % of the fp64 arithmetic" in found.move
        assert "saves up to 12 %" in found.move
        assert unsaid(found.evidence, found.move) == []


def test_sums_alone_cannot_be_fused() -> None:
    """Additions without multiplications have no partner, and their pipe is idle besides."""
    assert unfused_arithmetic(make_facts(kernel=_opcodes(FADD=100))) is None


def test_counters_stand_in_for_opcodes_and_the_busier_precision_is_said() -> None:
    """Both are unfused; the fp64 pipe is the one that costs."""
    counters = {"fadd_threads": 50.0, "fmul_threads": 50.0, "ffma_threads": 0.0}
    counters |= {"dadd_threads": 40.0, "dmul_threads": 40.0, "dfma_threads": 20.0}
    found = unfused_arithmetic(make_facts(counters, {"fma": 0.1, "fp64_pipe": 0.8}, **at_limiter("fp64_pipe", 0.8)))
    assert found is not None
    assert "fp64" in found.move
    assert (found.severity, found.gain) == ("limiter", pytest.approx(1 / (1 - 0.4 * 0.8)))


@pytest.mark.parametrize(("beside", "severity"), [({}, "limiter"), ({"IMAD.WIDE": 300, "HFMA2": 600}, "note")])
def test_unfused_arithmetic_costs_its_own_part_of_a_pipe_that_others_share(
    beside: dict[str, int], severity: str
) -> None:
    """40 of 100 are spared on the FMA pipe, or 40 of 1,000: at 60 % busy that is 24 % or 2.4 % of the time."""
    kernel = _opcodes(**{"FADD": 40, "FMUL": 40, "FFMA": 20, **beside})
    facts = make_facts({}, {"fp32": 0.01, "fma": 0.6}, kernel=kernel, **at_limiter("fma", 0.6))
    found = unfused_arithmetic(facts)
    assert found is not None
    assert found.severity == severity
    assert (found.gain or 1.0) == pytest.approx(1 / (1 - 0.6 * 0.4 * (0.1 if beside else 1.0)))


@pytest.mark.parametrize(("busy", "severity"), [(0.29, "note"), (0.31, "contributes")])
def test_behind_a_wall_a_pipe_far_from_full_costs_nothing(busy: float, severity: str) -> None:
    """Divisions work while memory does; without a limiter they are a part of what the kernel waits for."""
    kernel = {"thread_opcodes": {"DFMA": 900, "DMUL": 100, "MUFU.RCP64H": 100}}
    shares = {"dram": 0.74, "fp64_pipe": busy}
    behind = fp64_divisions(make_facts({}, shares, kernel=kernel, **at_limiter("dram", 0.74)))
    alone = fp64_divisions(make_facts({}, shares, kernel=kernel))
    assert behind is not None
    assert alone is not None
    assert (behind.severity, alone.severity) == (severity, "contributes")


def test_without_opcodes_a_shared_pipe_is_not_charged_to_one_precision() -> None:
    """Nobody can tell what else kept the FMA pipe busy; the FLOPs themselves are a hundredth of their peak."""
    counters = {"fadd_threads": 50.0, "fmul_threads": 50.0, "ffma_threads": 0.0}
    found = unfused_arithmetic(make_facts(counters, {"fp32": 0.01, "fma": 0.6}, **at_limiter("fma", 0.6)))
    assert found is not None
    assert found.severity == "note"


@pytest.mark.parametrize(("divisions", "said"), [(28, False), (29, True)])
def test_divisions_are_said_from_a_fifth_of_the_fp64_instructions_on(divisions: int, *, said: bool) -> None:
    """Each takes seven instructions at least: 29 are 203 of 1,000."""
    kernel = {"thread_opcodes": {"DFMA": 900, "DMUL": 100, "MUFU.RCP64H": divisions, "MUFU.RCP": 500}}
    found = fp64_divisions(make_facts(kernel=kernel))
    assert (found is not None) is said
    if found is not None:
        assert "at least 20 % of the fp64 instructions" in found.move
        assert found.gain is None
        assert unsaid(found.evidence, found.move) == []


def _fp64(slower: float, share: float = 0.5) -> dict[str, Any]:
    pipes = {
        "fp64": Pipe(1e9, "FLOP", "opcode", share=share, peak_per_s=1e12),
        "fp32": Pipe(0.0, "FLOP", "opcode", share=0.0, peak_per_s=slower * 1e12),
    }
    return {"pipes": pipes}


@pytest.mark.parametrize(("slower", "said"), [(2.0, False), (3.9, False), (4.0, True), (64.0, True)])
def test_fp64_is_slow_from_a_quarter_of_fp32_down(slower: float, *, said: bool) -> None:
    """Chips for HPC do it at half the rate."""
    found = slow_fp64(make_facts(**_fp64(slower)))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []


def test_slow_fp64_that_fills_its_pipe_limits() -> None:
    """At 80 % of the pipe, fp32 at 64 times the rate would take a 64th of the time."""
    found = slow_fp64(make_facts(**_fp64(64.0, 0.8), **at_limiter("fp64", 0.8)))
    assert found is not None
    assert "1.00 GFLOP of fp64 run at a rate 64x lower" in found.move
    assert (found.severity, found.gain) == ("limiter", pytest.approx(1 / (1 - 0.8 * 63 / 64)))


def test_no_fp64_and_no_known_rate_are_no_finding() -> None:
    """A chip of no known name without peaks has no known ratio."""
    assert slow_fp64(make_facts(pipes={"fp64": Pipe(1e9, "FLOP", "opcode")})) is None
    none = {"fp64": Pipe(0.0, "FLOP", "opcode", peak_per_s=1e12), "fp32": Pipe(1e9, "FLOP", "opcode", peak_per_s=6e13)}
    assert slow_fp64(make_facts(pipes=none)) is None


@pytest.mark.parametrize(
    ("busy", "factor", "severity"),
    [(0.29, 32.0, None), (0.31, 32.0, "note"), (0.61, 32.0, "contributes"), (0.61, 3.9, None)],
)
def test_a_busy_fp64_pipe_and_what_the_driver_says_of_its_rate_are_enough(
    busy: float, factor: float, severity: str | None
) -> None:
    """No operation was counted; beside another limiter that is full, a pipe that is a limiter too stays advice."""
    facts = make_facts({"fp64_slower_factor": factor}, {"alu": 0.8, "fp64_pipe": busy}, **at_limiter("alu", 0.8))
    found = slow_fp64(facts)
    assert (found.severity if found else None) == severity
    if found is not None:
        assert "fp64 runs at a rate 32x lower" in found.move
        assert unsaid(found.evidence, found.move) == []


def _product(share: float, gpu: str = "NVIDIA A100-SXM4-80GB", **opcodes: int) -> Any:
    kernel = {"gpu": gpu, "thread_opcodes": {"FFMA": 1000, "FADD": 10, **opcodes}, "warp_opcodes": {"FFMA": 32}}
    pipes = {"fp32": Pipe(2e9, "FLOP", "opcode", share=share, peak_per_s=19.5e12)}
    return make_facts({"sm_clock_hz": 1.41e9}, kernel=kernel, pipes=pipes, **at_limiter("fp32", share))


@pytest.mark.parametrize(("share", "said"), [(0.39, False), (0.41, True)])
def test_tensor_cores_are_named_for_products_that_fill_two_fifths_of_the_fp32_pipe(share: float, *, said: bool) -> None:
    """An A100 does TF32 at 156 TFLOP/s: eight times its fp32."""
    found = tensor_cores_unused(_product(share))
    assert (found is not None) is said
    if found is not None:
        assert "TF32 roof is 8.0x as high" in found.move
        assert found.gain is None
        assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(
    ("gpu", "opcodes"),
    [
        ("NVIDIA GeForce GTX 1660 SUPER", {}),
        ("NVIDIA of no known name", {}),
        ("NVIDIA A100-SXM4-80GB", {"MUFU.EX2": 50}),
        ("NVIDIA A100-SXM4-80GB", {"FMUL": 400}),
    ],
)
def test_tensor_cores_are_not_named_where_there_are_none_or_the_work_is_no_product(
    gpu: str, opcodes: dict[str, int]
) -> None:
    """A GTX 1660 has none; exponentials or separate multiplications are not a matrix product's."""
    assert tensor_cores_unused(_product(0.7, gpu, **opcodes)) is None


def test_a_chip_is_told_of_the_best_format_that_it_has() -> None:
    """A T4 knows no TF32: fp16 it is."""
    found = tensor_cores_unused(_product(0.7, "Tesla T4"))
    assert found is not None
    assert "TF32" not in found.move
    assert "fp16" in found.move
