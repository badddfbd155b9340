"""Derived values equal the report's: values are deleted, derived from other counters, and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec import Struct
from support.kernels import make_kernel, placed
from support.numbers_stored import Stored, stored_in

from rooflens.ingest.reports.inputs import find_inputs, has_name_of_report
from rooflens.model.findings.launch import small_grid
from rooflens.model.records import Kernel
from rooflens.model.roofline.levels import PARTIAL, place_levels

pytestmark = pytest.mark.corpus

_LEAST = 0.95
_PASSES_DIFFER = 0.01
_WHOLE_L1 = "l1tex__throughput.avg.pct_of_peak_sustained_{}"
_STAGES_OF_L1 = ("l1tex__data", "l1tex__f_", "l1tex__lsu", "l1tex__m_", "l1tex__t_", "sm__inst_executed_pipe_lsu")
_ISSUED = ("sm__issue_active", "smsp__issue_active", "sm__inst_issued", "smsp__inst_issued")
_PIPES = ("lsu", "xu")
_COUNTED_TWICE = ("m_l1tex2xbar_req_cycles_active", "data_pipe_lsu_wavefronts")
_CHIPS_THAT_COUNT_TWICE = frozenset({"7.0", "7.5", "8.6", "8.9"})


class Deletion(Struct, frozen=True):
    """A set of metrics to delete, their value, and whether the rest contains what it follows from.

    Attributes:
        gone: Prefixes of the names of the deleted metrics.
        value: What they give for a kernel; None if unknown.
        follows: Whether it follows from the rest, by a condition that does not derive it.
    """

    name: str
    gone: tuple[str, ...]
    value: Callable[[Kernel], float | None]
    follows: Callable[[Stored], bool] = lambda _: True
    absolute: float = 0.0


def _counter(name: str) -> Callable[[Kernel], float | None]:
    return lambda kernel: kernel.counters.get(name)


def _share(level: str) -> Callable[[Kernel], float | None]:
    return lambda kernel: place_levels(kernel)[level].share


def _leads_with_what_counts_twice(one: Stored) -> bool:
    """Return whether NVIDIA's per cent of L1 is twice a stage that NVIDIA's per cent of memory counts once.

    Then its per cent of active cycles is one of all cycles, and not a share of L1.
    """
    whole = one.numbers.get(_WHOLE_L1.format("active"), 0.0)
    stages = (one.numbers.get(f"l1tex__{base}.avg.pct_of_peak_sustained_elapsed", 0.0) for base in _COUNTED_TWICE)
    is_twice = any(abs(2 * stage / whole - 1) < _PASSES_DIFFER for stage in stages if whole)
    return is_twice and one.kernel.compute_capability in _CHIPS_THAT_COUNT_TWICE


def _counts_issue_of_its_own_cycles(one: Stored) -> bool:
    """Return whether issue slots refer to cycles that are stored: a sub-partition may idle while its SM works."""
    names = one.numbers.keys()
    return any(
        {f"{name}.avg.per_cycle_active", f"{unit}__cycles_active.avg", f"{unit}__cycles_elapsed.avg"} <= names
        for name in _ISSUED
        for unit in (name.partition("__")[0],)
    )


def _has_stages_of_l1(one: Stored) -> bool:
    return not place_levels(one.kernel)["l1"].stages.keys() <= PARTIAL["l1"]


DELETIONS = (
    Deletion("time", ("gpu__time_duration",), lambda kernel: kernel.duration_ns),
    Deletion(
        "waves",
        ("launch__waves",),
        _counter("waves"),
        lambda one: one.numbers.get("launch__cluster_size", 0) <= 1,
        absolute=0.005,
    ),
    Deletion(
        "DRAM's share",
        ("gpu__dram_throughput", "dram__throughput", "dram__cycles_active", "dram__bytes.sum.pct", "fbpa__"),
        _share("dram"),
        lambda one: {"dram_bytes", "dram_bus_peak_bytes_per_s", "duration_ns"} <= one.kernel.counters.keys(),
    ),
    Deletion("L2's share, by NVIDIA's", ("lts__t_", "lts__d", "lts__l", "lts__x", "l1tex__m_"), _share("l2")),
    Deletion(
        "L1's share, by NVIDIA's",
        _STAGES_OF_L1,
        _share("l1"),
        lambda one: (
            _WHOLE_L1.format("active") in one.numbers
            and _has_stages_of_l1(one)
            and not _leads_with_what_counts_twice(one)
        ),
    ),
    Deletion(
        "NVIDIA's share of L1",
        (_WHOLE_L1.format("elapsed"), *_STAGES_OF_L1),
        lambda kernel: kernel.counters.get("sol_l1_share", _share("l1")(kernel)),
        lambda one: (
            {_WHOLE_L1.format("active"), _WHOLE_L1.format("elapsed")} <= one.numbers.keys()
            and not _leads_with_what_counts_twice(one)
        ),
    ),
    Deletion(
        "achieved occupancy",
        ("sm__warps_active.avg.pct", "sm__warps_active.sum.pct"),
        _counter("achieved_occupancy"),
        lambda one: "sm__warps_active.avg.per_cycle_active" in one.numbers,
    ),
    *(
        Deletion(
            f"share of the {pipe} pipe",
            tuple(f"sm__inst_executed_pipe_{pipe}.{form}.pct_of_peak_sustained_elapsed" for form in ("sum", "avg")),
            _counter(f"{pipe}_inst_share"),
            lambda one, pipe=pipe: f"sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active" in one.numbers,
        )
        for pipe in _PIPES
    ),
    Deletion(
        "share of the issue slots",
        tuple(f"{name}.{form}.pct" for name in _ISSUED for form in ("sum", "avg")),
        _counter("issue_active_share"),
        _counts_issue_of_its_own_cycles,
    ),
    Deletion(
        "share of the issue slots by executed instructions",
        tuple(f"sm__inst_executed.{form}.pct" for form in ("sum", "avg")),
        _counter("executed_share"),
        lambda one: "sm__inst_executed.avg.per_cycle_active" in one.numbers,
    ),
)


@pytest.fixture(scope="module")
def kernels(corpus: Path) -> list[Stored]:
    """Read every report of the corpus, and of the cases and outcomes if present."""
    folders = [path for name in ("cases", "outcomes/reports") if (path := corpus.parent / name).is_dir()]
    jobs = find_inputs([str(folder) for folder in (corpus, *folders)]).jobs
    return [one for job in jobs if has_name_of_report(job.path) for one in stored_in(job.path)]


def _told(deletion: Deletion, kernels: Sequence[Stored]) -> Iterator[tuple[Stored, float]]:
    """Yield the kernels that have the deleted value, with the value."""
    for one in kernels:
        value = deletion.value(one.kernel)
        if value and deletion.follows(one) and any(name.startswith(deletion.gone) for name in one.numbers):
            yield one, value


@pytest.mark.parametrize("deletion", DELETIONS, ids=lambda deletion: deletion.name)
def test_what_is_deleted_comes_back(kernels: list[Stored], deletion: Deletion) -> None:
    """95 % of the launches whose other counters give the value have it within a hundredth."""
    missed, compared = [], 0
    for one, before in _told(deletion, kernels):
        compared += 1
        after = deletion.value(one.but(*deletion.gone))
        if after is None or abs(after - before) > _PASSES_DIFFER * before + deletion.absolute:
            missed.append(f"{one.kernel.source} {one.kernel.index}: {after}, not {before}")
    assert compared >= 20
    assert len(missed) <= (1 - _LEAST) * compared, missed


def test_thousands_of_values_are_deleted(kernels: list[Stored]) -> None:
    """The documented numbers hold: at least 2,000 deletions from 40 reports, all of launches."""
    told = [one.kernel.digest for deletion in DELETIONS for one, _ in _told(deletion, kernels)]
    assert len(told) >= 2000
    assert len(set(told)) >= 40


def test_a_grid_below_the_sms_needs_neither_waves_nor_limits(kernels: list[Stored]) -> None:
    """Blocks and SMs are enough to say that SMs are idle."""
    found = []
    for one in kernels:
        counters = one.but("launch__waves", "launch__occupancy_limit").counters
        if counters.get("grid_size", 1e9) < counters.get("sm_count", 0):
            found.append(small_grid(placed(make_kernel(counters), {}, {})) is not None)
    assert len(found) >= 20
    assert all(found)
