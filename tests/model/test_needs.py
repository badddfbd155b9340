"""The needs of findings: names that exist, tiers that collect them, and reports that lack them."""

from __future__ import annotations

from msgspec.structs import replace
from support.loops import for_all

from rooflens.collect.passes import base_names
from rooflens.collect.tiers import metrics_for
from rooflens.ingest.reports.resolve import plan_for
from rooflens.model.counters.chips import CHIPS
from rooflens.model.counters.recipes import bases_of
from rooflens.model.counters.table import COUNTERS, NAMES
from rooflens.model.findings.find import RULES
from rooflens.model.findings.rule import CODE, OTHERS, FindingRule
from rooflens.model.hotspots import MEASURES, STORED_AS
from rooflens.model.needs import lacking, names_for, tier_of, untold
from rooflens.model.records import Kernel

KERNEL = Kernel("0", "x.ncu-rep", 0, "kernel", "kernel", "ok")
STORED_UNASKED = [
    name
    for row in COUNTERS
    for recipe in row.recipes
    for name in getattr(recipe, "names", ())
    if name.startswith(("launch__", "device__"))
]
BY_ID = {rule.id: rule for rule in RULES}


@for_all("rule", RULES, lambda rule: rule.id)
def test_every_need_is_something_that_a_report_can_hold(rule: FindingRule) -> None:
    """A name in `needs` is a counter of the table, a measure of the hot spots, or one of the few others."""
    for group in (*rule.needs, *rule.hints):
        assert group
        for need in group:
            assert need in NAMES | {*OTHERS} | {f"{CODE}{measure}" for measure in MEASURES}


@for_all("chip", CHIPS)
def test_standard_collects_what_every_finding_needs(chip: str) -> None:
    """`standard` has the needs of every finding on every chip, unless the chip lacks them or they cost another pass."""
    asked, counted = metrics_for(chip, "deep"), base_names(chip)
    asks = {row.name: row.asked for row in COUNTERS}
    elsewhere = {
        row.name
        for row in COUNTERS
        if row.asked and not any(chip in ask.chips for ask in row.asked)
        if not any(base in counted for recipe in row.recipes for base in bases_of(recipe))
    }
    for rule in RULES:
        own = [ask for group in rule.needs for name in group for ask in asks.get(name, ())]
        is_unasked = bool(own) and not any(chip in ask.chips for ask in own)
        if is_unasked or all(elsewhere.intersection(group) for group in rule.needs):
            continue
        tiers = {tier_of(group, asked, chip) for group in rule.needs}
        late = any(chip in ask.later or ask.detail == "deep" for ask in own)
        assert tiers & ({"quick", "standard", "deep"} if late else {"quick", "standard"}), rule.id


def test_a_rate_of_cycles_needs_both_of_its_counters() -> None:
    """Cycles of L2 alone, which `quick` collects, do not show what came from host memory."""
    asked = metrics_for("ad102", "deep")
    assert tier_of(("host_read_bytes",), asked, "ad102") == "deep"
    assert names_for(("host_read_bytes",), asked, "ad102") == ("lts__d_sectors_fill_sysmem.sum",)


@for_all("chip", CHIPS)
def test_the_names_for_a_finding_are_those_that_a_reader_makes_its_counters_of(chip: str) -> None:
    """The counters of each group of needs can be resolved from the names requested of ncu and from ncu's own."""
    asked, clock = metrics_for(chip, "deep"), ("sm__cycles_elapsed.avg.per_second", "gpu__time_duration.sum")
    for rule in RULES:
        for group in rule.needs:
            names = names_for(group, asked, chip)
            if names is not None:
                steps = plan_for(tuple({*names, *clock, *STORED_UNASKED}))[0]
                assert NAMES.intersection(group) <= {step.name for step in steps}, (rule.id, group, names)


def test_a_tier_is_that_of_the_last_of_a_group() -> None:
    """All names of a group are needed; names that no tier collects have none; series need CC 7.5 or later."""
    asked = metrics_for("gh100", "deep")
    assert tier_of(("waves", "threads_per_inst"), asked, "gh100") == "deep"
    assert tier_of(("waves", "stall_wait_cycles"), asked, "gh100") is None
    assert tier_of(("series",), asked, "gh100") == "deep"
    assert tier_of(("series",), metrics_for("gv100", "deep"), "gv100") is None


def test_every_measure_by_instruction_names_its_metrics() -> None:
    """What a hot spot measures is stored under names that `standard` requests."""
    names = {metric.name for metric in metrics_for("gh100", "standard")}
    assert STORED_AS.keys() == MEASURES.keys()
    assert {name for stored in STORED_AS.values() for name in stored} <= names


def test_a_report_lacks_what_no_way_is_complete_for() -> None:
    """One complete alternative is enough; otherwise the missing names are given for each alternative."""
    rule = BY_ID["bank_conflicts"]
    half = replace(KERNEL, counters={"l1_shared_data_bytes": 1.0, "smem_load_wavefronts": 1.0})
    assert lacking(rule, half, traced=False) == (
        ("smem_access_wavefronts", "smem_ideal_wavefronts"),
        ("smem_load_conflict_wavefronts",),
        ("smem_conflict_bytes",),
    )
    assert (
        lacking(rule, replace(half, counters={"l1_shared_data_bytes": 1.0, "smem_conflict_bytes": 0.0}), traced=False)
        == ()
    )


def test_what_a_hint_shows_is_found_and_never_ruled_out() -> None:
    """Registers alone may forbid warps; that they allow them all says nothing of shared memory."""
    held = {"registers_per_thread", "block_size"}
    rule = BY_ID["low_occupancy"]
    assert (rule.can_tell(held), rule.may_tell(held), rule.may_tell({"block_size"})) == (False, True, False)


def test_what_is_no_counter_is_looked_for_where_it_stands() -> None:
    """Opcodes, stalls, counts by instruction and the trace are parts of the record, and 0 counts as present."""
    assert lacking(BY_ID["launch_gaps"], KERNEL, traced=False) == (("in_program",),)
    assert lacking(BY_ID["launch_gaps"], KERNEL, traced=True) == ()
    assert lacking(BY_ID["fp64_divisions"], replace(KERNEL, thread_opcodes={"DADD": 1}), traced=False) == ()
    counted = replace(KERNEL, code_totals={"load_sectors": 0.0, "load_excess_sectors": 0.0})
    assert lacking(BY_ID["uncoalesced_global_load"], counted, traced=False) == ()


def test_kernels_that_lack_something_are_counted() -> None:
    """A finding is listed with the number of kernels that cannot have it."""
    timed = replace(KERNEL, counters={"duration_ns": 1e6})
    by_id = {row.rule.id: row for row in untold([timed, KERNEL, KERNEL], traced=True)}
    assert by_id["short_kernel"].kernel_count == 2
    assert by_id["small_grid"].kernel_count == 3
    assert "launch_gaps" not in by_id
