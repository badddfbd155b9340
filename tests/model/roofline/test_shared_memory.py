from __future__ import annotations

from typing import Any

import pytest
from support.kernels import make_case, make_kernel, place
from support.loops import for_all

from rooflens.model.analyze import analyze
from rooflens.model.roofline.levels import place_levels
from rooflens.model.verdict.bottleneck import memory_bottleneck

TOTAL = {"l1_shared_data_bytes": 1280.0, "l1_data_peak_bytes_per_s": 2.56e6}
PARTS = {**TOTAL, "smem_op_bytes": 896.0, "smem_async_bytes": 128.0}
ACCESSES = {**PARTS, "smem_access_wavefronts": 9.0}
NONE = {"smem_static_per_block_bytes": 0.0, "smem_dynamic_per_block_bytes": 0.0}


@for_all(
    "counters, overrides, amount_bytes, accuracy",
    [
        (ACCESSES, {}, 1152, "exact"),
        (ACCESSES, {"compute_capability": "9.0", "warp_opcodes": {"HGMMA.64x64x16.F32": 4}}, 1152, "lower"),
        ({**ACCESSES, "smem_wgmma_bytes": 256.0}, {"warp_opcodes": {"HGMMA.64x64x16.F32": 4}}, 1408, "exact"),
        (ACCESSES, {"warp_opcodes": {"UTMALDG.2D": 4}}, 1152, "lower"),
        (PARTS, {"code_totals": {"shared_wavefronts": 8.0}}, 1024, "exact"),
        (PARTS, {}, 1024, "exact"),
        ({**TOTAL, "smem_op_bytes": 896.0}, {"compute_capability": "8.6"}, 896, "lower"),
        ({**TOTAL, "smem_op_bytes": 896.0}, {"compute_capability": "7.5"}, 896, "exact"),
        (
            {**TOTAL, "smem_op_bytes": 896.0},
            {"compute_capability": "8.6", "warp_opcodes": {"LDS": 7}},
            896,
            "exact",
        ),
        ({**TOTAL, "smem_other_bytes": 384.0}, {}, 896, "lower"),
        (TOTAL, {}, 1280, "upper"),
    ],
)
def test_the_best_counters_give_the_bytes(
    counters: dict[str, float], overrides: dict[str, Any], amount_bytes: float, accuracy: str
) -> None:
    """Accesses by address take precedence over counted loads and stores, then all wavefronts; gaps are flagged."""
    found = place_levels(make_kernel(counters, **overrides))["smem"]
    assert (found.amount_bytes, found.accuracy) == (amount_bytes, accuracy)


@pytest.mark.parametrize(("counters", "flag"), [(TOTAL, "upper"), ({**TOTAL, "smem_other_bytes": 384.0}, "lower")])
def test_a_bound_is_flagged(counters: dict[str, float], flag: str) -> None:
    """Bytes that are only a bound carry the flag of that side."""
    flags = [flag for flag in analyze(make_kernel(counters)).flags if flag.startswith("smem_bytes")]
    assert flags == [f"smem_bytes_{flag}_bound"]


def test_exact_bytes_carry_no_flag() -> None:
    """Counted accesses need no warning."""
    assert not any(flag.startswith("l1_shared_data_bytes") for flag in analyze(make_kernel(ACCESSES)).flags)


def test_bytes_and_share_are_two_things() -> None:
    """Nine wavefronts are delivered, ten of twenty possible in 1 ms fill the stage; intensity is of the nine."""
    level = place_levels(make_kernel(ACCESSES), 2304.0)["smem"]
    assert (level.amount_bytes, level.share, level.intensity_flop_per_byte) == (1152, 0.5, 2)


def test_without_shared_memory_there_is_no_such_level() -> None:
    """Shuffles fill L1's data stage in a kernel without shared memory, and are not its traffic."""
    levels = place_levels(make_kernel({**TOTAL, **NONE}))
    assert (levels["smem"].amount_bytes, levels["smem"].share, levels["smem"].stages) == (None, None, {})
    assert levels["smem"].peak_bytes_per_s == 2.56e6
    assert levels["l1"].stages == {"shared_data": 0.5}


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_either_kind_of_shared_memory_makes_the_level(kind: str) -> None:
    """A kernel uses shared memory if it declares some, or its launch adds some."""
    level = place_levels(make_kernel({**TOTAL, **NONE, f"smem_{kind}_per_block_bytes": 16.0}))["smem"]
    assert level.amount_bytes == 1280


def test_shuffles_alone_do_not_name_shared_memory() -> None:
    """A data stage full of shuffles is a limiter of L1."""
    full = {**TOTAL, **NONE, "l1_shared_data_bytes": 2304.0, "l1_data_bytes": 2432.0}
    found = memory_bottleneck(place(make_kernel(full)))
    assert found is not None
    assert (found.resource, found.share) == ("l1", pytest.approx(0.95))


def test_shared_wavefronts_do_not_hide_the_rest_of_l1() -> None:
    """NVIDIA's per cent is used as well if the report shows nothing of L1 but shared memory."""
    case = place(make_kernel({**TOTAL, "sol_memory": 0.9}))
    assert memory_bottleneck(case) != memory_bottleneck(make_case({"l1": 0.5, "smem": 0.5}, {"sol_memory": 0.9}))
