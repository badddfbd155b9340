from __future__ import annotations

from support.loops import for_all

from rooflens.ingest.exports.labels import metric_of
from rooflens.ingest.exports.units import dimension_of, power_of


@for_all(
    "unit, power",
    [
        ("nsecond", 0),
        ("ns", 0),
        ("usecond", 3),
        ("us", 3),
        ("msecond", 6),
        ("ms", 6),
        ("second", 9),
        ("s", 9),
        ("byte", 0),
        ("Kbyte", 3),
        ("Mbyte", 6),
        ("Gbyte", 9),
        ("Tbyte/second", 12),
        ("Gbyte/s", 9),
        ("byte/s", 0),
        ("byte/second", 0),
        ("hz", 0),
        ("Mhz", 6),
        ("MHz", 6),
        ("Ghz", 9),
        ("cycle/second", 0),
        ("cycle/usecond", 6),
        ("cycle/nsecond", 9),
        ("sector/nsecond", 9),
        ("sector/usecond", 6),
        ("Kbyte/block", 3),
        ("Kbyte/cycle", 3),
        ("%/Kbyte", -3),
        ("Kinst", 3),
        ("Minst/cycle", 6),
        ("%", 0),
        ("", 0),
        ("inst/cycle", 0),
        ("register/thread", 0),
        ("SM", 0),
        ("warp", 0),
        ("KiB", None),
    ],
)
def test_units_of_every_version_lead_to_base_units(unit: str, power: int | None) -> None:
    """Times become nanoseconds, rates per second, everything else its plain unit; powers of two are unknown."""
    assert power_of(unit) == power


@for_all(
    "unit, dimension",
    [
        ("%", "pct"),
        ("usecond", "time"),
        ("ns", "time"),
        ("Gbyte/s", "byte/s"),
        ("byte/second", "byte/s"),
        ("Kbyte", "byte"),
        ("Ghz", "hz"),
        ("cycle/nsecond", "hz"),
        ("cycle", "cycle"),
        ("byte/block", None),
        ("inst/cycle", None),
        ("", None),
    ],
)
def test_a_unit_tells_what_is_measured(unit: str, dimension: str | None) -> None:
    """Units of a kind mean the same in all versions."""
    assert dimension_of(unit) == dimension


@for_all(
    "label, unit, metric",
    [
        ("Memory Throughput", "%", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
        ("Memory Throughput", "Gbyte/s", "dram__bytes.sum.per_second"),
        ("Memory Throughput", "byte/second", "dram__bytes.sum.per_second"),
        ("Memory Throughput", "", None),
        ("Duration", "us", "gpu__time_duration.sum"),
        ("Duration", "cycle", None),
        ("SM Frequency", "cycle/usecond", "gpc__cycles_elapsed.avg.per_second"),
        ("SM Frequency", "%", None),
        ("Waves Per SM", "", "launch__waves_per_multiprocessor"),
        ("Waves Per SM", "%", None),
        ("SOL FB", "%", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
        ("SM [%]", "%", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        ("Stall Long Scoreboard", "inst", "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"),
        (
            "Predicated-On FFMA Thread Instructions Executed Per Cycle",
            "inst/cycle",
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed",
        ),
        (
            "Theoretical Predicated-On DFMA Thread Instructions Executed",
            "inst/cycle",
            "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained",
        ),
        ("dram__bytes.sum", "byte", "dram__bytes.sum"),
        ("inst_executed", "inst", "inst_executed"),
        ("My own metric", "%", None),
    ],
)
def test_a_label_stands_for_the_metric_of_its_unit(label: str, unit: str, metric: str | None) -> None:
    """A label of two metrics is decided by the unit; if no metric fits, none is guessed."""
    assert metric_of(label, unit) == metric
