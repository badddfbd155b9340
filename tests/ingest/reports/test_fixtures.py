from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import ncu_report
import pytest
from support.attention import GEMM_FLOP, SCORES, TENSOR_BYTES, attention_kernels
from support.loops import for_all
from support.make_fixtures import MANIFEST, MARK, Fixture, manifest_entries, synthetic_fixtures
from support.ncu_rep_writer import Instances
from support.synthetic_kernels import THREAD_TABLE, WARP_TABLE

from rooflens.ingest.reports.container import inspect

ALL = synthetic_fixtures()
LARGEST_TOTAL_BYTES = 1_000_000

each_fixture = for_all("fixture", ALL, lambda fixture: fixture.stem)


def _actions(path: Path) -> list[Any]:
    """Return a report's kernels as NVIDIA's module sees them."""
    return [action for part in ncu_report.load_report(str(path)) for action in part]


@each_fixture
def test_stored_fixtures_are_what_the_generator_writes(fixture: Fixture, fixtures: Path) -> None:
    """A stored fixture equals what its description generates today."""
    assert (fixtures / fixture.path).read_bytes() == fixture.encode()


def test_the_manifest_is_what_the_generator_writes(fixtures: Path) -> None:
    """The manifest's part about synthetic fixtures is current, valid TOML with an entry per file."""
    text = (fixtures / MANIFEST).read_text(encoding="utf-8")
    assert text.partition(MARK)[2] == f"\n{manifest_entries()}"
    entries = tomllib.loads(text)
    stored = {str(path.relative_to(fixtures)) for path in fixtures.rglob("*.ncu-rep")}
    stored = {path for path in stored if not path.startswith("published/")}  # they have a manifest of their own
    assert set(entries) == stored
    assert {name for name, entry in entries.items() if entry["synthetic"]} == {fixture.path for fixture in ALL}


def test_fixtures_stay_small(fixtures: Path) -> None:
    """All synthetic fixtures together stay below a megabyte."""
    assert sum((fixtures / fixture.path).stat().st_size for fixture in ALL) < LARGEST_TOTAL_BYTES


@each_fixture
def test_fixtures_say_that_they_are_synthetic(fixture: Fixture, fixtures: Path) -> None:
    """File name, container, process and command line all say that a fixture is synthetic."""
    container = inspect(fixtures / fixture.path)
    (session,) = container.sessions
    assert "synthetic" in fixture.path.rpartition("/")[2]
    assert container.synthetic
    assert "synthetic" in str(session.process_name)
    assert "synthetic" in str(session.command_line)


@each_fixture
def test_nvidia_reads_all_fixtures(fixture: Fixture, fixtures: Path) -> None:
    """NVIDIA's module finds every kernel, value and opcode of the description."""
    actions = _actions(fixtures / fixture.path)
    assert [action.name(action.NameBase_DEMANGLED) for action in actions] == [spec.name for spec in fixture.kernels]
    for action, spec in zip(actions, fixture.kernels, strict=True):
        for name, value in spec.metrics.items():
            metric = action[name]
            if isinstance(value, Instances):
                opcodes = metric.correlation_ids()
                read = {opcodes.as_string(at): metric.as_double(at) for at in range(metric.num_instances())}
                assert read == value.by_id
            elif isinstance(value, float) and math.isnan(value):
                assert math.isnan(metric.value())
            else:
                assert metric.value() == value


@each_fixture
def test_no_fixture_passes_a_peak(fixture: Fixture) -> None:
    """Amounts, rates and percentages agree, and nothing exceeds 100 %."""
    for spec in fixture.kernels:
        seconds = spec.metrics["gpu__time_duration.sum"] * 1e-9
        for name, percent in spec.metrics.items():
            if not name.endswith(".sum.pct_of_peak_sustained_elapsed") or math.isnan(seconds):
                continue
            base = name.removesuffix(".pct_of_peak_sustained_elapsed")
            assert 0 <= percent <= 100, name
            assert spec.metrics[f"{base}.per_second"] == pytest.approx(spec.metrics[base] / seconds)
        assert not spec.metrics.get("smsp__issue_active.avg.per_cycle_active", 0) > 1


@each_fixture
def test_opcode_tables_agree(fixture: Fixture) -> None:
    """Threads are 32 times warps in every row, and every tensor instruction is in the tensor pipe's count."""
    for spec in fixture.kernels:
        if WARP_TABLE not in spec.metrics:
            continue
        warps, threads = spec.metrics[WARP_TABLE].by_id, spec.metrics[THREAD_TABLE].by_id
        assert threads == {opcode: 32 * count for opcode, count in warps.items()}
        assert all(count == int(count) >= 0 for count in warps.values())
        tensor = sum(count for opcode, count in warps.items() if "MMA" in opcode.split(".")[0])
        assert spec.metrics["sm__inst_executed_pipe_tensor.sum"] == tensor


@each_fixture
def test_occupancy_is_possible(fixture: Fixture) -> None:
    """No kernel keeps more warps resident than its launch allows."""
    for spec in fixture.kernels:
        achieved = spec.metrics.get("sm__warps_active.avg.pct_of_peak_sustained_active", math.nan)
        assert not achieved > spec.metrics.get("sm__maximum_warps_per_active_cycle_pct", 100)


def test_attention_follows_its_formulas() -> None:
    """FLOP and bytes of the four kernels are those of attention, and the fused kernel never moves the scores."""
    scores, softmax, values, fused = attention_kernels()
    hmma = "HMMA.16816.F32.BF16"
    assert scores.warp_opcodes[hmma] * 4096 == values.warp_opcodes[hmma] * 4096 == GEMM_FLOP == 137_438_953_472
    assert fused.warp_opcodes[hmma] * 4096 == 2 * GEMM_FLOP
    assert softmax.dram_read_bytes == softmax.dram_write_bytes == scores.dram_write_bytes == 2 * SCORES
    assert fused.dram_read_bytes == 3 * TENSOR_BYTES
    naive_bytes = sum(work.dram_read_bytes + work.dram_write_bytes for work in (scores, softmax, values))
    assert naive_bytes > 16 * (fused.dram_read_bytes + fused.dram_write_bytes)
    assert fused.duration_ns < scores.duration_ns + softmax.duration_ns + values.duration_ns
