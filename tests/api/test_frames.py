"""Opened reports as tables: the usual numbers, and no copies on the way into other libraries."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rooflens as rl
from rooflens.cli.group import main
from rooflens.errors import UsageError
from rooflens.model.store.tables import TABLES
from rooflens.report.data import to_csv


@pytest.fixture(scope="module")
def attention(fixtures: Path) -> Path:
    """Return a stored report of four kernels."""
    return fixtures / "synthetic" / "attention.synthetic.ncu-rep"


@pytest.fixture
def report(attention: Path) -> rl.Report:
    """Open the report."""
    return rl.open(attention)


def address(column: pa.Array) -> int:
    """Return the memory address of a column's values."""
    found: int = column.buffers()[1].address
    return found


def test_the_summary_agrees_with_the_csv_of_the_command(report: rl.Report) -> None:
    """Columns that also exist in the CSV of `analyze` hold the same values for each kernel."""
    rows = {row["index"]: row for row in csv.DictReader(io.StringIO(to_csv(kernel.analysis for kernel in report)))}
    shared = {
        "gpu",
        "status",
        "duration_ns",
        "flop_total",
        "dram_bytes",
        "l2_share",
        "verdict_bound",
        "verdict_resource",
        "verdict_gain_factor",
        "verdict_limit_factor",
        "verdict_limit_floor_ns",
    }
    for row in report.to_arrow().to_pylist():
        written = rows[str(row["index"])]
        for name in shared | {"dram_intensity", "smem_share", "verdict_confidence", "verdict_cause"}:
            told = "" if row[name] is None else row[name]
            assert written[name] == told or float(written[name]) == pytest.approx(told), name
        assert row["function"] == written["function"]


def test_columns_are_the_same_whatever_was_measured(report: rl.Report, fixtures: Path) -> None:
    """Reports with other chips, other counters or a failed kernel give the same schema; missing values are null."""
    failed = rl.open(fixtures / "synthetic" / "failed_kernel.synthetic.ncu-rep").to_arrow()
    assert failed.schema == report.to_arrow().schema
    last = failed.to_pylist()[-1]
    assert (last["status"], last["duration_ns"], last["dram_share"], last["verdict_limit_factor"]) == (
        "failed",
        None,
        None,
        None,
    )


def test_tables_are_those_of_a_store(attention: Path, report: rl.Report, tmp_path: Path) -> None:
    """A store's tables have the same columns and rows here, but for what only the store reads."""
    rl.ingest_reports(attention, tmp_path / "store")
    main(["analyze", "--store", str(tmp_path / "store")], standalone_mode=False)
    for name in ("kernels", "verdicts", "roofline", "findings", "hotspots", "metrics"):
        found = report.to_arrow(name)  # type: ignore[arg-type]  # one of them
        of_store = [field for field in TABLES[name] if field.name not in {"inputs_digest", "analysis"}]
        assert list(found.schema) == of_store, name
        files = list((tmp_path / "store" / name).glob("*.parquet"))
        stored = sum(pq.ParquetFile(file).metadata.num_rows for file in files)
        assert found.num_rows == stored, name
    with pytest.raises(UsageError, match="no table `runs`"):
        report.to_arrow("runs")  # type: ignore[arg-type]


def test_a_table_of_some_kernels_holds_no_others(report: rl.Report) -> None:
    """Metrics, findings and counters of a slice are those of its kernels only."""
    for name in ("kernels", "verdicts", "roofline", "findings", "metrics"):
        rows = report[1:2].to_arrow(name)  # type: ignore[arg-type]  # one of them
        assert set(rows["kernel_index"].to_pylist()) == {report[1].index}, name


def test_arrow_takes_it_without_a_copy(report: rl.Report) -> None:
    """`pyarrow.table(report)` shares the buffers of `to_arrow`."""
    taken = pa.table(report)
    for name in ("duration_ns", "index"):
        assert address(taken[name].chunk(0)) == address(report.to_arrow()[name].chunk(0)), name
    assert taken.equals(report.to_arrow())


def test_polars_takes_it_without_a_copy(report: rl.Report) -> None:
    """`polars.DataFrame(report)` shares the buffers of `to_arrow`, and equals `to_polars`."""
    taken = pl.DataFrame(report)
    assert address(taken["duration_ns"].to_arrow()) == address(report.to_arrow()["duration_ns"].chunk(0))
    assert taken.equals(report.to_polars())
    assert taken["verdict_bound"].to_list() == [kernel.verdict.bound for kernel in report]


def test_duckdb_asks_it_as_a_table(report: rl.Report) -> None:
    """A DuckDB query can name the report like a table."""
    query = "select verdict_bound, sum(gpu_time_ns) from report group by verdict_bound order by 2 desc"
    found = dict(duckdb.sql(query).fetchall())
    expected: dict[str, float] = {}
    for kernel in report:
        expected[kernel.verdict.bound] = expected.get(kernel.verdict.bound, 0.0) + (kernel.gpu_time_ns or 0.0)
    assert found == expected


def test_pandas_groups_by_lists(report: rl.Report) -> None:
    """Grid, block and flags are tuples, which pandas can group and compare, unlike arrays."""
    frame = report.to_pandas()
    sizes = frame.groupby(["grid", "block", "flags"]).size()
    assert sizes.sum() == len(report)
    assert frame["grid"].tolist() == [kernel.grid for kernel in report]
    assert frame["flags"].tolist() == [kernel.flags for kernel in report]


def test_pandas_takes_it(report: rl.Report) -> None:
    """`to_pandas` and pandas' own constructor give the same numbers, with NaN for missing ones."""
    taken: Any = pd.DataFrame.from_arrow(report) if hasattr(pd.DataFrame, "from_arrow") else report.to_pandas()
    frame = report.to_pandas()
    assert list(frame.columns) == report.to_arrow().column_names
    assert frame["duration_ns"].tolist() == taken["duration_ns"].tolist() == [kernel.duration_ns for kernel in report]
    assert frame["smem_bytes"].isna().tolist() == [kernel.levels["smem"].amount_bytes is None for kernel in report]
