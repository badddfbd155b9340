"""The CUDA workloads' formulas against numbers worked out by hand."""

from __future__ import annotations

import pytest

from rooflens.model.cases import Case, Workload, evaluate
from rooflens.workloads.registry import load_workloads

CASES = [(workload, case) for workload in load_workloads() if workload.kind == "cuda" for case in workload.cases]

BY_HAND = {
    # 2 x 2**28; 12 x 2**28
    "saxpy-n28": (536_870_912, 3_221_225_472),
    "saxpy-n16": (131_072, 786_432),
    # 2 x 2**26 x iters; 8 x 2**26
    "fma-iters_1": (134_217_728, 536_870_912),
    "fma-iters_8": (1_073_741_824, 536_870_912),
    "fma-iters_64": (8_589_934_592, 536_870_912),
    "fma-iters_512": (68_719_476_736, 536_870_912),
    "fma-iters_2048": (274_877_906_944, 536_870_912),
    # 2 x 2**26 x (1 + 1023); (12 + 10 x 8) x 2**26
    "roofline-n26": (137_438_953_472, 6_174_015_488),
    # 2 x 4096**3; three matrices of 4096**2 x 4 bytes
    **{
        f"gemm_ladder-{rung}": (137_438_953_472, 201_326_592)
        for rung in (
            "01_naive",
            "02_coalesced",
            "03_shared_tile",
            "04_blocktile_1d",
            "05_blocktile_2d",
            "06_vectorized",
            "07_warptile",
        )
    },
    # two matrices of 4096**2 x 2 bytes, one of 4
    "gemm_ladder-08_tensor_core": (137_438_953_472, 134_217_728),
    "gemm_ladder-09_autotuned": (137_438_953_472, 134_217_728),
    "gemm_ladder-10_multistage": (137_438_953_472, 134_217_728),
    "gemm_ladder-11_wgmma": (137_438_953_472, 134_217_728),
    # 4 x 16 x 4096**2 x 64; four matrices of 2**22 x 4 bytes, and four trips of 2**28 x 4
    "attention_ladder-01_naive": (68_719_476_736, 67_108_864 + 4_294_967_296),
    "attention_ladder-02_online_softmax": (68_719_476_736, 67_108_864),
    # three matrices of 2**22 x 2 bytes, one of 4
    "attention_ladder-03_tensor_core": (68_719_476_736, 41_943_040),
    # 8 x 8192**2
    "transpose-unpadded": (None, 536_870_912),
    "transpose-padded": (None, 536_870_912),
    "transpose-classic": (None, 536_870_912),
    # 40 x 2**20, 40 x 2**22
    "gather-few_threads": (None, 41_943_040),
    "gather-many_threads": (None, 167_772_160),
    # 32 x 2**14 steps; 32 x 2**13 lines
    "pointer_chase-hbm": (None, 524_288),
    "pointer_chase-l2": (None, 262_144),
    # 2**19 threads x (4 x 256 + 3); 4 x 2**19 twice
    "l2_stream-n19": (538_443_776, 4_194_304),
    # 1000 launches of 2 x 1024 FLOP and 12 x 1024 bytes
    "tiny_launches-one_by_one": (2_048_000, 12_288_000),
    "tiny_launches-graph": (2_048_000, 12_288_000),
    # 2 x 2**27 x iters; 4 x 2**27
    "fp16_fma-iters_512": (137_438_953_472, 536_870_912),
    "fp16_fma-iters_8": (2_147_483_648, 536_870_912),
    # 65536 x 2**14 x 2048; 6656 x 2**14
    "int8_mma-tiles14": (2_199_023_255_552, 109_051_904),
    # 2 x 128**3 x 2**12 x 2**10; 2 x 16 KiB + 64 KiB for each of 2**12 tiles
    "int8_wgmma-tiles12": (17_592_186_044_416, 402_653_184),
    # 25 x 2**27; two trips of 2**27 points of 8 bytes, and 12 layers of 2**18 points
    "stencil-n512": (3_355_443_200, 2_147_483_648 + 25_165_824),
    # 2**28 bytes and 256 counters of 4
    "histogram-global": (None, 268_436_480),
    "histogram-shared": (None, 268_436_480),
    # 2 x 72 x 2**20 x 512; 2 x 72 x 4 x 2**20
    "spill-spilled": (77_309_411_328, 603_979_776),
    "spill-in_registers": (77_309_411_328, 603_979_776),
}


@pytest.mark.parametrize(("workload", "case"), CASES, ids=lambda part: part.name)
def test_formulas_equal_the_numbers_worked_out_by_hand(workload: Workload, case: Case) -> None:
    """Every case of every CUDA workload is in the table, with its FLOP and bytes."""
    assert (case.flop_count(), case.byte_count()) == BY_HAND[f"{workload.name}-{case.name}"]


@pytest.mark.parametrize(("workload", "case"), CASES, ids=lambda part: part.name)
def test_toys_have_positive_amounts(workload: Workload, case: Case) -> None:
    """With toy sizes formulas are positive, and smaller than with full sizes."""
    full, toy = case.byte_count(), case.byte_count(case.toy)
    assert full is not None
    assert toy is not None
    assert 0 < toy < full
    if workload.name in {"transpose", "gather", "histogram", "pointer_chase"}:
        assert case.flop is None
    else:
        assert (case.flop_count(case.toy) or 0) > 0


@pytest.mark.parametrize(("workload", "case"), [pair for pair in CASES if pair[1].parts], ids=lambda part: part.name)
def test_parts_add_up_to_their_case(workload: Workload, case: Case) -> None:  # noqa: ARG001 - names the case
    """The work of a case's kernels adds up to the case's work."""
    assert sum(evaluate(part.flop, case.parameters) for part in case.parts) == case.flop_count()
    assert sum(evaluate(part.bytes, case.parameters) for part in case.parts) == case.byte_count()


def test_table_has_no_case_too_many() -> None:
    """Every row worked out by hand is a case."""
    assert set(BY_HAND) == {f"{workload.name}-{case.name}" for workload, case in CASES}
