from __future__ import annotations

from typing import Any

import pytest
from support.kernels import make_kernel, work_by_key
from support.loops import for_all

from rooflens.model.analyze import analyze
from rooflens.model.roofline.flops import count_flops, tensor_pipe_top

A100 = {"gpu": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0"}
HOPPER = {"compute_capability": "9.0"}
NO_THREADS = {"MOV": 32}
SASS = {f"{letter}{op}_threads": 0.0 for letter in "dfh" for op in ("add", "mul", "fma")}
IDLE = {"tensor_busy_share": 0.0}


def ops(**fields: Any) -> dict[str, float]:
    """Return the operations by pipe of a kernel with hardly any CUDA-core arithmetic."""
    kernel = make_kernel(fields.pop("counters", None), **{"thread_opcodes": NO_THREADS, **fields})
    return {key: work.ops for key, work in work_by_key(kernel).items() if key.startswith("tensor")}


def total_tensor_ops(tensor_ops: dict[str, float]) -> float:
    """Return the sum over all tensor work, including equal keys."""
    kernel = make_kernel(thread_opcodes=NO_THREADS, tensor_ops=tensor_ops, compute_capability="10.0")
    return sum(work.ops for work in count_flops(kernel).work if work.key.startswith("tensor"))


def flags(**fields: Any) -> frozenset[str]:
    """Return the flags raised while counting."""
    return count_flops(make_kernel(fields.pop("counters", None), **{"thread_opcodes": NO_THREADS, **fields})).flags


def test_thread_table_gives_every_scalar_dtype() -> None:
    """Thread instructions times their FLOPs: 100 + 200 + 2x300 = 900 fp32, 10 + 2x20 = 50 fp64, 2x7 + 4x8 = 46 fp16."""
    table = {
        "FADD": 100,
        "FMUL.FTZ": 200,
        "FFMA": 300,
        "DADD": 10,
        "DFMA": 20,
        "HADD2": 7,
        "HFMA2.MMA": 8,
        "MUFU.EX2": 9,
    }
    work = work_by_key(make_kernel(thread_opcodes=table, code_totals={"fp16_constant_threads": 0.0}))
    assert {key: (item.ops, item.source) for key, item in work.items()} == {
        "fp64": (50, "opcode"),
        "fp32": (900, "opcode"),
        "fp16": (46, "opcode"),
    }


def test_conversion_from_half_is_no_work() -> None:
    """`HADD2.F32` adds nothing to fp16."""
    assert work_by_key(make_kernel(thread_opcodes={"HADD2.F32": 1000, "HADD2": 1}))["fp16"].ops == 2


def test_thread_table_goes_before_sass_counters() -> None:
    """Opcodes and SASS counters count the same instructions: the table is used and nothing is added."""
    kernel = make_kernel({**SASS, "ffma_threads": 999.0}, thread_opcodes={"FFMA": 5})
    assert (work_by_key(kernel)["fp32"].ops, work_by_key(kernel)["fp32"].source) == (10, "opcode")


def test_sass_counters_where_there_is_no_table() -> None:
    """fp32 = 1 + 2 + 2x3 = 9; fp64 = 4 + 5 + 2x6 = 21; fp16 is packed: 2x7 + 2x8 + 4x9 = 66."""
    numbers = iter(range(1, 10))
    counters = {f"{letter}{op}_threads": float(next(numbers)) for letter in "fdh" for op in ("add", "mul", "fma")}
    work = work_by_key(make_kernel({**counters, **IDLE}))
    assert {key: (item.ops, item.source) for key, item in work.items()} == {
        "fp64": (21, "sass"),
        "fp32": (9, "sass"),
        "fp16": (66, "upper_bound"),
    }


def test_multiply_adds_alone_are_an_estimate() -> None:
    """If additions and multiplications were not counted, the number is an estimate."""
    work = work_by_key(make_kernel({"ffma_threads": 50.0, **IDLE}))
    assert (work["fp32"].ops, work["fp32"].source) == (100, "estimated")


def test_without_any_source_nothing_is_known() -> None:
    """A report without FLOP counters gives no work and no total: missing is not zero."""
    found = count_flops(make_kernel(IDLE))
    assert (found.work, found.complete) == ((), False)
    assert analyze(make_kernel(IDLE)).flop_total is None


BITS = {"d": "64", "h": "16"}


@pytest.mark.parametrize("known", BITS)
def test_a_total_is_that_of_the_types_that_were_counted(known: str) -> None:
    """With one precision counted the total is its own, the others are named, and no work is not claimed."""
    counters = {name: 0.0 for name in SASS if name.startswith(known)} | IDLE
    result = analyze(make_kernel(counters))
    assert result.flop_total == 0
    assert result.flop_uncounted == tuple(dtype for dtype in ("fp64", "fp32", "fp16") if dtype[2:] != BITS[known])
    assert "no_flop" not in result.flags
    assert {f"{dtype}_not_measured" for dtype in result.flop_uncounted} <= set(result.flags)


@pytest.mark.parametrize(
    ("dtype", "letter", "rate", "expected"),
    [("fp64", "d", 32, 64e9), ("fp32", "f", 64, 128e9), ("fp16", "h", 128, 512e9)],
)
def test_scalar_peaks_come_from_the_report(dtype: str, letter: str, rate: int, expected: float) -> None:
    """A multiply-add per thread is two FLOPs, packed half four: 32, 64 and 128 threads per cycle at 1 GHz."""
    kernel = make_kernel({f"{letter}fma_peak_threads_per_s": rate * 1e9}, thread_opcodes={"MOV": 1})
    work = work_by_key(kernel)[dtype]
    assert (work.peak_ops_per_s, work.peak_source) == (expected, "report")


def test_a_missing_peak_is_the_published_one_at_the_profiled_clock() -> None:
    """A100: 19.5 TFLOP/s at 1.41 GHz is 9.75 TFLOP/s at 705 MHz, and is marked as published."""
    work = work_by_key(make_kernel({"sm_clock_hz": 0.705e9}, thread_opcodes={"FFMA": 1}, **A100))
    assert work["fp32"].peak_ops_per_s == pytest.approx(9.75e12)
    assert work["fp32"].peak_source == "datasheet"


@pytest.mark.parametrize(
    ("gpu", "sm_count"),
    [("NVIDIA H100 80GB HBM3", 132), ("NVIDIA GH200 480GB", 132), ("NVIDIA H100 PCIe", 114), ("NVIDIA H100 NVL", 132)],
)
def test_wgmma_at_full_rate_does_all_of_the_published_peak(gpu: str, sm_count: int) -> None:
    """4,096 bf16 FLOPs per cycle and SM for 1 ms at 1.41 GHz: share 1.000, whatever clock NVIDIA's peaks are for."""
    flop = sm_count * 4096 * 1.41e9 / 1e3
    kernel = make_kernel(
        {"sm_clock_hz": 1.41e9},
        gpu=gpu,
        compute_capability="9.0",
        tensor_ops={"op_hgmma_src_bf16_dst_fp32_sparsity_off": flop},
    )
    work = work_by_key(kernel)["tensor_bf16_wgmma"]
    assert work.peak_source == "datasheet"
    assert work.peak_ops_per_s is not None
    assert flop / 1e-3 / work.peak_ops_per_s == pytest.approx(1.0, abs=1e-3)


def test_a_published_peak_is_that_of_the_sms_the_report_counts() -> None:
    """An Orin module of 8 SMs has half of the 5.325 TFLOP/s at 1.3 GHz of the 16 SMs in its file."""
    kernel = make_kernel(
        {"sm_clock_hz": 1.3e9, "sm_count": 8.0}, thread_opcodes={"FFMA": 1}, gpu="Orin", compute_capability="8.7"
    )
    assert work_by_key(kernel)["fp32"].peak_ops_per_s == pytest.approx(8 * 256 * 1.3e9, rel=1e-3)


def test_no_peak_is_made_up() -> None:
    """Without a GPU file there is no published peak; without a clock there is that of the rated one, which is said."""
    work = work_by_key(make_kernel({"sm_clock_hz": 1e9}, thread_opcodes={"FFMA": 1}))
    assert (work["fp32"].peak_ops_per_s, work["fp32"].peak_source) == (None, None)
    rated = work_by_key(make_kernel(thread_opcodes={"FFMA": 1}, gpu="NVIDIA A100-SXM4-40GB"))["fp32"].roof
    assert rated is not None
    assert (rated.value, rated.source, rated.clock) == (19.5e12, "datasheet", "rated")
    assert not rated.is_measured


PACKED = {"FADD": 100, "HADD2": 3, "HFMA2.MMA": 8}


def test_loaded_constants_are_no_fp16() -> None:
    """Five of eight multiply-adds load a constant: 2x3 + 4x3 = 18 exact FLOPs are left, and are in the total."""
    kernel = make_kernel(thread_opcodes=PACKED, code_totals={"fp16_constant_threads": 5.0})
    result = analyze(kernel)
    assert (result.flop["fp16"], result.flop_source["fp16"], result.flop_total) == (18, "opcode", 118)
    assert "fp16_is_upper_bound" not in result.flags


def test_fp16_that_nothing_tells_from_constants_is_in_no_total() -> None:
    """Without counts by instruction 2x3 + 4x8 = 38 FLOPs are a bound, excluded from total and roof."""
    peaks = {"ffma_peak_threads_per_s": 5e8, "hfma_peak_threads_per_s": 5e8}
    result = analyze(make_kernel(peaks, thread_opcodes=PACKED))
    assert (result.flop["fp16"], result.flop_source["fp16"], result.flop_total) == (38, "upper_bound", 100)
    assert result.counted_flop == {"fp64": 0, "fp32": 100}
    assert result.flop_peak_per_s == 1e9


def test_additions_alone_are_exact_fp16() -> None:
    """Constants are loaded by multiply-adds: without any, packed fp16 is exact."""
    assert analyze(make_kernel(thread_opcodes={"HADD2": 3})).flop_total == 6


def test_fp16_of_cuda_cores_is_flagged() -> None:
    """Compilers load constants with HFMA2, so fp16 from a table is an upper bound."""
    assert "fp16_is_upper_bound" in flags(thread_opcodes={"HFMA2": 1}, warp_opcodes=NO_THREADS)
    assert "fp16_is_upper_bound" not in flags(thread_opcodes={"FFMA": 1}, warp_opcodes=NO_THREADS)


def test_warp_table_gives_tensor_work() -> None:
    """2,162,688 HMMA.16816 are 8,858,370,048 FLOP, as NVIDIA's operation counter has it to the digit."""
    assert ops(warp_opcodes={"HMMA.16816.F32.BF16": 2_162_688, "FFMA": 5, "HFMA2.MMA": 7}) == {
        "tensor_bf16": 8_858_370_048
    }


def test_tensor_work_is_kept_apart_by_type_accumulator_and_sparsity() -> None:
    """Every kind with its own roof has its own key; 10 HMMA.16816 are 40,960 operations."""
    table = {
        "HMMA.16816.F32": 10,
        "HMMA.16816.F16": 10,
        "HMMA.SP.16832.F32": 10,
        "HMMA.1688.F32.TF32": 10,
        "IMMA.16832.S8.S8": 10,
        "DMMA.8x8x4": 10,
    }
    assert ops(warp_opcodes=table) == {
        "tensor_fp16": 40_960,
        "tensor_fp16_acc16": 40_960,
        "tensor_fp16_sparse": 81_920,
        "tensor_tf32": 20_480,
        "tensor_int8": 81_920,
        "tensor_fp64": 5_120,
    }


def test_integer_operations_are_no_flop() -> None:
    """int8 tensor work is counted as operations and excluded from the total."""
    result = analyze(make_kernel(thread_opcodes={"FFMA": 5}, warp_opcodes={"IMMA.16832.S8.S8.SAT": 10}))
    assert result.flop["tensor_int8"] == 81_920
    assert result.pipes["tensor_int8"].unit == "op"
    assert result.flop_total == 10


@pytest.mark.parametrize(
    ("dtype", "is_float"), [("int8", False), ("int4", False), ("int1", False), ("bf16", True), ("fp8", True)]
)
def test_integer_types_are_told_by_name(dtype: str, *, is_float: bool) -> None:
    """int8, int4 and int1 are not FLOPs, sparse or dense."""
    suffixes = {"op_imma_": f"src_{dtype}", "op_imma_ sparse": f"src_{dtype}_sparsity_on"}
    for prefix, name in suffixes.items():
        kernel = make_kernel(thread_opcodes=NO_THREADS, tensor_ops={prefix.partition(" ")[0] + name: 64.0})
        (work,) = (work for work in count_flops(kernel).work if work.key.startswith("tensor"))
        assert work.is_float is is_float


def test_warp_table_goes_before_operation_counters() -> None:
    """Opcodes and operation counters cover the same work: the table is used and nothing is added."""
    assert ops(warp_opcodes={"HMMA.16816.F32.BF16": 2}, tensor_ops={"src_bf16_dst_fp32": 8192.0}) == {
        "tensor_bf16": 8192
    }


def test_thread_table_alone_leaves_tensor_work_to_the_counters() -> None:
    """Each side has its own source: the thread table for CUDA cores, operation counters for the tensor pipe."""
    kernel = make_kernel(thread_opcodes={"FFMA": 1}, tensor_ops={"src_bf16_dst_fp32": 8192.0})
    assert analyze(kernel).flop_source["fp32"] == "opcode"
    assert analyze(kernel).flop_source["tensor_bf16"] == "tensor_ops"
    assert analyze(kernel).flop_total == 8194


@for_all(
    "name, key",
    [
        ("src_fp16_bf16_tf32_dst_fp32", "tensor_fp16"),
        ("src_fp16_dst_fp16", "tensor_fp16_acc16"),
        ("src_fp16_dst_fp32", "tensor_fp16"),
        ("src_fp16", "tensor_fp16"),
        ("src_bf16_dst_fp32", "tensor_bf16"),
        ("src_tf32_dst_fp32", "tensor_tf32"),
        ("src_fp64", "tensor_fp64"),
        ("src_fp8", "tensor_fp8"),
        ("src_fp8_dst_fp16", "tensor_fp8_acc16"),
        ("src_fp4_dst_fp32", "tensor_fp4"),
        ("src_fp4_fp6_dst_fp32", "tensor_fp6"),
        ("src_fp4_fp6_fp8_dst_fp32", "tensor_fp8"),
        ("src_int8", "tensor_int8"),
        ("src_int4", "tensor_int4"),
        ("src_int1", "tensor_int1"),
        ("op_hmma_src_bf16_dst_fp32", "tensor_bf16"),
        ("op_hmma_src_bf16_dst_fp32_sparsity_on", "tensor_bf16_sparse"),
        ("op_hgmma_src_fp16", "tensor_fp16_wgmma"),
        ("op_igmma_src_int8", "tensor_int8_wgmma"),
        ("op_utchmma_src_bf16_dst_fp32", "tensor_bf16_tcgen05"),
        ("op_utcqmma_src_fp8_dst_fp16", "tensor_fp8_acc16_tcgen05"),
        ("op_utcomma_src_fp4_dst_fp32", "tensor_fp4_tcgen05"),
    ],
)
def test_operation_counters_name_their_pipe(name: str, key: str) -> None:
    """Each chip's counter names give one key, by type, accumulator, sparsity and instruction."""
    assert ops(tensor_ops={name: 512.0}) == {key: 512}


@pytest.mark.parametrize("split", [1000.0, 999.5])
def test_split_counters_go_before_the_base(split: float) -> None:
    """Base and split cover the same operations: a complete split is used alone."""
    counters = {"src_bf16_dst_fp32": 1000.0, "op_hgmma_src_bf16_dst_fp32": split}
    assert ops(tensor_ops=counters, **HOPPER) == {"tensor_bf16_wgmma": split}


def test_base_goes_before_an_incomplete_split() -> None:
    """If a part of the split is missing, the base is used."""
    counters = {"src_bf16_dst_fp32": 1000.0, "op_hmma_src_bf16_dst_fp32": 10.0}
    assert ops(tensor_ops=counters, **HOPPER) == {"tensor_bf16": 1000}


@pytest.mark.parametrize("split", [5000.0, 5.0])
def test_base_or_split_is_chosen_for_each_type(split: float) -> None:
    """A type in only one of the two families is not lost to the choice for another type."""
    counters = {"src_int8": 1000.0, "op_hmma_src_bf16_dst_fp32": split}
    assert ops(tensor_ops=counters, **HOPPER) == {"tensor_int8": 1000, "tensor_bf16": split}


@pytest.mark.parametrize("prefix", ["op_hmma_", "op_hgmma_", "op_utchmma_"])
def test_a_counter_and_its_dense_part_are_not_added(prefix: str) -> None:
    """Without suffix a split counter is dense + sparse: beside its parts it counts once, as its parts."""
    name = f"{prefix}src_bf16_dst_fp32"
    counters = {name: 1000.0, f"{name}_sparsity_off": 600.0, f"{name}_sparsity_on": 400.0}
    assert total_tensor_ops(counters) == 1000


@pytest.mark.parametrize("part", ["off", "on"])
@pytest.mark.parametrize("name", ["src_fp16_dst_fp32", "op_hmma_src_fp16_dst_fp32"])
def test_one_part_alone_does_not_stand_for_the_whole(name: str, part: str) -> None:
    """A counter without suffix beside only one of its two parts still gives all the work."""
    assert total_tensor_ops({name: 1000.0, f"{name}_sparsity_{part}": 400.0}) == 1000


def test_parts_of_a_base_counter_stand_for_it() -> None:
    """CC 8.x splits the base by sparsity: the parts alone give all the work."""
    counters = {"src_fp16_dst_fp32_sparsity_off": 600.0, "src_fp16_dst_fp32_sparsity_on": 400.0}
    assert ops(tensor_ops=counters, **A100) == {"tensor_fp16": 600, "tensor_fp16_sparse": 400}


def test_a_base_counter_is_not_added_to_its_parts() -> None:
    """A base counter beside its dense part counts once."""
    counters = {
        "src_fp16_dst_fp32": 1000.0,
        "src_fp16_dst_fp32_sparsity_off": 1000.0,
        "src_fp16_dst_fp32_sparsity_on": 0.0,
    }
    assert ops(tensor_ops=counters, **A100) == {"tensor_fp16": 1000}


@pytest.mark.parametrize("name", ["src_bf16_dst_fp32", "op_hmma_src_bf16_dst_fp32"])
def test_sampled_twins_of_a_counter_are_not_read(name: str) -> None:
    """Blackwell has a `_realtime` twin of every counter for sampling, which is not a second amount."""
    assert total_tensor_ops({name: 1000.0, f"{name}_realtime": 990.0}) == 1000


@for_all(
    "name, cc, expected",
    [
        ("src_bf16_dst_fp32", "8.0", 2e12),
        ("src_bf16_dst_fp32", "9.0", 1e12),
        ("src_bf16_dst_fp32", "10.0", 1e12),
        ("src_bf16_dst_fp32", "12.0", 1e12),
        ("src_int8", "9.0", 1e12),
        ("src_fp64", "9.0", 2e12),
        ("src_bf16_dst_fp32", None, 2e12),
    ],
)
def test_base_peak_is_sparse_from_hopper_on(name: str, cc: str | None, expected: float) -> None:
    """From CC 9.0 a base counter peaks at the sparse rate: half of it is the roof; fp64 has no sparsity."""
    kernel = make_kernel(
        thread_opcodes=NO_THREADS, tensor_ops={name: 512.0}, tensor_peaks_per_s={name: 2e12}, compute_capability=cc
    )
    (work,) = (work for key, work in work_by_key(kernel).items() if key.startswith("tensor"))
    assert (work.peak_ops_per_s, work.peak_source) == (expected, "report")


HOPPER_PEAKS = {
    "op_hmma_src_bf16_dst_fp32_sparsity_off": 2731e9,
    "op_hgmma_src_bf16_dst_fp32_sparsity_off": 4096e9,
    "src_bf16_dst_fp32": 8192e9,
}


@for_all(
    "opcodes, counters, key, expected",
    [
        ({"HMMA.16816.F32.BF16": 1}, {}, "tensor_bf16", 2731e9),
        ({"HGMMA.64x64x16.F32.BF16": 1}, {}, "tensor_bf16_wgmma", 4096e9),
        ({}, {"op_hmma_src_bf16_dst_fp32": 1.0}, "tensor_bf16", 2731e9),
        ({}, {"op_hgmma_src_bf16_dst_fp32": 1.0}, "tensor_bf16_wgmma", 4096e9),
        ({}, {"op_hgmma_src_bf16_dst_fp32_sparsity_on": 1.0}, "tensor_bf16_sparse_wgmma", 8192e9),
        ({}, {"src_bf16_dst_fp32": 1.0}, "tensor_bf16", 4096e9),
    ],
)
def test_each_instruction_has_its_own_roof(
    opcodes: dict[str, int], counters: dict[str, float], key: str, expected: float
) -> None:
    """On CC 9.0 mma reaches 2,731 and wgmma 4,096 FLOPs per cycle, sparse twice that; a base count half its peak."""
    kernel = make_kernel(warp_opcodes=opcodes, tensor_ops=counters, tensor_peaks_per_s=HOPPER_PEAKS, **HOPPER)
    assert work_by_key(kernel)[key].peak_ops_per_s == expected


def test_half_accumulation_takes_its_own_roof() -> None:
    """fp16 accumulators run twice as fast on some chips, so their own peak takes precedence."""
    peaks = {"src_fp16_dst_fp32_sparsity_off": 1e12, "src_fp16_dst_fp16_sparsity_off": 2e12}
    kernel = make_kernel(warp_opcodes={"HMMA.16816.F16": 1, "HMMA.16816.F32": 1}, tensor_peaks_per_s=peaks)
    assert {key: work.peak_ops_per_s for key, work in work_by_key(kernel).items()} == {
        "tensor_fp16_acc16": 2e12,
        "tensor_fp16": 1e12,
    }


def test_wgmma_prefers_the_counters() -> None:
    """How often a warpgroup opcode is counted is an estimate, so NVIDIA's operation counters take precedence."""
    fields = {"warp_opcodes": {"HGMMA.64x64x16.F32.BF16": 4}, "tensor_ops": {"op_hgmma_src_bf16_dst_fp32": 131_072.0}}
    assert ops(**fields) == {"tensor_bf16_wgmma": 131_072}
    assert "wgmma_count_estimated" not in flags(**fields)


@pytest.mark.parametrize("tensor_ops", [{}, {"op_hgmma_src_bf16_dst_fp32": 0.0}])
def test_wgmma_without_counters_is_estimated(tensor_ops: dict[str, float]) -> None:
    """Four counts of HGMMA.64x64x16 are one product of 2x64x64x16 = 131,072 FLOP, marked as estimated."""
    kernel = make_kernel(warp_opcodes={"HGMMA.64x64x16.F32.BF16": 4}, tensor_ops=tensor_ops, thread_opcodes=NO_THREADS)
    work = work_by_key(kernel)["tensor_bf16_wgmma"]
    assert (work.ops, work.source) == (131_072, "estimated")
    assert "wgmma_count_estimated" in count_flops(kernel).flags


def test_tcgen05_takes_the_counters() -> None:
    """A tcgen05 opcode has no shape, so its work comes from the operation counters."""
    assert ops(warp_opcodes={"UTCHMMA.2CTA": 9}, tensor_ops={"op_utchmma_src_bf16_dst_fp32": 4096.0}) == {
        "tensor_bf16_tcgen05": 4096
    }


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tensor_ops": {"op_hmma_src_bf16_dst_fp32": 0.0}, "counters": {"tensor_busy_share": 0.4}},
        {"tensor_ops": {"op_hmma_src_bf16_dst_fp32": 0.0}},
    ],
)
def test_tcgen05_without_its_counters_is_unknown(fields: dict[str, Any]) -> None:
    """tcgen05 opcodes ran, so a count of zero means the wrong counters: no total, never zero."""
    result = analyze(
        make_kernel(
            fields.get("counters"),
            thread_opcodes={"FFMA": 1},
            warp_opcodes={"UTCQMMA": 9},
            tensor_ops=fields.get("tensor_ops", {}),
        )
    )
    assert result.flop_total is None
    assert "tcgen05_without_operation_counters" in result.flags


@pytest.mark.parametrize("opcode", ["HMMA.999.F32", "QMMA.F32.E4M3.E4M3"])
def test_a_matrix_opcode_of_unknown_shape_leaves_no_total(opcode: str) -> None:
    """A new chip's matrix instruction that is not understood is unknown work, not zero."""
    result = analyze(make_kernel(thread_opcodes={"FFMA": 1}, warp_opcodes={opcode: 9}))
    assert result.flop_total is None


@pytest.mark.parametrize("table", ["thread_opcodes", "warp_opcodes"])
@pytest.mark.parametrize("counters", [{}, {"tensor_ops": {"src_bf16_dst_fp32": 0.0}}])
def test_a_table_without_matrix_instructions_settles_it(table: str, counters: dict[str, Any]) -> None:
    """If an opcode table has no matrix instructions, a busy tensor pipe does no tensor work, and no flag is raised."""
    found = count_flops(make_kernel({**SASS, "tensor_busy_share": 0.3}, **{table: {"FFMA": 1}}, **counters))
    assert (found.complete, found.flags) == (True, frozenset())
    assert not any(work.key.startswith("tensor") for work in found.work)


def test_a_thread_table_with_matrix_instructions_leaves_the_rest_to_the_counters() -> None:
    """It shows tensor work without an amount, so a busy pipe is unknown work."""
    found = count_flops(make_kernel({"tensor_busy_share": 0.3}, thread_opcodes={"HMMA.16816.F32": 32}))
    assert not found.complete


@pytest.mark.parametrize(("busy", "known"), [(0.004, True), (0.006, False)])
def test_counters_that_read_zero_on_a_busy_pipe_are_wrong(busy: float, *, known: bool) -> None:
    """Above 0.5 % pipe activity, counts of zero mean that the chip does not count under this name."""
    counters = {"tensor_busy_share": busy}
    found = count_flops(make_kernel({**counters, **SASS}, tensor_ops={"src_bf16_dst_fp32": 0.0}))
    assert found.complete is known
    assert ("tensor_counter_reads_zero" in found.flags) is not known


def test_pipe_activity_estimates_tensor_work() -> None:
    """Half busy for 1 ms at 100 TFLOP/s is 5e10 FLOP, marked as an estimate."""
    kernel = make_kernel({**SASS, "tensor_float_busy_share": 0.5}, tensor_peaks_per_s={"src_fp16_dst_fp32": 1e14})
    work = work_by_key(kernel)["tensor_fp16"]
    assert (work.ops, work.source) == (pytest.approx(5e10), "estimated")
    assert "tensor_flop_estimated" in count_flops(kernel).flags
    assert count_flops(kernel).complete


def test_noise_on_the_tensor_pipe_is_no_work() -> None:
    """`HFMA2.MMA` also issues on the tensor pipe: without a table, up to 5 % activity is not matrix work."""
    found = count_flops(make_kernel({**SASS, "tensor_float_busy_share": 0.05}))
    assert found.complete
    assert not any(work.key.startswith("tensor") for work in found.work)


@pytest.mark.parametrize(
    "counters",
    [
        {"tensor_busy_share": 0.2},
        {"tensor_float_busy_share": 0.2},
        {"tensor_float_busy_share": 0.2, "duration_ns": None},
    ],
)
def test_a_busy_tensor_pipe_without_peak_is_unknown(counters: dict[str, float]) -> None:
    """Activity that cannot be converted to work leaves the total unknown."""
    found = count_flops(make_kernel({**SASS, **counters}))
    assert not found.complete
    assert "tensor_flop_unknown" in found.flags


def test_tensor_work_nobody_measured_is_flagged() -> None:
    """On a chip with tensor cores, without a measurement of them, the total may lack most of the work."""
    found = count_flops(make_kernel(SASS, **A100))
    assert "tensor_work_not_measured" in found.flags


@pytest.mark.parametrize(
    "chip",
    [
        {"gpu": "NVIDIA GeForce GTX 1660 Ti", "compute_capability": "7.5"},
        pytest.param(
            {"gpu": "Quadro P400", "compute_capability": "6.1"},
        ),
    ],
)
def test_a_chip_without_tensor_cores_needs_no_tensor_counters(chip: dict[str, str]) -> None:
    """A GTX 1660 Ti and all of Pascal have no tensor pipe: their CUDA-core counters are complete."""
    found = count_flops(make_kernel(SASS, **chip))
    assert found.complete
    assert found.flags == frozenset()


def test_mixed_precision_roof_is_total_over_time_at_peak() -> None:
    """1e9 fp32 FLOPs at 1e12 take 1 ms, 9e9 bf16 at 9e12 another: 1e10 FLOPs in 2 ms give a roof of 5e12 FLOP/s."""
    kernel = make_kernel(
        {"ffma_peak_threads_per_s": 0.5e12},
        thread_opcodes={"FADD": 1_000_000_000},
        tensor_ops={"src_bf16_dst_fp32": 9e9},
        tensor_peaks_per_s={"src_bf16_dst_fp32": 9e12},
    )
    result = analyze(kernel)
    assert result.flop_total == pytest.approx(1e10)
    assert result.flop_peak_per_s == pytest.approx(5e12)
    assert result.flop_per_s == pytest.approx(1e13)


def test_mixed_precision_roof_needs_every_peak() -> None:
    """A part with an unknown peak leaves no roof for the mix, which excludes integer work."""
    kernel = make_kernel({"ffma_peak_threads_per_s": 0.5e12}, thread_opcodes={"FADD": 10, "DADD": 1})
    assert analyze(kernel).flop_peak_per_s is None
    kernel = make_kernel(
        {"ffma_peak_threads_per_s": 0.5e12}, thread_opcodes={"FADD": 10}, warp_opcodes={"IMMA.16832.S8.S8": 5}
    )
    assert analyze(kernel).flop_peak_per_s == pytest.approx(1e12)


def test_kinds_of_one_type_add_up_by_type() -> None:
    """fp32 and fp16 accumulation are two pipes of one dtype: 4,096 + 4,096 FLOPs."""
    result = analyze(make_kernel(thread_opcodes=NO_THREADS, warp_opcodes={"HMMA.16816.F32": 1, "HMMA.16816.F16": 1}))
    assert result.flop["tensor_fp16"] == 8192
    assert {"tensor_fp16", "tensor_fp16_acc16"} <= result.pipes.keys()


@pytest.mark.parametrize(
    ("dtype", "opcode", "part"), [("bf16", "HMMA.16816.F32.BF16", 2 / 3), ("fp64", "DMMA.8x8x4", 1)]
)
def test_warp_wide_mma_on_hopper_has_its_own_roof(dtype: str, opcode: str, part: float) -> None:
    """On CC 9.0 mma reaches two thirds of wgmma's rate; fp64 has no wgmma, so its peak is mma's."""
    name = "src_fp64" if dtype == "fp64" else "src_bf16_dst_fp32_sparsity_off"
    kernel = make_kernel(warp_opcodes={opcode: 1}, tensor_peaks_per_s={name: 3e12}, **HOPPER)
    assert work_by_key(kernel)[f"tensor_{dtype}"].peak_ops_per_s == pytest.approx(3e12 * part)


def test_a_counter_is_not_added_to_its_split_by_accumulator() -> None:
    """GH100 stores `op_hmma_src_fp16` beside its fp16 and fp32 results: they are the same operations."""
    stem = "op_hmma_src_fp16"
    assert total_tensor_ops({stem: 1000.0, f"{stem}_dst_fp16": 400.0, f"{stem}_dst_fp32": 600.0}) == 1000


def test_counters_of_some_types_do_not_stand_for_others() -> None:
    """HGMMA bf16 and QGMMA fp8 ran, but only bf16 was counted: the opcodes are the better source."""
    opcodes = {"HGMMA.64x64x16.F32.BF16": 4, "QGMMA.64x64x32.F32.E4M3.E4M3": 4}
    found = ops(warp_opcodes=opcodes, tensor_ops={"src_bf16_dst_fp32": 5.0}, **HOPPER)
    assert found.keys() >= {"tensor_bf16_wgmma", "tensor_fp8_wgmma"}


def test_a_busy_pipe_that_the_counters_do_not_explain_is_unknown_work() -> None:
    """The tensor pipe is 70 % busy, of which the counters explain next to nothing: there is no total."""
    kernel = make_kernel(
        {**SASS, "tensor_busy_share": 0.7}, tensor_ops={"src_int8": 5.0}, tensor_peaks_per_s={"src_int8": 1e15}, **A100
    )
    assert not count_flops(kernel).complete


def test_a_tensor_pipe_counted_against_fp16_sums_tops_at_half() -> None:
    """With fp32 sums a GeForce of CC 8.6 fills half of its counter; with fp16 sums, or on an A10, all of it."""
    sums = {"HMMA.16816.F32.BF16": 100}
    geforce = {"gpu": "NVIDIA GeForce RTX 3090", "compute_capability": "8.6"}
    assert tensor_pipe_top(make_kernel(warp_opcodes=sums, **geforce)) == pytest.approx(0.5, rel=0.01)
    assert tensor_pipe_top(make_kernel(warp_opcodes={**sums, "HMMA.16816.F16": 1}, **geforce)) == 1
    assert tensor_pipe_top(make_kernel(warp_opcodes=sums, gpu="NVIDIA A10", compute_capability="8.6")) == 1
    assert tensor_pipe_top(make_kernel(warp_opcodes=sums, gpu="NVIDIA H100 PCIe", compute_capability="9.0")) == 1
