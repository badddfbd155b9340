"""Test a step of a server: its names and arguments as vLLM writes them, its times such as an H100 takes.

Sources: operators in csrc/torch_bindings.cpp, vllm/model_executor/layers/attention/attention.py and vllm/v1/worker/
gpu_worker.py (`annotate_profile`) of vllm-project/vllm; the sums of lengths in the step's name as TraceLens reads them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.traces import Event, host, kernel, launch, write_trace

from rooflens.model.program.kernels import ProgramKernel
from rooflens.model.program.program import Program
from rooflens.programs import read_programs

LAYERS, TOKENS, HIDDEN, FFN, VOCABULARY = 4, 64, 4096, 14336, 128256
STEP = "execute_64_context_0(sq0sk0sqsq0sqsk0)_generation_64(sq64sk131072sqsq64sqsk131072)"
"""64 sequences, each with one new token, that see 131,072 together."""

B, E4, F, L = "c10::BFloat16", "c10::Float8_e4m3fn", "float", "long int"


def tensor(dtype: str, *dims: int) -> tuple[str, list[int], str]:
    """Return a tensor as an argument: its type, sizes, and no value."""
    return dtype, [*dims], ""


def value(text: object, dtype: str = "Scalar") -> tuple[str, list[int], str]:
    """Return an argument that is no tensor."""
    return dtype, [], str(text)


ROWS, HEADS, KEYS = tensor(B, TOKENS, HIDDEN), tensor(B, TOKENS, 32, 128), tensor(B, TOKENS, 8, 128)
WEIGHT, CACHE = tensor(B, HIDDEN), tensor(B, 9000, 16, 8, 128)


def scaled(rows: int, columns: int) -> list[tuple[str, list[int], str]]:
    """Return the arguments of `cutlass_scaled_mm`: result, operands, their scales, no bias."""
    return [
        tensor(B, TOKENS, columns),
        tensor(E4, TOKENS, rows),
        tensor(E4, rows, columns),
        tensor(F, TOKENS, 1),
        tensor(F, 1, columns),
        value("", ""),
    ]


def quantized(columns: int) -> list[tuple[str, list[int], str]]:
    """Return the arguments of `dynamic_per_token_scaled_fp8_quant`."""
    return [tensor(E4, TOKENS, columns), tensor(B, TOKENS, columns), tensor(F, TOKENS, 1), value("", "")]


QUANTIZED = "void vllm::dynamic_per_token_scaled_fp8_quant_kernel_strided<c10::BFloat16>"
PRODUCT = "void cutlass::device_kernel<vllm::cutlass_3x_gemm>"
NORM = [ROWS, ROWS, WEIGHT, value(1e-5)]
LAYER: list[tuple[str, list[tuple[str, list[int], str]], str, float]] = [
    # operator, its arguments, its kernel, and for how many microseconds that runs
    ("_C::fused_add_rms_norm", NORM, "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>", 4.1),
    ("_C::dynamic_per_token_scaled_fp8_quant", quantized(HIDDEN), QUANTIZED, 3.2),
    ("_C::cutlass_scaled_mm", scaled(HIDDEN, 6144), PRODUCT, 13.0),
    (
        "_C::rotary_embedding",
        [
            *(tensor(L, TOKENS), tensor(B, TOKENS, 4096), tensor(B, TOKENS, 1024)),
            *(value(128), tensor(B, 8192, 128), value("True")),
        ],
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>",
        3.0,
    ),
    (
        "_C_cache_ops::reshape_and_cache_flash",
        [KEYS, KEYS, CACHE, CACHE, tensor(L, TOKENS), value("auto", ""), tensor(F, 1), tensor(F, 1)],
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, 0>",
        3.1,
    ),
    (
        "vllm::unified_attention_with_output",
        [HEADS, KEYS, KEYS, HEADS, value("model.layers.0.self_attn.attn", "")],
        "kernel_unified_attention_3d",
        230.0,
    ),
    ("_C::dynamic_per_token_scaled_fp8_quant", quantized(HIDDEN), QUANTIZED, 3.2),
    ("_C::cutlass_scaled_mm", scaled(HIDDEN, HIDDEN), PRODUCT, 9.5),
    ("_C::fused_add_rms_norm", NORM, "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>", 4.1),
    ("_C::dynamic_per_token_scaled_fp8_quant", quantized(HIDDEN), QUANTIZED, 3.2),
    ("_C::cutlass_scaled_mm", scaled(HIDDEN, 2 * FFN), PRODUCT, 44.0),
    (
        "_C::silu_and_mul",
        [tensor(B, TOKENS, FFN), tensor(B, TOKENS, 2 * FFN)],
        "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel, true>",
        5.0,
    ),
    ("_C::dynamic_per_token_scaled_fp8_quant", quantized(FFN), QUANTIZED, 4.0),
    ("_C::cutlass_scaled_mm", scaled(FFN, HIDDEN), PRODUCT, 24.0),
]
HEAD: list[tuple[str, list[tuple[str, list[int], str]], str, float]] = [
    ("aten::mm", [ROWS, tensor(B, HIDDEN, VOCABULARY)], "nvjet_tst_128x64_64x8_2x1_v_bz_TNT", 390.0),
    ("aten::sort", [tensor(F, TOKENS, VOCABULARY), value(-1), value("False")], "DeviceRadixSortOnesweepKernel", 60.0),
    ("aten::argmax", [tensor(F, TOKENS, VOCABULARY), value(-1), value("False")], "reduce_kernel<512, 1, ArgMax>", 21.0),
]


def written(path: Path, step: str = STEP, faster: float = 1.0) -> Path:
    """Write the trace of a step; all kernels of one kind may be faster than they are."""
    calls = [*LAYER * LAYERS, *HEAD]
    events: list[Event] = [host("user_annotation", step, 0.0, 20.0 * len(calls) + 100)]
    at, ran = 10.0, 1000.0
    for number, (operator, arguments, name, took) in enumerate(calls, 1):
        args: dict[str, Any] = {
            "Input type": [one[0] for one in arguments],
            "Input Dims": [one[1] for one in arguments],
            "Concrete Inputs": [one[2] for one in arguments],
        }
        events += [host("cpu_op", operator, at, 8, **args), launch(at + 2, number)]
        events.append(kernel(name, ran, took / faster, correlation=number))
        at, ran = at + 20, ran + took / faster + 1
    return write_trace(path, events, deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}])


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program of a step."""
    return read_programs([written(tmp_path / "step.json")])[0]


def row(program: Program, operator: str) -> ProgramKernel:
    """Return the one row of an operator."""
    (found,) = (one for one in program.every if one.operator == operator)
    return found


def test_most_of_a_servers_step_has_a_floor(program: Program) -> None:
    """At least 80 % of the time has a floor, no floor is above its time, and what has none is named by time."""
    assert program.known_share >= 0.8
    assert not [one for one in program.every if one.floor_ns is not None and one.floor_ns > one.time_ns]
    assert [one.name for one in program.unknown] == ["aten::sort", "aten::argmax"]
    assert not [note for note in program.notes if "floor" in note]


def test_the_floor_of_attention_reads_the_cache_that_the_step_names(program: Program) -> None:
    """Of 131,072 tokens the keys and values of eight heads are read, in the type that the cache is written in."""
    attention = row(program, "vllm::unified_attention_with_output")
    assert attention.moved_bytes == 2 * (131072 * 8 * 2 * 128 + 2 * TOKENS * 32 * 128)
    assert attention.floor_cold_ns == pytest.approx(LAYERS * attention.moved_bytes / 3.35e12 * 1e9, rel=0.01)
    assert attention.limited_by == "memory"


def test_steps_of_one_shape_are_one_row(tmp_path: Path) -> None:
    """Steps that see different numbers of tokens have floors of their own, and are added up in one row."""
    first, second = (
        read_programs([written(tmp_path / f"{keys}.json", STEP.replace("131072", str(keys)))])[0]
        for keys in (131072, 65536)
    )
    operator = "vllm::unified_attention_with_output"
    a, b = row(first, operator), row(second, operator)
    assert (a.time_ns, a.count) == (b.time_ns, b.count)
    assert a.floor_ns is not None
    assert b.floor_ns is not None
    assert a.floor_ns / b.floor_ns == pytest.approx(2, rel=0.01)
    both = (tmp_path / "both.json",)
    events = [
        event | {"ts": event["ts"] + 10_000 * later, "args": _again(event["args"], later)}
        for later, keys in enumerate((131072, 65536))
        for event in _events(tmp_path / f"{keys}.json")
    ]
    write_trace(both[0], events, deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}])
    joined = row(read_programs(both)[0], operator)
    assert joined.count == a.count + b.count
    assert joined.floor_ns == pytest.approx(a.floor_ns + b.floor_ns)


def _events(path: Path) -> list[Event]:
    events: list[Event] = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return events


def _again(args: dict[str, Any], later: int) -> dict[str, Any]:
    return {key: one + 1000 * later if key == "correlation" else one for key, one in args.items()}


def test_a_step_that_does_not_name_its_lengths_has_no_floor_of_attention(tmp_path: Path) -> None:
    """The number of tokens alone says nothing of the cache that each sees."""
    program = read_programs([written(tmp_path / "step.json", "execute_context_0(0)_generation_64(64)")])[0]
    assert row(program, "vllm::unified_attention_with_output").floor_ns is None
    assert program.unknown[0].name == "vllm::unified_attention_with_output"
