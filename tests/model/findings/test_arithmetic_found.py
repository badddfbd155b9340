"""Findings about arithmetic: fusing, divisions, slow double precision, unused tensor cores."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support.findings import at_limiter, found_by, make_facts, unsaid
from support.roofs import own_roof

from rooflens.model.findings.arithmetic import (
    conversions,
    curand_init,
    debug_build,
    fp64_divisions,
    integer_divisions,
    slow_fp64,
    tensor_cores_unused,
    unfused_arithmetic,
)
from rooflens.model.records import Hotspot, Pipe


def _opcodes(**threads: int) -> dict[str, Any]:
    return {"thread_opcodes": threads}


@pytest.mark.parametrize(("apart", "said"), [(10, False), (12, True)])
def test_unfused_is_said_where_fusing_half_would_spare_a_tenth(apart: int, *, said: bool) -> None:
    """NVIDIA's limit: over a fifth of additions and multiplications, both of them present, is unfused."""
    found = found_by(unfused_arithmetic, make_facts(kernel=_opcodes(DADD=apart, DMUL=apart, DFMA=100 - 2 * apart)))
    assert (found is not None) is said
    if found is not None:
        assert "24 % of the fp64 arithmetic" in found.move
        assert "saves up to 12 %" in found.move
        assert unsaid(found.evidence, found.move) == []


def test_sums_alone_cannot_be_fused() -> None:
    """Additions without multiplications have no partner, and their pipe is idle."""
    assert unfused_arithmetic(make_facts(kernel=_opcodes(FADD=100))) is None


def test_counters_stand_in_for_opcodes_and_the_busier_precision_is_said() -> None:
    """Both are unfused, but the fp64 pipe is the costly one: 40 of its 100 instructions are saved, 1 / 0.6."""
    counters = {"fadd_threads": 50.0, "fmul_threads": 50.0, "ffma_threads": 0.0}
    counters |= {"dadd_threads": 40.0, "dmul_threads": 40.0, "dfma_threads": 20.0}
    found = found_by(
        unfused_arithmetic, make_facts(counters, {"fma": 0.1, "fp64_pipe": 0.8}, **at_limiter("fp64_pipe", 0.8))
    )
    assert found is not None
    assert "fp64" in found.move
    assert (found.severity, found.gain) == ("limiter", pytest.approx(1 / 0.6))


@pytest.mark.parametrize(("beside", "severity"), [({}, "limiter"), ({"IMAD.WIDE": 300, "HFMA2": 600}, "note")])
def test_unfused_arithmetic_costs_its_own_part_of_a_pipe_that_others_share(
    beside: dict[str, int], severity: str
) -> None:
    """40 of 100 instructions of the FMA pipe are saved, or of 1,000: 40 % or 4 % less work, 1 / 0.6 or 1 / 0.96."""
    kernel = _opcodes(**{"FADD": 40, "FMUL": 40, "FFMA": 20, **beside})
    facts = make_facts({}, {"fp32": 0.01, "fma": 0.6}, kernel=kernel, **at_limiter("fma", 0.6))
    found = found_by(unfused_arithmetic, facts)
    assert found is not None
    assert found.severity == severity
    assert (found.gain or 1.0) == pytest.approx(1 / (1 - 0.4 * (0.1 if beside else 1.0)))


@pytest.mark.parametrize("busy", [0.29, 0.31, 0.59])
def test_behind_a_wall_a_pipe_that_is_not_full_costs_nothing(busy: float) -> None:
    """Divisions run while memory does; without a limiter they are part of what the kernel waits for.

    700 of 1,000 instructions are divisions, six sevenths of which are saved: 0.4 of the pipe's work is left, 2.5x.
    """
    kernel = {"thread_opcodes": {"DFMA": 900, "DMUL": 100, "MUFU.RCP64H": 100}}
    facts = make_facts({}, {"dram": 0.74, "fp64_pipe": busy}, kernel=kernel, **at_limiter("dram", 0.74))
    behind = found_by(fp64_divisions, facts)
    alone = found_by(fp64_divisions, make_facts({}, {"dram": 0.1, "fp64_pipe": busy}, kernel=kernel))
    assert behind is not None
    assert alone is not None
    assert (behind.severity, alone.severity, alone.gain) == ("note", "contributes", pytest.approx(2.5))


def test_without_opcodes_a_shared_pipe_is_not_charged_to_one_precision() -> None:
    """Other users of the FMA pipe are unknown, and the FLOPs themselves are a hundredth of their peak."""
    counters = {"fadd_threads": 50.0, "fmul_threads": 50.0, "ffma_threads": 0.0}
    found = found_by(unfused_arithmetic, make_facts(counters, {"fp32": 0.01, "fma": 0.6}, **at_limiter("fma", 0.6)))
    assert found is not None
    assert found.severity == "note"


@pytest.mark.parametrize(("divisions", "said"), [(28, False), (29, True)])
def test_divisions_are_said_from_a_fifth_of_the_fp64_instructions_on(divisions: int, *, said: bool) -> None:
    """Each takes at least seven instructions: 29 divisions are 203 of 1,000."""
    kernel = {"thread_opcodes": {"DFMA": 900, "DMUL": 100, "MUFU.RCP64H": divisions, "MUFU.RCP": 500}}
    found = found_by(fp64_divisions, make_facts(kernel=kernel))
    assert (found is not None) is said
    if found is not None:
        assert "at least 20 % of the fp64 instructions" in found.move
        assert found.gain is None
        assert unsaid(found.evidence, found.move) == []


def _fp64(slower: float, share: float = 0.5) -> dict[str, Any]:
    pipes = {
        "fp64": Pipe(1e9, "FLOP", "opcode", share=share, roof=own_roof(1e12)),
        "fp32": Pipe(0.0, "FLOP", "opcode", share=0.0, roof=own_roof(slower * 1e12)),
    }
    return {"pipes": pipes}


@pytest.mark.parametrize(("slower", "said"), [(2.0, False), (3.9, False), (4.0, True), (64.0, True)])
def test_fp64_is_slow_from_a_quarter_of_fp32_down(slower: float, *, said: bool) -> None:
    """Chips for HPC run fp64 at half the rate of fp32, which is not slow."""
    found = found_by(slow_fp64, make_facts(**_fp64(slower)))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []


def test_slow_fp64_that_fills_its_pipe_limits() -> None:
    """fp32 at 64 times the rate would take a 64th of the time on the limiting pipe."""
    found = found_by(slow_fp64, make_facts(**_fp64(64.0, 0.8), **at_limiter("fp64", 0.8)))
    assert found is not None
    assert "1.00 GFLOP of fp64 run at a rate 64x lower" in found.move
    assert (found.severity, found.gain) == ("limiter", pytest.approx(64.0))


def test_no_fp64_and_no_known_rate_are_no_finding() -> None:
    """A chip without a known name or peaks has no known ratio."""
    assert slow_fp64(make_facts(pipes={"fp64": Pipe(1e9, "FLOP", "opcode")})) is None
    none = {
        "fp64": Pipe(0.0, "FLOP", "opcode", roof=own_roof(1e12)),
        "fp32": Pipe(1e9, "FLOP", "opcode", roof=own_roof(6e13)),
    }
    assert slow_fp64(make_facts(pipes=none)) is None


@pytest.mark.parametrize(
    ("busy", "factor", "severity"),
    [(0.29, 32.0, None), (0.31, 32.0, "note"), (0.61, 32.0, "contributes"), (0.61, 3.9, None)],
)
def test_a_busy_fp64_pipe_and_what_the_driver_says_of_its_rate_are_enough(
    busy: float, factor: float, severity: str | None
) -> None:
    """No operations were counted; beside another full limiter, a pipe that also limits remains advice."""
    facts = make_facts({"fp64_slower_factor": factor}, {"alu": 0.8, "fp64_pipe": busy}, **at_limiter("alu", 0.8))
    found = found_by(slow_fp64, facts)
    assert (found.severity if found else None) == severity
    if found is not None:
        assert "fp64 runs at a rate 32x lower" in found.move
        assert unsaid(found.evidence, found.move) == []


def _product(share: float, gpu: str = "NVIDIA A100-SXM4-80GB", **opcodes: int) -> Any:
    kernel = {"gpu": gpu, "thread_opcodes": {"FFMA": 1000, "FADD": 10, **opcodes}, "warp_opcodes": {"FFMA": 32}}
    pipes = {"fp32": Pipe(2e9, "FLOP", "opcode", share=share, roof=own_roof(19.5e12))}
    return make_facts({"sm_clock_hz": 1.41e9}, kernel=kernel, pipes=pipes, **at_limiter("fp32", share))


@pytest.mark.parametrize(("share", "said"), [(0.39, False), (0.41, True)])
def test_tensor_cores_are_named_for_products_that_fill_two_fifths_of_the_fp32_pipe(share: float, *, said: bool) -> None:
    """An A100 runs TF32 at 156 TFLOP/s, eight times its fp32."""
    found = found_by(tensor_cores_unused, _product(share))
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
    """A GTX 1660 has no tensor cores; exponentials or separate multiplications are not a matrix product."""
    assert tensor_cores_unused(_product(0.7, gpu, **opcodes)) is None


def test_a_chip_is_told_of_the_best_format_that_it_has() -> None:
    """A T4 does not support TF32, so fp16 is named."""
    found = found_by(tensor_cores_unused, _product(0.7, "Tesla T4"))
    assert found is not None
    assert "TF32" not in found.move
    assert "fp16" in found.move


@pytest.mark.parametrize(
    ("moves", "local", "said"), [(30, 5, True), (29, 5, False), (30, 4, False), (0, 60, False), (60, 0, False)]
)
def test_a_debug_build_moves_registers_and_keeps_variables_in_local_memory(
    moves: int, local: int, *, said: bool
) -> None:
    """30 % moves and 5 % local memory; release builds that spill have few moves, and those with many do not spill."""
    opcodes = {"MOV": moves, "LDL.64": local // 2, "STL": local - local // 2, "FFMA": 100 - moves - local}
    found = found_by(debug_build, make_facts(kernel={"warp_opcodes": opcodes}))
    assert (found is not None) is said
    if found is not None:
        assert found.move.startswith("profile a release build")
        assert (found.severity, found.gain) == ("limiter", None)
        assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(("converting", "said"), [(4, False), (5, True)])
def test_conversions_are_said_from_a_twentieth_of_the_instructions_on(converting: int, *, said: bool) -> None:
    """The opcode of most conversions is named."""
    opcodes = {"I2F.S8": converting - 1, "F2FP.BF16": 1, "FFMA": 100 - converting}
    found = found_by(conversions, make_facts(kernel={"warp_opcodes": opcodes}))
    assert (found is not None) is said
    if found is not None:
        assert "5.0 % of its instructions are conversions, most of them I2F.S8" in found.move
        assert unsaid(found.evidence, found.move) == []


def test_conversions_cost_their_part_of_the_special_function_pipe() -> None:
    """10 of 20 instructions of the full pipe are conversions: without them half of its work is left, 2x.

    Packed conversions do not use that pipe.
    """
    opcodes = {"I2F": 10, "MUFU.EX2": 10, "F2FP.BF16": 10, "FFMA": 70}
    found = found_by(
        conversions, make_facts({}, {"xu": 0.8}, kernel={"warp_opcodes": opcodes}, **at_limiter("xu", 0.8))
    )
    assert found is not None
    assert (found.severity, found.gain, found.changes) == ("limiter", pytest.approx(2.0), "instructions")


@pytest.mark.parametrize(("count", "said"), [(6, False), (7, True)])
def test_integer_divisions_are_said_where_they_make_up_a_tenth(count: int, *, said: bool) -> None:
    """Each is at least 15 instructions: seven are 105 of 1,000, and 42 of the 200 on the ALU, 1 / 0.79."""
    opcodes = {"I2F.U32.RP": count, "F2I.FTZ.U32.TRUNC.NTZ": count, "MUFU.RCP": count, "IADD3": 1000 - 3 * count}
    facts = make_facts(kernel={"warp_opcodes": opcodes}, pipes={"alu": Pipe(200.0, "inst", "counter", share=0.9)})
    facts = make_facts(kernel={"warp_opcodes": opcodes}, pipes=facts.pipes, **at_limiter("alu", 0.9))
    found = found_by(integer_divisions, facts)
    assert (found is not None) is said
    assert conversions(facts) is None
    if found is not None:
        assert unsaid(found.evidence, found.move) == []
        assert (found.severity, found.gain) == ("limiter", pytest.approx(1 / 0.79))


@pytest.mark.parametrize(
    "spot",
    [
        Hotspot("function", function="_skipahead_scratch<curandStateXORWOW>", measures={"samples": 40.0}),
        Hotspot("line", "a.cu", 3, text="curand_init(seed, i, 0, &state);", measures={"samples": 40.0}),
    ],
)
def test_starting_generators_is_said_where_samples_name_it(spot: Hotspot) -> None:
    """Two fifths of the samples are there: 1 / 0.6."""
    found = found_by(curand_init, make_facts(kernel={"hotspots": (spot,), "code_totals": {"samples": 100.0}}))
    assert found is not None
    assert unsaid(found.evidence, found.move) == []
    assert (found.severity, found.gain) == ("limiter", pytest.approx(1 / 0.6))
    assert curand_init(make_facts(kernel={"hotspots": (spot,), "code_totals": {"samples": 500.0}})) is None


def test_lines_of_curands_header_start_generators_where_their_text_is_not_at_hand() -> None:
    """Two fifths of the samples are in the header; reports without sources, and named steps, do not count."""
    file = "/usr/local/cuda/include/curand_kernel.h"
    spot = Hotspot("line", file, 312, measures={"samples": 40.0})
    found = found_by(curand_init, make_facts(kernel={"hotspots": (spot,), "code_totals": {"samples": 100.0}}))
    assert found is not None
    assert found.confidence == "low"
    assert "40 % of the samples are in lines of cuRAND's `curand_kernel.h`" in found.move
    step = replace(spot, text="state->v[4] = (v4 ^ (v4 << 4)) ^ (t ^ (t << 1));")
    assert curand_init(make_facts(kernel={"hotspots": (step,), "code_totals": {"samples": 100.0}})) is None
