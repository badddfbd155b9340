from __future__ import annotations

from typing import Any

import pytest
from support.kernels import make_kernel

from rooflens.model.calibration import RATE_UNITS, MeasuredRates, Rate
from rooflens.model.records import LEVELS, Kernel
from rooflens.model.roofline.attainable import at_clock, attainable_roofs, find_attainable
from rooflens.model.roofline.datasheets import PEAK_KEYS

CLOCK_HZ = 1.5e9


def make_rate(name: str, median: float, sm_clock_hz: float | None = CLOCK_HZ) -> Rate:
    """Make a rate with a spread of 1 % to either side."""
    return Rate(median, median * 0.99, median * 1.01, RATE_UNITS[name], 20, sm_clock_hz)


def make_attainable(medians: dict[str, float] | None = None, **overrides: Any) -> MeasuredRates:
    """Make a calibration of an A100 at 1.5 GHz."""
    medians = medians or {"dram_read": 1.4e12, "dram_copy": 1.3e12, "l2": 4e12, "fp32": 18e12}
    known = {name: make_rate(name, median) for name, median in medians.items()}
    identity = {"gpu": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0", "driver": "580.65.06"}
    return MeasuredRates(
        **{**identity, "sm_clock_hz": CLOCK_HZ, "measured_unix_s": 1_800_000_000, "rates": known} | overrides
    )


def test_rates_are_named_as_levels_and_pipes_are() -> None:
    """Apart from DRAM, and from a pipe's instruction and accumulator, a rate is named after a level or pipe."""
    names = {name.removesuffix("_wgmma").removesuffix("_acc16") for name in RATE_UNITS} - {"dram_read", "dram_copy"}
    assert names <= {*LEVELS, *PEAK_KEYS}


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB", " nvidia a100-sxm4-40gb"])
def test_a_gpu_is_found_however_its_driver_spells_it(name: str) -> None:
    """Case and the manufacturer's name are ignored."""
    assert find_attainable(name, CLOCK_HZ, [make_attainable()]) is not None


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-80GB", "A100", None])
def test_another_gpu_has_no_calibration(name: str | None) -> None:
    """A similar name is another GPU, and so is an empty one."""
    assert find_attainable(name, CLOCK_HZ, [make_attainable()]) is None


def test_the_newest_calibration_counts() -> None:
    """Of two calibrations at the kernel's clock, the later one is used."""
    old, new = make_attainable(driver="old"), make_attainable(driver="new", measured_unix_s=1_900_000_000)
    for calibrations in ([old, new], [new, old]):
        found = find_attainable("A100-SXM4-40GB", CLOCK_HZ, calibrations)
        assert found is not None
        assert found.driver == "new"


def test_the_calibration_at_the_kernels_clock_comes_first() -> None:
    """A calibration at the right clock takes precedence over a newer one that must be scaled."""
    near = make_attainable(driver="near")
    far = make_attainable(driver="far", sm_clock_hz=1.2e9, measured_unix_s=1_900_000_000)
    found = find_attainable("A100-SXM4-40GB", 1.51e9, [far, near])
    assert found is not None
    assert found.driver == "near"


def test_rates_of_the_sm_clock_are_scaled_to_it_and_marked() -> None:
    """At half the clock pipes and caches run at half the rate and DRAM at the same; scaled rates name their clock."""
    found = find_attainable("A100-SXM4-40GB", CLOCK_HZ / 2, [make_attainable()])
    assert found is not None
    assert found.rates["fp32"].median == pytest.approx(9e12)
    assert found.rates["fp32"].min == pytest.approx(9e12 * 0.99)
    assert found.rates["fp32"].scaled_from_hz == CLOCK_HZ
    assert found.rates["l2"].median == pytest.approx(2e12)
    assert found.rates["dram_read"] == make_rate("dram_read", 1.4e12)


def test_a_rate_is_scaled_from_the_clock_it_was_measured_at() -> None:
    """Tensor kernels run into the power limit, so their own clock is used, not the whole run's."""
    slowed = {"tensor_bf16": make_rate("tensor_bf16", 240e12, sm_clock_hz=1.2e9)}
    found = at_clock(make_attainable(rates=slowed), CLOCK_HZ)
    assert found.rates["tensor_bf16"].median == pytest.approx(300e12)
    assert found.rates["tensor_bf16"].scaled_from_hz == 1.2e9


def test_a_rate_without_a_clock_has_that_of_the_run() -> None:
    """If a rate's own clock is unknown, the run's is used."""
    rates = {"fp32": make_rate("fp32", 18e12, sm_clock_hz=None)}
    assert at_clock(make_attainable(rates=rates), CLOCK_HZ / 3).rates["fp32"].median == pytest.approx(6e12)


@pytest.mark.parametrize("clock_hz", [CLOCK_HZ * 1.015, CLOCK_HZ * 0.985])
def test_clocks_within_the_tolerance_are_one_clock(clock_hz: float) -> None:
    """Within 2 % rates stay as measured."""
    assert at_clock(make_attainable(), clock_hz).rates == make_attainable().rates


def test_without_a_clock_only_dram_is_known() -> None:
    """A kernel without a clock has no roofs that depend on the clock."""
    found = find_attainable("A100-SXM4-40GB", None, [make_attainable()])
    assert found is not None
    assert set(found.rates) == {"dram_read", "dram_copy"}


@pytest.mark.parametrize(
    ("written", "roof"),
    [(None, 1.4e12), (0.0, 1.4e12), (5e8, 1.3e12), (1e9, 1.3e12), (2.5e8, 2 / (1 / 1.4e12 + 1 / 1.3e12))],
    ids=["unknown", "reads", "copies", "writes", "between"],
)
def test_the_roof_of_dram_is_that_of_the_kernels_mix(written: float | None, roof: float) -> None:
    """Between pure reading and copying, the times of the two parts are added."""
    kernel = make_kernel({"dram_bytes": 1e9, "dram_write_bytes": written})
    assert attainable_roofs(kernel, make_attainable())["dram"].median == pytest.approx(roof)


@pytest.mark.parametrize("name", ["dram_read", "dram_copy"])
def test_one_rate_of_dram_is_enough(name: str) -> None:
    """If only one rate was measured, it is the roof."""
    assert attainable_roofs(make_kernel(), make_attainable({name: 1e12}))["dram"].median == 1e12


def test_what_was_not_measured_has_no_roof() -> None:
    """A missing rate is absent, never 0."""
    assert set(attainable_roofs(make_kernel(), make_attainable({"l2": 4e12, "fp64": 9e12}))) == {"l2", "fp64"}


def _hopper() -> MeasuredRates:
    rates = {"tensor_bf16": 600e12, "tensor_bf16_wgmma": 800e12, "tensor_fp64": 60e12, "tensor_fp8_wgmma": 1500e12}
    return make_attainable(rates, compute_capability="9.0")


def _with_opcodes(*opcodes: str) -> Kernel:
    return make_kernel(warp_opcodes=dict.fromkeys(opcodes, 1000))


def test_mma_work_is_held_to_the_rate_of_mma() -> None:
    """If opcodes show mma.sync and nothing faster, its rate is used, on Hopper too."""
    roofs = attainable_roofs(_with_opcodes("HMMA.16816.F32.BF16", "LDG.E"), _hopper())
    assert roofs["tensor_bf16"].median == 600e12


@pytest.mark.parametrize("kernel", [make_kernel(), _with_opcodes("HGMMA.64x128x16.F32.BF16", "HMMA.16816.F32.BF16")])
def test_work_that_may_be_wgmma_is_never_held_to_mma(kernel: Kernel) -> None:
    """If the instruction is unknown or wgmma, the faster rate is the roof, as the lower one might be exceeded."""
    roofs = {name: rate.median for name, rate in attainable_roofs(kernel, _hopper()).items()}
    assert roofs["tensor_bf16"] == roofs["tensor_bf16_wgmma"] == 800e12
    assert roofs["tensor_fp8"] == 1500e12
    assert roofs["tensor_fp64"] == 60e12


@pytest.mark.parametrize("opcodes", [(), ("UTCHMMA",)])
def test_tcgen05_has_no_roof_yet(opcodes: tuple[str, ...]) -> None:
    """On 10.x only mma.sync is measured: other tensor work has only its peak."""
    blackwell = make_attainable({"tensor_bf16": 500e12, "fp32": 60e12}, compute_capability="10.0")
    assert set(attainable_roofs(_with_opcodes(*opcodes), blackwell)) == {"fp32"}


@pytest.mark.parametrize("capability", ["7.5", "8.0", "8.9", "12.0"])
def test_mma_is_all_there_is_elsewhere(capability: str) -> None:
    """On other architectures the chip's rate is that of mma.sync."""
    measured = make_attainable({"tensor_fp16": 100e12}, compute_capability=capability)
    assert attainable_roofs(make_kernel(), measured)["tensor_fp16"].median == 100e12
