from __future__ import annotations

import pytest
from support.kernels import make_kernel
from support.loops import for_all

from rooflens.model.records import LEVELS, Level
from rooflens.model.roofline.levels import place_levels

MS = 1e6
"""One millisecond in nanoseconds: 1e6 bytes in it are 1e9 bytes a second."""


def test_every_level_is_there_and_empty_without_counters() -> None:
    """What was not measured is None, never zero, and no level is missing."""
    assert place_levels(make_kernel()) == dict.fromkeys(LEVELS, Level())


def test_dram_rate_and_share() -> None:
    """800 MB in 1 ms are 800 GB/s: a half of 1.6 TB/s."""
    kernel = make_kernel(
        {"duration_ns": MS, "dram_bytes": 8e8, "dram_bus_peak_bytes_per_s": 1.6e12},
        counter_sources={"dram_bytes": "dram__bytes.sum"},
    )
    level = place_levels(kernel)["dram"]
    assert (level.amount_bytes, level.source) == (8e8, "dram__bytes.sum")
    assert (level.bytes_per_s, level.peak_bytes_per_s, level.share) == pytest.approx((8e11, 1.6e12, 0.5))


@pytest.mark.parametrize("counters", [{}, {"dram_bytes": 8e8}, {"dram_bytes": 8e8, "dram_bus_peak_bytes_per_s": 0.0}])
def test_a_stored_share_stands_in(counters: dict[str, float]) -> None:
    """Without bytes or peak, the stored per cent gives the share."""
    assert place_levels(make_kernel({**counters, "dram_bus_share": 0.7}))["dram"].share == 0.7


def test_without_duration_there_is_no_rate() -> None:
    """Bytes without a time have no rate, and the share is the stored one."""
    kernel = make_kernel(
        {"duration_ns": None, "dram_bytes": 8e8, "dram_bus_peak_bytes_per_s": 1.6e12, "dram_bus_share": 0.4}
    )
    level = place_levels(kernel)["dram"]
    assert (level.amount_bytes, level.bytes_per_s, level.share) == (8e8, None, 0.4)


def test_a_computed_share_goes_before_the_stored_one() -> None:
    """If bytes and peak exist, they are used: 0.5, not the 0.9 from another pass."""
    counters = {"dram_bytes": 8e8, "dram_bus_peak_bytes_per_s": 1.6e12, "dram_bus_share": 0.9}
    assert place_levels(make_kernel(counters))["dram"].share == pytest.approx(0.5)


L2 = {
    "l2_bytes": 3e9,
    "l2_return_bytes": 2e9,
    "l2_return_peak_bytes_per_s": 4e12,
    "l2_tag_bytes": 3e9,
    "l2_tag_peak_bytes_per_s": 6e12,
}


@pytest.mark.parametrize(
    ("changes", "stages", "share"),
    [
        ({}, {"return": 0.5, "tag": 0.5}, 0.5),
        ({"l2_return_bytes": 3.6e9}, {"return": 0.9, "tag": 0.5}, 0.9),
        ({"l2_tag_bytes": 4.8e9}, {"return": 0.5, "tag": 0.8}, 0.8),
        ({"l2_input_share": 0.95}, {"return": 0.5, "tag": 0.5, "input": 0.95}, 0.95),
        (
            {"l2_data_share": 0.6, "l2_request_share": 0.7},
            {"return": 0.5, "tag": 0.5, "data": 0.6, "tag_requests": 0.7},
            0.7,
        ),
    ],
)
def test_l2_share_is_that_of_its_busiest_stage(
    changes: dict[str, float], stages: dict[str, float], share: float
) -> None:
    """Return path and tag stage have their own peaks: the larger share is used, and the roof is that of all traffic."""
    level = place_levels(make_kernel({**L2, **changes}))["l2"]
    assert level.stages == pytest.approx(stages)
    assert level.share == pytest.approx(share)
    assert (level.amount_bytes, level.peak_bytes_per_s) == (3e9, 6e12)


@pytest.mark.parametrize(("tag", "leads"), [(0.633, "internal"), (0.847, "tag"), (0.9, "tag")])
def test_the_fabric_of_a_split_l2_is_a_stage(tag: float, leads: str) -> None:
    """NVIDIA's per cent of the slices is used if it exceeds their stages, as on an A100."""
    level = place_levels(make_kernel({"l2_tag_share": tag, "l2_internal_share": 0.847}))["l2"]
    assert level.share == max(tag, 0.847)
    assert level.leading_stage == leads


def test_l2_draws_the_return_roof_where_no_other_is_known() -> None:
    """Reports without the tag stage's peak still have an L2 roof."""
    counters = {name: value for name, value in L2.items() if "tag" not in name}
    assert place_levels(make_kernel({**counters, "l2_tag_share": 0.9}))["l2"].peak_bytes_per_s == 4e12


@for_all(
    "stage, name",
    [
        ("l1_data_share", "data"),
        ("l1_lsu_input_share", "lsu_input"),
        ("l1_writeback_share", "writeback"),
        ("l1_tag_share", "tag"),
        ("l1_bank_read_share", "bank_reads"),
        ("l1_bank_write_share", "bank_writes"),
        ("l1_tex_data_share", "texture_data"),
        ("l1_filter_share", "texture_filter"),
        ("l1_to_l2_share", "to_l2"),
        ("l1_from_l2_share", "from_l2"),
    ],
)
def test_any_stage_of_l1_can_lead(stage: str, name: str) -> None:
    """Uncoalesced kernels are limited by L1's data stage, others elsewhere: the largest share of its stages is used."""
    others = {"l1_data_share": 0.1, "l1_tag_share": 0.2, "l1_writeback_share": 0.3}
    level = place_levels(make_kernel({**others, stage: 0.994}))["l1"]
    assert level.stages[name] == level.share == 0.994


def test_the_lsu_pipe_stands_for_the_input_of_l1() -> None:
    """12 million instructions in 1 ms, of 16 million possible, keep L1's input three quarters busy."""
    level = place_levels(make_kernel({"lsu_inst": 1.2e7, "lsu_peak_inst_per_s": 1.6e10}))["l1"]
    assert level.stages == {"lsu_input": pytest.approx(0.75)}
    assert level.amount_bytes is None


def test_l1_bytes_are_those_of_the_tag_stage_first() -> None:
    """The tag stage counts every access, the write-back only the data returned to loads."""
    counters = {"l1_tag_bytes": 5e8, "l1_writeback_bytes": 1e8, "l1_data_peak_bytes_per_s": 1e12}
    level = place_levels(make_kernel(counters))["l1"]
    assert (level.amount_bytes, level.peak_bytes_per_s) == (5e8, 1e12)
    del counters["l1_tag_bytes"]
    assert place_levels(make_kernel(counters))["l1"].amount_bytes == 1e8


def test_shared_memory_against_one_wavefront_a_cycle() -> None:
    """1.2 GB in 1 ms of 2 TB/s are 60 %; the level has one stage."""
    level = place_levels(make_kernel({"l1_shared_data_bytes": 1.2e9, "l1_data_peak_bytes_per_s": 2e12}))["smem"]
    assert level.share == pytest.approx(0.6)
    assert level.stages == {"data": pytest.approx(0.6)}


def test_a_chip_without_dram_counters_has_traffic_and_no_roof() -> None:
    """On SoC chips, sectors to system memory replace the bytes, without peak and share."""
    kernel = make_kernel(
        {"sysmem_bytes": 6.4e7},
        counter_sources={"sysmem_bytes": "lts__t_sectors_aperture_sysmem.sum"},
        compute_capability="8.7",
    )
    level = place_levels(kernel)["dram"]
    assert (level.amount_bytes, level.source) == (6.4e7, "lts__t_sectors_aperture_sysmem.sum")
    assert (level.peak_bytes_per_s, level.share) == (None, None)


def test_system_memory_is_not_the_memory_of_a_discrete_gpu() -> None:
    """An H100 without DRAM counters shows no DRAM traffic, as that over PCIe is different."""
    assert place_levels(make_kernel({"sysmem_bytes": 320.0}, compute_capability="9.0"))["dram"].amount_bytes is None


def test_dram_counters_go_before_system_memory() -> None:
    """Sectors to system memory are not DRAM traffic if there is DRAM."""
    assert place_levels(make_kernel({"sysmem_bytes": 1.0, "dram_bytes": 2.0}))["dram"].amount_bytes == 2


def test_intensity_is_flop_per_byte() -> None:
    """1e9 FLOP over 2e8 bytes at DRAM and 5e8 at L2 are 5 and 2 FLOP/B."""
    levels = place_levels(make_kernel({"dram_bytes": 2e8, "l2_bytes": 5e8}), 1e9)
    assert levels["dram"].intensity_flop_per_byte == 5
    assert levels["l2"].intensity_flop_per_byte == 2
    assert levels["l1"].intensity_flop_per_byte is None


@pytest.mark.parametrize("flop_total", [None, 0.0])
def test_no_intensity_without_flops(flop_total: float | None) -> None:
    """A kernel with no, or an unknown number of, FLOPs has its share and no intensity."""
    level = place_levels(make_kernel({"dram_bytes": 8e8, "dram_bus_peak_bytes_per_s": 1.6e12}), flop_total)["dram"]
    assert level.intensity_flop_per_byte is None
    assert level.share == pytest.approx(0.5)


def test_zero_bytes_have_no_intensity() -> None:
    """A level without traffic has a share of 0 and no intensity, rather than an infinite one."""
    level = place_levels(make_kernel({"l1_shared_data_bytes": 0.0, "l1_data_peak_bytes_per_s": 2e12}), 1e9)["smem"]
    assert (level.amount_bytes, level.share, level.intensity_flop_per_byte) == (0, 0, None)


def test_l1_stages_are_worked_out_from_their_amounts() -> None:
    """95 wavefronts in 100 slots make the data stage 95 % busy, without a stored per cent."""
    counters = {
        "l1_data_bytes": 95 * 128.0 * 1e6,
        "l1_writeback_bytes": 80 * 128.0 * 1e6,
        "l1_data_peak_bytes_per_s": 128e11,
    }
    stages = place_levels(make_kernel(counters))["l1"].stages
    assert stages == {"data": pytest.approx(0.95), "writeback": pytest.approx(0.80)}


_TURING = {"sm_count": 6.0, "l1_clock_hz": 1e9, "l1_data_peak_bytes_per_s": 128 * 6e9}


@pytest.mark.parametrize(
    ("counters", "roof_bytes_per_s"),
    [
        # 6 SMs of 64 bytes at 1 GHz move 384 GB/s: in 1 ms 372.48 MB are 97 % of it, and 48.5 % of what ncu counts by.
        ({**_TURING, "l1_data_bytes": 372.48e6}, 384e9),
        ({"l1_data_share": 0.485, "sm_count": 6.0, "sm_clock_hz": 1e9}, None),
        # NVIDIA's own per cents, as in a print: that of L1 is twice that of the accesses.
        ({"sol_memory_access_share": 0.485, "sol_l1_active_share": 0.97, "sol_memory": 0.485}, None),
    ],
)
def test_turing_passes_half_a_wavefront_a_cycle(counters: dict[str, float], roof_bytes_per_s: float | None) -> None:
    """Its L1 moves 64 bytes a cycle and SM, though ncu counts its data stage against 128 as everywhere else."""
    level = place_levels(make_kernel(counters, compute_capability="7.5"))["l1"]
    assert level.stages["data"] == level.share == pytest.approx(0.97)
    if roof_bytes_per_s is not None:
        assert level.peak_bytes_per_s == pytest.approx(roof_bytes_per_s)


def test_other_chips_pass_a_wavefront_a_cycle() -> None:
    """On an A100 the same share of ncu is the share of the stage."""
    level = place_levels(make_kernel({"l1_data_share": 0.485}, compute_capability="8.0"))["l1"]
    assert level.share == 0.485


def test_requests_to_l2_that_nvidia_counts_twice_are_no_data() -> None:
    """On CC 7.5 a per cent of L1 that is twice that of the requests, and not of the accesses, is no data stage's."""
    counters = {"sol_memory_access_share": 0.5, "sol_l1_active_share": 0.9, "sol_memory": 0.45}
    assert "data" not in place_levels(make_kernel(counters, compute_capability="7.5"))["l1"].stages
