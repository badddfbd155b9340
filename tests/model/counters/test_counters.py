from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loops import for_all

import rooflens
from rooflens.ingest.reports.resolve import resolve
from rooflens.model.counters.recipes import (
    Amount,
    Counter,
    CyclesOverRate,
    CyclesOverTime,
    Exact,
    Peak,
    PerSm,
    RateOverShare,
    Same,
    Share,
)
from rooflens.model.counters.table import COUNTERS, NAMES
from rooflens.model.records import LEVELS
from rooflens.model.roofline.levels import AMOUNTS
from rooflens.model.roofline.occupancy import LIMITERS
from rooflens.model.roofline.roof import SCALAR_DTYPES
from rooflens.model.roofline.units import PIPE_ROWS, STAGES

UNITS = (
    "_ns",
    "_hz",
    "_bytes",
    "_bytes_per_s",
    "_bytes_per_sector",
    "_per_request",
    "_inst",
    "_inst_per_s",
    "_threads",
    "_threads_per_s",
    "_share",
    "_rate",
    "_occupancy",
    "_per_cycle",
    "_cycles_active_avg",
    "_cycles_active_max",
    "_cycles_elapsed_avg",
    "_per_thread",
    "_wavefronts",
    "_sectors",
    "_requests",
    "_samples",
    "_count",
    "_cycles",
)
"""Endings that say the unit."""

COUNTS = frozenset(
    {
        "grid_size",
        "block_size",
        "waves",
        "passes",
        "sol_compute",
        "sol_memory",
        "sm_registers",
        "sm_warps",
        "fp64_slower_factor",
    }
)
"""Names that say it without such an ending: plain counts, a factor, and NVIDIA's two fractions."""

SOURCE_COUNTERS = ("memory_l1_", "memory_l2_")
"""How ncu names what its source view adds up over the instructions: without a unit before two underscores."""

SOURCES = sorted(Path(rooflens.__file__).parent.glob("*/*.py"))


def stored_names(counter: Counter) -> Iterator[str]:
    """Return the names of all stored metrics, or their bases, that a row reads."""
    for recipe in counter.recipes:
        match recipe:
            case Exact(names=names) | CyclesOverTime(names=names):
                yield from names
            case Amount(groups=groups):
                yield from (base for group in groups for base in group)
            case Peak(base=base):
                yield base
            case RateOverShare(rate=rate, share=share):
                yield from (rate, share)
            case Share(bases=bases) | CyclesOverRate(bases=bases):
                yield from bases


def test_names_are_unique() -> None:
    """Counters are columns, so no two have the same name."""
    assert len(COUNTERS) == len(NAMES)


@for_all("counter", COUNTERS, lambda counter: counter.name)
def test_each_row_says_unit_meaning_and_source(counter: Counter) -> None:
    """A row has a name with its unit, a meaning in words, and at least one recipe from stored metrics."""
    assert counter.name.endswith(UNITS) or counter.name in COUNTS or counter.name.startswith("blocks_limit_")
    assert counter.name.isidentifier()
    assert counter.name == counter.name.lower()
    assert counter.meaning
    assert counter.recipes


@for_all("counter", COUNTERS, lambda counter: counter.name)
def test_recipes_name_ncu_metrics(counter: Counter) -> None:
    """Exact recipes use a whole metric name; amounts, peaks and shares a base without roll-up; none occurs twice."""
    for recipe in counter.recipes:
        if isinstance(recipe, Amount | Peak | Share | RateOverShare):
            one = Counter(counter.name, "", (recipe,))
            assert all("." not in name and "__" in name for name in stored_names(one))
    names = [name for recipe in counter.recipes if isinstance(recipe, Exact) for name in recipe.names]
    assert len(set(names)) == len(names)
    assert all("__" in name or name.startswith(SOURCE_COUNTERS) for name in stored_names(counter))


def test_rows_use_only_rows_above_them() -> None:
    """The table is resolved in order, so clocks, SM count and duration precede what is computed from them."""
    seen: set[str] = set()
    for counter in COUNTERS:
        needs: set[str] = set()
        for recipe in counter.recipes:
            match recipe:
                case Peak(clock=clock):
                    needs |= {clock, "duration_ns"}
                case PerSm(clock=clock):
                    needs |= {clock, "sm_count"}
                case Amount() | RateOverShare() | CyclesOverTime():
                    needs |= {"duration_ns"}
                case Share():
                    needs |= {"duration_ns", "sm_clock_hz", "sm_cycles_active_avg"}
                case Same(counter=name):
                    needs |= {name}
        assert needs <= seen, counter.name
        seen.add(counter.name)


def used_in_tables() -> set[str]:
    """Collect the counters used in the tables of the model."""
    stages = {name for stage in STAGES for name in (stage.share, stage.amount, stage.peak)}
    levels = {name for names in AMOUNTS.values() for name in names}
    pipes = {name for row in PIPE_ROWS for name in (*row.shares, row.amount, row.peak)}
    sass = {f"{letter}{op}_threads" for letter, _ in SCALAR_DTYPES.values() for op in ("add", "mul", "fma")}
    peaks = {f"{letter}fma_peak_threads_per_s" for letter, _ in SCALAR_DTYPES.values()}
    return (stages | levels | pipes | sass | peaks | set(LIMITERS)) - {None}


def test_tables_name_counters_that_exist() -> None:
    """A misspelt counter in a table of the model would count as never measured."""
    assert used_in_tables() <= NAMES


def asked_for(source: str) -> set[str]:
    """Collect the constant names that a module requests from `counters`: by `get`, by index and by `in`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=where, attr="get"), args=[ast.Constant(value=str(name)), *_]):
                pass
            case ast.Subscript(value=where, slice=ast.Constant(value=str(name))):
                pass
            case ast.Compare(left=ast.Constant(value=str(name)), comparators=[where]):
                pass
            case _:
                continue
        if "counters" in {getattr(where, "id", None), getattr(where, "attr", None)}:
            names.add(name)
    return names


@for_all("path", SOURCES)
def test_modules_ask_for_counters_that_exist(path: Path) -> None:
    """A misspelt counter in the code would count as never measured too."""
    assert asked_for(path.read_text(encoding="utf-8")) <= NAMES


def test_the_scan_sees_what_it_should() -> None:
    """The scan above finds names in each of the three forms."""
    source = 'kernel.counters.get("a"); counters["b"]; "c" in k.counters; other.get("d"); counters.get(e)'
    assert asked_for(source) == {"a", "b", "c"}
    assert any(asked_for(path.read_text(encoding="utf-8")) for path in SOURCES)


def test_tables_of_levels_know_every_level() -> None:
    """Each memory level has bytes and at least one stage; shared memory's bytes are selected separately."""
    assert (*AMOUNTS, "smem") == LEVELS
    assert {stage.level for stage in STAGES} == set(LEVELS)
    assert len({(stage.level, stage.name) for stage in STAGES}) == len(STAGES)
    assert len({row.key for row in PIPE_ROWS}) == len(PIPE_ROWS)


def test_the_tensor_pipes_share_of_active_cycles_is_apart() -> None:
    """70 % of active cycles is not a share of all cycles if the number of active cycles is unknown."""
    active = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
    assert resolve({active: 70.0}).values == {"tensor_active_share": pytest.approx(0.7)}
    elapsed = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 50.0}
    assert resolve({active: 70.0} | elapsed).values["tensor_busy_share"] == pytest.approx(0.5)
    tcgen05 = resolve({"sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed": 60.0})
    assert tcgen05.values["tensor_busy_share"] == pytest.approx(0.6)
