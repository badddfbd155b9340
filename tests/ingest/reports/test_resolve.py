from __future__ import annotations

import math
import random

import pytest
from support.loops import for_all
from support.unpruned import EVERYTHING, resolved_without_a_plan

from rooflens.ingest.reports.resolve import plan_for, resolve
from rooflens.model.counters.table import NAMES

TIME = {"gpu__time_duration.sum": 2e6}
"""A launch of 2 ms."""
CLOCKS = {
    "sm__cycles_elapsed.avg.per_second": 1.5e9,
    "lts__cycles_elapsed.avg.per_second": 1.2e9,
    "dram__cycles_elapsed.avg.per_second": 2e9,
}
SMS = {"device__attribute_multiprocessor_count": 100.0}
ALL = {**TIME, **CLOCKS, **SMS}


def value(stored: dict[str, float], name: str) -> float | None:
    """Resolve one counter; None if it is missing."""
    return resolve(stored).values.get(name)


def source(stored: dict[str, float], name: str) -> str | None:
    """Return the source of one counter."""
    return resolve(stored).sources.get(name)


# Missing


def test_nothing_stored_nothing_resolved() -> None:
    """A missing counter stays missing: it never becomes 0 or a default."""
    resolved = resolve({})
    assert resolved.values == {}
    assert resolved.sources == {}


def test_every_value_has_its_source() -> None:
    """Each value names the stored metrics that gave it."""
    resolved = resolve(
        {
            **ALL,
            "dram__bytes.sum": 1.0,
            "l1tex__t_sectors.sum": 3.0,
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": 4.0,
        }
    )
    assert resolved.values.keys() == resolved.sources.keys()
    assert resolved.values.keys() <= NAMES
    assert all(resolved.sources.values())


def test_a_measured_zero_is_kept() -> None:
    """Zero bytes that were measured are kept as zero, not as missing."""
    assert value({"dram__bytes.sum": 0.0}, "dram_bytes") == 0


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_what_is_not_finite_is_missing(number: float) -> None:
    """An infinite value counts as missing, and the next recipe is tried."""
    assert value({"dram__bytes.sum": number}, "dram_bytes") is None
    sectors = {"dram__sectors_read.sum": 1.0, "dram__sectors_write.sum": 1.0}
    assert value({"dram__bytes.sum": number, **sectors}, "dram_bytes") == 64


# Amounts

DRAM_FORMS: list[tuple[dict[str, float], float, str]] = [
    ({"dram__bytes.sum": 10.0}, 10, "dram__bytes.sum"),
    ({"dram__bytes_read.sum": 7.0, "dram__bytes_write.sum": 4.0}, 11, "dram__bytes_read.sum + dram__bytes_write.sum"),
    (
        {"dram__bytes_op_read.sum": 7.0, "dram__bytes_op_write.sum": 5.0},
        12,
        "dram__bytes_op_read.sum + dram__bytes_op_write.sum",
    ),
    ({"dram__bytes.sum.per_second": 6500.0}, 13, "dram__bytes.sum.per_second x t"),
    (
        {"dram__bytes_read.sum.per_second": 5000.0, "dram__bytes_write.sum.per_second": 2000.0},
        14,
        "dram__bytes_read.sum.per_second x t + dram__bytes_write.sum.per_second x t",
    ),
    ({"dram__bytes.sum.per_cycle_elapsed": 15 / 4e6}, 15, "dram__bytes.sum.per_cycle_elapsed x f x t"),
    ({"dram__bytes": 16.0}, 16, "dram__bytes"),
    ({"dram__read_bytes": 8.0, "dram__write_bytes": 9.0}, 17, "dram__read_bytes + dram__write_bytes"),
    (
        {"dram__sectors_read.sum": 0.5, "dram__sectors_write.sum": 0.0625},
        18,
        "dram__sectors_read.sum + dram__sectors_write.sum",
    ),
]
"""Stored metrics -> bytes in 2 ms at 2 GHz, and the source; earlier forms take precedence."""


@for_all("stored, expected, formula", DRAM_FORMS)
def test_each_form_of_an_amount(stored: dict[str, float], expected: float, formula: str) -> None:
    """Sum, parts, rate x t, rate per cycle x f x t, Pascal's bare names and sectors give the amount and its source."""
    resolved = resolve({**ALL, **stored})
    assert resolved.values["dram_bytes"] == pytest.approx(expected)
    assert resolved.sources["dram_bytes"] == formula


@for_all("first", range(len(DRAM_FORMS)))
def test_forms_are_tried_in_order(first: int) -> None:
    """The most exact form in a report is taken, in whatever order the forms are stored."""
    stored = {name: number for form, _, _ in reversed(DRAM_FORMS[first:]) for name, number in form.items()}
    assert source({**ALL, **stored}, "dram_bytes") == DRAM_FORMS[first][2]


@pytest.mark.parametrize(
    "stored",
    [
        {"dram__bytes_read.sum": 7.0},
        {"dram__bytes_write.sum": 7.0},
        {"dram__bytes_read.sum": 7.0, "dram__bytes_op_write.sum": 7.0},
    ],
)
def test_half_a_sum_is_missing(stored: dict[str, float]) -> None:
    """A part of a sum whose other part was not measured gives no total."""
    assert value({**ALL, **stored}, "dram_bytes") is None


@pytest.mark.parametrize("missing", [TIME, {"dram__cycles_elapsed.avg.per_second": 0}])
def test_a_rate_a_cycle_needs_clock_and_time(missing: dict[str, float]) -> None:
    """Without the duration, or without its own unit's clock, a rate per cycle gives no amount."""
    stored = {name: number for name, number in ALL.items() if name not in missing}
    assert value({**stored, "dram__bytes.sum.per_cycle_elapsed": 1.0}, "dram_bytes") is None


@pytest.mark.parametrize("duration", [{}, {"gpu__time_duration.sum": 0.0}])
def test_a_rate_needs_a_time(duration: dict[str, float]) -> None:
    """With a missing or zero duration no rate becomes an amount, and no cycle count a clock."""
    stored = {"dram__bytes.sum.per_second": 1e9, "sm__cycles_elapsed.max": 1e6, **duration}
    assert value(stored, "dram_bytes") is None
    assert value(stored, "sm_clock_hz") is None


@pytest.mark.parametrize(
    ("base", "name", "clock_hz", "scale"),
    [
        ("sm__inst_executed_pipe_alu", "alu_inst", 1.5e9, 1),
        ("smsp__sass_thread_inst_executed_op_ffma_pred_on", "ffma_threads", 1.5e9, 1),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared", "l1_shared_data_bytes", 1.5e9, 128),
        ("lts__t_sectors_srcunit_tex", "l2_bytes", 1.2e9, 32),
        ("lts__lts2xbar_cycles_active", "l2_return_bytes", 1.2e9, 32),
    ],
)
def test_a_rate_a_cycle_takes_the_clock_of_its_unit(base: str, name: str, clock_hz: float, scale: int) -> None:
    """SM, scheduler and L1 counters take the SM clock, L2 ones the L2 clock; sectors are 32, wavefronts 128 bytes."""
    stored = {**ALL, f"{base}.sum.per_cycle_elapsed": 0.5}
    assert value(stored, name) == pytest.approx(0.5 * clock_hz * 2e-3 * scale)


def test_l2_bytes_are_those_of_the_sms() -> None:
    """Sectors from L1 x 32 take precedence over the crossbar's pair of byte counters."""
    pair = {"l1tex__m_xbar2l1tex_read_bytes.sum": 60.0, "l1tex__m_l1tex2xbar_write_bytes.sum": 4.0}
    assert value(pair, "l2_bytes") == 64
    assert value({**pair, "lts__t_sectors_srcunit_tex.sum": 3.0}, "l2_bytes") == 96


# Clocks


def test_l1_runs_on_the_sm_clock_where_it_has_none() -> None:
    """A missing L1 clock is replaced by the SM's, and its source says so."""
    resolved = resolve(CLOCKS)
    assert (resolved.values["l1_clock_hz"], resolved.sources["l1_clock_hz"]) == (1.5e9, "= sm_clock_hz")
    assert value({**CLOCKS, "l1tex__cycles_elapsed.avg.per_second": 1.4e9}, "l1_clock_hz") == 1.4e9


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({"smsp__cycles_elapsed.avg.per_second": 1.1e9}, 1.1e9),
        ({"gpc__cycles_elapsed.avg.per_second": 1.2e9}, 1.2e9),
        ({"gpc__frequency": 1.3e9}, 1.3e9),
        ({"sm__cycles_elapsed.max": 2.8e6}, 1.4e9),
        ({"gpc__cycles_elapsed.max": 3e6}, 1.5e9),
    ],
)
def test_the_sm_clock_has_many_names(stored: dict[str, float], expected: float) -> None:
    """A stored clock takes precedence; otherwise 2.8 million cycles in 2 ms give 1.4 GHz."""
    assert value({**TIME, **stored}, "sm_clock_hz") == pytest.approx(expected)
    assert value({**TIME, **stored, **CLOCKS}, "sm_clock_hz") == 1.5e9


# Peaks


@pytest.mark.parametrize(
    ("stored", "expected", "formula"),
    [
        ({"dram__bytes.sum.peak_sustained": 500.0}, 1e12, "dram__bytes.sum.peak_sustained x f"),
        (
            {"dram__bytes.sum.peak_sustained_elapsed.per_second": 1.1e12},
            1.1e12,
            "dram__bytes.sum.peak_sustained_elapsed.per_second",
        ),
        (
            {"dram__bytes.sum.per_second": 6e11, "dram__bytes.sum.pct_of_peak_sustained_elapsed": 50.0},
            1.2e12,
            "dram__bytes.sum.per_second / dram__bytes.sum.pct_of_peak_sustained_elapsed",
        ),
        (
            {"dram__bytes.sum": 2.6e9, "dram__bytes.avg.pct_of_peak_sustained_elapsed": 100.0},
            1.3e12,
            "(dram__bytes.sum / t) / dram__bytes.avg.pct_of_peak_sustained_elapsed",
        ),
    ],
)
def test_each_form_of_a_peak(stored: dict[str, float], expected: float, formula: str) -> None:
    """Peak per cycle x f, peak per second, and rate divided by per cent give the peak and its source."""
    resolved = resolve({**ALL, **stored})
    assert resolved.values["dram_bus_peak_bytes_per_s"] == pytest.approx(expected)
    assert resolved.sources["dram_bus_peak_bytes_per_s"] == formula


def test_peaks_are_tried_in_order() -> None:
    """The peak per cycle takes precedence; without a clock the next form is used."""
    stored = {
        "dram__bytes.sum.peak_sustained": 500.0,
        "dram__bytes.sum.peak_sustained_elapsed.per_second": 1.1e12,
        "dram__bytes.sum.per_second": 6e11,
        "dram__bytes.sum.pct_of_peak_sustained_elapsed": 50.0,
    }
    assert value({**ALL, **stored}, "dram_bus_peak_bytes_per_s") == 1e12
    assert value({**TIME, **stored}, "dram_bus_peak_bytes_per_s") == 1.1e12
    del stored["dram__bytes.sum.peak_sustained_elapsed.per_second"]
    assert value({**TIME, **stored}, "dram_bus_peak_bytes_per_s") == pytest.approx(1.2e12)


@pytest.mark.parametrize(("pct", "expected"), [(0.01, 1e13), (0.0099, None), (0.0, None)])
def test_a_quotient_has_a_floor(pct: float, expected: float | None) -> None:
    """Below 0.01 % of the peak, too little was counted to divide by."""
    stored = {"dram__bytes.sum.per_second": 1e9, "dram__bytes.sum.pct_of_peak_sustained_elapsed": pct}
    assert value(stored, "dram_bus_peak_bytes_per_s") == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    "stored",
    [
        {"dram__bytes.sum.peak_sustained": 0.0},
        {"dram__bytes.sum.per_second": 0.0, "dram__bytes.sum.pct_of_peak_sustained_elapsed": 5.0},
    ],
)
def test_a_peak_of_zero_is_missing(stored: dict[str, float]) -> None:
    """No hardware limit is zero: such a peak was not measured."""
    assert value({**ALL, **stored}, "dram_bus_peak_bytes_per_s") is None


def test_the_peak_of_a_part_is_that_of_the_whole() -> None:
    """Reads alone can fill the bus, so their peak is used for that of all bytes."""
    assert value({**CLOCKS, "dram__bytes_read.sum.peak_sustained": 400.0}, "dram_bus_peak_bytes_per_s") == 8e11


def test_constants_of_the_architecture_stand_in() -> None:
    """128 bytes and four instructions per cycle on 100 SMs at 1.5 GHz: 19.2 TB/s and 600e9 instructions."""
    resolved = resolve(ALL)
    assert resolved.values["l1_data_peak_bytes_per_s"] == pytest.approx(19.2e12)
    assert resolved.values["l1_tag_peak_bytes_per_s"] == pytest.approx(19.2e12)
    assert resolved.values["issue_peak_inst_per_s"] == pytest.approx(6e11)
    assert resolved.sources["l1_data_peak_bytes_per_s"] == "128 per SM and cycle x SMs x f"


@pytest.mark.parametrize("stored", [CLOCKS, SMS, {}])
def test_constants_need_clock_and_size(stored: dict[str, float]) -> None:
    """Without the number of SMs or the clock, there is no constant either."""
    assert value(stored, "l1_data_peak_bytes_per_s") is None


def test_a_stored_peak_goes_before_the_constant() -> None:
    """The report's own peak of the L1 tag stage takes precedence over the constant."""
    assert value({**ALL, "l1tex__t_bytes.sum.peak_sustained": 6400.0}, "l1_tag_peak_bytes_per_s") == pytest.approx(
        9.6e12
    )


def test_the_return_path_s_peak_from_the_same_flow() -> None:
    """Bytes that L1 received divided by the return path's per cent: 600 GB/s at 25 % give 2.4 TB/s."""
    stored = {
        "l1tex__m_xbar2l1tex_read_bytes.sum.per_second": 6e11,
        "lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed": 25.0,
    }
    assert value(stored, "l2_return_peak_bytes_per_s") == pytest.approx(2.4e12)
    stored["lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed"] = 0.005
    assert value(stored, "l2_return_peak_bytes_per_s") is None


@pytest.mark.parametrize("unit", ["sm", "smsp"])
def test_fma_peaks_of_either_unit(unit: str) -> None:
    """12,800 multiply-adds per cycle, stored per SM or per scheduler, at 1.5 GHz."""
    stored = {**CLOCKS, f"{unit}__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 12_800.0}
    assert value(stored, "ffma_peak_threads_per_s") == pytest.approx(1.92e13)


# Shares


@pytest.mark.parametrize("rollup", ["sum", "avg"])
def test_a_share_is_a_fraction_of_elapsed_time(rollup: str) -> None:
    """A stored per cent of the peak over elapsed cycles is read as a fraction."""
    assert value({f"sm__inst_executed_pipe_xu.{rollup}.pct_of_peak_sustained_elapsed": 42.0}, "xu_inst_share") == 0.42


@pytest.mark.parametrize(
    ("elapsed", "expected"),
    [
        ({"sm__cycles_elapsed.avg": 4e6}, 0.25),
        ({"sm__cycles_elapsed.avg.per_second": 2e9}, 0.25),
        ({"sm__cycles_elapsed.max": 1e6}, 0.5),
        ({}, 0.5),
    ],
)
def test_a_share_of_active_cycles_is_scaled_to_elapsed_ones(elapsed: dict[str, float], expected: float | None) -> None:
    """50 % of 2 million active cycles in 4 million elapsed, stored or 2 GHz x 2 ms, are 25 %; never more than 50."""
    stored = {
        **TIME,
        **elapsed,
        "sm__cycles_active.avg": 2e6,
        "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": 50.0,
    }
    assert value(stored, "xu_inst_share") == expected


def test_a_share_of_active_cycles_says_so() -> None:
    """The source of a scaled share mentions the scaling."""
    stored = {
        "sm__cycles_elapsed.avg": 4.0,
        "sm__cycles_active.avg": 2.0,
        "sm__inst_executed_pipe_xu.sum.pct_of_peak_sustained_active": 50.0,
    }
    assert (
        source(stored, "xu_inst_share")
        == "sm__inst_executed_pipe_xu.sum.pct_of_peak_sustained_active x sm__cycles_active.avg / sm__cycles_elapsed.avg"
    )
    stored["sm__cycles_elapsed.max"] = stored.pop("sm__cycles_elapsed.avg")
    assert source(stored, "xu_inst_share").endswith("_active x active / elapsed cycles")


def test_a_rate_of_active_cycles_takes_those_of_its_own_unit() -> None:
    """A one-warp block keeps one of four sub-partitions busy: 0.8 of its 100 cycles are 0.2 of the SM's."""
    stored = {
        "smsp__issue_active.avg.per_cycle_active": 0.8,
        "smsp__cycles_active.avg": 25.0,
        "smsp__cycles_elapsed.avg": 100.0,
        "sm__cycles_active.avg": 100.0,
        "sm__cycles_elapsed.avg": 100.0,
    }
    assert value(stored, "issue_active_share") == pytest.approx(0.2)
    del stored["smsp__cycles_elapsed.avg"]
    assert value(stored, "issue_active_share") == pytest.approx(0.8)
    assert value({**stored, "sm__inst_issued.avg.per_cycle_active": 0.8}, "issue_active_share") == pytest.approx(0.2)


def test_elapsed_goes_before_active() -> None:
    """A share that needs no scaling is taken first, from any of the bases."""
    stored = {
        "sm__cycles_elapsed.avg": 4.0,
        "sm__cycles_active.avg": 2.0,
        "sm__issue_active.avg.pct_of_peak_sustained_active": 90.0,
        "sm__inst_issued.avg.pct_of_peak_sustained_elapsed": 30.0,
    }
    assert value(stored, "issue_active_share") == 0.3


def test_active_cycles_of_another_unit_are_not_those_of_the_sms() -> None:
    """A share of L2's active cycles cannot be scaled by how long the SMs were active: it stays, and says so."""
    stored = {
        "sm__cycles_elapsed.avg": 4.0,
        "sm__cycles_active.avg": 2.0,
        "lts__t_sectors.avg.pct_of_peak_sustained_active": 50.0,
    }
    assert value(stored, "l2_tag_share") == 0.5
    assert source(stored, "l2_tag_share") == "lts__t_sectors.avg.pct_of_peak_sustained_active (of active cycles)"


def test_dram_share_falls_back_on_nvidias_throughput() -> None:
    """The breakdown's per cent takes precedence, then the throughput metrics, then Pascal's old name."""
    stored = {"fbpa__sol_pct": 10.0}
    assert value(stored, "dram_bus_share") == pytest.approx(0.1)
    stored["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"] = 20.0
    assert value(stored, "dram_bus_share") == pytest.approx(0.2)
    stored["dram__bytes.avg.pct_of_peak_sustained_elapsed"] = 30.0
    assert value(stored, "dram_bus_share") == pytest.approx(0.3)


def test_old_names_of_pascal() -> None:
    """Names without a roll-up suffix, as in reports of 2018 and of Pascal, are read."""
    stored = {
        "gpu__time_duration": 5e6,
        "dram__read_bytes": 3.0,
        "dram__write_bytes": 4.0,
        "sm__sol_pct": 50.0,
        "gpu__compute_memory_sol_pct": 60.0,
    }
    values = resolve(stored).values
    assert values["duration_ns"] == 5e6
    assert (values["dram_read_bytes"], values["dram_write_bytes"], values["dram_bytes"]) == (3, 4, 7)
    assert (values["sol_compute"], values["sol_memory"]) == (0.5, 0.6)


@for_all(
    "stored, name, expected",
    [
        ("sm__warps_active.avg.pct_of_peak_sustained_active", "achieved_occupancy", 0.5),
        ("sm__maximum_warps_per_active_cycle_pct", "theoretical_occupancy", 0.5),
        ("l1tex__t_sector_hit_rate.pct", "l1_hit_rate", 0.5),
        ("lts__t_sector_hit_rate.pct", "l2_hit_rate", 0.5),
        ("launch__waves_per_multiprocessor", "waves", 50.0),
        ("profiler__replayer_passes", "passes", 50.0),
    ],
)
def test_exact_names_keep_or_scale_their_value(stored: str, name: str, expected: float) -> None:
    """Per cents become fractions, and counts stay as they are."""
    assert value({stored: 50.0}, name) == expected


def test_the_parts_of_a_sum_need_not_have_one_form() -> None:
    """Bytes read, stored as a sum, and bytes written, stored as a rate, give a total: 7 + 7 per second for 1 ms."""
    stored = {"gpu__time_duration.sum": 1e6, "dram__bytes_read.sum": 7.0, "dram__bytes_write.sum.per_second": 7.0}
    assert value(stored, "dram_bytes") == pytest.approx(7.007)


BUS = {"device__attribute_memory_clock_rate": 10_501_000.0, "device__attribute_global_memory_bus_width": 384.0}
"""What the driver reports for an RTX 4090."""


def test_the_device_s_own_bandwidth_is_two_bits_a_pin_and_cycle() -> None:
    """21 Gbit/s on 384 pins give the RTX 4090's 1.008 TB/s, whatever clock the profiled run had."""
    assert value({**ALL, **BUS}, "device_dram_peak_bytes_per_s") == pytest.approx(1.008e12, rel=1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        {"device__attribute_integrated": 1.0},
        {"device__attribute_memory_clock_rate": 0.0},
        {"device__attribute_global_memory_bus_width": 0.0},
    ],
)
def test_the_memory_clock_of_a_shared_memory_is_not_known(changes: dict[str, float]) -> None:
    """Orin reports its GPU clock there, GB10 twice the right clock, Thor 0: none of them gives a bandwidth."""
    assert value({**ALL, **BUS, **changes}, "device_dram_peak_bytes_per_s") is None


# Plans


@pytest.mark.parametrize("unit", ["sm", "smsp", "gpc"])
def test_cycles_and_their_rate_give_the_time(unit: str) -> None:
    """3 million cycles at 1.5 GHz give 2 ms if no time was measured; a stored time takes precedence."""
    stored = {f"{unit}__cycles_elapsed.avg": 3e6, f"{unit}__cycles_elapsed.avg.per_second": 1.5e9}
    found = resolve(stored)
    assert found.values["duration_ns"] == 2e6
    name = f"{unit}__cycles_elapsed.avg"
    assert found.sources["duration_ns"] == f"{name} / {name}.per_second"
    assert resolve({**stored, "gpu__time_duration.sum": 7.0}).values["duration_ns"] == 7
    assert "duration_ns" not in resolve({**stored, f"{name}.per_second": 0.0}).values


@for_all("seed", range(8))
def test_a_plan_finds_what_all_recipes_find(seed: int) -> None:
    """A plan for a set of names leaves out only inapplicable recipes: values, sources and their order are the same."""
    chance = random.Random(seed)  # noqa: S311 - a choice of names, not a secret
    names = sorted(EVERYTHING)
    for share in (0.02, 0.2, 0.7):
        stored = {name: chance.choice((0.0, 1.0, chance.uniform(0, 1e9))) for name in names if chance.random() < share}
        found = resolve(stored)
        values, sources = resolved_without_a_plan(stored)
        assert list(found.values.items()) == list(values.items())
        assert found.sources == sources


def test_kernels_of_one_report_share_a_plan_and_the_names_of_their_sources() -> None:
    """The recipes for a set of names are selected once, and all kernels share one mapping of sources."""
    plan_for.cache_clear()
    first, second = resolve({**ALL, "dram__bytes.sum": 1.0}), resolve({**ALL, "dram__bytes.sum": 2.0})
    assert plan_for.cache_info().misses == 1
    assert first.sources is second.sources
    assert first.values != second.values


def test_values_whose_sum_is_no_number_are_found_one_by_one() -> None:
    """Values read together are checked by their sum; if it is not finite, each is checked by itself."""
    stored = {**ALL, "dram__bytes_read.sum": 1.5e308, "dram__bytes_write.sum": 1.5e308, "lts__t_sectors.sum": 1.5e308}
    values, sources = resolved_without_a_plan(stored)
    found = resolve(stored)
    assert list(found.values.items()) == list(values.items())
    assert found.sources == sources
    assert sum(value >= 1e308 for value in found.values.values()) > 1


def test_a_clock_of_zero_was_not_measured() -> None:
    """Nothing runs at 0 Hz: the clock counts as missing, and so does all that is computed from it."""
    found = resolve({**ALL, "sm__cycles_elapsed.avg.per_second": 0.0}).values
    assert "sm_clock_hz" not in found
    assert "issue_peak_inst_per_s" not in found


def test_waves_that_a_print_rounds_to_nothing_are_those_of_the_launch() -> None:
    """4 blocks on 108 SMs of 8 each are 0.005 waves, printed as 0.00; without the limits of an SM nothing is known."""
    launch = {"launch__waves_per_multiprocessor": 0.0, "launch__grid_size": 4.0, "launch__sm_count": 108.0}
    held = {f"launch__occupancy_limit_{what}": 8.0 for what in ("warps", "registers", "shared_mem", "blocks")}
    assert value({**launch, **held}, "waves") == pytest.approx(4 / (8 * 108))
    assert value(launch, "waves") is None
