from __future__ import annotations

import pytest
from support.kernels import make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.roofline.roofs import pipe_roofs
from rooflens.model.roofline.standing import standings
from rooflens.model.roofline.work import main_work

PEAKS = {"ffma_peak_threads_per_s": 1e13, "dram_bytes": 1e6, "dram_bus_peak_bytes_per_s": 2e12}
INT8 = {"IMMA.16832.S8.S8.SAT": 100_000}
"""8,192 operations each: 819.2 million, of 4e15 a second: 204.8 ns at peak."""


def product(fp32: int, **fields: object) -> object:
    """Analyze an int8 product with some fp32 multiply-adds: 1 ms, 1 MB at DRAM."""
    tables = {"thread_opcodes": {"FFMA": fp32}, "warp_opcodes": INT8}
    return analyze(make_kernel(PEAKS, tensor_peaks_per_s={"src_int8": 4e15}, **tables, **fields))


def test_integer_work_is_placed_by_its_operations() -> None:
    """819.2 Mop in 1 ms over 1 MB stand at 819.2 op/B and 819.2 Gop/s, under 1.64 Pop/s of DRAM."""
    (place,) = standings(product(1_000_000))
    assert (place.unit, place.level) == ("op", "dram")
    assert (place.intensity, place.per_s) == pytest.approx((819.2, 819.2e9))
    assert place.roof_per_s == pytest.approx(819.2 * 2e12)


def test_a_minority_of_the_work_makes_no_intensity() -> None:
    """The epilogue's 2 MFLOP, 100 of 305 ns at peak, have no intensity but are in the total."""
    analysis = product(1_000_000)
    assert analysis.flop_total == 2e6
    assert analysis.levels["dram"].intensity_flop_per_byte is None
    assert [roof.keys for roof in pipe_roofs([analysis])] == [("tensor_int8",)]


def test_time_at_peak_decides_what_the_main_work_is() -> None:
    """6 MFLOP take 300 ns at their peak, more than the integer work, so FLOPs are placed although they are few."""
    analysis = product(3_000_000)
    assert main_work(analysis).unit == "FLOP"
    assert analysis.levels["dram"].intensity_flop_per_byte == 6.0
    assert [place.unit for place in standings(analysis)] == ["FLOP"]


def test_a_kernel_of_integer_work_alone_is_not_without_work() -> None:
    """It has an intensity, so the flag for missing intensity is not raised."""
    assert "no_flop" not in product(0).flags
